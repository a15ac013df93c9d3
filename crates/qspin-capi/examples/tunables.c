/* Shows every tunable of the locks, or sets one: tunables [NAME VALUE] */
#include <errno.h>
#include <inttypes.h>
#include <qspin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set(const char *name, const char *text) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > UINT32_MAX) {
        fprintf(stderr, "tunables: '%s' is not a number like 64\n", text);
        return 2;
    }
    int error = qspin_tunables_set(name, (uint32_t)value);
    if (error == ENOENT) {
        fprintf(stderr, "tunables: there is no tunable '%s'; without arguments I show them\n", name);
        return 2;
    }
    if (error == EINVAL) {
        uint32_t least = 0, most = 0;
        qspin_tunables_range(name, &least, &most, NULL);
        fprintf(stderr, "tunables: %s is from %" PRIu32 " to %" PRIu32 ", not %s\n", name, least, most, text);
        return 2;
    }
    if (error != 0) {
        fprintf(stderr, "tunables: %s\n", strerror(error));
        return 1;
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 1 && count != 3) {
        fputs("tunables: either nothing or NAME VALUE, like: awake_polls 64\n", stderr);
        return 2;
    }
    if (count == 3) {
        int failed = set(arguments[1], arguments[2]);
        if (failed != 0) {
            return failed;
        }
    }
    for (size_t i = 0; i < qspin_tunables_count(); i++) {
        const char *name = qspin_tunables_name(i);
        uint32_t value = 0, least = 0, most = 0, standard = 0;
        if (qspin_tunables_get(name, &value) != 0 || qspin_tunables_range(name, &least, &most, &standard) != 0) {
            return 1;
        }
        const char *called = qspin_tunables_value_name(name, value);
        printf("%-22s %9" PRIu32 " %-10s (%" PRIu32 " to %" PRIu32 ", default %" PRIu32 ")\n", name, value,
               called != NULL ? called : "", least, most, standard);
    }
    return 0;
}
