"""The table behind a hist trigger: counts rows, prints as the event's `hist` file does."""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from engine.escaping import escaped, escaped_bytes
from engine.fetch.predicate import row_thread
from engine.trace.histogram import HITCOUNT, HistField, HistSpec
from engine.trace.rows import string_at

Key: TypeAlias = int | bytes | tuple[int, ...]
Reader: TypeAlias = Callable[[Any, int], Key]

_MASK: Final = (1 << 64) - 1
_STRING_MAX: Final = 255
_STACK_MAX: Final = 16
_CODES: Final = {1: "b", 2: "h", 4: "i", 8: "q"}
_BAR: Final = 20


class HistNames(Struct, frozen=True):
    """The surroundings of a table: reading and printing.

    Attributes:
        symbol: text of an address as `%pS`.
        comm: a thread's name by its id.
        syscall: a system call's name by its number, None for none.
        stack: the call stack now, innermost first.
        exact: whether names and strings are printed byte for byte; else they are escaped.
    """

    symbol: Callable[[int], str]
    comm: Callable[[int], bytes | None]
    syscall: Callable[[int], str | None]
    stack: Callable[[], tuple[int, ...]]
    exact: bool = False

    def shown(self, data: bytes) -> bytes:
        """A name or string as a part of a line."""
        return data if self.exact else escaped_bytes(data)

    def symbol_text(self, address: int) -> bytes:
        """The text of an address as a part of a line."""
        return self.shown(self.symbol(address).encode(errors="surrogateescape"))


class _HistogramEntry(Struct):
    sums: list[int]
    comm: bytes = b""
    symbols: dict[int, bytes] = field(default_factory=dict)  # as they were called at the hit


