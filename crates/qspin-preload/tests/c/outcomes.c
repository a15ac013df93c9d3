/* What each function returns, a line a call: run with and without the library, it must print the same. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const char *name_of(int code) {
    switch (code) {
    case 0: return "0";
    case EPERM: return "EPERM";
    case EBUSY: return "EBUSY";
    case EINVAL: return "EINVAL";
    case EDEADLK: return "EDEADLK";
    case EAGAIN: return "EAGAIN";
    case ETIMEDOUT: return "ETIMEDOUT";
    case EOWNERDEAD: return "EOWNERDEAD";
    case ENOTRECOVERABLE: return "ENOTRECOVERABLE";
    default: return strerror(code);
    }
}

static const char *about = "";
#define SAY(call) printf("%s: %s = %s\n", about, #call, name_of(call))

static struct timespec at(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds % 1000 * 1000000;
    time.tv_sec += milliseconds / 1000;
    while (time.tv_nsec >= 1000000000) { time.tv_nsec -= 1000000000; time.tv_sec++; }
    while (time.tv_nsec < 0) { time.tv_nsec += 1000000000; time.tv_sec--; }
    return time;
}

static struct timespec past, before_epoch = { -1, 0 }, negative = { 5, -1 }, many = { 5, 1000000000 };
static pthread_mutex_t *mutex;
static pthread_rwlock_t *rwlock;

/* What another thread finds at the mutex. */
static void *other_at_mutex(void *unused) {
    (void)unused;
    struct timespec soon = at(CLOCK_REALTIME, 4), soon_monotonic = at(CLOCK_MONOTONIC, 4);
    SAY(pthread_mutex_trylock(mutex));
    SAY(pthread_mutex_timedlock(mutex, &past));
    SAY(pthread_mutex_timedlock(mutex, &before_epoch));
    SAY(pthread_mutex_timedlock(mutex, &negative));
    SAY(pthread_mutex_timedlock(mutex, &many));
    SAY(pthread_mutex_timedlock(mutex, &soon));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &past));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &many));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon_monotonic));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &soon));
    SAY(pthread_mutex_clocklock(mutex, 12345, &soon));
    return NULL;
}

static void *other_unlocks(void *unused) {
    (void)unused;
    SAY(pthread_mutex_unlock(mutex));
    return NULL;
}

static void in_thread(void *(*run)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
}

static void try_mutex(const char *what, pthread_mutex_t *which, int type) {
    about = what;
    mutex = which;
    struct timespec soon = at(CLOCK_REALTIME, 4);
    int knows_owner = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
    if (knows_owner) SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_lock(mutex));
    SAY(pthread_mutex_trylock(mutex));
    if (type == PTHREAD_MUTEX_RECURSIVE) SAY(pthread_mutex_unlock(mutex));
    if (type != PTHREAD_MUTEX_RECURSIVE) SAY(pthread_mutex_timedlock(mutex, &past));
    if (knows_owner) {
        SAY(pthread_mutex_lock(mutex));
        SAY(pthread_mutex_timedlock(mutex, &many));
        SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &past));
        SAY(pthread_mutex_clocklock(mutex, 77, &past));
        in_thread(other_unlocks);
    }
    in_thread(other_at_mutex);
    SAY(pthread_mutex_destroy(mutex));
    if (type == PTHREAD_MUTEX_RECURSIVE)
        for (int i = 0; i < 3; i++) SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_unlock(mutex));
    if (knows_owner) SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_timedlock(mutex, &many));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_timedlock(mutex, &soon));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &negative));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_clocklock(mutex, 99, &soon));
    SAY(pthread_mutex_trylock(mutex));
    SAY(pthread_mutex_unlock(mutex));
    SAY(pthread_mutex_destroy(mutex));
    SAY(pthread_mutex_lock(mutex));
    SAY(pthread_mutex_init(mutex, NULL));
    SAY(pthread_mutex_lock(mutex));
    SAY(pthread_mutex_unlock(mutex));
}

static pthread_mutex_t static_normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t static_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static void *dies_with_it(void *which) {
    pthread_mutex_lock(which);
    return NULL;
}

