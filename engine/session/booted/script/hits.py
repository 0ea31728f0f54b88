"""Readers of hits in a booted kernel: registers, memory, records of events.

An action runs while the machine stands at the hit, so nothing is recorded first. `w[0]` is the
time, `w[1]` the address, and the words behind them are what the place asks for: registers, the
address of an event's record, or what a system call is given or gives.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from engine.errors import ProbeError
from engine.image.kernel.eventfields import EventField
from engine.machine.machine import BareMachine
from engine.session.booted.event_hits import ARGUMENTS, AX, ORIG_AX
from engine.session.booted.kernel_events import LOCATIONS
from engine.session.booted.script.kernel_points import RETURNS, KernelPoint
from engine.session.booted.script.kernel_types import KernelTypes
from engine.session.booted.script.program_points import ARGUMENT_REGISTERS, ProgramSite
from engine.session.tracing.script.events import wrapped
from engine.session.tracing.script.memory_values import memory_value
from engine.trace.bpftrace.captures import Capture, RowReads
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.bpftrace.types import (
    INT64,
    Boolean,
    Enumeration,
    Integer,
    Type,
)

_FIRST: Final = 2
"""Words of a hit in front of those that its place asks for."""
_MASK: Final = (1 << 64) - 1


class UnreadableError(ProbeError):
    """A value that cannot be had at a place; its text says why."""


class HitReads(Struct, frozen=True):
    """The readers of the hits of one place.

    Attributes:
        reads: for the action.
        entry: reads at the entry of a function what the action at its return asks for; None
            where it asks for nothing.
    """

    reads: RowReads
    entry: Callable[[], tuple[int, ...]] | None = None


class _HitWords(Struct):
    """The words of a place's hits, by what they are.

    Attributes:
        registers: that were read at the hit.
        arguments: numbers of those that were read at the function's entry.
        given: words that a hit is given in front of these.
    """

    registers: list[str] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    given: int = 0

    def register(self, name: str) -> str:
        """The expression of a register at the hit."""
        if name not in self.registers:
            self.registers.append(name)
        return f"w[{_FIRST + self.registers.index(name)}]"

    def at_entry(self, number: int) -> str:
        """The expression of an argument that was read at the function's entry."""
        if number not in self.arguments:
            self.arguments.append(number)
        return f"data[{self.given + self.arguments.index(number)}]"


