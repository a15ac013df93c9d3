/* Objects that are destroyed, and their memory given back, while those who used them are on their way out. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { USERS = 4, ROUNDS = 400 };

struct object {
    pthread_mutex_t mutex;
    pthread_cond_t condvar;
    pthread_rwlock_t rwlock;
    pthread_spinlock_t spinlock;
    int users, posts;
};

static struct object *object;
static pthread_mutex_t outside = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_int wrong, arrived;

static void expect(int result) {
    if (result != 0) wrong++;
}

static void begin(void) {
    object = mmap(NULL, sizeof *object, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    expect(pthread_mutex_init(&object->mutex, NULL));
    expect(pthread_cond_init(&object->condvar, &attributes));
    expect(pthread_rwlock_init(&object->rwlock, NULL));
    expect(pthread_spin_init(&object->spinlock, 0));
    object->users = USERS;
    object->posts = 0;
    arrived = 0;
}

static void end(struct object *of) {
    expect(pthread_cond_destroy(&of->condvar));
    expect(pthread_rwlock_destroy(&of->rwlock));
    expect(pthread_spin_destroy(&of->spinlock));
    expect(pthread_mutex_destroy(&of->mutex));
    expect(munmap(of, sizeof *of));
}

/* Who is the last to have it takes it away. */
static void last_of_mutex(struct object *of) {
    pthread_mutex_lock(&of->mutex);
    int last = --of->users == 0;
    pthread_mutex_unlock(&of->mutex);
    if (last) end(of);
}

static void last_of_rwlock(struct object *of) {
    pthread_rwlock_rdlock(&of->rwlock);
    pthread_rwlock_unlock(&of->rwlock);
    pthread_rwlock_wrlock(&of->rwlock);
    int last = --of->users == 0;
    pthread_rwlock_unlock(&of->rwlock);
    if (last) end(of);
}

static void last_of_spinlock(struct object *of) {
    pthread_spin_lock(&of->spinlock);
    int last = --of->users == 0;
    pthread_spin_unlock(&of->spinlock);
    if (last) end(of);
}

/* The deadline of a wait passes while others end the condition variable as soon as no thread waits. */
static void late(struct object *of) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += 20000;
    if (time.tv_nsec >= 1000000000) time.tv_nsec -= 1000000000, time.tv_sec++;
    pthread_mutex_lock(&of->mutex);
    int result = pthread_cond_timedwait(&of->condvar, &of->mutex, &time);
    if (result != ETIMEDOUT && result != 0) wrong++;
    int last = --of->users == 0;
    pthread_cond_signal(&of->condvar);
    pthread_mutex_unlock(&of->mutex);
    if (last) end(of);
}

/* Those who wait are woken, and it is gone before they return. The mutex is elsewhere. */
static void broadcast(struct object *of) {
    pthread_mutex_lock(&outside);
    if (++arrived < USERS) {
        /* A condition variable that is gone is not waited for again: a wake-up for nothing ends this, too. */
        pthread_cond_wait(&of->condvar, &outside);
        pthread_mutex_unlock(&outside);
        return;
    }
    pthread_cond_broadcast(&of->condvar);
    end(of);
    pthread_mutex_unlock(&outside);
}

/* A semaphore: who has waited for the last post takes it away while the post returns. */
static void semaphore(struct object *of) {
    if (arrived++ > 0) {
        pthread_mutex_lock(&of->mutex);
        of->posts++;
        pthread_cond_signal(&of->condvar);
        pthread_mutex_unlock(&of->mutex);
        return;
    }
    for (int posts = 1; posts < USERS; posts++) {
        pthread_mutex_lock(&of->mutex);
        while (of->posts == 0) pthread_cond_wait(&of->condvar, &of->mutex);
        of->posts--;
        pthread_mutex_unlock(&of->mutex);
    }
    end(of);
}

static void *user(void *use) {
    for (int round = 0; round < ROUNDS; round++) {
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) begin();
        pthread_barrier_wait(&barrier);
        ((void (*)(struct object *))use)(object);
    }
    return NULL;
}

int main(void) {
    struct {
        const char *name;
        void (*use)(struct object *);
    } uses[] = {
        {"mutex", last_of_mutex}, {"rwlock", last_of_rwlock}, {"spinlock", last_of_spinlock},
        {"deadline", late},       {"broadcast", broadcast},   {"semaphore", semaphore},
    };
    for (size_t one = 0; one < sizeof uses / sizeof *uses; one++) {
        pthread_t threads[USERS];
        pthread_barrier_init(&barrier, NULL, USERS);
        for (int i = 0; i < USERS; i++) pthread_create(&threads[i], NULL, user, (void *)uses[one].use);
        for (int i = 0; i < USERS; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&barrier);
        printf("%s: %d wrong\n", uses[one].name, (int)wrong);
        fflush(stdout);
    }
    return 0;
}
