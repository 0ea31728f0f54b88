/* Filters of system calls: what may be installed, what filters answer, who inherits them. */
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ARGUMENT(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define ANSWER(a) BPF_STMT(BPF_RET | BPF_K, a)
#define IF(n, a) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), ANSWER(a)

static long install(struct sock_filter *code, int count, int flags) {
    struct sock_fprog program = {count, code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
#define INSTALL(flags, ...) ({ struct sock_filter code_[] = {__VA_ARGS__}; \
    install(code_, sizeof code_ / sizeof *code_, flags); })

static void told(const char *what) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    printf("%s:", what);
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, "Seccomp", 7) || !strncmp(line, "NoNewPrivs", 10)) {
            line[strcspn(line, "\n")] = 0;
            printf(" %s", line);
        }
    puts("");
    fclose(file);
    fflush(stdout);
}
static void trapped(int number, siginfo_t *info, void *context) {
    printf("signal %d code %d errno %d call %d arch %x at %d\n", number, info->si_code, info->si_errno,
           info->si_syscall == SYS_getppid, info->si_arch != 0, info->si_call_addr != 0);
    fflush(stdout);
}
static void ends(const char *what, pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: signal %d\n", what, WTERMSIG(status));
    else printf("%s: exit %d\n", what, WEXITSTATUS(status));
    fflush(stdout);
}
#define CHILD(what, ...) do { fflush(stdout); pid_t pid_ = fork(); \
    if (!pid_) { __VA_ARGS__; fflush(stdout); _exit(0); } ends(what, pid_); } while (0)

static volatile int going = 1;
static void *calls(void *argument) {
    while (going) usleep(1000);
    errno = 0;
    long result = syscall(SYS_getuid);
    printf("thread: getuid %ld %s\n", result == -1 ? -1L : 0L, strerrorname_np(errno));
    fflush(stdout);
    return 0;
}
static void *dies(void *argument) {
    syscall(SYS_getppid);
    puts("never");
    return 0;
}

static uint64_t state;
static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}
static const unsigned short codes[] = {0x20, 0x20, 0x20, 0x80, 0x81, 0x00, 0x01, 0x60, 0x61, 0x02, 0x03, 0x07,
    0x87, 0x06, 0x16, 0x84, 0x05, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54, 0x5c,
    0x64, 0x6c, 0x74, 0x7c, 0xa4, 0xac, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d,
    /* refused: halves and bytes, indirect loads, remainders, nonsense */ 0x28, 0x30, 0x40, 0x94, 0x9c, 0xb1, 0xff};
static const unsigned numbers[] = {0, 1, 2, 4, 5, 7, 8, 15, 16, 31, 32, 33, 60, 61, 64, 0xff, 0xffff, 0x7fffffff,
    0x80000000, 0xffffffff, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | 13, SECCOMP_RET_ERRNO | 5000};
static unsigned one(void) { return numbers[draw(sizeof numbers / sizeof *numbers)]; }

