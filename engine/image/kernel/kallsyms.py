"""The names of a kernel image, from the table that the kernel itself reads: kallsyms.

A stripped image has no symbol table, yet its kernel can name each of its functions. The table
lies somewhere in the read-only data, without a header; it is found by what must hold in it:
tokens "0" to "9" stand for themselves, the index of the tokens has their offsets, every 256th
name lies where a marker says, and addresses rise. Each step is checked against the next one,
so that a table is either found as it is or not at all.

Sources: scripts/kallsyms.c and kernel/kallsyms.c of Linux 4.6 to 6.12, and Debian's 7.2. The
order of the parts has changed (6.2: `seqs_of_names`, taken over by stable kernels; 6.4: addresses
last), and so have the width of the counts (5.0: 32 bits), and what addresses count from (7.x: each
from its own place in the table).
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter, le
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.headers import Buffer

_DIGITS: Final = b"".join(b"%d\0" % digit for digit in range(10))
_TOKENS: Final = 256
_INDEX_SLACK: Final = 64  # bytes of padding between the tokens and their index
_STEP_MIN, _STEP_MAX = 512, 131072  # bytes that 256 names take
_SEQS_NEAR, _SEQS_MAX = 1 << 20, 16 << 20
"""Bytes in front of the tokens where the markers are looked for: first here, then there."""
_TOKEN_MAX: Final = 1024
_NEGATIVE: Final = 1 << 31


class NamelessError(ImageError):
    """An image without a table of names that can be read."""


class KernelSymbols(Struct, frozen=True, eq=False):
    """The names of a kernel, in the order of /proc/kallsyms.

    Attributes:
        addresses: link addresses; those of per-CPU variables are small offsets.
        types: letters as nm(1) has them, a byte each.
        names: as the kernel prints them.
    """

    addresses: "array[int]"
    types: bytes
    names: list[str]

    def lines(self) -> Iterator[str]:
        """The lines of /proc/kallsyms, as root reads them."""
        for address, letter, name in zip(self.addresses, self.types, self.names, strict=True):
            yield f"{address:016x} {letter:c} {name}"


class _KallsymsParts(Struct, frozen=True):
    """Positions of the table's parts, in bytes from the image's start.

    Attributes:
        count: symbols.
        count_at: of the field that says so.
        names: (position, bytes) of each symbol's tokens.
        markers_end: behind the last marker.
        table: of the tokens.
        index_end: behind the index of the tokens.
        tokens: the tokens.
    """

    count: int
    count_at: int
    names: list[bytes]
    index_end: int
    tokens: list[bytes]


def read_kallsyms(
    data: Buffer,
    name: str,
    order: str = "<",
    base_of: Callable[[int], int | None] | None = None,
    inside: Callable[[int], bool] | None = None,
    address_of: Callable[[int], int | None] | None = None,
) -> KernelSymbols:
    """Find and decode the table.

    Args:
        data: the unpacked image.
        name: of the image, for messages.
        order: byte order, "<" or ">".
        base_of: gives the relocated value of the 64-bit word at a position, where the image's
            file does not have it (a PIE).
        inside: tells whether the image has an address.
        address_of: gives the address of a position.

    Raises:
        NamelessError: there is none, or it is damaged.
    """
    reason = "no token table (a kernel built without CONFIG_KALLSYMS?)"
    for tokens, table, index_end in _token_tables(data, order):
        parts = _parts(data, order, tokens, table, index_end)
        if isinstance(parts, str):
            reason = parts
            continue
        addresses = _addresses(data, order, parts, base_of, inside, address_of)
        if addresses is None:
            reason = f"{parts.count} names, and no table of addresses that fits them"
            continue
        return _decoded(parts, addresses)
    raise NamelessError(f"{name}: kallsyms: {reason}")


# -- tokens ----------------------------------------------------------------------------


def _token_tables(data: Buffer, order: str) -> Iterator[tuple[list[bytes], int, int]]:
    """Every (tokens, position, end of their index) that proves to be one."""
    form = struct.Struct(f"{order}{_TOKENS}H")
    at = data.find(_DIGITS)
    while at >= 0:
        found = _tokens_around(data, at, form)
        if found is not None:
            yield found
        at = data.find(_DIGITS, at + 1)


def _tokens_around(
    data: Buffer, digits: int, form: struct.Struct
) -> tuple[list[bytes], int, int] | None:
    starts = [0] * _TOKENS
    at = digits
    for number in range(ord("0") - 1, 0, -1):
        at = data.rfind(b"\0", max(0, at - _TOKEN_MAX), at - 1) + 1
        if at <= 0:
            return None
        starts[number] = at
    at = digits
    for number in range(ord("0"), _TOKENS):
        starts[number] = at
        at = data.find(b"\0", at, at + _TOKEN_MAX) + 1
        if at <= 0:
            return None
    first = starts[1]
    relative = [start - first for start in starts[1:]]
    for index_at in range(at, min(at + _INDEX_SLACK, len(data) - form.size)):
        index = form.unpack_from(data, index_at)
        # Token 0 has no end in front of it: the index says where it begins.
        if index[0] == 0 and [entry - index[1] for entry in index[1:]] == relative:
            table = first - index[1]
            starts[0] = table
            ends = [*(start - 1 for start in starts[1:]), at - 1]
            tokens = [data[a:b] for a, b in zip(starts, ends, strict=True)]
            return tokens, table, index_at + form.size
    return None


# -- names -----------------------------------------------------------------------------


def _parts(
    data: Buffer, order: str, tokens: list[bytes], table: int, index_end: int
) -> _KallsymsParts | str:
    """The names that belong to tokens; the reason where there are none."""
    reason = "a token table without markers"
    for width in (4, 8):
        for start, markers in _marker_tables(data, order, table, width):
            found = _names(data, order, start, markers)
            if found is None:
                reason = "markers without names that fit them: damaged, or cut short?"
                continue
            count, count_at, names = found
            return _KallsymsParts(count, count_at, names, index_end, tokens)
    return reason


def _marker_tables(
    data: Buffer, order: str, table: int, width: int
) -> Iterator[tuple[int, list[int]]]:
    """Every (position, offsets) in front of the tokens that may be the markers."""
    tried = table
    for reach in (_SEQS_NEAR, _SEQS_MAX):
        start = max(0, table - reach) // 8 * 8
        yield from _markers_between(data, order, start, tried // 8 * 8, table, width)
        tried = start


def _markers_between(
    data: Buffer, order: str, start: int, last: int, table: int, width: int
) -> Iterator[tuple[int, list[int]]]:
    """The same for those that begin in [start, last), the last one first."""
    words = array("I" if width == 4 else "Q")
    words.frombytes(data[start : start + (table - start) // width * width])
    if order == ">":
        words.byteswap()
    heads = []
    number = (last - start) // width
    # A zero is searched for among bytes: looking at millions of numbers takes long.
    raw, zero = words.tobytes(), bytes(width)
    at = raw.find(zero)
    while 0 <= at < number * width:
        head = at // width
        if at % width:
            at = raw.find(zero, at + 1)
            continue
        while head < number and not words[head]:
            head += 1
        if head < len(words) and _STEP_MIN <= words[head] <= _STEP_MAX:
            heads.append(head - 1)
        at = raw.find(zero, head * width)
    for head in reversed(heads):
        end = head + 1
        while end < len(words) and _STEP_MIN <= words[end] - words[end - 1] <= _STEP_MAX:
            end += 1
        if end - head > 2:
            yield start + head * width, list(words[head:end])


def _names(
    data: Buffer, order: str, markers_at: int, markers: list[int]
) -> tuple[int, int, list[bytes]] | None:
    """The (count, position of the count, names) in front of markers."""
    # What follows the markers may look like one or two more.
    for used in range(len(markers), max(1, len(markers) - 3), -1):
        last = markers[used - 1]
        low, high = 256 * (used - 1), 256 * used
        first = (markers_at - last) // 4 * 4
        lowest = max(0, markers_at - last - _STEP_MAX - 16)
        for at, count_at, count in _counts(data, order, lowest, first, low, high):
            names = _walk(data, at, count, markers[:used], markers_at)
            if names is not None:
                return count, count_at, names
    return None


def _counts(
    data: Buffer, order: str, lowest: int, first: int, low: int, high: int
) -> list[tuple[int, int, int]]:
    """Every (position of names, position of the count, count) with a count in (low, high].

    Args:
        data: the unpacked image.
        order: byte order.
        lowest: names begin behind it.
        first: names begin here or in front, on a word; the last ones come first.
        low: counts are greater.
        high: the greatest count.
    """
    begin = max(0, lowest - 8) // 4 * 4
    if first <= begin:
        return []
    words = array("I")
    words.frombytes(data[begin:first])
    if order == ">":
        words.byteswap()
    found = []
    # Behind the count are 4 bytes of padding, but none since 7.x. It had 64 bits before 5.0, of
    # which big-endian ones have it in the second half.
    for number in [number for number, word in enumerate(words) if low < word <= high]:
        for distance in (8, 4):
            at = begin + 4 * number + distance
            if lowest < at <= first:
                found.append((at, at - 8, words[number]))
    found.sort(key=itemgetter(0), reverse=True)
    return found


def _walk(
    data: Buffer, start: int, count: int, markers: list[int], end: int
) -> list[bytes] | None:
    """The tokens of each name from a position on, if every marker points to one."""
    names: list[bytes] = []
    block = data[start:end]
    at, limit = 0, len(block)
    try:
        for number in range(count):
            if not number & 255 and at != markers[number >> 8]:
                return None
            size = block[at]
            at += 1
            if size & 0x80:  # since Linux 6.1
                size = size & 0x7F | block[at] << 7
                at += 1
            names.append(block[at : at + size])
            at += size
            if at > limit or not size:
                return None
    except IndexError:
        return None
    return names if limit - at <= 16 else None


def _decoded(parts: _KallsymsParts, addresses: "array[int]") -> KernelSymbols:
    tokens = [token.decode("utf-8", "replace") for token in parts.tokens]
    texts = ["".join([tokens[byte] for byte in name]) for name in parts.names]
    types = "".join([text[0] for text in texts]).encode("ascii", "replace")
    return KernelSymbols(addresses, types, [text[1:] for text in texts])


# -- addresses -------------------------------------------------------------------------


def _addresses(
    data: Buffer,
    order: str,
    parts: _KallsymsParts,
    base_of: Callable[[int], int | None] | None,
    inside: Callable[[int], bool] | None,
    address_of: Callable[[int], int | None] | None,
) -> "array[int] | None":
    """Addresses of all names, from wherever they fit."""
    count = parts.count
    padded = (4 * count + 7) & ~7
    # Until 6.3 they stand in front of the names, later behind the tokens' index.
    for offsets_at, base_at in (
        (parts.count_at - 8 - padded, parts.count_at - 8),
        ((parts.index_end + 7) & ~7, ((parts.index_end + 7) & ~7) + padded),
    ):
        if offsets_at < 0 or base_at + 8 > len(data):
            continue
        (base,) = struct.unpack_from(f"{order}Q", data, base_at)
        moved = base_of(base_at) if base_of is not None else None
        found = _relative(data, order, offsets_at, count, moved or base)
        if _plausible(found, inside):
            return found
    at = (parts.index_end + 3) & ~3
    first = address_of(at) if address_of is not None and at + 4 * count <= len(data) else None
    if first is not None:
        distances = struct.unpack_from(f"{order}{count}i", data, at)
        mask = (1 << 64) - 1
        found = array("Q", [first + 4 * i + d & mask for i, d in enumerate(distances)])
        if _plausible(found, inside):
            return found
    at = parts.count_at - 8 * count  # CONFIG_KALLSYMS_BASE_RELATIVE is off
    if at >= 0:
        found = array("Q", struct.unpack_from(f"{order}{count}Q", data, at))
        if _plausible(found, inside):
            return found
    return None


def _relative(data: Buffer, order: str, at: int, count: int, base: int) -> "array[int]":
    offsets = struct.unpack_from(f"{order}{count}I", data, at)
    mask = (1 << 64) - 1
    if 2 * sum(map(_NEGATIVE.__le__, offsets)) > count:
        # CONFIG_KALLSYMS_ABSOLUTE_PERCPU: a positive number is the value itself.
        last = base - 1 + (1 << 32)
        return array("Q", [o if o < _NEGATIVE else (last - o) & mask for o in offsets])
    if base + (1 << 32) <= mask:
        return array("Q", [base + o for o in offsets])
    return array("Q", [(base + o) & mask for o in offsets])


def _plausible(addresses: "array[int]", inside: Callable[[int], bool] | None) -> bool:
    """True if addresses rise, as the kernel's search needs, and lie in the image."""
    if not all(map(le, addresses, islice(addresses, 1, None))):
        return False
    if inside is None:
        return addresses[-1] > addresses[0]
    samples = addresses[:: max(1, len(addresses) // 64)]
    return 2 * sum(map(inside, samples)) > len(samples)
