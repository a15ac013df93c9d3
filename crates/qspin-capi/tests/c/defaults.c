/* The default mutex, reader-writer lock and condition variable: what they can beyond other locks. */
#include <errno.h>
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "every.h"

#define MILLISECOND UINT64_C(1000000)

static uint64_t now(void) {
    struct timespec time;
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * 1000 * MILLISECOND + (uint64_t)time.tv_nsec;
}

static qspin_mutex_t mutex = QSPIN_INIT;
static qspin_rwlock_t rw = QSPIN_RWLOCK_INIT;

/* A lock that is not released cannot be had, and a thread that gives up has waited so long; errno stays. */
static void *gives_up(void *unused) {
    uint64_t before = now();
    (void)unused;
    errno = 77;
    REQUIRE(qspin_mutex_lock_for(&mutex, 0) == ETIMEDOUT);
    REQUIRE(qspin_mutex_lock_for(&mutex, 20 * MILLISECOND) == ETIMEDOUT);
    REQUIRE(qspin_rwlock_rdlock_for(&rw, 20 * MILLISECOND) == ETIMEDOUT);
    REQUIRE(qspin_rwlock_wrlock_for(&rw, 20 * MILLISECOND) == ETIMEDOUT);
    REQUIRE(errno == 77);
    REQUIRE(now() - before >= 60 * MILLISECOND);
    return NULL;
}

static void *takes_it(void *unused) {
    (void)unused;
    REQUIRE(qspin_mutex_lock_for(&mutex, UINT64_MAX) == 0);
    qspin_mutex_unlock(&mutex);
    return NULL;
}

static void times(void) {
    pthread_t thread;
    qspin_mutex_lock(&mutex);
    qspin_rwlock_wrlock(&rw);
    REQUIRE(pthread_create(&thread, NULL, gives_up, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    qspin_rwlock_wrunlock(&rw);
    REQUIRE(pthread_create(&thread, NULL, takes_it, NULL) == 0);
    usleep(10000);
    qspin_mutex_unlock(&mutex);
    REQUIRE(pthread_join(thread, NULL) == 0);
    REQUIRE(qspin_mutex_lock_for(&mutex, 0) == 0);
    qspin_mutex_unlock(&mutex);
    REQUIRE(qspin_rwlock_rdlock_for(&rw, 0) == 0);
    REQUIRE(qspin_rwlock_tryrdlock(&rw) == 0);
    REQUIRE(qspin_rwlock_trywrlock(&rw) == EBUSY);
    REQUIRE(qspin_rwlock_destroy(&rw) == EBUSY);
    qspin_rwlock_unlock(&rw);
    qspin_rwlock_rdunlock(&rw);
    REQUIRE(qspin_rwlock_wrlock_for(&rw, MILLISECOND) == 0);
    qspin_rwlock_unlock(&rw);
    REQUIRE(qspin_rwlock_destroy(&rw) == 0);
}

/* Two pass a number to and fro; a third waits for the end with all of them. */
enum { TURNS = 500, PLAYERS = 3 };
static qspin_cond_t turned = QSPIN_COND_INIT;
static int turn;

static void *plays(void *number) {
    int own = *(int *)number;
    qspin_mutex_lock(&mutex);
    for (int i = 0; i < TURNS; i++) {
        while (turn % PLAYERS != own) {
            if (i % 2 == 0) {
                qspin_cond_wait(&turned, &mutex);
            } else {
                (void)qspin_cond_wait_for(&turned, &mutex, 100 * MILLISECOND);
            }
        }
        turn++;
        qspin_cond_broadcast(&turned);
    }
    qspin_mutex_unlock(&mutex);
    return NULL;
}

static void conditions(void) {
    qspin_cond_t made, zeros = QSPIN_COND_INIT;
    pthread_t threads[PLAYERS];
    int numbers[PLAYERS];
    uint64_t before;
    memset(&made, 0xff, sizeof made);
    qspin_cond_init(&made);
    REQUIRE(memcmp(&made, &zeros, sizeof made) == 0);
    qspin_cond_signal(&made);
    qspin_cond_broadcast(&made);
    for (int i = 0; i < PLAYERS; i++) {
        numbers[i] = i;
        REQUIRE(pthread_create(&threads[i], NULL, plays, &numbers[i]) == 0);
    }
    for (int i = 0; i < PLAYERS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    REQUIRE(turn == TURNS * PLAYERS);
    qspin_mutex_lock(&mutex);
    before = now();
    while (qspin_cond_wait_for(&made, &mutex, 20 * MILLISECOND) != ETIMEDOUT) {
    }
    REQUIRE(now() - before >= 20 * MILLISECOND);
    REQUIRE(qspin_mutex_is_locked(&mutex));
    qspin_mutex_unlock(&mutex);
}

/* The child may use what is free, and what its own thread holds. */
static void children(void) {
    int status;
    pid_t child;
    qspin_mutex_lock(&mutex);
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        REQUIRE(qspin_mutex_trylock(&mutex) == EBUSY);
        qspin_mutex_unlock(&mutex);
        times();
        turn = 0;
        conditions();
        _exit(9);
    }
    qspin_mutex_unlock(&mutex);
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

int main(void) {
    alarm(1200);
    times();
    conditions();
    children();
    puts("the defaults do what the header says");
    return 0;
}
