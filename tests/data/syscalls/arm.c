/* AArch64: pointer authentication, atomics, counters, cache maintenance, code that changes itself. */
#include "guest.h"
#include <fenv.h>
static int call(void *p) { return ((int (*)(void))p)(); }
static void sync_code(void *p) { __builtin___clear_cache(p, (char *)p + 64); }
static unsigned mov(int v) { return 0x52800000 | v << 5; }
static void edit(int n, siginfo_t *i, void *c) { ucontext_t *u = c; struct { unsigned magic, size, fpsr, fpcr; __uint128_t v[32]; } *f = (void *)u->uc_mcontext.__reserved; printf("fpsimd %x %u\n", f->magic, f->size); f->v[9] = 0x11223344; u->uc_mcontext.regs[19] = 0x1234; }
int main(void) {
    unsigned long p = (unsigned long)main, q = p, m = 42, v, w;
    asm volatile(".arch armv8.3-a\npacia %0, %1" : "+r"(q) : "r"(m)); TRUE(q != p); asm volatile("autia %0, %1" : "+r"(q) : "r"(m)); TRUE(q == p);
    asm volatile("pacia %0, %1" : "+r"(q) : "r"(m)); asm volatile("autia %0, %1" : "+r"(q) : "r"(m + 1)); TRUE(q != p); q = p; asm volatile("pacia %0, %1; xpaci %0" : "+r"(q) : "r"(m)); TRUE(q == p);
    asm volatile("mov x16, x30; paciasp; autiasp; cmp x16, x30; cset %0, eq" : "=r"(v)::"x16", "x30", "cc"); printf("paciasp %lu\n", v);
    unsigned long cell = 5; asm volatile(".arch armv8.1-a\nldadd %2, %0, [%1]" : "=r"(v) : "r"(&cell), "r"(7UL) : "memory"); printf("ldadd %lu %lu\n", v, cell); v = 12; asm volatile("cas %0, %2, [%1]" : "+r"(v) : "r"(&cell), "r"(99UL) : "memory"); printf("cas %lu %lu\n", v, cell); asm volatile("swp %2, %0, [%1]" : "=r"(v) : "r"(&cell), "r"(3UL) : "memory"); printf("swp %lu %lu\n", v, cell);
    unsigned ok; asm volatile("1: ldxr %0, [%2]; add %0, %0, #1; stxr %w1, %0, [%2]; cbnz %w1, 1b" : "=&r"(v), "=&r"(ok) : "r"(&cell) : "memory"); printf("exclusive %lu\n", cell);
    int down = 0; unsigned long last = 0; for (int i = 0; i < 1000; i++) { asm volatile("mrs %0, cntvct_el0" : "=r"(v)); down += v < last; last = v; } printf("counter back %d\n", down); asm volatile("mrs %0, cntfrq_el0" : "=r"(v)); TRUE(v > 0);
    asm volatile("mrs %0, dczid_el0" : "=r"(v)); char *z = aligned_alloc(4096, 4096); memset(z, 1, 4096); if (!(v & 16)) { unsigned n = 4 << (v & 15); asm volatile("dc zva, %0" ::"r"(z + n) : "memory"); TRUE(!z[n] && !z[2 * n - 1] && z[n - 1] && z[2 * n]); }
    asm volatile("mrs %0, ctr_el0" : "=r"(v)); TRUE(v != 0); asm volatile("mrs %0, id_aa64isar0_el1" : "=r"(v)); asm volatile("mrs %0, midr_el1" : "=r"(w)); asm volatile("msr tpidr_el0, %1; mrs %0, tpidr_el0; msr tpidr_el0, %2" : "=&r"(v) : "r"(0x1234UL), "r"(__builtin_thread_pointer())); printf("tpidr %lx\n", v);
    unsigned *x = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); long sum = 0; x[1] = 0xd65f03c0;
    for (int i = 0; i < 200; i++) { x[0] = mov(i); sync_code(x); sum += call(x); } printf("rwx %ld\n", sum); sum = 0;
    for (int i = 0; i < 50; i++) { mprotect(x, PAGE, 3); x[0] = mov(i); mprotect(x, PAGE, 5); sync_code(x); sum += call(x); } printf("flips %ld\n", sum);
    int fd = memfd_create("jit", 0); ftruncate(fd, PAGE); unsigned *rw = mmap(0, PAGE, 3, MAP_SHARED, fd, 0), *rx = mmap(0, PAGE, 5, MAP_SHARED, fd, 0); rw[1] = 0xd65f03c0; sum = 0; for (int i = 0; i < 200; i++) { rw[0] = mov(i); sync_code(rw); sync_code(rx); sum += call(rx); } printf("two views %ld\n", sum);
    volatile double zero = 0, one = 1, three = 3; volatile double r = one / zero; printf("divide %d\n", fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO); feclearexcept(FE_ALL_EXCEPT); int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}; for (int i = 0; i < 4; i++) { fesetround(modes[i]); r = one / three; printf("%a\n", (double)r); } fesetround(FE_TONEAREST);
    struct sigaction a = {.sa_sigaction = edit, .sa_flags = SA_SIGINFO}; sigaction(SIGUSR1, &a, 0); fflush(stdout);
    asm volatile("movi v9.2d, #0; mov x8, %2; mov x0, %3; mov x1, %4; svc 0; umov %0, v9.d[0]; mov %1, x19" : "=r"(v), "=r"(w) : "i"(SYS_tkill), "r"((long)getpid()), "i"(SIGUSR1) : "x0", "x1", "x8", "x19", "v9", "memory"); printf("edited %lx %lx\n", v, w);
    guard_install(); GUARD(call(rw));
    return 0;
}
