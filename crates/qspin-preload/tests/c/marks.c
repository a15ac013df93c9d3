/* Stands for another C library: the marks of a condition variable are in byte 28. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
    static int (*next)(pthread_cond_t *, const pthread_condattr_t *);
    unsigned words[12];
    if (!next) *(void **)&next = dlvsym(RTLD_NEXT, "pthread_cond_init", "GLIBC_2.3.2");
    int code = next(cond, attributes);
    memcpy(words, cond, sizeof words);
    words[7] = words[9];
    words[9] = 0;
    memcpy(cond, words, sizeof words);
    return code;
}
