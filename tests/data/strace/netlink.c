/* Messages of netlink: requests with attributes of all kinds, and answers of equal size. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/if_link.h>
#include <linux/if_bridge.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/neighbour.h>
#include <linux/fib_rules.h>
#include <linux/net_namespace.h>
#include <linux/netconf.h>
#include <linux/if_addrlabel.h>
#include <string.h>
#include <unistd.h>

static int s;
static unsigned sequence = 1;
static char buffer[8192];
static unsigned size;

static struct nlmsghdr *head(void) { return (void *)buffer; }

/* Begin a message of a type and flags with so many bytes of a structure. */
static void begin(int type, int flags, const void *data, unsigned count) {
  memset(buffer, 0, sizeof buffer);
  head()->nlmsg_type = type;
  head()->nlmsg_flags = flags;
  head()->nlmsg_seq = sequence++;
  memcpy(buffer + 16, data, count);
  size = 16 + (count + 3 & ~3);
  head()->nlmsg_len = 16 + count;
}

static void attribute(int type, const void *data, unsigned count) {
  struct nlattr *here = (void *)(buffer + size);
  here->nla_type = type;
  here->nla_len = 4 + count;
  memcpy(here + 1, data, count);
  head()->nlmsg_len = size + 4 + count;
  size += 4 + (count + 3 & ~3);
}

static void word(int type, unsigned value) { attribute(type, &value, 4); }
static void text(int type, const char *value) { attribute(type, value, strlen(value) + 1); }

static unsigned nested(int type) {
  unsigned at = size;
  attribute(type, "", 0);
  return at;
}

static void close_nested(unsigned at) {
  ((struct nlattr *)(buffer + at))->nla_len = size - at;
  head()->nlmsg_len = size;
}

static void transmit(void) { sendto(s, buffer, head()->nlmsg_len, MSG_DONTWAIT, 0, 0); }

