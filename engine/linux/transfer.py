"""System calls that move bytes from one file to another."""

import struct
from collections.abc import Callable

from engine.linux.context import Context, SyscallTable, s64, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import opened, positioned, read_into, vectors_at, write_from
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.fs.fsnotify import ACCESS, MODIFY
from engine.linux.fs.pipe import PipeEnd
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

EAGAIN, EBADF, EXDEV, EISDIR, EINVAL, ESPIPE, EPIPE = 11, 9, 18, 21, 22, 29, 32
SIGPIPE = 13

_PIECE = 1 << 16
_SPLICE_NONBLOCK, _SPLICE_ALL = 2, 0xF


def _offset(ctx: Context, address: int) -> int | None:
    if not address:
        return None
    order = "<" if ctx.arch.byteorder == "little" else ">"
    return int(struct.unpack(order + "q", ctx.memory.read(address, 8))[0])


def _store_offset(ctx: Context, address: int, value: int | None) -> None:
    if address and value is not None:
        order = "<" if ctx.arch.byteorder == "little" else ">"
        ctx.memory.write(address, struct.pack(order + "q", value))


def sendfile(ctx: Context, out_fd: int, in_fd: int, offset: int, count: int) -> int | Wait:
    """Linux's sendfile."""
    start = _offset(ctx, offset)
    source = ctx.files.get(in_fd)
    source.check_readable()
    if start is not None and not positioned(source):
        raise LinuxError(ESPIPE)
    if s64(count) < 0 or (start is not None and s64(start) < 0):
        raise LinuxError(EINVAL)
    target = ctx.files.get(out_fd)
    target.check_writable()
    seeks = type(source).seek is not OpenFile.seek  # FMODE_LSEEK
    if not count and (isinstance(target, PipeEnd) or (seeks and not target.flags & fl.O_APPEND)):
        return 0
    if not (source.is_regular and source.seekable):
        raise LinuxError(EINVAL)
    if target.flags & fl.O_APPEND:
        raise LinuxError(EINVAL)
    count = min(count, fl.MAX_RW_COUNT)
    done = 0

    def attempt() -> int | None:
        nonlocal done
        while done < count:
            at = source.offset if start is None else start + done
            data = source.pread(min(_PIECE, count - done), at)
            if not data:
                break
            try:
                taken = target.write(data)
            except LinuxError as error:
                if done:
                    break
                if error.code == EPIPE and target.breaks:
                    ctx.send_signal(SIGPIPE)
                raise
            if taken is None:
                if done and target.nonblocking:
                    break
                return None
            done += taken
            if start is None:
                source.offset += taken
        return finish()

    def finish() -> int:
        if start is not None:
            _store_offset(ctx, offset, start + done)
        _tell(ctx, source, target, done)
        return done

    result = attempt()
    if result is not None:
        return result
    if target.nonblocking:
        raise LinuxError(EAGAIN)
    return Wait(attempt, host_fds=target.wait_fds(fl.POLLOUT), partial=finish)


def _tell(ctx: Context, source: OpenFile, target: OpenFile, done: int) -> None:
    if done and ctx.fs.watches.by_inode:
        ctx.fs.watches.on_file(source, ACCESS)
        ctx.fs.watches.on_file(target, MODIFY)


def _regular(file: OpenFile) -> None:
    if file.is_directory:
        raise LinuxError(EISDIR)
    if not (file.is_regular and file.seekable):
        raise LinuxError(EINVAL)


