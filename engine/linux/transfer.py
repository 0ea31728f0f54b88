"""System calls that move bytes from one file to another."""

import struct

from engine.linux.context import Context, SyscallTable, s64, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

EAGAIN, EBADF, EXDEV, EISDIR, EINVAL, EPIPE = 11, 9, 18, 21, 22, 32
SIGPIPE = 13

_PIECE = 1 << 16


def _offset(ctx: Context, address: int) -> int | None:
    if not address:
        return None
    order = "<" if ctx.arch.byteorder == "little" else ">"
    (value,) = struct.unpack(order + "q", ctx.memory.read(address, 8))
    if value < 0:
        raise LinuxError(EINVAL)
    return int(value)


def _store_offset(ctx: Context, address: int, value: int | None) -> None:
    if address and value is not None:
        order = "<" if ctx.arch.byteorder == "little" else ">"
        ctx.memory.write(address, struct.pack(order + "q", value))


def sendfile(ctx: Context, out_fd: int, in_fd: int, offset: int, count: int) -> int | Wait:
    """Linux's sendfile."""
    source, target = ctx.files.get(in_fd), ctx.files.get(out_fd)
    source.check_readable()
    target.check_writable()
    start = _offset(ctx, offset)
    if s64(count) < 0 or not (source.is_regular and source.seekable):
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
                if error.code == EPIPE:
                    ctx.send_signal(SIGPIPE)
                raise
            if taken is None:
                if done:
                    break
                return None
            done += taken
            if start is None:
                source.offset += taken
        if start is not None:
            _store_offset(ctx, offset, start + done)
        return done

    result = attempt()
    if result is not None:
        return result
    if target.nonblocking:
        raise LinuxError(EAGAIN)
    return Wait(attempt, host_fds=target.wait_fds(fl.POLLOUT))


def _regular(file: OpenFile) -> None:
    if file.is_directory:
        raise LinuxError(EISDIR)
    if not (file.is_regular and file.seekable):
        raise LinuxError(EINVAL)


def copy_file_range(
    ctx: Context, in_fd: int, in_offset: int, out_fd: int, out_offset: int, count: int, flags: int
) -> int:
    """Linux's copy_file_range."""
    source, target = ctx.files.get(in_fd), ctx.files.get(out_fd)
    _regular(source)
    _regular(target)
    source.check_readable()
    target.check_writable()
    if target.flags & fl.O_APPEND:
        raise LinuxError(EBADF)
    if u32(flags):
        raise LinuxError(EINVAL)
    if source.host_fd() is not None and source.node is None:
        # A stream that happens to be a file: let the caller read and write.
        raise LinuxError(EXDEV)
    read_at, write_at = _offset(ctx, in_offset), _offset(ctx, out_offset)
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
    _store_offset(ctx, in_offset, start_in + done)
    _store_offset(ctx, out_offset, start_out + done)
    return done


def splice(ctx: Context, in_fd: int, _in: int, out_fd: int, _out: int, *_rest: int) -> int:
    """Linux's splice: callers fall back on read and write."""
    ctx.files.get(in_fd)
    ctx.files.get(out_fd)
    raise LinuxError(EINVAL)


def tee(ctx: Context, in_fd: int, out_fd: int, _count: int, _flags: int) -> int:
    """Linux's tee: callers fall back on read and write."""
    return splice(ctx, in_fd, 0, out_fd, 0)


SYSCALLS: SyscallTable = {
    "sendfile": sendfile,
    "copy_file_range": copy_file_range,
    "splice": splice,
    "tee": tee,
    "vmsplice": lambda ctx, fd, *_: splice(ctx, fd, 0, fd, 0),
}
