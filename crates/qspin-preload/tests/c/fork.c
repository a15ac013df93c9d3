/* Forks while others wait: in the child a mutex that was held is one that can be released and taken again. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static int turn, done;

static void prepare(void) { pthread_mutex_lock(&held); pthread_rwlock_wrlock(&rwlock); }
static void after(void) { pthread_rwlock_unlock(&rwlock); pthread_mutex_unlock(&held); }

static void *contends(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&held);
        sched_yield();
        pthread_mutex_unlock(&held);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

static void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&other);
    while (!turn) pthread_cond_wait(&cond, &other);
    pthread_mutex_unlock(&other);
    return NULL;
}

static void *counts(void *sum) {
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&held);
        if (i % 32 == 0) sched_yield();
        ++*(int *)sum;
        pthread_mutex_unlock(&held);
    }
    return NULL;
}

/* The child has threads of its own, and uses everything that threads of the parent waited for. */
static int child(int depth) {
    pthread_t threads[4];
    int sum = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, counts, &sum);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    if (sum != 2000) return 10;
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_create(&threads[0], NULL, waits, NULL);
    usleep(1000);
    pthread_mutex_lock(&other);
    turn = 1;
    pthread_mutex_unlock(&other);
    pthread_cond_signal(&cond);
    pthread_join(threads[0], NULL);
    if (pthread_rwlock_tryrdlock(&rwlock)) return 11;
    if (pthread_rwlock_tryrdlock(&rwlock)) return 12;
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    if (pthread_mutex_trylock(&held)) return 13;
    if (pthread_mutex_destroy(&held) != EBUSY) return 14;
    pthread_mutex_unlock(&held);
    if (depth == 0) {
        pid_t pid = fork();
        int status;
        if (pid == 0) _exit(child(1));
        if (waitpid(pid, &status, 0) != pid || status) return 15;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) { /* what `vfork` and `execv` started */
        int sum = 0;
        counts(&sum);
        printf("%s: %d\n", argv[1], sum);
        return 0;
    }
    pthread_atfork(prepare, after, after);
    pthread_t contenders[4], waiter;
    for (int i = 0; i < 4; i++) pthread_create(&contenders[i], NULL, contends, NULL);
    pthread_create(&waiter, NULL, waits, NULL);
    pthread_mutex_lock(&errorcheck);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            /* The C library: the child's thread is not the parent's, for who knows the owner. */
            if (pthread_mutex_unlock(&errorcheck) != EPERM) _exit(16);
            _exit(child(0));
        }
        int status = -1;
        waitpid(pid, &status, 0);
        if (status) { printf("child %d: %x\n", i, status); return 1; }
    }
    fflush(stdout);
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/proc/self/exe", argv[0], "executed", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    printf("vfork: %d\n", status);
    printf("popen:");
    fflush(stdout);
    printf(" %d\n", system("true"));
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 4; i++) pthread_join(contenders[i], NULL);
    pthread_mutex_lock(&other);
    turn = 1;
    pthread_mutex_unlock(&other);
    pthread_cond_broadcast(&cond);
    pthread_join(waiter, NULL);
    printf("unlock: %d\n", pthread_mutex_unlock(&errorcheck));
    return 0;
}
