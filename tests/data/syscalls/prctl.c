/* Attributes of processes that prctl sets and gets, and fcntl's answers about leases and seals. */
#include "guest.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define P(option, a, b, c, d) SHOW(syscall(SYS_prctl, option, a, b, c, d))

static void thp(void) {
    P(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    P(PR_GET_THP_DISABLE, 1, 0, 0, 0);
    P(PR_SET_THP_DISABLE, 1, 4, 0, 0);
    P(PR_SET_THP_DISABLE, 1, 0, 1, 0);
    P(PR_SET_THP_DISABLE, 0, 2, 0, 0);
    P(PR_SET_THP_DISABLE, 7, 0, 0, 0);
    P(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    if (!fork()) {
        P(PR_GET_THP_DISABLE, 0, 0, 0, 0);
        P(PR_SET_THP_DISABLE, 0, 0, 0, 0);
        _exit(0);
    }
    wait(0);
    P(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    P(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    P(PR_GET_THP_DISABLE, 0, 0, 0, 0);
}

static void memory_errors(void) {
    P(PR_MCE_KILL_GET, 0, 0, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
    P(PR_MCE_KILL_GET, 0, 0, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_LATE, 0, 0);
    P(PR_MCE_KILL_GET, 0, 0, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_DEFAULT, 0, 0);
    P(PR_MCE_KILL_GET, 0, 0, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0);
    P(PR_MCE_KILL_GET, 0, 0, 0, 0);
    P(PR_MCE_KILL_GET, 0, 0, 0, 1);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, 3, 0, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_SET, 1, 1, 0);
    P(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 1, 0, 0);
    P(PR_MCE_KILL, 2, 0, 0, 0);
}

int main(void) {
    thp();
    memory_errors();
    P(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0);
    P(PR_TASK_PERF_EVENTS_ENABLE, 5, 6, 7, 8);
    P(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    P(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0);
    P(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 1);
    P(PR_SET_MM, PR_SET_MM_START_CODE, 0, 0, 1);
    P(PR_SET_MM, PR_SET_MM_START_CODE, 0, 1, 0);
    int *address = 0, *wanted = (int *)&address;
    syscall(SYS_set_tid_address, wanted);
    P(PR_GET_TID_ADDRESS, (long)&address, 0, 0, 0);
    TRUE(address == wanted);
    P(PR_GET_TID_ADDRESS, 1, 0, 0, 0);

    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600), pair[2];
    pipe(pair);
    SHOW(fcntl(fd, F_GETLEASE));
    SHOW(fcntl(pair[0], F_GETLEASE));
    SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
    SHOW(fcntl(pair[0], F_ADD_SEALS, 0));
    SHOW(fcntl(pair[1], F_ADD_SEALS, 0));
    SHOW(fcntl(pair[1], F_ADD_SEALS, 0x4000));
    SHOW(fcntl(pair[1], F_GET_SEALS));
    int sealed = memfd_create("x", MFD_ALLOW_SEALING);
    SHOW(fcntl(sealed, F_ADD_SEALS, 0x4000));
    SHOW(fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW));
    return 0;
}
