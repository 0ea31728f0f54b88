"""JSON lines: one object for each event, with types kept."""

import json
import math
import struct
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final

from engine.arch.program import EVENT_MOST, ValueKind
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.lines import (
    Arguments,
    Complete,
    LineRows,
    LineTemplate,
    Words,
    words_layout,
)
from engine.trace.formats.values import frames, kernel_frames, text
from engine.trace.kinds import float_text
from engine.trace.rows import Column, EventInfo, EventSource, EventTable, string_at

_STRINGS: Final = 1 << 12
"""Texts of strings to remember."""
_TEXTS: Final = (ValueKind.SYMBOL, ValueKind.CHAR, ValueKind.FLOAT)
_TIME: Final = struct.Struct("<8xQ")


class JsonLinesFormat:
    """An object a line; nothing before and nothing behind.

    Keys: `event` (GROUP/NAME), `time`, `pid` of the process, `tid` and `comm` of the thread, `cpu`
    (there is one), `address` and `symbol` of the probe, `returned_to` of a return event, `args`.
    A call stack is a line of its own with `stack`, behind its event; frames of a kernel that is
    the guest have `kernel`. Missing events are a line with `lost`. Addresses are hex strings. A
    guest's bytes that are no UTF-8 are no string but an object: `hex` has all of them, `text`
    shows them with a backslash, an x and two digits for each bad one, as a string that is text
    may have it, too. Floating-point numbers are numbers; those that JSON has none for are the
    strings "nan", "inf" and "-inf".
    """

    name: ClassVar[str] = "jsonl"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._lines = LineRows(self)
        self._tasks: dict[int, bytes] = {}
        self._strings: dict[bytes, bytes] = {}
        self._programs: ByProgram[bytes] = ByProgram()
        self._symbols = self._programs.symbols(0)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """A line for each row."""
        return self._lines.text(data)

    def lost(self, count: int) -> bytes:
        """A line that says how many."""
        return b'{"lost":%d}\n' % count

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._tasks.pop(thread_id, None)
        self._lines.forget()

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._lines.program(number)
        self._symbols = self._programs.symbols(number)

    def state(self) -> object:
        """Each line stands for itself."""
        return None

    def restore(self, state: object) -> None:
        """Nothing to go on from."""

    def _symbol(self, address: int) -> bytes:
        found = self._symbols.get(address)
        if found is None:
            found = self._symbols[address] = quoted(self._names.symbol(address))
        return found

    def _task(self, thread_id: int) -> bytes:
        """The keys that are a thread's, remembered once its name is known."""
        comm = self._names.comm(thread_id)
        shown = b"null" if comm is None else _shown(comm)
        process = self._names.process(thread_id)
        task = b'"pid":%d,"tid":%d,"cpu":0,"comm":%s' % (process, thread_id, shown)
        if comm is not None:
            self._tasks[thread_id] = task
        return task

    # -- lines ----------------------------------------------------------------------------

    def places(self, event_id: int) -> int:
        """A probe's place, and where a return goes."""
        return 2 if self._events[event_id].returns else 1

    def line(self, event_id: int, thread_id: int, addresses: Sequence[int]) -> LineTemplate:
        """The line of an event in a thread at a place."""
        info = self._events[event_id]
        task = self._tasks.get(thread_id) or self._task(thread_id)
        lasts = thread_id in self._tasks
        name = _literal(f"{info.group}/{info.name}")
        address = addresses[0]
        front = b'{"event":%s,"time":%%d,%s,"address":"0x%x",' % (name, _doubled(task), address)
        if info.source is EventSource.STACK:
            return LineTemplate(front + b'"stack":[%s]}\n', _TIME, self._frames(info), lasts)
        front += b'"symbol":%s,' % _doubled(self._symbol(address))
        if info.returns:
            front += b'"returned_to":"0x%x",' % addresses[1]
        values = b",".join(
            b"%s:%s" % (_literal(column.name), _value_template(column)) for column in info.columns
        )
        template = b'%s"args":{%s}}\n' % (front, values)
        return LineTemplate(template, words_layout(info), self._completion(info), lasts)

    def _frames(self, info: EventInfo) -> Complete:
        def complete(words: Words, data: bytes, position: int) -> Arguments:
            kernel = kernel_frames(info, data, position)
            found = (
                b'{"pc":"0x%x","symbol":%s%s}'
                % (pc, self._symbol(pc), b',"kernel":true' if at < kernel else b"")
                for at, pc in enumerate(frames(info, data, position))
            )
            return words[0], b",".join(found)

        return complete

    def _completion(self, info: EventInfo) -> Complete | None:
        """The completion of values that are no numbers; None where there are none."""
        made: list[tuple[int, Callable[[int, bytes, int], bytes]]] = []
        at = 1  # behind the time
        for column in info.columns:
            make = self._maker(column)
            if make is not None:
                made += [(index, make) for index in range(at, at + column.words)]
            at += column.words

        def complete(words: Words, data: bytes, position: int) -> Arguments:
            out: list[int | bytes] = list(words)
            for index, make in made:
                out[index] = make(words[index], data, position)
            return out

        return complete if made else None

    def _maker(self, column: Column) -> Callable[[int, bytes, int], bytes] | None:
        """Turns a word into JSON where that is no number's; None for numbers."""
        strings, names = self._strings, self._names

        def string(word: int, data: bytes, position: int) -> bytes:
            found = string_at(data, position, word)
            if found is None:
                return b"null"
            shown = strings.get(found)
            if shown is None:
                if len(strings) >= _STRINGS:
                    strings.clear()
                shown = strings[found] = _shown(found)
            return shown

        def symbol(word: int, data: bytes, position: int) -> bytes:
            return quoted(names.symbol(word))

        def character(word: int, data: bytes, position: int) -> bytes:
            return _shown(bytes([word & 0xFF]))

        def real(word: float, data: bytes, position: int) -> bytes:
            found = float_text(word, column.type.size)
            return found.encode() if math.isfinite(word) else quoted(found)

        if column.type.is_string:
            return string
        if column.type.kind is ValueKind.FLOAT:
            return real
        return {ValueKind.SYMBOL: symbol, ValueKind.CHAR: character}.get(column.type.kind)


def quoted(words: str) -> bytes:
    """A text as JSON has it, in ASCII; DEL is the only control that JSON lets stand."""
    return json.dumps(words).replace("\x7f", r"\u007f").encode("ascii")


def _shown(data: bytes) -> bytes:
    """Bytes of a guest: a string, or an object where they are no UTF-8."""
    try:
        return quoted(data.decode())
    except UnicodeDecodeError:
        return b'{"text":%s,"hex":"%s"}' % (quoted(text(data)), data.hex().encode())


def _literal(words: str) -> bytes:
    """A text as a part of a template."""
    return _doubled(quoted(words))


def _doubled(text: bytes) -> bytes:
    """Bytes as they stand in a template."""
    return text.replace(b"%", b"%%")


def _value_template(column: Column) -> bytes:
    plain = not column.type.is_string and column.type.kind not in _TEXTS
    one = b"%d" if plain else b"%s"
    return b"[" + b",".join([one] * column.words) + b"]" if column.type.count else one
