/* Many threads at once: exclusion, no lost signal, no lost wake-up. Prints what must come out. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define MUST(call) do { int code_ = (call); if (code_) { \
    fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(code_)); exit(1); } } while (0)

static struct timespec in_ms(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += milliseconds % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) { time.tv_nsec -= 1000000000; time.tv_sec++; }
    return time;
}

static void run(void *(*body)(void *), int threads) {
    pthread_t all[64];
    for (long i = 0; i < threads; i++) MUST(pthread_create(&all[i], NULL, body, (void *)i));
    for (int i = 0; i < threads; i++) MUST(pthread_join(all[i], NULL));
}

/* A mutex of every kind, by every way to lock it. */
static pthread_mutex_t mutex;
static long count, rounds;
static int recursive;
static void *increments(void *number) {
    for (long i = 0; i < rounds; i++) {
        struct timespec late = in_ms(CLOCK_REALTIME, 60000), late_too = in_ms(CLOCK_MONOTONIC, 60000);
        switch ((i + (long)number) % 5) {
        case 0: while (pthread_mutex_trylock(&mutex)) sched_yield(); break;
        case 1: MUST(pthread_mutex_timedlock(&mutex, &late)); break;
        case 2: MUST(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &late_too)); break;
        default: MUST(pthread_mutex_lock(&mutex));
        }
        if (recursive) MUST(pthread_mutex_lock(&mutex));
        long seen = count;
        if (i % 64 == 0) sched_yield();
        count = seen + 1;
        if (recursive) MUST(pthread_mutex_unlock(&mutex));
        MUST(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void mutexes(void) {
    static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
        PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
    for (int left = 0; left < 2; left++)
        for (int t = 0; t < 4; t++) {
            pthread_mutexattr_t attributes;
            MUST(pthread_mutexattr_init(&attributes));
            MUST(pthread_mutexattr_settype(&attributes, types[t]));
            if (left) MUST(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
            MUST(pthread_mutex_init(&mutex, &attributes));
            recursive = types[t] == PTHREAD_MUTEX_RECURSIVE;
            count = 0;
            rounds = 2000;
            run(increments, THREADS);
            printf("mutex %d%s: %ld\n", t, left ? " robust" : "", count);
            MUST(pthread_mutex_destroy(&mutex));
        }
}

/* A queue of bounded length between producers and consumers: a lost signal is a hang. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long items, taken, put;
#define ITEMS 20000
static void *produces(void *unused) {
    (void)unused;
    for (;;) {
        MUST(pthread_mutex_lock(&lock));
        if (put == ITEMS) { pthread_mutex_unlock(&lock); return NULL; }
        while (items == 4 && put < ITEMS) MUST(pthread_cond_wait(&not_full, &lock));
        if (put < ITEMS) { put++; items++; }
        int last = put == ITEMS;
        MUST(pthread_mutex_unlock(&lock));
        /* Outside, as POSIX allows. */
        MUST(pthread_cond_signal(&not_empty));
        if (last) { MUST(pthread_cond_broadcast(&not_full)); MUST(pthread_cond_broadcast(&not_empty)); }
    }
}
static void *consumes(void *number) {
    for (;;) {
        MUST(pthread_mutex_lock(&lock));
        while (items == 0 && taken < ITEMS) {
            struct timespec soon = in_ms((long)number % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, 30000);
            int code = (long)number % 3 == 0 ? pthread_cond_wait(&not_empty, &lock)
                : (long)number % 2 ? pthread_cond_clockwait(&not_empty, &lock, CLOCK_MONOTONIC, &soon)
                : pthread_cond_timedwait(&not_empty, &lock, &soon);
            MUST(code);
        }
        if (items > 0) { items--; taken++; }
        int done = taken == ITEMS && items == 0;
        MUST(pthread_mutex_unlock(&lock));
        MUST(pthread_cond_signal(&not_full));
        if (done) { MUST(pthread_cond_broadcast(&not_empty)); return NULL; }
    }
}
static void *queue_body(void *number) {
    return (long)number % 2 ? produces(number) : consumes((void *)((long)number / 2));
}

/* A barrier of one condition variable, destroyed and unmapped as soon as the broadcast is out. */
struct once { pthread_mutex_t mutex; pthread_cond_t cond; int waiting, open, out; };
static struct once *once;
static void *waits_once(void *unused) {
    (void)unused;
    struct once *mine = once;
    MUST(pthread_mutex_lock(&mine->mutex));
    mine->waiting++;
    while (!mine->open) MUST(pthread_cond_wait(&mine->cond, &mine->mutex));
    mine->out++;
    MUST(pthread_mutex_unlock(&mine->mutex));
    return NULL;
}
static void storms(void) {
    long out = 0;
    for (int i = 0; i < 100; i++) {
        once = calloc(1, sizeof *once);
        MUST(pthread_mutex_init(&once->mutex, NULL));
        MUST(pthread_cond_init(&once->cond, NULL));
        pthread_t all[THREADS];
        for (int t = 0; t < THREADS; t++) MUST(pthread_create(&all[t], NULL, waits_once, NULL));
        for (int waiting = 0; waiting < THREADS; sched_yield()) {
            MUST(pthread_mutex_lock(&once->mutex));
            waiting = once->waiting;
            MUST(pthread_mutex_unlock(&once->mutex));
        }
        MUST(pthread_mutex_lock(&once->mutex));
        once->open = 1;
        MUST(pthread_cond_broadcast(&once->cond));
        MUST(pthread_mutex_unlock(&once->mutex));
        MUST(pthread_cond_destroy(&once->cond));
        memset(&once->cond, 0xa5, sizeof once->cond);
        for (int t = 0; t < THREADS; t++) MUST(pthread_join(all[t], NULL));
        out += once->out;
        MUST(pthread_mutex_destroy(&once->mutex));
        free(once);
    }
    printf("storms: %ld\n", out);
}

/* Waits that end by their deadline and by a signal at the same time. */
static pthread_mutex_t race = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t raced = PTHREAD_COND_INITIALIZER;
static long tokens, got;
static int race_over;
static void *races(void *number) {
    if (number == 0) {
        for (int i = 0; i < 2000; i++) {
            MUST(pthread_mutex_lock(&race));
            tokens++;
            MUST(pthread_mutex_unlock(&race));
            MUST(pthread_cond_signal(&raced));
            if (i % 8 == 0) usleep(50);
        }
        MUST(pthread_mutex_lock(&race));
        race_over = 1;
        MUST(pthread_mutex_unlock(&race));
        MUST(pthread_cond_broadcast(&raced));
        return NULL;
    }
    MUST(pthread_mutex_lock(&race));
    while (!race_over || tokens > 0) {
        if (tokens > 0) { tokens--; got++; continue; }
        struct timespec now = in_ms(CLOCK_REALTIME, 0);
        now.tv_nsec += 40000 * (long)number;
        if (now.tv_nsec >= 1000000000) { now.tv_nsec -= 1000000000; now.tv_sec++; }
        int code = pthread_cond_timedwait(&raced, &race, &now);
        if (code && code != ETIMEDOUT) { fprintf(stderr, "timedwait: %s\n", strerror(code)); exit(1); }
    }
    MUST(pthread_mutex_unlock(&race));
    return NULL;
}

/* Readers and writers, some of which give up. */
static pthread_rwlock_t rwlock;
static long one, two, torn, writes;
static void *reads_and_writes(void *number) {
    for (int i = 0; i < 3000; i++) {
        struct timespec soon = in_ms(CLOCK_REALTIME, 0), late = in_ms(CLOCK_MONOTONIC, 60000);
        soon.tv_nsec += 20000;
        if (soon.tv_nsec >= 1000000000) { soon.tv_nsec -= 1000000000; soon.tv_sec++; }
        int code;
        if ((i + (long)number) % 4 == 0) {
            code = i % 3 == 0 ? pthread_rwlock_timedwrlock(&rwlock, &soon)
                : i % 3 == 1 ? pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &late)
                : pthread_rwlock_wrlock(&rwlock);
            if (code == ETIMEDOUT) continue;
            MUST(code);
            one++;
            if (i % 16 == 0) sched_yield();
            two++;
            __atomic_fetch_add(&writes, 1, __ATOMIC_RELAXED);
        } else {
            code = i % 3 == 0 ? pthread_rwlock_timedrdlock(&rwlock, &soon) : pthread_rwlock_rdlock(&rwlock);
            if (code == ETIMEDOUT) continue;
            MUST(code);
            if (one != two) __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
        }
        MUST(pthread_rwlock_unlock(&rwlock));
    }
    return NULL;
}

