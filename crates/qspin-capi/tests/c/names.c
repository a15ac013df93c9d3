/* Statistics, tunables and the choice: by name, and with names that are wrong. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <qspin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "every.h"

static qspin_native_t lock = QSPIN_NATIVE_INIT;

static void *wait_for_it(void *unused) {
    (void)unused;
    qspin_native_lock(&lock);
    qspin_native_unlock(&lock);
    return NULL;
}

/* A thread waits for a lock, and has done so when this returns. */
static void contend(void) {
    pthread_t thread;
    qspin_native_lock(&lock);
    REQUIRE(pthread_create(&thread, NULL, wait_for_it, NULL) == 0);
    /* A waiter leaves a mark in the word, which is the library's. */
    while (__atomic_load_n(&lock.qspin_private[0], __ATOMIC_RELAXED) == 1) {
        usleep(100);
    }
    qspin_native_unlock(&lock);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static uint64_t slow_paths(void) {
    uint64_t count = 99;
    REQUIRE(qspin_statistics_get("lock_slowpath", &count) == 0);
    return count;
}

/* Whether an open file is called so. */
static bool is_open(const char *called) {
    bool shown = false;
    DIR *files = opendir("/proc/self/fd");
    struct dirent *file;
    REQUIRE(files != NULL);
    while ((file = readdir(files)) != NULL) {
        char name[64];
        ssize_t length = readlinkat(dirfd(files), file->d_name, name, sizeof name - 1);
        name[length > 0 ? length : 0] = '\0';
        shown = shown || strstr(name, called) != NULL;
    }
    closedir(files);
    return shown;
}

/* Whether the counters are to be seen by other processes. */
static bool are_shown(void) {
    return is_open("memfd:qspin-stat:process");
}

static void statistics(void) {
    uint64_t counts[64];
    uint64_t count = 99;
    size_t counters = qspin_statistics_count();
    REQUIRE(counters > 20 && counters < 64);
    for (size_t i = 0; i < counters; i++) {
        REQUIRE(strlen(qspin_statistics_name(i)) > 3);
        REQUIRE(qspin_statistics_get(qspin_statistics_name(i), &count) == 0 && count == 0);
    }
    REQUIRE(qspin_statistics_name(counters) == NULL);
    REQUIRE(qspin_statistics_alias(counters) == NULL);
    REQUIRE(strcmp(qspin_statistics_name(0), "lock_slowpath") == 0);
    REQUIRE(qspin_statistics_alias(0) == NULL);
    REQUIRE(qspin_statistics_get("pv_wait_head", &count) == 0);
    count = 99;
    REQUIRE(qspin_statistics_get("lock_slowpaths", &count) == ENOENT);
    REQUIRE(qspin_statistics_get("", &count) == ENOENT);
    REQUIRE(qspin_statistics_get("\xff", &count) == ENOENT);
    REQUIRE(qspin_statistics_get(NULL, &count) == EINVAL);
    REQUIRE(qspin_statistics_get("lock_slowpath", NULL) == EINVAL);
    REQUIRE(count == 99);

    REQUIRE(!qspin_statistics_is_on());
    contend();
    REQUIRE(slow_paths() == 0 && !are_shown());
    qspin_statistics_start();
    REQUIRE(qspin_statistics_is_on());
    contend();
    REQUIRE(slow_paths() == 1 && are_shown());
    qspin_statistics_stop();
    contend();
    REQUIRE(slow_paths() == 1);

    memset(counts, 0xff, sizeof counts);
    REQUIRE(qspin_statistics_snapshot(NULL, 0) == counters);
    REQUIRE(qspin_statistics_snapshot(counts, 1) == counters);
    REQUIRE(counts[0] == 1 && counts[1] == UINT64_MAX);
    REQUIRE(qspin_statistics_snapshot(counts, 64) == counters);
    REQUIRE(counts[counters - 1] == 0 && counts[counters] == UINT64_MAX);
    qspin_statistics_reset();
    REQUIRE(slow_paths() == 0);
}

static void tunables(void) {
    uint32_t value = 99, least = 99, most = 99, standard = 99;
    size_t count = qspin_tunables_count();
    REQUIRE(count > 10 && count <= 15);
    REQUIRE(qspin_tunables_name(count) == NULL);
    for (size_t i = 0; i < count; i++) {
        const char *name = qspin_tunables_name(i);
        REQUIRE(qspin_tunables_range(name, &least, &most, &standard) == 0);
        REQUIRE(least <= standard && standard <= most);
        REQUIRE(qspin_tunables_get(name, &value) == 0 && value == standard);
        REQUIRE(strlen(qspin_tunables_about(name)) > 10);
        REQUIRE(qspin_tunables_set(name, most) == 0);
        REQUIRE(qspin_tunables_get(name, &value) == 0 && value == most);
        REQUIRE(qspin_tunables_set(name, most + 1) == EINVAL);
        REQUIRE(qspin_tunables_get(name, &value) == 0 && value == most);
        REQUIRE(qspin_tunables_value_name(name, most + 1) == NULL);
    }
    /* By what it was called before. */
    REQUIRE(qspin_tunables_set("steal_looks", 7) == 0);
    REQUIRE(qspin_tunables_get("steal_polls", &value) == 0 && value == 7);
    REQUIRE(qspin_tunables_set("queue_looks", 7) == ENOENT);
    REQUIRE(qspin_tunables_reset() == 0);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(qspin_tunables_range(qspin_tunables_name(i), NULL, NULL, &standard) == 0);
        REQUIRE(qspin_tunables_get(qspin_tunables_name(i), &value) == 0 && value == standard);
    }
    REQUIRE(strcmp(qspin_tunables_value_name("heed_preempted", 1), "on") == 0);
    REQUIRE(qspin_tunables_value_name("heed_preempted", UINT32_MAX) == NULL);
    /* A switch of the laboratory. */
    REQUIRE(qspin_tunables_set("defer", 1) == ENOENT);
    REQUIRE(qspin_tunables_value_name("awake_polls", 1) == NULL);
    REQUIRE(qspin_tunables_value_name(NULL, 1) == NULL);
    value = least = 99;
    REQUIRE(qspin_tunables_set("awake_polls", 0) == EINVAL);
    REQUIRE(qspin_tunables_set("queue", 1) == ENOENT);
    REQUIRE(qspin_tunables_set("", 1) == ENOENT);
    REQUIRE(qspin_tunables_set("\xff", 1) == ENOENT);
    REQUIRE(qspin_tunables_set(NULL, 1) == EINVAL);
    REQUIRE(qspin_tunables_get("queue", &value) == ENOENT);
    REQUIRE(qspin_tunables_get(NULL, &value) == EINVAL);
    REQUIRE(qspin_tunables_get("awake_polls", NULL) == EINVAL);
    REQUIRE(qspin_tunables_range("queue", &least, NULL, NULL) == ENOENT);
    REQUIRE(qspin_tunables_range(NULL, &least, NULL, NULL) == EINVAL);
    REQUIRE(qspin_tunables_about("queue") == NULL && qspin_tunables_about(NULL) == NULL);
    REQUIRE(value == 99 && least == 99);
}

