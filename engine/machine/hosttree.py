"""Files of the host's as entries of an initramfs."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from typing import Final, NoReturn

from engine.errors import NotElfError
from engine.hostlimits import because_of
from engine.machine.cpioarchive import ArchiveEntry, entry_size

MOST: Final = 1 << 30
"""Bytes of an initramfs."""
_NAME_MOST: Final = 4095
_KINDS: Final = (
    stat.S_ISREG,
    stat.S_ISDIR,
    stat.S_ISLNK,
    stat.S_ISFIFO,
    stat.S_ISBLK,
    stat.S_ISCHR,
)
_Identity = tuple[int, int]


def tree_entries(root: str, at: bytes = b"") -> list[ArchiveEntry]:
    """Return what is in a folder, sorted by name; links are not followed, owners are forgotten.

    Args:
        root: the folder.
        at: path in the archive that the folder's contents come below, which has folders then.

    Raises:
        NotElfError: something there cannot be read or is of a kind that no archive has, or all is
            too large.
    """
    found = sorted(_walked(os.fsencode(root), at), key=lambda row: row[0].split(b"/"))
    names = Counter(_identity(status) for _, _, status in found if stat.S_ISREG(status.st_mode))
    size = 0
    seen: set[_Identity] = set()
    entries = [*parents(at)]
    firsts = []
    for path, _, status in found:
        is_first = stat.S_ISREG(status.st_mode) and _identity(status) not in seen
        firsts.append(is_first)
        seen.add(_identity(status))
        size += entry_size(path, status.st_size if is_first else 0)
        if size > MOST:
            _refuse(root, f"more than {MOST >> 20} MB are no initramfs")
    for (path, place, status), is_first in zip(found, firsts, strict=True):
        count = names.get(_identity(status), 1)
        entries.append(_entry(path, place, status, count, is_first=is_first))
    return entries


def parents(path: bytes) -> Iterator[ArchiveEntry]:
    """The folders of a path, the path itself among them, from the root on."""
    parts = path.split(b"/") if path else []
    for count in range(1, len(parts) + 1):
        yield ArchiveEntry(b"/".join(parts[:count]), stat.S_IFDIR | 0o755)


def contents(path: str | bytes, most: int = MOST) -> bytes:
    """The bytes of a regular file.

    Raises:
        NotElfError: the file cannot be read, is of another kind, or too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                _refuse(path, "no regular file")
            data = file.read(most + 1)
    except OSError as error:
        _refuse(path, because_of(error))
    if len(data) > most:
        _refuse(path, f"more than {most >> 20} MB are no initramfs")
    return data


def _walked(root: bytes, at: bytes) -> Iterator[tuple[bytes, bytes, os.stat_result]]:
    """Path in the archive, path here, and status of each file below a folder."""
    waiting = [(at, root)]
    while waiting:
        path, place = waiting.pop()
        try:
            with os.scandir(place) as rows:
                for row in rows:
                    inner = path + b"/" + row.name if path else row.name
                    status = row.stat(follow_symlinks=False)
                    _check(inner, row.path, status)
                    yield inner, row.path, status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((inner, row.path))
        except OSError as error:
            _refuse(error.filename or place, because_of(error))


def _check(path: bytes, place: bytes, status: os.stat_result) -> None:
    if stat.S_ISSOCK(status.st_mode):
        _refuse(place, "a socket has no place in an initramfs")
    if not any(kind(status.st_mode) for kind in _KINDS):
        _refuse(place, "a file of a kind that no initramfs has")
    if len(path) > _NAME_MOST:
        _refuse(place, f"paths of an initramfs have {_NAME_MOST} bytes at the most")


def _entry(
    path: bytes, place: bytes, status: os.stat_result, names: int, *, is_first: bool
) -> ArchiveEntry:
    """An entry; the first one of several names of a file has the content.

    Args:
        path: in the archive.
        place: the path here.
        status: of the file.
        names: the number of names of the file in the archive.
        is_first: no name of the file comes before.
    """
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        try:
            return ArchiveEntry(path, stat.S_IFLNK | 0o777, os.readlink(place))
        except OSError as error:
            _refuse(place, because_of(error))
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        device = os.major(status.st_rdev), os.minor(status.st_rdev)
        return ArchiveEntry(path, mode, device=device)
    if not stat.S_ISREG(mode):
        return ArchiveEntry(path, mode)
    data = contents(place) if is_first else b""
    if names == 1:
        return ArchiveEntry(path, mode, data)
    return ArchiveEntry(path, mode, data, links=names, identity=_identity(status))


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino


def _refuse(place: str | bytes, why: str) -> NoReturn:
    raise NotElfError(f"{os.fsdecode(place)}: {why}")
