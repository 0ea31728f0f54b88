/* The limit of the stack, as a new program has it. */
#include "guest.h"
#include <sys/resource.h>
#include <sys/wait.h>

static int deep(int count) {
    volatile char room[1 << 16];
    room[0] = count;
    return count ? deep(count - 1) + room[0] : 0;
}

int main(int argc, char **argv) {
    static const rlim_t limits[] = {256 << 10, 8 << 20, 64 << 20, 1 << 30, 1UL << 40, RLIM_INFINITY};
    struct rlimit limit;
    int status;
    if (argc == 2) { /* executed: 40 MiB of it are there where the limit allows it */
        getrlimit(RLIMIT_STACK, &limit);
        printf("limit %lx\n", (long)limit.rlim_cur);
        fflush(stdout);
        deep(atoi(argv[1]));
        return 0;
    }
    for (unsigned n = 0; n < sizeof limits / sizeof *limits; n++)
        if (!fork()) {
            limit.rlim_cur = limits[n];
            limit.rlim_max = RLIM_INFINITY;
            if (setrlimit(RLIMIT_STACK, &limit)) { /* whoever tests this has a limit */
                getrlimit(RLIMIT_STACK, &limit);
                limit.rlim_cur = limits[n];
                setrlimit(RLIMIT_STACK, &limit);
            }
            execl("/proc/self/exe", argv[0], n < 2 ? "2" : "640", (char *)0);
            perror("exec");
            _exit(1);
        } else {
            wait(&status);
            printf("status %x\n", status);
        }
    return 0;
}
