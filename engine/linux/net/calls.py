"""System calls about sockets."""

import struct
from collections.abc import Callable

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import (
    Vectors,
    gather,
    opened,
    scatter,
    sleep_on,
    usable,
    vectors_at,
    within_patience,
)
from engine.linux.net import options
from engine.linux.net.families import make_pair, make_socket
from engine.linux.net.messages import (
    MSG_DONTWAIT,
    MSG_ERRQUEUE,
    MSG_NOSIGNAL,
    MSG_PEEK,
    MSG_TRUNC,
    MSG_WAITALL,
    MSG_WAITFORONE,
    Incoming,
    MessageHeader,
    Outgoing,
    control_at,
    hand_over,
    header_at,
    name_at,
    rights_in,
    store_name,
)
from engine.linux.net.socket import Socket
from engine.linux.net.unix import UnixSocket, no_control
from engine.linux.pipes import install_pair
from engine.linux.wait import Wait

EAGAIN, EFAULT, EINVAL, EPIPE, ERANGE, ENOTSOCK, EMSGSIZE = 11, 14, 22, 32, 34, 88, 90
ETIMEDOUT, EINPROGRESS = 110, 115
SIGPIPE = 13

_SECOND = 1_000_000_000
_CONNECT_TIMEOUT = 131 * _SECOND
"""After six more tries (net.ipv4.tcp_syn_retries)."""
_STREAM_PIECE = 1 << 16
_MOST_MESSAGES = 1024
_MMSGHDR = 64

Attempt = Callable[[], int | None]


def _socket(ctx: Context, fd: int) -> Socket:
    file = opened(ctx, fd)
    if not isinstance(file, Socket):
        raise LinuxError(ENOTSOCK)
    return file


def _flags(kind: int) -> tuple[int, int]:
    """(type, flags) of a type argument."""
    flags = u32(kind) & ~0xF
    if flags & ~(fl.O_NONBLOCK | fl.O_CLOEXEC):
        raise LinuxError(EINVAL)
    return u32(kind) & 0xF, flags


def _add(ctx: Context, made: Socket, flags: int) -> int:
    made.flags |= flags & fl.O_NONBLOCK
    return ctx.files.add(made, cloexec=bool(flags & fl.O_CLOEXEC))


def _wait(
    ctx: Context,
    file: Socket,
    attempt: Attempt,
    *,
    writing: bool,
    flags: int = 0,
    partial: Callable[[], int] | None = None,
) -> int | Wait:
    """Try, and wait if that would block and may."""
    result = attempt()
    if result is not None:
        return result
    done = partial() if partial is not None else 0
    if done and (file.nonblocking or flags & MSG_DONTWAIT):
        return done
    if file.nonblocking or flags & MSG_DONTWAIT:
        raise LinuxError(EAGAIN)
    if not writing:
        return sleep_on(ctx, file, file.sleepers, attempt, partial)
    return within_patience(ctx, file, Wait(attempt, partial=partial), writing=True)


# -- making and connecting -----------------------------------------------------------------


def socket(ctx: Context, domain: int, kind: int, protocol: int) -> int:
    """Linux's socket."""
    kind, flags = _flags(kind)
    return _add(ctx, make_socket(ctx, s32(domain), kind, s32(protocol)), flags)


def socketpair(ctx: Context, domain: int, kind: int, protocol: int, address: int) -> int:
    """Linux's socketpair."""
    kind, flags = _flags(kind)
    if not ctx.memory.accessible(address, 8, True):
        raise LinuxError(EFAULT)
    pair = make_pair(ctx, s32(domain), kind, s32(protocol))
    for each in pair:
        each.flags |= flags & fl.O_NONBLOCK
    return install_pair(ctx, address, pair, cloexec=bool(flags & fl.O_CLOEXEC))


