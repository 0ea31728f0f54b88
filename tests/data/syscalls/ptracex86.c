/* Tracing on x86-64: registers, steps, system calls that are changed, debug registers. */
#include "guest.h"
#include <elf.h>
#include <linux/ptrace.h>
#include <sched.h>
#include <stddef.h>
#include <sys/reg.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define P(request, pid, address, data) \
    syscall(SYS_ptrace, (long)(request), (long)(pid), (long)(address), (long)(data))
#define USER(field) offsetof(struct user, field)
#ifndef PTRACE_GETREGS
#define PTRACE_GETREGS 12
#define PTRACE_SETREGS 13
#define PTRACE_GETFPREGS 14
#define PTRACE_SETFPREGS 15
#endif

static pid_t child(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        P(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    return pid;
}

static int look(const char *what, pid_t pid) {
    int status = 0;
    waitpid(pid, &status, __WALL);
    if (WIFEXITED(status)) printf("%s: exited %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) printf("%s: killed by %d\n", what, WTERMSIG(status));
    else {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        P(PTRACE_GETSIGINFO, pid, 0, &info);
        printf("%s: stopped by %d event %d code %#x\n", what, WSTOPSIG(status), status >> 16, info.si_code);
    }
    fflush(stdout);
    return status;
}

static struct user_regs_struct get(pid_t pid) {
    struct user_regs_struct regs;
    memset(&regs, 0, sizeof regs);
    P(PTRACE_GETREGS, pid, 0, &regs);
    return regs;
}

static void finish(pid_t pid) {
    P(PTRACE_KILL, pid, 0, 0);
    look("end", pid);
}

/* -- general registers --------------------------------------------------------------------- */

__attribute__((naked, noinline)) static long loaded(void) {
    asm volatile("push %rbx; push %r12; push %r15\n"
                 "mov $0x1111, %rbx; mov $0x2222, %r12; mov $0x3333, %r15; mov $0x4444, %rsi\n"
                 "mov $0x5555, %rdi; mov $0x6666, %rdx; mov $0x7777, %r8; mov $0x8888, %r9\n"
                 "mov $0x9999, %r10; mov $0xaaaa, %rax; stc; int3\n"
                 "mov %rbx, %rax; pop %r15; pop %r12; pop %rbx; ret");
}
static void loads(void) { _exit(loaded() == 0x77 ? 5 : 6); }

static void general(void) {
    printf("general registers\n");
    pid_t pid = child(loads);
    look("stopped", pid);
    struct user_regs_struct regs = get(pid);
    printf("orig %s rax %ld\n", regs.orig_rax == SYS_tgkill ? "tgkill" : "?", (long)regs.rax);
    SHOW(P(PTRACE_GETREGS, pid, 0, 8));
    SHOW(P(PTRACE_SETREGS, pid, 0, 8));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    regs = get(pid);
    printf("%llx %llx %llx %llx %llx %llx %llx %llx %llx %llx\n", regs.rbx, regs.r12, regs.r15, regs.rsi,
           regs.rdi, regs.rdx, regs.r8, regs.r9, regs.r10, regs.rax);
    printf("cs %llx ss %llx ds %llx es %llx fs %llx gs %llx orig %lld\n", regs.cs, regs.ss, regs.ds, regs.es,
           regs.fs, regs.gs, regs.orig_rax);
    printf("flags %llx gs_base %llx\n", regs.eflags & ~0x44ULL, regs.gs_base);
    TRUE(regs.fs_base != 0);
    unsigned long word = 1;
    printf("byte %lx\n", (P(PTRACE_PEEKTEXT, pid, regs.rip - 1, &word), word & 0xFF));
    for (unsigned long at = 0; at < sizeof(struct user_regs_struct); at += 8) {
        word = 0;
        P(PTRACE_PEEKUSR, pid, at, &word);
        if (word != *(unsigned long *)((char *)&regs + at)) printf("user word %lu differs\n", at / 8);
    }
    SHOW(P(PTRACE_PEEKUSR, pid, 1, &word));
    SHOW(P(PTRACE_PEEKUSR, pid, sizeof(struct user), &word));
    SHOW(P(PTRACE_PEEKUSR, pid, sizeof(struct user) - 8, &word));
    SHOW(P(PTRACE_PEEKUSR, pid, -8, &word));
    SHOW(P(PTRACE_PEEKUSR, pid, 8 * RIP, 8));
    SHOW(P(PTRACE_PEEKUSR, pid, USER(u_tsize), &word));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_tsize), 5));
    SHOW(P(PTRACE_POKEUSR, pid, 4, 5));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * CS, 0));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * CS, 0x10));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * SS, 0));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * DS, 0x10));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * DS, 0));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * FS_BASE, 1L << 47));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * FS_BASE, -1));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * GS_BASE, 0x12345));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * EFLAGS, 0xFFFFFFFF));
    SHOW(P(PTRACE_PEEKUSR, pid, 8 * EFLAGS, &word));
    printf("flags %lx\n", word);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * EFLAGS, 0));
    SHOW(P(PTRACE_PEEKUSR, pid, 8 * EFLAGS, &word));
    printf("flags %lx\n", word);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * RBX, 0x77));
    regs = get(pid);
    printf("rbx %llx gs_base %llx\n", regs.rbx, regs.gs_base);
    regs.cs = 0;
    regs.r15 = 0x3334;
    SHOW(P(PTRACE_SETREGS, pid, 0, &regs));
    regs = get(pid);
    printf("r15 %llx cs %llx\n", regs.r15, regs.cs);
    struct iovec vector = {&regs, 24};
    regs.r15 = 1, regs.r14 = 2, regs.r13 = 3, regs.r12 = 4;
    SHOW(P(PTRACE_SETREGSET, pid, NT_PRSTATUS, &vector));
    regs = get(pid);
    printf("%llx %llx %llx %llx\n", regs.r15, regs.r14, regs.r13, regs.r12);
    SHOW(P(PTRACE_ARCH_PRCTL, pid, &word, 0x1003));
    TRUE(word == regs.fs_base);
    SHOW(P(PTRACE_ARCH_PRCTL, pid, 0x4444, 0x1001));
    SHOW(P(PTRACE_ARCH_PRCTL, pid, &word, 0x1004));
    printf("gs_base %lx\n", word);
    SHOW(P(PTRACE_ARCH_PRCTL, pid, 0x4444, 0x9999));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("end", pid);
}

