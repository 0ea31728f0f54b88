/* Waiting for sockets: epoll (level, edge, one shot), select, blocked calls that others end. */
#include "sockets.h"
#include <pthread.h>
#include <sys/select.h>

static int one, two, ep;
static void shown(const char *what, unsigned e) {
    printf("%s:%s%s%s%s%s%s\n", what, e & EPOLLIN ? " in" : "", e & EPOLLOUT ? " out" : "",
           e & EPOLLRDHUP ? " rdhup" : "", e & EPOLLHUP ? " hup" : "", e & EPOLLERR ? " err" : "",
           e & ~(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? " more" : "");
    fflush(stdout);
}
static void next_event(const char *what) {
    struct epoll_event e;
    int n = epoll_wait(ep, &e, 1, 0);
    if (n == 1) shown(what, e.events);
    else printf("%s: %s\n", what, n ? "error" : "nothing");
}
#define NEXT(what) next_event(what)
static int watch(int fd, int events, int operation) {
    struct epoll_event e = {events};
    return epoll_ctl(ep, operation, fd, &e);
}
static void connection(int family) {
    if (family == AF_UNIX) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        one = pair[0];
        two = pair[1];
        return;
    }
    int l = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = v4("127.0.0.1", 0);
    bind(l, ADDR(a));
    listen(l, 5);
    one = socket(AF_INET, SOCK_STREAM, 0);
    a = v4("127.0.0.1", port_of(l));
    connect(one, ADDR(a));
    two = accept(l, 0, 0);
    close(l);
}
static void settle(void) { usleep(2000); } /* for what a timer of TCP's has to do natively */

static void edges(int family) {
    printf("family %s\n", family == AF_UNIX ? "unix" : "inet");
    ep = epoll_create1(0);
    connection(family);
    SHOW(watch(two, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, EPOLL_CTL_ADD));
    NEXT("new");
    NEXT("again");
    send(one, "abc", 3, 0);
    NEXT("data");
    NEXT("again");
    send(one, "def", 3, 0);
    NEXT("more data, nothing read");
    recv(two, text, 1, 0);
    NEXT("some read");
    recv(two, text, 9, 0);
    NEXT("all read");
    send(two, "back", 4, 0);
    NEXT("sent");
    SHOW(watch(two, EPOLLIN | EPOLLET, EPOLL_CTL_MOD));
    NEXT("changed");
    send(one, "x", 1, 0);
    SHOW(watch(two, EPOLLOUT | EPOLLET, EPOLL_CTL_MOD));
    NEXT("another change");
    SHOW(watch(two, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, EPOLL_CTL_MOD));
    NEXT("back");
    shutdown(one, SHUT_WR);
    settle();
    NEXT("half closed");
    NEXT("again");
    close(one);
    settle();
    NEXT("closed");
    NEXT("again");
    close(two);
    NEXT("forgotten");
    /* full, and room again */
    connection(family);
    fcntl(two, F_SETFL, O_NONBLOCK);
    set(two, SOL_SOCKET, SO_SNDBUF, 20000);
    set(one, SOL_SOCKET, SO_RCVBUF, 20000);
    watch(two, EPOLLOUT | EPOLLET, EPOLL_CTL_ADD);
    NEXT("new");
    while (send(two, text, 5000, 0) > 0) {}
    NEXT("full");
    for (int n = 0; n < 50; n++) {
        while (recv(one, text, sizeof text, MSG_DONTWAIT) > 0) {}
        settle();
    }
    NEXT("room");
    NEXT("again");
    close(one);
    close(two);
    /* level and one shot */
    connection(family);
    watch(two, EPOLLIN, EPOLL_CTL_ADD);
    NEXT("quiet");
    send(one, "abc", 3, 0);
    NEXT("level");
    NEXT("level again");
    SHOW(watch(two, EPOLLIN | EPOLLONESHOT, EPOLL_CTL_MOD));
    NEXT("one shot");
    NEXT("spent");
    send(one, "abc", 3, 0);
    NEXT("still spent");
    SHOW(watch(two, EPOLLIN | EPOLLONESHOT, EPOLL_CTL_MOD));
    NEXT("armed");
    SHOW(watch(two, EPOLLIN, EPOLL_CTL_ADD));
    SHOW(watch(two, 0, EPOLL_CTL_MOD));
    close(one);
    settle();
    NEXT("hang-up without being asked");
    close(two);
    close(ep);
}

