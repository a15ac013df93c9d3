/* A wait ends by the clock that the condition variable was given. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 2; i++) {
        pthread_cond_t cond;
        pthread_condattr_t attributes;
        struct timespec until, after;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, clocks[i]);
        pthread_cond_init(&cond, &attributes);
        clock_gettime(clocks[i], &until);
        if ((until.tv_nsec += 50000000) >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        int code = pthread_cond_timedwait(&cond, &mutex, &until);
        clock_gettime(clocks[i], &after);
        int late = after.tv_sec > until.tv_sec || (after.tv_sec == until.tv_sec && after.tv_nsec >= until.tv_nsec);
        printf("clock %d: %s, %s\n", (int)clocks[i], strerror(code), late ? "at its time" : "too early");
    }
    return 0;
}