static pthread_spinlock_t spin;
static void *spins(void *unused) {
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        if (i % 3) MUST(pthread_spin_lock(&spin)); else while (pthread_spin_trylock(&spin)) sched_yield();
        count++;
        MUST(pthread_spin_unlock(&spin));
    }
    return NULL;
}

static mtx_t c11;
static cnd_t turned;
static int turn;
static int takes_turns(void *number) {
    for (int i = 0; i < 500; i++) {
        mtx_lock(&c11);
        while (turn != (int)(long)number) cnd_wait(&turned, &c11);
        turn = (turn + 1) % 4;
        count++;
        cnd_broadcast(&turned);
        mtx_unlock(&c11);
    }
    return 0;
}

int main(void) {
    mutexes();
    run(queue_body, THREADS);
    printf("queue: %ld %ld %ld\n", put, taken, items);
    storms();
    run(races, 4);
    printf("races: %ld %ld\n", got, tokens);
    static const int kinds[] = { PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP };
    for (int k = 0; k < 2; k++) {
        pthread_rwlockattr_t attributes;
        MUST(pthread_rwlockattr_init(&attributes));
        MUST(pthread_rwlockattr_setkind_np(&attributes, kinds[k]));
        MUST(pthread_rwlock_init(&rwlock, &attributes));
        writes = one = two = 0;
        run(reads_and_writes, THREADS);
        printf("rwlock: %ld torn, %ld\n", torn, writes - two);
        MUST(pthread_rwlock_destroy(&rwlock));
    }
    MUST(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    count = 0;
    run(spins, 4);
    printf("spin: %ld\n", count);
    mtx_init(&c11, mtx_plain);
    cnd_init(&turned);
    count = 0;
    thrd_t four[4];
    for (long i = 0; i < 4; i++) thrd_create(&four[i], takes_turns, (void *)i);
    for (int i = 0; i < 4; i++) thrd_join(four[i], NULL);
    printf("c11: %ld\n", count);
    return 0;
}
