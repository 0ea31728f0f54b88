/* What the guests about sockets share: loopback only, ports that nobody asks for are not printed. */
#include "guest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

static volatile int pipes_broken;
static void on_pipe(int number) { pipes_broken++; }

static struct sockaddr_in v4(const char *host, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}
static struct sockaddr_in6 v6(const char *host, int port) {
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    inet_pton(AF_INET6, host, &a.sin6_addr);
    return a;
}
#define ADDR(a) (struct sockaddr *)&(a), sizeof(a)

static int port_of(int fd) {
    struct sockaddr_in6 a;
    socklen_t size = sizeof a;
    getsockname(fd, (struct sockaddr *)&a, &size);
    return ntohs(a.sin6_port);
}
/* The host of an address, the port only as "some" or "none". */
static void host_of(const char *what, int fd, int (*get)(int, struct sockaddr *, socklen_t *)) {
    struct sockaddr_storage s;
    socklen_t size = sizeof s;
    char text[64] = "?";
    memset(&s, 0, sizeof s);
    if (get(fd, (struct sockaddr *)&s, &size)) {
        show(what, -1);
        return;
    }
    int port = 0;
    if (s.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&s)->sin_addr, text, sizeof text);
        port = ((struct sockaddr_in *)&s)->sin_port;
    } else if (s.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&s)->sin6_addr, text, sizeof text);
        port = ((struct sockaddr_in6 *)&s)->sin6_port;
    }
    printf("%s: family %d size %d %s %s\n", what, s.ss_family, size, text, port ? "some" : "none");
}
#define NAME(fd) host_of("getsockname " #fd, fd, getsockname)
#define PEER(fd) host_of("getpeername " #fd, fd, getpeername)

static void option(const char *what, int fd, int level, int name) {
    int value = 77;
    socklen_t size = sizeof value;
    if (getsockopt(fd, level, name, &value, &size)) show(what, -1);
    else printf("%s: %d, %d bytes\n", what, value, size);
}
#define OPT(fd, level, name) option("option " #name, fd, level, name)
static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value);
}
static int error_of(int fd) {
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size);
    return value;
}
#define ERROR(fd) printf("error of " #fd ": %s\n", error_name(error_of(fd)))
static const char *error_name(int code) { return code ? strerrorname_np(code) : "none"; }

/* Events that hold now. */
static int events(int fd) {
    struct pollfd entry = {fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP};
    return poll(&entry, 1, 0) < 0 ? -1 : entry.revents;
}
static void poll_shown(const char *what, int fd) {
    int e = events(fd);
    printf("poll %s:%s%s%s%s%s%s\n", what, e & POLLIN ? " in" : "", e & POLLOUT ? " out" : "",
           e & POLLRDHUP ? " rdhup" : "", e & POLLHUP ? " hup" : "", e & POLLERR ? " err" : "",
           e & POLLNVAL ? " nval" : "");
}
#define POLL(fd) poll_shown(#fd, fd)

static int available(int fd) {
    int n = -1;
    return ioctl(fd, FIONREAD, &n) ? -1 : n;
}
static char text[1 << 20];
/* Receive and show what came. */
static void got(const char *what, int fd, int size, int flags) {
    memset(text, 0, 64);
    errno = 0;
    long n = recv(fd, text, size, flags);
    if (n < 0) show(what, -1);
    else printf("%s: %ld \"%.40s\"\n", what, n, text);
    fflush(stdout);
}
#define GOT(fd, size, flags) got("recv " #fd " " #size " " #flags, fd, size, flags)
static void broken(void) {
    if (pipes_broken) printf("SIGPIPE %d\n", pipes_broken);
    pipes_broken = 0;
}
#define SEND(fd, data, flags)                                                                     \
    do {                                                                                          \
        SHOW(send(fd, data, strlen(data), flags));                                                \
        broken();                                                                                 \
    } while (0)