static void mutexes(void) {
    try_mutex("static normal", &static_normal, PTHREAD_MUTEX_NORMAL);
    try_mutex("static recursive", &static_recursive, PTHREAD_MUTEX_RECURSIVE);
    try_mutex("static errorcheck", &static_errorcheck, PTHREAD_MUTEX_ERRORCHECK);
    try_mutex("static adaptive", &static_adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
        PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ADAPTIVE_NP };
    static const char *names[] = { "normal", "recursive", "errorcheck", "default", "adaptive" };
    static const char *extra[] = { "", " shared", " robust", " inheriting" };
    for (int e = 0; e < 4; e++)
        for (int t = 0; t < 5; t++) {
            pthread_mutexattr_t attributes;
            pthread_mutexattr_init(&attributes);
            pthread_mutexattr_settype(&attributes, types[t]);
            if (e == 1) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
            if (e == 2) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
            if (e == 3) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
            /* A clock that is no clock: what the C library says depends on the kind there. */
            pthread_mutex_t some;
            memset(&some, 0xff, sizeof some);
            static char text[64];
            snprintf(text, sizeof text, "%s%s", names[t], extra[e]);
            about = text;
            SAY(pthread_mutex_init(&some, &attributes));
            try_mutex(text, &some, types[t]);
        }
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_t thread;
    /* An emulator that has no list of robust mutexes leaves them locked. */
    void *list;
    size_t length;
    if (syscall(SYS_get_robust_list, 0, &list, &length) == 0) {
        pthread_mutex_t robust;
        pthread_mutex_init(&robust, &attributes);
        pthread_create(&thread, NULL, dies_with_it, &robust);
        pthread_join(thread, NULL);
        about = "robust, its owner dead";
        SAY(pthread_mutex_lock(&robust));
        SAY(pthread_mutex_consistent(&robust));
        SAY(pthread_mutex_unlock(&robust));
        SAY(pthread_mutex_lock(&robust));
        SAY(pthread_mutex_unlock(&robust));
    }
    pthread_mutex_t kept = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_create(&thread, NULL, dies_with_it, &kept);
    pthread_join(thread, NULL);
    about = "errorcheck, its owner dead";
    SAY(pthread_mutex_trylock(&kept));
    SAY(pthread_mutex_unlock(&kept));
    SAY(pthread_mutex_timedlock(&kept, &past));
    SAY(pthread_mutex_destroy(&kept));
}

static void condvars(void) {
    pthread_condattr_t monotonic, shared;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_condattr_init(&shared);
    pthread_condattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_t inherits;
    pthread_mutexattr_init(&inherits);
    pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
    static const char *names[] = { "static", "null", "monotonic", "shared" };
    static pthread_cond_t first = PTHREAD_COND_INITIALIZER;
    for (int c = 0; c < 4; c++)
        for (int m = 0; m < 4; m++) {
            pthread_cond_t other, *cond = c == 0 ? &first : &other;
            if (c == 1) pthread_cond_init(cond, NULL);
            if (c == 2) pthread_cond_init(cond, &monotonic);
            if (c == 3) pthread_cond_init(cond, &shared);
            pthread_mutex_t its = PTHREAD_MUTEX_INITIALIZER;
            if (m == 1) its = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
            if (m == 2) its = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
            if (m == 3) pthread_mutex_init(&its, &inherits);
            static char text[64];
            snprintf(text, sizeof text, "condvar %s, mutex %d", names[c], m);
            about = text;
            clockid_t clock = c == 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
            struct timespec soon = at(clock, 4), soon_monotonic = at(CLOCK_MONOTONIC, 4);
            SAY(pthread_cond_signal(cond));
            SAY(pthread_cond_broadcast(cond));
            if (m == 2) SAY(pthread_cond_wait(cond, &its));
            SAY(pthread_mutex_lock(&its));
            if (m == 1) SAY(pthread_mutex_lock(&its));
            SAY(pthread_cond_timedwait(cond, &its, &past));
            SAY(pthread_cond_timedwait(cond, &its, &before_epoch));
            SAY(pthread_cond_timedwait(cond, &its, &negative));
            SAY(pthread_cond_timedwait(cond, &its, &many));
            if (c != 3 || m == 3) SAY(pthread_cond_timedwait(cond, &its, &soon));
            SAY(pthread_cond_clockwait(cond, &its, CLOCK_MONOTONIC, &past));
            if (c != 3 || m == 3) SAY(pthread_cond_clockwait(cond, &its, CLOCK_MONOTONIC, &soon_monotonic));
            SAY(pthread_cond_clockwait(cond, &its, CLOCK_REALTIME, &past));
            SAY(pthread_cond_clockwait(cond, &its, CLOCK_REALTIME, &many));
            SAY(pthread_cond_clockwait(cond, &its, CLOCK_THREAD_CPUTIME_ID, &past));
            mutex = &its;
            in_thread(other_at_mutex);
            if (m == 1) SAY(pthread_mutex_unlock(&its));
            SAY(pthread_mutex_unlock(&its));
            SAY(pthread_mutex_destroy(&its));
            SAY(pthread_cond_destroy(cond));
        }
}

static void *other_at_rwlock(void *unused) {
    (void)unused;
    struct timespec soon = at(CLOCK_REALTIME, 4), soon_monotonic = at(CLOCK_MONOTONIC, 4);
    int code = pthread_rwlock_tryrdlock(rwlock);
    printf("%s: tryrdlock = %s\n", about, name_of(code));
    if (code == 0) SAY(pthread_rwlock_unlock(rwlock));
    SAY(pthread_rwlock_trywrlock(rwlock));
    SAY(pthread_rwlock_timedwrlock(rwlock, &past));
    SAY(pthread_rwlock_timedwrlock(rwlock, &before_epoch));
    SAY(pthread_rwlock_timedwrlock(rwlock, &many));
    SAY(pthread_rwlock_timedrdlock(rwlock, &negative));
    SAY(pthread_rwlock_timedwrlock(rwlock, &soon));
    SAY(pthread_rwlock_clockwrlock(rwlock, CLOCK_MONOTONIC, &soon_monotonic));
    SAY(pthread_rwlock_clockrdlock(rwlock, CLOCK_PROCESS_CPUTIME_ID, &soon));
    code = pthread_rwlock_timedrdlock(rwlock, &past);
    printf("%s: timedrdlock = %s\n", about, name_of(code));
    if (code == 0) SAY(pthread_rwlock_unlock(rwlock));
    code = pthread_rwlock_clockrdlock(rwlock, CLOCK_MONOTONIC, &soon_monotonic);
    printf("%s: clockrdlock = %s\n", about, name_of(code));
    if (code == 0) SAY(pthread_rwlock_unlock(rwlock));
    return NULL;
}

