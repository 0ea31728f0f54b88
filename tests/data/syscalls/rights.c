/* What takes privileges, and what only looks as if it did. */
#include "guest.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void attributes(void) {
    SHOW(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
    SHOW(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_KEEPCAPS, 2, 0, 0, 0));
    SHOW(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    SHOW(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
    SHOW(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_SECUREBITS, 1, 0, 0, 0));
    SHOW(prctl(PR_CAPBSET_DROP, 0, 0, 0, 0));
    SHOW(prctl(PR_CAPBSET_DROP, 99, 0, 0, 0));
    for (int operation = 0; operation < 6; operation++)
        for (int capability = 0; capability < 3; capability++)
            SHOW(prctl(PR_CAP_AMBIENT, operation, (int[]){0, 40, 63}[capability], 0, 0));
    SHOW(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 1, 0));
    SHOW(prctl(PR_GET_TIMING, 0, 0, 0, 0));
    SHOW(prctl(PR_SET_TIMING, PR_TIMING_STATISTICAL, 0, 0, 0));
    SHOW(prctl(PR_SET_TIMING, PR_TIMING_TIMESTAMP, 0, 0, 0));
    SHOW(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0));
}

static void namespaces(void) {
    static const char *const names[] = {"ipc", "uts", "user", "pid", "cgroup", "time", "net", "mnt",
                                        "pid_for_children", "time_for_children", "none"};
    static const int kinds[] = {CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWPID,
                                CLONE_NEWCGROUP, CLONE_NEWTIME, CLONE_NEWNET, CLONE_NEWNS};
    char path[64], text[64];
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
        struct stat st, link;
        sprintf(path, "/proc/self/ns/%s", names[n]);
        printf("%s\n", path);
        long size = readlink(path, text, sizeof text - 1);
        if (size > 0) text[size] = 0, printf("%.*s\n", (int)(strchr(text, '[') - text), text);
        SHOW(stat(path, &st));
        SHOW(lstat(path, &link));
        int fd = open(path, O_RDONLY);
        if (fd < 0) continue;
        char *end, *number = strchr(text, '[') + 1;
        TRUE(strtoul(number, &end, 10) == st.st_ino && S_ISREG(st.st_mode) && S_ISLNK(link.st_mode));
        SHOW(read(fd, text, 1));
        SHOW(syscall(SYS_setns, fd, 0));
        for (int k = 0; k < 8; k++) SHOW(syscall(SYS_setns, fd, kinds[k]));
        close(fd);
    }
    int fd = open("/proc/self/stat", O_RDONLY), pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    SHOW(syscall(SYS_setns, fd, 0));
    SHOW(syscall(SYS_setns, 99, 0));
    SHOW(syscall(SYS_setns, pidfd, 0));
    SHOW(syscall(SYS_setns, pidfd, 1));
    SHOW(syscall(SYS_setns, pidfd, CLONE_NEWUTS));
    SHOW(syscall(SYS_setns, pidfd, CLONE_NEWUTS | CLONE_NEWNET));
}

/* A directory of /proc stands for its process. */
static void directories(void) {
    char path[64];
    pid_t pid = fork();
    if (!pid) pause();
    sprintf(path, "/proc/%d", pid);
    int fd = open(path, O_RDONLY), place = open(path, O_PATH), status;
    sprintf(path, "/proc/%d/task/%d", pid, pid);
    int task = open(path, O_RDONLY);
    sprintf(path, "/proc/%d/fd", pid);
    int inside = open(path, O_RDONLY);
    SHOW(syscall(SYS_pidfd_send_signal, place, 0, 0, 0));
    SHOW(syscall(SYS_pidfd_send_signal, task, 0, 0, 0));
    SHOW(syscall(SYS_pidfd_send_signal, inside, 0, 0, 0));
    SHOW(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
    SHOW(syscall(SYS_pidfd_send_signal, fd, 99, 0, 0));
    SHOW(syscall(SYS_pidfd_getfd, fd, 1, 0));
    SHOW(waitid(P_PIDFD, fd, 0, WEXITED | WNOHANG));
    SHOW(syscall(SYS_pidfd_send_signal, fd, SIGTERM, 0, 0));
    SHOW(waitpid(pid, &status, 0) == pid);
    printf("%x\n", status);
    SHOW(syscall(SYS_pidfd_send_signal, fd, 0, 0, 0));
}

static void advice(void) {
    int ends[2], files[] = {open("/dev/null", O_RDWR), open("/proc/self/stat", O_RDONLY),
                            socket(AF_UNIX, SOCK_STREAM, 0), open("/", O_RDONLY), open("/", O_PATH)};
    pipe(ends);
    SHOW(posix_fadvise(ends[0], 0, 0, 0));
    for (unsigned n = 0; n < sizeof files / sizeof *files; n++) {
        SHOW(posix_fadvise(files[n], 0, 0, 0));
        SHOW(posix_fadvise(files[n], 0, 0, 6));
        SHOW(posix_fadvise(files[n], 0, -1, 0));
    }
    SHOW(posix_fadvise(0, 0, 0, POSIX_FADV_SEQUENTIAL));
}

int main(void) {
    attributes();
    namespaces();
    directories();
    advice();
    return 0;
}
