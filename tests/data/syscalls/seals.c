/* Seals of a memfd, and mappings of it. */
#include "guest.h"

#define SEALS(fd) (fcntl(fd, F_GET_SEALS))

static int file(void) {
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    ftruncate(fd, 2 * PAGE);
    pwrite(fd, "hello", 5, 0);
    return fd;
}
static char *map(int fd, int prot, int flags) {
    return mmap(0, PAGE, prot, flags, fd, 0);
}
#define MAPS(e) (errno = 0, show(#e, (e) == MAP_FAILED ? -1 : 0))

int main(void) {
    static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};
    for (unsigned s = 0; s < sizeof seals / sizeof *seals; s++) {
        printf("seal %x\n", seals[s]);
        int fd = file();
        char *at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
        SHOW(fcntl(fd, F_ADD_SEALS, seals[s]));
        SHOW(SEALS(fd));
        at[0] = 'j';
        munmap(at, PAGE);
        char text[8] = "";
        SHOW(pread(fd, text, 5, 0));
        puts(text);
        SHOW(fcntl(fd, F_ADD_SEALS, seals[s]));
        SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
        SHOW(pwrite(fd, "w", 1, 1));
        SHOW(pwrite(fd, "w", 1, 4 * PAGE));
        SHOW(ftruncate(fd, PAGE));
        SHOW(ftruncate(fd, 3 * PAGE));
        MAPS(map(fd, PROT_READ | PROT_WRITE, MAP_SHARED));
        MAPS(map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE));
        MAPS(map(fd, PROT_READ, MAP_PRIVATE));
        close(fd);
    }
    int fd = file();
    char *at = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    at[0] = 'k';
    close(fd);
    fd = file();
    at = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW));
    at[0] = 'l'; /* stored when the process ends */
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
    SHOW(SEALS(fd));
    return 0;
}
