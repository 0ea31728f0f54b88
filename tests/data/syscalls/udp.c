/* UDP on loopback, and what sockets of the internet and netlink tell about interfaces. */
#include "sockets.h"
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

static int bound(const char *host) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = v4(host, 0);
    bind(fd, ADDR(a));
    return fd;
}

static void datagrams(void) {
    int a = bound("127.0.0.1"), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = v4("127.0.0.1", port_of(a)), from;
    struct sockaddr_in6 six = v6("::1", port_of(a));
    POLL(a);
    POLL(b);
    NAME(b);
    PEER(b);
    SHOW(send(b, "x", 1, 0));
    SHOW(write(b, "x", 1));
    SHOW(listen(b, 1));
    SHOW(accept(b, 0, 0));
    SHOW(shutdown(b, SHUT_RD));
    close(b);
    b = socket(AF_INET, SOCK_DGRAM, 0);
    SHOW(sendto(b, "one", 3, 0, ADDR(to)));
    NAME(b);
    SHOW(sendto(b, "", 0, 0, ADDR(to)));
    SHOW(sendto(b, "three", 5, 0, ADDR(to)));
    SHOW(sendto(b, "x", 1, 0, (void *)&to, 8));
    SHOW(sendto(b, "x", 1, 0, ADDR(six)));
    struct sockaddr_in nowhere = v4("127.0.0.1", 0);
    SHOW(sendto(b, "x", 1, 0, ADDR(nowhere)));
    SHOW(sendto(b, text, 65508, 0, ADDR(to)));
    SHOW(sendto(b, text, 1 << 17, 0, ADDR(to)));
    SHOW(sendto(b, (void *)8, 5, 0, ADDR(to)));
    SHOW(available(a));
    POLL(a);
    socklen_t size = sizeof from;
    memset(text, 0, 64);
    SHOW(recvfrom(a, text, 2, MSG_PEEK, (void *)&from, &size));
    printf("from %d %d %s %s\n", size, from.sin_family, inet_ntoa(from.sin_addr), text);
    TRUE(ntohs(from.sin_port) == port_of(b));
    SHOW(recv(a, text, 2, MSG_PEEK | MSG_TRUNC));
    GOT(a, 2, 0);
    SHOW(available(a));
    GOT(a, 9, 0);
    struct iovec part = {text, 3};
    char control[64];
    struct msghdr m = {&from, sizeof from, &part, 1, control, sizeof control, 0};
    SHOW(recvmsg(a, &m, 0));
    printf("flags %x name %d control %ld\n", m.msg_flags, m.msg_namelen, (long)m.msg_controllen);
    GOT(a, 9, MSG_DONTWAIT);
    /* connected: only from there */
    SHOW(connect(b, ADDR(to)));
    PEER(b);
    NAME(b);
    SHOW(send(b, "conn", 4, 0));
    int c = bound("127.0.0.1");
    struct sockaddr_in back = v4("127.0.0.1", port_of(b));
    SHOW(sendto(c, "other", 5, 0, ADDR(back)));
    SHOW(sendto(a, "answer", 6, 0, ADDR(back)));
    GOT(b, 9, 0);
    GOT(b, 9, MSG_DONTWAIT);
    SHOW(sendto(b, "elsewhere", 9, 0, (void *)&(struct sockaddr_in){AF_INET, htons(port_of(c)), {htonl(0x7f000001)}}, 16));
    GOT(c, 9, 0);
    SHOW(connect(b, ADDR(nowhere)));
    connect(b, ADDR(to));
    /* nobody is there any more */
    close(a);
    SHOW(send(b, "lost", 4, 0));
    POLL(b);
    SHOW(send(b, "lost", 4, 0));
    SHOW(send(b, "lost", 4, 0));
    SHOW(recv(b, text, 1, MSG_DONTWAIT));
    SHOW(recv(b, text, 1, MSG_DONTWAIT));
    send(b, "lost", 4, 0);
    ERROR(b);
    ERROR(b);
    struct sockaddr none = {AF_UNSPEC};
    SHOW(connect(b, ADDR(none)));
    PEER(b);
    SHOW(sendto(b, "lost", 4, 0, ADDR(to)));
    ERROR(b);
    SHOW(shutdown(b, SHUT_WR));
    connect(b, ADDR(to));
    SHOW(shutdown(b, SHUT_WR));
    POLL(b);
    SHOW(send(b, "lost", 4, 0));
    broken();
    SHOW(shutdown(b, SHUT_RDWR));
    POLL(b);
    GOT(b, 9, 0);
    close(b);
    close(c);
}

