/* Children that no handler of `fork` knows of: by the system call, by `_Fork`, and from a signal handler that comes while its
   thread waits for a lock. The child uses what others waited for. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FORKS = 40 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t blocking = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int done, in_handler = -1, handled;

static void *contends(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&held);
        sched_yield();
        pthread_mutex_unlock(&held);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

static void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&other);
    while (!done) pthread_cond_wait(&cond, &other);
    pthread_mutex_unlock(&other);
    return NULL;
}

/* In the child, which has one thread. The forking thread held `held` and `rwlock`. */
static int child(void) {
    for (int i = 0; i < 100; i++) {
        if (pthread_mutex_unlock(&held) || pthread_mutex_lock(&held)) return 10;
        if (pthread_mutex_trylock(&held) != EBUSY) return 11;
    }
    if (pthread_rwlock_unlock(&rwlock)) return 12;
    if (pthread_rwlock_rdlock(&rwlock) || pthread_rwlock_unlock(&rwlock)) return 13;
    if (pthread_rwlock_wrlock(&rwlock) || pthread_rwlock_unlock(&rwlock)) return 14;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 1000000;
    if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
    pthread_cond_signal(&cond);
    int result = pthread_cond_timedwait(&cond, &held, &soon);
    if (result != ETIMEDOUT) return 15;
    if (pthread_mutex_timedlock(&held, &soon) != ETIMEDOUT) return 16;
    if (pthread_mutex_unlock(&held) || pthread_mutex_destroy(&held)) return 17;
    return 0;
}

static int ends_well(pid_t pid) {
    int status = -1;
    if (pid < 0) return 1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return status;
}

static pid_t by_the_system_call(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

static pid_t by_the_short_one(void) {
    extern pid_t _Fork(void) __attribute__((weak));
    return _Fork ? _Fork() : by_the_system_call();
}

static int forks(pid_t (*one)(void)) {
    int wrong = 0;
    for (int i = 0; i < FORKS; i++) {
        usleep(200);
        pthread_rwlock_wrlock(&rwlock);
        pthread_mutex_lock(&held);
        pid_t pid = one();
        if (pid == 0) {
            alarm(20);
            _exit(child());
        }
        pthread_mutex_unlock(&held);
        pthread_rwlock_unlock(&rwlock);
        int status = ends_well(pid);
        if (status) fprintf(stdout, "child: %x\n", status);
        wrong += status != 0;
    }
    return wrong;
}

/* The thread waits for `blocking`, which the child neither has nor will get. */
static void forks_in_handler(int number) {
    (void)number;
    int before = errno;
    pid_t pid = fork();
    if (pid == 0) {
        static pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        alarm(20);
        int result = 0;
        for (int i = 0; i < 100 && !result; i++) result = pthread_mutex_lock(&fresh) || pthread_mutex_unlock(&fresh);
        if (pthread_mutex_trylock(&blocking) != EBUSY) result = 2;
        pthread_cond_broadcast(&cond);
        _exit(result);
    }
    in_handler = ends_well(pid);
    errno = before;
    __atomic_store_n(&handled, 1, __ATOMIC_RELEASE);
}

static void *waits_for_blocking(void *unused) {
    (void)unused;
    pthread_mutex_lock(&blocking);
    pthread_mutex_unlock(&blocking);
    return NULL;
}

static int from_a_handler(void) {
    int wrong = 0;
    for (int i = 0; i < FORKS; i++) {
        pthread_t waiter;
        handled = 0;
        pthread_mutex_lock(&blocking);
        pthread_create(&waiter, NULL, waits_for_blocking, NULL);
        usleep(300);
        pthread_kill(waiter, SIGUSR1);
        while (!__atomic_load_n(&handled, __ATOMIC_ACQUIRE)) usleep(100);
        pthread_mutex_unlock(&blocking);
        pthread_join(waiter, NULL);
        wrong += in_handler != 0;
    }
    return wrong;
}

int main(void) {
    struct sigaction action = {.sa_handler = forks_in_handler};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t contenders[4], waiter;
    for (int i = 0; i < 4; i++) pthread_create(&contenders[i], NULL, contends, NULL);
    pthread_create(&waiter, NULL, waits, NULL);
    printf("system call: %d\n", forks(by_the_system_call));
    fflush(stdout);
    printf("_Fork: %d\n", forks(by_the_short_one));
    fflush(stdout);
    printf("handler: %d\n", from_a_handler());
    fflush(stdout);
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 4; i++) pthread_join(contenders[i], NULL);
    pthread_mutex_lock(&other);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&other);
    pthread_join(waiter, NULL);
    return 0;
}
