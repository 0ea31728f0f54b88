/* Threads and processes as /proc shows them. */
#include "guest.h"
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile int tid;
static int hold[2];
static void read_all(const char *path, char *text, int size) {
    int fd = open(path, O_RDONLY), count = fd < 0 ? -1 : read(fd, text, size - 1);
    text[count < 0 ? 0 : count] = 0;
    if (fd >= 0) close(fd);
}
/* Lines of a status file that name what does not differ between kernels; ids as letters. */
static void status(const char *what, const char *path) {
    static const char *const wanted[] = {"Name:", "Tgid:", "Pid:", "State:", "SigBlk:", "Threads:"};
    char text[4096], *save;
    read_all(path, text, sizeof text);
    printf("%s\n", what);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(0, "\n", &save))
        for (unsigned n = 0; n < sizeof wanted / sizeof *wanted; n++)
            if (!strncmp(line, wanted[n], strlen(wanted[n]))) {
                long value = strtol(line + strlen(wanted[n]) + 1, 0, 10);
                if (n == 1 || n == 2)
                    printf("%s %s\n", wanted[n], value == getpid() ? "P" : value == tid ? "T" : "?");
                else
                    printf("%s\n", line);
            }
}
static void stat_line(const char *path) {
    char text[1024], comm[64], state;
    long id, fields[60] = {0};
    read_all(path, text, sizeof text);
    sscanf(text, "%ld %63s %c", &id, comm, &state);
    char *at = strrchr(text, ')') + 4;
    for (int n = 4; n < 45; n++) fields[n] = strtol(at, &at, 10);
    printf("%s %s %c parent %d group %d threads %ld nice told %d policy %ld\n",
           id == getpid() ? "P" : id == tid ? "T" : "?", comm, state, fields[4] == getppid(),
           fields[5] == getpgrp(), fields[20],
           fields[18] - 20 == fields[19] && fields[19] == getpriority(PRIO_PROCESS, id), fields[41]);
}
static void *thread(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), 19);
    struct sched_param param = {0};
    sched_setscheduler(syscall(SYS_gettid), SCHED_BATCH, &param);
    tid = syscall(SYS_gettid);
    char byte;
    read(hold[0], &byte, 1);
    return 0;
}
static int entries(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) count += entry->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

int main(int argc, char **argv) {
    pthread_t made;
    char path[64], text[64];
    pipe(hold);
    pthread_setname_np(pthread_self(), "first");
    pthread_create(&made, 0, thread, 0);
    while (!tid) poll(0, 0, 1);
    poll(0, 0, 20);
    SHOW(pthread_setname_np(made, "second"));
    SHOW(pthread_getname_np(made, text, sizeof text));
    puts(text);
    SHOW(pthread_getname_np(pthread_self(), text, sizeof text));
    puts(text);
    SHOW(pthread_setname_np(made, "a name that is too long"));
    SHOW(entries("/proc/self/task"));
    read_all("/proc/self/comm", text, sizeof text);
    fputs(text, stdout);
    read_all("/proc/thread-self/comm", text, sizeof text);
    fputs(text, stdout);
    sprintf(path, "/proc/self/task/%d/comm", tid);
    int fd = open(path, O_WRONLY);
    SHOW(write(fd, "a very long name indeed\n", 24));
    close(fd);
    read_all(path, text, sizeof text);
    fputs(text, stdout);
    sprintf(path, "/proc/%d/comm", tid);
    read_all(path, text, sizeof text);
    fputs(text, stdout);
    status("process", "/proc/self/status");
    sprintf(path, "/proc/self/task/%d/status", tid);
    status("thread", path);
    sprintf(path, "/proc/%d/status", tid);
    status("thread by its id", path);
    sprintf(path, "/proc/self/task/%d/status", getpid());
    status("first thread", path);
    stat_line("/proc/self/stat");
    sprintf(path, "/proc/self/task/%d/stat", tid);
    stat_line(path);
    sprintf(path, "/proc/%d/task/%d", tid, tid);
    SHOW(access(path, F_OK));
    sprintf(path, "/proc/%d/task", tid);
    SHOW(entries(path));
    sprintf(path, "/proc/self/task/%d/task", tid);
    SHOW(access(path, F_OK));
    sprintf(path, "/proc/self/task/%d/comm", getppid());
    SHOW(access(path, F_OK));
    sprintf(path, "/proc/self/task/%d", tid);
    fd = open(path, O_RDONLY | O_DIRECTORY);
    write(hold[1], "", 1);
    pthread_join(made, 0);
    for (int n = 0; n < 200 && entries("/proc/self/task") > 1; n++) poll(0, 0, 5);
    SHOW(entries("/proc/self/task"));
    SHOW(access(path, F_OK));
    SHOW(openat(fd, "comm", O_RDONLY));
    return 0;
}