static void sharing(void) {
    int a = bound("0.0.0.0"), b = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0);
    int port = port_of(a);
    struct sockaddr_in all = v4("0.0.0.0", port), one = v4("127.0.0.1", port);
    SHOW(bind(b, ADDR(all)));
    SHOW(bind(b, ADDR(one)));
    set(a, SOL_SOCKET, SO_REUSEADDR, 1);
    set(b, SOL_SOCKET, SO_REUSEADDR, 1);
    SHOW(bind(b, ADDR(one)));
    SHOW(sendto(c, "exact", 5, 0, ADDR(one)));
    GOT(b, 9, MSG_DONTWAIT);
    one = v4("127.0.0.2", port);
    SHOW(sendto(c, "any", 3, 0, ADDR(one)));
    GOT(a, 9, MSG_DONTWAIT);
    SHOW(set(c, IPPROTO_IP, IP_PKTINFO, 1));
    close(a);
    close(b);
    close(c);
    /* both families */
    a = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 any = v6("::", 0), from;
    SHOW(bind(a, ADDR(any)));
    b = socket(AF_INET, SOCK_DGRAM, 0);
    one = v4("127.0.0.1", port_of(a));
    SHOW(bind(b, ADDR(one)));
    SHOW(sendto(b, "four", 4, 0, ADDR(one)));
    socklen_t size = sizeof from;
    SHOW(recvfrom(a, text, 9, 0, (void *)&from, &size));
    char host[64];
    printf("%d %s\n", size, inet_ntop(AF_INET6, &from.sin6_addr, host, 64));
    SHOW(sendto(a, "back", 4, 0, ADDR(from)));
    GOT(b, 9, 0);
    SHOW(set(a, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
    SHOW(set(a, IPPROTO_IP, IP_PKTINFO, 1));
    SHOW(set(a, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    b = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 to = v6("::1", port_of(a));
    SHOW(sendto(b, "six", 3, 0, ADDR(to)));
    struct iovec part = {text, 9};
    char control[128];
    struct msghdr m = {&from, sizeof from, &part, 1, control, sizeof control, 0};
    SHOW(recvmsg(a, &m, 0));
    printf("flags %x name %d control %ld\n", m.msg_flags, m.msg_namelen, (long)m.msg_controllen);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        printf("level %d type %d length %ld\n", h->cmsg_level, h->cmsg_type, (long)h->cmsg_len);
    close(a);
    close(b);
    /* filled up: what does not fit is lost */
    a = bound("127.0.0.1");
    b = socket(AF_INET, SOCK_DGRAM, 0);
    set(a, SOL_SOCKET, SO_RCVBUF, 4000);
    one = v4("127.0.0.1", port_of(a));
    int sent = 0, came = 0;
    for (int n = 0; n < 500; n++) sent += sendto(b, text, 100, 0, ADDR(one)) == 100;
    while (recv(a, text, 100, MSG_DONTWAIT) == 100) came++;
    TRUE(sent == 500 && came > 0 && came < 200);
    /* several at once */
    struct iovec parts[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    struct mmsghdr many[3];
    memset(many, 0, sizeof many);
    connect(b, ADDR(one));
    for (int n = 0; n < 3; n++) many[n].msg_hdr = (struct msghdr){.msg_iov = parts + n, .msg_iovlen = 1};
    SHOW(sendmmsg(b, many, 3, 0));
    printf("%d %d %d\n", many[0].msg_len, many[1].msg_len, many[2].msg_len);
    char buffers[4][9] = {"", "", "", ""};
    struct iovec into[4];
    struct mmsghdr more[4];
    memset(more, 0, sizeof more);
    for (int n = 0; n < 4; n++) {
        into[n] = (struct iovec){buffers[n], 8};
        more[n].msg_hdr = (struct msghdr){.msg_iov = into + n, .msg_iovlen = 1};
    }
    SHOW(recvmmsg(a, more, 2, 0, 0));
    printf("%s %s %d %d\n", buffers[0], buffers[1], more[0].msg_len, more[1].msg_len);
    SHOW(recvmmsg(a, more, 4, MSG_WAITFORONE, 0));
    SHOW(recvmmsg(a, more, 4, MSG_DONTWAIT, 0));
    SHOW(sendmmsg(b, (void *)8, 3, 0));
    SHOW(sendmmsg(99, many, 3, 0));
    struct timeval t = {0, 10000};
    setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    SHOW(recv(a, text, 9, 0));
    SHOW(recv(a, text, 9, 0));
    fflush(stdout);
    if (!fork()) {
        usleep(1000);
        send(b, "woken", 5, 0);
        _exit(0);
    }
    t.tv_sec = 5;
    setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    GOT(a, 9, 0);
    wait(0);
    close(a);
    close(b);
}

static void making(void) {
    WORKS(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP));
    SHOW(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
    SHOW(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    SHOW(socket(AF_INET, SOCK_RAW, 0));
    SHOW(socket(AF_INET6, SOCK_RAW, IPPROTO_TCP));
    SHOW(socket(AF_PACKET, SOCK_RAW, 0));
    SHOW(socket(AF_INET, SOCK_RDM, 0));
    int fd = bound("127.0.0.1");
    OPT(fd, SOL_SOCKET, SO_TYPE);
    OPT(fd, SOL_SOCKET, SO_PROTOCOL);
    OPT(fd, SOL_SOCKET, SO_RCVBUF);
    OPT(fd, SOL_SOCKET, SO_SNDBUF);
    OPT(fd, SOL_SOCKET, SO_BROADCAST);
    OPT(fd, IPPROTO_TCP, TCP_NODELAY);
    OPT(fd, IPPROTO_IP, IP_MULTICAST_LOOP);
    OPT(fd, IPPROTO_IP, IP_MULTICAST_TTL);
    SHOW(set(fd, SOL_SOCKET, SO_BROADCAST, 1));
    SHOW(set(fd, IPPROTO_TCP, TCP_NODELAY, 1));
    SHOW(set(fd, IPPROTO_IP, IP_TOS, 16));
    OPT(fd, IPPROTO_IP, IP_TOS);
    close(fd);
}

static void interfaces(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq r;
    memset(&r, 0, sizeof r);
    strcpy(r.ifr_name, "lo");
    SHOW(ioctl(fd, SIOCGIFFLAGS, &r));
    TRUE(r.ifr_flags & IFF_UP && r.ifr_flags & IFF_LOOPBACK);
    SHOW(ioctl(fd, SIOCGIFADDR, &r));
    printf("%s\n", inet_ntoa(((struct sockaddr_in *)&r.ifr_addr)->sin_addr));
    SHOW(ioctl(fd, SIOCGIFNETMASK, &r));
    printf("%s\n", inet_ntoa(((struct sockaddr_in *)&r.ifr_addr)->sin_addr));
    SHOW(ioctl(fd, SIOCGIFMTU, &r));
    printf("%d\n", r.ifr_mtu);
    SHOW(ioctl(fd, SIOCGIFHWADDR, &r));
    printf("%d\n", r.ifr_hwaddr.sa_family);
    SHOW(ioctl(fd, SIOCGIFINDEX, &r));
    printf("%d\n", r.ifr_ifindex);
    SHOW(ioctl(fd, SIOCGIFNAME, &r));
    SHOW(ioctl(fd, SIOCSIFFLAGS, &r));
    SHOW(ioctl(fd, 0x89ab, &r));
    SHOW(ioctl(fd, TCGETS, &r));
    strcpy(r.ifr_name, "none");
    SHOW(ioctl(fd, SIOCGIFFLAGS, &r));
    SHOW(ioctl(fd, SIOCGIFINDEX, &r));
    SHOW(ioctl(fd, SIOCGIFADDR, (void *)8));
    r.ifr_ifindex = 9999;
    SHOW(ioctl(fd, SIOCGIFNAME, &r));
    printf("%d %s\n", if_nametoindex("lo"), if_indextoname(1, text));
    close(fd);
    struct ifaddrs *list, *i;
    SHOW(getifaddrs(&list));
    for (i = list; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, "lo") || !i->ifa_addr) continue;
        char host[64] = "";
        int family = i->ifa_addr->sa_family;
        if (family == AF_INET) inet_ntop(family, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, host, 64);
        if (family == AF_INET6) inet_ntop(family, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, host, 64);
        printf("lo %d %s %x mask %d\n", family, host, i->ifa_flags & (IFF_UP | IFF_LOOPBACK | IFF_RUNNING), !!i->ifa_netmask);
    }
    freeifaddrs(list);
    /* netlink by hand */
    SHOW(socket(AF_NETLINK, SOCK_STREAM, 0));
    SHOW(socket(AF_NETLINK, SOCK_RAW, 99));
    int n = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct sockaddr_nl own = {AF_NETLINK}, there;
    SHOW(bind(n, ADDR(own)));
    socklen_t size = sizeof own;
    SHOW(getsockname(n, (void *)&own, &size));
    TRUE(own.nl_pid && own.nl_family == AF_NETLINK && size == 12);
    OPT(n, SOL_SOCKET, SO_DOMAIN);
    OPT(n, SOL_SOCKET, SO_PROTOCOL);
    POLL(n);
    struct {
        struct nlmsghdr h;
        struct ifinfomsg i;
    } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST, 5, 0}, {AF_UNSPEC, 0, 1}};
    struct sockaddr_nl kernel = {AF_NETLINK};
    SHOW(sendto(n, &ask, sizeof ask, 0, ADDR(kernel)));
    POLL(n);
    char answer[8192];
    struct iovec part = {answer, 10};
    struct msghdr m = {&there, sizeof there, &part, 1};
    WORKS(recvmsg(n, &m, MSG_PEEK));
    printf("flags %x from %d\n", m.msg_flags, there.nl_pid);
    WORKS(recv(n, answer, sizeof answer, 0));
    struct nlmsghdr *h = (void *)answer;
    struct ifinfomsg *info = NLMSG_DATA(h);
    printf("type %d sequence %d index %d hardware %d\n", h->nlmsg_type, h->nlmsg_seq, info->ifi_index, info->ifi_type);
    ask.i.ifi_index = 9999;
    SHOW(send(n, &ask, sizeof ask, 0));
    WORKS(recv(n, answer, sizeof answer, 0));
    struct nlmsgerr *e = NLMSG_DATA(h);
    printf("type %d error %s\n", h->nlmsg_type, error_name(-e->error));
    ask.h.nlmsg_type = RTM_DELLINK;
    ask.i.ifi_index = 1;
    SHOW(send(n, &ask, sizeof ask, 0));
    WORKS(recv(n, answer, sizeof answer, 0));
    printf("type %d error %s\n", h->nlmsg_type, error_name(-e->error));
    SHOW(recv(n, answer, sizeof answer, MSG_DONTWAIT));
    close(n);
}

/* The line of a file in /proc/net that has a socket's inode number, without what differs. */
static void line_of(const char *name, int fd) {
    char path[64], line[512], own[32];
    struct stat st;
    fstat(fd, &st);
    sprintf(own, " %ld ", (long)st.st_ino);
    sprintf(path, "/proc/net/%s", name);
    FILE *f = fopen(path, "r");
    if (!f) {
        show(name, -1);
        return;
    }
    for (int n = 0; fgets(line, sizeof line, f); n++) {
        int size = strlen(line), port = 0;
        while (size && strchr("\n ", line[size - 1])) line[--size] = 0;
        if (!n) printf("%s: %s|\n", name, line);
        strcat(line, " ");
        if (n && strstr(line, own)) {
            char *word = strtok(line, " ");
            for (int k = 0; word; k++, word = strtok(0, " ")) {
                if (!strcmp(name, "unix") ? k == 0 || k == 1 || k == 6 : k == 0 || k > 6) continue;
                char *colon = strchr(word, ':');
                if (k < 3 && colon) *colon = 0;
                printf(" %s", word);
            }
            puts("");
        }
    }
    fclose(f);
}
static void listings(void) {
    int t = socket(AF_INET, SOCK_STREAM, 0), six = socket(AF_INET6, SOCK_STREAM, 0), u = bound("127.0.0.1");
    struct sockaddr_in a = v4("127.0.0.1", 0);
    struct sockaddr_in6 b = v6("::1", 0);
    bind(t, ADDR(a));
    bind(six, ADDR(b));
    listen(t, 5);
    listen(six, 5);
    line_of("tcp", t);
    line_of("tcp6", six);
    line_of("udp", u);
    a = v4("127.0.0.1", port_of(t));
    int c = socket(AF_INET, SOCK_STREAM, 0);
    connect(c, ADDR(a));
    line_of("tcp", c);
    line_of("tcp", t);
    int s = accept(t, 0, 0);
    send(c, "12345", 5, 0);
    line_of("tcp", s);
    int n = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    struct sockaddr_un name = {AF_UNIX, "listed"};
    SHOW(bind(n, ADDR(name)));
    line_of("unix", n);
    listen(n, 5);
    line_of("unix", n);
    unlink("listed");
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    line_of("unix", pair[0]);
    line_of("udp6", t);
    line_of("raw", t);
    line_of("route", t);
    line_of("dev", t);
    line_of("arp", t);
    line_of("netlink", t);
    line_of("packet", t);
    FILE *f = fopen("/proc/self/net/if_inet6", "r");
    char line[200];
    while (fgets(line, sizeof line, f))
        if (strstr(line, " lo")) fputs(line, stdout);
    fclose(f);
    char link[64] = "";
    SHOW(readlink("/proc/net", link, 63));
    puts(link);
}

int main(void) {
    signal(SIGPIPE, on_pipe);
    making();
    datagrams();
    sharing();
    interfaces();
    listings();
    return 0;
}
