/* TCP on loopback: connecting, bytes, the ends of connections, options. */
#include "sockets.h"

static int listener(int family, int backlog) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (family == AF_INET) {
        struct sockaddr_in a = v4("127.0.0.1", 0);
        bind(fd, ADDR(a));
    } else {
        struct sockaddr_in6 a = v6("::1", 0);
        bind(fd, ADDR(a));
    }
    listen(fd, backlog);
    return fd;
}
static int client(int family, int port) {
    int fd = socket(family, SOCK_STREAM, 0);
    int bad;
    if (family == AF_INET) {
        struct sockaddr_in a = v4("127.0.0.1", port);
        bad = connect(fd, ADDR(a));
    } else {
        struct sockaddr_in6 a = v6("::1", port);
        bad = connect(fd, ADDR(a));
    }
    if (bad) show("connect", -1);
    return fd;
}
static int one, two;
static void connection(void) {
    int l = listener(AF_INET, 5);
    one = client(AF_INET, port_of(l));
    two = accept(l, 0, 0);
    close(l);
}
static void done(void) {
    close(one);
    close(two);
}

static void making(void) {
    SHOW(socket(AF_INET, 0, 0));
    SHOW(socket(AF_INET, 11, 0));
    SHOW(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    SHOW(socket(AF_INET, SOCK_SEQPACKET, 0));
    SHOW(socket(AF_INET, SOCK_STREAM | 0x100, 0));
    SHOW(socket(-1, SOCK_STREAM, 0));
    SHOW(socket(99, SOCK_STREAM, 0));
    WORKS(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP));
    WORKS(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int pair[2];
    SHOW(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct stat st;
    fstat(fd, &st);
    printf("mode %o size %ld\n", st.st_mode, (long)st.st_size);
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(pread(fd, text, 1, 0));
    SHOW(fcntl(fd, F_GETFL));
    NAME(fd);
    PEER(fd);
    POLL(fd);
    SHOW(recv(fd, text, 1, 0));
    SHOW(read(fd, text, 1));
    SEND(fd, "x", 0);
    SEND(fd, "x", MSG_NOSIGNAL);
    SHOW(write(fd, "x", 1));
    broken();
    SHOW(shutdown(fd, SHUT_RD));
    SHOW(shutdown(fd, 9));
    SHOW(accept(fd, 0, 0));
    SHOW(accept4(fd, 0, 0, 4));
    SHOW(available(fd));
    close(fd);
}

static void names(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = v4("127.0.0.1", 0), low = v4("127.0.0.1", 80);
    struct sockaddr_in6 six = v6("::1", 0);
    SHOW(bind(fd, (void *)&a, 15));
    SHOW(bind(fd, (void *)&a, -1));
    SHOW(bind(fd, (void *)&a, 1000));
    SHOW(bind(fd, (void *)8, 16));
    SHOW(bind(fd, ADDR(six)));
    SHOW(bind(fd, ADDR(low)));
    a.sin_family = AF_UNSPEC;
    SHOW(bind(fd, ADDR(a)));
    a = v4("192.0.2.1", 0);
    SHOW(bind(fd, ADDR(a)));
    // A port that nobody has at 127.0.0.1 either, which is asked for below.
    int scout = socket(AF_INET, SOCK_STREAM, 0);
    a = v4("127.0.0.1", 0);
    bind(scout, ADDR(a));
    a = v4("127.1.2.3", port_of(scout));
    close(scout);
    SHOW(bind(fd, ADDR(a)));
    NAME(fd);
    SHOW(bind(fd, ADDR(a)));
    a = v4("127.1.2.3", port_of(fd));
    SHOW(bind(other, ADDR(a)));
    SHOW(set(other, SOL_SOCKET, SO_REUSEADDR, 1));
    SHOW(bind(other, ADDR(a)));
    SHOW(set(fd, SOL_SOCKET, SO_REUSEADDR, 1));
    SHOW(bind(other, ADDR(a)));
    SHOW(listen(fd, 1));
    SHOW(listen(other, 1));
    close(other);
    other = socket(AF_INET, SOCK_STREAM, 0);
    set(other, SOL_SOCKET, SO_REUSEADDR, 1);
    SHOW(bind(other, ADDR(a)));
    a = v4("127.0.0.1", port_of(fd));
    SHOW(bind(other, ADDR(a)));
    close(other);
    close(fd);
    int p = socket(AF_INET, SOCK_STREAM, 0), q = socket(AF_INET, SOCK_STREAM, 0);
    set(p, SOL_SOCKET, SO_REUSEPORT, 1);
    set(q, SOL_SOCKET, SO_REUSEPORT, 1);
    a = v4("0.0.0.0", 0);
    SHOW(bind(p, ADDR(a)));
    a = v4("0.0.0.0", port_of(p));
    SHOW(bind(q, ADDR(a)));
    SHOW(listen(p, 1));
    SHOW(listen(q, 1));
    close(p);
    close(q);
    /* unbound */
    fd = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(listen(fd, 1));
    NAME(fd);
    SHOW(listen(fd, 2));
    struct sockaddr_storage s;
    socklen_t size = 4;
    memset(&s, 7, sizeof s);
    SHOW(getsockname(fd, (void *)&s, &size));
    printf("size %d family %d rest %d\n", size, s.ss_family, ((char *)&s)[5]);
    size = -1;
    SHOW(getsockname(fd, (void *)&s, &size));
    SHOW(getsockname(fd, (void *)&s, (void *)8));
    SHOW(getsockname(0, (void *)&s, &size));
    close(fd);
}

static void connecting(void) {
    int l = listener(AF_INET, 5), port = port_of(l);
    struct sockaddr_in a = v4("127.0.0.1", port);
    struct sockaddr_in6 six = v6("::1", port);
    POLL(l);
    SHOW(connect(l, ADDR(a)));
    SHOW(recv(l, text, 1, 0));
    SEND(l, "x", 0);
    SHOW(available(l));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(fd, (void *)&a, 15));
    SHOW(connect(fd, (void *)&a, 1));
    SHOW(connect(fd, ADDR(six)));
    SHOW(connect(fd, (void *)8, 16));
    SHOW(connect(fd, ADDR(a)));
    NAME(fd);
    PEER(fd);
    SHOW(connect(fd, ADDR(a)));
    SHOW(bind(fd, ADDR(a)));
    SHOW(listen(fd, 1));
    POLL(l);
    POLL(fd);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int got_one = accept4(l, (void *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    WORKS(got_one);
    printf("from %d %d %s\n", size, from.sin_family, inet_ntoa(from.sin_addr));
    TRUE(ntohs(from.sin_port) == port_of(fd));
    TRUE(port_of(got_one) == port);
    SHOW(fcntl(got_one, F_GETFL));
    SHOW(fcntl(got_one, F_GETFD));
    NAME(got_one);
    PEER(got_one);
    fcntl(l, F_SETFL, O_NONBLOCK);
    SHOW(accept(l, 0, 0));
    close(fd);
    close(got_one);
    /* without waiting */
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(fd, ADDR(a)));
    POLL(fd);
    ERROR(fd);
    SHOW(connect(fd, ADDR(a)));
    SHOW(connect(fd, ADDR(a)));
    close(fd);
    close(accept(l, 0, 0));
    close(l);
    /* nobody there */
    fd = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(fd, ADDR(a)));
    SHOW(connect(fd, ADDR(a)));
    ERROR(fd);
    POLL(fd);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(fd, ADDR(a)));
    POLL(fd);
    SHOW(connect(fd, ADDR(a)));
    POLL(fd);
    SHOW(connect(fd, ADDR(a)));
    POLL(fd);
    ERROR(fd);
    ERROR(fd);
    POLL(fd);
    SHOW(connect(fd, ADDR(a)));
    SHOW(recv(fd, text, 1, 0));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, ADDR(a));
    SHOW(recv(fd, text, 1, 0));
    SHOW(recv(fd, text, 1, 0));
    SEND(fd, "x", 0);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, ADDR(a));
    SEND(fd, "x", 0);
    SEND(fd, "x", 0);
    SHOW(shutdown(fd, SHUT_WR));
    close(fd);
    /* to all addresses; disconnecting */
    l = listener(AF_INET, 5);
    a = v4("0.0.0.0", port_of(l));
    fd = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(fd, ADDR(a)));
    PEER(fd);
    int there = accept(l, 0, 0);
    struct sockaddr none = {AF_UNSPEC};
    SHOW(connect(fd, ADDR(none)));
    PEER(fd);
    NAME(fd);
    POLL(fd);
    GOT(there, 9, 0);
    GOT(there, 9, 0);
    SHOW(connect(fd, ADDR(a)));
    close(fd);
    close(there);
    close(l);
}

