"""Text as ftrace's function_graph tracer prints it (kernel/trace/trace_functions_graph.c, 6.18).

Where a guest differs from a kernel: one CPU, and a clock that counts, so times and durations are
integers without a unit and there are no marks for long ones. A call that was left without a
return (which a kernel's functions never are) ends with `} /* NAME left */`.

Whether a call is a leaf is known from the row behind it, so the last call stays back until then.
"""

import struct
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST, ValueKind
from engine.errors import CommandError
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.ftrace import FtraceFormat, argument_template, literal
from engine.trace.formats.typed import function_name, placed, typed_arguments, typed_text
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import HEAD, Column, EventInfo, EventTable, FormKind, whole

OPTIONS: Final = {
    "funcgraph-abstime": False,
    "funcgraph-args": False,
    "funcgraph-cpu": True,
    "funcgraph-duration": True,
    "funcgraph-proc": False,
    "funcgraph-retaddr": False,
    "funcgraph-retval": False,
    "funcgraph-retval-hex": False,
    "funcgraph-tail": False,
}
"""Trace options of the tracer and whether they are on at first."""

_NO_DURATION: Final = b"              |  "
_RULE: Final = b" ------------------------------------------\n"
_DEPTHS: Final = 50
"""Depths up to which a return's name is known from its call (FTRACE_RETFUNC_DEPTH)."""
_PROC: Final = 14
_CACHED: Final = 1 << 16
_ERRORS: Final = 4095

_ENTRY: Final = struct.Struct("<8xQQQQ").unpack_from
_EXIT: Final = struct.Struct("<8xQQQQQQQ").unpack_from

Arguments = Callable[[bytes, int], bytes]
"""The text of the arguments of the entry at a position, parentheses included."""

Result = Callable[[bytes, int, int], bytes]
"""The text of a returned value: of the exit at a position, and by the value in it."""

_Entry = tuple[int, int, int, int, int, bytes]
"""Thread, time, function, depth, parent, arguments."""


