"""Files of the host's overlay mounts: which file of which layer is behind them.

A file of an overlay mount has a device and mostly an inode number of its own, but what is mapped
is the file of a layer: Linux finds uprobes by that one (ovl_mmap in fs/overlayfs/file.c,
d_real_inode in kernel/trace/trace_uprobe.c), whichever of the paths was named.
"""

import re
import stat

from engine.linux.fs.attributes import InodeNumber, LowerRef
from engine.linux.fs.host import HostAnswers

_ESCAPED = re.compile(rb"\\([0-7]{3})")
_LAYER = re.compile(rb"(?:^|,)(upperdir|lowerdir\+?)=((?:\\.|[^,\\])*)")


def _plain(text: bytes) -> bytes:
    """A field of /proc/self/mountinfo without its octal escapes."""
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 8) & 0xFF,)), text)


def layers_of(options: bytes) -> tuple[bytes, ...]:
    """Directories of an overlay mount, the topmost first.

    Args:
        options: those of the file system, as the last field of a line of mountinfo has them.
    """
    upper, lower = [], []
    for name, value in _LAYER.findall(_plain(options)):
        if name == b"upperdir":
            upper.append(value)
        else:
            lower.extend(re.split(rb"(?<!\\)::?", value))
    return tuple(re.sub(rb"\\(.)", rb"\1", path) for path in (*upper, *lower))


class OverlayLayers:
    """Finds the files of layers behind those of overlay mounts."""

    def __init__(self, host: HostAnswers) -> None:
        """Look at nothing yet.

        Args:
            host: answers what the host is asked.
        """
        self._host = host
        self._mounts: list[tuple[bytes, bytes, tuple[bytes, ...]]] | None = None

    def _overlays(self) -> list[tuple[bytes, bytes, tuple[bytes, ...]]]:
        """(place, directory of the mount that is shown there, layers), innermost places first."""
        if self._mounts is None:
            found = []
            for line in self._host.overlays().splitlines():
                head, _, tail = line.partition(b" - ")
                fields, options = head.split(), tail.split()
                if len(fields) > 4 and len(options) > 2:
                    shown, place = _plain(fields[3]), _plain(fields[4])
                    found.append((place.rstrip(b"/"), shown.rstrip(b"/"), layers_of(options[2])))
            self._mounts = sorted(found, key=lambda each: len(each[0]), reverse=True)
        return self._mounts

    def behind(self, number: InodeNumber, lower: LowerRef | None) -> InodeNumber:
        """Device and inode of the file that is mapped where a file is; the same in most cases.

        Args:
            number: those of the file itself.
            lower: where the host has it; None if it is the guest's alone.
        """
        if lower is None or not self._overlays():
            return number
        path = self._host.real(lower.directory.path).rstrip(b"/") + b"/" + lower.name
        for place, shown, layers in self._overlays():
            if not path.startswith(place + b"/"):
                continue
            inside = shown + path[len(place) :]
            for layer in layers:
                try:
                    found = self._host.attributes(layer.rstrip(b"/") + inside)
                except OSError:
                    continue
                return InodeNumber.of(found) if stat.S_ISREG(found.st_mode) else number
            return number
        return number
