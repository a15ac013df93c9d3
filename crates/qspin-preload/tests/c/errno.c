/* What the program finds in `errno`: what it has left there, before `main`, at the end, and after every call. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define MINE 12345

static int at_load = MINE;

__attribute__((constructor)) static void constructor(void)
{
	at_load = errno;
}

/* The last of all handlers. A destructor of another library looks at it: that of end.c. */
static void leave(void)
{
	fflush(stdout);
	errno = MINE;
}

static int changed;

#define CALL(call) \
	do { \
		errno = MINE; \
		int said = (call); \
		if (errno != MINE) { \
			printf("%s: returns %d, errno becomes %d\n", #call, said, errno); \
			changed++; \
		} \
	} while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_barrier_t both;
static _Atomic int woken;
static mtx_t plain;
static cnd_t event;

/* Longer than any waiter stays awake. */
static void rest(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static struct timespec in_a_moment(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += 5000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

static void pairs(void)
{
	CALL(pthread_mutex_lock(&mutex));
	CALL(pthread_mutex_trylock(&mutex));
	CALL(pthread_mutex_unlock(&mutex));
	CALL(pthread_mutex_lock(&recursive));
	CALL(pthread_mutex_lock(&recursive));
	CALL(pthread_mutex_unlock(&recursive));
	CALL(pthread_mutex_unlock(&recursive));
	CALL(pthread_mutex_unlock(&checked));
	CALL(pthread_mutex_lock(&checked));
	CALL(pthread_mutex_lock(&checked));
	CALL(pthread_mutex_unlock(&checked));
	CALL(pthread_rwlock_rdlock(&rwlock));
	CALL(pthread_rwlock_trywrlock(&rwlock));
	CALL(pthread_rwlock_unlock(&rwlock));
	CALL(pthread_rwlock_wrlock(&rwlock));
	CALL(pthread_rwlock_tryrdlock(&rwlock));
	CALL(pthread_rwlock_unlock(&rwlock));
	CALL(pthread_spin_lock(&spinlock));
	CALL(pthread_spin_trylock(&spinlock));
	CALL(pthread_spin_unlock(&spinlock));
	CALL(pthread_cond_signal(&condition));
	CALL(pthread_cond_broadcast(&condition));
	CALL(mtx_lock(&plain));
	CALL(mtx_trylock(&plain));
	CALL(mtx_unlock(&plain));
	CALL(cnd_signal(&event));
	CALL(cnd_broadcast(&event));
}

/* Objects that are made by attributes, some of them left to the C library. */
static void objects(void)
{
	static const int kinds[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK };

	for (int at = 0; at < 12; at++) {
		pthread_mutexattr_t attributes;
		pthread_mutex_t made;

		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_settype(&attributes, kinds[at % 3]);
		if (at / 3 == 1)
			pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		if (at / 3 == 2)
			pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
		if (at / 3 == 3)
			pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
		CALL(pthread_mutex_init(&made, &attributes));
		CALL(pthread_mutex_lock(&made));
		CALL(pthread_mutex_unlock(&made));
		CALL(pthread_mutex_destroy(&made));
		pthread_mutexattr_destroy(&attributes);
	}
	for (int shared = 0; shared < 2; shared++) {
		pthread_condattr_t attributes;
		pthread_rwlockattr_t others;
		pthread_cond_t made;
		pthread_rwlock_t lock;

		pthread_condattr_init(&attributes);
		pthread_condattr_setpshared(&attributes, shared);
		CALL(pthread_cond_init(&made, &attributes));
		CALL(pthread_cond_signal(&made));
		CALL(pthread_cond_destroy(&made));
		pthread_condattr_destroy(&attributes);
		pthread_rwlockattr_init(&others);
		pthread_rwlockattr_setpshared(&others, shared);
		CALL(pthread_rwlock_init(&lock, &others));
		CALL(pthread_rwlock_rdlock(&lock));
		CALL(pthread_rwlock_unlock(&lock));
		CALL(pthread_rwlock_destroy(&lock));
		pthread_rwlockattr_destroy(&others);
	}
}

/* Waits for what `main` holds, and sleeps: the first waits of this thread. */
static void *other(void *nothing)
{
	struct timespec time;

	pthread_barrier_wait(&both);
	CALL(pthread_mutex_lock(&mutex));
	CALL(pthread_mutex_unlock(&mutex));
	CALL(pthread_rwlock_rdlock(&rwlock));
	CALL(pthread_rwlock_unlock(&rwlock));
	pthread_barrier_wait(&both);
	CALL(pthread_rwlock_wrlock(&rwlock));
	CALL(pthread_rwlock_unlock(&rwlock));
	CALL(mtx_lock(&plain));
	CALL(mtx_unlock(&plain));
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	time = in_a_moment(CLOCK_REALTIME);
	CALL(pthread_mutex_timedlock(&mutex, &time));
	time = in_a_moment(CLOCK_MONOTONIC);
	CALL(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &time));
	CALL(pthread_mutex_clocklock(&mutex, 77, &time));
	time = in_a_moment(CLOCK_REALTIME);
	CALL(pthread_rwlock_timedrdlock(&rwlock, &time));
	time = in_a_moment(CLOCK_MONOTONIC);
	CALL(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &time));
	time = in_a_moment(CLOCK_REALTIME);
	CALL(mtx_timedlock(&plain, &time));
	pthread_barrier_wait(&both);
	CALL(pthread_mutex_lock(&mutex));
	CALL(pthread_cond_wait(&condition, &mutex));
	woken = 1;
	time = in_a_moment(CLOCK_REALTIME);
	CALL(pthread_cond_timedwait(&condition, &mutex, &time));
	time = in_a_moment(CLOCK_MONOTONIC);
	CALL(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &time));
	CALL(pthread_cond_clockwait(&condition, &mutex, 77, &time));
	CALL(pthread_mutex_unlock(&mutex));
	CALL(mtx_lock(&plain));
	time = in_a_moment(CLOCK_REALTIME);
	CALL(cnd_timedwait(&event, &plain, &time));
	CALL(mtx_unlock(&plain));
	return nothing;
}

