"""The units of debug files that have a name, kept on disk from one session to the next.

A search for a name reads the strings, the abbreviations and the entries of a file, unpacks them
before, and finds nothing in nearly all files: a breakpoint is looked for in each library that a
program loads. So an answer is kept for the next session. Nothing depends on it: without a file of
answers, or with one that is damaged, of another version or of somebody else, the search is made.

An answer belongs to one state of one file: the file of answers begins with the build-id, size,
inode and times of change that it is for, and with the state of the code that made it.
"""

import os
import stat
import time
import zlib
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Final

from engine.image.kernel.columnfile import Column, pack_columns, read_columns
from engine.image.kernel.scratch import write_file

_STAMP: Final = b"names of debug files, 1".ljust(32)
"""Stamp of the files; the number at the end is counted up when what is kept changes."""
_ENVIRONMENT: Final = "KPROBE_TUI_NAME_CACHE"
_SUFFIX: Final = ".names"
_MOST_FILES: Final = 256
_MOST_NAMES: Final = 4096
"""Names that are kept of one file, the latest ones."""
_MOST_UNITS: Final = 1 << 16
"""Units of all names of one file; a name that is in more of them is not worth keeping."""
_LARGEST: Final = 4 << 20
"""Bytes of a file of answers."""
_USED: Final = 86400.0
"""Seconds after which a file that is used gets a new time of use."""
_LEFT_BEHIND: Final = 3600.0
"""Seconds after which a file that was never finished is deleted."""
_OTHERS_WRITE: Final = 0o022
_SOURCES: Final = (
    "debuginfo.py", "dies.py", "dietypes.py", "forms.py", "functions.py", "knownunits.py",
    "namedunits.py", "names.py", "nametables.py", "reader.py", "sections.py", "symtab.py",
)  # fmt: skip
"""Our modules that answers depend on."""


class KnownUnits:
    """The units of one debug file that have a name of some kind, as far as somebody has asked.

    Attributes:
        remarks: about what was damaged or could not be written, for those who debug.
    """

    def __init__(self, folder: Path | None, build_id: str, state: str) -> None:
        """Nothing is read yet.

        Args:
            folder: of all files of answers; None keeps answers nowhere.
            build_id: of the file, "" without one.
            state: of the file on disk, which changes whenever the file does.
        """
        self._state = f"{build_id} {state}"
        named = zlib.crc32(self._state.encode("utf-8", "surrogateescape"))
        file = f"{build_id[:40] or 'none'}-{named:08x}{_SUFFIX}"
        self._path = None if folder is None else folder / file
        self._new = 0
        self.remarks: list[str] = []

    def units(self, kind: str, name: str) -> Sequence[int] | None:
        """Offsets of the units, ascending; None if nothing is known.

        Args:
            kind: of the question.
            name: that was asked for.
        """
        return self._answers.get(_row(kind, name))

    def add(self, kind: str, name: str, units: Sequence[int]) -> None:
        """Keep an answer.

        Args:
            kind: of the question.
            name: that was asked for.
            units: offsets of the units, ascending.
        """
        if self._path is None or len(units) > _MOST_UNITS // 16:
            return
        self._answers[_row(kind, name)] = tuple(units)
        self._new += 1
        # A few more each time: many names in a row are not written as often as there are names.
        if self._new * 8 >= len(self._answers):
            self._write()

    # -- the file ----------------------------------------------------------------------------

    @cached_property
    def _meant(self) -> bytes:
        """State of the debug file, and of the code that the answers are made by."""
        parts = [self._state]
        here = os.path.dirname(os.path.abspath(__file__))
        for name in _SOURCES:
            with suppress(OSError):  # no files: the format alone tells
                status = os.stat(os.path.join(here, name))
                parts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
        return "\n".join(parts).encode("utf-8", "surrogateescape")

    @cached_property
    def _answers(self) -> dict[bytes, tuple[int, ...]]:
        if self._path is None:
            return {}
        try:
            data = _own_bytes(self._path)
            found = {} if data is None else _unpacked(data, self._meant)
        except (OSError, ValueError) as error:
            self.remarks.append(f"{self._path}: {error}: made anew")
            return {}
        return found

    def _write(self) -> None:
        path, rows = self._path, self._answers
        if path is None:
            return
        while len(rows) > _MOST_NAMES or sum(map(len, rows.values())) > _MOST_UNITS:
            del rows[next(iter(rows))]
        self._new = 0
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(os.stat(path.parent))
            if not path.exists():
                _make_room(path.parent)
            write_file(path, pack_columns(_columns(rows, self._meant), _STAMP))
        except (OSError, ValueError) as error:
            self.remarks.append(f"{path}: not kept: {error}")
            self._path = None


