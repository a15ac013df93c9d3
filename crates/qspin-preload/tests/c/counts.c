/* Takes locks so and so often, and says which. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER, tried = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void takes(pthread_mutex_t *mutex, int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(mutex);
        if (i % 64 == 0) sched_yield();
        pthread_mutex_unlock(mutex);
    }
}

static void *thread(void *unused) {
    (void)unused;
    takes(&contended, 20011);
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
    printf("%p %d\n%p %d\n%p %d\n%p %d\n", (void *)&recursive, 333, (void *)&contended, 4 * 20011, (void *)&tried, 5000,
           (void *)&destroyed, 777);
    fflush(stdout);
    _exit(0);
}