/* -- floating point ------------------------------------------------------------------------ */

static void counts(void) {
    static const unsigned long lanes[2] = {0x1122334455667788, 0x99aabbccddeeff00};
    asm volatile("fninit; fld1; fldpi; movdqu %0, %%xmm3; int3" : : "m"(lanes) : "xmm3");
    unsigned long now[2];
    long double top;
    asm volatile("movdqu %%xmm5, %0; fstpt %1" : "=m"(now), "=m"(top));
    printf("xmm5 %lx %lx st0 %.3Lf\n", now[0], now[1], top);
    fflush(stdout);
    _exit(now[0] == 0x55 ? 7 : 8);
}

static void say_float(const struct user_fpregs_struct *fp) {
    printf("cwd %x swd %x ftw %x mxcsr %x mask %x\n", fp->cwd, fp->swd, fp->ftw, fp->mxcsr, fp->mxcr_mask & 0x7FFF);
    for (int n = 0; n < 3; n++) {
        for (int b = 9; b >= 0; b--) printf("%02x", ((unsigned char *)fp->st_space)[16 * n + b]);
        printf(" ");
    }
    printf("\nxmm3 %08x%08x%08x%08x\n", fp->xmm_space[15], fp->xmm_space[14], fp->xmm_space[13], fp->xmm_space[12]);
}

