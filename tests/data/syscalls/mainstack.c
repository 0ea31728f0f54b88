/* The first thread's stack: how it grows, what its protection is, what is counted of it. */
#include "guest.h"
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define DOWN 0x01000000 /* PROT_GROWSDOWN */
#define UP 0x02000000   /* PROT_GROWSUP */
#define KB 1024UL
#define MB (KB * 1024)

static unsigned long total, stack, begin;
static char protection[8];

/* Sum the mappings, and find the one of the stack. */
static void look(void) {
    char line[512], here;
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    total = stack = 0;
    while (fgets(line, sizeof line, maps)) {
        char perms[8];
        sscanf(line, "%lx-%lx %7s", &start, &end, perms);
        if (strstr(line, "[vsyscall]")) continue; /* no mapping of the process */
        total += end - start;
        if (start <= (uintptr_t)&here && (uintptr_t)&here < end) {
            stack = end - start;
            strcpy(protection, perms);
#ifdef __x86_64__ /* qemu-user names not all pieces of a stack; Linux the one that it began in */
            if (begin < end && !strstr(line, "[stack]")) puts("the stack has another name");
#endif
        }
    }
    fclose(maps);
}

static long told(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name) + 1);
    fclose(file);
    return value;
}

/* What status, statm and stat tell of the sizes is what the mappings are. */
static void sums(const char *when) {
    long pages = -1;
    unsigned long bytes = 0;
    char line[1024], *at;
    look();
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld", &pages);
    fclose(file);
    file = fopen("/proc/self/stat", "r");
    fgets(line, sizeof line, file);
    fclose(file);
    at = strrchr(line, ')') + 2;
    for (int n = 3; n < 23; n++) at = strchr(at, ' ') + 1;
    bytes = strtoul(at, 0, 10);
    printf("%s: %s\n", when, protection);
    TRUE(told("VmSize:") == (long)(total / KB));
    TRUE(told("VmPeak:") >= told("VmSize:"));
    TRUE(told("VmStk:") - stack / KB < 64); /* another part of it may have another protection */
    TRUE(pages == (long)(total / 4096));
    TRUE(bytes == total);
}

static int deep(unsigned long size) {
    volatile char room[4096];
    room[0] = 1;
    return size < sizeof room ? 0 : deep(size - sizeof room) + room[0];
}

static void protect(void) {
    char here;
    char *page = (char *)((uintptr_t)&here & -4096);
    char *other = mmap(0, 3 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(other + 2 * 4096, 4096);
    SHOW(mprotect(page, 4096, 7 | DOWN | UP));
    SHOW(mprotect(page + 1, 4096, 7 | DOWN));
    SHOW(mprotect(page, 0, 7 | DOWN));
    SHOW(mprotect(page, 4096, 7 | UP));
    SHOW(mprotect(other, 4096, 7 | DOWN));
    SHOW(mprotect(other, 4096, 7 | UP));
    SHOW(mprotect(other + 2 * 4096, 4096, 3 | UP));
    SHOW(mprotect((void *)0x10000000, 4096, 3 | DOWN));
    SHOW(mprotect((void *)0x10000000, 4096, 3 | UP));
    SHOW(mprotect(page - 4 * MB, 4096, 3 | DOWN));
    SHOW(mprotect(page, 4096, 0x40 | DOWN));
    SHOW(mprotect(page, 4096, 7 | DOWN));
    sums("executable");
    SHOW(mprotect(page, 4096, 3 | DOWN));
    sums("not executable");
}

/* A limit of its own: what the stack may grow to follows it at once. */
static void limited(unsigned long size, unsigned long depth) {
    struct rlimit limit;
    int status;
    fflush(stdout);
    if (!fork()) {
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = size;
        SHOW(setrlimit(RLIMIT_STACK, &limit));
        fflush(stdout);
        deep(depth);
        look();
        TRUE(stack >= depth && stack < depth + 1 * MB);
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    printf("ended %x\n", status & 0x7F);
}

/* Whoever runs in its parent's memory (vfork) takes none of the stack there. */
static void lent(void) {
    struct rlimit limit;
    int status;
    fflush(stdout);
    if (!fork()) {
        getrlimit(RLIMIT_STACK, &limit);
        limit.rlim_cur = 32 * MB;
        SHOW(setrlimit(RLIMIT_STACK, &limit));
        if (!vfork()) {
            limit.rlim_cur = 1 * MB;
            setrlimit(RLIMIT_STACK, &limit);
            _exit(0);
        }
        deep(24 * MB);
        puts("deep");
        fflush(stdout);
        _exit(0);
    }
    wait(&status);
    printf("ended %x\n", status & 0x7F);
}

/* RLIMIT_AS: what is mapped in the place of something else is no more than before. */
static void addresses(void) {
    char *there = mmap(0, 64 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rlimit limit = {0, 0};
    look();
    limit.rlim_cur = limit.rlim_max = total + 8 * KB;
    SHOW(setrlimit(RLIMIT_AS, &limit));
    TRUE(mmap(there, 64 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == there);
    TRUE(mmap(there, 76 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    TRUE(mmap(0, 12 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    TRUE(mmap(0, 8 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    TRUE(mmap(0, 4 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    SHOW(munmap(there, 4 * KB));
    TRUE(mmap(0, 4 * KB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

int main(int argc, char **argv) {
    begin = (uintptr_t)(argv - 1); /* where the number of arguments is */
    look();
    TRUE(stack >= 132 * KB && stack < 200 * KB);
    sums("at first");
    protect();
    deep(400 * KB);
    look();
    TRUE(stack >= 400 * KB && stack < 500 * KB);
    deep(4 * MB);
    sums("grown");
    TRUE(stack >= 4 * MB && stack < 5 * MB);
    limited(32 * MB, 24 * MB);
    limited(5 * MB, 7 * MB);
    limited(8 * MB, 7 * MB);
    lent();
    addresses();
    return 0;
}
