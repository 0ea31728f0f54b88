"""System calls about sockets: connected UNIX pairs work, the network is not there."""

import struct
from collections.abc import Callable

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import Vectors, gather, scatter, usable, vectors_at
from engine.linux.fs.socket import SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, UnixSocket, make_pair
from engine.linux.fs.vfs import OpenFile
from engine.linux.pipes import install_pair
from engine.linux.wait import Wait

EPERM, EAGAIN, EFAULT, EINVAL, EPIPE = 1, 11, 14, 22, 32
ENOTSOCK, ENOPROTOOPT, EPROTONOSUPPORT, ESOCKTNOSUPPORT = 88, 92, 93, 94
EOPNOTSUPP, EAFNOSUPPORT, EISCONN, ENOTCONN, ECONNREFUSED = 95, 97, 106, 107, 111
SIGPIPE = 13

_AF_UNIX = 1
_SOL_SOCKET, _SCM_RIGHTS = 1, 1
_SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF = 3, 4, 7, 8
_SO_PEERCRED, _SO_ACCEPTCONN, _SO_PROTOCOL, _SO_DOMAIN = 17, 30, 38, 39
_MSG_PEEK, _MSG_CTRUNC, _MSG_TRUNC, _MSG_DONTWAIT = 2, 8, 0x20, 0x40
_MSG_NOSIGNAL, _MSG_CMSG_CLOEXEC = 0x4000, 0x40000000
_MOST_FILES = 253


def _order(ctx: Context) -> str:
    return "<" if ctx.arch.byteorder == "little" else ">"


def _socket(ctx: Context, fd: int) -> UnixSocket:
    file = ctx.files.get(fd)
    if not isinstance(file, UnixSocket):
        raise LinuxError(ENOTSOCK)
    return file


def _kind(ctx: Context, domain: int, kind: int, protocol: int) -> tuple[int, int]:
    """(type, flags); refuses what is not a UNIX socket."""
    flags = u32(kind) & ~0xF
    if flags & ~(fl.O_NONBLOCK | fl.O_CLOEXEC):
        raise LinuxError(EINVAL)
    if u32(domain) != _AF_UNIX:
        ctx.unsupported("network sockets")
        raise LinuxError(EAFNOSUPPORT)
    if u32(kind) & 0xF not in (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET):
        raise LinuxError(ESOCKTNOSUPPORT)
    if u32(protocol) not in (0, _AF_UNIX):
        raise LinuxError(EPROTONOSUPPORT)
    return u32(kind) & 0xF, flags


def socket(ctx: Context, domain: int, kind: int, protocol: int) -> int:
    """Linux's socket."""
    kind, flags = _kind(ctx, domain, kind, protocol)
    made = UnixSocket(kind, ctx.fs.numbers.next(), flags & fl.O_NONBLOCK)
    return ctx.files.add(made, cloexec=bool(flags & fl.O_CLOEXEC))


def socketpair(ctx: Context, domain: int, kind: int, protocol: int, address: int) -> int:
    """Linux's socketpair."""
    kind, flags = _kind(ctx, domain, kind, protocol)
    if not ctx.memory.accessible(address, 8, True):
        raise LinuxError(EFAULT)
    inos = ctx.fs.numbers.next(), ctx.fs.numbers.next()
    pair = make_pair(kind, inos, flags & fl.O_NONBLOCK)
    return install_pair(ctx, address, pair, cloexec=bool(flags & fl.O_CLOEXEC))


def _unix_path(ctx: Context, address: int, size: int) -> bytes:
    size = u32(size)
    if not 2 <= size <= 110:
        raise LinuxError(EINVAL)
    raw = bytes(ctx.memory.read(address, size))
    (family,) = struct.unpack(_order(ctx) + "H", raw[:2])
    if family != _AF_UNIX:
        raise LinuxError(EINVAL)
    return raw[2:]


