/* Every advice to every kind of mapping: who takes it, and what is left of the content. */
#include "guest.h"

#define RW (PROT_READ | PROT_WRITE)

static char *mapping(int kind) {
    char line[2 * PAGE], *p;
    int fd = -1, readonly = -1;
    if (kind >= 2 && kind <= 6) {
        fd = open("advice.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
        memset(line, 'f', sizeof line);
        write(fd, line, sizeof line);
        readonly = open("advice.dat", O_RDONLY);
    }
    switch (kind) {
    case 0: p = mmap(0, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    case 1: p = mmap(0, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0); break;
    case 2: p = mmap(0, 2 * PAGE, RW, MAP_PRIVATE, fd, 0); break;
    case 3: p = mmap(0, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0); break;
    case 4: p = mmap(0, 2 * PAGE, RW, MAP_SHARED, fd, 0); break;
    case 5: p = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0); break;
    case 6: p = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, readonly, 0); break;
    case 7: p = mmap(0, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    default:
        p = mmap(0, 3 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(p + PAGE, PAGE);
    }
    if (fd >= 0) close(fd), close(readonly);
    return p;
}

int main(void) {
    for (int kind = 0; kind < 9; kind++) {
        int size = (kind == 8 ? 3 : 2) * PAGE;
        for (int advice = -1; advice < 30; advice++) {
            if (advice == MADV_MERGEABLE || advice == MADV_UNMERGEABLE) continue; /* a choice of the kernel's build */
            if (advice == 14 || advice == 15) continue; /* huge pages, likewise */
            char *p = mapping(kind), in_file = 0;
            if (kind == 0 || kind == 1 || kind == 2 || kind == 4 || kind == 8) p[5] = 'x';
            errno = 0;
            int done = madvise(p, size, advice);
            printf("kind %d, advice %d: %d %d", kind, advice, done, errno);
            if (kind != 7) printf(", %d", p[5]);
            if (kind == 4 || kind == 5) {
                int fd = open("advice.dat", O_RDONLY);
                pread(fd, &in_file, 1, 5);
                printf(", in the file %d of %d", in_file, (int)lseek(fd, 0, SEEK_END));
                close(fd);
            }
            printf("\n");
            munmap(p, PAGE), munmap(p + size - PAGE, PAGE);
        }
    }
    unlink("advice.dat");
    return 0;
}
