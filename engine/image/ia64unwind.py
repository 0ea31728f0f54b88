"""The unwind tables of IA-64: .IA_64.unwind, .IA_64.unwind_info and their descriptors.

Source: Intel Itanium Software Conventions and Runtime Architecture Guide, chapter 11 and
appendix B. Offsets from psp and sp stay in words of 4 bytes as encoded: psp + 16 - 4n, sp + 4n.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from engine.errors import ImageError
from engine.image.elf import ElfImage
from engine.image.headers import PF_X

PT_IA_64_UNWIND: Final = 0x70000001
_ENTRY: Final = 24
_LONGEST: Final = 1 << 24
"""Bytes of descriptors that are believed."""

SPECIAL: Final = (
    *("preds", "psp", "priunat", "rp", "bsp", "bspstore", "rnat", "unat", "fpsr", "pfs", "lc"),
)
"""Registers with a number of their own in X descriptors."""
_P3: Final = (
    *("psp", "rp", "pfs", "preds", "unat", "lc", "rp_br", "rnat", "bsp", "bspstore", "fpsr"),
    "priunat",
)
_P7: Final = ("rp", "pfs", "preds", "lc", "unat", "fpsr")
_P8_SP: Final = ("rp", "pfs", "preds", "lc", "unat", "fpsr")
_P8: Final = ("bsp", "bspstore", "rnat")


class UnwindEntry(Struct, frozen=True):
    """A line of the table, in link addresses: a stretch of code and its information block."""

    start: int
    end: int
    info: int


class Descriptor(Struct, frozen=True):
    """One descriptor.

    Attributes:
        form: its format in the conventions ("R1", "P7").
        kind: "prologue", "body", "prologue_gr", "when", "gr", "br", "psprel", "sprel",
            "mem_stack_f", "mem_stack_v", "spill_base", "spill_mask", "br_mem", "br_gr",
            "gr_mem", "fr_mem", "frgr_mem", "gr_gr", "unwabi", "label_state", "copy_state",
            "epilogue", "spill_reg", "spill_psprel", "spill_sprel", "restore".
        register: what is saved: "rp", "psp", "r4", "f16", "b1", ...
        t: slot in its region; for "epilogue" slots before the region's end.
        value: slots of a region, bytes of a frame, an offset in words, a general or branch
            register's number, a label, an ABI, prologues that an epilogue leaves.
        mask: which registers; for "frgr_mem" those of f2 and up stand above four bits for r4
            to r7; the context of an ABI.
        target: the register that keeps the value, for "spill_reg"; "invalid" in a reserved
            encoding.
        qp: predicate under which an X3 or X4 holds, None for others.
        data: two bits a slot of "spill_mask".
    """

    form: str
    kind: str
    register: str = ""
    t: int = 0
    value: int = 0
    mask: int = 0
    target: str = ""
    qp: int | None = None
    data: bytes = b""


class UnwindInfo(Struct, frozen=True):
    """An information block.

    Attributes:
        version: 1.
        flags: 1 = has an exception handler, 2 = has a termination handler.
        descriptors: in order.
    """

    version: int
    flags: int
    descriptors: tuple[Descriptor, ...]


class _RecordReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise ImageError("unwind descriptors end in the middle of one")
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ImageError("an unwind descriptor has a number of more than 64 bits")

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise ImageError("unwind descriptors end in the middle of one")
        self.at += count
        return self.data[self.at - count : self.at]


def descriptors(data: bytes) -> Iterator[Descriptor]:
    """The descriptors of an information block, without its header.

    Raises:
        ImageError: the bytes are damaged.
    """
    reader = _RecordReader(data)
    body = False
    length = 0
    while reader.at < len(data):
        first = reader.byte()
        if first < 0x80:
            found = _region(first, reader)
            body, length = found.kind == "body", found.value
        elif body and first < 0xF9:
            found = _body(first, reader)
        else:
            found = _prologue(first, reader, length)
        yield found


def _unknown(first: int) -> ImageError:
    return ImageError(f"no unwind descriptor begins with {first:#04x} here")


def _region(first: int, reader: _RecordReader) -> Descriptor:
    kind = "body" if first & 0x20 else "prologue"
    if first < 0x40:
        return Descriptor("R1", kind, value=first & 31)
    if first < 0x48:
        second = reader.byte()
        mask = (first & 7) << 1 | second >> 7
        return Descriptor("R2", "prologue_gr", f"r{second & 127}", 0, reader.number(), mask)
    if 0x60 <= first < 0x64:
        kind = ("prologue", "body")[first & 1]
        return Descriptor("R3", kind, value=reader.number())
    raise _unknown(first)


def _body(first: int, reader: _RecordReader) -> Descriptor:
    if first < 0xC0:
        return Descriptor("B1", _LABELS[first >> 5 & 1], value=first & 31)
    if first < 0xE0:
        return Descriptor("B2", "epilogue", t=reader.number(), value=first & 31)
    if first == 0xE0:
        t = reader.number()
        return Descriptor("B3", "epilogue", t=t, value=reader.number())
    if first in (0xF0, 0xF8):
        return Descriptor("B4", _LABELS[first >> 3 & 1], value=reader.number())
    raise _unknown(first)


_LABELS: Final = ("label_state", "copy_state")


def _prologue(first: int, reader: _RecordReader, length: int) -> Descriptor:
    if first < 0xA0:
        return Descriptor("P1", "br_mem", mask=first & 31)
    if first < 0xB8:
        second = reader.byte()
        number = second & 127
        if first < 0xB0:
            return Descriptor("P2", "br_gr", value=number, mask=(first & 15) << 1 | second >> 7)
        which = (first & 7) << 1 | second >> 7
        if which >= len(_P3):
            raise _unknown(first)
        if _P3[which] == "rp_br":
            return Descriptor("P3", "br", "rp", value=number)
        return Descriptor("P3", "gr", _P3[which], value=number)
    if first == 0xB8:
        if length > _LONGEST:
            raise ImageError(f"an unwind region of {length} slots")
        return Descriptor(
            "P4", "spill_mask", value=length, data=reader.take((2 * length + 7) // 8)
        )
    if first == 0xB9:
        three = int.from_bytes(reader.take(3), "big")
        return Descriptor("P5", "frgr_mem", mask=(three & 0xFFFFF) << 4 | three >> 20)
    if 0xC0 <= first < 0xE0:
        return Descriptor("P6", "gr_mem" if first & 16 else "fr_mem", mask=first & 15)
    if 0xE0 <= first < 0xF0:
        return _p7(first & 15, reader)
    if first == 0xF0:
        return _p8(reader)
    if first == 0xF1:
        mask = reader.byte() & 15
        return Descriptor("P9", "gr_gr", value=reader.byte() & 127, mask=mask)
    if first == 0xFF:
        abi = reader.byte()
        return Descriptor("P10", "unwabi", value=abi, mask=reader.byte())
    if 0xF9 <= first <= 0xFC:
        return _extended(first, reader)
    raise _unknown(first)


def _p7(which: int, reader: _RecordReader) -> Descriptor:
    number = reader.number()
    if which == 0:
        return Descriptor("P7", "mem_stack_f", "psp", number, 16 * reader.number())
    if which == 1:
        return Descriptor("P7", "mem_stack_v", "psp", number)
    if which == 2:
        return Descriptor("P7", "spill_base", value=number)
    if which == 3:
        return Descriptor("P7", "sprel", "psp", value=number)
    register = _P7[(which - 4) // 2]
    if which & 1:
        return Descriptor("P7", "psprel", register, value=number)
    return Descriptor("P7", "when", register, number)


def _p8(reader: _RecordReader) -> Descriptor:
    which = reader.byte()
    number = reader.number()
    if 1 <= which <= 6:
        return Descriptor("P8", "sprel", _P8_SP[which - 1], value=number)
    if 7 <= which <= 15:
        kind = ("when", "psprel", "sprel")[(which - 7) % 3]
        register = _P8[(which - 7) // 3]
    elif 16 <= which <= 19:
        # The primary unat collects NaT bits in a general register first, then in memory.
        kind = ("when", "psprel", "sprel", "when")[which - 16]
        register = ("priunat_gr", "priunat", "priunat", "priunat_mem")[which - 16]
    else:
        raise _unknown(0xF0)
    if kind == "when":
        return Descriptor("P8", kind, register, number)
    return Descriptor("P8", kind, register, value=number)


def _extended(first: int, reader: _RecordReader) -> Descriptor:
    form = f"X{first - 0xF8}"
    qp = reader.byte() if first >= 0xFB else None
    byte = reader.byte()
    register = _numbered(byte >> 5 & 3, byte & 31)
    if form in ("X1", "X3"):
        relative = (qp if qp is not None else byte) & 0x80
        kind = "spill_sprel" if relative else "spill_psprel"
        t = reader.number()
        qp = None if qp is None else qp & 63
        return Descriptor(form, kind, register, t, reader.number(), qp=qp)
    second = reader.byte()
    t = reader.number()
    qp = None if qp is None else qp & 63
    if not byte & 0x80 and second == 0:
        return Descriptor(form, "restore", register, t, qp=qp)
    bank = ("r", "f", "b", "")[byte >> 6 & 2 | second >> 7]
    target = f"{bank}{second & 127}" if bank else "invalid"
    return Descriptor(form, "spill_reg", register, t, target=target, qp=qp)


def _numbered(bank: int, number: int) -> str:
    if bank < 3:
        return f"{'rfb'[bank]}{number}"
    if number >= len(SPECIAL):
        raise ImageError(f"an unwind descriptor names the unknown register {number}")
    return SPECIAL[number]


def parse_info(data: bytes) -> UnwindInfo:
    """Read an information block, header first.

    Raises:
        ImageError: it is damaged.
    """
    if len(data) < 8:
        raise ImageError("an unwind information block without a header")
    head = int.from_bytes(data[:8], "little")
    size = 8 * (head & 0xFFFFFFFF)
    if size > len(data) - 8:
        raise ImageError(f"an unwind information block of {size} bytes ends early")
    return UnwindInfo(head >> 48, head >> 32 & 0xFFFF, tuple(descriptors(data[8 : 8 + size])))


_ENTRIES: Final[WeakKeyDictionary[ElfImage, tuple[UnwindEntry, ...]]] = WeakKeyDictionary()


def unwind_entries(image: ElfImage) -> tuple[UnwindEntry, ...]:
    """The table of an image in order; empty where it has none.

    Addresses in the table count from the segment with the code.
    """
    found = _ENTRIES.get(image)
    if found is None:
        found = _ENTRIES[image] = tuple(_entries(image))
    return found


def _entries(image: ElfImage) -> Iterator[UnwindEntry]:
    base = next((s.vaddr for s in image.load_segments if s.flags & PF_X), None)
    if base is None:
        return
    for segment in image.segments:
        if segment.type != PT_IA_64_UNWIND:
            continue
        data = image.read_vaddr(segment.vaddr, min(segment.memsz, _LONGEST))
        words = [
            int.from_bytes(data[at : at + 8], "little")
            for at in range(0, len(data) // _ENTRY * _ENTRY, 8)
        ]
        for at in range(0, len(words), 3):
            start, end, info = (base + word & (1 << 64) - 1 for word in words[at : at + 3])
            yield UnwindEntry(start, end, info)


def find_entry(image: ElfImage, address: int) -> UnwindEntry | None:
    """The entry around a link address."""
    entries = unwind_entries(image)
    at = bisect_right(entries, address, key=lambda entry: entry.start) - 1
    return entries[at] if at >= 0 and address < entries[at].end else None


@lru_cache(maxsize=4096)
def _parsed(data: bytes) -> UnwindInfo:
    return parse_info(data)


def info_of(image: ElfImage, entry: UnwindEntry) -> UnwindInfo:
    """The information block of an entry.

    Raises:
        ImageError: it is damaged or not there.
    """
    head = image.read_vaddr(entry.info, 8)
    size = 8 * int.from_bytes(head[:4], "little")
    if size > _LONGEST:
        raise ImageError(f"{image.name}: unwind information of {size} bytes at {entry.info:#x}")
    try:
        return _parsed(head + image.read_vaddr(entry.info + 8, size))
    except ImageError as error:
        raise ImageError(f"{image.name}: {entry.info:#x}: {error}") from None
