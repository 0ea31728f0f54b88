"""Kernel images kept on disk, unpacked and with what was derived of them.

An entry is named after the contents of the file it came from: another kernel under the same name
is another entry. Nothing depends on the cache: what is damaged, of another version or not there
is made anew, and where nothing can be written, all is made each time. Files come into being under
other names and are moved then, so that several processes may use one cache.

An unpacked image ends with a seal: its size and checksum. The file's time of change is made to fit
it, so that the checksum of so many bytes is looked at only when somebody else wrote the file.
"""

import hashlib
import mmap
import os
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from engine.image.headers import Buffer
from engine.image.kernel.columnfile import Column, ColumnSet, pack_columns, read_columns
from engine.image.kernel.scratch import joined, write_file

_FORMAT: Final = 3
"""Counted up when what is made of an image changes."""
_MOST: Final = 8
_MOST_OF_A_KIND: Final = 4
"""Columns of one kind that are kept of an image: those for so many CPUs."""
_SUFFIX: Final = ".kernel"
_ENVIRONMENT: Final = "KPROBE_TUI_KERNEL_CACHE"
_SEAL: Final = struct.Struct("<8sQ20sI8x")
_SEALED: Final = b"KTUISEAL"
_SECOND: Final = 10**9
_WHOLE_MAX: Final = 96 << 20
"""Bytes of a file that is named by all of them; a larger one is named by its state on disk."""
_PIECE: Final = 1 << 20
_LEFT_BEHIND: Final = 3600.0
"""Seconds after which a file that was never finished is deleted."""
_SOURCES: Final = ("image/kernel", "arch", "session/kernel")
"""Folders of the code that derives columns, which is in the folders below them too."""


def cache_folder() -> Path:
    """The folder of the cache: of $KPROBE_TUI_KERNEL_CACHE, or in the user's cache."""
    given = os.environ.get(_ENVIRONMENT)
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("kprobe-tui")) / "kernels"