class HitReader:
    """Makes the readers of a machine's hits."""

    def __init__(
        self,
        machine: BareMachine,
        types: KernelTypes,
        memory: dict[str, Any],
    ) -> None:
        """Take a machine.

        Args:
            machine: which stands whenever something is read.
            types: of the kernel.
            memory: the functions "string_in", "number_at" and "bytes_at".
        """
        self._clock, self._cpu = machine.clock, machine.cpu
        self._types = types
        self._memory = memory
        self._number = memory["number_at"]
        self._stack = machine.cpu.reader(("rsp",))

    # -- code -----------------------------------------------------------------------------

    def in_code(self, place: KernelPoint, address: int, captures: Sequence[Capture]) -> HitReads:
        """The readers of a probe in code.

        Args:
            place: of it.
            address: that its hits have.
            captures: what its action asks for.

        Raises:
            UnreadableError: one of them cannot be had.
        """
        point, words = place.point, _HitWords()
        is_return = point.provider in RETURNS
        values = [self._in_code(point, each, words, is_return=is_return) for each in captures]
        clock, read = self._clock, self._cpu.reader(tuple(words.registers))

        def unpack(data: Any, position: int) -> tuple[int, ...]:
            return (clock.now, address, *read())

        reads = self._reads(point, unpack, values)
        return HitReads(reads, self._entry(words.arguments) if words.arguments else None)

    def in_program(
        self, place: KernelPoint, site: ProgramSite, captures: Sequence[Capture]
    ) -> HitReads:
        """The readers of a probe in programs, whose hits are given their address.

        Raises:
            UnreadableError: a value cannot be had there.
        """
        point, words = place.point, _HitWords(given=1)
        is_return = point.provider in RETURNS
        values = [
            self._of_marker(point, site, each, words)
            if each.base == "marker"
            else self._in_code(point, each, words, is_return=is_return)
            for each in captures
        ]
        clock, read = self._clock, self._cpu.reader(tuple(words.registers))

        def unpack(data: tuple[int, ...], position: int) -> tuple[int, ...]:
            return (clock.now, data[0], *read())

        reads = self._reads(point, unpack, values)
        return HitReads(reads, self._entry(words.arguments) if words.arguments else None)

    def _of_marker(
        self, point: AttachPoint, site: ProgramSite, capture: Capture, words: _HitWords
    ) -> str:
        """The expression of a marker's argument."""
        number = int(capture.name)
        if number >= len(site.operands):
            raise UnreadableError(f"{point.text}: it has {len(site.operands)} arguments")
        one = site.operands[number]
        if one.problem:
            raise UnreadableError(f"{point.text}: {one.text}: {one.problem}")
        if not one.memory:
            text = words.register(one.base) if one.base else str(one.number)
            text = f"({text} >> {8 * one.first})" if one.first else text
            return _followed(wrapped(text, Integer(8 * one.size, one.signed)), capture)
        parts = [str(one.number)]
        if one.base:
            parts.append(words.register(one.base))
        if one.index:
            parts.append(f"{words.register(one.index)} * {one.scale}")
        if one.symbol:
            found = self._types.program_symbol(site.path, one.symbol)
            if found is None or not one.relative:
                raise UnreadableError(f"{point.text}: {one.text}: its address is not known")
            parts.append(f"w[1] + {found - site.link}")
        address = f"({' + '.join(parts)} & {_MASK:#x})"
        return _followed(f"number_at({address}, {one.size}, {one.signed})", capture)

    def _entry(self, numbers: Sequence[int]) -> Callable[[], tuple[int, ...]]:
        read, stack, number_at = self._cpu.reader(ARGUMENT_REGISTERS), self._stack, self._number

        def entry() -> tuple[int, ...]:
            registers = read()
            above = stack()[0] + 8 * (1 - len(ARGUMENT_REGISTERS))
            return tuple(
                registers[each] if each < len(ARGUMENT_REGISTERS) else number_at(above + 8 * each)
                for each in numbers
            )

        return entry

    def _in_code(
        self, point: AttachPoint, capture: Capture, words: _HitWords, *, is_return: bool
    ) -> str:
        number: int | None = None
        if capture.base == "return":
            return _followed(words.register("rax"), capture)
        if capture.base == "register":
            return _followed(words.register(self._register(capture.name)), capture)
        if capture.base == "argument":
            number = int(capture.name)
        elif capture.base == "field":
            number = self._types.argument_place(point, capture.name)
        if number is None:
            raise UnreadableError(f"{point.text}: it has no {capture.base} {capture.name}")
        if is_return:
            return _followed(words.at_entry(number), capture)
        return _followed(_argument(number, words), capture)

    def _register(self, name: str) -> str:
        found = self._types.register(name)
        if found is None:
            raise UnreadableError(f"'{name}' is not a valid register")
        return found

    # -- the kernel's events --------------------------------------------------------------

    def of_raw(self, place: KernelPoint, address: int, captures: Sequence[Capture]) -> HitReads:
        """The readers of what a tracepoint hands over; its function has one argument more."""
        point, words, values = place.point, _HitWords(), list[str]()
        for capture in captures:
            number = self._types.argument_place(point, capture.name)
            if capture.base == "argument":
                number = int(capture.name)
            if number is None:
                raise UnreadableError(f"{point.text}: it has no argument {capture.name}")
            values.append(_followed(_argument(number + 1, words), capture))
        clock, read = self._clock, self._cpu.reader(tuple(words.registers))

        def unpack(data: Any, position: int) -> tuple[int, ...]:
            return (clock.now, address, *read())

        return HitReads(self._reads(point, unpack, values))

    def of_record(
        self,
        place: KernelPoint,
        address: int,
        captures: Sequence[Capture],
        fields: Sequence[EventField],
    ) -> HitReads:
        """The readers of an event's record, whose address an action is given."""
        by_name = {each.name: each for each in fields}
        values = [self._of_field(place.point, each, by_name) for each in captures]
        clock = self._clock

        def unpack(data: int, position: int) -> tuple[int, ...]:
            return clock.now, address, data

        return HitReads(self._reads(place.point, unpack, values))

    def _of_field(
        self, point: AttachPoint, capture: Capture, fields: dict[str, EventField]
    ) -> str:
        found = fields.get(capture.name) if capture.base == "field" else None
        if found is None:
            raise UnreadableError(f"{point.text}: it has no {capture.base} {capture.name}")
        at = f"(w[2] + {found.offset})"
        if found.ctype.startswith(LOCATIONS):
            behind = found.offset + 4 if found.ctype.startswith(LOCATIONS[1]) else 0
            return _followed(f"(w[2] + {behind} + (number_at({at}, 4) & 0xffff))", capture)
        if not capture.offsets:
            return memory_value(at, capture.type)
        kind = self._types.field_type(found) or INT64
        return _followed(memory_value(at, kind), capture)

    def of_enter(
        self,
        place: KernelPoint,
        address: int,
        captures: Sequence[Capture],
        names: Sequence[str],
        *,
        raw: bool,
    ) -> HitReads:
        """The readers of a system call that begins: its number and its arguments are words."""
        values = []
        for capture in captures:
            if raw and capture.name == "args":
                values.append("w[3:9]")
            elif capture.name in ("id", "__syscall_nr"):
                values.append(_followed("w[2]", capture))
            elif capture.name in names:
                values.append(_followed(f"w[{3 + names.index(capture.name)}]", capture))
            else:
                raise UnreadableError(f"{place.point.text}: it has no field {capture.name}")
        clock = self._clock

        def unpack(data: tuple[int, ...], position: int) -> tuple[int, ...]:
            return (clock.now, address, data[ORIG_AX], *[data[each] for each in ARGUMENTS])

        return HitReads(self._reads(place.point, unpack, values))

    def of_exit(self, place: KernelPoint, address: int, captures: Sequence[Capture]) -> HitReads:
        """The readers of a system call that ends."""
        numbers = {"id": "w[2]", "__syscall_nr": "w[2]", "ret": "w[3]"}
        values = []
        for capture in captures:
            if capture.name not in numbers:
                raise UnreadableError(f"{place.point.text}: it has no field {capture.name}")
            values.append(_followed(numbers[capture.name], capture))
        clock = self._clock

        def unpack(data: tuple[int, ...], position: int) -> tuple[int, ...]:
            return clock.now, address, data[ORIG_AX], data[AX]

        return HitReads(self._reads(place.point, unpack, values))

    # -- without a place ------------------------------------------------------------------

    def nowhere(self, point: AttachPoint) -> RowReads:
        """The readers of an action that stands nowhere: a timer's, begin's and end's."""
        clock = self._clock
        return self._reads(point, lambda data, position: (clock.now, 0), ())

    def _reads(
        self, point: AttachPoint, unpack: Callable[[Any, int], Any], values: Sequence[str]
    ) -> RowReads:
        name = point.text.encode(errors="surrogateescape")
        return RowReads(unpack, "w[0]", tuple(values), dict(self._memory), name)


def _argument(number: int, words: _HitWords) -> str:
    """The expression of an argument at a function's entry."""
    if number < len(ARGUMENT_REGISTERS):
        return words.register(ARGUMENT_REGISTERS[number])
    above = 8 * (number - len(ARGUMENT_REGISTERS) + 1)
    return f"number_at({words.register('rsp')} + {above})"


def _followed(text: str, capture: Capture) -> str:
    """The expression of a capture whose base is a word."""
    if not capture.offsets:
        return _converted(text, capture.type)
    for offset in capture.offsets[:-1]:
        text = f"number_at({text} + {offset})"
    return memory_value(f"({text} + {capture.offsets[-1]})", capture.type)


def _converted(text: str, kind: Type) -> str:
    """A word as a value of a type."""
    if isinstance(kind, Enumeration):
        kind = kind.integer
    if isinstance(kind, Integer):
        return text if kind == Integer(64, signed=False) else wrapped(text, kind)
    return f"({text} & 255 != 0)" if isinstance(kind, Boolean) else f"({text} & {_MASK:#x})"