def bind(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's bind."""
    file = _socket(ctx, fd)
    file.bind(ctx, name_at(ctx, address, s32(size)))
    return 0


def listen(ctx: Context, fd: int, backlog: int) -> int:
    """Linux's listen."""
    _socket(ctx, fd).listen(ctx, s32(backlog))
    return 0


def connect(ctx: Context, fd: int, address: int, size: int) -> int | Wait:
    """Linux's connect."""
    opened(ctx, fd)
    name = name_at(ctx, address, s32(size))
    file = _socket(ctx, fd)
    if file.connect(ctx, name):
        return 0
    if file.nonblocking:
        raise LinuxError(EINPROGRESS)

    def attempt() -> int | None:
        done = file.connected()
        if done is None:  # it only waits for room at the other end
            done = file.connect(ctx, name)
        return 0 if done else None

    result = attempt()
    if result is not None:
        return result
    patience = file.patience(writing=True)
    if patience is not None:
        late = EAGAIN if isinstance(file, UnixSocket) else EINPROGRESS
        end = ctx.clock.monotonic() + patience
        return Wait(attempt, deadline=end, timeout_result=-late, restart=False)
    if isinstance(file, UnixSocket):
        return Wait(attempt)
    end = ctx.clock.monotonic() + _CONNECT_TIMEOUT

    def attempt_or_end() -> int | None:
        done = attempt()
        if done is None and ctx.clock.monotonic() >= end:
            file.give_up()
            raise LinuxError(ETIMEDOUT)
        return done

    return Wait(attempt_or_end, deadline=end, timeout_result=-ETIMEDOUT)


def accept4(ctx: Context, fd: int, address: int, size: int, flags: int) -> int | Wait:
    """Linux's accept4."""
    flags = u32(flags)
    opened(ctx, fd)
    if flags & ~(fl.O_NONBLOCK | fl.O_CLOEXEC):
        raise LinuxError(EINVAL)
    file = _socket(ctx, fd)

    def attempt() -> int | None:
        taken = file.accept()
        if taken is None:
            return None
        taken.acquire()
        try:
            if address:
                store_name(ctx, taken.peer_name(gone=True), address, size)
            return _add(ctx, taken, flags)
        finally:
            taken.release()

    return _wait(ctx, file, attempt, writing=False)


def accept(ctx: Context, fd: int, address: int, size: int) -> int | Wait:
    """Linux's accept."""
    return accept4(ctx, fd, address, size, 0)


def shutdown(ctx: Context, fd: int, how: int) -> int:
    """Linux's shutdown."""
    file = _socket(ctx, fd)
    if u32(how) > 2:
        raise LinuxError(EINVAL)
    file.shut(u32(how))
    return 0


def getsockname(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's getsockname."""
    store_name(ctx, _socket(ctx, fd).name(), address, size)
    return 0


def getpeername(ctx: Context, fd: int, address: int, size: int) -> int:
    """Linux's getpeername."""
    store_name(ctx, _socket(ctx, fd).peer_name(), address, size)
    return 0


# -- sending -------------------------------------------------------------------------------


def _send(ctx: Context, file: Socket, vectors: Vectors, out: Outgoing) -> int | Wait:
    wanted = sum(size for _, size in vectors)
    try:
        vectors = usable(ctx, vectors, write=False)
    except LinuxError:
        _refuse(ctx, file, out, wanted)
        raise
    total = sum(size for _, size in vectors)
    if total < wanted and not file.stream:  # of a datagram all is needed
        _refuse(ctx, file, out, wanted)
        raise LinuxError(EFAULT)
    done = 0

    def attempt() -> int | None:
        nonlocal done
        while True:
            limit = min(_STREAM_PIECE, total - done) if file.stream else total - done
            out.data = gather(ctx, vectors, done, limit)
            try:
                count = file.send(ctx, out)
            except LinuxError as error:
                if done:
                    return done
                if error.code == EPIPE and file.breaks and not out.flags & MSG_NOSIGNAL:
                    ctx.send_signal(SIGPIPE)
                raise
            if count is None:
                return None
            out.files = ()
            done += count
            if done >= total:
                return done

    return _wait(ctx, file, attempt, writing=True, flags=out.flags, partial=lambda: done)


def _refuse(ctx: Context, file: Socket, out: Outgoing, size: int) -> None:
    """Fail with what Linux sees before it looks at the bytes of a message, if there is such."""
    try:
        file.refuse(ctx, out, size)
    except LinuxError as error:
        if error.code == EPIPE and file.breaks and not out.flags & MSG_NOSIGNAL:
            ctx.send_signal(SIGPIPE)
        raise


def sendto(
    ctx: Context, fd: int, buffer: int, size: int, flags: int, address: int, length: int
) -> int | Wait:
    """Linux's sendto."""
    size = min(size, fl.MAX_RW_COUNT)
    if buffer + size > ctx.arch.plan.task_size:  # beyond all memory, which is seen first
        raise LinuxError(EFAULT)
    file = _socket(ctx, fd)
    name = name_at(ctx, address, s32(length)) if address else b""
    return _send(ctx, file, [(buffer, size)], Outgoing(b"", name, flags=u32(flags)))


def send(ctx: Context, fd: int, buffer: int, size: int, flags: int) -> int | Wait:
    """Linux's send, where it is a call of its own."""
    return sendto(ctx, fd, buffer, size, flags, 0, 0)


def sendmsg(ctx: Context, fd: int, message: int, flags: int) -> int | Wait:
    """Linux's sendmsg, with descriptors and credentials sent along."""
    file = _socket(ctx, fd)
    header = header_at(ctx, message)
    vectors = vectors_for(ctx, header)
    size = min(header.name_size, 128)
    name = name_at(ctx, header.name, size) if header.name and size else b""
    out = Outgoing(b"", name, flags=u32(flags))
    items = control_at(ctx, header)
    if isinstance(file, UnixSocket):
        no_control(items)
        out.files, out.credentials = rights_in(ctx, items)
    return _send(ctx, file, vectors, out)


def vectors_for(ctx: Context, header: MessageHeader) -> Vectors:
    """The vectors of a message; EMSGSIZE if there are too many."""
    if header.length > 1024:
        raise LinuxError(EMSGSIZE)
    return vectors_at(ctx, header.vectors, header.length)


def _several(
    ctx: Context,
    count: int,
    one: Callable[[int], int | Wait],
    start: int,
    patient: Callable[[int], bool],
) -> int | Wait:
    """Several messages with one call: the number of those that went well.

    Args:
        ctx: the process that makes the call.
        count: of messages.
        one: does what is to be done with one of them.
        start: address of a struct mmsghdr array.
        patient: whether the call waits for one more after so many.
    """
    done = 0
    pending: Wait | None = None

    def proceed() -> int | None:
        nonlocal done, pending
        while done < count:
            try:
                if pending is not None:
                    result: int | Wait | None = pending.poll()
                    if result is None:
                        return None
                    pending = None
                else:
                    result = one(start + done * _MMSGHDR)
            except LinuxError:
                if done:
                    return done
                raise
            if isinstance(result, Wait):
                if not patient(done):
                    return done
                pending = result
                return None
            assert result is not None, "None is waited for"
            ctx.memory.write(start + done * _MMSGHDR + 56, struct.pack("<I", result))
            done += 1
        return done

    result = proceed()
    if result is not None or pending is None:
        return done

    def leave() -> None:
        if pending is not None and pending.leave is not None:
            pending.leave()

    return Wait(
        proceed,
        deadline=pending.deadline,
        timeout_result=pending.timeout_result,
        restart=pending.restart,
        leave=leave,
        partial=lambda: done,
    )


def sendmmsg(ctx: Context, fd: int, messages: int, count: int, flags: int) -> int | Wait:
    """Linux's sendmmsg."""
    _socket(ctx, fd)
    count = min(u32(count), _MOST_MESSAGES)
    return _several(ctx, count, lambda at: sendmsg(ctx, fd, at, flags), messages, lambda _: True)


# -- receiving -----------------------------------------------------------------------------


def _receive(
    ctx: Context, file: Socket, vectors: Vectors, flags: int, finish: Callable[[Incoming], None]
) -> int | Wait:
    refused: LinuxError | None = None
    try:
        vectors = usable(ctx, vectors, write=True)
    except LinuxError as error:
        if file.stream or file.readiness() & fl.POLLIN:
            raise
        refused = error  # for when there is a message to be copied
    room = sum(size for _, size in vectors)
    if flags & MSG_ERRQUEUE:
        raise LinuxError(EAGAIN)
    done = 0
    enough = (room if flags & MSG_WAITALL else min(file.low_water, room)) if file.stream else 1

    def attempt() -> int | None:
        nonlocal done
        if refused is not None:
            if file.readiness() & fl.POLLIN:
                raise refused
            return None
        while True:
            peek = flags & MSG_PEEK
            try:
                got = file.receive(room - done, flags, enough if peek else 1)
            except LinuxError:
                if done:
                    return done
                raise
            if got is None:
                return None
            if not (flags & MSG_TRUNC and file.discards):
                scatter(ctx, vectors, got.data, done)
            done += len(got.data)
            over = not file.stream or peek or got.last or got.files or not got.data
            if over or done >= enough:
                finish(got)
                if not file.stream:
                    return got.whole if flags & MSG_TRUNC else done
                return done

    return _wait(ctx, file, attempt, writing=False, flags=flags, partial=lambda: done)


def recvfrom(
    ctx: Context, fd: int, buffer: int, size: int, flags: int, address: int, length: int
) -> int | Wait:
    """Linux's recvfrom."""
    if buffer >> 63:  # beyond all memory (access_ok), which is seen first
        raise LinuxError(EFAULT)
    file, flags = _socket(ctx, fd), u32(flags)

    def finish(got: Incoming) -> None:
        ctx.net.rights.drop(got.files)
        if address:
            store_name(ctx, got.name or b"", address, length)

    return _receive(ctx, file, [(buffer, size)], flags, finish)


def recv(ctx: Context, fd: int, buffer: int, size: int, flags: int) -> int | Wait:
    """Linux's recv, where it is a call of its own."""
    return recvfrom(ctx, fd, buffer, size, flags, 0, 0)


def recvmsg(ctx: Context, fd: int, message: int, flags: int) -> int | Wait:
    """Linux's recvmsg, with what was sent along."""
    file, flags = _socket(ctx, fd), u32(flags)
    header = header_at(ctx, message)
    vectors = vectors_for(ctx, header)

    def finish(got: Incoming) -> None:
        try:
            answer = got.flags
            if not file.stream and got.whole > len(got.data):
                answer |= MSG_TRUNC
            written, lost = hand_over(ctx, header, got, flags)
        finally:
            ctx.net.rights.drop(got.files)
        if header.name:
            name = got.name or b""
            ctx.memory.write(header.name, name[: header.name_size])
            ctx.memory.write(message + 8, struct.pack("<i", len(name)))
        answer |= lost | (flags & 0x40000000)
        ctx.memory.write(message + 40, struct.pack("<QI", written, answer))

    return _receive(ctx, file, vectors, flags, finish)


def recvmmsg(
    ctx: Context, fd: int, messages: int, count: int, flags: int, timeout: int
) -> int | Wait:
    """Linux's recvmmsg; the time is looked at when a message has come."""
    flags = u32(flags)
    end = None
    if timeout:
        seconds, rest = struct.unpack("<qq", ctx.memory.read(timeout, 16))
        if seconds < 0 or not 0 <= rest < _SECOND:
            raise LinuxError(EINVAL)
        end = ctx.clock.monotonic() + seconds * _SECOND + rest
    _socket(ctx, fd)

    def patient(done: int) -> bool:
        late = end is not None and ctx.clock.monotonic() >= end
        return not done or not (flags & MSG_WAITFORONE or late)

    count = min(u32(count), _MOST_MESSAGES)
    own = flags & ~MSG_WAITFORONE
    return _several(ctx, count, lambda at: recvmsg(ctx, fd, at, own), messages, patient)


# -- options -------------------------------------------------------------------------------


def setsockopt(ctx: Context, fd: int, level: int, name: int, value: int, size: int) -> int:
    """Linux's setsockopt."""
    size = s32(size)
    if size < 0:
        raise LinuxError(EINVAL)
    file = _socket(ctx, fd)
    data = bytes(ctx.memory.read(value, min(size, 4096)))
    options.set_option(ctx, file, s32(level), s32(name), data)
    return 0


def getsockopt(ctx: Context, fd: int, level: int, name: int, value: int, size: int) -> int:
    """Linux's getsockopt."""
    file = _socket(ctx, fd)
    (room,) = struct.unpack("<i", ctx.memory.read(size, 4))
    if room < 0:
        raise LinuxError(EINVAL)
    answer = options.get_option(ctx, file, s32(level), s32(name), room)
    if len(answer) > room:  # a list is not cut: its length is told
        ctx.memory.write(size, struct.pack("<i", len(answer)))
        raise LinuxError(ERANGE)
    ctx.memory.write(value, answer)
    ctx.memory.write(size, struct.pack("<i", len(answer)))
    return 0


SYSCALLS: SyscallTable = {
    "socket": socket,
    "socketpair": socketpair,
    "bind": bind,
    "listen": listen,
    "connect": connect,
    "accept": accept,
    "accept4": accept4,
    "shutdown": shutdown,
    "getsockname": getsockname,
    "getpeername": getpeername,
    "send": send,
    "sendto": sendto,
    "sendmsg": sendmsg,
    "sendmmsg": sendmmsg,
    "recv": recv,
    "recvfrom": recvfrom,
    "recvmsg": recvmsg,
    "recvmmsg": recvmmsg,
    "setsockopt": setsockopt,
    "getsockopt": getsockopt,
}