/* A program drawn at random: most are sensible but for one place. */
static void random_filter(int round) {
    struct sock_filter code[16];
    int count = 1 + draw(12), odd = draw(3) ? -1 : (int)draw(count);
    for (int i = 0; i < count; i++) {
        int sensible = i != odd;
        code[i].code = codes[draw(sensible ? 43 : sizeof codes / sizeof *codes)];
        code[i].jt = sensible ? draw(count - i) : draw(8);
        code[i].jf = sensible ? draw(count - i) : draw(8);
        code[i].k = one();
        if (!sensible) continue;
        if (code[i].code == 0x20) code[i].k = 4 * draw(16);
        if (code[i].code == 0x60 || code[i].code == 0x61) code[i].code -= 0x5e, code[i].k = draw(16);
        if (code[i].code == 2 || code[i].code == 3) code[i].k = draw(16);
        if (code[i].code == 0x64 || code[i].code == 0x74) code[i].k = draw(32);
        if (code[i].code == 0x05) code[i].k = draw(count - i);
        if (code[i].code == 0x34) code[i].k |= 1;
        if (code[i].code == 0x16 || code[i].code == 0x06) code[i].code = 0x84;
    }
    if (odd != count - 1) {
        code[count - 1].code = draw(2) ? 0x16 : 0x06;
        code[count - 1].k = SECCOMP_RET_ERRNO | draw(200);
    }
    /* Let what tells of it through, whatever the program says, by not calling anything but exit. */
    struct sock_filter front[] = {NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW), BPF_STMT(BPF_LD | BPF_IMM, 0)};
    struct sock_filter all[20];
    memcpy(all, front, sizeof front);
    memcpy(all + 4, code, count * sizeof *code);
    printf("%d: ", round);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        errno = 0;
        long done = install(all, 4 + count, 0);
        if (done) _exit(100 + errno % 100);
        signal(SIGSYS, SIG_DFL);
        int sum = 0;
        for (int i = 0; i < 4; i++) {
            errno = 0;
            long result = syscall(SYS_getppid, 3 * i, 0x123456789abcdefUL * i, -1, 0, i, 1UL << 40);
            sum = sum * 31 + (result == -1 ? errno : 7);
        }
        _exit(sum % 97);
    }
    ends("filter", pid);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "again")) {
        told("after execve");
        errno = 0;
        long result = syscall(SYS_getuid);
        printf("getuid: %ld %s\n", result == -1 ? -1L : 0L, strerrorname_np(errno));
        return 0;
    }
    told("at first");
    SHOW(prctl(PR_GET_SECCOMP));
    SHOW(INSTALL(0, ANSWER(SECCOMP_RET_ALLOW)));
    SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0));
    SHOW(prctl(PR_SET_SECCOMP, 3));
    SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 8));
    SHOW(syscall(SYS_seccomp, 99, 0, 0));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8));
    SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 20, 0));
    SHOW(INSTALL(0, NUMBER));
    SHOW(install((void *)8, 3, 0));
    SHOW(install((void *)8, 0, 0));
    SHOW(install((void *)8, 5000, 0));
    unsigned actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO,
        SECCOMP_RET_TRACE, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW, 12345};
    for (int i = 0; i < 8; i++) SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]));
    SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &actions[0]));
    SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 8));

    CHILD("strict", SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)); syscall(SYS_exit, 3));
    CHILD("strict, and a call", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); getppid(); syscall(SYS_exit, 0));
    CHILD("filter, then strict", SHOW(INSTALL(0, ANSWER(SECCOMP_RET_ALLOW)));
          SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)); told("filter"); SHOW(prctl(PR_GET_SECCOMP)));
    CHILD("errno", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO | 77), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(syscall(SYS_getppid)));
    CHILD("errno of more than there are", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO | 0xffff),
          ANSWER(SECCOMP_RET_ALLOW)); printf("%d\n", syscall(SYS_getppid) == -1 && errno == 4095));
    CHILD("errno 0", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(syscall(SYS_getppid)));
    CHILD("by an argument", INSTALL(0, NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup, 0, 3), ARGUMENT(0),
          IF(1, SECCOMP_RET_ERRNO | 5), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(dup(1)); SHOW(dup(2) > 0); SHOW(dup(1)); SHOW(dup(-1)));
    CHILD("a number that there is not", INSTALL(0, NUMBER, IF(-5u, SECCOMP_RET_ERRNO | 9),
          IF(5000, SECCOMP_RET_ERRNO | 8), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(syscall(-5)); SHOW(syscall(5000)); SHOW(syscall(5001)));
    CHILD("trap", struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
          sigaction(SIGSYS, &action, 0);
          INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_TRAP | 5), ANSWER(SECCOMP_RET_ALLOW));
          syscall(SYS_getppid));
    CHILD("trap, no handler", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_TRAP), ANSWER(SECCOMP_RET_ALLOW));
          syscall(SYS_getppid));
    CHILD("trap, blocked", sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0);
          INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_TRAP), ANSWER(SECCOMP_RET_ALLOW)); syscall(SYS_getppid));
    CHILD("kill", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_KILL_PROCESS), ANSWER(SECCOMP_RET_ALLOW));
          syscall(SYS_getppid));
    CHILD("an action that there is not", INSTALL(0, NUMBER, IF(SYS_getppid, 0x12340000), ANSWER(SECCOMP_RET_ALLOW));
          syscall(SYS_getppid));
    CHILD("log", INSTALL(SECCOMP_FILTER_FLAG_LOG, NUMBER, IF(SYS_getppid, SECCOMP_RET_LOG), ANSWER(SECCOMP_RET_ALLOW));
          TRUE(syscall(SYS_getppid) == getppid()));
    CHILD("trace, nobody traces", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_TRACE), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(syscall(SYS_getppid)));
    CHILD("two filters", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO | 1), IF(SYS_getuid, SECCOMP_RET_ERRNO | 2),
          ANSWER(SECCOMP_RET_ALLOW)); INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO | 3),
          IF(SYS_getuid, SECCOMP_RET_LOG), IF(SYS_getgid, SECCOMP_RET_ERRNO | 4), ANSWER(SECCOMP_RET_ALLOW));
          SHOW(syscall(SYS_getppid)); SHOW(syscall(SYS_getuid)); SHOW(syscall(SYS_getgid)); told("two"));
    CHILD("inherited", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_ERRNO | 6), ANSWER(SECCOMP_RET_ALLOW));
          CHILD("its child", SHOW(syscall(SYS_getppid)); told("child")));
    CHILD("execve", INSTALL(0, NUMBER, IF(SYS_getuid, SECCOMP_RET_ERRNO | 11), ANSWER(SECCOMP_RET_ALLOW));
          char *words[] = {argv[0], "again", 0}; char *none[] = {0}; execve("/proc/self/exe", words, none));
    CHILD("as many as there may be", struct sock_filter code[4096]; for (int i = 0; i < 4095; i++)
          code[i] = (struct sock_filter)NUMBER; code[4095] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
          for (int i = 0; i < 9; i++) SHOW(install(code, 4096, 0)));
    CHILD("threads", pthread_t other; pthread_create(&other, 0, calls, 0);
          SHOW(INSTALL(0, NUMBER, IF(SYS_getuid, SECCOMP_RET_ERRNO | 7), ANSWER(SECCOMP_RET_ALLOW)));
          going = 0; pthread_join(other, 0); SHOW(syscall(SYS_getuid)));
    CHILD("threads in step", pthread_t other; pthread_create(&other, 0, calls, 0);
          SHOW(INSTALL(SECCOMP_FILTER_FLAG_TSYNC, NUMBER, IF(SYS_getuid, SECCOMP_RET_ERRNO | 7), ANSWER(SECCOMP_RET_ALLOW)));
          going = 0; pthread_join(other, 0); SHOW(syscall(SYS_getuid)));
    CHILD("a thread is killed", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_KILL_THREAD), ANSWER(SECCOMP_RET_ALLOW));
          pthread_t other; pthread_create(&other, 0, dies, 0); usleep(50000); puts("goes on"));
    CHILD("the process is killed", INSTALL(0, NUMBER, IF(SYS_getppid, SECCOMP_RET_KILL_PROCESS), ANSWER(SECCOMP_RET_ALLOW));
          pthread_t other; pthread_create(&other, 0, dies, 0); usleep(500000); puts("goes on"));
    state = argc > 2 ? atoi(argv[2]) : 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 0;
    for (int i = 0; i < rounds; i++) random_filter(i);
    return 0;
}
