/* Large private memory in a tree of processes: each has its own, whatever the others do. */
#include "guest.h"
#include <sys/wait.h>

#define LARGE (48UL << 20)
#define SMALL (3UL << 20)

static unsigned seed = 1;
static unsigned next(unsigned n) { return (seed = seed * 1103515245 + 12345) / 65536 % n; }

static unsigned char *areas[4];
static size_t sizes[4];

static unsigned sum(void) {
    unsigned h = 5381;
    for (int i = 0; i < 4; i++)
        for (size_t at = 0; at < sizes[i]; at += PAGE * 7) h = h * 33 + areas[i][at] + areas[i][at + 1];
    return h;
}

static void change(void) {
    int i = next(4);
    unsigned char *area = areas[i];
    size_t pages = sizes[i] / PAGE, first = next(pages), count = 1 + next(pages - first) / 4;
    unsigned char *at = area + first * PAGE;
    switch (next(6)) {
    case 0: madvise(at, count * PAGE, MADV_DONTNEED); break;
    case 1: memset(at, next(256), count * PAGE / 16); break;
    case 2: /* as a program that reads does */
        for (size_t n = 0; n < count; n++) seed += at[n * PAGE];
        break;
    case 3: /* through the kernel */ {
        int ends[2];
        if (pipe(ends)) exit(1);
        if (write(ends[1], area + next(pages) * PAGE, 64) != 64 || read(ends[0], at, 64) != 64) exit(2);
        close(ends[0]), close(ends[1]);
        break;
    }
    case 4:
        mprotect(at, count * PAGE, PROT_READ);
        seed += at[0];
        mprotect(at, count * PAGE, PROT_READ | PROT_WRITE);
        at[0]++;
        break;
    case 5:
        for (size_t n = 0; n < count; n += 3) at[n * PAGE]++;
        break;
    }
}

static void tree(int depth) {
    for (int child = 0; child < 3; child++) {
        for (int n = 0; n < 4; n++) change();
        int results[2];
        if (pipe(results)) exit(3);
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            for (int n = 0; n < 3; n++) change();
            if (depth) tree(depth - 1);
            unsigned mine = sum();
            if (write(results[1], &mine, sizeof mine) != sizeof mine) exit(4);
            fflush(stdout);
            _exit(0);
        }
        for (int n = 0; n < 3; n++) change(); /* while the child lives */
        unsigned theirs = 0;
        if (read(results[0], &theirs, sizeof theirs) != sizeof theirs) exit(5);
        close(results[0]), close(results[1]);
        waitpid(pid, 0, 0);
        printf("depth %d, child %d: %08x, its parent %08x\n", depth, child, theirs, sum());
    }
}

/* What is written to pages that were given back is there for children, too. */
static void renewed(void) {
    char *pages = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 4 * PAGE);
    madvise(pages, 4 * PAGE, MADV_DONTNEED);
    pages[PAGE] = 7;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) _exit(pages[0] + pages[PAGE]);
    int status = 0;
    waitpid(pid, &status, 0);
    printf("renewed: %d\n", WEXITSTATUS(status));
    munmap(pages, 4 * PAGE);
}

int main(void) {
    renewed();
    sizes[0] = LARGE, sizes[1] = SMALL, sizes[2] = LARGE / 2, sizes[3] = SMALL;
    for (int i = 0; i < 3; i++)
        areas[i] = mmap(0, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    areas[3] = sbrk(0);
    for (size_t at = 0; at < SMALL; at += PAGE * 16) sbrk(PAGE * 16);
    for (int i = 0; i < 4; i++)
        for (size_t at = 0; at < sizes[i] / (i == 2 ? 4 : 1); at += PAGE) areas[i][at] = at >> 12;
    tree(1);
    areas[2] = mremap(areas[2], sizes[2], LARGE + LARGE, MREMAP_MAYMOVE);
    sizes[2] = LARGE + LARGE;
    munmap(areas[0] + LARGE / 2, LARGE / 2);
    sizes[0] = LARGE / 2;
    tree(0);
    return 0;
}
