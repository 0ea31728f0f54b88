"""Mapped files and calls on them see the same bytes, whosever mappings and calls they are.

Pages of a shared mapping and the file they belong to are two copies. They meet around the
calls that look at the file or change it, which costs nothing while no file is mapped shared.
Private pages that their process has not written to follow the file too.
"""

import stat
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.errors import GuestFaultError
from engine.linux.context import s32, s64, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import node_at, vectors_at
from engine.linux.fs.vfs import Node, OpenFile
from engine.linux.memory import MAP_PRIVATE, MAP_TYPE
from engine.linux.thread import Thread

# Call to the argument that holds a descriptor.
_LOOKS: Final = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2", "fsync", "fdatasync"), 0),
    **dict.fromkeys(("copy_file_range", "splice"), 0),
    "sendfile": 1,
    "mmap": 4,
}
_EVERYTHING: Final = frozenset({"execve", "execveat", "sync", "syncfs"})
"""Calls before which all stores reach their files."""


class FileRange(NamedTuple):
    """Bytes of a file that a call may change.

    Attributes:
        node: the file.
        low: first byte.
        high: one past the last.
    """

    node: Node
    low: int
    high: int


class FileChange(NamedTuple):
    """A call that is about to change a file that is mapped.

    Attributes:
        node: the file.
        size: bytes in it before.
        finish: shows the change.
    """

    node: Node
    size: int
    finish: Callable[[bool], None]


def _file(k: Thread, descriptor: int) -> OpenFile | None:
    file = k.files.peek(s32(descriptor))
    return file if file is not None and file.is_regular else None


def _from(file: OpenFile | None, offset: int | None, count: int) -> FileRange | None:
    """Bytes of a file from an offset on, or from where the next write goes."""
    if file is None or file.node is None:
        return None
    if file.flags & fl.O_APPEND:
        offset = file.stat().size
    low = file.offset if offset is None else offset
    return FileRange(file.node, low, low + count)


def _total(k: Thread, vectors: int, count: int) -> int:
    return sum(size for _, size in vectors_at(k, vectors, count))


def _cut(node: Node | None, size: int) -> FileRange | None:
    """The page in which a file ends that gets shorter."""
    if node is None or node.kind != stat.S_IFREG:
        return None
    return FileRange(node, size, size + 1)


def _opened(k: Thread, directory: int, path: int, flags: int) -> FileRange | None:
    """A file that open empties."""
    ours = fl.from_guest(u32(flags), k.arch.linux.open_flags)
    return _cut(node_at(k, directory, path), 0) if ours & fl.O_TRUNC else None


def _node(k: Thread, descriptor: int) -> Node | None:
    file = _file(k, descriptor)
    return None if file is None else file.node


def _sent(k: Thread, target: int, source: int, at: int, count: int) -> FileRange | None:
    return _from(_file(k, target), None, count)


def _copied(k: Thread, source: int, at: int, target: int, to: int, count: int) -> FileRange | None:
    offset = s64(int.from_bytes(k.memory.read(to, 8), "little")) if to else None
    return _from(_file(k, target), offset, count)


_CHANGES: Final[dict[str, Callable[..., FileRange | None]]] = {
    "write": lambda k, fd, at, count: _from(_file(k, fd), None, count),
    "writev": lambda k, fd, at, n: _from(_file(k, fd), None, _total(k, at, n)),
    "pwrite64": lambda k, fd, at, count, to: _from(_file(k, fd), to, count),
    "pwritev": lambda k, fd, at, n, to, high: _from(_file(k, fd), to, _total(k, at, n)),
    "pwritev2": lambda k, fd, at, n, to, high, how: _from(
        _file(k, fd), None if s64(to) == -1 else to, _total(k, at, n)
    ),
    "ftruncate": lambda k, fd, size: _cut(_node(k, fd), size),
    "truncate": lambda k, path, size: _cut(node_at(k, fl.AT_FDCWD, path), size),
    "fallocate": lambda k, fd, mode, to, count: _from(_file(k, fd), to, count),
    "sendfile": _sent,
    "copy_file_range": lambda k, fd, at, out, to, count, how: _copied(k, fd, at, out, to, count),
    "splice": lambda k, fd, at, out, to, count, how: _copied(k, fd, at, out, to, count),
    "open": lambda k, path, flags, mode: _opened(k, fl.AT_FDCWD, path, flags),
    "creat": lambda k, path, mode: _cut(node_at(k, fl.AT_FDCWD, path), 0),
    "openat": lambda k, directory, path, flags, mode: _opened(k, directory, path, flags),
    "openat2": lambda k, directory, path, how, size: _opened(
        k, directory, path, int.from_bytes(k.memory.read(how, 8), "little")
    ),
}
"""Calls that change files to what they may change."""
CONCERNED: Final = _EVERYTHING | _LOOKS.keys() | _CHANGES.keys()
"""All others neither look at files nor change them."""


def before(k: Thread, name: str, arguments: tuple[int, ...]) -> FileChange | None:
    """A call begins: stores through mappings reach the file that it uses.

    Returns:
        For `after`, if it is about to change a file that is mapped.
    """
    shared = k.memory.shared
    if shared:
        index = _LOOKS.get(name)
        if index is not None:
            node = _node(k, arguments[index])
            if node is not None:
                _show(k, node, name, arguments)
        elif name in _EVERYTHING:
            shared.flush_all()
    changes = _CHANGES.get(name)
    if changes is None:
        return None
    try:
        changed = changes(k, *arguments)
    except (LinuxError, GuestFaultError):
        return None  # the call fails too
    if changed is None or not shared.shows(changed.node):
        return None
    shared.flush(changed.node)
    finish = shared.file_changes(*changed)
    return FileChange(changed.node, changed.node.stat().size, finish)


def _show(k: Thread, node: Node, name: str, arguments: tuple[int, ...]) -> None:
    """Bring stores through mappings to a file that a call looks at."""
    shared = k.memory.shared
    if name != "mmap":
        shared.flush(node)
        return
    _, size, _, flags, _, offset = arguments
    if flags & MAP_TYPE == MAP_PRIVATE:  # those that are shared see each other's pages
        shared.flush(node, offset, offset + size)


def of_wait(k: Thread, name: str, arguments: tuple[int, ...]) -> FileChange | None:
    """The same where a call that waits for something to write is tried again."""
    return before(k, name, arguments) if name == "splice" else None


def after(change: FileChange) -> None:
    """Show in a file's mappings what a call has changed."""
    change.finish(change.node.stat().size < change.size)
