/* Processes: fork, vfork, exec, wait, kill, process groups, sessions. */
#include "guest.h"
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char **environment;
static const char *self;
static int ready[2]; /* says that a child is where its parent wants it, however late */
static int alone; /* the host's programs are of another architecture */

static void status_of(const char *what, int status) {
    if (WIFEXITED(status)) printf("%s: exited %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) printf("%s: killed by %d\n", what, WTERMSIG(status));
    else printf("%s: %x\n", what, status);
    fflush(stdout);
}

static pid_t child(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    return pid;
}

static void leave_7(void) { _exit(7); }
static void leave_263(void) { _exit(263); }
static void die_segv(void) { *(volatile int *)16 = 1; }
static void die_abort(void) { abort(); }
static void die_pipe(void) {
    int ends[2];
    pipe(ends);
    close(ends[0]);
    write(ends[1], "x", 1);
}
static void sleep_on(void) { pause(); }

static void waits(void) {
    static const int options[] = {0, 1, 2, 3, 4, 8, 0x01000000, 0x20000000, 0x40000000, 0x80000000,
                                  0x10, 0x01000001, 0x01000004, 5, 6, 12, 0x100};
    static const int pids[] = {-1, 0, 1, 99999, -99999, (int)0x80000000};
    int status;
    siginfo_t info;
    for (unsigned o = 0; o < sizeof options / sizeof *options; o++) {
        for (unsigned p = 0; p < sizeof pids / sizeof *pids; p++) {
            printf("wait4 %d %x ", pids[p], options[o]);
            SHOW(syscall(SYS_wait4, pids[p], &status, options[o], 0));
        }
        for (int which = -1; which < 5; which++) {
            printf("waitid %d %x ", which, options[o]);
            if (which != 3) SHOW(syscall(SYS_waitid, which, 99999, &info, options[o], 0));
        }
    }
    static void (*const bodies[])(void) = {leave_7, leave_263, die_segv, die_abort, die_pipe};
    for (unsigned b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        pid_t pid = child(bodies[b]);
        status = 0;
        TRUE(waitpid(pid, &status, 0) == pid);
        status_of("status", status & ~0x80);
        SHOW(waitpid(pid, &status, 0));
        pid = child(bodies[b]);
        memset(&info, 0, sizeof info);
        SHOW(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
        TRUE(info.si_pid == pid && info.si_signo == SIGCHLD && info.si_uid == getuid());
        int code = info.si_code == CLD_DUMPED ? CLD_KILLED : info.si_code;
        printf("code %d status %d\n", code, info.si_status);
        SHOW(kill(pid, 0));
        SHOW(kill(pid, SIGKILL));
        TRUE(waitpid(0, &status, WNOHANG) == pid);
        SHOW(kill(pid, 0));
    }
    pid_t one = child(sleep_on), two = child(sleep_on);
    SHOW(waitpid(-1, &status, WNOHANG));
    memset(&info, 1, sizeof info);
    SHOW(waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
    printf("pid %d signo %d\n", info.si_pid, info.si_signo);
    SHOW(kill(two, SIGTERM));
    TRUE(waitpid(-1, &status, 0) == two);
    status_of("second", status);
    SHOW(kill(one, SIGUSR1));
    TRUE(wait(&status) == one);
    status_of("first", status);
    SHOW(wait(&status));
    signal(SIGCHLD, SIG_IGN);
    child(leave_7);
    SHOW(wait(&status));
    signal(SIGCHLD, SIG_DFL);
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &action, 0);
    child(leave_7);
    SHOW(wait(&status));
    action.sa_flags = 0;
    sigaction(SIGCHLD, &action, 0);
    struct rusage usage;
    SHOW(getrusage(RUSAGE_CHILDREN, &usage));
}

static volatile sig_atomic_t heard, told_pid, told_status;
static void on_child(int number, siginfo_t *info, void *context) {
    heard++;
    told_pid = info->si_pid;
    told_status = info->si_status;
}

static char state(pid_t pid) {
    char path[32], line[256] = "";
    sprintf(path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY);
    read(file, line, sizeof line - 1);
    close(file);
    char *end = strrchr(line, ')');
    return end ? end[2] : '?';
}
static void state_of(const char *what, pid_t pid) { printf("%s: %c\n", what, state(pid)); }

static void states(void) {
    struct timespec moment = {0, 1000000};
    siginfo_t info;
    int status;
    pid_t one = child(sleep_on), two = child(leave_7);
    for (int turns = 0; turns < 1000 && state(one) != 'S'; turns++) nanosleep(&moment, 0);
    state_of("itself", getpid());
    state_of("sleeping", one);
    waitid(P_PID, two, &info, WEXITED | WNOWAIT);
    state_of("over", two);
    kill(one, SIGSTOP);
    waitid(P_PID, one, &info, WSTOPPED);
    state_of("stopped", one);
    kill(one, SIGKILL);
    wait(&status), wait(&status);
}

static void notices(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, 0);
    int status;
    pid_t pid = child(leave_7);
    TRUE(waitpid(pid, &status, 0) == pid);
    TRUE(heard == 1 && told_pid == pid && told_status == 7);
    int ends[2];
    pipe(ends);
    heard = 0;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    pid = child(leave_7);
    struct pollfd waiting = {ends[0], POLLIN};
    struct timespec limit = {5, 0};
    SHOW(ppoll(&waiting, 1, &limit, &before)); /* heard while it waits, however late it does */
    sigprocmask(SIG_SETMASK, &before, 0);
    TRUE(heard == 1);
    TRUE(wait(&status) == pid);
    signal(SIGCHLD, SIG_DFL);
    close(ends[0]);
    close(ends[1]);
}

static void kills(void) {
    static const int numbers[] = {-1, 0, 65, 1000};
    static const int pids[] = {99999, -99999, (int)0x80000000};
    for (unsigned n = 0; n < 4; n++) {
        SHOW(kill(getpid(), numbers[n]));
        SHOW(kill(0, numbers[n]));
        for (unsigned p = 0; p < 3; p++) SHOW(kill(pids[p], numbers[n]));
        SHOW(syscall(SYS_tkill, getpid(), numbers[n]));
        SHOW(syscall(SYS_tkill, -1, numbers[n]));
        SHOW(syscall(SYS_tkill, 0, numbers[n]));
        SHOW(syscall(SYS_tgkill, getpid(), getpid(), numbers[n]));
        SHOW(syscall(SYS_tgkill, 1, getpid(), numbers[n]));
        SHOW(syscall(SYS_tgkill, getpid(), 99999, numbers[n]));
        SHOW(syscall(SYS_tgkill, -1, getpid(), numbers[n]));
    }
    siginfo_t info = {.si_code = SI_QUEUE, .si_signo = 10};
    SHOW(syscall(SYS_rt_sigqueueinfo, 99999, SIGUSR1, &info));
    SHOW(syscall(SYS_rt_sigqueueinfo, 0, SIGUSR1, &info));
    info.si_code = SI_USER;
    pid_t pid = child(sleep_on);
    SHOW(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &info));
    SHOW(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &info));
    info.si_code = SI_QUEUE;
    SHOW(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &info));
    int status;
    wait(&status);
    status_of("queued", status);
}

