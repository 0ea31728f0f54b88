"""JSON lines: one object for each event, with types kept."""

import json
import struct
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final, TypeAlias

from engine.arch.program import EVENT_MOST, THREAD_MOST, ValueKind
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.values import frames, text
from engine.trace.rows import (
    HEAD,
    Column,
    EventInfo,
    EventSource,
    EventTable,
    string_at,
    unpacker,
    whole,
)

_STRINGS: Final = 1 << 12
"""Texts of strings to remember."""
_TEXTS: Final = (ValueKind.SYMBOL, ValueKind.CHAR)
_STACK_HEAD: Final = struct.Struct("<8xQQ").unpack_from

Words: TypeAlias = Sequence[int]
Shown: TypeAlias = Callable[[Words, bytes, int], Sequence[int | bytes]]
"""Turns the words of the row at a position into what its line's template takes behind the task."""
Line: TypeAlias = tuple[bytes, Callable[[bytes, int], Words], Shown]
"""A `%` template, the unpacking of a row, and what the template takes."""


class JsonLinesFormat:
    """An object a line; nothing before and nothing behind.

    Keys: `event` (GROUP/NAME), `time`, `pid` of the process, `tid` and `comm` of the thread, `cpu`
    (there is one), `address` and `symbol` of the probe, `returned_to` of a return event, `args`.
    A call stack is a line of its own with `stack`, behind its event; missing events are a line
    with `lost`. Addresses are hex strings.
    """

    name: ClassVar[str] = "jsonl"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._lines: dict[int, Line] = {}
        self._tasks: dict[int, bytes] = {}
        self._strings: dict[bytes, bytes] = {}
        self._programs: ByProgram[bytes] = ByProgram()
        self._symbols = self._programs.symbols(0)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """A line for each row."""
        out: list[bytes] = []
        lines, tasks = self._lines, self._tasks
        head, position, end = HEAD.unpack_from, 0, len(data)
        while position < end:
            event_id, size, thread_id = head(data, position)
            if thread_id > THREAD_MOST:
                event_id, thread_id = whole(event_id, thread_id)
            template, unpack, shown = lines.get(event_id) or self._compile(event_id)
            task = tasks.get(thread_id) or self._task(thread_id)
            words = unpack(data, position)
            out.append(template % (words[0], task, *shown(words, data, position)))
            position += size * 8
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """A line that says how many."""
        return b'{"lost":%d}\n' % count

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._tasks.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
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
        shown = b"null" if comm is None else quoted(text(comm))
        process = self._names.process(thread_id)
        task = b'"pid":%d,"tid":%d,"cpu":0,"comm":%s' % (process, thread_id, shown)
        if comm is not None:
            self._tasks[thread_id] = task
        return task

    def _compile(self, event_id: int) -> Line:
        """The line of an event: a template, and what it takes."""
        info = self._events[event_id]
        front = b'{"event":%s,"time":%%d,%%s,"address":"0x%%x",' % _literal(
            f"{info.group}/{info.name}"
        )
        if info.source is EventSource.STACK:
            line: Line = front + b'"stack":[%s]}\n', _STACK_HEAD, self._frames(info)
        else:
            returned = b'"returned_to":"0x%x",' if info.returns else b""
            values = b",".join(
                b"%s:%s" % (_literal(column.name), _value_template(column))
                for column in info.columns
            )
            template = b'%s"symbol":%%s,%s"args":{%s}}\n' % (front, returned, values)
            line = template, unpacker(info), self._arguments(info)
        self._lines[event_id] = line
        return line

    def _frames(self, info: EventInfo) -> Shown:
        def shown(words: Words, data: bytes, position: int) -> Sequence[int | bytes]:
            found = (
                b'{"pc":"0x%x","symbol":%s}' % (pc, self._symbol(pc))
                for pc in frames(info, data, position)
            )
            return words[1], b",".join(found)

        return shown

    def _arguments(self, info: EventInfo) -> Shown:
        """Address, symbol, where a return goes, and the values, as the template takes them."""
        made: list[tuple[int, Callable[[int, bytes, int], bytes]]] = []
        at = 3 if info.returns else 2
        for column in info.columns:
            make = self._maker(column)
            if make is not None:
                made += [(index, make) for index in range(at, at + column.words)]
            at += column.words
        symbol = self._symbol

        def numbers(words: Words, data: bytes, position: int) -> Sequence[int | bytes]:
            return words[1], symbol(words[1]), *words[2:]

        def mixed(words: Words, data: bytes, position: int) -> Sequence[int | bytes]:
            out: list[int | bytes] = list(words)
            for index, make in made:
                out[index] = make(words[index], data, position)
            return words[1], symbol(words[1]), *out[2:]

        return mixed if made else numbers

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
                shown = strings[found] = quoted(text(found))
            return shown

        def symbol(word: int, data: bytes, position: int) -> bytes:
            return quoted(names.symbol(word))

        def character(word: int, data: bytes, position: int) -> bytes:
            return quoted(text(bytes([word & 0xFF])))

        if column.type.is_string:
            return string
        return {ValueKind.SYMBOL: symbol, ValueKind.CHAR: character}.get(column.type.kind)


def quoted(words: str) -> bytes:
    """A text as JSON has it, in ASCII; DEL is the only control that JSON lets stand."""
    return json.dumps(words).replace("\x7f", r"\u007f").encode("ascii")


def _literal(words: str) -> bytes:
    """A text as a part of a template."""
    return quoted(words).replace(b"%", b"%%")


def _value_template(column: Column) -> bytes:
    plain = not column.type.is_string and column.type.kind not in _TEXTS
    one = b"%d" if plain else b"%s"
    return b"[" + b",".join([one] * column.words) + b"]" if column.type.count else one
