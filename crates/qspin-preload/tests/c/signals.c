/* Signals of condition variables that meet a wait which ends in another way. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "step.h"

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t *cond;
static volatile int waiting, woken;

static void unlock(void *unused) { (void)unused; pthread_mutex_unlock(&mutex); }

static void *waits(void *unused) {
    (void)unused;
    /* So that it does not run as soon as it could. */
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    waiting++;
    pthread_cond_wait(cond, &mutex);
    woken++;
    pthread_cleanup_pop(1);
    return NULL;
}

static int now(volatile int *of) {
    pthread_mutex_lock(&mutex);
    int value = *of;
    pthread_mutex_unlock(&mutex);
    return value;
}

/* The older of two waiters is asked to end and signalled; then all are woken, and the condition variable is gone. */
static void gone(void) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        cond = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_cond_init(cond, NULL);
        waiting = 0;
        for (int i = 0; i < 2; i++) {
            pthread_create(&threads[i], NULL, waits, NULL);
            while (now(&waiting) <= i) usleep(200);
        }
        usleep(1000);
        pthread_cond_t *old = cond;
        pthread_cancel(threads[0]);
        pthread_cond_signal(old);
        pthread_cond_broadcast(old);
        pthread_cond_destroy(old);
        munmap(old, 4096);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    }
    sched_setaffinity(0, sizeof all, &all);
    printf("gone: nobody looked\n");
}

/* A mutex that a wait will take again is in use. */
static void lent(void) {
    pthread_t thread;
    waiting = 0;
    pthread_create(&thread, NULL, waits, NULL);
    while (!now(&waiting)) usleep(200);
    usleep(500);
    printf("lent: %d\n", pthread_mutex_destroy(&mutex));
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(cond);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    printf("back: %d\n", pthread_mutex_destroy(&mutex));
    mutex = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}

/* Of two waiters the older one is asked to end and signalled at once: the other is woken in its place. */
static void handed_on(void) {
    int lost = 0;
    for (int round = 0; round < 50; round++) {
        pthread_t threads[2];
        waiting = woken = 0;
        for (int i = 0; i < 2; i++) {
            pthread_create(&threads[i], NULL, waits, NULL);
            while (now(&waiting) <= i) usleep(200);
        }
        usleep(500);
        pthread_cancel(threads[0]);
        pthread_cond_signal(cond);
        pthread_join(threads[0], NULL);
        for (int i = 0; i < 2000 && !now(&woken); i++) usleep(500);
        lost += !now(&woken);
        pthread_cond_broadcast(cond);
        pthread_join(threads[1], NULL);
    }
    printf("handed on: %d lost\n", lost);
}

/* A wait with a mutex that the thread does not hold is refused. While it is, at each of its instructions in
   turn, another thread begins to wait, and is signalled: that one is woken. */
static volatile int turn, steps, at, tried, done;

static void *waits_again(void *unused) {
    (void)unused;
    for (;;) {
        while (!turn) usleep(20);
        if (turn < 0) return NULL;
        pthread_mutex_lock(&mutex);
        turn = 0;
        waiting = 1;
        pthread_cond_wait(cond, &mutex);
        waiting = 0;
        pthread_mutex_unlock(&mutex);
        done++;
    }
}

static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (steps < 0 || ++steps > at) {
        GO_ON(context);
        if (steps < 0) return;
        steps = -1;
        turn = 1;
        /* It may need what the interrupted wait has just locked. */
        for (int i = 0; i < 10 && !waiting; i++) usleep(500);
        for (int i = 0; i < 4 && waiting && pthread_mutex_trylock(&mutex) != 0; i++)
            if (i == 3) return; else usleep(500);
        if (!waiting) return;
        pthread_mutex_unlock(&mutex);
        tried = 1;
        pthread_cond_signal(cond);
    }
}

static void refused(void) {
    int lost = 0, wrong = 0, hits = 0;
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    sigaction(SIGTRAP, &action, NULL);
    pthread_create(&thread, NULL, waits_again, NULL);
    for (at = 1; at < 400; at += 3) {
        int before = done;
        steps = tried = waiting = 0;
        BEGIN_TO_STEP();
        int code = pthread_cond_wait(cond, &mutex);
        END_TO_STEP();
        wrong += code != EPERM;
        if (steps != -1) break; /* it was over before */
        if (tried) {
            hits++;
            for (int i = 0; i < 20000 && done == before; i++) usleep(100);
            lost += done == before;
        }
        /* Not tried, or lost: it goes on now. */
        for (int i = 0; done == before; i++) {
            usleep(100);
            pthread_mutex_lock(&mutex);
            pthread_cond_signal(cond);
            pthread_mutex_unlock(&mutex);
        }
    }
    turn = -1;
    pthread_join(thread, NULL);
    printf("refused: %d lost, %d wrong, %s\n", lost, wrong, hits > 10 ? "often" : "not often enough");
}

int main(int argc, char **argv) {
    static pthread_cond_t other = PTHREAD_COND_INITIALIZER;
    (void)argv;
    if (argc > 1) {
        /* The C library has a lock in the condition variable, which the handler would wait for. */
        cond = &other;
        refused();
        return 0;
    }
    gone();
    cond = &other;
    lent();
    handed_on();
    return 0;
}