static void set_own_group(void) {
    SHOW(setpgid(0, 0));
    TRUE(getpgid(0) == getpid() && getpgrp() == getpid());
    SHOW(setsid());
    SHOW(setpgid(0, 99999));
    SHOW(setpgid(99999, 0));
    SHOW(setpgid(0, -5));
    SHOW(setpgid(getppid(), 0));
}
static void lead(void) {
    TRUE(setsid() == getpid());
    TRUE(getsid(0) == getpid() && getpgid(0) == getpid());
    SHOW(setpgid(0, 0));
    SHOW(setsid());
    TRUE(getsid(getppid()) != getpid());
}
static void group_of_two(void) {
    setpgid(0, 0);
    pid_t one = child(sleep_on), two = child(sleep_on);
    signal(SIGTERM, SIG_IGN);
    SHOW(kill(0, SIGTERM));
    int status;
    wait(&status);
    status_of("one of the group", status);
    wait(&status);
    status_of("the other one", status);
    SHOW(waitpid(0, &status, 0));
    SHOW(waitpid(-getpgrp(), &status, 0));
}

static void groups(void) {
    int status;
    child(set_own_group), wait(&status);
    child(lead), wait(&status);
    child(group_of_two), wait(&status);
    SHOW(getpgid(99999));
    SHOW(getsid(99999));
    SHOW(getpgid(-1));
    pid_t pid = child(sleep_on);
    SHOW(setpgid(pid, pid));
    TRUE(getpgid(pid) == pid);
    SHOW(waitpid(0, &status, WNOHANG));
    SHOW(waitpid(-pid, &status, WNOHANG));
    SHOW(kill(-pid, SIGKILL));
    TRUE(waitpid(-pid, &status, 0) == pid);
    status_of("of another group", status);
    SHOW(setpgid(pid, pid));
}

