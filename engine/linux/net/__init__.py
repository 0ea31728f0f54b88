"""The guest's network: one host that nothing but itself is on.

There is one interface, `lo`, with 127.0.0.0/8 and ::1, and one network for all processes of a run.
It is built at the level of sockets: no packets, no sequence numbers, no retransmission. What one
end sends is in the other's queue at once, bounded as socket buffers are; states, errors and events
are those that programs see under Linux (net/ipv4/tcp.c, net/ipv4/udp.c, net/unix/af_unix.c).
Nothing here opens a socket of the host's.

- `network`: what sockets have in common: ports, abstract names, budgets.
- `addresses`, `messages`: structures of the calls: sockaddr, msghdr, control messages.
- `socket`: what every socket is; `inet` what TCP and UDP share; `tcp`, `udp`, `netlink`.
- `unix`: names and rights; `unixstreams` and `unixdatagrams` the two ways to talk; `rights` keeps
  count of descriptors on their way.
- `options`, `interface`, `procnet`: getsockopt, ioctl and /proc/net.
- `families` lists what socket(2) can make; `calls` are the system calls.
"""