static void listeners(void) {
    ep = epoll_create1(0);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), c[3];
    watch(l, EPOLLIN | EPOLLOUT | EPOLLRDHUP, EPOLL_CTL_ADD);
    NEXT("nothing yet");
    struct sockaddr_in a = v4("127.0.0.1", 0);
    bind(l, ADDR(a));
    listen(l, 5);
    a = v4("127.0.0.1", port_of(l));
    watch(l, EPOLLIN | EPOLLET, EPOLL_CTL_MOD);
    NEXT("listening");
    for (int n = 0; n < 2; n++) {
        c[n] = socket(AF_INET, SOCK_STREAM, 0);
        connect(c[n], ADDR(a));
        NEXT("one more");
    }
    NEXT("no more");
    close(accept(l, 0, 0));
    NEXT("one taken");
    c[2] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    watch(c[2], EPOLLIN | EPOLLOUT | EPOLLET, EPOLL_CTL_ADD);
    NEXT("not connected");
    connect(c[2], ADDR(a));
    settle();
    struct epoll_event two_of[4];
    printf("events %d\n", epoll_wait(ep, two_of, 4, 0));
    int refused = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    a = v4("127.0.0.1", 1);
    watch(refused, EPOLLIN | EPOLLOUT | EPOLLRDHUP, EPOLL_CTL_ADD);
    connect(refused, ADDR(a));
    settle();
    NEXT("refused");
    ERROR(refused);
    NEXT("asked");
    for (int n = 0; n < 3; n++) close(c[n]);
    close(refused);
    close(l);
    close(ep);
}

static void selecting(void) {
    connection(AF_INET);
    fd_set in, out, odd;
    struct timeval t = {0, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&odd);
    FD_SET(one, &in);
    FD_SET(two, &in);
    FD_SET(one, &out);
    FD_SET(one, &odd);
    send(one, "x", 1, 0);
    int most = (one > two ? one : two) + 1;
    SHOW(select(most, &in, &out, &odd, &t));
    printf("%d %d %d %d\n", !!FD_ISSET(one, &in), !!FD_ISSET(two, &in), !!FD_ISSET(one, &out), !!FD_ISSET(one, &odd));
    FD_ZERO(&in);
    FD_SET(one, &in);
    t.tv_usec = 3000;
    SHOW(select(most, &in, 0, 0, &t));
    close(two);
    FD_SET(one, &in);
    SHOW(select(most, &in, 0, 0, 0));
    close(one);
}

/* Threads wait, others end that. */
static void *sends(void *what) {
    usleep(2000);
    send(one, what, strlen(what), 0);
    return 0;
}
static void *shuts(void *what) {
    usleep(2000);
    shutdown((long)what, SHUT_RDWR);
    return 0;
}
static void *reads(void *what) {
    usleep(2000);
    long n, all = 0;
    while ((n = recv((long)what, text + (1 << 19), 60000, 0)) > 0) all += n;
    return (void *)all;
}
static void on_alarm(int number) {}
static void blocked(int family) {
    pthread_t t;
    void *result;
    connection(family);
    pthread_create(&t, 0, sends, "hello");
    GOT(two, 9, 0);
    pthread_join(t, 0);
    pthread_create(&t, 0, sends, "poll");
    struct pollfd p = {two, POLLIN};
    SHOW(poll(&p, 1, 5000));
    pthread_join(t, 0);
    GOT(two, 9, 0);
    pthread_create(&t, 0, shuts, (void *)(long)two);
    GOT(two, 9, 0);
    pthread_join(t, 0);
    close(one);
    close(two);
    connection(family);
    pthread_create(&t, 0, reads, (void *)(long)two);
    long done = send(one, text, 1 << 19, 0);
    TRUE(done == 1 << 19);
    shutdown(one, SHUT_WR);
    pthread_join(t, &result);
    TRUE((long)result == 1 << 19);
    close(one);
    close(two);
    /* signals */
    connection(family);
    struct sigaction act = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &act, 0);
    struct itimerval soon = {{0, 0}, {0, 3000}};
    setitimer(ITIMER_REAL, &soon, 0);
    GOT(two, 9, 0);
    send(one, "some", 4, 0);
    setitimer(ITIMER_REAL, &soon, 0);
    GOT(two, 9, MSG_WAITALL);
    set(one, SOL_SOCKET, SO_SNDBUF, 9000);
    set(two, SOL_SOCKET, SO_RCVBUF, 9000);
    setitimer(ITIMER_REAL, &soon, 0);
    done = send(one, text, sizeof text, 0);
    TRUE(done > 0 && done < sizeof text);
    setitimer(ITIMER_REAL, &soon, 0);
    SHOW(send(one, text, sizeof text, 0));
    setitimer(ITIMER_REAL, &soon, 0);
    SHOW(write(one, text, sizeof text));
    close(one);
    close(two);
    /* a pipe, where it is the same */
    int pipes[2];
    pipe(pipes);
    setitimer(ITIMER_REAL, &soon, 0);
    SHOW(write(pipes[1], text, 1 << 18));
    close(pipes[0]);
    close(pipes[1]);
}

