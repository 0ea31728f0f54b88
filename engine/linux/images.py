"""ELF files that the guest runs or maps: each is read once, whatever processes it is in.

What is made of a file, its symbols and source lines, is there once under all of its names.

A browser beside the guest, in another thread, may use the same ones.
"""

import os
import threading
from collections import OrderedDict
from typing import Final

from engine.image import ElfImage
from engine.image.damage import Damage
from engine.image.elf import large_content
from engine.image.headers import Buffer
from engine.linux.fs.data import MmapSource

_KEPT: Final = 64

_Key = tuple[str, int, int, int, int, int]
"""Host path, then what tells that the host's file is still the same."""


class ProgramImages:
    """The ELF files of one guest that were read last.

    Attributes:
        damage: where to tell what cannot be read of them.
    """

    def __init__(self) -> None:
        """None is read yet."""
        self.damage = Damage()
        self._kept: OrderedDict[_Key, dict[str, ElfImage]] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, source: MmapSource, name: str, root: str) -> ElfImage:
        """The image of a file's content.

        Args:
            source: the content; one that is the guest's own alone is read each time.
            name: guest path.
            root: the host's directory that is "/" to it.

        Raises:
            ImageError: it is no ELF file that can be loaded.
        """
        key = _key(source)
        if key is None:
            return self._read(source, name, root)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = {name: self._read(source, name, root)}
            elif name not in found:
                found[name] = next(iter(found.values())).named(name)
            self._kept.move_to_end(key)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return found[name]

    def _read(self, source: MmapSource, name: str, root: str) -> ElfImage:
        data: Buffer = b""
        if source.can_map and source.host_fd is not None:
            data = large_content(source.host_fd, source.size)
        data = data or source.read(0, source.size)
        return ElfImage.from_bytes(data, name, source.host_path, root=root, damage=self.damage)


def _key(source: MmapSource) -> _Key | None:
    if source.host_fd is None or not source.original():
        return None
    now = os.fstat(source.host_fd)
    times = now.st_mtime_ns, now.st_ctime_ns
    return os.fspath(source.host_path or ""), now.st_dev, now.st_ino, now.st_size, *times