static void memories(void) {
    static int private_word = 1;
    int status;
    int *both = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int *own = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *both = *own = 1;
    fflush(stdout);
    if (!fork()) {
        private_word = *both = *own = 2;
        mprotect(own, PAGE, PROT_READ);
        _exit(*own + private_word);
    }
    wait(&status);
    status_of("forked", status);
    printf("%d %d %d\n", private_word, *both, *own);
    *own = 5;
    fflush(stdout);
    volatile int before = 3;
    if (!vfork()) {
        before = 4;
        private_word = 9;
        _exit(1);
    }
    printf("vfork: %d %d\n", before, private_word);
    wait(&status);
    status_of("vforked", status);
    int file = memfd_create("shared", 0), offset;
    write(file, "0123456789", 10);
    lseek(file, 2, SEEK_SET);
    fflush(stdout);
    if (!fork()) {
        char two[3] = "";
        read(file, two, 2);
        printf("child reads %s\n", two);
        fflush(stdout);
        close(file);
        _exit(0);
    }
    wait(&status);
    offset = lseek(file, 0, SEEK_CUR);
    printf("offset %d\n", offset);
    close(file);
}

static void orphan(void) {
    if (!fork()) {
        struct pollfd nothing;
        poll(&nothing, 0, 20);
        _exit(33);
    }
    _exit(0);
}
static void mourned(void) {
    prctl(PR_SET_PDEATHSIG, SIGUSR2);
    write(ready[1], "", 1);
    pause();
}
static void parent_of_mourner(void) {
    char byte;
    pipe(ready);
    child(mourned);
    read(ready[0], &byte, 1);
    _exit(0);
}

static void orphans(void) {
    int status;
    SHOW(prctl(PR_SET_CHILD_SUBREAPER, 1));
    child(orphan);
    wait(&status);
    status_of("parent", status);
    wait(&status);
    status_of("adopted", status);
    child(parent_of_mourner);
    wait(&status);
    status_of("parent", status);
    wait(&status);
    status_of("mourner", status);
    SHOW(prctl(PR_SET_CHILD_SUBREAPER, 0));
}

static void put(const char *name, const char *text, int mode) {
    int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    write(file, text, strlen(text));
    fchmod(file, mode);
    close(file);
}

static void run(const char *path, char *const argv[], char *const env[]) {
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        execve(path, argv, env);
        show(path, -1);
        _exit(120);
    }
    waitpid(pid, &status, 0);
    status_of(path == self ? "itself" : path, status);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
    return remove(path);
}

