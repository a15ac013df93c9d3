/* Cancellation in a wait: the mutex is held when the handlers run, no signal is lost, nothing stays behind. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond;
static int waiting, how, signalled;
static const char *seen;

static void handler(void *unused) {
    (void)unused;
    /* Only who holds an errorcheck mutex may unlock it. */
    int code = pthread_mutex_unlock(&mutex);
    seen = code ? strerror(code) : "held";
}

static void *waits(void *unused) {
    (void)unused;
    struct timespec late;
    clock_gettime(how == 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &late);
    late.tv_sec += 60;
    pthread_mutex_lock(&mutex);
    waiting++;
    pthread_cleanup_push(handler, NULL);
    while (!signalled) {
        if (how == 0) pthread_cond_wait(&cond, &mutex);
        if (how == 1) pthread_cond_timedwait(&cond, &mutex, &late);
        if (how == 2) pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &late);
    }
    signalled--;
    pthread_cleanup_pop(0);
    pthread_mutex_unlock(&mutex);
    return "returned";
}

static void await_waiters(int many) {
    for (int now = 0; now < many; usleep(200)) {
        pthread_mutex_lock(&mutex);
        now = waiting;
        pthread_mutex_unlock(&mutex);
    }
    usleep(1000);
}

static void *asked_before(void *unused) {
    (void)unused;
    pthread_cancel(pthread_self());
    pthread_mutex_lock(&mutex); /* no point of cancellation */
    pthread_mutex_unlock(&mutex);
    return waits(NULL);
}

static volatile sig_atomic_t handled;
static void on_signal(int signal) { (void)signal; handled++; }

int main(void) {
    for (int shared = 0; shared < 2; shared++) {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        if (shared) pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        for (how = 0; how < 3; how++) {
            pthread_cond_init(&cond, &attributes);
            void *result;
            pthread_t thread, other;
            waiting = signalled = 0;
            seen = "nothing";
            pthread_create(&thread, NULL, waits, NULL);
            await_waiters(1);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            printf("%d %d: %s, %s\n", shared, how, seen, result == PTHREAD_CANCELED ? "cancelled" : "returned");

            seen = "nothing";
            pthread_create(&thread, NULL, asked_before, NULL);
            pthread_join(thread, &result);
            printf("%d %d before: %s, %s\n", shared, how, seen, result == PTHREAD_CANCELED ? "cancelled" : "returned");

            /* A signal and a cancellation at once: of two who wait, the other gets the signal. */
            for (int i = 0; i < 20; i++) {
                waiting = signalled = 0;
                pthread_create(&thread, NULL, waits, NULL);
                pthread_create(&other, NULL, waits, NULL);
                await_waiters(2);
                pthread_cancel(thread);
                pthread_mutex_lock(&mutex);
                signalled = 1;
                pthread_cond_signal(&cond);
                pthread_mutex_unlock(&mutex);
                pthread_join(thread, &result);
                if (result != PTHREAD_CANCELED) pthread_cancel(other);
                pthread_join(other, NULL);
            }
            /* A signal handler in a wait does not end it. */
            struct sigaction action = { .sa_handler = on_signal };
            sigaction(SIGUSR1, &action, NULL);
            waiting = signalled = 0;
            handled = 0;
            pthread_create(&thread, NULL, waits, NULL);
            await_waiters(1);
            for (int i = 0; i < 5; i++) { pthread_kill(thread, SIGUSR1); usleep(500); }
            pthread_mutex_lock(&mutex);
            signalled = 1;
            pthread_mutex_unlock(&mutex);
            pthread_cond_signal(&cond);
            pthread_join(thread, &result);
            printf("%d %d signals: %s, %s\n", shared, how, (char *)result, handled > 0 ? "handled" : "not handled");
            printf("%d %d destroy: %d\n", shared, how, pthread_cond_destroy(&cond));
        }
    }
    return 0;
}
