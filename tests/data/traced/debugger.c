/* A small debugger: a breakpoint on a function of its child, passed in one of two ways. */
#include "../syscalls/guest.h"
#include <linux/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define P(request, pid, address, data) \
    syscall(SYS_ptrace, (long)(request), (long)(pid), (long)(address), (long)(data))

__attribute__((noinline)) long probed(long value) {
    asm volatile("" : "+r"(value));
    return value + 1;
}

static void debugged(void) {
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    long sum = 0;
    for (long n = 0; n < 5; n++) sum += probed(n);
    _exit(sum);
}

int main(int argc, char **argv) {
    int elsewhere = argc > 1, status, stops = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) debugged();
    waitpid(pid, &status, 0);
    unsigned long own, now, scratch;
    P(PTRACE_PEEKTEXT, pid, probed, &own);
    TRUE(!memcmp(&own, (void *)probed, 8) || ((own ^ *(unsigned long *)probed) & 0xFF) != 0);
    P(PTRACE_POKETEXT, pid, probed, own & ~0xFFUL | 0xCC);
    P(PTRACE_PEEKTEXT, pid, probed, &now);
    TRUE((now & 0xFF) == 0xCC && now >> 8 == own >> 8);
    printf("first byte %lx\n", own & 0xFF);
    for (;;) {
        P(PTRACE_CONT, pid, 0, 0);
        waitpid(pid, &status, 0);
        if (!WIFSTOPPED(status)) break;
        struct user_regs_struct regs;
        P(PTRACE_GETREGS, pid, 0, &regs);
        if (regs.rip != (unsigned long)probed + 1) printf("stopped at %+ld\n", (long)(regs.rip - (long)probed));
        stops++;
        regs.rip = (unsigned long)probed;
        if (elsewhere) { /* as displaced stepping: the instruction is carried out elsewhere */
            unsigned long place = (unsigned long)main;
            P(PTRACE_PEEKTEXT, pid, place, &scratch);
            P(PTRACE_POKETEXT, pid, place, own);
            regs.rip = place;
            P(PTRACE_SETREGS, pid, 0, &regs);
            P(PTRACE_SINGLESTEP, pid, 0, 0);
            waitpid(pid, &status, 0);
            P(PTRACE_POKETEXT, pid, place, scratch);
            P(PTRACE_GETREGS, pid, 0, &regs);
            regs.rip += (unsigned long)probed - place;
            P(PTRACE_SETREGS, pid, 0, &regs);
        } else {
            P(PTRACE_SETREGS, pid, 0, &regs);
            P(PTRACE_POKETEXT, pid, probed, own);
            P(PTRACE_SINGLESTEP, pid, 0, 0);
            waitpid(pid, &status, 0);
            P(PTRACE_POKETEXT, pid, probed, own & ~0xFFUL | 0xCC);
        }
    }
    printf("stops %d end %d\n", stops, WEXITSTATUS(status));
    return 0;
}