def code_stamp() -> bytes:
    """32 bytes that change with the code by which columns are derived."""
    found = hashlib.sha256(b"%d" % _FORMAT)
    engine = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = [os.path.join(engine, folder) for folder in _SOURCES]
    for folder in folders:  # which grows
        try:
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue  # no files: the format alone tells
        for entry in ordered:
            if entry.name.endswith(".py"):
                status = entry.stat()
                found.update(f"{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
            elif not entry.name.startswith("__") and entry.is_dir():
                folders.append(entry.path)
    return found.digest()


class KeptKernel:
    """The files that are kept of one image.

    Attributes:
        remarks: about what was damaged or could not be written, for those who debug.
    """

    def __init__(self, folder: Path, key: str) -> None:
        """Nothing is read yet.

        Args:
            folder: of the cache.
            key: of the image.
        """
        self._folder = folder
        self._key = key
        self._stamp: bytes | None = None
        self.remarks: list[str] = []

    # -- the image -----------------------------------------------------------------------

    def image(self) -> mmap.mmap | None:
        """The unpacked image; None if it is not kept."""
        path = self._path("")
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        reason = self._broken(found, status.st_mtime_ns)
        if reason:
            self.remarks.append(f"{path}: {reason}: made anew")
            found.close()
            return None
        self._touch(path, found)
        return found

    def keep_image(self, pieces: Iterable[bytes | memoryview | mmap.mmap]) -> Buffer:
        """The image that consists of some pieces, kept if that is possible.

        Raises:
            OSError: there is no room for it, neither on disk nor in memory.
        """
        path = self._path("")
        held = list(pieces)
        digest = hashlib.sha1(usedforsecurity=False)
        for piece in held:
            digest.update(piece)
        size = sum(map(len, held))
        seal = _SEAL.pack(_SEALED, size, digest.digest(), _FORMAT)
        if not self._written(path, [*held, seal]):
            return joined(held)
        try:
            with open(path, "rb") as file:
                found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._touch(path, found)
        except (OSError, ValueError):
            return joined(held)
        self._make_room()
        return found

    def private_image(self) -> mmap.mmap | None:
        """A copy of the image that may be written to and shares what is not; None without one."""
        try:
            with open(self._path(""), "rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):
            return None

    def _broken(self, image: mmap.mmap, changed: int) -> str:
        """The reason for which an image is not taken; "" for none."""
        at = len(image) - _SEAL.size
        if at < 0:
            return f"it ends after {len(image)} bytes"
        seal = image[at:]
        magic, size, digest, form = _SEAL.unpack(seal)
        if (magic, size) != (_SEALED, at):
            return "it has no seal"
        if form != _FORMAT:
            return "it is of another format"
        if changed % _SECOND == _token(seal):
            return ""
        found = hashlib.sha1(usedforsecurity=False)
        with memoryview(image) as view:
            for start in range(0, at, _PIECE):
                found.update(view[start : min(start + _PIECE, at)])
        return "" if found.digest() == digest else "its checksum is another one"

    def _touch(self, path: Path, image: mmap.mmap) -> None:
        """Mark the file as used now; the time of its last change fits its seal."""
        now = time.time_ns()
        try:
            os.utime(path, ns=(now, now // _SECOND * _SECOND + _token(image[-_SEAL.size :])))
        except OSError:
            return

    # -- columns -------------------------------------------------------------------------

    def columns(self, kind: str) -> ColumnSet | None:
        """Columns that were derived of the image; None if they are not kept."""
        path = self._path(f"-{kind}")
        try:
            with open(path, "rb") as file:
                found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        try:
            return read_columns(found, self._code())
        except ValueError as error:
            self.remarks.append(f"{path}: {error}: made anew")
            return None

    def keep_columns(self, kind: str, columns: Mapping[str, Column]) -> None:
        """Keep columns.

        Args:
            kind: a word, and perhaps `-` and what tells those of one kind apart.
            columns: the columns by name.
        """
        if not os.path.exists(self._path("")):
            return  # all of an image's files come and go together
        self._written(self._path(f"-{kind}"), pack_columns(columns, self._code()))
        group, dash, _ = kind.partition("-")
        if dash:
            found = self._folder.glob(f"{self._key}-{group}-*{_SUFFIX}")
            _drop(found, _MOST_OF_A_KIND)

    def _code(self) -> bytes:
        if self._stamp is None:
            self._stamp = code_stamp()
        return self._stamp

    # -- files ---------------------------------------------------------------------------

    def _path(self, kind: str) -> Path:
        return self._folder / f"{self._key}{kind}{_SUFFIX}"

    def _written(self, path: Path, pieces: Iterable[bytes | memoryview | mmap.mmap]) -> bool:
        """Writes a file as a whole or not at all; True if it is there."""
        try:
            write_file(path, pieces)
        except OSError as error:
            self.remarks.append(f"{path}: not kept: {error.strerror or error}")
            return False
        return True

    def _make_room(self) -> None:
        """Delete the images that were used longest ago, with all that belongs to them."""
        try:
            files = list(self._folder.glob(f"*{_SUFFIX}"))
            images = {p.name.removesuffix(_SUFFIX): p for p in files if "-" not in p.name}
            for old in _oldest(images.values(), _MOST):
                old.unlink(missing_ok=True)
                del images[old.name.removesuffix(_SUFFIX)]
            for path in files:
                if path.name.partition("-")[0].removesuffix(_SUFFIX) not in images:
                    path.unlink(missing_ok=True)
            for part in self._folder.glob("*.part"):
                if time.time() - part.stat().st_mtime > _LEFT_BEHIND:
                    part.unlink(missing_ok=True)
        except OSError:
            return


def _token(seal: bytes) -> int:
    """Nanoseconds that the time of a sealed file's last change ends with."""
    return int.from_bytes(hashlib.sha1(seal, usedforsecurity=False).digest()[:8]) % _SECOND


def _oldest(paths: Iterable[Path], keep: int) -> list[Path]:
    """All but the ones used last."""
    found = []
    for path in paths:
        try:
            found.append((path.stat().st_atime_ns, path))
        except OSError:
            continue  # another process was quicker
    return [path for _, path in sorted(found)[: max(0, len(found) - keep)]]


def _drop(paths: Iterable[Path], keep: int) -> None:
    try:
        for old in _oldest(paths, keep):
            old.unlink(missing_ok=True)
    except OSError:
        return


class ImageCache:
    """The images that were opened lately."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder.

        Args:
            folder: where; None = that of $KPROBE_TUI_KERNEL_CACHE, or in the user's cache.
        """
        self._folder = cache_folder() if folder is None else folder

    def entry(self, packed: Buffer, identity: str) -> KeptKernel:
        """The files that are kept of the image in a file.

        Args:
            packed: the file's contents.
            identity: of the file on disk, which changes whenever it does; it stands for the
                contents of very large ones.
        """
        digest = hashlib.sha256(b"kernel%d" % _FORMAT)
        if len(packed) <= _WHOLE_MAX:
            digest.update(packed)
        else:
            digest.update(identity.encode("utf-8", "surrogateescape"))
        return KeptKernel(self._folder, digest.hexdigest()[:40])