static void together(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	CALL(pthread_mutex_lock(&mutex));
	CALL(pthread_rwlock_wrlock(&rwlock));
	pthread_create(&thread, NULL, other, NULL);
	pthread_barrier_wait(&both);
	rest();
	CALL(pthread_mutex_unlock(&mutex));
	rest();
	CALL(pthread_rwlock_unlock(&rwlock));
	CALL(pthread_rwlock_rdlock(&rwlock));
	CALL(mtx_lock(&plain));
	pthread_barrier_wait(&both);
	rest();
	CALL(pthread_rwlock_unlock(&rwlock));
	rest();
	CALL(mtx_unlock(&plain));
	pthread_barrier_wait(&both);
	CALL(pthread_mutex_lock(&mutex));
	CALL(pthread_rwlock_wrlock(&rwlock));
	CALL(mtx_lock(&plain));
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	CALL(mtx_unlock(&plain));
	CALL(pthread_rwlock_unlock(&rwlock));
	CALL(pthread_mutex_unlock(&mutex));
	while (!woken) {
		rest();
		CALL(pthread_cond_signal(&condition));
	}
	pthread_join(thread, NULL);
}

static int at_cleanup;

static void clean_up(void *nothing)
{
	(void)nothing;
	at_cleanup = errno;
	pthread_mutex_unlock(&mutex);
}

static void *cancelled(void *nothing)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean_up, NULL);
	pthread_barrier_wait(&both);
	errno = MINE;
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(0);
	return nothing;
}

static void cancel(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, cancelled, NULL);
	pthread_barrier_wait(&both);
	rest();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	printf("in a cancelled wait's cleanup %d\n", at_cleanup);
}

static void *locks_first(void *nothing)
{
	pairs();
	return nothing;
}

int main(void)
{
	int at_main = errno;
	pthread_t thread;
	pthread_key_t key;

	atexit(leave);
	printf("at load %d, at main %d\n", at_load, at_main);
	pthread_spin_init(&spinlock, 0);
	mtx_init(&plain, mtx_timed);
	cnd_init(&event);
	pairs();
	objects();
	/* More keys than the C library has room for in a thread's block: the next ones take memory. */
	for (int at = 0; at < 64; at++)
		pthread_key_create(&key, NULL);
	pthread_create(&thread, NULL, locks_first, NULL);
	pthread_join(thread, NULL);
	together();
	cancel();
	pairs();
	printf("changed by %d calls\n", changed);
	return 0;
}