def cache_folder() -> Path | None:
    """The folder of the answers: of $KPROBE_TUI_NAME_CACHE, or in the user's cache.

    None for a user without a home: none is made for a cache.
    """
    given = os.environ.get(_ENVIRONMENT)
    if given:
        return Path(given)
    if not os.path.isdir(os.path.expanduser("~")):
        return None
    import platformdirs

    return Path(platformdirs.user_cache_dir("kprobe-tui")) / "names"


def _row(kind: str, name: str) -> bytes:
    return f"{kind}\0{name}".encode("utf-8", "surrogateescape")


def _columns(rows: Mapping[bytes, tuple[int, ...]], meant: bytes) -> dict[str, Column]:
    return {
        "meant": meant,
        "names": b"".join(rows),
        "name_ends": array("I", accumulate(map(len, rows))),
        "units": array("Q", chain.from_iterable(rows.values())),
        "unit_ends": array("I", accumulate(map(len, rows.values()))),
    }


def _unpacked(data: bytes, meant: bytes) -> dict[bytes, tuple[int, ...]]:
    """The answers in a file; ValueError if it is damaged, or for something else than is meant."""
    columns = read_columns(data, _STAMP)
    try:
        if columns.bytes("meant") != meant:
            raise ValueError("for another state of the file, or of this program")
        names, units = columns.bytes("names"), columns.numbers("units").tolist()
        name_ends = columns.numbers("name_ends").tolist()
        unit_ends = columns.numbers("unit_ends").tolist()
    except KeyError as error:
        raise ValueError(f"no column {error}") from error
    for ends, size in ((name_ends, len(names)), (unit_ends, len(units))):
        if ends != sorted(ends) or (ends[-1] if ends else 0) != size:
            raise ValueError("its rows do not fit")
    return {
        names[start:end]: tuple(units[first:last])
        for (start, end), (first, last) in zip(
            pairwise((0, *name_ends)), pairwise((0, *unit_ends)), strict=True
        )
    }


def _own_bytes(path: Path) -> bytes | None:
    """A file of the user's own that nobody else can have written; None if there is none.

    Raises:
        ValueError: others can write it, or it is no such file.
        OSError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(handle)
        _check_owner(os.stat(path.parent))
        _check_owner(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise ValueError("no file of answers")
        data = os.read(handle, status.st_size)
        if time.time() - status.st_mtime > _USED:
            os.utime(handle)
    finally:
        os.close(handle)
    return data


def _check_owner(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ValueError("belongs to somebody else")
    if status.st_mode & _OTHERS_WRITE:
        raise ValueError("others can write there")


def _make_room(folder: Path) -> None:
    """Delete the files that were used longest ago, and what was never finished."""
    try:
        found = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder)]
    except OSError:
        return  # nothing is there yet, or another session is quicker
    kept = sorted(row for row in found if row[1].endswith(_SUFFIX))
    stale = [row for row in found if row[1].endswith(".part")]
    old = kept[: max(0, len(kept) - _MOST_FILES + 1)]
    gone = [path for at, path in stale if time.time() - at > _LEFT_BEHIND]
    for path in (*(path for _, path in old), *gone):
        with suppress(OSError):
            os.unlink(path)
