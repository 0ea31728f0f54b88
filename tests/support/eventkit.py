"""Rows of made-up events for tests of the interface."""

import struct

from engine.arch.program import FieldType, ValueKind
from engine.trace.formats.base import Names
from engine.trace.rows import HEAD, Column, EventInfo

FACT, RET, OPEN = 1, 2, 3
THREAD = 77
SYMBOLS = {0x401130: "fact+0x0/0x2a", 0x401155: "main+0x25/0x80"}

INFOS = (
    EventInfo(
        FACT, "kprobes", "fact", (Column("n", FieldType(ValueKind.SIGNED, 8), 3),), 4, False, True
    ),
    EventInfo(
        RET, "kprobes", "fact_ret", (Column("ret", FieldType(ValueKind.HEX, 4), 4),), 5, True, True
    ),
    EventInfo(
        OPEN,
        "uprobes",
        "open",
        (
            Column("path", FieldType(ValueKind.STRING, 0), 3),
            Column("fd", FieldType(ValueKind.SIGNED, 4), 4),
        ),
        5,
    ),
)
NAMES = Names(lambda address: SYMBOLS.get(address, hex(address)), lambda thread: b"guest")


def fact(time: int, n: int, thread: int = THREAD) -> bytes:
    """A row of an entry event."""
    return HEAD.pack(FACT, 4, thread) + struct.pack("<QQq", time, 0x401130, n)


def ret(time: int, value: int, garbage: int = 0, thread: int = THREAD) -> bytes:
    """A row of a return event; its word has more bits than the value."""
    word = value & 0xFFFFFFFF | garbage << 32
    return HEAD.pack(RET, 5, thread) + struct.pack("<QQQQ", time, 0x401130, 0x401155, word)


def opened(time: int, path: bytes, fd: int, thread: int = THREAD) -> bytes:
    """A row with a string."""
    text = path + b"\0"
    padded = text + bytes(-len(text) % 8)
    head = HEAD.pack(OPEN, 5 + len(padded) // 8, thread)
    words = struct.pack("<QQQi4x", time, 0x7F001130, 40 | len(text) << 32, fd)
    return head + words + padded


def facts(count: int, first: int = 0) -> bytes:
    """Many rows of the entry event, `n` and the time being their number."""
    return b"".join(fact(number, number) for number in range(first, first + count))
