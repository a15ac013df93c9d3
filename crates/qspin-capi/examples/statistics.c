/* What the locks of this process had to do: counted by the library, shown by the program. */
#include <inttypes.h>
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>
#include <stdlib.h>

static qspin_native_t lock = QSPIN_NATIVE_INIT;

static void *wait_for_it(void *unused) {
    (void)unused;
    qspin_native_lock(&lock);
    qspin_native_unlock(&lock);
    return NULL;
}

int main(void) {
    qspin_statistics_start();

    pthread_t thread;
    qspin_native_lock(&lock);
    if (pthread_create(&thread, NULL, wait_for_it, NULL) != 0) {
        fputs("statistics: a thread could not be made\n", stderr);
        return 1;
    }
    uint64_t waits = 0;
    while (waits == 0) { /* until the other one is seen to wait */
        if (qspin_statistics_get("lock_slowpath", &waits) != 0) {
            return 1;
        }
    }
    qspin_native_unlock(&lock);
    pthread_join(thread, NULL);

    size_t counters = qspin_statistics_count();
    uint64_t *counts = calloc(counters, sizeof *counts);
    if (counts == NULL) {
        return 1;
    }
    qspin_statistics_snapshot(counts, counters);
    for (size_t i = 0; i < counters; i++) {
        if (counts[i] != 0) {
            printf("%s %" PRIu64 "\n", qspin_statistics_name(i), counts[i]);
        }
    }
    free(counts);
    return 0;
}
