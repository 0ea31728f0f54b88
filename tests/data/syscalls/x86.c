/* x86-64: instructions with a memory of their own, code that changes itself. */
#include "guest.h"
#include <cpuid.h>
#include <asm/prctl.h>
#include <x86intrin.h>
static unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3}; /* mov eax, 1; ret */
static int call(void *p) { return ((int (*)(void))p)(); }
int main(void) {
    unsigned aux, a, b, c, d; unsigned long long last = 0; int down = 0;
    for (int i = 0; i < 1000; i++) { unsigned long long t = i % 2 ? __rdtsc() : __rdtscp(&aux); down += t < last; last = t; } printf("tsc back %d\n", down);
    TRUE(__get_cpuid(0, &a, &b, &c, &d) && a >= 1); __get_cpuid(1, &a, &b, &c, &d); TRUE(d >> 26 & 1); TRUE(d >> 25 & 1);
    unsigned long fs, v; TRUE(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) == 0); asm volatile("mov %%fs:0, %0" : "=r"(v)); TRUE(v == fs);
    static long block[2] = {77, 88}; SHOW(syscall(SYS_arch_prctl, ARCH_SET_GS, block)); asm volatile("mov %%gs:8, %0" : "=r"(v)); printf("gs %ld\n", v); SHOW(syscall(SYS_arch_prctl, ARCH_GET_GS, &v)); TRUE(v == (unsigned long)block); SHOW(syscall(SYS_arch_prctl, ARCH_SET_GS, -1L)); SHOW(syscall(SYS_arch_prctl, 0x9999, 0)); SHOW(syscall(SYS_arch_prctl, ARCH_GET_FS, 8));
    unsigned char *p = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(p, code, 6); long sum = 0;
    for (int i = 0; i < 200; i++) { p[1] = i; sum += call(p); } printf("rwx %ld\n", sum); sum = 0;
    for (int i = 0; i < 50; i++) { mprotect(p, PAGE, PROT_READ | PROT_WRITE); p[1] = i; mprotect(p, PAGE, PROT_READ | PROT_EXEC); sum += call(p); } printf("flips %ld\n", sum);
    int fd = memfd_create("jit", 0); ftruncate(fd, PAGE); unsigned char *rw = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *rx = mmap(0, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0); memcpy(rw, code, 6); sum = 0;
    for (int i = 0; i < 200; i++) { rw[1] = i; sum += call(rx); } printf("two views %ld\n", sum);
    unsigned char own[] = {0xc6, 0x47, 6, 9, 0xb8, 0, 1, 0, 0, 0, 0xc3}; /* mov byte [rdi+6], 9; mov eax, 0x100; ret */
    memcpy(own + 5, "\0\1\0\0\xc3", 5); memcpy(rw, own, 11); own[3] = 7; printf("writes to itself %d\n", ((int (*)(void *))rx)(rw - 1)); memcpy(rw, code, 6);
    sum = 0; for (int i = 0; i < 20; i++) { unsigned char n = i; pwrite(fd, &n, 1, 1); sum += call(rx); } printf("written %ld\n", sum);
    sum = 0; for (int i = 0; i < 20; i++) { munmap(rx, PAGE); code[1] = i; rx = mmap(rx, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); memcpy(rx, code, 6); sum += call(rx); } printf("mapped again %ld\n", sum);
    sum = 0; p = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); for (int i = 0; i < 20; i++) { code[1] = i; memcpy(p, code, 6); sum += call(p); p = mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(0x300000000000UL + (i % 3) * PAGE)); sum += call(p); } printf("moved %ld\n", sum);
    sum = 0; p = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(p, code, 6); for (int i = 0; i < 20; i++) { int e[2]; unsigned char n = i; pipe(e); write(e[1], &n, 1); read(e[0], p + 1, 1); close(e[0]); close(e[1]); sum += call(p); } printf("read into %ld\n", sum);
    guard_install(); GUARD(call(rw)); madvise(p, PAGE, MADV_DONTNEED); GUARD(call(p));
    return 0;
}
