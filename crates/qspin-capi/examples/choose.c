/* A lock that is chosen when the program starts. QSPIN_LOCK in the environment goes before the program. */
#include <errno.h>
#include <qspin.h>
#include <stdio.h>

static qspin_select_t lock = QSPIN_SELECT_INIT;

int main(void) {
    /* At the start of main: what no file tells. */
    if (qspin_select_decide(64, -1) == EBUSY) {
        fputs("choose: a lock was used before, and has fixed the choice\n", stderr);
    }
    qspin_select_lock(&lock);
    qspin_select_unlock(&lock);
    printf("%s, %s\n", qspin_select_chosen(), qspin_select_is_fixed() ? "fixed" : "open");
    return 0;
}