static void floating(void) {
    printf("floating point\n");
    pid_t pid = child(counts);
    struct user_fpregs_struct fp;
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    SHOW(P(PTRACE_GETFPREGS, pid, 0, &fp));
    say_float(&fp);
    fp.xmm_space[20] = 0x55, fp.xmm_space[21] = 0, fp.xmm_space[22] = 0x66, fp.xmm_space[23] = 0;
    memcpy(fp.st_space, (char *)fp.st_space + 16, 10);
    SHOW(P(PTRACE_SETFPREGS, pid, 0, &fp));
    SHOW(P(PTRACE_GETFPREGS, pid, 0, &fp));
    say_float(&fp);
    struct iovec vector = {&fp, sizeof fp};
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRFPREG, &vector));
    vector.iov_len = 16;
    SHOW(P(PTRACE_SETREGSET, pid, NT_PRFPREG, &vector));
    static unsigned char extended[65536];
    vector = (struct iovec){extended, sizeof extended};
    SHOW(P(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &vector));
    TRUE(vector.iov_len >= 576);
    TRUE(!memcmp(extended, &fp, 416));
    TRUE((*(unsigned long *)(extended + 512) & 3) == 3);
    TRUE((*(unsigned long *)(extended + 464) & 3) == 3);
    memset(extended + 160 + 16 * 5, 0, 16);
    extended[160 + 16 * 5] = 0x55;
    SHOW(P(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &vector));
    vector.iov_len = 512;
    SHOW(P(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &vector));
    P(PTRACE_CONT, pid, 0, 0); /* it says something itself */
    look("end", pid);
}

/* -- steps --------------------------------------------------------------------------------- */

static volatile int handled;
static void on_signal(int number) { handled = number; }
extern char step_from[], step_call[], step_after[], step_loop[], step_int[], step_end[];
__attribute__((noinline)) static void walks(void) {
    signal(SIGUSR1, on_signal);
    asm volatile("int3\n"
                 ".globl step_from, step_call, step_after, step_loop, step_int, step_end\n"
                 "step_from: nop; mov $39, %%eax\n"
                 "step_call: syscall\n"
                 "step_after: mov $2, %%ecx\n"
                 "step_loop: dec %%ecx; jnz step_loop\n"
                 "pushf; pop %%rax; and $0x100, %%eax\n"
                 "step_int: int3\n"
                 "step_end: nop; nop" ::: "rax", "rcx", "r11", "memory");
    _exit(4);
}

static const char *place(unsigned long at) {
    static char text[32];
    struct { const char *name; char *at; } known[] = {
        {"from", step_from}, {"call", step_call}, {"after", step_after}, {"loop", step_loop},
        {"int", step_int}, {"end", step_end}, {"on_signal", (char *)on_signal}};
    for (int n = 0; n < 7; n++)
        if (at >= (unsigned long)known[n].at && at < (unsigned long)known[n].at + (n == 0 ? 8 : n == 6 ? 1 : 2)) {
            snprintf(text, sizeof text, "%s+%ld", known[n].name, at - (long)known[n].at);
            return text;
        }
    return "elsewhere";
}

static void steps(void) {
    printf("steps\n");
    pid_t pid = child(walks);
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    for (int n = 0; n < 14; n++) {
        P(PTRACE_SINGLESTEP, pid, 0, 0);
        if (!WIFSTOPPED(look("step", pid))) return;
        struct user_regs_struct regs = get(pid);
        printf("  %s TF %lld ecx %lld orig %lld\n", place(regs.rip), regs.eflags >> 8 & 1,
               regs.rip >= (long)step_loop && regs.rip < (long)step_int ? regs.rcx : 0, regs.orig_rax);
        if (regs.rip == (long)step_int) printf("  rax %lld\n", regs.rax);
    }
    finish(pid);
}

static void steps_into_handlers(void) {
    printf("steps into a handler\n");
    pid_t pid = child(walks);
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, SIGUSR1));
    struct user_regs_struct regs;
    for (int n = 0; n < 2; n++) {
        look("step", pid);
        regs = get(pid);
        printf("  %s\n", place(regs.rip));
        P(PTRACE_SINGLESTEP, pid, 0, n ? 0 : SIGUSR1);
    }
    look("step", pid);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, 0));
    look("step", pid);
    kill(pid, SIGUSR1);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, 0));
    look("signal first", pid);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, SIGUSR1));
    look("handler", pid);
    regs = get(pid);
    printf("  %s rdi %lld TF %lld\n", place(regs.rip), regs.rdi, regs.eflags >> 8 & 1);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, 0));
    look("in it", pid);
    finish(pid);
}

