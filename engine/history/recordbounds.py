"""The memory that reading a recording may take, known before anything is decoded.

A recording may come from a stranger. Two things make a small file large: what it unpacks to, and
values that take one byte in msgpack and fifty in Python, as empty lists do. Bytes of programs and
of memory stay as they are; all else is structure, which is measured without making objects of it.
"""

import re
from typing import Final

from engine.errors import KprobeTuiError
from engine.unpacking import ENVIRONMENT, beyond_limit, unpack_limit

SPARE: Final = 96 << 20
"""Bytes that any recording may unpack to: a file of 64 MB that the guest has read, and itself."""
_VALUES: Final = 2 << 20
_VALUES_RATIO: Final = 8
_ENTRY_LEAST: Final = 6
"""Bytes of an entry: an array of four numbers and an array."""
_ENTRY_COST: Final = 8
"""Bytes of values that an entry counts as."""
_ENTRY_PLAIN: Final = 1 << 16
"""Bytes of an entry that nobody measures."""
_ENTRY_MOST: Final = 4 << 20
"""Bytes of structure of an entry: a program with 50,000 mappings that forks."""
_FLAT: Final = re.compile(
    rb"(?:[\x00-\x9f\xc0\xc2\xc3\xe0-\xff]|[\xcc\xd0].|[\xcd\xd1\xdc\xde]..|"
    rb"[\xca\xce\xd2\xdd\xdf].{4}|[\xcb\xcf\xd3].{8})*+",
    re.DOTALL,
)
"""Values of msgpack that are not followed by bytes of any number."""
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the size behind the first byte of `bin` and `str`."""
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSION: Final = range(0xD4, 0xD9)
_SHORT_STRING: Final = range(0xA0, 0xC0)
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}


class RecordingError(KprobeTuiError):
    """A file is no recording, or one that cannot be used."""


def structure(raw: bytes | memoryview, most: int) -> int:
    """Bytes of msgpack that are not contents of `bin` and `str`; measured up to `most` bytes.

    What comes behind something that is not msgpack is not measured: nobody decodes it either.
    """
    found = at = 0
    while at < len(raw) and found <= most:
        flat = _FLAT.match(raw, at)
        assert flat is not None, "it may be empty"
        found += flat.end() - at + 1
        at = flat.end()
        if at >= len(raw):
            break
        head = raw[at]
        if head in _SHORT_STRING:
            at += 1 + (head & 31)
        elif head in _SIZED:
            behind = at + 1 + _SIZED[head]
            at = behind + int.from_bytes(raw[at + 1 : behind], "big")
        elif head in _FIXED_EXTENSION:
            at += 2 + (1 << (head - _FIXED_EXTENSION.start))
        elif head in _EXTENSIONS:
            behind = at + 1 + _EXTENSIONS[head]
            at = behind + 1 + int.from_bytes(raw[at + 1 : behind], "big")
        else:
            break
    return found


class RecordingBounds:
    """The memory that reading one recording may still take."""

    def __init__(self, name: str, stored: int) -> None:
        """Begin with all of it.

        Args:
            name: of the file, for messages.
            stored: bytes of the file.

        Raises:
            CommandError: $KPROBE_TUI_UNPACK_MAX is no number of bytes.
        """
        self._name = name
        self._limit = unpack_limit(stored, SPARE)
        self._most = self._left = unpack_limit(stored, _VALUES, ratio=_VALUES_RATIO)

    def total(self, size: int) -> None:
        """The file says that it unpacks to so many bytes.

        Raises:
            RecordingError: that is too much.
        """
        if size > self._limit:
            raise RecordingError(f"{self._name}: {beyond_limit(size, self._limit)}")

    def values(self, raw: bytes | memoryview) -> None:
        """Values are about to be decoded, all at once.

        Raises:
            RecordingError: there are too many of them.
        """
        self._take(structure(raw, self._left))

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise RecordingError(
                f"{self._name}: it holds more than {self._most} bytes of small values, which a "
                f"file of its size hardly does; if you trust it, {ENVIRONMENT}=1G allows more"
            )

    def entries(self, raw: bytes | memoryview) -> None:
        """An array of entries is about to be taken apart.

        Raises:
            ValueError: its size cannot be.
            RecordingError: there are too many of them.
        """
        head = raw[0] if raw else 0
        count = head & 15
        if head in _ARRAYS:
            count = int.from_bytes(raw[1 : 1 + _ARRAYS[head]], "big")
        if count * _ENTRY_LEAST > len(raw):
            raise ValueError(f"{count} entries in {len(raw)} bytes")
        self._take(count * _ENTRY_COST)

    def entry(self, raw: bytes) -> None:
        """An entry, which is decoded when the guest has come to it.

        Raises:
            ValueError: it holds too many values.
        """
        if len(raw) > _ENTRY_PLAIN and structure(raw, _ENTRY_MOST) > _ENTRY_MOST:
            raise ValueError(f"an entry with more than {_ENTRY_MOST} bytes of values")