class HistTable(Struct):
    """Entries by key.

    Attributes:
        spec: what is counted.
        names: for reading and printing.
        hits: rows counted.
        dropped: rows for which there was no room.
    """

    spec: HistSpec
    names: HistNames
    hits: int = 0
    dropped: int = 0
    _entries: dict[tuple[Key, ...], _HistogramEntry] = field(default_factory=dict)

    def counter(self, spec: HistSpec) -> Callable[[Any, int], None]:
        """A counter of rows at a position; `spec` says where another event has the fields."""
        keys = [self._reader(key) for key in spec.keys]
        values = [self._reader(value) for value in spec.values]
        execname = any(key.modifier == "execname" for key in spec.keys)
        named = [at for at, key in enumerate(spec.keys) if _is_named(key)]
        entries, size = self._entries, self.spec.size

        def count(data: Any, position: int) -> None:
            key = tuple([read(data, position) for read in keys])
            entry = entries.get(key)
            if entry is None:
                if len(entries) >= size:
                    self.dropped += 1
                    return
                entry = entries[key] = _HistogramEntry([0] * (1 + len(values)))
                if execname:
                    entry.comm = self.names.comm(row_thread(data, position)) or b""
                for at in named:
                    self._name(entry, key[at])
            self.hits += 1
            sums = entry.sums
            sums[0] += 1
            for index, read in enumerate(values, 1):
                value = read(data, position)
                assert isinstance(value, int)
                sums[index] = sums[index] + value & _MASK

        return count

    def _name(self, entry: _HistogramEntry, value: Key) -> None:
        """Names of addresses are those of now: later another program may be there."""
        for each in value if isinstance(value, tuple) else (value,):
            assert isinstance(each, int)
            entry.symbols[each] = self.names.symbol_text(each)

    def clear(self) -> None:
        """Forget everything counted."""
        self._entries.clear()
        self.hits = self.dropped = 0

    def take(self, other: "HistTable") -> None:
        """Count on from what another table of the same form has."""
        self._entries.clear()
        self._entries.update(other._entries)
        self.hits, self.dropped = other.hits, other.dropped

    def _reader(self, one: HistField) -> Reader:
        if one.name == "common_stacktrace":
            stack = self.names.stack
            return lambda data, position: stack()[:_STACK_MAX]
        if one.name == "common_comm":
            comm = self.names.comm
            return lambda data, position: comm(row_thread(data, position)) or b""
        if one.name == "common_cpu":
            return lambda data, position: 0
        if one.name == HITCOUNT:
            return lambda data, position: 1
        if one.name == "common_timestamp":
            time = struct.Struct("<8xQ").unpack_from
            return _modified(one, lambda data, position: int(time(data, position)[0]))
        assert one.field is not None
        row, size = one.field.row, one.field.size
        if one.is_string:
            word = struct.Struct("<Q").unpack_from

            def text(data: Any, position: int) -> bytes:
                found = string_at(data, position, word(data, position + row)[0]) or b""
                return found[:_STRING_MAX]

            return text
        if row < 0:
            return lambda data, position: 0
        if one.name == "common_pid":
            return _modified(one, row_thread)
        code = _CODES[size] if one.field.signed else _CODES[size].upper()
        unpack = struct.Struct("<" + code).unpack_from
        # Sign-extended to 64 bits, and unsigned from there on, as in the kernel.
        return _modified(one, lambda data, position: unpack(data, position + row)[0] & _MASK)

    # -- printing -------------------------------------------------------------------------

    def lines(self, condition: str = "", paused: bool = False) -> list[bytes]:
        """The text of the event's `hist` file, a line each."""
        listing = escaped(self.spec.listing(condition, paused)).encode()
        out = [b"# event histogram", b"#", b"# trigger info: " + listing, b"#", b""]
        rows = self._sorted()
        sums = [entry.sums for _, entry in rows]
        out += [self._line(key, entry, sums) for key, entry in rows]
        out += [b"", b"Totals:", b"    Hits: %d" % self.hits, b"    Entries: %d" % len(rows)]
        out.append(b"    Dropped: %d" % self.dropped)
        return out

    def _sorted(self) -> list[tuple[tuple[Key, ...], _HistogramEntry]]:
        rows = list(self._entries.items())
        values = len(self.spec.values)
        for order in reversed(self.spec.sort):
            if order.index <= values:
                rows.sort(key=lambda row: row[1].sums[order.index], reverse=order.descending)
                continue
            number = order.index - values - 1
            one = self.spec.keys[number]
            if one.name == "common_stacktrace":
                continue
            signed = one.field is not None and one.field.signed and not one.is_string
            plain = one.modifier not in ("log2", "buckets")

            def place(row: tuple[tuple[Key, ...], _HistogramEntry]) -> Any:
                value = row[0][number]  # noqa: B023 - used before the next turn
                if signed and plain and isinstance(value, int):  # noqa: B023
                    return value - (1 << 64) if value >> 63 else value
                return value

            rows.sort(key=place, reverse=order.descending)
        return rows

    def _line(self, key: tuple[Key, ...], entry: _HistogramEntry, sums: list[list[int]]) -> bytes:
        parts = [
            self._key(one, value, entry) for one, value in zip(self.spec.keys, key, strict=True)
        ]
        stacked = any(one.name == "common_stacktrace" for one in self.spec.keys)
        text = b"{ " + b", ".join(parts) + (b"}" if stacked else b" }")
        shown = [_value(HITCOUNT, "", entry.sums, 0, sums)] if self.spec.hitcount else []
        for index, one in enumerate(self.spec.values, 1):
            more = b" " + _value(one.name, one.modifier, entry.sums, index, sums)
            shown.append(more)
        return text + b"".join(shown)

    def _key(self, one: HistField, value: Key, entry: _HistogramEntry) -> bytes:
        name = one.name.encode()
        if isinstance(value, tuple):
            text = b"".join(b"         %s\n" % entry.symbols[each] for each in value)
            return b"common_stacktrace:\n" + text
        if isinstance(value, bytes):
            return b"%s: %-50s" % (name, self.names.shown(value))
        if one.modifier == "hex":
            return b"%s: %x" % (name, value)
        if one.modifier in ("sym", "sym-offset"):
            symbol = entry.symbols[value]
            if one.modifier == "sym":
                symbol = symbol.rpartition(b"+0x")[0] or symbol
            width = 45 if one.modifier == "sym" else 55
            return b"%s: [%x] %s" % (name, value, symbol.ljust(width))
        if one.modifier == "execname":
            return b"%s: %-16s[%10d]" % (name, self.names.shown(entry.comm), value)
        if one.modifier == "syscall":
            call = self.names.syscall(value)
            text = b"unknown_syscall" if call is None else b"sys_" + call.encode()
            return b"%s: %-30s[%3d]" % (name, text, value)
        if one.modifier == "log2":
            return b"%s: ~ 2^%-2d" % (name, value)
        if one.modifier == "buckets":
            return b"%s: ~ %d-%d" % (name, value, value + one.buckets - 1)
        return b"%s: %10d" % (name, value)


def _is_named(key: HistField) -> bool:
    """True if addresses of a key are shown by their names."""
    return key.name == "common_stacktrace" or key.modifier in ("sym", "sym-offset")


def _modified(one: HistField, read: Callable[[Any, int], int]) -> Reader:
    if one.modifier == "log2":
        # The kernel's ilog2(roundup_pow_of_two()), which is undefined for 0.
        return lambda data, position: max(read(data, position) - 1, 0).bit_length()
    if one.modifier == "buckets":
        width = one.buckets
        return lambda data, position: read(data, position) // width * width
    return read


def _percentage(value: int, total: int) -> int | None:
    """Hundredths of a per cent; None where the kernel prints an error."""
    if not total:
        return None if value else 0
    return value * 10000 // total


def _value(name: str, modifier: str, sums: list[int], index: int, every: list[list[int]]) -> bytes:
    value = sums[index]
    if modifier == "percent":
        share = _percentage(value, sum(row[index] for row in every) & _MASK)
        if share is None:
            return b" %s (%%):[ERROR]" % name.encode()
        return b" %s (%%): %3d.%02d" % (name.encode(), share // 100, share % 100)
    if modifier == "graph":
        share = _percentage(value, max(row[index] for row in every)) or 0
        return b" %s: %s" % (name.encode(), (b"#" * (share * _BAR // 10000)).ljust(_BAR))
    return (
        b" %s: %10x" % (name.encode(), value)
        if modifier == "hex"
        else (b" %s: %10d" % (name.encode(), value))
    )