static void calls_and_steps(void) {
    printf("steps and calls\n");
    pid_t pid = child(walks);
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("entry", pid);
    struct user_regs_struct regs = get(pid);
    printf("  %s orig %lld rax %lld\n", place(regs.rip), regs.orig_rax, regs.rax);
    TRUE(regs.rcx == regs.rip && regs.r11 == (regs.eflags | 0));
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, 0));
    look("step", pid);
    regs = get(pid);
    printf("  %s orig %lld own %d\n", place(regs.rip), regs.orig_rax, regs.rax == pid);
    SHOW(P(PTRACE_SINGLESTEP, pid, 0, 0));
    look("step", pid);
    finish(pid);

    pid = child(walks);
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("int3", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
    SHOW(P(PTRACE_SYSEMU, pid, 0, 0));
    look("emulated", pid);
    regs = get(pid);
    printf("  %s orig %lld rax %lld\n", place(regs.rip), regs.orig_rax, regs.rax);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * RAX, 4321));
    SHOW(P(PTRACE_SYSEMU_SINGLESTEP, pid, 0, 0));
    look("step", pid);
    regs = get(pid);
    printf("  %s orig %lld ecx %lld\n", place(regs.rip), regs.orig_rax, regs.rcx & 0xFFFFFFFF);
    finish(pid);
}

/* -- calls that are changed ---------------------------------------------------------------- */

static void asks(void) {
    long first = syscall(SYS_getppid), second = syscall(SYS_getuid), third = syscall(SYS_close, -1);
    int error = errno;
    printf("%ld %s %ld %d\n", first, second == getpid() ? "pid" : "?", third, error);
    fflush(stdout);
    _exit(3);
}

static void changed_calls(void) {
    printf("changed calls\n");
    pid_t pid = child(asks);
    look("stopped", pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("getppid", pid);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * ORIG_RAX, -1));
    SHOW(P(PTRACE_POKEUSR, pid, 8 * RAX, 99));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("skipped", pid);
    struct user_regs_struct regs = get(pid);
    printf("  rax %lld orig %lld\n", regs.rax, regs.orig_rax);
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("getuid", pid);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * ORIG_RAX, SYS_getpid));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("getpid", pid);
    regs = get(pid);
    printf("  own %d orig %lld\n", regs.rax == pid, regs.orig_rax);
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("close", pid);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * ORIG_RAX, 5000));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("none", pid);
    regs = get(pid);
    printf("  rax %lld\n", regs.rax);
    SHOW(P(PTRACE_POKEUSR, pid, 8 * RAX, -17));
    fflush(stdout);
    P(PTRACE_CONT, pid, 0, 0);
    look("end", pid);
}

static int ends[2];
static void waits_for_bytes(void) {
    char byte;
    long got = read(ends[0], &byte, 1);
    _exit(got == 1 ? 1 : got == 5 ? 5 : errno == 512 ? 6 : 7);
}
static void restarted(void) {
    printf("restarted calls\n");
    for (int n = 0; n < 3; n++) {
        pipe(ends);
        pid_t pid = child(waits_for_bytes);
        look("stopped", pid);
        SHOW(P(PTRACE_CONT, pid, 0, 0));
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/syscall", pid);
        do {
            int fd = open(path, O_RDONLY);
            read(fd, text, 255);
            close(fd);
            sched_yield();
        } while (strncmp(text, "0 ", 2));
        kill(pid, SIGUSR1);
        look("signal", pid);
        struct user_regs_struct regs = get(pid);
        printf("  rax %lld orig %lld\n", regs.rax, regs.orig_rax);
        if (n == 1) SHOW(P(PTRACE_POKEUSR, pid, 8 * ORIG_RAX, -1));
        if (n == 2) SHOW(P(PTRACE_POKEUSR, pid, 8 * RAX, 5));
        SHOW(P(PTRACE_CONT, pid, 0, 0));
        write(ends[1], "x", 1);
        look("end", pid);
        close(ends[0]), close(ends[1]);
    }
}

