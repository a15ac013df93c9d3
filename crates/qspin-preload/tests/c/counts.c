/* Takes locks so and so often, and says which. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER, tried = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

static void takes(pthread_mutex_t *mutex, int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(mutex);
        if (i % 64 == 0) sched_yield();
        pthread_mutex_unlock(mutex);
    }
}

/* Mostly reads; every fourth is tried first. */
static void shares(pthread_rwlock_t *lock, int times) {
    for (int i = 0; i < times; i++) {
        int writes = i % 16 == 0;
        if (i % 4 != 0 || (writes ? pthread_rwlock_trywrlock : pthread_rwlock_tryrdlock)(lock) != 0)
            (writes ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(lock);
        if (i % 512 == 0) sched_yield();
        pthread_rwlock_unlock(lock);
    }
}

static void *thread(void *unused) {
    (void)unused;
    takes(&contended, 20011);
    shares(&shared, 20011);
    return NULL;
}

int main(void) {
    /* It has this memory, and ends. */
    if (vfork() == 0) _exit(0);
    takes(&recursive, 333);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 5000; i++)
        if (!pthread_mutex_trylock(&tried)) pthread_mutex_unlock(&tried);
    static pthread_mutex_t destroyed;
    pthread_mutex_init(&destroyed, NULL);
    takes(&destroyed, 777);
    pthread_mutex_destroy(&destroyed);
    /* One that is forgotten: at the end nothing is there. */
    pthread_mutex_t *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    takes(gone, 77);
    munmap(gone, 4096);
    static pthread_rwlock_t renewed;
    for (int i = 0; i < 2; i++) {
        pthread_rwlock_init(&renewed, NULL);
        shares(&renewed, 777);
        pthread_rwlock_destroy(&renewed);
    }
    printf("%p %d\n%p %d\n%p %d\n%p %d\n", (void *)&recursive, 333, (void *)&contended, 4 * 20011, (void *)&tried, 5000,
           (void *)&destroyed, 777);
    printf("%p %d shared\n%p %d shared\n", (void *)&shared, 4 * 20011, (void *)&renewed, 2 * 777);
    fflush(stdout);
    _exit(0);
}
