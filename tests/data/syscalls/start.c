/* What a program finds when it starts. */
#include "guest.h"
#include <elf.h>
#include <sys/auxv.h>
extern char **environ;
extern char etext, end, __executable_start;
int global = 5;
static int maps_cover(void *p, char want) {
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long lo, hi, off, ino, last = 0; char perms[8], dev[16], line[512]; int found = 0, sorted = 1;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %4s %lx %15s %lu", &lo, &hi, perms, &off, dev, &ino) != 6) { sorted = 0; printf("bad line %s", line); }
        if (lo < last || hi <= lo || lo % PAGE || hi % PAGE) sorted = 0;
        last = hi;
        if ((unsigned long)p >= lo && (unsigned long)p < hi && strchr(perms, want)) found = 1;
    }
    fclose(f);
    return found && sorted;
}
int main(int argc, char **argv) {
    TRUE(argc == 3 && !argv[3]);
    printf("%s|%s\n", argv[1], argv[2]);
    TRUE((unsigned long)__builtin_frame_address(0) % 16 == 0);
    unsigned long *stack = (unsigned long *)argv - 1;
    TRUE((unsigned long)stack % 16 == 0);
    TRUE(stack[0] == 3);
    char **e = environ; TRUE(e == argv + argc + 1); while (*e) e++;
    Elf64_auxv_t *a = (Elf64_auxv_t *)(e + 1);
    int keys[] = {AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_FLAGS, AT_ENTRY, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_CLKTCK, AT_HWCAP, AT_SECURE, AT_RANDOM, AT_EXECFN, AT_HWCAP2, AT_MINSIGSTKSZ, AT_NULL,
#ifndef __riscv /* Linux has no name for it */
        AT_PLATFORM,
#endif
    };
    for (int i = 0; i < sizeof keys / sizeof *keys; i++) { int n = 0; for (Elf64_auxv_t *p = a;; p++) { n += p->a_type == keys[i]; if (!p->a_type) break; } if (n != 1) printf("key %d: %d times\n", keys[i], n); }
    TRUE(getauxval(AT_PAGESZ) == PAGE); TRUE(getauxval(AT_CLKTCK) == 100); TRUE(getauxval(AT_SECURE) == 0); TRUE(getauxval(AT_UID) == getuid()); TRUE(getauxval(AT_EGID) == getegid());
    Elf64_Phdr *ph = (void *)getauxval(AT_PHDR); Elf64_Ehdr *eh = (void *)&__executable_start;
    TRUE(ph == (void *)((char *)eh + eh->e_phoff)); TRUE(getauxval(AT_PHNUM) == eh->e_phnum); TRUE(getauxval(AT_PHENT) == sizeof *ph); TRUE(getauxval(AT_ENTRY) == eh->e_entry);
    TRUE(strstr((char *)getauxval(AT_EXECFN), "start") != 0);
    unsigned char *r = (void *)getauxval(AT_RANDOM); int any = 0; for (int i = 0; i < 16; i++) any |= r[i]; TRUE(any);
    char buffer[4096]; int fd = open("/proc/self/auxv", O_RDONLY); long n = read(fd, buffer, sizeof buffer); Elf64_auxv_t *last = a; while (last->a_type) last++;
    TRUE(n >= (char *)(last + 1) - (char *)a); TRUE(!memcmp(buffer, a, (char *)(last + 1) - (char *)a)); close(fd);
    fd = open("/proc/self/cmdline", O_RDONLY); n = read(fd, buffer, sizeof buffer); TRUE(n == strlen(argv[0]) + 1 + 2 + 4); TRUE(!memcmp(buffer + n - 6, "a\0b c", 6)); close(fd);
    TRUE(maps_cover(main, 'x')); TRUE(maps_cover(&global, 'w')); TRUE(maps_cover(&n, 'w')); TRUE(maps_cover(argv[0], 'w')); TRUE(!maps_cover((void *)8, 'r'));
    char *heap = malloc(10); TRUE(maps_cover(heap, 'w')); char *m = mmap(0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); TRUE(maps_cover(m, 'r')); TRUE(!maps_cover(m, 'w')); munmap(m, PAGE); TRUE(!maps_cover(m, 'r'));
    TRUE((unsigned long)heap > (unsigned long)&end && (unsigned long)sbrk(0) > (unsigned long)heap);
    int zero = 1; for (char *p = (char *)(((unsigned long)&end + 15) & -16); (unsigned long)p % PAGE; p++) zero &= !*p; TRUE(zero);
    sigset_t set; sigprocmask(SIG_BLOCK, 0, &set); for (int i = 1; i < 65; i++) if (sigismember(&set, i) > 0) printf("blocked %d\n", i);
    stack_t ss; sigaltstack(0, &ss); printf("%d %ld\n", ss.ss_flags, (long)ss.ss_size);
    return 7;
}
