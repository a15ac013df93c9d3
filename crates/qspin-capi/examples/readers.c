/* A table that many read and few change. */
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>

enum { READERS = 3, TIMES = 300 };

static qspin_queued_rw_t lock = QSPIN_QUEUED_RW_INIT;
static int pair[2]; /* both are equal, for every owner of the lock */

static void *read_it(void *torn) {
    for (int i = 0; i < TIMES; i++) {
        qspin_queued_rw_rdlock(&lock);
        if (pair[0] != pair[1]) {
            *(int *)torn = 1;
        }
        qspin_queued_rw_rdunlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[READERS];
    int torn[READERS] = { 0 };
    for (int i = 0; i < READERS; i++) {
        if (pthread_create(&threads[i], NULL, read_it, &torn[i]) != 0) {
            fputs("readers: a thread could not be made\n", stderr);
            return 1;
        }
    }
    for (int i = 0; i < TIMES; i++) {
        qspin_queued_rw_wrlock(&lock);
        pair[0]++;
        pair[1]++;
        qspin_queued_rw_wrunlock(&lock);
    }
    int failed = 0;
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        failed |= torn[i];
    }
    printf("%d readers saw %s\n", READERS, failed ? "a pair that was torn" : "whole pairs only");
    return failed;
}
