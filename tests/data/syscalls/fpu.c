/* Floating-point state of x86-64: sticky flags, rounding, signal handlers that change it. */
#include "guest.h"
#include <fenv.h>
#include <math.h>
static unsigned mxcsr(void) { unsigned v; asm volatile("stmxcsr %0" : "=m"(v)); return v; }
static volatile int hits, edit;
static long double keep(int n);
static void tick(int n, siginfo_t *i, void *c) {
    ucontext_t *u = c; hits++;
    volatile long double noise = 1.5L; for (int k = 0; k < 9; k++) noise = noise * noise - 1.25L;
    volatile double d = hits; d = sqrt(d) / 3; asm volatile("pxor %%xmm7, %%xmm7" ::: "xmm7");
    if (edit) { u->uc_mcontext.fpregs->_xmm[5].element[0] = 0x11223344; u->uc_mcontext.fpregs->mxcsr |= 0x8000; u->uc_mcontext.gregs[REG_RBX] = 0x1234; }
}
int main(void) {
    volatile double zero = 0, one = 1, three = 3, huge = 1e308, tiny = 1e-308, r;
    printf("%x\n", mxcsr());
    r = one / three; printf("inexact %x %x\n", fetestexcept(FE_ALL_EXCEPT), mxcsr() & 0x3f);
    feclearexcept(FE_ALL_EXCEPT); printf("clear %x\n", mxcsr() & 0x3f);
    r = one / zero; printf("divide %x %x\n", fetestexcept(FE_ALL_EXCEPT), mxcsr() & 0x3f); feclearexcept(FE_DIVBYZERO);
    r = zero / zero; printf("invalid %x\n", fetestexcept(FE_ALL_EXCEPT)); feclearexcept(FE_ALL_EXCEPT);
    r = huge * huge; printf("overflow %x\n", fetestexcept(FE_ALL_EXCEPT)); feclearexcept(FE_ALL_EXCEPT);
    r = tiny * tiny; printf("underflow %x\n", fetestexcept(FE_ALL_EXCEPT)); feclearexcept(FE_ALL_EXCEPT);
    fenv_t env; feraiseexcept(FE_INEXACT); fegetenv(&env); feclearexcept(FE_ALL_EXCEPT); fesetenv(&env); printf("fesetenv %x\n", fetestexcept(FE_ALL_EXCEPT)); feholdexcept(&env); printf("held %x\n", fetestexcept(FE_ALL_EXCEPT)); feupdateenv(&env); printf("updated %x\n", fetestexcept(FE_ALL_EXCEPT)); feclearexcept(FE_ALL_EXCEPT);
    int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) { fesetround(modes[i]); r = one / three; volatile long double l = (long double)one / three; printf("%d %a %a %La %ld %d\n", fegetround(), (double)r, -one / three, (long double)l, lrint(2.5 + zero), (int)nearbyint(-2.5 + zero)); }
    fesetround(FE_TONEAREST);
    char area[512] __attribute__((aligned(16))); feclearexcept(FE_ALL_EXCEPT); r = one / three; asm volatile("fxsave %0" : "=m"(area)); printf("fxsave %x\n", *(unsigned *)(area + 24) & ~2); *(unsigned *)(area + 24) = 0x1f81; asm volatile("fxrstor %0" ::"m"(area)); printf("fxrstor %x\n", mxcsr());
    asm volatile("fninit; fldpi; fldl2e; fld1"); unsigned short sw; asm volatile("fnstsw %0" : "=m"(sw)); printf("top %d\n", sw >> 11 & 7); asm volatile("fninit");
    struct sigaction a = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART}; sigaction(SIGALRM, &a, 0); sigaction(SIGUSR1, &a, 0);
    struct itimerval t = {{0, 500}, {0, 500}}; setitimer(ITIMER_REAL, &t, 0);
    long double sum = 0; double dsum = 0; for (long i = 1; hits < 40 || i < 100000; i++) if (i < 100000) { sum += 1.0L / i; dsum += 1.0 / (double)i; }
    memset(&t, 0, sizeof t); setitimer(ITIMER_REAL, &t, 0); printf("%La %a\n", sum, dsum);
    edit = 1; unsigned x; unsigned long b; feclearexcept(FE_ALL_EXCEPT);
    asm volatile("pxor %%xmm5, %%xmm5; mov %2, %%eax; mov %3, %%edi; mov %4, %%esi; syscall; movd %%xmm5, %0; mov %%rbx, %1" : "=r"(x), "=r"(b) : "i"(SYS_tkill), "r"(getpid()), "i"(SIGUSR1) : "rax", "rbx", "rcx", "rdi", "rsi", "r11", "xmm5");
    printf("edited %x %lx %x\n", x, b, mxcsr() & 0xffc0);
    return 0;
}
