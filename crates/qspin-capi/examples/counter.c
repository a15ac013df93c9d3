/* Threads that count together, under a lock that is initialised by the compiler. */
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>

enum { THREADS = 4, TIMES = 1000 };

static struct {
    qspin_paravirt_t lock;
    long value;
} counter = { QSPIN_PARAVIRT_INIT, 0 };

static void *count(void *unused) {
    (void)unused;
    for (int i = 0; i < TIMES; i++) {
        qspin_paravirt_lock(&counter.lock);
        counter.value++;
        qspin_paravirt_unlock(&counter.lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, count, NULL) != 0) {
            fputs("counter: a thread could not be made\n", stderr);
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d threads counted to %ld\n", THREADS, counter.value);
    return counter.value == (long)THREADS * TIMES ? 0 : 1;
}