static void moving(void) {
    connection(AF_INET);
    int on = 1, off = 0;
    SHOW(ioctl(one, FIOASYNC, &on));
    SHOW(fcntl(one, F_GETFL));
    SHOW(ioctl(one, FIONBIO, &on));
    SHOW(fcntl(one, F_GETFL));
    SHOW(ioctl(one, FIOASYNC, &off));
    SHOW(ioctl(one, FIONBIO, &off));
    SHOW(fcntl(one, F_GETFL));
    SHOW(ioctl(one, FIOASYNC, 8));
    int pipes[2], file = open("/proc/self/exe", O_RDONLY);
    pipe(pipes);
    write(pipes[1], "through a pipe", 14);
    SHOW(splice(pipes[0], 0, one, 0, 7, 0));
    GOT(two, 99, 0);
    SHOW(splice(pipes[0], 0, one, 0, 99, SPLICE_F_MOVE));
    GOT(two, 99, 0);
    send(one, "and back", 8, 0);
    SHOW(splice(two, 0, pipes[1], 0, 99, 0));
    memset(text, 0, 64);
    SHOW(read(pipes[0], text, 99));
    puts(text);
    loff_t at = 1;
    SHOW(splice(file, &at, pipes[1], 0, 3, 0));
    TRUE(at == 4);
    SHOW(tee(pipes[0], pipes[1], 9, 0));
    int other[2];
    pipe(other);
    SHOW(tee(pipes[0], other[1], 9, 0));
    SHOW(read(other[0], text, 99));
    SHOW(splice(pipes[0], 0, other[1], 0, 99, 0));
    SHOW(read(other[0], text, 99));
    puts(text);
    SHOW(splice(pipes[0], 0, one, 0, 9, SPLICE_F_NONBLOCK));
    fcntl(one, F_SETFL, O_NONBLOCK);
    SHOW(splice(one, 0, pipes[1], 0, 9, 0));
    fcntl(one, F_SETFL, 0);
    SHOW(splice(one, 0, two, 0, 9, 0));
    SHOW(splice(pipes[0], &at, two, 0, 9, 0));
    SHOW(splice(one, &at, pipes[1], 0, 9, 0));
    SHOW(splice(pipes[0], 0, pipes[1], 0, 9, 0));
    SHOW(splice(pipes[1], 0, one, 0, 9, 0));
    SHOW(splice(99, 0, one, 0, 9, 0));
    SHOW(splice(pipes[0], 0, one, 0, 9, 99));
    SHOW(splice(pipes[0], 0, one, 0, 0, 0));
    struct iovec parts[2] = {{"vm", 2}, {"splice", 6}};
    SHOW(vmsplice(pipes[1], parts, 2, 0));
    memset(text, 0, 64);
    SHOW(read(pipes[0], text, 99));
    puts(text);
    SHOW(vmsplice(file, parts, 2, 0));
    close(pipes[1]);
    SHOW(splice(pipes[0], 0, one, 0, 9, 0));
    close(two);
    SHOW(sendfile(one, file, 0, 10));
    settle();
    SHOW(sendfile(one, file, 0, 10));
    broken();
    close(one);
    close(file);
}

int main(void) {
    signal(SIGPIPE, on_pipe);
    edges(AF_INET);
    edges(AF_UNIX);
    listeners();
    selecting();
    blocked(AF_INET);
    blocked(AF_UNIX);
    moving();
    return 0;
}
