"""Contents of pages, as they are kept for moments of the past: packed, each once.

A page of a program that runs holds little that is new from one moment to the next: so a content is
kept as what is different from an older one of the same page, its base, by LZ4 with that for a
dictionary. Where that saves too little it is packed by itself, and is a base then; words of which
only a few bytes are used pack better with the bytes of one place side by side. Packing costs
about 10 us a page, unpacking 3 to 6.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from engine.cpu.ram import PAGE

_ENTRY: Final = 150
"""Bytes that a content takes beside its bytes."""
_ZEROS, _WHOLE, _RAW, _PACKED, _PLANES, _DELTA = range(6)
"""Ways of keeping bytes: not at all, as they are for a while, as they are because they don't pack,
packed, packed by places, packed with the base."""
_GAIN: Final = 2
"""A content with a base takes so many times less than the base, at least."""
_POOR: Final = PAGE * 3 // 8
"""Packed bytes from which on another way is looked for."""
_WORTH: Final = PAGE * 15 // 16
"""Packed bytes from which on a page is kept as it is."""
_TRUST: Final = 3
"""So many contents of a page are packed by themselves before a base is tried again in vain."""
_WORD: Final = 8
_PLANE: Final = PAGE // _WORD

Pack = Callable[..., bytes]


class PageContent(Struct, eq=False, gc=False):
    """The content of a page at one or more moments.

    Attributes:
        data: its bytes, packed in the way that `way` says.
        way: one of those of this module.
        base: the content that it is told by; None for none.
        users: moments and contents that need it.
        trust: contents of the page that are packed without a base from here on.
    """

    data: bytes
    way: int
    base: "PageContent | None" = None
    users: int = 1
    trust: int = 0

    @property
    def zeros(self) -> bool:
        """True if it is zeros only."""
        return self.way == _ZEROS


class PageStore:
    """Keeps contents of pages.

    Attributes:
        size: bytes that they take, about.
    """

    def __init__(self) -> None:
        """There are none."""
        import lz4.block  # few runs are looked back at

        self.size = 0
        self._pack: Pack = lz4.block.compress
        self._unpack: Pack = lz4.block.decompress

    def keep(self, data: bytes, before: PageContent | None) -> PageContent:
        """Keep bytes.

        Args:
            data: of the page; b"" for zeros.
            before: a content of the page at a moment close by, if there is one.

        Returns:
            The content; `before` itself if it holds the same.
        """
        if before is None:
            return self._kept(self._alone(data, None))
        if not data or before.way == _ZEROS:
            same = not data and before.way == _ZEROS
            return before if same else self._kept(self._alone(data, None))
        if before.way == _WHOLE:
            return before if before.data == data else self._kept(self._alone(data, None))
        if before.trust:
            made = self._alone(data, before)
            if made.way == before.way and made.data == before.data:
                return before
            made.trust = before.trust - 1
            return self._kept(made)
        base = before.base or before
        known = self.bytes_of(base)
        if before is base and known == data:
            return before
        packed = self._pack(data, store_size=False, dict=known)
        if len(packed) * _GAIN >= len(base.data):
            made = self._alone(data, base)
            made.trust = _TRUST
            return self._kept(made)
        if before.base is base and before.data == packed:
            return before
        base.users += 1
        return self._kept(PageContent(packed, _DELTA, base))

    def keep_whole(self, data: bytes) -> PageContent:
        """Keep bytes for a while, as they are; b"" for zeros."""
        return self._kept(PageContent(data, _WHOLE if data else _ZEROS))

    def packed(self, content: PageContent) -> None:
        """Pack a content that was kept as it is."""
        if content.way == _WHOLE:
            made = self._alone(content.data, None)
            self.size -= len(content.data) - len(made.data)
            content.data, content.way = made.data, made.way

    def bytes_of(self, content: PageContent) -> bytes:
        """The bytes; b"" for zeros."""
        way, data = content.way, content.data
        if way == _DELTA:
            assert content.base is not None, "it has one"
            unpacked: bytes = self._unpack(data, PAGE, dict=self.bytes_of(content.base))
            return unpacked
        if way in (_ZEROS, _WHOLE, _RAW):
            return data
        unpacked = self._unpack(data, PAGE)
        return unpacked if way == _PACKED else _words(unpacked)

    def give_up(self, content: PageContent) -> None:
        """A moment does not need a content any more."""
        content.users -= 1
        if not content.users:
            self.size -= len(content.data) + _ENTRY
            if content.base is not None:
                self.give_up(content.base)

    def _kept(self, content: PageContent) -> PageContent:
        self.size += len(content.data) + _ENTRY
        return content

    def _alone(self, data: bytes, like: PageContent | None) -> PageContent:
        """A content without a base; the way of another one is tried first."""
        if not data:
            return PageContent(data, _ZEROS)
        pack: Any = self._pack
        packed = b""
        if like is None or like.way != _PLANES:
            packed = pack(data, store_size=False)
            if len(packed) < _POOR:
                return PageContent(packed, _PACKED)
        planes = pack(_planes(data), store_size=False)
        if not packed or len(planes) < len(packed) * 7 // 8:
            packed, way = planes, _PLANES
        else:
            way = _PACKED
        return PageContent(packed, way) if len(packed) < _WORTH else PageContent(data, _RAW)


def _planes(data: bytes) -> bytes:
    """The first bytes of all words, then the second ones, and so on."""
    return b"".join([data[place::_WORD] for place in range(_WORD)])


def _words(planes: bytes) -> bytes:
    """The other way round."""
    data = bytearray(PAGE)
    for place in range(_WORD):
        data[place::_WORD] = planes[place * _PLANE : (place + 1) * _PLANE]
    return bytes(data)
