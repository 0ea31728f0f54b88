"""Text as ftrace's nop tracer prints it (kernel/trace/trace.c, trace_output.c, trace_probe.c).

Where a guest differs from a kernel: one CPU, no interrupt state (the five flags are dots), and
a clock that counts, so time is an integer as with `trace_clock=counter`.

Strings, characters and names of a guest are escaped, or come out as they are where `Names` says
so. Events that are not made by probes, and what trace options change, are in `ftracemore`.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final

from engine.arch.program import EVENT_MOST, ValueKind
from engine.escaping import escaped
from engine.trace.formats import ftracemore as more
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.lines import (
    Arguments,
    Complete,
    LineRows,
    LineTemplate,
    Words,
    words_layout,
)
from engine.trace.kinds import float_text, trace_conversion
from engine.trace.rows import Column, EventInfo, EventSource, EventTable, FormKind

_LEGEND = b"""\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""

_CACHED = 1 << 16
"""Texts of addresses to remember: values may be anything."""

_STRINGS: Final = 1 << 12
"""Texts of strings to remember."""

_TIME: Final = struct.Struct("<8xQ")


class FtraceFormat:
    """ftrace's text."""

    name: ClassVar[str] = "ftrace"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, which may still grow.

        Raises:
            CommandError: there is no such trace option.
        """
        self._options = more.TextOptions.of(options)
        self._events = events
        self._names = names
        self._lines = LineRows(self)
        self._prefixes: dict[int, bytes] = {}
        self._programs: ByProgram[bytes] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._stacks_of: ByProgram[bytes] = ByProgram()
        self._stacks = self._stacks_of.symbols(0)
        self._strings: dict[bytes, bytes] = {}

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The tracer, the counts if there are any, and the legend."""
        options = self._options
        if options.verbose and not options.latency:
            return b"# tracer: nop\n#\n"
        if options.latency:
            return more.latency_header(kept, written)
        counts = b""
        if kept is not None:
            written = kept if written is None else written
            counts = b"# entries-in-buffer/entries-written: %d/%d   #P:1\n#\n" % (kept, written)
        legend = _with_tgid(_LEGEND) if options.tgid else _LEGEND
        return b"# tracer: nop\n#\n" + counts + legend

    def rows(self, data: bytes) -> bytes:
        """A line for each row."""
        if self._options.binary:
            return more.binary_rows(data, self._options.binary)
        return self._lines.text(data)

    def lost(self, count: int) -> bytes:
        """As trace_pipe prints it before the next event."""
        return b"CPU:0 [LOST %d EVENTS]\n" % count

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._prefixes.pop(thread_id, None)
        self._lines.forget()

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._lines.program(number)
        self._symbols = self._programs.symbols(number)
        self._stacks = self._stacks_of.symbols(number)

    def state(self) -> object:
        """Each line stands for itself."""
        return None

    def restore(self, state: object) -> None:
        """Nothing to go on from."""

    def symbol(self, address: int) -> bytes:
        """The `%pS` text of an address, remembered."""
        text = self._symbols.get(address)
        if text is None:
            text = self._names.symbol_text(address)
            if self._options.sym_addr:
                text += b" <%016x>" % address
            if len(self._symbols) >= _CACHED:
                self._symbols.clear()
            self._symbols[address] = text
        return text

    def _string(self, data: bytes) -> bytes:
        """A string between quotes, remembered: many events have the same few."""
        text = self._names.quoted(data)
        if len(self._strings) >= _STRINGS:
            self._strings.clear()
        self._strings[data] = text
        return text

    def _prefix(self, thread_id: int) -> bytes:
        name = self._names.comm_text(thread_id)
        who = (name, thread_id, self._names.process(thread_id))
        options = self._options
        prefix = options.prefix % who[: 3 if options.tgid else 2]
        if self._names.comm(thread_id) is not None:  # else it may be known later
            self._prefixes[thread_id] = prefix
        return prefix

    # -- lines ----------------------------------------------------------------------------

    def places(self, event_id: int) -> int:
        """A probe's place, and where a return goes; the text of other events has none."""
        info = self._events[event_id]
        if info.source is not EventSource.PROBE or self._options.fields:
            return 0
        return 2 if info.returns else 1

    def line(self, event_id: int, thread_id: int, addresses: Sequence[int]) -> LineTemplate:
        """The line of an event in a thread at a place."""
        info = self._events[event_id]
        prefix = self._prefixes.get(thread_id) or self._prefix(thread_id)
        front = prefix.replace(b"%", b"%%") + self._options.time
        lasts = thread_id in self._prefixes
        if not addresses and (not info.attached or self._options.fields):
            return LineTemplate(front + b"%s\n", _TIME, self._whole(info, front), lasts)
        place = self.place(info, addresses).replace(b"%", b"%%")
        template = b"%s%s: (%s)%s\n" % (
            front,
            literal(info.name),
            place,
            b"".join(
                b" %s=%s" % (literal(column.name), argument_template(column))
                for column in info.columns
            ),
        )
        return LineTemplate(template, words_layout(info), self.completion(info), lasts)

    def place(self, info: EventInfo, addresses: Sequence[int]) -> bytes:
        """The text of an event's place, or of where it returns to and from.

        That of an event probe is the event that it stands on.
        """
        if info.attached:
            return info.attached.encode(errors="surrogateescape")
        if not info.symbolic:
            return b" <- ".join(b"0x%x" % address for address in reversed(addresses))
        if not info.returns:
            return self.symbol(addresses[0])
        return self.symbol(addresses[1]) + b" <- " + _function(self.symbol(addresses[0]))

    def _whole(self, info: EventInfo, front: bytes) -> Complete:
        """The completion of an event whose text is made as a whole.

        Args:
            info: the event.
            front: template of what stands in front of it. The frames of a kernel's program are an
                event of their own in the text, as they are in a kernel's.
        """
        make = more.text_maker(info, self.symbol, self._options, self._names, lambda: self._stacks)

        def complete(words: Words, data: bytes, position: int) -> Arguments:
            return words[0], make(data, position)

        def both(words: Words, data: bytes, position: int) -> Arguments:
            parts = make(data, position).split(b"\n" + more.USER_STACK, 1)
            between = b"\n" + front % words[0] + more.USER_STACK
            return words[0], between.join(parts)

        return both if info.source is EventSource.STACK and info.columns else complete

    def completion(self, info: EventInfo) -> Complete | None:
        """The completion of columns that `%` alone cannot print, None if it can."""
        first = 1  # behind the time
        strings: list[int] = []
        symbols: list[int] = []
        characters: list[int] = []
        floats: list[tuple[int, int]] = []
        typed: list[tuple[int, Callable[[bytes, int], bytes]]] = []
        for column in info.columns:
            words = range(first, first + column.words)
            first += column.words
            if is_typed(column):
                typed.append((words[0], self.typed(column)))
            elif column.type.is_string:
                strings += words
            elif column.type.kind is ValueKind.SYMBOL:
                symbols += words
            elif column.type.kind is ValueKind.CHAR:
                characters += words
            elif column.type.kind is ValueKind.FLOAT:
                floats += [(index, column.type.size) for index in words]
        if not (strings or symbols or characters or floats or typed):
            return None
        symbol, texts, text, shown = self.symbol, self._strings, self._string, self._names.shown

        def complete(words: Words, data: bytes, position: int) -> Arguments:
            out: list[int | bytes] = list(words)
            for index in strings:
                word = words[index]
                size = word >> 32
                if size:
                    start = position + (word & 0xFFFFFFFF)
                    found = data[start : start + size - 1]
                    out[index] = texts.get(found) or text(found)
                else:
                    out[index] = b"(fault)"
            for index in symbols:
                out[index] = symbol(words[index])
            for index in characters:
                out[index] = shown(b"%c" % words[index])
            for index, size in floats:
                out[index] = float_text(words[index], size).encode()
            for index, value in typed:
                out[index] = value(data, position)
            return out

        return complete

    def typed(self, column: Column) -> Callable[[bytes, int], bytes]:
        """Makes the text of a value whose type in the source is known."""
        from engine.trace.formats.typed import placed, typed_text  # few events have types

        return typed_text(column, lambda address: placed(self.symbol(address)))


def is_typed(column: Column) -> bool:
    """True for a value that is shown in another way than the kernel's."""
    return column.form is not None and column.form.kind is not FormKind.NUMBER


def _with_tgid(legend: bytes) -> bytes:
    """The legend with a column for the process (print_func_help_header_irq)."""
    *rules, names, bars = legend.splitlines(keepends=True)
    wider = [line[:29] + b" " * 10 + line[29:] for line in rules]
    named = names[:22] + b"     TGID   " + names[24:]
    return b"".join((*wider, named, bars[:22] + b"       |    " + bars[24:]))


def literal(text: str) -> bytes:
    """A name as a part of a `%` template."""
    return escaped(text).encode().replace(b"%", b"%%")


def argument_template(column: Column) -> bytes:
    """The template of an argument's value (the PRINT_TYPE functions of trace_probe.c)."""
    one = b"%s" if is_typed(column) else trace_conversion(column.type)
    return b"{" + b",".join([one] * column.words) + b"}" if column.type.count else one


def _function(symbol: bytes) -> bytes:
    """The symbol without its offset and size."""
    name, plus, _ = symbol.rpartition(b"+0x")
    return name if plus else symbol