static void links(void) {
  struct ifinfomsg one = {.ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_type = ARPHRD_LOOPBACK,
                          .ifi_flags = 0x49, .ifi_change = 0xffffffff};
  begin(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, &one, sizeof one);
  word(IFLA_EXT_MASK, 9);
  transmit();
  begin(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &one, sizeof one);
  text(IFLA_IFNAME, "dummy0");
  attribute(IFLA_QDISC, "cut", 3);
  attribute(IFLA_ADDRESS, "\1\2\3\4\5\6", 6);
  attribute(IFLA_BROADCAST, "\377\377\377\377\377\377\377\377", 8);
  word(IFLA_MTU, 1500);
  attribute(IFLA_OPERSTATE, "\6", 1);
  attribute(IFLA_MTU, "\1\2", 2);
  unsigned at = nested(IFLA_LINKINFO | NLA_F_NESTED);
  text(IFLA_INFO_KIND, "dummy");
  attribute(IFLA_INFO_DATA, "\1\2\3\4", 4);
  attribute(IFLA_INFO_SLAVE_KIND, "abcd", 4);
  close_nested(at);
  word(IFLA_LINK_NETNSID, -1);
  word(IFLA_NET_NS_FD, 3);
  word(IFLA_NEW_IFINDEX, 1);
  word(999, 5);
  attribute(IFLA_WIRELESS | NLA_F_NET_BYTEORDER, "wireless of more bytes than are shown of it", 43);
  at = nested(IFLA_PROP_LIST);
  text(IFLA_ALT_IFNAME, "another");
  text(IFLA_IFNAME, "none");
  close_nested(at);
  at = nested(IFLA_AF_SPEC);
  unsigned inner = nested(AF_INET6);
  attribute(IFLA_INET6_ADDR_GEN_MODE, "\1", 1);
  attribute(IFLA_INET6_TOKEN, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  word(IFLA_INET6_FLAGS, 0x80000010);
  close_nested(inner);
  inner = nested(AF_UNIX);
  word(1, 2);
  close_nested(inner);
  close_nested(at);
  at = nested(IFLA_PROTO_DOWN_REASON);
  word(1, 0xff);
  word(2, 0);
  close_nested(at);
  transmit();
  char numbers[200];
  for (unsigned i = 0; i < sizeof numbers; i++)
    numbers[i] = i % 8 ? 0 : i;
  begin(RTM_SETLINK, NLM_F_REQUEST, &one, sizeof one);
  attribute(IFLA_STATS, numbers, 96);
  attribute(IFLA_STATS64, numbers, 200);
  attribute(IFLA_STATS64, numbers, 20);
  attribute(IFLA_MAP, numbers, 28);
  word(IFLA_EVENT, 2);
  transmit();
  one.ifi_family = AF_INET6;
  one.ifi_type = 12345;
  one.ifi_flags = 0x80000000;
  one.ifi_index = 999;
  begin(RTM_DELLINK, 0xf00, &one, sizeof one);
  attribute(IFLA_ADDRESS, "\1\2\3\4\5\6", 6);
  transmit();
}

static void addresses(void) {
  struct ifaddrmsg four = {AF_INET, 8, 0x80, 254, 1}, six = {AF_INET6, 64, 0, 3, 77};
  struct ifa_cacheinfo times = {1, 2, 3, 4};
  begin(RTM_GETADDR, NLM_F_REQUEST | NLM_F_ROOT, &four, sizeof four);
  transmit();
  begin(RTM_NEWADDR, NLM_F_REQUEST | NLM_F_REPLACE | NLM_F_APPEND, &four, sizeof four);
  attribute(IFA_ADDRESS, "\177\0\0\1", 4);
  attribute(IFA_LOCAL, "\177\0", 2);
  text(IFA_LABEL, "lo");
  attribute(IFA_CACHEINFO, &times, sizeof times);
  word(IFA_FLAGS, 0x980);
  word(IFA_RT_PRIORITY, 7);
  word(IFA_TARGET_NETNSID, -1);
  attribute(IFA_PROTO, "\1", 1);
  transmit();
  begin(RTM_DELADDR, NLM_F_REQUEST | NLM_F_BULK, &six, sizeof six);
  attribute(IFA_ADDRESS, "\376\200\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
  transmit();
  begin(RTM_GETADDR, NLM_F_REQUEST, "\2", 1);
  transmit();
}

static void routes(void) {
  struct rtmsg four = {AF_INET, 24, 0, 0x18, RT_TABLE_MAIN, RTPROT_STATIC, 253, RTN_UNICAST, 0x1200};
  struct rtmsg odd = {AF_INET6, 128, 1, 1, 7, 99, 5, 77, 0};
  struct { struct rtnexthop next; struct nlattr head; char gate[4]; } ways[2] = {
      {{16, 4, 1, 1}, {8, RTA_GATEWAY}, {10, 0, 0, 1}}, {{8, 0, 2, 9}}};
  struct rta_cacheinfo times = {1, 2, 3, 4, 5, 6, 7, 8};
  begin(RTM_GETROUTE, NLM_F_REQUEST | NLM_F_MATCH, &four, sizeof four);
  transmit();
  begin(RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_CREATE, &four, sizeof four);
  attribute(RTA_DST, "\12\0\0\0", 4);
  word(RTA_OIF, 1);
  word(RTA_IIF, 12);
  word(RTA_TABLE, 254);
  word(RTA_TABLE, 1000);
  unsigned at = nested(RTA_METRICS);
  word(RTAX_MTU, 1400);
  text(RTAX_CC_ALGO, "cubic");
  close_nested(at);
  attribute(RTA_MULTIPATH, ways, 24);
  attribute(RTA_CACHEINFO, &times, sizeof times);
  attribute(RTA_VIA, "\2\0\12\0\0\1", 6);
  attribute(RTA_VIA, "\12\0\376\200\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 18);
  attribute(RTA_PREF, "\1", 1);
  attribute(RTA_ENCAP_TYPE, "\1\0", 2);
  attribute(RTA_EXPIRES, "\1\0\0\0\0\0\0\0", 8);
  attribute(RTA_SPORT, "\1\2", 2);
  transmit();
  begin(RTM_DELROUTE, NLM_F_REQUEST | NLM_F_NONREC, &odd, sizeof odd);
  attribute(RTA_DST, "\12\0\0\0", 4);
  transmit();
}

static void others(void) {
  struct ndmsg near = {.ndm_family = AF_INET, .ndm_ifindex = 1, .ndm_state = 0x82, .ndm_flags = 9,
                       .ndm_type = 1};
  begin(RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP, &near, sizeof near);
  transmit();
  near.ndm_state = 0;
  begin(RTM_NEWNEIGH, NLM_F_REQUEST, &near, sizeof near);
  attribute(NDA_DST, "\12\0\0\1", 4);
  attribute(NDA_LLADDR, "\1\2\3\4\5\6", 6);
  attribute(NDA_PORT, "\0\120", 2);
  word(NDA_PROBES, 3);
  attribute(NDA_PROTOCOL, "\6", 1);
  word(NDA_FLAGS_EXT, 1);
  attribute(NDA_NDM_STATE_MASK, "\2\0", 2);
  unsigned at = nested(NDA_FDB_EXT_ATTRS);
  attribute(1, "\3", 1);
  attribute(2, "", 0);
  close_nested(at);
  transmit();
  near.ndm_family = AF_BRIDGE;
  begin(RTM_GETNEIGH, NLM_F_REQUEST, "\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  transmit();
  struct fib_rule_hdr rule = {.family = AF_INET, .dst_len = 8, .table = 253, .action = 1, .flags = 2};
  begin(RTM_NEWRULE, NLM_F_REQUEST, &rule, sizeof rule);
  attribute(FRA_DST, "\12\0\0\0", 4);
  text(FRA_IIFNAME, "lo");
  attribute(FRA_TUN_ID, "\0\0\0\0\0\0\0\5", 8);
  word(FRA_TABLE, 253);
  attribute(FRA_UID_RANGE, "\0\0\0\0\350\3\0\0", 8);
  attribute(FRA_SPORT_RANGE, "\1\0\2\0", 4);
  attribute(FRA_PROTOCOL, "\2", 1);
  attribute(FRA_IP_PROTO, "\21", 1);
  word(FRA_FWMARK, 16);
  transmit();
  struct tcmsg traffic = {AF_UNSPEC, 0, 0, 1, 2, 3, 4};
  begin(RTM_GETQDISC, NLM_F_REQUEST, &traffic, sizeof traffic);
  text(TCA_KIND, "noqueue");
  word(TCA_CHAIN, 5);
  attribute(TCA_HW_OFFLOAD, "\1", 1);
  transmit();
  begin(RTM_GETNSID, NLM_F_REQUEST, "\0\0\0", 4);
  word(NETNSA_FD, 3);
  word(NETNSA_NSID, -1);
  transmit();
  begin(RTM_GETNETCONF, NLM_F_REQUEST, "\2\0\0", 4);
  word(NETCONFA_IFINDEX, 1);
  word(NETCONFA_FORWARDING, -1);
  transmit();
  struct ifaddrlblmsg label = {AF_INET6, 0, 96, 0, 1, 2};
  begin(RTM_GETADDRLABEL, NLM_F_REQUEST, &label, sizeof label);
  word(IFAL_LABEL, 3);
  transmit();
  begin(RTM_NEWPREFIX, NLM_F_REQUEST, "\12abc", 4);
  transmit();
  begin(RTM_NEWPREFIX, NLM_F_REQUEST, "\12", 1);
  transmit();
  begin(3000, NLM_F_REQUEST, "\2abc", 4);
  transmit();
  begin(RTM_GETLINK + 1 + 200, 0, "", 0);
  transmit();
}

/* Messages that are no requests: the kernel ignores them. */
static void answers(void) {
  struct { int error; struct nlmsghdr about; char more[12]; struct nlattr head; char text[8]; } wrong =
      {-1, {28, RTM_NEWLINK, 5, 9, 8}, "\0", {11, 1}, "why not"};
  begin(NLMSG_ERROR, NLM_F_ACK_TLVS, &wrong, 4 + 28 + 12);
  transmit();
  begin(NLMSG_ERROR, NLM_F_CAPPED, &wrong, 20);
  transmit();
  wrong.error = 0;
  begin(NLMSG_ERROR, 0, &wrong, 20);
  transmit();
  begin(NLMSG_ERROR, 0, "short", 5);
  transmit();
  begin(NLMSG_DONE, NLM_F_MULTI, "\373\377\377\377", 4);
  transmit();
  begin(NLMSG_DONE, NLM_F_MULTI, "more than that", 14);
  transmit();
  begin(NLMSG_NOOP, 0xf000, "x", 1);
  transmit();
  begin(0, 0, "", 0);
  transmit();
  /* Several in one buffer, a length that is too long, one that is too short, and a rest. */
  begin(NLMSG_NOOP, 0, "ab", 2);
  memcpy(buffer + 20, buffer, 20);
  memcpy(buffer + 40, "rest", 4);
  sendto(s, buffer, 44, 0, 0, 0);
  head()->nlmsg_len = 400;
  sendto(s, buffer, 44, 0, 0, 0);
  head()->nlmsg_len = 4;
  sendto(s, buffer, 44, 0, 0, 0);
  sendto(s, buffer, 10, 0, 0, 0);
  sendto(s, buffer, 0, 0, 0, 0);
  sendto(s, 0, 0, 0, 0, 0);
}

/* Within the attributes that lead there: all numbers up to the last, of so many bytes each. */
static void all_of(int family, const int *way, unsigned last, unsigned count) {
  static const char bytes[] =
      "\1\0\0\0\2\0\0\0\3\0\0\0\210\250\0\0\5\0\0\0\6\0\0\0\0\0\0\0\377\377\377\377"
      "\7\0\0\0\0\0\0\0\11\0\0\0\13\0\0\0";
  struct ifinfomsg one = {.ifi_family = family, .ifi_index = 1};
  unsigned open[4], depth = 0;
  begin(RTM_NEWLINK, NLM_F_REQUEST, &one, sizeof one);
  for (; way[depth]; depth++)
    open[depth] = nested(way[depth]);
  for (unsigned type = 0; type <= last + 1; type++)
    attribute(type, bytes, count);
  while (depth--)
    close_nested(open[depth]);
  transmit();
}

static void kind_of_link(int kind, const char *name, int data, unsigned last, unsigned count) {
  struct ifinfomsg one = {.ifi_family = AF_UNSPEC, .ifi_index = 1};
  static const char bytes[] = "\2\1\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0\0\0\0";
  begin(RTM_NEWLINK, NLM_F_REQUEST, &one, sizeof one);
  unsigned outer = nested(IFLA_LINKINFO);
  attribute(data, bytes, count);
  text(kind, name);
  unsigned inner = nested(data | NLA_F_NESTED);
  for (unsigned type = 0; type <= last + 1; type++)
    attribute(type, bytes, count);
  close_nested(inner);
  if (last == 0)
    attribute(IFLA_INFO_XSTATS, bytes, count);
  close_nested(outer);
  transmit();
}

/* Functions of a card, ports, XDP, bridges: hardware that is not there, in requests about it. */
static void hardware(void) {
  static const struct { int family; int way[4]; unsigned last; } sets[] = {
      {AF_UNSPEC, {IFLA_VFINFO_LIST, IFLA_VF_INFO}, IFLA_VF_BROADCAST},
      {AF_UNSPEC, {IFLA_VFINFO_LIST, IFLA_VF_INFO, IFLA_VF_STATS}, IFLA_VF_STATS_TX_DROPPED},
      {AF_UNSPEC, {IFLA_VFINFO_LIST, IFLA_VF_INFO, IFLA_VF_VLAN_LIST}, IFLA_VF_VLAN_INFO},
      {AF_UNSPEC, {IFLA_VF_PORTS, IFLA_VF_PORT}, IFLA_PORT_RESPONSE},
      {AF_UNSPEC, {IFLA_PORT_SELF}, IFLA_PORT_RESPONSE},
      {AF_UNSPEC, {IFLA_XDP}, IFLA_XDP_EXPECTED_FD},
      {AF_UNSPEC, {IFLA_PROTINFO}, 3},
      {AF_BRIDGE, {IFLA_PROTINFO}, IFLA_BRPORT_LOCKED},
      {AF_INET6, {IFLA_PROTINFO}, IFLA_INET6_RA_MTU},
      {AF_BRIDGE, {IFLA_AF_SPEC}, IFLA_BRIDGE_MST},
      {AF_BRIDGE, {IFLA_AF_SPEC, IFLA_BRIDGE_VLAN_TUNNEL_INFO}, IFLA_BRIDGE_VLAN_TUNNEL_FLAGS},
      {AF_UNSPEC, {IFLA_AF_SPEC, AF_INET}, IFLA_INET_CONF},
      {AF_UNSPEC, {IFLA_AF_SPEC, AF_INET6}, IFLA_INET6_RA_MTU},
      {AF_UNSPEC, {IFLA_AF_SPEC, 45}, 1},
  };
  static const unsigned sizes[] = {0, 1, 2, 4, 7, 8, 12, 13, 16, 24, 36, 48};
  for (unsigned i = 0; i < sizeof sets / sizeof *sets; i++)
    for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++)
      all_of(sets[i].family, sets[i].way, sets[i].last, sizes[j]);
  for (unsigned j = 0; j < 10; j++) {
    kind_of_link(IFLA_INFO_KIND, "bridge", IFLA_INFO_DATA, IFLA_BR_MCAST_QUERIER_STATE, sizes[j]);
    kind_of_link(IFLA_INFO_KIND, "tun", IFLA_INFO_DATA, IFLA_TUN_NUM_DISABLED_QUEUES, sizes[j]);
    kind_of_link(IFLA_INFO_KIND, "can", IFLA_INFO_DATA, 0, sizes[j]);
    kind_of_link(IFLA_INFO_SLAVE_KIND, "bridge", IFLA_INFO_SLAVE_DATA, IFLA_BRPORT_LOCKED, sizes[j]);
  }
  char numbers[480];
  struct ifinfomsg one = {.ifi_index = 1};
  for (unsigned i = 0; i < sizeof numbers; i++)
    numbers[i] = i % 4 ? 0 : i;
  for (unsigned count = 88; count <= 208; count += 4) {
    begin(RTM_SETLINK, NLM_F_REQUEST, &one, sizeof one);
    attribute(IFLA_STATS, numbers, count);
    attribute(IFLA_STATS64, numbers, count);
    transmit();
  }
  begin(RTM_NEWLINK, NLM_F_REQUEST, &one, sizeof one);
  unsigned outer = nested(IFLA_AF_SPEC), inner = nested(AF_INET);
  attribute(IFLA_INET_CONF, numbers, 136);
  close_nested(inner);
  inner = nested(AF_INET6);
  attribute(IFLA_INET6_CONF, numbers, 240);
  attribute(IFLA_INET6_STATS, numbers, 312);
  attribute(IFLA_INET6_ICMP6STATS, numbers, 56);
  close_nested(inner);
  close_nested(outer);
  transmit();
}

int main(void) {
  s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  struct sockaddr_nl name = {AF_NETLINK, 7}, kernel = {AF_NETLINK};
  bind(s, (void *)&name, sizeof name);
  struct timeval soon = {1, 0};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
  begin(RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK, &(struct ifaddrmsg){AF_INET, 8, 0, 0, 1}, 8);
  head()->nlmsg_seq = 4;
  transmit();
  char answer[4096];
  recvfrom(s, answer, sizeof answer, MSG_PEEK, 0, 0);
  recvfrom(s, answer, 20, MSG_PEEK | MSG_TRUNC, 0, 0);
  struct iovec parts[2] = {{buffer, 24}, {answer, sizeof answer}};
  struct msghdr message = {&kernel, sizeof kernel, parts + 1, 1};
  recvmsg(s, &message, 0);
  recvmsg(s, &message, MSG_DONTWAIT);
  head()->nlmsg_len = 24;
  message.msg_iov = parts;
  sendmsg(s, &message, 0);
  message.msg_name = 0;
  message.msg_namelen = 0;
  sendmsg(s, &message, 0);
  sendto(s, buffer, 24, 0, (void *)&kernel, sizeof kernel);
  write(s, buffer, 24);
  close(s);
  s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  bind(s, (void *)&name, sizeof name); /* strace finds the protocol of bound sockets alone */
  links();
  addresses();
  routes();
  others();
  answers();
  hardware();
  close(s);
  s = socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
  bind(s, (void *)&name, sizeof name);
  begin(5, 0, "", 0);
  transmit();
  return 0;
}
