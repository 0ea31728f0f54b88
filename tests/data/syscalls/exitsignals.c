/* What clone takes as the signal at a child's end: any number, of which some are no signals. */
#include "guest.h"
#include <sys/wait.h>

int main(void) {
    struct timespec moment = {0, 1000000};
    signal(64, SIG_IGN);
    for (int number = 62; number < 256; number += number < 66 ? 1 : 60) {
        int status = 0, found;
        if (number == 62 || number == 63) signal(number, SIG_IGN);
        int child = syscall(SYS_clone, number, 0, 0, 0, 0);
        if (!child) _exit(3);
        while ((found = waitpid(child, &status, __WALL)) < 0 && errno == EINTR);
        printf("%d: %d %x\n", number, found == child, status);
        SHOW(nanosleep(&moment, 0));
    }
    return 0;
}
