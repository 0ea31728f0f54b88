"""Rows of made-up events of all kinds of values, for formats that other programs read."""

import random

from engine.arch.program import RETURN_HEAD, ROW_HEAD, FieldType, ValueKind
from engine.trace.formats import Names
from engine.trace.rows import Column, EventInfo, EventSource, pack_row
from engine.trace.sched import BY_NAME
from engine.trace.syscalls import arguments, enter_info, exit_info

NUMBERS = [
    FieldType(kind, size)
    for kind in (ValueKind.UNSIGNED, ValueKind.SIGNED, ValueKind.HEX)
    for size in (1, 2, 4, 8)
]
STRING = FieldType(ValueKind.STRING, 0)
COMMS = {77: b"guest", 78: b"other one", 5000: b"x"}
SYMBOLS = {0x401130: "fact+0x0/0x2a", 0x401155: "main+0x5/0x80", 0x7FF000: "far+0x0/0x10"}
NAMES = Names(lambda address: SYMBOLS.get(address, f"{address:#x}"), COMMS.get)


def event(number: int, name: str, *kinds: FieldType, returns: bool = False) -> EventInfo:
    word = RETURN_HEAD if returns else ROW_HEAD
    columns: list[Column] = []
    for kind in kinds:
        columns.append(Column(f"a{len(columns)}", kind, word))
        word += max(kind.count, 1)
    return EventInfo(number, "g", name, tuple(columns), word, returns)


def arrays(kind: FieldType, count: int) -> FieldType:
    return FieldType(kind.kind, kind.size, count)


_OPENAT = arguments("openat", False)
assert _OPENAT is not None
EVENTS = {
    info.id: info
    for info in (
        event(1, "plain"),
        event(2, "numbers", *NUMBERS),
        event(3, "back", FieldType(ValueKind.SIGNED, 4), returns=True),
        event(4, "texts", NUMBERS[0], STRING, NUMBERS[7], STRING),
        event(5, "lists", *(arrays(kind, 3) for kind in NUMBERS), arrays(STRING, 2)),
        event(6, "bits", FieldType(ValueKind.BITFIELD, 4, 0, 5, 3)),
        enter_info(7, "openat", _OPENAT),
        exit_info(8, "openat"),
        BY_NAME["sched_switch"].info(9),
        BY_NAME["sched_process_exec"].info(10),
    )
}


def value(kind: FieldType, rng: random.Random) -> int | bytes:
    if kind.is_string:
        text = "".join(rng.choices("abc xyz/.-+", k=rng.randrange(1, 40)))
        return text.encode() + b"\0" if rng.random() < 0.9 else b""
    if kind.kind is ValueKind.BITFIELD:
        return rng.randrange(1 << kind.width)
    bits = 8 * kind.size
    found = rng.choice((0, 1, (1 << bits) - 1, 1 << bits - 1, rng.getrandbits(bits)))
    return found - (1 << bits) if kind.kind is ValueKind.SIGNED and found >> bits - 1 else found


def row(info: EventInfo, thread: int, time: int, rng: random.Random) -> bytes:
    address = rng.choice(list(SYMBOLS))
    values: list[int | bytes] = [address] if info.returns else []
    for column in info.columns:
        if info.source is EventSource.SCHED and not column.type.is_string:
            values.append(rng.randrange(120))
        elif column.name == "__syscall_nr":
            values.append(257)
        else:
            values += [value(column.type, rng) for _ in range(column.words)]
    if info.source is EventSource.SCHED:
        values = [each or b"-\0" if isinstance(each, bytes) else each for each in values]
    return pack_row(info, thread, time, address, values)


def rows(seed: int, count: int = 1500) -> list[bytes]:
    rng = random.Random(seed)
    found, time = [], 0
    for _ in range(count):
        time += rng.choice((0, 1, 7, 1000, 1 << 26, 1 << 27, 1 << 40))
        info = rng.choice(list(EVENTS.values()))
        found.append(row(info, rng.choice(list(COMMS)), time, rng))
    return found


def pieces(found: list[bytes]) -> list[bytes]:
    return [b"".join(found[at : at + 170]) for at in range(0, len(found), 170)]