def copy_file_range(
    ctx: Context, in_fd: int, in_offset: int, out_fd: int, out_offset: int, count: int, flags: int
) -> int:
    """Linux's copy_file_range."""
    source, target = opened(ctx, in_fd), opened(ctx, out_fd)
    read_at, write_at = _offset(ctx, in_offset), _offset(ctx, out_offset)
    if u32(flags) or (read_at or 0) < 0 or (write_at or 0) < 0:
        raise LinuxError(EINVAL)
    if source.is_directory or target.is_directory:
        raise LinuxError(EISDIR)
    _regular(source)
    _regular(target)
    source.check_readable()
    target.check_writable()
    if target.flags & fl.O_APPEND:
        raise LinuxError(EBADF)
    if any(each.host_fd() is not None and each.node is None for each in (source, target)):
        # A stream that happens to be a file: let the caller read and write.
        raise LinuxError(EXDEV)
    start_in = source.offset if read_at is None else read_at
    start_out = target.offset if write_at is None else write_at
    count = min(count, fl.MAX_RW_COUNT)
    if source.node is target.node and abs(start_in - start_out) < count:
        raise LinuxError(EINVAL)
    done = 0
    while done < count:
        data = source.pread(min(1 << 20, count - done), start_in + done)
        if not data:
            break
        taken = target.pwrite(data, start_out + done)
        done += taken
        if taken < len(data):
            break
    if read_at is None:
        source.offset += done
    if write_at is None:
        target.offset += done
    _tell(ctx, source, target, done)
    _store_offset(ctx, in_offset, start_in + done)
    _store_offset(ctx, out_offset, start_out + done)
    return done


def _splice_flags(flags: int) -> None:
    if u32(flags) & ~_SPLICE_ALL:
        raise LinuxError(EINVAL)


def _from_pipe(
    ctx: Context,
    pipe: PipeEnd,
    target: OpenFile,
    where: tuple[int | None, int],
    count: int,
    *,
    patient: bool,
) -> int | Wait:
    """Bytes of a pipe go into another file: what that takes is taken from the pipe.

    Args:
        ctx: the process that asks.
        pipe: the end that is read.
        target: the other file.
        where: the offset in it, None for its position, and where the offset is stored.
        count: how many bytes at most.
        patient: wait for bytes and for room.
    """
    at, offset = where
    if target.flags & fl.O_APPEND:
        raise LinuxError(EINVAL)
    _check_range(target, at, count)
    if isinstance(target, AnonymousFile) or type(target).write is OpenFile.write:
        raise LinuxError(EINVAL)  # it has no splice_write

    def attempt() -> int | None:
        data = bytes(pipe.pipe.data[: min(count, _PIECE)])
        if not data:
            return None if pipe.pipe.writers else 0
        try:
            taken = target.write(data) if at is None else target.pwrite(data, at)
        except LinuxError as error:
            if error.code == EPIPE and target.breaks:
                ctx.send_signal(SIGPIPE)
            raise
        if taken:
            pipe.pipe.read(taken)
            _store_offset(ctx, offset, None if at is None else at + taken)
        return taken

    return _patiently(attempt, patient=patient, host_fds=target.wait_fds(fl.POLLOUT))


def _into_pipe(
    ctx: Context,
    source: OpenFile,
    where: tuple[int | None, int],
    pipe: PipeEnd,
    count: int,
    *,
    patient: bool,
) -> int | Wait:
    """Bytes of another file go into a pipe, as many as there is room for.

    Args:
        ctx: the process that asks.
        source: the other file.
        where: the offset in it, None for its position, and where the offset is stored.
        pipe: the end that is written.
        count: how many bytes at most.
        patient: wait for room.
    """
    at, offset = where
    _check_range(source, at, count)
    unfit = isinstance(source, AnonymousFile) or source.is_directory  # it has no splice_read
    full = False

    def attempt() -> int | None:
        nonlocal full
        room = pipe.pipe.room
        if not pipe.pipe.readers:
            ctx.send_signal(SIGPIPE)
            raise LinuxError(EPIPE)
        full = room <= 0
        if full:
            return None
        if unfit:
            raise LinuxError(EINVAL)
        size = min(room, count, _PIECE)
        data = source.read(size) if at is None else source.pread(size, at)
        if data is None:
            return None
        if data:
            pipe.pipe.write(data)
            _store_offset(ctx, offset, None if at is None else at + len(data))
        return len(data)

    result = attempt()
    if result is not None:
        return result
    if not patient if full else source.nonblocking:
        raise LinuxError(EAGAIN)
    return Wait(attempt, host_fds=source.wait_fds(fl.POLLIN))