static void rwlocks(void) {
    static pthread_rwlock_t first = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    pthread_rwlockattr_t shared, prefers;
    pthread_rwlockattr_init(&shared);
    pthread_rwlockattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_init(&prefers);
    pthread_rwlockattr_setkind_np(&prefers, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    static const char *names[] = { "static", "writers first", "null", "shared", "prefers" };
    for (int k = 0; k < 5; k++) {
        pthread_rwlock_t other;
        rwlock = k == 0 ? &first : k == 1 ? &writers : &other;
        if (k == 2) pthread_rwlock_init(rwlock, NULL);
        if (k == 3) pthread_rwlock_init(rwlock, &shared);
        if (k == 4) pthread_rwlock_init(rwlock, &prefers);
        static char text[64];
        snprintf(text, sizeof text, "rwlock %s", names[k]);
        about = text;
        SAY(pthread_rwlock_rdlock(rwlock));
        SAY(pthread_rwlock_rdlock(rwlock));
        SAY(pthread_rwlock_tryrdlock(rwlock));
        SAY(pthread_rwlock_trywrlock(rwlock));
        in_thread(other_at_rwlock);
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_wrlock(rwlock));
        SAY(pthread_rwlock_wrlock(rwlock));
        SAY(pthread_rwlock_rdlock(rwlock));
        SAY(pthread_rwlock_tryrdlock(rwlock));
        SAY(pthread_rwlock_trywrlock(rwlock));
        SAY(pthread_rwlock_timedrdlock(rwlock, &past));
        SAY(pthread_rwlock_timedwrlock(rwlock, &past));
        in_thread(other_at_rwlock);
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_timedwrlock(rwlock, &past));
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_timedrdlock(rwlock, &many));
        SAY(pthread_rwlock_trywrlock(rwlock));
        SAY(pthread_rwlock_unlock(rwlock));
        SAY(pthread_rwlock_destroy(rwlock));
    }
}

static void spinlocks(void) {
    about = "spin";
    for (int shared = 0; shared < 2; shared++) {
        pthread_spinlock_t lock;
        memset((void *)&lock, 0x55, sizeof lock);
        SAY(pthread_spin_init(&lock, shared));
        SAY(pthread_spin_trylock(&lock));
        SAY(pthread_spin_trylock(&lock));
        SAY(pthread_spin_unlock(&lock));
        SAY(pthread_spin_lock(&lock));
        SAY(pthread_spin_trylock(&lock));
        SAY(pthread_spin_unlock(&lock));
        SAY(pthread_spin_destroy(&lock));
    }
}

static mtx_t c11_mutex;
static int other_at_c11(void *unused) {
    (void)unused;
    printf("c11: %d", mtx_trylock(&c11_mutex));
    printf(" %d", mtx_timedlock(&c11_mutex, &past));
    printf(" %d\n", mtx_timedlock(&c11_mutex, &many));
    return 7;
}

static void c11(void) {
    for (int kind = 0; kind < 12; kind++) {
        int code = mtx_init(&c11_mutex, kind);
        printf("c11: mtx_init %d = %d\n", kind, code);
        if (code != thrd_success) continue;
        printf("c11: %d", mtx_lock(&c11_mutex));
        printf(" %d", mtx_trylock(&c11_mutex));
        printf(" %d\n", mtx_timedlock(&c11_mutex, &past));
        thrd_t thread;
        int result;
        thrd_create(&thread, other_at_c11, NULL);
        thrd_join(thread, &result);
        cnd_t cond;
        printf("c11: %d", cnd_init(&cond));
        printf(" %d", cnd_signal(&cond));
        printf(" %d", cnd_broadcast(&cond));
        printf(" %d", cnd_timedwait(&cond, &c11_mutex, &past));
        printf(" %d", cnd_timedwait(&cond, &c11_mutex, &many));
        cnd_destroy(&cond);
        for (int i = 0; i < (kind & mtx_recursive ? 3 : 1); i++) printf(" %d", mtx_unlock(&c11_mutex));
        printf("\n");
        mtx_destroy(&c11_mutex);
    }
}

int main(void) {
    past = at(CLOCK_REALTIME, -1000);
    struct timespec monotonic = at(CLOCK_MONOTONIC, -1);
    if (monotonic.tv_sec < past.tv_sec) past = monotonic;
    errno = 4242;
    mutexes();
    condvars();
    rwlocks();
    spinlocks();
    c11();
    return 0;
}
