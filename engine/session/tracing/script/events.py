"""Events of a trace that record what actions of a script read: one for each place of a probe.

A capture becomes an argument of the event, in the words of `uprobe_events`; a tracepoint has its
own fields. What no argument can hold is read from memory while the guest stands at the hit.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, field

from engine.arch.program import RETURN_HEAD, ROW_HEAD
from engine.errors import ProbeError, ProbeSyntaxError
from engine.linux.clock import BLOCK_NS
from engine.session.protocol.requests import ProbeRequest
from engine.session.tracing.script.memory_values import memory_value
from engine.session.tracing.script.places import (
    CODE,
    RAW,
    RAW_EVENTS,
    RETURNS,
    WATCHES,
    AttachedPlace,
)
from engine.session.tracing.tracing import Tracing
from engine.trace import syscalls
from engine.trace.bpftrace.captures import PC, Capture, RowReads
from engine.trace.bpftrace.types import (
    Array,
    Boolean,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    Structure,
    TextType,
    Type,
)
from engine.trace.rows import Column, EventInfo, string_at, unpacker
from engine.trace.tracepoints import Selection

GROUP: Final = "script"
"""Group of the events, which nobody sees."""
_MOST: Final = 64
"""Elements of an argument that is an array (MAX_ARRAY_LEN)."""
_WORD: Final = 64


class UncapturedError(ProbeError):
    """A value that no argument of an event can hold; its text says why."""


class ScriptEvent(Struct, frozen=True):
    """An event whose hits run an action.

    Attributes:
        info: of its rows.
        reads: how they are read.
        at_once: its rows are taken while the guest stands at the hit.
    """

    info: EventInfo
    reads: RowReads
    at_once: bool


class Wish(Struct, frozen=True):
    """The wishes of an action for the events of its probe.

    Attributes:
        captures: of its rows.
        needs_memory: it reads memory while the guest stands at the hit.
        needs_stack: it wants the call stack.
    """

    captures: Sequence[Capture]
    needs_memory: bool = False
    needs_stack: bool = False


class _Read(Struct):
    """The arguments of one place's event, and the reading of them.

    Attributes:
        words: arguments of the definition.
        values: expressions; "{}" stands for the number of the argument's first word in `w`.
        names: that they use.
        at_once: one reads memory.
    """

    words: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    at_once: bool = False


class ScriptEvents:
    """Makes the events of a script."""

    def __init__(
        self,
        tracing: Tracing,
        memory: dict[str, Any],
        clock: list[int],
        *,
        skips: bool,
        as_linux: bool = False,
        nofault: bool = False,
    ) -> None:
        """Begin without any.

        Args:
            tracing: the trace.
            memory: the functions "string" and "bytes", which read memory at a hit.
            clock: nanoseconds that the time of a row is ahead of its ticks.
            skips: a place where no probe may stand is left out, and told of.
            as_linux: probes stand wherever Linux lets them, even where that corrupts the program.
            nofault: memory is read as BPF may, which does not wait for a page.
        """
        self._nofault = nofault
        self._tracing = tracing
        self._arch = tracing.session.arch
        self._memory = memory
        self._clock = clock
        self._skips = skips
        self._bang = "!" if as_linux else ""
        self._count = 0
        self.skipped: list[str] = []
        probes = self._arch.probes
        self._names = {whole: short for short, whole in probes.fetch_registers.items()}

    def of(self, place: AttachedPlace, wish: Wish) -> Iterator[ScriptEvent]:
        """The events at a place of a probe.

        Raises:
            ProbeError: no probe may stand there, or something cannot be recorded.
        """
        provider = place.point.provider
        if provider in CODE or provider == "usdt":
            event = self._in_code(place, wish)
            if event is not None:
                yield event
        elif provider in WATCHES:
            yield self._watching(place, wish)
        else:
            yield from self._of_kernel(place, wish)

    # -- code -----------------------------------------------------------------------------

    def _in_code(self, place: AttachedPlace, wish: Wish) -> ScriptEvent | None:
        where = place.place
        assert where is not None, "it is in code"
        read = _Read()
        for capture in wish.captures:
            self._capture(capture, place, read)
        is_return = place.point.provider in RETURNS
        self._count += 1
        name = f"p{self._count}"
        if place.point.provider in ("uprobe", "uretprobe", "usdt"):
            counter = place.marker.counter if place.marker is not None else 0
            spot = f"{where.path}:{where.file_offset or 0:#x}"
            spot += f"({counter:#x})" if counter else ""
        else:
            spot = f"{where.symbol}+{where.offset:#x}" if where.offset else str(where.symbol)
        letter = "r" if is_return else "p"
        try:
            line = " ".join((f"{self._bang}{letter}:{GROUP}/{name}", spot, *read.words))
            self._tracing.definitions.define(line)
        except ProbeError as error:
            if not self._skips and not place.of_pattern:
                raise
            why = f"{error.text} {error.why}" if isinstance(error, ProbeSyntaxError) else error
            self.skipped.append(f"{place.point.text}: {why}")
            return None
        info = self._tracing.info(GROUP, name)
        return self._made(info, read, wish, place, self._arguments(info, read))

    def _arguments(self, info: EventInfo, read: _Read) -> list[str]:
        """The expressions with the places of the arguments worked in."""
        columns = {column.name: column for column in info.columns}
        return [
            text.replace("{}", str(_index(info, columns[f"c{at}"])) if f"c{at}" in columns else "")
            for at, text in enumerate(read.values)
        ]

    def _capture(self, capture: Capture, place: AttachedPlace, read: _Read) -> None:
        """Add an argument for a capture."""
        name = f"c{len(read.values)}"
        body, kind = self._base(capture, place)
        fetched, offsets = _fetched(capture.type), capture.offsets
        if self._nofault and offsets and isinstance(capture.type, TextType | Integer):
            fetched = None  # a row's values are read as those of uprobe_events, which may wait
        in_memory = fetched is None
        if fetched is None:
            if not offsets:
                raise UncapturedError(f"{place.point.text}: {capture.name} is no number")
            # The address is recorded; what is there is read while the guest stands at the hit.
            text = memory_value(f"(w[{{}}] + {offsets[-1]})", capture.type)
            fetched, offsets = ("u64", text), offsets[:-1]
            read.names.update(self._memory)
            read.at_once = True
        for offset in offsets:
            body, kind = f"{offset:+d}({body})", ""
        word, expression = fetched
        if kind:
            word = kind
            if not in_memory:
                expression = _converted("w[{}]", kind, capture.type)
        read.names.update(string_at=string_at)
        read.words.append(f"{name}={body}:{word}")
        read.values.append(expression)

    def _base(self, capture: Capture, place: AttachedPlace) -> tuple[str, str]:
        """Body of an argument, and its type where that is the place's own."""
        if capture.base == "argument":
            return self._argument(int(capture.name)), ""
        if capture.base == "return":
            return "$retval", ""
        if capture.base == "register":
            names = self._arch.probes.fetch_registers
            called = self._arch.roles.pc if capture.name == PC else capture.name
            name = called if called in names else self._names.get(called, "")
            if not name:
                raise UncapturedError(f"'{capture.name}' is not a valid register")
            return f"%{name}", ""
        if capture.base == "marker":
            assert place.marker is not None, "it is a marker's"
            return place.marker.fetch(int(capture.name) + 1, self._arch)
        return capture.name, ""

    def _argument(self, number: int) -> str:
        """The body of an argument by the calling convention."""
        registers = self._arch.probes.arguments
        if number < len(registers):
            return f"%{self._names[registers[number]]}"
        above = 8 * (number - len(registers)) + (8 if self._arch.roles.link is None else 0)
        return f"+{above}(%{self._names[self._arch.roles.sp]})"

    # -- events without probes ------------------------------------------------------------

    def _of_kernel(self, place: AttachedPlace, wish: Wish) -> Iterator[ScriptEvent]:
        group, name = place.point.target, place.point.function
        tracing = self._tracing
        if group == RAW:
            prefix = syscalls.ENTER if name == RAW_EVENTS[0] else syscalls.EXIT
            names = sorted(
                {syscalls.event_name(call) for call in self._arch.linux.syscalls.values()}
            )
            wanted = [(syscalls.GROUP, prefix + each) for each in names]
        else:
            wanted = [(group, name)]
        for key in wanted:
            if key not in tracing.infos:
                try:
                    tracing.unplaced.choose(Selection(*key))
                except ProbeError:
                    if group != RAW:
                        raise
                    continue  # a call whose arguments nobody knows
            yield self._of_info(tracing.infos[key], place, wish, raw=group == RAW)

    def _watching(self, place: AttachedPlace, wish: Wish) -> ScriptEvent:
        address, size = place.point.address or 0, place.point.length
        tracing = self._tracing
        before = set(tracing.infos)
        tracing.definitions.place(ProbeRequest(watches=(f"{address:#x},{size}",)))
        key = next(each for each in tracing.infos if each not in before)
        return self._of_info(tracing.infos[key], place, wish, raw=False)

    def _of_info(
        self, info: EventInfo, place: AttachedPlace, wish: Wish, *, raw: bool
    ) -> ScriptEvent:
        columns = {column.name: column for column in info.columns}
        read = _Read(names={"string_at": string_at, **self._memory})
        for capture in wish.captures:
            if capture.base != "field":
                raise UncapturedError(
                    f"{place.point.text}: it has no {capture.base} {capture.name}"
                )
            if raw:
                value = _raw_value(info, capture)
            else:
                column = columns.get(capture.name)
                if column is None:
                    raise UncapturedError(f"{place.point.text}: it has no field {capture.name}")
                value = _column_value(info, column, capture)
            for offset in capture.offsets[:-1]:
                value = f"number_at({value} + {offset})"
            if capture.offsets:
                value = memory_value(f"({value} + {capture.offsets[-1]})", capture.type)
            read.values.append(value)
        return self._made(info, read, wish, place, read.values)

    def _made(
        self, info: EventInfo, read: _Read, wish: Wish, place: AttachedPlace, values: Sequence[str]
    ) -> ScriptEvent:
        controls = self._tracing.controls
        at_once = wish.needs_memory or read.at_once or place.place is None
        if at_once:
            controls.at_once.add(info.id)
        if wish.needs_stack and not controls.of(info).triggers:
            controls.add_trigger(info, "stacktrace")
        reads = RowReads(
            unpacker(info),
            f"(w[0] * {BLOCK_NS} + clock[0])",
            tuple(values),
            {**read.names, "clock": self._clock},
            place.point.text.encode(errors="surrogateescape"),
        )
        return ScriptEvent(info, reads, at_once)


