/* Leaves a robust mutex to the C library, as its child does, and executes another program. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void robust(void) {
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
}

int main(void) {
    int status;
    robust();
    pid_t pid = fork();
    if (pid == 0) {
        robust();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    execl("/bin/true", "true", (char *)NULL);
    return 1;
}
