/* The whole run time of the samples: entry, system calls and line-buffered printing, without a libc.
 * Every sample is one translation unit that includes this header and defines main(). */
#ifndef RT_H
#define RT_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef short s16;
typedef int s32;
typedef long s64;
typedef unsigned long size_t;

#define NULL ((void *)0)
/* A function that stays a function: its own symbol, its full signature, the plain calling convention. */
#define PROBEABLE __attribute__((noipa))

int main(int argc, char **argv);

#if defined __x86_64__
enum { NR_READ = 0, NR_WRITE = 1, NR_GETPID = 39, NR_EXIT_GROUP = 231, NR_OPENAT = 257 };
__asm__(".pushsection .text\n"
        ".globl _start\n.type _start,@function\n_start:\n"
        ".cfi_startproc\n.cfi_undefined rip\n"
        "xor %ebp,%ebp\nmov %rsp,%rdi\nand $-16,%rsp\ncall rt_start\nhlt\n"
        ".cfi_endproc\n.size _start,.-_start\n.popsection\n");

static inline s64 rt_syscall(s64 number, s64 a, s64 b, s64 c, s64 d)
{
    s64 result;
    register s64 r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined __aarch64__
enum { NR_OPENAT = 56, NR_READ = 63, NR_WRITE = 64, NR_EXIT_GROUP = 94, NR_GETPID = 172 };
__asm__(".pushsection .text\n"
        ".globl _start\n.type _start,%function\n_start:\n"
        ".cfi_startproc\n.cfi_undefined x30\n"
        "mov x29,#0\nmov x30,#0\nmov x0,sp\nbl rt_start\nbrk #1\n"
        ".cfi_endproc\n.size _start,.-_start\n.popsection\n");

static inline s64 rt_syscall(s64 number, s64 a, s64 b, s64 c, s64 d)
{
    register s64 x8 __asm__("x8") = number;
    register s64 x0 __asm__("x0") = a;
    register s64 x1 __asm__("x1") = b;
    register s64 x2 __asm__("x2") = c;
    register s64 x3 __asm__("x3") = d;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
#include "rt_riscv64.h"
#endif

/* What the compiler may call on its own. */
__attribute__((used)) void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((u8 *)to)[i] = ((const u8 *)from)[i];
    return to;
}

__attribute__((used)) void *memset(void *to, int byte, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((u8 *)to)[i] = (u8)byte;
    return to;
}

static char rt_buffer[256];
static u32 rt_used;

PROBEABLE s64 sys_write(s32 fd, const void *data, size_t count)
{
    return rt_syscall(NR_WRITE, fd, (s64)data, (s64)count, 0);
}

PROBEABLE s64 sys_read(s32 fd, void *data, size_t count)
{
    return rt_syscall(NR_READ, fd, (s64)data, (s64)count, 0);
}

PROBEABLE s64 sys_open(const char *path, s32 flags)
{
    return rt_syscall(NR_OPENAT, -100 /* AT_FDCWD */, (s64)path, flags, 0);
}

PROBEABLE void flush(void)
{
    for (u32 done = 0; done < rt_used;) {
        s64 written = sys_write(1, rt_buffer + done, rt_used - done);
        if (written <= 0)
            break;
        done += (u32)written;
    }
    rt_used = 0;
}

static void print_char(char c)
{
    rt_buffer[rt_used++] = c;
    if (c == '\n' || rt_used == sizeof rt_buffer)
        flush();
}

PROBEABLE void print(const char *text)
{
    while (*text)
        print_char(*text++);
}

PROBEABLE void print_u64(u64 value)
{
    char digits[20];
    u32 count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        print_char(digits[--count]);
}

PROBEABLE void print_s64(s64 value)
{
    if (value < 0) {
        print_char('-');
        print_u64(-(u64)value);
    } else
        print_u64((u64)value);
}

PROBEABLE void print_hex(u64 value)
{
    print("0x");
    int shift = 60;
    while (shift && !(value >> shift & 15))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        print_char("0123456789abcdef"[value >> shift & 15]);
}

/* Fixed point, rounded half up; enough for |value| < 2**53 and up to nine places. */
PROBEABLE void print_double(double value, int places)
{
    if (value < 0) {
        print_char('-');
        value = -value;
    }
    u64 scale = 1;
    for (int i = 0; i < places; i++)
        scale *= 10;
    u64 scaled = (u64)(value * (double)scale + 0.5);
    print_u64(scaled / scale);
    if (!places)
        return;
    print_char('.');
    for (u64 digit = scale / 10, rest = scaled % scale; digit; digit /= 10) {
        print_char((char)('0' + rest / digit));
        rest %= digit;
    }
}

__attribute__((noreturn)) PROBEABLE void exit(s32 code)
{
    flush();
    for (;;)
        rt_syscall(NR_EXIT_GROUP, code, 0, 0, 0);
}

__attribute__((used, noreturn)) void rt_start(s64 *stack)
{
    exit(main((int)stack[0], (char **)(stack + 1)));
}

#endif