def _index(info: EventInfo, column: Column) -> int:
    """The number of a column's first word in an unpacked row."""
    return column.word - ROW_HEAD + 2 if not info.returns else column.word - RETURN_HEAD + 3


def _fetched(kind: Type) -> tuple[str, str] | None:
    """The type of an argument for a value, and the expression that reads it; None if too big."""
    if isinstance(kind, TextType):
        return "ustring", f"(string_at(data, pos, w[{{}}]) or b'')[:{max(kind.size - 1, 0)}]"
    if isinstance(kind, Integer):
        return _number_word(kind), "w[{}]"
    if isinstance(kind, Enumeration):
        return _number_word(kind.integer), "w[{}]"
    if isinstance(kind, Boolean):
        return "u8", "(w[{}] != 0)"
    if isinstance(kind, Pointer):
        return "u64", "w[{}]"
    if isinstance(kind, BufferType | Structure) and 0 < kind.size <= _MOST:
        return f"x8[{kind.size}]", f"bytes(w[{{}}:{{}} + {kind.size}])"
    if isinstance(kind, Array) and isinstance(kind.element, Integer) and 0 < kind.count <= _MOST:
        return f"{_number_word(kind.element)}[{kind.count}]", f"w[{{}}:{{}} + {kind.count}]"
    return None


