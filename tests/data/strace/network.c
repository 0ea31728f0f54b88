/* System calls about sockets, epoll, poll and select, with good and bad arguments. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>
#include <string.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <signal.h>
#include <fcntl.h>
int main(void) {
  int s=socket(AF_INET,SOCK_STREAM|SOCK_CLOEXEC,IPPROTO_TCP), u=socket(AF_UNIX,SOCK_DGRAM|SOCK_NONBLOCK,0), d=socket(AF_INET,SOCK_DGRAM,IPPROTO_UDP), v6=socket(AF_INET6,SOCK_STREAM,0), nl=socket(AF_NETLINK,SOCK_RAW,NETLINK_ROUTE);
  socket(99,1,0);
  int one=1,len=sizeof one,val;
  setsockopt(s,SOL_SOCKET,SO_REUSEADDR,&one,4);
  getsockopt(s,SOL_SOCKET,SO_TYPE,&val,&len);
  getsockopt(s,SOL_SOCKET,SO_ERROR,&val,&len);
  setsockopt(s,IPPROTO_TCP,TCP_NODELAY,&one,4);
  struct linger lg={1,5};
  setsockopt(s,SOL_SOCKET,SO_LINGER,&lg,sizeof lg);
  setsockopt(s,SOL_SOCKET,999,&one,4);
  struct timeval tv={1,500};
  setsockopt(s,SOL_SOCKET,SO_RCVTIMEO,&tv,sizeof tv);
  setsockopt(v6,IPPROTO_IPV6,IPV6_V6ONLY,&one,4);
  setsockopt(s,IPPROTO_IP,IP_TOS,&one,4);
  lg.l_onoff=0;
  setsockopt(s,SOL_SOCKET,SO_LINGER,&lg,sizeof lg);
  struct sockaddr_in in={AF_INET,htons(0),{htonl(INADDR_LOOPBACK)}};
  bind(s,(void*)&in,sizeof in);
  listen(s,5);
  socklen_t sl=sizeof in;
  getsockname(s,(void*)&in,&sl);
  int c=socket(AF_INET,SOCK_STREAM,0);
  connect(c,(void*)&in,sizeof in);
  struct sockaddr_storage ss;
  sl=sizeof ss;
  int a=accept(s,(void*)&ss,&sl);
  getpeername(c,(void*)&ss,&sl);
  send(c,"hello over tcp",14,MSG_NOSIGNAL);
  char b[100];
  recv(a,b,100,MSG_PEEK|MSG_DONTWAIT);
  recvfrom(a,b,100,0,(void*)&ss,&sl);
  shutdown(c,SHUT_WR);
  recv(a,b,100,0);
  fcntl(s,F_SETFL,O_NONBLOCK);
  accept4(s,0,0,SOCK_CLOEXEC);
  struct sockaddr_un un={AF_UNIX,"sock.path"};
  bind(u,(void*)&un,offsetof(struct sockaddr_un,sun_path)+10);
  connect(u,(void*)&un,sizeof un);
  struct sockaddr_un ab={AF_UNIX};
  memcpy(ab.sun_path,"\0abstract",9);
  int u2=socket(AF_UNIX,SOCK_STREAM,0);
  bind(u2,(void*)&ab,2+9);
  connect(u2,(void*)"\1\0/nonexist",12);
  unlink("sock.path");
  int sp[2];
  socketpair(AF_UNIX,SOCK_STREAM|SOCK_CLOEXEC,0,sp);
  struct iovec iv[2]={{"part one",8},{" part two",9}};
  char cb[CMSG_SPACE(sizeof(int))];
  struct msghdr mh={0};
  mh.msg_iov=iv;
  mh.msg_iovlen=2;
  sendmsg(sp[0],&mh,0);
  memset(cb,0,sizeof cb);
  mh.msg_control=cb;
  mh.msg_controllen=sizeof cb;
  struct cmsghdr*cm=CMSG_FIRSTHDR(&mh);
  cm->cmsg_level=SOL_SOCKET;
  cm->cmsg_type=SCM_RIGHTS;
  cm->cmsg_len=CMSG_LEN(4);
  *(int*)CMSG_DATA(cm)=0;
  sendmsg(sp[0],&mh,MSG_DONTWAIT);
  char rb[50];
  struct iovec ri={rb,50};
  struct msghdr rh={0};
  rh.msg_iov=&ri;
  rh.msg_iovlen=1;
  rh.msg_name=&ss;
  rh.msg_namelen=sizeof ss;
  recvmsg(sp[1],&rh,MSG_DONTWAIT);
  char cb2[100];
  rh.msg_control=cb2;
  rh.msg_controllen=100;
  recvmsg(sp[1],&rh,MSG_CMSG_CLOEXEC|MSG_DONTWAIT);
  recvmsg(sp[1],&rh,MSG_DONTWAIT);
  rh.msg_namelen=100;
  sendmsg(99,&mh,0);
  struct mmsghdr mm[2]={{mh},{mh}};
  mm[0].msg_hdr.msg_control=mm[1].msg_hdr.msg_control=0;
  mm[0].msg_hdr.msg_controllen=mm[1].msg_hdr.msg_controllen=0;
  sendmmsg(sp[0],mm,2,0);
  struct mmsghdr rm[2];
  memset(rm,0,sizeof rm);
  rm[0].msg_hdr.msg_iov=&ri;
  rm[0].msg_hdr.msg_iovlen=1;
  rm[1]=rm[0];
  recvmmsg(sp[1],rm,2,MSG_DONTWAIT,0);
  struct sockaddr_in to={AF_INET,htons(9),{htonl(INADDR_LOOPBACK)}};
  sendto(d,"datagram",8,0,(void*)&to,sizeof to);
  struct sockaddr_in6 six={AF_INET6,htons(80)};
  six.sin6_addr=in6addr_loopback;
  connect(v6,(void*)&six,sizeof six);
  struct sockaddr_nl sn={AF_NETLINK,0,0,5};
  bind(nl,(void*)&sn,sizeof sn);
  bind(99,0,0);
  connect(c,(void*)1,16);
  int ep=epoll_create1(EPOLL_CLOEXEC);
  epoll_create(5);
  struct epoll_event ee={EPOLLIN|EPOLLET|EPOLLRDHUP,{.u64=0x500000003}};
  epoll_ctl(ep,EPOLL_CTL_ADD,sp[1],&ee);
  write(sp[0],"x",1);
  struct epoll_event out[4];
  epoll_wait(ep,out,4,0);
  epoll_pwait(ep,out,4,100,0);
  sigset_t sg;
  sigemptyset(&sg);
  sigaddset(&sg,SIGCHLD);
  epoll_pwait(ep,out,4,0,&sg);
  ee.events=EPOLLOUT;
  epoll_ctl(ep,EPOLL_CTL_MOD,sp[1],&ee);
  epoll_ctl(ep,EPOLL_CTL_DEL,sp[1],&ee);
  epoll_ctl(ep,77,1,0);
  epoll_wait(ep,out,4,1);
  syscall(SYS_epoll_pwait2,ep,out,4,&(struct timespec){0,1000},0,8);
  struct pollfd pf[3]={{sp[1],POLLIN|POLLPRI,0},{sp[0],POLLOUT|POLLRDHUP,0},{-1,POLLIN,0}};
  poll(pf,3,100);
  pf[0].fd=s;
  poll(pf,1,1);
  ppoll(pf,2,&(struct timespec){1,0},&sg);
  poll(0,0,0);
  pf[0].fd=77;
  poll(pf,1,0);
  fd_set r,w,x;
  FD_ZERO(&r);
  FD_ZERO(&w);
  FD_ZERO(&x);
  FD_SET(sp[1],&r);
  FD_SET(sp[0],&w);
  FD_SET(s,&x);
  struct timeval t={2,0};
  select(sp[1]+1,&r,&w,&x,&t);
  FD_ZERO(&r);
  FD_SET(s,&r);
  t.tv_sec=0;
  t.tv_usec=100;
  select(s+1,&r,0,0,&t);
  FD_SET(sp[1],&r);
  pselect(sp[1]+1,&r,0,0,&(struct timespec){1,0},&sg);
  select(0,0,0,0,&(struct timeval){0,1});
  struct ifreq ifr;
  memset(&ifr,0,sizeof ifr);
  strcpy(ifr.ifr_name,"lo");
  ioctl(s,SIOCGIFINDEX,&ifr);
  ioctl(s,SIOCGIFADDR,&ifr);
  struct ucred uc;
  len=sizeof uc;
  getsockopt(sp[0],SOL_SOCKET,SO_PEERCRED,&uc,&len);
  len=100;
  getsockopt(s,IPPROTO_TCP,TCP_NODELAY,&val,&len);
  return 0;
}