static void backlog(void) {
    int l = listener(AF_INET, 1), port = port_of(l), fd[3];
    struct sockaddr_in a = v4("127.0.0.1", port);
    for (int n = 0; n < 3; n++) {
        fd[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        SHOW(connect(fd[n], ADDR(a)));
        POLL(fd[n]);
    }
    SHOW(connect(fd[2], ADDR(a)));
    GOT(fd[2], 1, 0);
    SEND(fd[2], "x", 0);
    PEER(fd[2]);
    close(fd[2]);
    SEND(fd[0], "first", 0);
    SHOW(shutdown(l, SHUT_RD));
    POLL(l);
    SHOW(accept(l, 0, 0));
    POLL(fd[0]);
    ERROR(fd[0]);
    SEND(fd[1], "x", 0);
    SEND(fd[1], "x", 0);
    SHOW(listen(l, 4));
    TRUE(port_of(l) == port);
    close(fd[0]);
    close(fd[1]);
    close(l);
    l = listener(AF_INET, 3);
    int c = client(AF_INET, port_of(l));
    close(c); /* gone before it is taken */
    POLL(l);
    int s = accept(l, 0, 0);
    WORKS(s);
    PEER(s);
    GOT(s, 9, 0);
    c = client(AF_INET, port_of(l));
    close(l); /* and the other way round */
    POLL(c);
    GOT(c, 9, 0);
    GOT(c, 9, 0);
    PEER(c);
    close(c);
    close(s);
}

static void bytes(void) {
    connection();
    SEND(one, "hello", 0);
    SHOW(available(two));
    SHOW(available(one));
    POLL(two);
    GOT(two, 2, MSG_PEEK);
    GOT(two, 2, 0);
    GOT(two, 9, 0);
    GOT(two, 9, MSG_DONTWAIT);
    SHOW(send(one, "", 0, 0));
    POLL(two);
    SHOW(recv(two, text, 0, MSG_DONTWAIT));
    SEND(one, "abc", MSG_MORE);
    SEND(one, "def", 0);
    SHOW(recv(two, text, 0, 0));
    GOT(two, 4, MSG_TRUNC);
    GOT(two, 2, MSG_WAITALL);
    struct iovec parts[3] = {{"12", 2}, {"", 0}, {"3456", 4}};
    SHOW(writev(one, parts, 3));
    char a[3] = "", b[9] = "";
    struct iovec into[2] = {{a, 2}, {b, 8}};
    SHOW(readv(two, into, 2));
    printf("%s %s\n", a, b);
    SHOW(sendto(one, "to", 2, 0, (void *)8, 16));
    struct sockaddr_in elsewhere = v4("192.0.2.1", 9), from;
    SHOW(sendto(one, "to", 2, 0, ADDR(elsewhere)));
    socklen_t size = sizeof from;
    SHOW(recvfrom(two, text, 9, 0, (void *)&from, &size));
    printf("size %d\n", size);
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 3};
    SHOW(sendmsg(one, &m, 0));
    struct msghdr r = {.msg_iov = into, .msg_iovlen = 2, .msg_name = &from,
                       .msg_namelen = sizeof from, .msg_flags = 99, .msg_controllen = 0};
    SHOW(recvmsg(two, &r, 0));
    printf("flags %x name %d control %ld\n", r.msg_flags, r.msg_namelen, (long)r.msg_controllen);
    SHOW(send(one, (void *)8, 4, 0));
    SEND(one, "xy", 0);
    SHOW(recv(two, (void *)8, 4, 0));
    GOT(two, 4, 0);
    SHOW(send(99, "x", 1, 0));
    SHOW(send(0, "x", 1, 0));
    SHOW(recv(two, text, 1, MSG_ERRQUEUE));
    SHOW(recv(two, text, 1, MSG_OOB));
    /* much: the buffers are bounded */
    set(one, SOL_SOCKET, SO_SNDBUF, 10000);
    fcntl(one, F_SETFL, O_NONBLOCK);
    long sent = 0, n;
    while ((n = send(one, text, sizeof text, 0)) > 0) sent += n;
    show("full", n);
    TRUE(sent > 10000 && sent < 16 << 20);
    POLL(one);
    long seen = 0;
    while (seen < sent && (n = recv(two, text, sizeof text, 0)) > 0) seen += n;
    TRUE(seen == sent);
    POLL(one);
    int file = open("/proc/self/exe", O_RDONLY);
    off_t at = 1;
    SHOW(sendfile(one, file, &at, 3));
    GOT(two, 9, 0);
    TRUE(at == 4);
    done();
}

