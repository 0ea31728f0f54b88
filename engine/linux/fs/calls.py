"""Parts that handlers of file system calls share: arguments, vectors, places."""

import struct
from collections.abc import Callable

from msgspec.structs import replace

from engine.linux.context import Context, s32, s64
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import fsnotify
from engine.linux.fs.filesystem import ResolvedPath
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.vfs import Directory, Node, OpenFile, Sleeper
from engine.linux.wait import Wait

ENOENT, EAGAIN, EFAULT, ENOTDIR, EINVAL, ENAMETOOLONG = 2, 11, 14, 20, 22, 36
EISDIR = 21
EBADF, EFBIG, EPIPE = 9, 27, 32
SIGPIPE, SIGXFSZ = 13, 25

_PAGE = 4096
_IOV_MAX = 1024
_FILE_PIECE = 1 << 20
_STREAM_PIECE = 1 << 16

Vectors = list[tuple[int, int]]
"""(address, size) pieces of guest memory."""


def path_at(ctx: Context, address: int) -> bytes:
    """A path argument."""
    path = ctx.memory.read_cstring(address, fl.MAX_PATH)
    if len(path) >= fl.MAX_PATH:
        raise LinuxError(ENAMETOOLONG)
    return bytes(path)


def working_directory(ctx: Context) -> Directory:
    """The process's working directory."""
    return ctx.directory


def base_of(ctx: Context, dirfd: int, path: bytes) -> Directory:
    """The directory at which a relative path of an *at call starts; ENOENT for no path."""
    if not path:
        raise LinuxError(ENOENT)
    if path.startswith(b"/"):
        return ctx.fs.root
    fd = s32(dirfd)
    if fd == fl.AT_FDCWD:
        return working_directory(ctx)
    node = ctx.files.get(fd).node
    if not isinstance(node, Directory):
        raise LinuxError(ENOTDIR)
    return node


def place_at(
    ctx: Context,
    dirfd: int,
    address: int,
    *,
    follow: bool = True,
    empty: bool = False,
    null: bool = False,
) -> ResolvedPath:
    """The end of a path argument.

    Args:
        ctx: the process that asks.
        dirfd: descriptor of the directory where a relative path begins.
        address: of the path.
        follow: a symbolic link at the end is followed.
        empty: "" means the descriptor itself.
        null: so does a null pointer (getname_maybe_null, since 6.11).
    """
    path = path_at(ctx, address) if address or not null else b""
    if empty and not path:
        if s32(dirfd) == fl.AT_FDCWD:
            directory = working_directory(ctx)
            return ResolvedPath(directory, b"", directory)
        file = ctx.files.get(s32(dirfd))
        parent, name = file.place or (ctx.fs.root, b"")
        return ResolvedPath(parent, name, file.node, file=file)
    return ctx.fs.walk(base_of(ctx, dirfd, path), path, follow=follow)


def entry_at(ctx: Context, dirfd: int, address: int) -> ResolvedPath:
    """The directory entry a path argument names, for calls that make or remove it."""
    path = path_at(ctx, address)
    return ctx.fs.walk(base_of(ctx, dirfd, path), path, follow=False, entry=True)


def node_at(
    ctx: Context, dirfd: int, address: int, *, follow: bool = True, empty: bool = False
) -> Node:
    """The node a path argument leads to; ENOENT if there is none."""
    return place_at(ctx, dirfd, address, follow=follow, empty=empty).existing()


def opened(ctx: Context, fd: int) -> OpenFile:
    """The file of a descriptor that is more than a place in the tree (fdget); else EBADF."""
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    return file


def positioned(file: OpenFile) -> bool:
    """True for a file that can be read at an offset (FMODE_PREAD)."""
    return type(file).pread is not OpenFile.pread or file.is_directory


