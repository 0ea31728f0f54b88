// Tries to reach sockets of the host, and to be reached from there: argv = PORT ABSTRACT FILE OWN.
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void said(const char *what, int result) {
    printf("%s: %d\n", what, result < 0 ? -errno : result);
    fflush(stdout);
}

static struct sockaddr_un named(const char *path, int abstract) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path + abstract, path, sizeof at.sun_path - 2);
    return at;
}

int main(int argc, char **argv) {
    struct sockaddr_in host = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = host.sin_port};
    six.sin6_addr = in6addr_loopback;
    struct sockaddr_un hidden = named(argv[2], 1), file = named(argv[3], 0), own = named(argv[4], 0);
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[2]);
    int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
    said("tcp", connect(tcp, (void *)&host, sizeof host));
    said("tcp6", connect(socket(AF_INET6, SOCK_STREAM, 0), (void *)&six, sizeof six));
    sendto(udp, "x", 1, 0, (void *)&host, sizeof host);
    said("abstract", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&hidden, size));
    said("file", connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&file, sizeof file));
    said("raw", socket(AF_INET, SOCK_RAW, 1) < 0 ? -1 : 0);
    // The names that the host has are free here, and what listens here is unknown there.
    int one = socket(AF_INET, SOCK_STREAM, 0), two = socket(AF_UNIX, SOCK_STREAM, 0);
    host.sin_addr.s_addr = INADDR_ANY;
    said("bind", bind(one, (void *)&host, sizeof host));
    said("bind abstract", bind(two, (void *)&hidden, size));
    int three = socket(AF_UNIX, SOCK_STREAM, 0), four = socket(AF_INET, SOCK_STREAM, 0);
    said("bind own", bind(three, (void *)&own, sizeof own));
    host.sin_port = htons(atoi(argv[5]));
    said("bind other", bind(four, (void *)&host, sizeof host));
    said("listen", listen(one, 1) | listen(two, 1) | listen(three, 1) | listen(four, 1));
    puts("ready");
    fflush(stdout);
    char byte;
    return read(0, &byte, 1) != 1;
}