class GraphFormat:
    """ftrace's function_graph text."""

    name: ClassVar[str] = "function_graph"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, which may still grow.

        Raises:
            CommandError: there is no such trace option.
        """
        self._events = events
        self._names = names
        self._on = chosen(OPTIONS, options)
        self._plain = FtraceFormat(events, names)
        self._kinds: dict[int, tuple[bool, bool, Arguments, Result]] = {}
        self._programs: ByProgram[tuple[bytes, bytes]] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._held: _Entry | None = None
        self._open: dict[int, int] = {}
        self._depth = 0
        self._thread = -1
        self._procs: dict[int, bytes] = {}

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The tracer and the columns."""
        on = self._on
        first, second = b"#", b"#"
        if on["funcgraph-abstime"]:
            first, second = first + b"     TIME       ", second + b"      |         "
        if on["funcgraph-cpu"]:
            first, second = first + b" CPU", second + b" |  "
        if on["funcgraph-proc"]:
            first, second = first + b"  TASK/PID       ", second + b"   |    |        "
        if on["funcgraph-duration"]:
            first, second = first + b"  DURATION   ", second + b"   |   |      "
        first += b"               FUNCTION CALLS\n"
        second += b"               |   |   |   |\n"
        return b"# tracer: function_graph\n#\n" + first + second

    def rows(self, data: bytes) -> bytes:
        """Lines for the rows, but for a call whose end is not known yet."""
        out: list[bytes] = []
        kinds, position, end = self._kinds, 0, len(data)
        head = HEAD.unpack_from
        while position < end:
            event_id, words, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            entry, leaves, arguments, result = kinds.get(event_id) or self._kind(event_id)
            held = self._held
            if entry:
                if held is not None:
                    out.append(self._nested(held))
                self._held = (thread, *_ENTRY(data, position), arguments(data, position))
            elif leaves:
                time, function, _, depth, began, left, retval = _EXIT(data, position)
                leaf = (
                    held is not None
                    and not left & 1
                    and held[0] == thread
                    and held[2] == function
                    and held[3] == depth & 0xFFFFFFFF
                )
                value = result(data, position, retval)
                if leaf and held is not None:
                    out.append(self._leaf(held, time - began, value))
                else:
                    if held is not None:
                        out.append(self._nested(held))
                    out.append(self._end(thread, time, function, depth, began, left, value))
                self._held = None
            else:
                if held is not None:
                    out.append(self._nested(held))
                    self._held = None
                out.append(self._comment(thread, data[position : position + words * 8]))
            position += words * 8
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """As trace_pipe prints it before the next event."""
        return self.end() + b"CPU:0 [LOST %d EVENTS]\n" % count

    def end(self) -> bytes:
        """The call that was held back."""
        held, self._held = self._held, None
        return b"" if held is None else self._nested(held)

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._procs.pop(thread_id, None)
        self._plain.renamed(thread_id)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)
        self._plain.program(number)

    def state(self) -> object:
        """The call that is held back, the open ones, and where the last line stood."""
        held = self._held
        return [
            None if held is None else [*held[:5], held[5].decode("latin-1")],
            list(self._open.items()),
            self._depth,
            self._thread,
        ]

    def restore(self, state: object) -> None:
        """Go on within the same calls."""
        held, opened, depth, thread = cast("tuple[Any, Any, Any, Any]", state)
        self._held = None
        if held is not None:
            one, time, function, deep, parent, arguments = held
            numbers = int(one), int(time), int(function), int(deep), int(parent)
            self._held = (*numbers, str(arguments).encode("latin-1"))
        self._open = {int(key): int(value) for key, value in opened}
        self._depth, self._thread = int(depth), int(thread)

    # -- lines ----------------------------------------------------------------------------

    def _nested(self, entry: _Entry) -> bytes:
        thread, time, function, depth, parent, arguments = entry
        self._depth = depth
        if depth < _DEPTHS:
            self._open[depth] = function
        front = self._prologue(thread, time)
        if self._on["funcgraph-duration"]:
            front += _NO_DURATION
        name = self._symbol(function)[0]
        text = front + b"  " * depth + name + arguments + b" {"
        if self._on["funcgraph-retaddr"]:
            text += b" /* <-%s */" % self._symbol(parent)[1]
        return text + b"\n"

    def _leaf(self, entry: _Entry, duration: int, value: bytes) -> bytes:
        thread, time, function, depth, parent, arguments = entry
        self._depth = depth - 1
        self._open.pop(depth, None)
        name = self._symbol(function)[0]
        text = self._prologue(thread, time) + self._duration(duration)
        text += b"  " * depth + name + arguments + b";"
        notes = b""
        if self._on["funcgraph-retaddr"]:
            notes = b" <-" + self._symbol(parent)[1]
        if self._on["funcgraph-retval"]:
            notes += value
        return text + (b" /*%s */\n" % notes if notes else b"\n")

    def _end(
        self,
        thread: int,
        time: int,
        function: int,
        depth: int,
        began: int,
        left: int,
        value: bytes,
    ) -> bytes:
        depth &= 0xFFFFFFFF
        self._depth = depth - 1
        matches = depth >= _DEPTHS or self._open.pop(depth, None) == function
        text = self._prologue(thread, time) + self._duration(time - began) + b"  " * depth
        name = self._symbol(function)[0]
        if left & 1:
            return text + b"} /* %s left */\n" % name
        if self._on["funcgraph-retval"]:
            return text + b"} /* %s%s */\n" % (name, value)
        if self._on["funcgraph-tail"] or not matches:
            return text + b"} /* %s */\n" % name
        return text + b"}\n"

    def _comment(self, thread: int, row: bytes) -> bytes:
        """Write an event that came in the middle of the calls."""
        line = self._plain.rows(row).rstrip(b"\n")
        skip = len(b"%16s-%-7d [000]" % (self._names.comm_text(thread), thread))
        text = line[line.find(b": ", skip) + 2 :]
        front = self._prologue(thread, struct.unpack_from("<8xQ", row)[0])
        if self._on["funcgraph-duration"]:
            front += _NO_DURATION
        indent = b"  " * (self._depth + 1) if self._depth > 0 else b""
        return front + indent + b"/* %s */\n" % text

    # -- parts of a line ------------------------------------------------------------------

    def _prologue(self, thread: int, time: int) -> bytes:
        on, text = self._on, b""
        if thread != self._thread:
            text = self._other_thread(thread)
        if on["funcgraph-abstime"]:
            text += b"%12d |  " % time
        if on["funcgraph-cpu"]:
            text += b" 0) "
        if on["funcgraph-proc"]:
            text += self._proc(thread) + b" | "
        return text

    def _other_thread(self, thread: int) -> bytes:
        before, self._thread = self._thread, thread
        if before < 0:
            return b""
        change = b" 0) %s => %s\n" % (self._proc(before), self._proc(thread))
        return _RULE + change + _RULE + b"\n"

    def _proc(self, thread: int) -> bytes:
        found = self._procs.get(thread)
        if found is None:
            comm = self._names.comm(thread)
            text = b"%s-%d" % (b"<...>" if comm is None else self._names.shown(comm[:7]), thread)
            spaces = max(_PROC - len(text), 0)
            found = b" " * (spaces // 2) + text + b" " * (spaces - spaces // 2)
            self._procs[thread] = found
        return found

    def _duration(self, ticks: int) -> bytes:
        return b"  %-12d|  " % ticks if self._on["funcgraph-duration"] else b""

    def _value(self, data: bytes, position: int, value: int) -> bytes:
        """A returned value; what looks like an error's number is shown as one."""
        if not self._on["funcgraph-retval-hex"]:
            signed = value - (1 << 32) if value >> 31 == 1 else value - (1 << 64)
            if value and -_ERRORS <= signed < 0:
                return b" ret=%d" % signed
        return b" ret=0x%x" % value

    def _symbol(self, address: int) -> tuple[bytes, bytes]:
        """A symbol's name, and with the offset; remembered."""
        found = self._symbols.get(address)
        if found is None:
            text = self._names.symbol_text(address)
            name, plus, _ = text.rpartition(b"+0x")
            name = name if plus else text
            if not self._names.exact:
                name = self._names.shown(function_name(name.decode()).encode())
            if len(self._symbols) >= _CACHED:
                self._symbols.clear()
            found = self._symbols[address] = (name, text)
        return found

    # -- events ---------------------------------------------------------------------------

    def _kind(self, event_id: int) -> tuple[bool, bool, Arguments, Result]:
        info = self._events[event_id]
        arguments = argument_text(info, 2, self._place) if is_entry(info) else no_arguments
        result: Result = self._value
        form = info.columns[-1].form if is_exit(info) else None
        if form is not None:
            result = self._typed(info.columns[-1])
        kind = is_entry(info), is_exit(info), arguments, result
        self._kinds[event_id] = kind
        return kind

    def _typed(self, column: Column) -> Result:
        """Makes the text of a value whose type is known."""
        assert column.form is not None, "asked for before"
        if column.form.kind is FormKind.NOTHING:
            return lambda data, position, value: b""
        if self._on["funcgraph-retval-hex"] and column.form.kind is not FormKind.TEXT:
            mask = (1 << 8 * column.type.size) - 1
            return lambda data, position, value: b" ret=0x%x" % (value & mask)
        text = typed_text(column, self._place)
        return lambda data, position, value: b" ret=" + text(data, position)

    def _place(self, address: int) -> bytes:
        """The symbol of an address as debuggers write it: "main+4"; b"" where there is none."""
        return placed(self._symbol(address)[1])


def chosen(known: dict[str, bool], options: Collection[str]) -> dict[str, bool]:
    """Trace options: "NAME" switches one on, "noNAME" off.

    Raises:
        CommandError: there is no such option.
    """
    found = dict(known)
    for option in options:
        if option in found:
            found[option] = True
        elif option.startswith("no") and option[2:] in found:
            found[option[2:]] = False
        else:
            raise CommandError(f"no trace option {option}; there is {', '.join(known)}")
    return found


def no_arguments(data: bytes, position: int) -> bytes:
    """The text where none were recorded."""
    return b"()"


def argument_text(info: EventInfo, skip: int, place: Callable[[int], bytes]) -> Arguments:
    """Makes the text of a function's arguments from those behind the first columns.

    Signed numbers are decimal, all others hexadecimal (print_function_args of trace_output.c);
    where their types in the source are known, they are as debuggers show them.

    Args:
        info: the event.
        skip: how many columns stand in front.
        place: the symbol of an address, b"" for none.
    """
    columns = info.columns[skip:]
    if not columns:
        return no_arguments
    if any(column.form is not None for column in columns):
        return typed_arguments(columns, place)
    template = b"(%s)" % b", ".join(
        b"%s=%s" % (literal(column.name), _template(column)) for column in columns
    )
    code = "".join(column.code for column in columns)
    unpack = struct.Struct(f"<{columns[0].word * 8}x{code}").unpack_from

    def text(data: bytes, position: int) -> bytes:
        return template % unpack(data, position)

    return text


def _template(column: Column) -> bytes:
    signed = column.type.kind is ValueKind.SIGNED
    return argument_template(column) if signed else b"0x%x"
