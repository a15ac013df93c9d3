/* What an acquisition and a release of a lock without contention take: by the library's functions, and as
   QSPIN_INLINE has them. Without that both are the same. Argument: how often, 1000 if it is left out. */
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15 };

static long times = 1000;
static volatile long value;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

#define A_LOCK(name, NAME)                                                                         \
    static qspin_##name##_t the_##name = QSPIN_##NAME##_INIT;                                      \
    static double name##_called(void) {                                                            \
        double begin = now();                                                                      \
        for (long i = 0; i < times; i++) {                                                         \
            (qspin_##name##_lock)(&the_##name);                                                    \
            value = value + 1;                                                                     \
            (qspin_##name##_unlock)(&the_##name);                                                  \
        }                                                                                          \
        return (now() - begin) / (double)times;                                                    \
    }                                                                                              \
    static double name##_inline(void) {                                                            \
        double begin = now();                                                                      \
        for (long i = 0; i < times; i++) {                                                         \
            qspin_##name##_lock(&the_##name);                                                      \
            value = value + 1;                                                                     \
            qspin_##name##_unlock(&the_##name);                                                    \
        }                                                                                          \
        return (now() - begin) / (double)times;                                                    \
    }                                                                                              \
    static void name##_shown(void) {                                                               \
        double called[ROUNDS], in_line[ROUNDS];                                                    \
        for (int round = 0; round < ROUNDS; round++) { /* the first is the second next */       \
            if (round % 2 == 0) {                                                                  \
                called[round] = name##_called();                                                   \
            }                                                                                      \
            in_line[round] = name##_inline();                                                      \
            if (round % 2 != 0) {                                                                  \
                called[round] = name##_called();                                                   \
            }                                                                                      \
        }                                                                                          \
        printf("%-14s called %.2f ns, inline %.2f ns\n", #name, median(called), median(in_line));  \
    }

A_LOCK(native, NATIVE)
A_LOCK(paravirt, PARAVIRT)
A_LOCK(cna_paravirt, CNA_PARAVIRT)
A_LOCK(backoff, BACKOFF)
A_LOCK(yielding, YIELDING)

static void *nothing(void *unused) {
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 1 && (times = atol(argv[1])) < 1) {
        fprintf(stderr, "inline_cost: '%s' is no number of times: give 1 or more\n", argv[1]);
        return 2;
    }
    /* The C library spares a process that never had a second thread the atomic instructions. */
    if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    native_shown();
    paravirt_shown();
    cna_paravirt_shown();
    backoff_shown();
    yielding_shown();
    return 0;
}