/* Other processes may change tunables from now on, by a file that is open here. */
static void listening(void) {
    REQUIRE(!is_open("memfd:qspin-tunables"));
    REQUIRE(qspin_tunables_listen() == 0 && is_open("memfd:qspin-tunables"));
    REQUIRE(qspin_tunables_listen() == 0);
}

/* What kernel and C library have is not for us to say, but the answers fit each other. */
static void remedies(void) {
    int holder = qspin_holder_available();
    REQUIRE(holder >= 0 && holder == qspin_holder_available());
    REQUIRE(qspin_run_status_available() || holder == ENXIO);
    for (int i = 0; i < 3; i++) {
        qspin_native_lock(&lock);
        qspin_holder_enter();
        qspin_holder_enter();
        qspin_native_unlock(&lock);
        qspin_holder_exit();
        qspin_holder_exit();
    }
}

static void choice(void) {
    qspin_select_t chosen = QSPIN_SELECT_INIT;
    REQUIRE(!qspin_select_is_fixed());
    REQUIRE(qspin_select_decide(0, 2) == EINVAL && qspin_select_decide(0, -2) == EINVAL);
    REQUIRE(qspin_select_decide(8, 1) == 0);
    REQUIRE(qspin_select_force(NULL) == EINVAL);
    REQUIRE(qspin_select_force("nativ") == ENOENT && qspin_select_force("") == ENOENT);
    REQUIRE(qspin_select_force("backoff") == 0);
    REQUIRE(strcmp(qspin_select_chosen(), "backoff") == 0);
    REQUIRE(!qspin_select_is_fixed());
    qspin_select_lock(&chosen);
    REQUIRE(qspin_select_is_fixed());
    REQUIRE(qspin_select_force("cna") == EBUSY);
    REQUIRE(qspin_select_force("backoff") == 0);
    qspin_select_unlock(&chosen);
    /* No rule chooses that lock for a process that can halt. */
    REQUIRE(qspin_select_decide(8, 1) == EBUSY);
    REQUIRE(strcmp(qspin_select_chosen(), "backoff") == 0);
}

int main(void) {
    alarm(1200);
    statistics();
    tunables();
    listening();
    remedies();
    choice();
    puts("every name means what it says");
    return 0;
}