static void ends(void) {
    connection();
    SEND(one, "last", 0);
    SHOW(shutdown(one, SHUT_WR));
    SEND(one, "x", 0);
    SEND(one, "x", MSG_NOSIGNAL);
    POLL(one);
    POLL(two);
    GOT(two, 2, 0);
    GOT(two, 9, 0);
    GOT(two, 9, 0);
    SEND(two, "back", 0);
    GOT(one, 9, 0);
    SHOW(shutdown(two, SHUT_WR));
    POLL(one);
    POLL(two);
    GOT(one, 9, 0);
    SHOW(shutdown(one, SHUT_RDWR));
    SHOW(shutdown(two, SHUT_RDWR));
    PEER(one);
    PEER(two);
    done();

    puts("the peer closes, then we write");
    connection();
    close(two);
    POLL(one);
    GOT(one, 9, 0);
    SEND(one, "a", 0);
    POLL(one);
    SEND(one, "b", 0);
    SEND(one, "c", 0);
    GOT(one, 9, 0);
    ERROR(one);
    close(one);

    puts("the peer closes with bytes unread");
    connection();
    SEND(two, "before", 0);
    SEND(one, "unread", 0);
    close(two);
    POLL(one);
    GOT(one, 9, 0);
    GOT(one, 9, 0);
    GOT(one, 9, 0);
    SEND(one, "x", 0);
    PEER(one);
    SHOW(shutdown(one, SHUT_WR));
    close(one);
    connection();
    SEND(one, "unread", 0);
    close(two);
    SEND(one, "x", 0);
    SEND(one, "x", 0);
    GOT(one, 9, 0);
    close(one);
    connection();
    SEND(one, "unread", 0);
    close(two);
    ERROR(one);
    ERROR(one);
    POLL(one);
    close(one);

    puts("linger 0");
    connection();
    struct linger hard = {1, 0};
    SHOW(setsockopt(two, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    close(two);
    POLL(one);
    GOT(one, 9, 0);
    GOT(one, 9, 0);
    close(one);

    puts("half closed, then closed");
    connection();
    shutdown(one, SHUT_WR);
    close(two);
    POLL(one);
    GOT(one, 9, 0);
    close(one);
    connection();
    shutdown(one, SHUT_WR);
    SEND(one, "x", 0);
    SEND(two, "unread", 0);
    close(one);
    POLL(two);
    GOT(two, 9, 0);
    SEND(two, "x", 0);
    SEND(two, "x", 0);
    close(two);

    puts("reading is over");
    connection();
    SEND(one, "early", 0);
    SHOW(shutdown(two, SHUT_RD));
    POLL(two);
    POLL(one);
    GOT(two, 9, 0);
    GOT(two, 9, 0);
    SEND(one, "late", 0);
    GOT(two, 9, 0);
    GOT(two, 9, 0);
    done();

    puts("the port stays for a while");
    int l = listener(AF_INET, 5), port = port_of(l);
    one = client(AF_INET, port);
    two = accept(l, 0, 0);
    close(l);
    struct sockaddr_in a = v4("127.0.0.1", port);
    l = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(bind(l, ADDR(a)));
    close(two);
    close(one);
    SHOW(bind(l, ADDR(a)));
    SHOW(set(l, SOL_SOCKET, SO_REUSEADDR, 1));
    SHOW(bind(l, ADDR(a)));
    close(l);
}

static void six(void) {
    int l = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 a = v6("::", 0), b;
    OPT(l, IPPROTO_IPV6, IPV6_V6ONLY);
    SHOW(bind(l, (void *)&a, 23));
    SHOW(bind(l, ADDR(a)));
    SHOW(set(l, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    SHOW(listen(l, 4));
    NAME(l);
    int port = port_of(l);
    int four = client(AF_INET, port), s = accept(l, 0, 0);
    NAME(four);
    PEER(four);
    NAME(s);
    PEER(s);
    SEND(four, "v4", 0);
    GOT(s, 9, 0);
    close(four);
    close(s);
    int full = client(AF_INET6, port);
    s = accept(l, 0, 0);
    NAME(full);
    PEER(s);
    close(full);
    close(s);
    full = socket(AF_INET6, SOCK_STREAM, 0);
    b = v6("::ffff:127.0.0.1", port);
    SHOW(connect(full, ADDR(b)));
    s = accept(l, 0, 0);
    NAME(full);
    PEER(full);
    close(full);
    close(s);
    full = socket(AF_INET6, SOCK_STREAM, 0);
    set(full, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    SHOW(connect(full, ADDR(b)));
    b = v6("::", port);
    SHOW(connect(full, ADDR(b)));
    PEER(full);
    close(full);
    struct sockaddr_in c = v4("0.0.0.0", port);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(bind(other, ADDR(c)));
    close(l);
    l = socket(AF_INET6, SOCK_STREAM, 0);
    set(l, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    a = v6("::", 0);
    bind(l, ADDR(a));
    listen(l, 1);
    c = v4("0.0.0.0", port_of(l));
    SHOW(bind(other, ADDR(c)));
    c = v4("127.0.0.1", port_of(l));
    full = socket(AF_INET, SOCK_STREAM, 0);
    SHOW(connect(full, ADDR(c)));
    close(full);
    close(other);
    close(l);
}

static void options(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), f6 = socket(AF_INET6, SOCK_STREAM, 0);
    OPT(fd, SOL_SOCKET, SO_TYPE);
    OPT(fd, SOL_SOCKET, SO_DOMAIN);
    OPT(f6, SOL_SOCKET, SO_DOMAIN);
    OPT(fd, SOL_SOCKET, SO_PROTOCOL);
    OPT(fd, SOL_SOCKET, SO_ACCEPTCONN);
    OPT(fd, SOL_SOCKET, SO_REUSEADDR);
    OPT(fd, SOL_SOCKET, SO_KEEPALIVE);
    OPT(fd, SOL_SOCKET, SO_BROADCAST);
    OPT(fd, SOL_SOCKET, SO_OOBINLINE);
    OPT(fd, SOL_SOCKET, SO_RCVLOWAT);
    OPT(fd, SOL_SOCKET, SO_SNDLOWAT);
    OPT(fd, SOL_SOCKET, SO_PRIORITY);
    OPT(fd, SOL_SOCKET, 999);
    OPT(fd, IPPROTO_TCP, TCP_NODELAY);
    OPT(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    OPT(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    OPT(fd, IPPROTO_TCP, TCP_KEEPCNT);
    OPT(fd, IPPROTO_TCP, TCP_CORK);
    OPT(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    OPT(fd, IPPROTO_TCP, TCP_QUICKACK);
    OPT(fd, IPPROTO_TCP, TCP_MAXSEG);
    OPT(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT);
    OPT(fd, IPPROTO_TCP, 999);
    OPT(fd, IPPROTO_IP, IP_TTL);
    OPT(fd, IPPROTO_IP, IP_TOS);
    OPT(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    OPT(f6, IPPROTO_IPV6, IPV6_V6ONLY);
    OPT(f6, IPPROTO_IPV6, IPV6_UNICAST_HOPS);
    OPT(fd, IPPROTO_UDP, 1);
    OPT(fd, 12345, 1);
    SHOW(set(fd, SOL_SOCKET, SO_KEEPALIVE, 7));
    OPT(fd, SOL_SOCKET, SO_KEEPALIVE);
    SHOW(set(fd, IPPROTO_TCP, TCP_NODELAY, -3));
    OPT(fd, IPPROTO_TCP, TCP_NODELAY);
    SHOW(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0));
    SHOW(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 33));
    OPT(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    SHOW(set(fd, IPPROTO_TCP, TCP_KEEPCNT, 128));
    SHOW(set(fd, SOL_SOCKET, SO_TYPE, 1));
    SHOW(set(fd, SOL_SOCKET, SO_ERROR, 1));
    SHOW(set(fd, SOL_SOCKET, 999, 1));
    SHOW(set(fd, SOL_SOCKET, SO_PASSCRED, 1));
    SHOW(set(fd, SOL_SOCKET, SO_DEBUG, 1));
    SHOW(set(fd, SOL_SOCKET, SO_PRIORITY, 7));
    SHOW(set(fd, SOL_SOCKET, SO_PRIORITY, 3));
    SHOW(set(fd, SOL_SOCKET, SO_RCVLOWAT, 0));
    OPT(fd, SOL_SOCKET, SO_RCVLOWAT);
    SHOW(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, text, 3));
    SHOW(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, (void *)8, 4));
    SHOW(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, text, -1));
    SHOW(setsockopt(0, SOL_SOCKET, SO_REUSEADDR, text, 4));
    SHOW(set(fd, SOL_SOCKET, SO_RCVBUF, 5000));
    OPT(fd, SOL_SOCKET, SO_RCVBUF);
    SHOW(set(fd, SOL_SOCKET, SO_SNDBUF, 1));
    OPT(fd, SOL_SOCKET, SO_SNDBUF);
    SHOW(set(fd, SOL_SOCKET, SO_RCVBUF, 1));
    OPT(fd, SOL_SOCKET, SO_RCVBUF);
    SHOW(set(fd, IPPROTO_IP, IP_TTL, 0));
    SHOW(set(fd, IPPROTO_IP, IP_TTL, 9));
    OPT(fd, IPPROTO_IP, IP_TTL);
    SHOW(set(fd, IPPROTO_IP, IP_TTL, -1));
    OPT(fd, IPPROTO_IP, IP_TTL);
    struct linger l = {5, 6};
    socklen_t size = sizeof l;
    SHOW(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &size));
    printf("linger %d %d, %d bytes\n", l.l_onoff, l.l_linger, size);
    l = (struct linger){9, 6};
    SHOW(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l));
    SHOW(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, 4));
    SHOW(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &size));
    printf("linger %d %d, %d bytes\n", l.l_onoff, l.l_linger, size);
    struct timeval t = {1, 1000000};
    SHOW(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    t = (struct timeval){2, 500000};
    SHOW(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, 8));
    SHOW(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    size = sizeof t;
    t = (struct timeval){9, 9};
    SHOW(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, &size));
    printf("%ld %ld %d bytes\n", (long)t.tv_sec, (long)t.tv_usec, size);
    char name[20] = "";
    size = sizeof name;
    SHOW(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "none", 4));
    SHOW(getsockopt(fd, SOL_SOCKET, 59 /* SO_PEERGROUPS */, &fd, &(socklen_t){4}));
    SHOW(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nonesuch", 8));
    SHOW(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size));
    printf("%d bytes\n", size);
    connection();
    struct tcp_info info;
    size = 8;
    SHOW(getsockopt(one, IPPROTO_TCP, TCP_INFO, &info, &size));
    printf("state %d, %d bytes\n", info.tcpi_state, size);
    shutdown(one, SHUT_WR);
    getsockopt(one, IPPROTO_TCP, TCP_INFO, &info, &size);
    TRUE(info.tcpi_state == 4 || info.tcpi_state == 5); /* acknowledged when? */
    getsockopt(two, IPPROTO_TCP, TCP_INFO, &info, &size);
    printf("state %d\n", info.tcpi_state);
    done();
    /* time-outs and SIGPIPE in real calls */
    connection();
    t = (struct timeval){0, 20000};
    setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    GOT(one, 9, 0);
    SHOW(read(one, text, 9));
    SEND(two, "abc", 0);
    GOT(one, 9, MSG_WAITALL);
    set(one, SOL_SOCKET, SO_RCVLOWAT, 4);
    SEND(two, "abc", 0);
    POLL(one);
    SEND(two, "d", 0);
    POLL(one);
    GOT(one, 9, 0);
    done();
    int b = listener(AF_INET, 1);
    setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    SHOW(accept(b, 0, 0));
    OPT(b, SOL_SOCKET, SO_ACCEPTCONN);
    set(b, IPPROTO_TCP, TCP_NODELAY, 1);
    one = client(AF_INET, port_of(b));
    two = accept(b, 0, 0);
    OPT(two, IPPROTO_TCP, TCP_NODELAY);
    done();
}

/* Two processes: one blocks where the other acts. */
static void processes(void) {
    int l = listener(AF_INET, 1), port = port_of(l);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        int s = accept(l, 0, 0);
        char buffer[100];
        long n, all = 0;
        while ((n = read(s, buffer, sizeof buffer)) > 0) all += n;
        dprintf(s, "%ld", all);
        _exit(3);
    }
    close(l);
    int c = client(AF_INET, port);
    long sent = 0;
    for (int i = 0; i < 200; i++) sent += send(c, text, 999, 0);
    shutdown(c, SHUT_WR);
    got("from the child", c, 20, MSG_WAITALL);
    int status;
    waitpid(pid, &status, 0);
    printf("sent %ld status %x\n", sent, status);
    close(c);
    /* an end that dies is closed */
    connection();
    pid = fork();
    if (!pid) {
        close(one);
        pause();
    }
    close(two);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    GOT(one, 9, 0);
    POLL(one);
    close(one);
}

int main(void) {
    signal(SIGPIPE, on_pipe);
    making();
    names();
    connecting();
    backlog();
    bytes();
    ends();
    six();
    options();
    processes();
    return 0;
}