static void execs(void) {
    char *words[] = {"exec", "told", "a b", 0}, *none[] = {0}, *env[] = {"X=1", "Y=2", 0};
    char template[] = "/tmp/kprobe-exec-XXXXXX";
    if (!mkdtemp(template) || chdir(template)) return;
    put("text", "echo not a program\n", 0755);
    put("empty", "", 0755);
    put("hidden", "#!/bin/sh\n", 0644);
    put("script", "#!/bin/sh\necho script $# \"$1\" \"$2\"\nexit 6\n", 0755);
    put("argument", "#!/bin/echo  one two  \n", 0755);
    put("nothing", "#!\n", 0755);
    put("nowhere", "#!/no/such/interpreter\n", 0755);
    put("again", "#!./script\n", 0755);
    put("loop", "#!./loop\n", 0755);
    mkdir("folder", 0755);
    symlink("circle", "circle");
    static const char *const paths[] = {"text", "empty", "hidden", "nothing", "nowhere", "loop",
                                        "folder", "circle", "missing", "text/x", "", "folder/x"};
    for (unsigned p = 0; p < sizeof paths / sizeof *paths; p++) run(paths[p], words, env);
    if (!alone) {
        run("./script", words, env);
        run("./argument", words, env);
        run("./again", words, env);
    }
    run(self, words, env);
    run(self, words, none);
    run(self, words, 0);
    fflush(stdout);
    SHOW(execve((void *)8, words, env));
    SHOW(execve(self, (void *)8, env));
    SHOW(execve(self, words, (void *)8));
    SHOW(syscall(SYS_execveat, AT_FDCWD, "text", words, env, 0x8000));
    SHOW(syscall(SYS_execveat, 77, "text", words, env, 0));
    SHOW(syscall(SYS_execveat, AT_FDCWD, "circle", words, env, AT_SYMLINK_NOFOLLOW));
    int kept = open("/dev/null", O_RDONLY), closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char number[16], other[16];
    sprintf(number, "%d", kept);
    sprintf(other, "%d", closed);
    char *fds[] = {"exec", "fds", number, other, 0};
    run(self, fds, env);
    int status;
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, (void (*)(int))on_child);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, 0);
    char *signals[] = {"exec", "signals", 0};
    fflush(stdout);
    if (!fork()) {
        raise(SIGALRM);
        execve(self, signals, env);
        _exit(120);
    }
    wait(&status);
    status_of("signals", status);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    signal(SIGUSR1, SIG_DFL), signal(SIGUSR2, SIG_DFL);
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, kept);
    printf("posix_spawn: %d\n", posix_spawn(&pid, self, &actions, 0, fds, env));
    waitpid(pid, &status, 0);
    status_of("spawned", status);
    printf("posix_spawn: %d\n", posix_spawn(&pid, "missing", 0, 0, fds, env));
    pid = child(sleep_on);
    char command[64];
    pipe2(ready, O_CLOEXEC);
    fflush(stdout);
    pid_t other_pid = fork();
    if (!other_pid) {
        char *sleeper[] = {"exec", "sleep", 0};
        execve(self, sleeper, env);
        _exit(1);
    }
    close(ready[1]);
    SHOW(read(ready[0], command, 1)); /* the other one has begun its program */
    close(ready[0]);
    SHOW(setpgid(pid, 0));
    SHOW(setpgid(other_pid, 0));
    kill(pid, SIGKILL), kill(other_pid, SIGKILL);
    wait(&status), wait(&status);
    chdir("/");
    if (alone) {
        nftw(template, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return;
    }
    sprintf(command, "rm -r %s", template);
    SHOW(system(command));
    SHOW(system("exit 3") >> 8);
    SHOW(system("kill -9 $$"));
}

static int executed(int argc, char **argv) {
    if (!strcmp(argv[1], "told")) {
        printf("executed with %d:", argc);
        for (int a = 0; a < argc; a++) printf(" [%s]", argv[a]);
        for (char **e = environment; e && *e; e++) printf(" {%s}", *e);
        printf("\n");
        return 44;
    }
    if (!strcmp(argv[1], "fds")) {
        SHOW(fcntl(atoi(argv[2]), F_GETFD));
        SHOW(fcntl(atoi(argv[3]), F_GETFD));
        return 0;
    }
    if (!strcmp(argv[1], "signals")) {
        struct sigaction one, two;
        sigset_t blocked, pending;
        sigaction(SIGUSR1, 0, &one);
        sigaction(SIGUSR2, 0, &two);
        sigprocmask(SIG_BLOCK, 0, &blocked);
        sigpending(&pending);
        TRUE(one.sa_handler == SIG_IGN);
        TRUE(two.sa_handler == SIG_DFL);
        TRUE(sigismember(&blocked, SIGALRM) && sigismember(&pending, SIGALRM));
        return 0;
    }
    pause();
    return 0;
}