def _number_word(kind: Integer) -> str:
    return f"{'s' if kind.signed else 'u'}{kind.bits}"


def _converted(text: str, word: str, kind: Type) -> str:
    """An expression for a number of another type than the argument's own."""
    if isinstance(kind, Enumeration):
        kind = kind.integer
    if isinstance(kind, Integer):
        return text if word == _number_word(kind) else wrapped(text, kind)
    if isinstance(kind, Pointer):
        return f"({text} & {(1 << _WORD) - 1:#x})" if word.startswith("s") else text
    return f"({text} != 0)" if isinstance(kind, Boolean) else text


def wrapped(text: str, kind: Integer) -> str:
    """An expression for a number inside the range of a type."""
    mask, half = (1 << kind.bits) - 1, 1 << kind.bits - 1
    if not kind.signed:
        return f"({text} & {mask:#x})"
    return f"(({text} + {half:#x} & {mask:#x}) - {half:#x})"


def _column_value(info: EventInfo, column: Column, capture: Capture) -> str:
    """A field of an event; an address where something behind it is wanted."""
    text = f"w[{_index(info, column)}]"
    if column.type.is_string:
        size = capture.type.size if isinstance(capture.type, TextType) else _WORD
        return f"(string_at(data, pos, {text}) or b'')[:{max(size - 1, 0)}]"
    return text if capture.offsets else _converted(text, "", capture.type)


def _raw_value(info: EventInfo, capture: Capture) -> str:
    """A field of raw_syscalls: the number of the call, its arguments, or what it gives."""
    if capture.name == "id":
        return _converted("w[2]", "", capture.type)
    if capture.name == "ret":
        return _converted("w[3]", "s64", capture.type)
    if capture.name != "args":
        raise UncapturedError(f"{RAW}: it has no field {capture.name}")
    words = [f"w[{_index(info, column)}]" for column in info.columns if not column.type.is_string][
        1:7
    ]
    words += ["0"] * (6 - len(words))
    return f"({', '.join(words)})"