def connect(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's connect: nobody listens."""
    file = _socket(ctx, fd)
    if file.peer is not None:
        raise LinuxError(EISCONN)
    path = _unix_path(ctx, address, size)
    if path and path[0]:
        name = path.split(b"\0")[0]
        base = ctx.fs.directory(ctx.cwd)
        ctx.fs.walk(base, name).existing()
    raise LinuxError(ECONNREFUSED)


def bind(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's bind."""
    _socket(ctx, fd)
    _unix_path(ctx, address, size)
    ctx.unsupported("named sockets")
    raise LinuxError(EPERM)


def listen(ctx: Context, fd: int, _backlog: int) -> int:
    """Linux's listen: there is no address to listen at."""
    _socket(ctx, fd)
    raise LinuxError(EINVAL)


def accept4(ctx: Context, fd: int, _address: int, _size: int, _flags: int) -> int:
    """Linux's accept4."""
    file = _socket(ctx, fd)
    raise LinuxError(EOPNOTSUPP if file.kind == SOCK_DGRAM else EINVAL)


def _send(
    ctx: Context, file: UnixSocket, vectors: Vectors, flags: int, files: list[OpenFile]
) -> int | Wait:
    vectors = usable(ctx, vectors, write=False)
    total = sum(size for _, size in vectors)
    done = 0

    def attempt() -> int | None:
        nonlocal done
        while True:
            limit = total - done if file.messages else min(1 << 16, total - done)
            try:
                count = file.send(gather(ctx, vectors, done, limit), files if not done else [])
            except LinuxError as error:
                if done:
                    return done
                if error.code == EPIPE and not flags & _MSG_NOSIGNAL:
                    ctx.send_signal(SIGPIPE)
                raise
            if count is None:
                return done if done and (file.nonblocking or flags & _MSG_DONTWAIT) else None
            done += count
            if done >= total:
                return done

    result = attempt()
    if result is not None:
        return result
    if file.nonblocking or flags & _MSG_DONTWAIT:
        raise LinuxError(EAGAIN)
    return Wait(attempt)


def sendto(
    ctx: Context, fd: int, buffer: int, size: int, flags: int, address: int, _length: int
) -> int | Wait:
    """Linux's sendto."""
    file = _socket(ctx, fd)
    if address and file.peer is not None and file.kind != SOCK_DGRAM:
        raise LinuxError(EISCONN)
    if address and file.peer is None:
        raise LinuxError(ECONNREFUSED if file.kind == SOCK_DGRAM else EOPNOTSUPP)
    return _send(ctx, file, [(buffer, size)], u32(flags), [])


def recvfrom(
    ctx: Context, fd: int, buffer: int, size: int, flags: int, _address: int, length: int
) -> int | Wait:
    """Linux's recvfrom: the sender of a pair has no name."""
    file, flags = _socket(ctx, fd), u32(flags)
    vectors = usable(ctx, [(buffer, size)], write=True)

    def attempt() -> int | None:
        got = file.receive(sum(s for _, s in vectors), peek=bool(flags & _MSG_PEEK))
        if got is None:
            return None
        data, whole, files = got
        for sent in files:
            sent.release()
        scatter(ctx, vectors, data)
        if length:
            ctx.memory.write(length, bytes(4))
        return whole if flags & _MSG_TRUNC and file.messages else len(data)

    return _receive(file, attempt, flags)


def _receive(file: UnixSocket, attempt: Callable[[], int | None], flags: int) -> int | Wait:
    result = attempt()
    if result is not None:
        return result
    if file.nonblocking or flags & _MSG_DONTWAIT:
        raise LinuxError(EAGAIN)
    return Wait(attempt)


def _header(ctx: Context, address: int) -> tuple[int, int, int, int, int, int, int]:
    """Name, its size, vectors, their count, control, its size, flags of a struct msghdr."""
    raw = ctx.memory.read(address, 56)
    return struct.unpack(_order(ctx) + "QI4xQQQQI4x", raw)


def _sent_files(ctx: Context, control: int, size: int) -> list[OpenFile]:
    """Files in SCM_RIGHTS control messages; other kinds are ignored."""
    files: list[OpenFile] = []
    if not control or size < 16:
        return files
    raw = bytes(ctx.memory.read(control, min(size, 8192)))
    at = 0
    while at + 16 <= len(raw):
        length, level, kind = struct.unpack_from(_order(ctx) + "QiI", raw, at)
        if length < 16 or at + length > len(raw):
            raise LinuxError(EINVAL)
        if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
            fds = struct.unpack_from(f"{_order(ctx)}{(length - 16) // 4}I", raw, at + 16)
            files += [ctx.files.get(fd) for fd in fds]
        at += (length + 7) & ~7
    if len(files) > _MOST_FILES:
        raise LinuxError(EINVAL)
    return files


def sendmsg(ctx: Context, fd: int, message: int, flags: int) -> int | Wait:
    """Linux's sendmsg, with descriptors sent along."""
    file = _socket(ctx, fd)
    name, _, vectors, count, control, size, _ = _header(ctx, message)
    if name and file.peer is None:
        raise LinuxError(ECONNREFUSED)
    files = _sent_files(ctx, control, size)
    return _send(ctx, file, vectors_at(ctx, vectors, count), u32(flags), files)


def recvmsg(ctx: Context, fd: int, message: int, flags: int) -> int | Wait:
    """Linux's recvmsg, with descriptors that were sent along."""
    file, flags = _socket(ctx, fd), u32(flags)
    _, _, address, count, control, size, _ = _header(ctx, message)
    vectors = usable(ctx, vectors_at(ctx, address, count), write=True)

    def attempt() -> int | None:
        got = file.receive(sum(s for _, s in vectors), peek=bool(flags & _MSG_PEEK))
        if got is None:
            return None
        data, whole, files = got
        scatter(ctx, vectors, data)
        answer = _MSG_TRUNC if whole > len(data) and file.messages else 0
        written, truncated = _hand_over(ctx, files, control, size, flags)
        answer |= truncated
        ctx.memory.write(message + 8, bytes(4))
        ctx.memory.write(message + 40, struct.pack(_order(ctx) + "QI", written, answer))
        return whole if flags & _MSG_TRUNC and file.messages else len(data)

    return _receive(file, attempt, flags)


def _hand_over(
    ctx: Context, files: list[OpenFile], control: int, size: int, flags: int
) -> tuple[int, int]:
    """Give sent files descriptors; returns (bytes of control data, MSG_CTRUNC or 0)."""
    if not files:
        return 0, 0
    room = max(0, (size - 16) // 4) if control else 0
    fds = []
    for file in files[:room]:
        try:
            fds.append(ctx.files.add(file, cloexec=bool(flags & _MSG_CMSG_CLOEXEC)))
        except LinuxError:
            break
    for file in files:
        file.release()
    truncated = _MSG_CTRUNC if len(fds) < len(files) else 0
    if not fds:
        return 0, truncated
    length = 16 + 4 * len(fds)
    head = struct.pack(_order(ctx) + "QiI", length, _SOL_SOCKET, _SCM_RIGHTS)
    ctx.memory.write(control, head + struct.pack(f"{_order(ctx)}{len(fds)}I", *fds))
    return min(size, (length + 7) & ~7), truncated


def accept(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's accept."""
    return accept4(ctx, fd, address, size, 0)


def shutdown(ctx: Context, fd: int, how: int) -> int:
    """Linux's shutdown."""
    if u32(how) > 2:
        raise LinuxError(EINVAL)
    _socket(ctx, fd).shut(u32(how))
    return 0


def getsockname(ctx: Context, fd: int, address: int, length: int) -> int:
    """Linux's getsockname: a UNIX socket without a name."""
    _socket(ctx, fd)
    (room,) = struct.unpack(_order(ctx) + "i", ctx.memory.read(length, 4))
    if room < 0:
        raise LinuxError(EINVAL)
    ctx.memory.write(address, struct.pack(_order(ctx) + "H", _AF_UNIX)[:room])
    ctx.memory.write(length, struct.pack(_order(ctx) + "i", 2))
    return 0


def getpeername(ctx: Context, fd: int, address: int, length: int) -> int:
    """Linux's getpeername."""
    if _socket(ctx, fd).peer is None:
        raise LinuxError(ENOTCONN)
    return getsockname(ctx, fd, address, length)


def setsockopt(ctx: Context, fd: int, level: int, name: int, value: int, size: int) -> int:
    """Linux's setsockopt: remembered, without effect."""
    file = _socket(ctx, fd)
    if u32(level) != _SOL_SOCKET:
        raise LinuxError(EOPNOTSUPP)
    if s32(size) < 4:
        raise LinuxError(EINVAL)
    (number,) = struct.unpack(_order(ctx) + "i", ctx.memory.read(value, 4))
    file.options[u32(level), u32(name)] = number
    return 0


def getsockopt(ctx: Context, fd: int, level: int, name: int, value: int, size: int) -> int:
    """Linux's getsockopt."""
    file, name = _socket(ctx, fd), u32(name)
    if u32(level) != _SOL_SOCKET:
        raise LinuxError(EOPNOTSUPP)
    (room,) = struct.unpack(_order(ctx) + "i", ctx.memory.read(size, 4))
    if room < 0:
        raise LinuxError(EINVAL)
    if name == _SO_PEERCRED:
        who = ctx.fs.identity
        answer = struct.pack(_order(ctx) + "iII", ctx.pid, who.uid, who.gid)
    else:
        fixed = {
            _SO_TYPE: file.kind,
            _SO_ERROR: 0,
            _SO_ACCEPTCONN: 0,
            _SO_PROTOCOL: 0,
            _SO_DOMAIN: _AF_UNIX,
        }
        number = fixed.get(name, file.options.get((_SOL_SOCKET, name)))
        if number is None:
            if name > 80:
                raise LinuxError(ENOPROTOOPT)
            number = 212_992 if name in (_SO_SNDBUF, _SO_RCVBUF) else 0
        answer = struct.pack(_order(ctx) + "i", number)
    ctx.memory.write(value, answer[:room])
    ctx.memory.write(size, struct.pack(_order(ctx) + "i", min(room, len(answer))))
    return 0


SYSCALLS: SyscallTable = {
    "socket": socket,
    "socketpair": socketpair,
    "connect": connect,
    "bind": bind,
    "listen": listen,
    "accept": accept,
    "accept4": accept4,
    "sendto": sendto,
    "recvfrom": recvfrom,
    "sendmsg": sendmsg,
    "recvmsg": recvmsg,
    "shutdown": shutdown,
    "getsockname": getsockname,
    "getpeername": getpeername,
    "setsockopt": setsockopt,
    "getsockopt": getsockopt,
}
