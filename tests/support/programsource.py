"""A program whose calls, faults, forks and strings try what uprobes see of programs."""

from markerkit import HEADERS

SOURCE = r"""
#define _GNU_SOURCE
#include "markers.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NI __attribute__((noinline, noclone))
static jmp_buf back;
long data[4] = {11, 22, 33, 44};
static char zeros[16384];
const char late[4096] __attribute__((aligned(4096))) = "a late string";
char given[8192] __attribute__((aligned(4096))) = "initialised";

NI long twice(long n) { asm volatile(""); return 2 * n; }
NI long tail(long n) { asm volatile(""); return twice(n + 1); }
NI long fib(long n) { asm volatile(""); return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NI void greet(const char *name, long *numbers) {
    asm volatile("" :: "r"(name), "r"(numbers) : "memory");
}
NI void leap(long n) { asm volatile(""); if (n) longjmp(back, n); }
NI long touch(char *page) {
    MARKER("prog", "touching", "0", "8@%0 -8@%1 -4@%2", "r"(page), "m"(data[0]), "n"(-7));
    asm volatile("movb $1, %0" : "+m"(*page));
    return page[1];
}
NI void lazy(const char *a, const char *b, const char *c, const char *d) {
    asm volatile("" :: "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
NI long forked(void) {
    pid_t child = fork();
    if (child)
        waitpid(child, 0, 0);
    return child == 0;
}

extern const char __ehdr_start;
/* Calls twice() where another mapping of its page has it, before and behind mremap. */
static void moving(const char *self) {
    long offset = (const char *)twice - &__ehdr_start, at = offset % 4096;
    int file = open(self, O_RDONLY);
    char *room = mmap(0, 8 * 4096, PROT_NONE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    char *page = mmap(0, 2 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, offset - at);
#define CALL(where, n) ((long (*)(long))((where) + at))(n)
    CALL(page, 201);
    char *moved = mremap(page, 2 * 4096, 2 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    CALL(moved, 202);
    char *again = mremap(moved, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                         room + 4 * 4096);
    CALL(again, 203);
    CALL(moved, 204);
    munmap(again, 4096);
    page = mmap(again, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset - at);
    CALL(page, 205);
}

static void *map(int file) {
    int flags = file < 0 ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_PRIVATE;
    return mmap(0, 4 * 4096, PROT_READ | (file < 0 ? PROT_WRITE : 0), flags, file, 0);
}

int main(int argc, char **argv) {
    char text[16];
    strcpy(text, argc > 1 ? argv[1] : "nobody");
    greet(text, data);
    greet("", 0);
    lazy(late, zeros + 8192, given, (char *)4);
    lazy(late + 4090, (char *)map(open("/data", O_RDONLY)) + 4090, map(-1), text);
    printf("%ld %ld %ld\n", twice(21), tail(4), fib(7));
    for (volatile int n = 0; n < 3; n++)
        if (!setjmp(back))
            leap(n);
    char *pages = map(-1);
    for (int n = 0; n < 4; n++)
        touch(pages + 4096 * n);
    moving(argv[0]);
    if (forked()) {
        twice(100);
        fib(3);
        fflush(stdout);
        _exit(3);
    }
    return 0;
}
"""
FLAGS = ("-O1", "-fno-omit-frame-pointer", f"-I{HEADERS}")
