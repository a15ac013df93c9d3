/* Early and late: constructors that lock, libraries that come and go, `errno`, threads that leave locks. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
__attribute__((constructor(101))) static void first(void) { pthread_mutex_lock(&early); }

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static void *leaves(void *unused) { (void)unused; pthread_mutex_lock(&left); return NULL; }

static pthread_mutex_t from_handler = PTHREAD_MUTEX_INITIALIZER;
static int in_handler;
static void on_alarm(int signal) {
    (void)signal;
    if (pthread_mutex_trylock(&from_handler) == 0) {
        in_handler++;
        pthread_mutex_unlock(&from_handler);
    }
}

static int (*use)(void);
static void *uses(void *unused) { (void)unused; for (int i = 0; i < 1000; i++) use(); return NULL; }

int main(int argc, char **argv) {
    printf("early: %d", pthread_mutex_trylock(&early));
    printf(" %d\n", pthread_mutex_unlock(&early));
    for (int round = 0; argc > 1 && round < 2; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        if (!plugin) { printf("%s\n", dlerror()); return 1; }
        use = (int (*)(void))dlsym(plugin, "plugin_use");
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, uses, NULL);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        printf("plugin: %d\n", use());
        dlclose(plugin);
    }
    /* The owner is gone; the mutex stays locked, and another thread may unlock a normal one. */
    pthread_t thread;
    pthread_create(&thread, NULL, leaves, NULL);
    pthread_join(thread, NULL);
    printf("left: %d", pthread_mutex_trylock(&left));
    printf(" %d", pthread_mutex_unlock(&left));
    printf(" %d", pthread_mutex_unlock(&left));
    printf(" %d", pthread_mutex_trylock(&left));
    printf(" %d\n", pthread_mutex_trylock(&left));
    /* errno is the program's. */
    errno = 4242;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec past = { 1, 0 };
    pthread_mutex_lock(&early);
    pthread_cond_timedwait(&cond, &early, &past);
    pthread_mutex_timedlock(&left, &past);
    pthread_mutex_unlock(&early);
    printf("errno: %d\n", errno);
    struct sigaction action = { .sa_handler = on_alarm };
    sigaction(SIGALRM, &action, NULL);
    ualarm(500, 500);
    for (int i = 0; i < 300000; i++) {
        pthread_mutex_lock(&from_handler);
        pthread_mutex_unlock(&from_handler);
    }
    ualarm(0, 0);
    printf("handler: %d\n", pthread_mutex_trylock(&from_handler));
    return 0;
}