def _patiently(
    attempt: Callable[[], int | None],
    *,
    patient: bool,
    host_fds: tuple[tuple[int, int], ...] = (),
) -> int | Wait:
    """Try, and wait if that would block and may."""
    result = attempt()
    if result is not None:
        return result
    if not patient:
        raise LinuxError(EAGAIN)
    return Wait(attempt, host_fds=host_fds)


def splice(
    ctx: Context, in_fd: int, in_offset: int, out_fd: int, out_offset: int, count: int, flags: int
) -> int | Wait:
    """Linux's splice: one of the files is a pipe."""
    if not count:
        return 0
    _splice_flags(flags)
    source, target = opened(ctx, in_fd), opened(ctx, out_fd)
    pipes = isinstance(source, PipeEnd), isinstance(target, PipeEnd)
    if (pipes[0] and in_offset) or (pipes[1] and out_offset):
        raise LinuxError(ESPIPE)
    write_at, read_at = _offset(ctx, out_offset), _offset(ctx, in_offset)
    source.check_readable()
    target.check_writable()
    eager = bool(u32(flags) & _SPLICE_NONBLOCK)
    if isinstance(source, PipeEnd):
        if isinstance(target, PipeEnd) and source.pipe is target.pipe:
            raise LinuxError(EINVAL)
        patient = not (eager or source.nonblocking or target.nonblocking)
        into = write_at, out_offset
        return _from_pipe(ctx, source, target, into, count, patient=patient)
    if isinstance(target, PipeEnd):
        patient = not (eager or target.nonblocking)
        return _into_pipe(ctx, source, (read_at, in_offset), target, count, patient=patient)
    raise LinuxError(EINVAL)


def _check_range(file: OpenFile, at: int | None, count: int) -> None:
    """EINVAL where a file has no offsets, or none so large (rw_verify_area)."""
    start = (file.offset if file.seekable else 0) if at is None else at
    if (at is not None and not positioned(file)) or s64(count) < 0 or start < 0:
        raise LinuxError(EINVAL)
    if (start + count) >> 63:
        raise LinuxError(EINVAL)


def tee(ctx: Context, in_fd: int, out_fd: int, count: int, flags: int) -> int | Wait:
    """Linux's tee: a pipe's bytes stay there, and go into another one."""
    _splice_flags(flags)
    if not count:
        return 0
    source, target = ctx.files.get(in_fd), ctx.files.get(out_fd)
    source.check_readable()
    target.check_writable()
    if not (isinstance(source, PipeEnd) and isinstance(target, PipeEnd)):
        raise LinuxError(EINVAL)
    one, other = source.pipe, target.pipe
    if one is other:
        raise LinuxError(EINVAL)

    def attempt() -> int | None:
        if not other.readers:
            ctx.send_signal(SIGPIPE)
            raise LinuxError(EPIPE)
        data = bytes(one.data[: min(count, max(0, other.room))])
        if data:
            other.write(data)
            return len(data)
        return 0 if not one.data and not one.writers else None

    eager = u32(flags) & _SPLICE_NONBLOCK or source.nonblocking or target.nonblocking
    return _patiently(attempt, patient=not eager)


def vmsplice(ctx: Context, fd: int, vectors: int, count: int, flags: int) -> int | Wait:
    """Linux's vmsplice: memory goes into a pipe, or a pipe's bytes into memory."""
    _splice_flags(flags)
    file = ctx.files.get(fd)
    if not isinstance(file, PipeEnd):
        raise LinuxError(EBADF)
    pieces = vectors_at(ctx, vectors, count)
    if file.flags & fl.O_ACCMODE == fl.O_RDONLY:
        return read_into(ctx, file, pieces)
    return write_from(ctx, file, pieces)


SYSCALLS: SyscallTable = {
    "sendfile": sendfile,
    "copy_file_range": copy_file_range,
    "splice": splice,
    "tee": tee,
    "vmsplice": vmsplice,
}
