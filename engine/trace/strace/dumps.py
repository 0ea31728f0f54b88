"""Bytes that calls move, as strace -e read=SET and -e write=SET dump them."""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from engine.errors import CommandError
from engine.trace.strace.call import TracedCall, signed

Descriptors = Callable[[int], bool]
_ROW: Final = 16
_HALF: Final = 8
_PIECE: Final = 1 << 16
_READS: Final = frozenset(("read", "pread64", "recv", "recvfrom"))
_WRITES: Final = frozenset(("write", "pwrite64", "send", "sendto"))
_READ_VECTORS: Final = frozenset(("readv", "preadv", "preadv2"))
_WRITE_VECTORS: Final = frozenset(("writev", "pwritev", "pwritev2", "vmsplice"))
_VECTOR, _MESSAGE = 16, 64
_DIGITS: Final = 5


def descriptors_of(option: str, text: str) -> Descriptors:
    """Tell descriptors of a set from others: numbers, all, none, behind ! all but those.

    Raises:
        CommandError: a word is none of these.
    """
    inverted = text.startswith("!")
    chosen: set[int] = set()
    every = False
    for word in text.removeprefix("!").split(","):
        if word == "all":
            every = True
        elif word.isascii() and word.isdecimal() and int(word) < 1 << 31:
            chosen.add(int(word))
        elif word != "none":
            raise CommandError(f"{option}: {word!r} is no descriptor; numbers, all and none are")
    return lambda number: (every or number in chosen) != inverted


def dump_lines(call: TracedCall, reads: Descriptors, writes: Descriptors) -> Iterator[str]:
    """The bytes that a call that has returned has read or written, in lines.

    Args:
        call: that has returned.
        reads: descriptors of which what is read is wanted.
        writes: those of which what is written is.
    """
    number, name = signed(call.arguments[0], 32), call.name
    if number < 0:
        return
    if writes(number):
        if name in _WRITES:
            yield from _rows(call, call.arguments[1], call.arguments[2])
        elif name in _WRITE_VECTORS:
            yield from _vectors(call, call.arguments[1], call.arguments[2], None)
        elif name == "sendmsg":
            yield from _message(call, call.arguments[1], None)
        elif name == "sendmmsg":
            yield from _messages(call)
    if call.failed or call.result is None or not reads(number):
        return
    if name in _READS:
        yield from _rows(call, call.arguments[1], call.result)
    elif name in _READ_VECTORS:
        yield from _vectors(call, call.arguments[1], call.arguments[2], call.result)
    elif name == "recvmsg":
        yield from _message(call, call.arguments[1], call.result)
    elif name == "recvmmsg":
        yield from _messages(call)


def _messages(call: TracedCall) -> Iterator[str]:
    """Struct mmsghdr: those that were sent or received, with how many bytes."""
    for place in range(max(call.result or 0, 0)):
        address = call.arguments[1] + _MESSAGE * place
        data = call.peek(address, _MESSAGE)
        if data is None:
            return
        (vectors,) = struct.unpack_from(call.facts.order + "Q", data, 24)
        (size,) = struct.unpack_from(call.facts.order + "I", data, 56)
        yield f" = {vectors} buffers in vector {place}"
        yield from _message(call, address, size)


def _message(call: TracedCall, place: int, left: int | None) -> Iterator[str]:
    data = call.peek(place, 32)
    if data is not None:
        address, count = struct.unpack_from(call.facts.order + "QQ", data, 16)
        yield from _vectors(call, address, count, left)


def _vectors(call: TracedCall, address: int, count: int, left: int | None) -> Iterator[str]:
    data = call.peek(address, count * _VECTOR)
    if data is None:
        return
    for place, (base, size) in enumerate(struct.iter_unpack(call.facts.order + "QQ", data)):
        shown = size if left is None else min(size, left)
        if not shown:
            return
        left = None if left is None else left - shown
        yield f" * {shown} bytes in buffer {place}"
        yield from _rows(call, base, shown)


def _rows(call: TracedCall, address: int, size: int) -> Iterator[str]:
    """Rows of sixteen bytes, up to the first page that cannot be read."""
    width = max(_DIGITS, len(f"{max(size - 1, 0):x}"))
    for start in range(0, size, _PIECE):
        data = call.peek(address + start, min(size - start, _PIECE))
        if data is None:
            return
        for at in range(0, len(data), _ROW):
            row = data[at : at + _ROW]
            halves = (row[:_HALF].hex(" "), row[_HALF:].hex(" "))
            digits = "".join(f"{half:<24} " for half in halves)
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            yield f" | {start + at:0{width}x}  {digits}{text:<16} |"