static void clones(void) {
    static const unsigned long flags[] = {
        CLONE_THREAD, CLONE_SIGHAND, CLONE_THREAD | CLONE_VM, CLONE_SIGHAND | CLONE_FS,
        CLONE_NEWNS, CLONE_NEWNS | CLONE_FS, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNET,
        CLONE_NEWNS | CLONE_VM, CLONE_THREAD | SIGCHLD,
    };
    for (unsigned f = 0; f < sizeof flags / sizeof *flags; f++) {
        printf("clone %lx ", flags[f]);
        SHOW(syscall(SYS_clone, flags[f], 0, 0, 0, 0));
    }
    struct { uint64_t words[11]; uint64_t more[2]; } args = {{0}};
    static const int sizes[] = {0, 8, 63, 64, 72, 80, 88, 5000};
    args.words[0] = CLONE_THREAD;
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        printf("clone3 %d ", sizes[s]);
        SHOW(syscall(SYS_clone3, &args, sizes[s]));
    }
    args.words[0] = 0;
    for (int word = 4; word < 7; word++) {
        args.words[word] = word == 4 ? 200 : 0x1000;
        printf("clone3 word %d ", word);
        SHOW(syscall(SYS_clone3, &args, 88));
        args.words[word] = 0;
    }
    args.more[0] = 1;
    SHOW(syscall(SYS_clone3, &args, 96));
    SHOW(syscall(SYS_clone3, (void *)8, 88));
    args.more[0] = 0;
    fflush(stdout);
    int status, parent_tid = 0;
    args.words[0] = CLONE_PARENT_SETTID;
    args.words[3] = (uint64_t)&parent_tid;
    args.words[4] = SIGCHLD;
    long pid = syscall(SYS_clone3, &args, 88);
    if (!pid) _exit(12);
    TRUE(pid == parent_tid);
    wait(&status);
    status_of("clone3", status);
    args.words[4] = SIGUSR1;
    args.words[0] = 0;
    signal(SIGUSR1, SIG_IGN);
    pid = syscall(SYS_clone3, &args, 88);
    if (!pid) _exit(13);
    TRUE(waitpid(pid, &status, __WALL) == pid);
    status_of("another signal", status);
    signal(SIGUSR1, SIG_DFL);
}

/* Memory that nobody has written to since a fork is shared (redis asks for that). */
static char *page;
static void dirty(const char *who) {
    char line[300], wanted[40];
    int found = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    sprintf(wanted, "%lx-", (long)page);
    while (fgets(line, sizeof line, file)) {
        if (strchr(line, '-') && strncmp(line, wanted, strlen(wanted)) == 0) found = 1;
        if (found && (strstr(line, "Shared_Dirty") || strstr(line, "Private_Dirty"))) printf("%s %s", who, line);
        if (strstr(line, "Private_Dirty")) found = 0;
    }
    fclose(file);
    fflush(stdout);
}
static void of_child(void) { dirty("child"); }
static void shares(void) {
    page = mmap(0, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page += PAGE;
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    *page = 1;
    dirty("before");
    int status;
    waitpid(child(of_child), &status, 0);
    dirty("after");
    munmap(page - PAGE, 3 * PAGE);
}

int main(int argc, char **argv, char **env) {
    environment = env;
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    static char path[4096];
    readlink("/proc/self/exe", path, sizeof path - 1);
    self = path;
    if (argc > 1 && !strcmp(argv[0], "exec")) {
        int code = executed(argc, argv);
        fflush(stdout);
        return code;
    }
    alone = argc > 3;
    waits();
    states();
    notices();
    kills();
    groups();
    memories();
    shares();
    orphans();
    execs();
    clones();
    return 0;
}
