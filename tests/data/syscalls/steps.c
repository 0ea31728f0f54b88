/* x86-64: a program that single-steps itself by the trap flag, and what it sees of that. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
/* Of each kind that a probe has carried out in a way of its own. */
__asm__(".globl spot\n.type spot,@function\nspot:\n"
        "nop\n.byte 0x0f,0x1f,0x44,0,0\npush %rbx\npush %r12\npop %r12\njmp 1f\nnop\n"
        "1: test %edi,%edi\nje 2f\n2: call other\npushf\npop %rbx\nlea other(%rip),%rax\n"
        "call *%rax\nmov $2,%ecx\n3: loop 3b\npushf\npopf\ncld\nmov $39,%eax\nsyscall\n"
        "lea 1(%rdi),%rax\npop %rbx\nret\n.size spot,.-spot\n"
        ".globl other\n.type other,@function\nother: ret\n.size other,.-other\n"
        /* kill(edi, esi): the handler sets the flag. */
        ".globl sent\n.type sent,@function\nsent: mov $62,%eax\nsyscall\nnop\nnop\nnop\nret\n"
        ".size sent,.-sent\n");
long spot(long), sent(int, int);

static struct { int at, code, here, exception; } seen[200];
static int count, setting;

static void trapped(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    long at = regs[REG_RIP] - (long)spot;
    if (at < 0 || at > 0x60 || count >= 200) return;
    seen[count].at = at;
    seen[count].code = info->si_code;
    seen[count].here = info->si_addr == (void *)regs[REG_RIP];
    seen[count++].exception = regs[REG_TRAPNO];
}

static void sets(int number, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (setting) regs[REG_EFL] |= TRAP_FLAG;
}

static void tell(const char *what)
{
    printf("%s:", what);
    for (int n = 0; n < count; n++)
        printf(" %x:%d,%d,%d", seen[n].at, seen[n].code, seen[n].here, seen[n].exception);
    printf("\n");
    count = 0;
}

#define SET() __asm__ volatile("pushf; orl $0x100,(%%rsp); popf" ::: "memory", "cc")
#define CLEAR() __asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" ::: "memory", "cc")

int main(void)
{
    struct sigaction trap = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO}, other = trap;
    long sum = 0;
    other.sa_sigaction = sets;
    sigaction(SIGTRAP, &trap, 0);
    sigaction(SIGUSR1, &other, 0);
    for (int n = 0; n < 30; n++) sum += spot(n); /* warm: whatever gets quicker is by now */
    for (int n = 0; n < 30; n++) sum += sent(getpid(), SIGUSR1);
    for (int n = 0; n < 3; n++) {
        SET();
        sum += spot(n);
        CLEAR();
        tell("stepped");
    }
    setting = 1;
    for (int n = 0; n < 3; n++) {
        sum += sent(getpid(), SIGUSR1);
        CLEAR();
        tell("set by a handler");
    }
    printf("%ld\n", sum);
    return 0;
}
