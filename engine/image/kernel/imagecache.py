"""Unpacked kernel images kept on disk, so that a kernel opens at once the second time.

An entry is named after the contents of the file it came from: another kernel under the same name
is another entry. Nothing depends on the cache; where it cannot be written, images are unpacked
again.
"""

import hashlib
import mmap
import os
import tempfile
from pathlib import Path
from typing import Final

_FORMAT: Final = 1
"""Counted up when what is made of an image changes."""
_MOST: Final = 8
_SUFFIX: Final = ".kernel"
_ENVIRONMENT: Final = "KPROBE_TUI_KERNEL_CACHE"


def _folder() -> Path:
    given = os.environ.get(_ENVIRONMENT)
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("kprobe-tui")) / "kernels"


class ImageCache:
    """The images that were unpacked lately."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder.

        Args:
            folder: where; None = that of $KPROBE_TUI_KERNEL_CACHE, or in the user's cache.
        """
        self._folder = _folder() if folder is None else folder

    def _path(self, packed: bytes) -> Path:
        digest = hashlib.blake2b(packed, digest_size=20, person=b"kernel%d" % _FORMAT)
        return self._folder / (digest.hexdigest() + _SUFFIX)

    def get(self, packed: bytes) -> mmap.mmap | None:
        """The image made of a file's contents; None if it is not kept."""
        path = self._path(packed)
        try:
            with open(path, "rb") as file:
                found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            os.utime(path)
        except (OSError, ValueError):
            return None
        return found

    def put(self, packed: bytes, made: bytes) -> None:
        """Keep an image; the ones that were used longest ago make room."""
        path = self._path(packed)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(suffix=".part", dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(made)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                return
            kept = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda p: p.stat().st_mtime)
            for old in kept[:-_MOST]:
                old.unlink()
        except OSError:
            return