def vectors_at(ctx: Context, address: int, count: int) -> Vectors:
    """Read an iovec array, cut after MAX_RW_COUNT bytes (import_iovec of lib/iov_iter.c).

    Raises:
        LinuxError: EINVAL for too many pieces or a negative size, EFAULT for a piece that goes
            beyond all memory. The size of a piece that is alone is cut before it is looked at.
    """
    if s64(count) < 0 or count > _IOV_MAX:
        raise LinuxError(EINVAL)
    order = "<" if ctx.arch.byteorder == "little" else ">"
    raw = ctx.memory.read(address, 16 * count)
    vectors = list(struct.iter_unpack(order + "QQ", raw))
    total, beyond, end = 0, False, ctx.arch.plan.task_size
    for start, size in vectors:
        if size >> 63:
            raise LinuxError(EINVAL)
        total += size
        beyond = beyond or start + (size if count > 1 else min(size, fl.MAX_RW_COUNT)) > end
    if beyond:
        raise LinuxError(EFAULT)
    return vectors if total <= fl.MAX_RW_COUNT else _cut(vectors)


def _cut(vectors: Vectors) -> Vectors:
    """The first MAX_RW_COUNT bytes of vectors."""
    kept: Vectors = []
    left = fl.MAX_RW_COUNT
    for start, size in vectors:
        kept.append((start, min(size, left)))
        left -= kept[-1][1]
    return kept


def vectors_to_read(ctx: Context, file: OpenFile, address: int, count: int) -> Vectors:
    """The memory that bytes of a file go to; nothing if no piece has a byte (vfs_readv)."""
    file.check_readable()
    if type(file).read is OpenFile.read:  # FMODE_CAN_READ
        raise LinuxError(EINVAL)
    vectors = vectors_at(ctx, address, count)
    return vectors if any(size for _, size in vectors) else []


def vectors_to_write(ctx: Context, file: OpenFile, address: int, count: int) -> Vectors:
    """The memory that goes into a file; nothing if no piece has a byte (vfs_writev)."""
    file.check_writable()
    if type(file).write is OpenFile.write:  # FMODE_CAN_WRITE
        raise LinuxError(EINVAL)
    vectors = vectors_at(ctx, address, count)
    return vectors if any(size for _, size in vectors) else []


def _total(vectors: Vectors) -> int:
    """Bytes of all pieces."""
    return vectors[0][1] if len(vectors) == 1 else sum(size for _, size in vectors)


def usable(ctx: Context, vectors: Vectors, *, write: bool) -> Vectors:
    """The part of the vectors that can be accessed; EFAULT if that is nothing.

    Checked before anything is transferred, so that a bad pointer costs no data.
    """
    if len(vectors) == 1:  # the usual case
        address, size = vectors[0]
        if 0 < size <= fl.MAX_RW_COUNT and ctx.memory.accessible(address, size, write):
            return vectors
    good: Vectors = []
    left = fl.MAX_RW_COUNT
    if any(size >> 63 for _, size in vectors):  # no memory is as large (access_ok)
        raise LinuxError(EFAULT)
    for address, size in vectors:
        wanted = min(size, left)
        if wanted == 0:
            continue
        if ctx.memory.accessible(address, wanted, write):
            good.append((address, wanted))
            left -= wanted
            continue
        low, high = 0, wanted
        while high - low > 1:
            middle = (low + high) // 2
            # Whole pages are accessible or not.
            middle = min(high - 1, max(low + 1, (address + middle & -_PAGE) - address))
            if ctx.memory.accessible(address, middle, write):
                low = middle
            else:
                high = middle
        if low:
            good.append((address, low))
        elif not good:
            raise LinuxError(EFAULT)
        break
    return good


def scatter(ctx: Context, vectors: Vectors, data: bytes, start: int = 0) -> None:
    """Write data into vectors from position `start` of them."""
    if len(vectors) == 1 and not start and 0 < len(data) <= vectors[0][1]:  # the usual case
        ctx.memory.write(vectors[0][0], data)
        return
    done = 0
    for address, size in vectors:
        if start >= size:
            start -= size
            continue
        piece = data[done : done + size - start]
        if not piece:
            break
        ctx.memory.write(address + start, piece)
        done += len(piece)
        start = 0


