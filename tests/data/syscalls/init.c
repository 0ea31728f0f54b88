/* Process 1: it is another user's; what may be asked of it, and what may not. */
#include "guest.h"
#include <dirent.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* How a host schedules its process 1 is the host's own: only that it tells. */
static void looks(void) {
    unsigned char mask[128];
    struct sched_param param = {7};
    unsigned attr[14] = {0};
    struct timespec time;
    SHOW(sched_getaffinity(1, sizeof mask, (cpu_set_t *)mask) == 0);
    SHOW(sched_getscheduler(1) >= 0);
    SHOW(sched_getparam(1, &param));
    TRUE(param.sched_priority != 7);
    SHOW(syscall(SYS_sched_getattr, 1, attr, sizeof attr, 0));
    TRUE(attr[0] >= 48);
    SHOW(sched_rr_get_interval(1, &time));
    SHOW(getpriority(PRIO_PROCESS, 1) >= -20 && !errno);
    SHOW(clock_gettime((~1U << 3) | 2, &time));
    SHOW(clock_gettime((~1U << 3) | 6, &time));
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 1};
    struct __user_cap_data_struct data[2];
    SHOW(syscall(SYS_capget, &header, data));
    TRUE(data[0].effective && data[0].permitted);
}

static void changes(void) {
    unsigned char mask[128] = {1};
    struct sched_param param = {0}, wrong = {5}, real = {100};
    struct rlimit limit;
    unsigned attr[14] = {48};
    void *list;
    size_t size;
    SHOW(sched_setaffinity(1, sizeof mask, (cpu_set_t *)mask));
    memset(mask, 0, sizeof mask);
    SHOW(sched_setaffinity(1, sizeof mask, (cpu_set_t *)mask));
    SHOW(sched_setscheduler(1, SCHED_OTHER, &param));
    SHOW(sched_setscheduler(1, SCHED_OTHER, &wrong));
    SHOW(sched_setscheduler(1, SCHED_FIFO, &wrong));
    SHOW(sched_setscheduler(1, SCHED_FIFO, &real));
    SHOW(sched_setscheduler(1, 77, &param));
    SHOW(sched_setscheduler(1, SCHED_OTHER, 0));
    SHOW(sched_setparam(1, &param));
    SHOW(sched_setparam(1, &wrong));
    SHOW(sched_setparam(99999, &param));
    SHOW(sched_setparam(-1, &param));
    SHOW(sched_setparam(0, 0));
    SHOW(syscall(SYS_sched_setattr, 1, attr, 0));
    SHOW(setpriority(PRIO_PROCESS, 1, 5));
    SHOW(setpriority(PRIO_PROCESS, 1, 0));
    SHOW(prlimit(1, RLIMIT_NOFILE, 0, &limit));
    SHOW(prlimit(1, RLIMIT_NOFILE, &limit, 0));
    SHOW(prlimit(1, 99, 0, &limit));
    SHOW(syscall(SYS_get_robust_list, 1, &list, &size));
    SHOW(setpgid(1, 0));
    SHOW(setpgid(1, 1));
    SHOW(setpgid(0, 1));
    SHOW(waitpid(1, 0, WNOHANG));
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)looks, 1};
    SHOW(syscall(SYS_process_vm_readv, 1, &here, 1, &there, 1, 0));
}

static void signals(void) {
    static const int numbers[] = {0, SIGTERM, SIGKILL, SIGCONT, 64, 65, -1};
    siginfo_t info = {.si_code = SI_QUEUE}, user = {.si_code = SI_USER};
    int fd = syscall(SYS_pidfd_open, 1, 0);
    TRUE(fd >= 0);
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        printf("signal %d\n", numbers[n]);
        info.si_signo = user.si_signo = numbers[n];
        SHOW(kill(1, numbers[n]));
        SHOW(syscall(SYS_tkill, 1, numbers[n]));
        SHOW(syscall(SYS_tgkill, 1, 1, numbers[n]));
        SHOW(syscall(SYS_tgkill, getpid(), 1, numbers[n]));
        SHOW(syscall(SYS_rt_sigqueueinfo, 1, numbers[n], &info));
        SHOW(syscall(SYS_rt_sigqueueinfo, 1, numbers[n], &user));
        SHOW(syscall(SYS_rt_tgsigqueueinfo, 1, 1, numbers[n], &info));
        SHOW(syscall(SYS_pidfd_send_signal, fd, numbers[n], 0, 0));
        SHOW(syscall(SYS_pidfd_send_signal, fd, numbers[n], &info, 0));
    }
    struct pollfd ready = {fd, POLLIN};
    SHOW(poll(&ready, 1, 0));
    SHOW(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG));
    SHOW(syscall(SYS_pidfd_getfd, fd, 0, 0));
    SHOW(close(fd));
}

static void files(void) {
    static const char *const names[] = {
        "", "/status", "/stat", "/statm", "/cmdline", "/comm", "/limits", "/cgroup", "/oom_score",
        "/maps", "/smaps", "/environ", "/auxv", "/fd", "/task", "/task/1", "/task/1/stat", "/cwd",
        "/root", "/exe", "/cwd/tmp", "/fd/0"};
    char path[64], text[256];
    struct stat st;
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
        sprintf(path, "/proc/1%s", names[n]);
        printf("%s\n", path);
        SHOW(lstat(path, &st));
        if (!strstr(path, "cwd/") && !strstr(path, "fd/"))
            printf("owner %u %u\n", st.st_uid, st.st_gid);
        int fd = open(path, O_RDONLY);
        WORKS(fd);
        if (fd >= 0 && S_ISREG(st.st_mode)) WORKS(read(fd, text, sizeof text));
        if (fd >= 0) close(fd);
        WORKS(readlink(path, text, sizeof text));
    }
    WORKS(open("/proc/1/comm", O_WRONLY));
    WORKS(open("/proc/1/oom_score_adj", O_WRONLY));
    int found = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(all));) found += !strcmp(entry->d_name, "1");
    SHOW(found);
    FILE *status = fopen("/proc/1/status", "r");
    while (fgets(text, sizeof text, status))
        if (!strncmp(text, "Pid:", 4) || !strncmp(text, "PPid:", 5) || !strncmp(text, "Uid:", 4) ||
            !strncmp(text, "Gid:", 4))
            fputs(text, stdout);
    fclose(status);
}

int main(void) {
    /* SIGCONT reaches everybody of one's own session, which may be that of process 1. */
    pid_t child = fork();
    if (child) {
        int status = -1;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    TRUE(setsid() > 0);
    looks();
    changes();
    signals();
    files();
    return 0;
}
