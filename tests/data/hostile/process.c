/* Multiplies, attacks other processes, and loops for ever. */
#include "hostile.h"

static int bomb(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 last = 0, children = 0;
    for (u32 i = 0; i < 500; i++) {
        last = SYS(__NR_clone, 17, 0, 0, 0, 0);
#ifdef __x86_64__
        if (last < 0)
            last = SYS(__NR_fork);
        if (last < 0)
            last = SYS(__NR_vfork);
#endif
        u64 arguments[11] = {0};
        arguments[4] = 17;
        if (last < 0)
            SYS(__NR_clone3, arguments, sizeof arguments);
        if (last == 0)
            SYS(__NR_exit_group, 0);
        children += last > 0;
    }
    show("children", children);
    show("last", last);
    return 0;
}

static int attack(int argc, char **argv)
{
    s64 host = argc ? number(argv[0]) : 1;
    show("kill 1", SYS(__NR_kill, 1, 9));
    show("kill all", SYS(__NR_kill, -1, 9));
    show("kill host", SYS(__NR_kill, host, 9));
    show("kill host group", SYS(__NR_kill, -host, 9));
    show("tgkill host", SYS(__NR_tgkill, host, host, 9));
    show("tkill host", SYS(__NR_tkill, host, 9));
    show("sigqueue host", SYS(__NR_rt_sigqueueinfo, host, 9, argv) < 0);
    show("pidfd of host", SYS(__NR_pidfd_open, host, 0) < 0);
    show("ptrace attach", SYS(__NR_ptrace, 16, host, 0, 0));
    show("ptrace traceme", SYS(__NR_ptrace, 0, 0, 0, 0));
    u64 word = 0, vector[2] = {(u64)&word, 8};
    show("process_vm_readv", SYS(__NR_process_vm_readv, host, vector, 1, vector, 1, 0));
    show("process_vm_writev", SYS(__NR_process_vm_writev, host, vector, 1, vector, 1, 0));
    show("prlimit of host", SYS(__NR_prlimit64, host, 7, NULL, vector));
    show("setuid", SYS(__NR_setuid, 0));
    show("reboot", SYS(__NR_reboot, 0xfee1dead, 672274793, 0x4321fedc, 0));
    show("init_module", SYS(__NR_init_module, &word, 8, ""));
    show("bpf", SYS(__NR_bpf, 0, &word, 8));
    show("perf_event_open", SYS(__NR_perf_event_open, &word, 0, -1, -1, 0));
    show("unshare", SYS(__NR_unshare, 0x10000000) < 0);
    show("setns", SYS(__NR_setns, 0, 0) < 0);
    show("userfaultfd", SYS(__NR_userfaultfd, 0) < 0);
    show("io_uring", SYS(__NR_io_uring_setup, 1, &word));
    show("keyctl", SYS(__NR_keyctl, 0, 0) < 0);
    show("no such call", SYS(100000, 0));
    show("no such call", SYS(-1, 0));
    return 0;
}

static int spin(int argc, char **argv)
{
    (void)argc, (void)argv;
    say("spinning");
    for (;;)
        __asm__ volatile("" ::: "memory");
}

static int calls(int argc, char **argv)
{
    (void)argc, (void)argv;
    say("calling");
    for (;;)
        SYS(__NR_getpid);
}

/* Blocks for ever in a wait that nothing ends. */
static int wait(int argc, char **argv)
{
    (void)argc, (void)argv;
    say("waiting");
    SYS(__NR_ppoll, NULL, 0, NULL, NULL, 8);
    return 4;
}

static volatile int seen;
static void count(int signal)
{
    seen = signal;
}

/* Ends with the number of the signal it gets, while it runs or (with an argument) while it waits. */
static int handle(int argc, char **argv)
{
    (void)argv;
    u64 all = -1ul, none = 0;
    on(SIGINT, (void *)count, 0), on(SIGTERM, (void *)count, 0);
    if (argc)
        SYS(__NR_rt_sigprocmask, 0, &all, NULL, 8);
    say("ready");
    while (!seen)
        if (argc)
            SYS(__NR_ppoll, NULL, 0, NULL, &none, 8);
    show("signal", seen);
    return 40 + seen;
}

static int ignore(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct action action = {(void *)1, 0, NULL, 0};
    for (int signal = 1; signal < 65; signal++)
        SYS(__NR_rt_sigaction, signal, &action, NULL, 8);
    u64 all = -1ul;
    SYS(__NR_rt_sigprocmask, 0, &all, NULL, 8);
    say("ready");
    for (;;)
        if (argc)
            SYS(__NR_ppoll, NULL, 0, NULL, NULL, 8);
}

static int arguments(int argc, char **argv)
{
    u64 total = 0;
    for (int i = 0; i < argc; i++)
        for (char *c = argv[i]; *c; c++)
            total++;
    show("arguments", argc);
    show("bytes", (s64)total);
    return 0;
}

static int echo(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        say(argv[i]);
    return 0;
}

static int leave(int argc, char **argv)
{
    if (argc > 1 && number(argv[1]) > 0)
        SYS(__NR_kill, SYS(__NR_getpid), number(argv[1]));
    return (int)number(argv[0]);
}

/* argv[0], working directory, environment and AT_RANDOM, one a line. */
static int self(int argc, char **argv)
{
    static char directory[4096];
    say(argv[-2]);
    SYS(__NR_getcwd, directory, sizeof directory);
    say(directory);
    char **env = argv + argc + 1;
    for (; *env; env++)
        say(*env);
    for (u64 *entry = (u64 *)(env + 1); entry[0]; entry += 2)
        if (entry[0] == 25) {
            print_hex(*(u64 *)entry[1]);
            print("\n");
        }
    u64 random = 0, now[2];
    SYS(__NR_getrandom, &random, 8, 0);
    print_hex(random);
    print("\n");
    SYS(__NR_clock_gettime, 0, now);
    show("time", (s64)now[0]);
    return 0;
}

/* Reads standard input to its end and writes it out again. */
static int copy(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char data[4096];
    s64 got;
    while ((got = sys_read(0, data, sizeof data)) > 0)
        sys_write(1, data, (size_t)got);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"bomb", bomb},     {"attack", attack},       {"spin", spin}, {"calls", calls}, {"wait", wait}, {"handle", handle},
        {"ignore", ignore}, {"arguments", arguments}, {"echo", echo}, {"exit", leave},  {"self", self}, {"copy", copy},
    };
    return CHOOSE(modes);
}