def gather(ctx: Context, vectors: Vectors, start: int, limit: int) -> bytes:
    """Up to `limit` bytes of the vectors from position `start` of them."""
    if len(vectors) == 1 and not start:  # the usual case
        address, size = vectors[0]
        return ctx.memory.read(address, min(size, limit))
    pieces = []
    for address, size in vectors:
        if start >= size:
            start -= size
            continue
        count = min(size - start, limit)
        pieces.append(bytes(ctx.memory.read(address + start, count)))
        limit -= count
        start = 0
        if limit == 0:
            break
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _tell(file: OpenFile, event: int) -> None:
    """Tell those who watch a file."""
    node = file.node
    if node is not None and node.volume.watches.by_inode:
        node.volume.watches.on_file(file, event)


def read_into(ctx: Context, file: OpenFile, vectors: Vectors) -> int | Wait:
    """Read at the file's position."""
    file.check_readable()
    if type(file).read is OpenFile.read:  # FMODE_CAN_READ
        raise LinuxError(EINVAL)
    if vectors and (vectors[0][0] | vectors[0][1]) >> 63:  # beyond all memory (access_ok)
        raise LinuxError(EFAULT)
    if file.is_directory:
        raise LinuxError(EISDIR)
    if file.least and _total(vectors) < file.least:
        raise LinuxError(EINVAL)
    refused: LinuxError | None = None
    try:
        vectors = usable(ctx, vectors, write=True)
    except LinuxError as error:
        if file.seekable and not file.pread(1, file.offset):
            return 0  # at the file's end nothing is copied
        if file.seekable or file.readiness() & fl.POLLIN:
            raise
        refused = error  # for when there is something to be copied
    total = _total(vectors)
    if file.seekable:
        done = 0
        while done < total:
            want = min(total - done, _FILE_PIECE)
            data = file.read(want) or b""
            scatter(ctx, vectors, data, done)
            done += len(data)
            if len(data) < want:
                break
        if done:
            _tell(file, fsnotify.ACCESS)
        return done
    if total == 0:
        return 0

    if file.timed:
        file.start_reading()

    def attempt() -> int | None:
        if refused is not None:
            if file.readiness() & fl.POLLIN:
                raise refused
            return None
        data = file.read(total)
        if data is None:
            return None
        scatter(ctx, vectors, data)
        if data:
            _tell(file, fsnotify.ACCESS)
        return len(data)

    count = attempt()
    if count is not None:
        return count
    if file.nonblocking:
        raise LinuxError(EAGAIN)
    if file.sleepers is not None:
        return sleep_on(ctx, file, file.sleepers, attempt)
    return Wait(
        attempt,
        due=file.next_deadline if file.timed else None,
        host_fds=file.wait_fds(fl.POLLIN),
        outside=file.outside,
    )


def sleep_on(
    ctx: Context,
    file: OpenFile,
    sleepers: dict[Sleeper, None],
    attempt: Callable[[], int | None],
    partial: Callable[[], int] | None = None,
) -> Wait:
    """Wait to read a file that wakes those who do."""

    def leave() -> None:
        sleepers.pop(ctx, None)

    def attempt_or_sleep() -> int | None:
        sleepers.pop(ctx, None)
        result = attempt()
        if result is None:
            sleepers[ctx] = None
        return result

    sleepers[ctx] = None
    wait = Wait(attempt_or_sleep, leave=leave, partial=partial, woken_by_calls=True)
    return within_patience(ctx, file, wait, writing=False)


def within_patience(ctx: Context, file: OpenFile, wait: Wait, *, writing: bool) -> Wait:
    """The same, ended where the file gives up (SO_RCVTIMEO); nothing restarts it then."""
    patience = file.patience(writing=writing)
    if patience is None:
        return wait
    deadline = ctx.clock.monotonic() + patience
    return replace(wait, deadline=deadline, timeout_result=-EAGAIN, restart=False)


