/* Whether this process has registered for expedited barriers: the kernel refuses them to others. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    enum { QUERY = 0, PRIVATE_EXPEDITED = 8 };
    if (syscall(SYS_membarrier, QUERY, 0, 0) < 0) puts("unknown");
    else if (syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0) puts("registered");
    else puts(errno == EPERM ? "not registered" : "refused");
    return 0;
}
