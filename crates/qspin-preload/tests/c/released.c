/* What has been released may be gone at once: its next owner may unmap it. Here each release is taken one
   instruction at a time; as soon as the lock can be had, it is had, and its page is closed until the release
   has returned. A thread that looks at it then is found out. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "step.h"

union object {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
};

static union object *object;
static int (*volatile attempt)(void);
static volatile int closed, stepping;
static pid_t releasing;

static int attempt_mutex(void) { return pthread_mutex_trylock(&object->mutex); }
static int attempt_write(void) { return pthread_rwlock_trywrlock(&object->rwlock); }

static void on_step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (closed || !stepping) {
        GO_ON(context);
    } else if (attempt() == 0) {
        closed = 1;
        mprotect(object, 4096, PROT_NONE);
    }
}

static void on_access(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    if (syscall(SYS_gettid) == releasing && closed) {
        static const char text[] = "touched after its release\n";
        if (write(1, text, sizeof text - 1)) _exit(1);
    }
    /* Others may use it: they are to have it next. */
    usleep(100);
}

static void step(int (*release)(void)) {
    stepping = 1;
    BEGIN_TO_STEP();
    release();
    stepping = 0;
    END_TO_STEP();
    mprotect(object, 4096, PROT_READ | PROT_WRITE);
}

static int release_mutex(void) { return pthread_mutex_unlock(&object->mutex); }
static int release_rwlock(void) { return pthread_rwlock_unlock(&object->rwlock); }

static volatile int begun;

static void *locks(void *unused) {
    (void)unused;
    begun = 1;
    pthread_mutex_lock(&object->mutex);
    pthread_mutex_unlock(&object->mutex);
    return NULL;
}
static void *reads(void *unused) {
    (void)unused;
    begun = 1;
    pthread_rwlock_rdlock(&object->rwlock);
    pthread_rwlock_unlock(&object->rwlock);
    return NULL;
}
static void *writes(void *unused) {
    (void)unused;
    begun = 1;
    pthread_rwlock_wrlock(&object->rwlock);
    pthread_rwlock_unlock(&object->rwlock);
    return NULL;
}
static void *gives_up(void *unused) {
    (void)unused;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    if ((soon.tv_nsec += 1000000) >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
    pthread_rwlock_timedrdlock(&object->rwlock, &soon);
    return NULL;
}

static void release(const char *what, int (*how)(void), int (*other)(void), void *(*waits)(void *)) {
    pthread_t thread;
    int stays = waits != gives_up;
    begun = closed = 0;
    attempt = other;
    if (waits) {
        pthread_create(&thread, NULL, waits, NULL);
        if (!stays) pthread_join(thread, NULL);
        for (int i = 0; stays && i < 20; i += begun) usleep(1000);
    }
    step(how);
    if (closed) how();
    if (waits && stays) pthread_join(thread, NULL);
    printf("%s: released\n", what);
    fflush(stdout);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    action.sa_sigaction = on_access;
    sigaction(SIGSEGV, &action, NULL);
    releasing = syscall(SYS_gettid);
    object = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pthread_mutex_init(&object->mutex, NULL);
    pthread_mutex_lock(&object->mutex);
    release("mutex", release_mutex, attempt_mutex, NULL);
    pthread_mutex_lock(&object->mutex);
    release("mutex, awaited", release_mutex, attempt_mutex, locks);
    pthread_mutex_destroy(&object->mutex);

    pthread_rwlock_init(&object->rwlock, NULL);
    pthread_rwlock_wrlock(&object->rwlock);
    release("rwlock", release_rwlock, attempt_write, NULL);
    pthread_rwlock_wrlock(&object->rwlock);
    release("rwlock, after a reader that has given up", release_rwlock, attempt_write, gives_up);
    pthread_rwlock_wrlock(&object->rwlock);
    release("rwlock, awaited by a reader", release_rwlock, attempt_write, reads);
    pthread_rwlock_rdlock(&object->rwlock);
    release("rwlock, awaited by a writer", release_rwlock, attempt_write, writes);
    return 0;
}
