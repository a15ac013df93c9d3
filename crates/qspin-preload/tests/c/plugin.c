/* A library that is opened late, and locks in its constructor and destructor. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int uses;

int plugin_use(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    int now = ++uses;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&mutex);
    return now;
}

__attribute__((constructor)) static void opened(void) { plugin_use(); }
__attribute__((destructor)) static void closed(void) { plugin_use(); }