/* -- debug registers ----------------------------------------------------------------------- */

static volatile long watched[4];
extern char write_at[], read_at[], run_at[];
__attribute__((noinline)) static void touches(void) {
    asm volatile(".globl write_at, read_at, run_at\n"
                 "write_at: movq $5, %0; nop\n"
                 "read_at: mov %0, %%rax; nop\n"
                 "run_at: nop; movb $1, 3+%0; nop" : "+m"(watched[1]) : : "rax", "memory");
    watched[2] = 8;
    syscall(SYS_getppid);
    _exit(6);
}

static void say_debug(pid_t pid) {
    unsigned long status = 0;
    P(PTRACE_PEEKUSR, pid, USER(u_debugreg[6]), &status);
    struct user_regs_struct regs = get(pid);
    long at = regs.rip;
    siginfo_t info;
    P(PTRACE_GETSIGINFO, pid, 0, &info);
    printf("  dr6 %lx address %d", status, info.si_addr == (void *)regs.rip);
    printf(" at %s\n", at >= (long)write_at && at < (long)read_at ? "write" : at >= (long)read_at && at < (long)run_at
           ? "read" : at == (long)run_at ? "run" : at > (long)run_at && at < (long)run_at + 16 ? "behind run" : "later");
    P(PTRACE_POKEUSR, pid, USER(u_debugreg[6]), 0);
}

static void debug_registers(void) {
    printf("debug registers\n");
    unsigned long word;
    pid_t pid = child(touches);
    look("stopped", pid);
    for (int n = 0; n < 8; n++) {
        word = 7;
        long result = P(PTRACE_PEEKUSR, pid, USER(u_debugreg[n]), &word);
        printf("dr%d: %ld %lx\n", n, result, word);
    }
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[4]), 1));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[5]), 1));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[0]), -8));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[0]), 1L << 50));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[0]), &watched[1]));
    SHOW(P(PTRACE_PEEKUSR, pid, USER(u_debugreg[0]), &word));
    TRUE(word == (unsigned long)&watched[1]);
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0x20001)); /* I/O */
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0xC0001)); /* four bytes to execute */
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0x90001)); /* eight bytes to write */
    SHOW(P(PTRACE_PEEKUSR, pid, USER(u_debugreg[7]), &word));
    printf("dr7 %lx\n", word);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("written", pid);
    say_debug(pid);
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0xB0001)); /* eight bytes to access */
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("read", pid);
    say_debug(pid);
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[1]), run_at));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[2]), (char *)&watched[1] + 3));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0x1000014)); /* execute at 1, write a byte at 2 */
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("run", pid);
    say_debug(pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("byte", pid);
    say_debug(pid);
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[0]), (char *)&watched[2] + 1));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0x90001)); /* not aligned */
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("end", pid);

    pid = child(touches);
    look("stopped", pid);
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[3]), &watched[2]));
    SHOW(P(PTRACE_POKEUSR, pid, USER(u_debugreg[7]), 0x90000040));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("written", pid);
    say_debug(pid);
    word = 0;
    P(PTRACE_PEEKUSR, pid, USER(u_debugreg[7]), &word);
    printf("dr7 %lx\n", word);
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    look("end", pid);
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    static void (*const parts[])(void) = {general, floating, steps, steps_into_handlers,
                                          calls_and_steps, changed_calls, restarted, debug_registers};
    int only = argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9' ? atoi(argv[1]) : -1;
    for (unsigned n = 0; n < sizeof parts / sizeof *parts; n++)
        if (only < 0 || only == n) parts[n]();
    fflush(stdout);
    return 0;
}
