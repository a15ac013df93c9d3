/* Threads of real-time policies sleep for a mutex, and for a condition: who has the highest priority is woken first. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 5 };

static const int priorities[THREADS] = {0, 10, 30, 20, 30};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, order_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static atomic_int number, at_condition;
static int order[THREADS], arrived;

static int set_priority(int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &parameter);
}

static void *waits(void *who) {
    int index = (int)(long)who;
    set_priority(priorities[index]);
    number = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&mutex);
    if (at_condition) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_lock(&order_mutex);
    order[arrived++] = index;
    pthread_mutex_unlock(&order_mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Waits until the thread that has said its number sleeps. */
static void let_sleep(void) {
    char path[64], text[256];
    for (;; usleep(1000)) {
        if (number == 0) continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", number);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = 0;
        if (strstr(text, ") S ")) break;
    }
    number = 0;
}

static int how_many(void) {
    pthread_mutex_lock(&order_mutex);
    int many = arrived;
    pthread_mutex_unlock(&order_mutex);
    return many;
}

static void try(const char *at) {
    pthread_t threads[THREADS];
    arrived = 0;
    if (!at_condition) pthread_mutex_lock(&mutex);
    for (long index = 0; index < THREADS; index++) {
        pthread_create(&threads[index], NULL, waits, (void *)index);
        let_sleep();
    }
    if (!at_condition) pthread_mutex_unlock(&mutex);
    for (int done = 0; done < THREADS; done++) {
        if (at_condition) pthread_cond_signal(&condition);
        while (how_many() <= done) usleep(1000);
    }
    printf("%s:", at);
    for (int index = 0; index < THREADS; index++) {
        pthread_join(threads[index], NULL);
        printf(" %d", order[index]);
    }
    printf("\n");
}

int main(void) {
    if (set_priority(1) != 0) {
        printf("a real-time policy is refused\n");
        return 0;
    }
    set_priority(0);
    try("mutex");
    at_condition = 1;
    try("condition");
    return 0;
}
