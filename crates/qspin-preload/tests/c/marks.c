/* Stands for another C library: the marks of a condition variable are in byte 28. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#ifdef __x86_64__
#define VERSION "GLIBC_2.3.2"
#else
#define VERSION "GLIBC_2.17"
#endif

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
    static int (*next)(pthread_cond_t *, const pthread_condattr_t *);
    unsigned words[12];
    if (!next) *(void **)&next = dlvsym(RTLD_NEXT, "pthread_cond_init", VERSION);
    int code = next(cond, attributes);
    memcpy(words, cond, sizeof words);
    /* In that other C library they are there already. */
    if (words[9]) words[7] = words[9];
    words[9] = 0;
    memcpy(cond, words, sizeof words);
    return code;
}
