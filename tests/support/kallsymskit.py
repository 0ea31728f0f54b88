"""Tables of names as the kernels of several versions have them, made of a list of symbols."""

import struct
from dataclasses import dataclass

TEXT = 0xFFFFFFFF81000000


@dataclass(frozen=True)
class Layout:
    """One layout of the table.

    Attributes:
        wide: the count has 64 bits, and so have the markers' offsets.
        sequence: the numbers of the names in their order stand behind the markers.
        last: addresses and the sequence stand behind the tokens.
        addresses: "absolute", "relative", "percpu" or "self".
        order: byte order.
    """

    wide: bool = False
    sequence: bool = False
    last: bool = False
    addresses: str = "relative"
    order: str = "<"


LAYOUTS = {
    "4.6": Layout(wide=True, addresses="percpu"),
    "4.6 absolute": Layout(wide=True, addresses="absolute"),
    "5.0": Layout(addresses="percpu"),
    "5.0 big-endian": Layout(order=">"),
    "4.6 big-endian": Layout(wide=True, order=">"),
    "6.1 stable": Layout(sequence=True, addresses="percpu"),
    "6.4": Layout(last=True, addresses="percpu"),
    "6.4 without percpu": Layout(last=True),
    "7.2": Layout(last=True, addresses="self"),
}


def symbols(count: int) -> list[tuple[int, str, str]]:
    """Address, letter and name of so many symbols; one of the names is very long."""
    found = [
        (TEXT + 16 * n, "tTdW"[n % 4], f"function_{n * 7919 % 10007}_of") for n in range(count)
    ]
    found[count // 2] = (*found[count // 2][:2], "long_" * 60)
    return found


def image(rows: list[tuple[int, str, str]], layout: Layout) -> bytes:
    """An image that begins at TEXT and has the table somewhere."""
    tokens = [bytes((n,)) if chr(n).isalnum() or chr(n) == "_" else b"" for n in range(256)]
    tokens[1], tokens[2] = b"function_", b"_of"
    unused = [n for n, token in enumerate(tokens) if not token]
    for n in unused:
        tokens[n] = b"q%d" % n  # tokens that no name has
    names, markers = b"", []
    for number, (_, letter, name) in enumerate(rows):
        if not number % 256:
            markers.append(len(names))
        packed = (letter + name).encode()
        packed = packed.replace(b"function_", b"\1").replace(b"_of", b"\2")
        size = len(packed)
        names += bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))
        names += packed
    order = layout.order
    align = 4 if layout.addresses == "self" else 8
    out = bytearray(b"text" * 5000)

    def put(data: bytes) -> None:
        out.extend(bytes(-len(out) % align) + data)

    def addresses() -> None:
        values = [address for address, _, _ in rows]
        if layout.addresses == "absolute":
            put(struct.pack(f"{order}{len(rows)}Q", *values))
            return
        if layout.addresses == "self":
            out.extend(bytes(-len(out) % align))
            here = TEXT + len(out)
            distances = [value - here - 4 * n for n, value in enumerate(values)]
            put(struct.pack(f"{order}{len(rows)}i", *distances))
            return
        base = values[0]
        if layout.addresses == "percpu":
            offsets = [base - 1 - value for value in values]
            offsets[:3] = [0, 8, 16]  # per-CPU variables
        else:
            offsets = [value - base for value in values]
        put(struct.pack(f"{order}{len(rows)}i", *offsets))
        put(struct.pack(f"{order}Q", base))

    def sequence() -> None:
        numbers = sorted(range(len(rows)), key=lambda n: rows[n][2])
        put(b"".join(n.to_bytes(3, "big") for n in numbers))

    if not layout.last:
        addresses()
    put(struct.pack(f"{order}{'Q' if layout.wide else 'I'}", len(rows)))
    put(names)
    put(struct.pack(f"{order}{len(markers)}{'Q' if layout.wide else 'I'}", *markers))
    if layout.sequence:
        sequence()
    table = b"".join(token + b"\0" for token in tokens)
    put(table)
    index, at = [], 0
    for token in tokens:
        index.append(at)
        at += len(token) + 1
    put(struct.pack(f"{order}256H", *index))
    if layout.last:
        addresses()
        sequence()
    return bytes(out + b"data" * 4000)


def expected(rows: list[tuple[int, str, str]], layout: Layout) -> list[str]:
    """The lines of /proc/kallsyms."""
    found = list(rows)
    if layout.addresses == "percpu":
        for number in range(3):
            found[number] = (8 * number, *found[number][1:])
    return [f"{address:016x} {letter} {name}" for address, letter, name in found]
