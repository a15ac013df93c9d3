/* Every lock does what the header says. Compiled as C11 and as C++17, with and without QSPIN_INLINE. */
#include <errno.h>
#include <pthread.h>
#include <qspin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "every.h"

enum { THREADS = 3, TIMES = 150 };

static long counted;

static void together(void *(*count)(void *)) {
    pthread_t threads[THREADS];
    counted = 0;
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, count, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    REQUIRE(counted == (long)THREADS * TIMES);
}

/* In turns by way of the macros of QSPIN_INLINE, by the library's function, and by trylock. */
#define A_LOCK(name, NAME)                                                                         \
    static qspin_##name##_t the_##name = QSPIN_##NAME##_INIT;                                      \
    static void *name##_count(void *unused) {                                                      \
        (void)unused;                                                                              \
        for (int i = 0; i < TIMES; i++) {                                                          \
            errno = 77;                                                                            \
            if (i % 3 == 0) {                                                                      \
                qspin_##name##_lock(&the_##name);                                                  \
            } else if (i % 3 == 1) {                                                               \
                (qspin_##name##_lock)(&the_##name);                                                \
            } else {                                                                               \
                while (qspin_##name##_trylock(&the_##name) != 0) {                                 \
                    usleep(1);                                                                     \
                }                                                                                  \
                errno = 77;                                                                        \
            }                                                                                      \
            counted++;                                                                             \
            if (i % 2 == 0) {                                                                      \
                qspin_##name##_unlock(&the_##name);                                                \
            } else {                                                                               \
                (qspin_##name##_unlock)(&the_##name);                                              \
            }                                                                                      \
            REQUIRE(errno == 77);                                                                  \
        }                                                                                          \
        return NULL;                                                                               \
    }                                                                                              \
    static void name##_test(void) {                                                                \
        static qspin_##name##_t zeros;                                                             \
        qspin_##name##_t made;                                                                     \
        memset(&made, 0xff, sizeof made);                                                          \
        qspin_##name##_init(&made);                                                                \
        REQUIRE(memcmp(&made, &zeros, sizeof made) == 0);                                          \
        REQUIRE(memcmp(&the_##name, &zeros, sizeof made) == 0);                                    \
        REQUIRE(!qspin_##name##_is_locked(&made));                                                 \
        qspin_##name##_lock(&made);                                                                \
        qspin_full_barrier_after_lock();                                                           \
        REQUIRE(qspin_##name##_is_locked(&made));                                                  \
        REQUIRE(qspin_##name##_trylock(&made) == EBUSY);                                           \
        REQUIRE(qspin_##name##_destroy(&made) == EBUSY);                                           \
        qspin_##name##_unlock(&made);                                                              \
        REQUIRE(!qspin_##name##_is_locked(&made));                                                 \
        REQUIRE(qspin_##name##_trylock(&made) == 0);                                               \
        REQUIRE(qspin_##name##_trylock(&made) == EBUSY);                                           \
        qspin_##name##_unlock(&made);                                                              \
        REQUIRE(qspin_##name##_destroy(&made) == 0);                                               \
        together(name##_count);                                                                    \
        REQUIRE(!qspin_##name##_is_locked(&the_##name));                                           \
    }
EVERY_LOCK(A_LOCK)

#define A_SHARED_LOCK(name, NAME)                                                                  \
    static qspin_##name##_t the_##name = QSPIN_##NAME##_INIT;                                      \
                                                                                                   \
    static void *name##_count(void *unused) {                                                      \
        (void)unused;                                                                              \
        for (int i = 0; i < TIMES; i++) {                                                          \
            qspin_##name##_rdlock(&the_##name);                                                    \
            REQUIRE(counted >= 0);                                                                 \
            if (i % 2 == 0) {                                                                      \
                qspin_##name##_unlock(&the_##name);                                                \
            } else {                                                                               \
                qspin_##name##_rdunlock(&the_##name);                                              \
            }                                                                                      \
            qspin_##name##_wrlock(&the_##name);                                                    \
            counted++;                                                                             \
            if (i % 2 == 0) {                                                                      \
                qspin_##name##_unlock(&the_##name);                                                \
            } else {                                                                               \
                qspin_##name##_wrunlock(&the_##name);                                              \
            }                                                                                      \
        }                                                                                          \
        return NULL;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void name##_test(void) {                                                                \
        qspin_##name##_t made;                                                                     \
        memset(&made, 0xff, sizeof made);                                                          \
        qspin_##name##_init(&made);                                                                \
        REQUIRE(memcmp(&made, &the_##name, sizeof made) == 0);                                     \
        qspin_##name##_rdlock(&made);                                                              \
        REQUIRE(qspin_##name##_tryrdlock(&made) == 0);                                             \
        REQUIRE(qspin_##name##_trywrlock(&made) == EBUSY);                                         \
        REQUIRE(qspin_##name##_destroy(&made) == EBUSY);                                           \
        qspin_##name##_unlock(&made);                                                              \
        REQUIRE(qspin_##name##_is_locked(&made));                                                  \
        qspin_##name##_unlock(&made);                                                              \
        REQUIRE(!qspin_##name##_is_locked(&made));                                                 \
        REQUIRE(qspin_##name##_trywrlock(&made) == 0);                                             \
        REQUIRE(qspin_##name##_tryrdlock(&made) == EBUSY);                                         \
        REQUIRE(qspin_##name##_trywrlock(&made) == EBUSY);                                         \
        REQUIRE(qspin_##name##_destroy(&made) == EBUSY);                                           \
        qspin_##name##_unlock(&made);                                                              \
        REQUIRE(qspin_##name##_destroy(&made) == 0);                                               \
        together(name##_count);                                                                    \
    }
EVERY_SHARED(A_SHARED_LOCK)

/* A reader in a signal handler passes a writer that waits for the reader that it interrupts. */
static qspin_queued_rw_t shared = QSPIN_QUEUED_RW_INIT;
static volatile sig_atomic_t handled;

static void handler(int number) {
    (void)number;
    qspin_handler_enter();
    qspin_queued_rw_rdlock(&shared);
    handled = 1;
    qspin_queued_rw_rdunlock(&shared);
    qspin_handler_leave();
}

static void *write_it(void *unused) {
    (void)unused;
    qspin_queued_rw_wrlock(&shared);
    qspin_queued_rw_wrunlock(&shared);
    return NULL;
}

static void handler_test(void) {
    struct sigaction action;
    pthread_t writer;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    qspin_handler_leave(); /* without a beginning: nothing */
    qspin_queued_rw_rdlock(&shared);
    REQUIRE(pthread_create(&writer, NULL, write_it, NULL) == 0);
    while (qspin_queued_rw_tryrdlock(&shared) == 0) { /* until the writer is seen to wait */
        qspin_queued_rw_rdunlock(&shared);
        usleep(100);
    }
    REQUIRE(raise(SIGUSR1) == 0);
    REQUIRE(handled);
    qspin_queued_rw_rdunlock(&shared);
    REQUIRE(pthread_join(writer, NULL) == 0);
}

int main(void) {
    alarm(1200); /* a lock that is lost is not waited for until the end of time */
    REQUIRE(strcmp(qspin_version(), QSPIN_VERSION) == 0);
    REQUIRE(qspin_version_number() == QSPIN_VERSION_NUMBER);
#define TEST(name, NAME) name##_test();
    EVERY_LOCK(TEST)
#define SHARED_TEST(name, NAME) name##_test();
    EVERY_SHARED(SHARED_TEST)
    handler_test();
    puts("every lock does what the header says");
    return 0;
}