def pread_into(ctx: Context, file: OpenFile, vectors: Vectors, offset: int) -> int:
    """Read at an offset, leaving the position alone."""
    if offset < 0:
        raise LinuxError(EINVAL)
    file.check_readable()
    if any(address + size > ctx.arch.plan.task_size for address, size in vectors):  # access_ok
        raise LinuxError(EFAULT)
    if (offset + sum(size for _, size in vectors)) >> 63:  # rw_verify_area
        raise LinuxError(EINVAL)
    if file.is_directory:
        raise LinuxError(EISDIR)
    try:
        vectors = usable(ctx, vectors, write=True)
    except LinuxError:
        if file.pread(1, offset):
            raise
        return 0  # behind the file's end nothing is copied
    total = sum(size for _, size in vectors)
    if total == 0:
        file.pread(0, offset)
    done = 0
    while done < total:
        want = min(total - done, _FILE_PIECE)
        data = file.pread(want, offset + done)
        scatter(ctx, vectors, data, done)
        done += len(data)
        if len(data) < want:
            break
    if done:
        _tell(file, fsnotify.ACCESS)
    return done


def _size_limit(ctx: Context, file: OpenFile, offset: int, total: int) -> int:
    """The bytes of a write that the resource limit lets through."""
    limit = ctx.limit("fsize")
    if offset + total <= limit:
        return total
    if offset >= limit:
        ctx.send_signal(SIGXFSZ)
        raise LinuxError(EFBIG)
    return limit - offset


def write_from(ctx: Context, file: OpenFile, vectors: Vectors) -> int | Wait:
    """Write at the file's position."""
    file.check_writable()
    if type(file).write is OpenFile.write:  # FMODE_CAN_WRITE
        raise LinuxError(EINVAL)
    if file.least and _total(vectors) < file.least and not any(at >> 63 for at, _ in vectors):
        raise LinuxError(EINVAL)
    vectors = usable(ctx, vectors, write=False)
    total = _total(vectors)
    if total == 0 and not file.messages:
        return 0
    piece = _FILE_PIECE if file.seekable or file.messages else _STREAM_PIECE
    if file.is_regular and ctx.limit("fsize") < 1 << 62:
        offset = file.stat().size if file.flags & fl.O_APPEND else file.offset
        total = _size_limit(ctx, file, offset, total)
    done = 0

    def attempt() -> int | None:
        nonlocal done
        while True:
            data = gather(ctx, vectors, done, min(piece, total - done))
            try:
                count = file.write(data)
            except LinuxError as error:
                if done:
                    return done
                if error.code == EPIPE and file.breaks:
                    ctx.send_signal(SIGPIPE)
                raise
            if count is None:
                return done if done and file.nonblocking else None
            done += count
            if done >= total:
                _tell(file, fsnotify.MODIFY)
                return done

    result = attempt()
    if result is not None:
        return result
    if file.nonblocking:
        raise LinuxError(EAGAIN)
    wait = Wait(attempt, host_fds=file.wait_fds(fl.POLLOUT), partial=lambda: done)
    return within_patience(ctx, file, wait, writing=True)


def pwrite_from(ctx: Context, file: OpenFile, vectors: Vectors, offset: int) -> int:
    """Write at an offset, leaving the position alone."""
    if offset < 0:
        raise LinuxError(EINVAL)
    file.check_writable()
    if any(address + size > ctx.arch.plan.task_size for address, size in vectors):  # access_ok
        raise LinuxError(EFAULT)
    if (offset + sum(size for _, size in vectors)) >> 63:  # rw_verify_area
        raise LinuxError(EINVAL)
    vectors = usable(ctx, vectors, write=False)
    total = sum(size for _, size in vectors)
    if file.flags & fl.O_APPEND and file.is_regular:
        # As Linux does, against POSIX: appending wins over the offset.
        offset = file.stat().size
    if file.is_regular and total:
        total = _size_limit(ctx, file, offset, total)
    if total == 0:
        file.pwrite(b"", offset)
    done = 0
    while done < total:
        data = gather(ctx, vectors, done, min(_FILE_PIECE, total - done))
        try:
            count = file.pwrite(data, offset + done)
        except LinuxError:
            if done:
                break
            raise
        done += count
        if count < len(data):
            break
    if done:
        _tell(file, fsnotify.MODIFY)
    return done
