"""Mapped files and calls on them see the same bytes.

Pages of a shared mapping and the file they belong to are two copies. They meet around the
calls that look at the file or change it, which costs nothing while no file is mapped shared.
"""

from typing import Final

from engine.linux.context import s32
from engine.linux.thread import Thread

# Call to the arguments that hold descriptors.
_LOOKS: Final = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2", "fsync", "fdatasync"), (0,)),
    **dict.fromkeys(("sendfile",), (1,)),
    **dict.fromkeys(("copy_file_range", "splice"), (0,)),
}
_CHANGES: Final = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), (0,)),
    **dict.fromkeys(("ftruncate", "fallocate"), (0,)),
    **dict.fromkeys(("sendfile",), (0,)),
    **dict.fromkeys(("copy_file_range", "splice"), (2,)),
}
_BY_PATH: Final = frozenset({"truncate", "open", "openat", "openat2", "creat"})


def _node(k: Thread, descriptor: int) -> object | None:
    file = k.files.peek(s32(descriptor))
    return file.node if file is not None and file.is_regular else None


def before(k: Thread, name: str, arguments: tuple[int, ...]) -> None:
    """Stores through mappings reach the files that a call is about to use."""
    shared = k.memory.shared
    if not shared:
        return
    for table in (_LOOKS, _CHANGES):
        for index in table.get(name, ()):
            node = _node(k, arguments[index])
            if node is not None:
                shared.flush(node)
    if name in _BY_PATH or name == "mmap":
        shared.flush_all()


def after(k: Thread, name: str, arguments: tuple[int, ...]) -> None:
    """Show in a file's mappings what a call has changed."""
    for index in _CHANGES.get(name, ()):
        node = _node(k, arguments[index])
        if node is not None and k.memory.shows(node):
            k.memory.file_changed(node)
    if name in _BY_PATH and k.memory.shared:
        for node in k.memory.shared.identities():
            k.memory.file_changed(node)
