"""A booted kernel as the checker of a script sees it: types by BTF, fields of its own events."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

from engine.errors import ImageError
from engine.image.datatypes import DataType, TypeKind
from engine.image.kernel.btftypes import BtfFunction, BtfParameter, BtfTypes
from engine.image.kernel.eventfields import EventField
from engine.session.booted.kernel_events import LOCATIONS, RAW
from engine.session.booted.script.kernel_points import CODE, KernelPoints
from engine.session.booted.script.program_points import USERS, PointRefusedError
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.script.surroundings import declaration
from engine.trace import syscalls
from engine.trace.bpftrace.attach_points import has_glob
from engine.trace.bpftrace.c_types import Space, enumeration, value_type
from engine.trace.bpftrace.captures import PC
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.bpftrace.types import (
    INT8,
    INT64,
    UINT64,
    VOID,
    Array,
    Enumeration,
    Integer,
    Pointer,
    Structure,
    TextType,
    Type,
)

_KEYWORDS: Final = ("struct", "union", "enum", "class")
_ARRAY: Final = re.compile(r"(?P<element>.*\S)\s*\[[^\]]*\]$")
_QUALIFIERS: Final = re.compile(r"\b(?:const|volatile|__user|__rcu|__kernel)\b")
_OF_TRACEPOINTS: Final = ("__probestub_", "__traceiter_", "__bpf_trace_")
"""Functions whose parameters are those of a tracepoint."""
_REGISTERS: Final = 6
"""Arguments that registers hold; the others are on the stack."""
_WORD: Final = 8
_COUNTERS: Final = (
    "an emulated processor has no counters of its hardware: profile and interval probes sample by"
    " the machine's time"
)
_NOT_WATCHED: Final = "no memory of a booted kernel is watched: probe the functions that write it"
_NO_SIGNAL: Final = "a script only watches a booted system: kprobe-tui serve --boot stops it"
_NO_FILE: Final = "files of a booted system are not read from outside: its own console shows them"
_REFUSED: Final = {
    "hardware": _COUNTERS,
    "software": "counters of software are not read: tracepoint:sched and tracepoint:exceptions"
    " have the events, profile and interval probes sample by the machine's time",
    "watchpoint": _NOT_WATCHED,
    "asyncwatchpoint": _NOT_WATCHED,
    "iter": "there are no iterators of BPF: tracepoint:sched follows tasks as they come and go",
    "self": "nobody signals a script of a booted kernel: interval probes run its actions",
    "bench": "bench probes are measured by bpftrace --mode bench; kprobe-tui bench measures here",
    "test": "test probes are run by bpftrace --mode test",
    "signal()": f"signal is refused: {_NO_SIGNAL}",
    "signal_thread()": f"signal_thread is refused: {_NO_SIGNAL}",
    "cat()": f"cat is refused: {_NO_FILE}",
    "username()": f"username is refused: {_NO_FILE}; uid has the number",
    "cgroup_path()": f"cgroup_path is refused: {_NO_FILE}; cgroup has the number",
    "unwatch()": "unwatch is refused: there are no watchpoints",
}


class KernelTypes:
    """The types and places of one kernel; `checked.ScriptSurroundings` says what is asked."""

    def __init__(self, opened: OpenedKernel, points: KernelPoints) -> None:
        """Set up; files are read when somebody asks.

        Args:
            opened: the kernel.
            points: finds what probes name.
        """
        self._opened, self._points = opened, points
        self._function = lru_cache(maxsize=4096)(self._found_function)

    @property
    def aligns_unnamed(self) -> bool:
        """True if bitfields without a name align structures: not on x86-64."""
        return False

    @property
    def pointer_size(self) -> int:
        """Bytes of an address."""
        return _WORD

    @property
    def registers(self) -> Sequence[str]:
        """The names that `reg()` takes."""
        return tuple(dict.fromkeys((*self._opened.arch.probes.fetch_registers, PC)))

    def register(self, name: str) -> str | None:
        """The whole register that a name of `reg()` means; None if there is none."""
        if name == PC:
            return self._opened.arch.roles.pc
        names = self._opened.arch.probes.fetch_registers
        return names.get(name) or (name if name in names.values() else None)

    # -- types by name --------------------------------------------------------------------

    @cached_property
    def _all(self) -> tuple[BtfTypes, ...]:
        return tuple(BtfTypes(btf) for btf in self._opened.types)

    def struct(self, name: str) -> DataType | None:
        """A structure, union or enumeration by its name, with or without the word before it."""
        word, _, rest = name.partition(" ")
        if word not in _KEYWORDS:
            word, rest = "", name
        for each in (word,) if word else _KEYWORDS:
            found = self._type(rest.strip(), each)
            if found is not None:
                return found
        return None

    def typedef(self, name: str) -> DataType | None:
        """The type that a name stands for."""
        return self._type(name, "")

    def _type(self, name: str, word: str) -> DataType | None:
        for types in self._all:
            try:
                found = types.named(name, word)
            except ImageError:
                continue
            if found is not None:
                return found
        return None

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""
        for types in self._all:
            try:
                found = types.enumerator(name)
            except ImageError:
                continue
            if found is not None:
                return found[1], enumeration(found[0])
        return None

    # -- places ---------------------------------------------------------------------------

    def places(self, point: AttachPoint) -> Sequence[AttachPoint]:
        """The places of a point with globs, or itself; none if it is nowhere (`problem`)."""
        try:
            return self._points.expanded(point)
        except PointRefusedError:
            return ()

    def problem(self, point: AttachPoint) -> str:
        """Why a place is nowhere; "" where it is somewhere."""
        try:
            if self._points.expanded(point):
                return ""
        except PointRefusedError as error:
            return str(error)
        where = f"{point.target}:{point.function}" if point.target else point.function
        return f"No matches for {point.provider} {where}"

    def arguments(self, point: AttachPoint) -> Mapping[str, Type] | None:
        """The members of `args` there; None where nothing tells them."""
        if point.provider in USERS:
            return self._of_program(point)
        if point.provider in CODE:
            function = self._described(point)
            return (
                None
                if function is None
                else {
                    name: kind for name, (kind, _) in self._places_of(function.parameters).items()
                }
            )
        if point.provider == "rawtracepoint":
            parameters = self.raw_parameters(point.function)
            return (
                None
                if parameters is None
                else {name: kind for name, (kind, _) in self._places_of(parameters).items()}
            )
        if point.provider == "tracepoint" and not has_glob(point.target + point.function):
            return self._record(point.target, point.function)
        return None

    def _of_program(self, point: AttachPoint) -> Mapping[str, Type] | None:
        listed = self._points.programs.arguments(point)
        if listed is None:
            return None
        found: dict[str, Type] = {}
        for name, (declared, number) in listed.items():
            kind = None if number is None else value_type(declared, "user")
            if kind is not None and not isinstance(kind, (Structure, Array)):
                found[name] = kind
        return found

    def returns(self, point: AttachPoint) -> Type | None:
        """The type of `retval` there, where types are known."""
        if point.provider in USERS:
            result = self._points.programs.result(point)
            if result is None or result.resolved.kind in (TypeKind.VOID, TypeKind.RECORD):
                return None
            return value_type(result, "user")
        function = self._described(point) if point.provider in CODE else None
        if function is None or function.returns.kind is TypeKind.VOID:
            return None
        return value_type(function.returns, "kernel")

    def described(self, point: AttachPoint) -> list[str]:
        """The arguments of a place as C declares them, and its result."""
        if point.provider == "tracepoint":
            return self._described_record(point)
        if point.provider in USERS:
            return list(self._described_program(point))
        function = self._described(point) if point.provider in CODE else None
        given = self.raw_parameters(point.function) if function is None else function.parameters
        listed = [declaration(one.type.declared(one.name)) for one in given or ()]
        if function is not None:
            listed.append(declaration(function.returns.declared("retval")))
        return listed

    def _described_program(self, point: AttachPoint) -> Iterator[str]:
        given = self._points.programs.arguments(point) or {}
        for name, (kind, _) in given.items():
            yield declaration(kind.declared(name))
        result = self._points.programs.result(point)
        if result is not None:
            yield declaration(result.declared("retval"))

    def _described_record(self, point: AttachPoint) -> list[str]:
        fields = self._points.events.fields
        call = fields.events[point.target, point.function]
        if point.target == syscalls.GROUP:
            enters = point.function.startswith(syscalls.ENTER)
            given = fields.arguments(call) if enters else (("long", "ret"),)
            return ["int __syscall_nr", *(f"{kind} {name}" for kind, name in given)]
        found = []
        for field in fields.fields(call):
            kind, bracket, count = field.ctype.partition("[")
            if bracket and kind == "char" and count != "]":  # by a constant's name, maybe
                count = f"{field.size}]"
            found.append(f"{kind} {field.name}{bracket}{count}")
        return found

    def usdt_arguments(self, point: AttachPoint) -> Sequence[Type] | None:
        """The types of `arg0` and so on of a marker; None if that is not known."""
        found = self._points.programs.operands(point)
        if found is None:
            return None
        return tuple(Integer(8 * (one.size or 8), one.signed and not one.real) for one in found)

    def symbol_size(self, name: str, point: AttachPoint, kernel: bool) -> int | None:
        """Bytes of what `kaddr()` and `uaddr()` name, 0 if not known; None if there is no such."""
        if not kernel:
            symbol = self._points.programs.symbol(point.target, name)
            return None if symbol is None else symbol[2].size
        address = self._opened.names.find(name) if kernel else None
        if address is None:
            return None
        found = self._opened.names.bounds(address)
        return 0 if found is None else found[2] - found[1]

    def program_symbol(self, path: str, name: str) -> int | None:
        """The link address of a symbol in a file; None if there is no such."""
        found = self._points.programs.symbol(path, name)
        return None if found is None else found[2].address

    def provides(self, what: str) -> str | None:
        """None if a provider or a function can be had here; else why not, and what to do."""
        return _REFUSED.get(what)

    # -- functions ------------------------------------------------------------------------

    def _described(self, point: AttachPoint) -> BtfFunction | None:
        return None if point.offset or has_glob(point.function) else self._function(point.function)

    def _found_function(self, name: str) -> BtfFunction | None:
        for types in self._all:
            try:
                found = types.function(name)
            except ImageError:
                continue
            if found is not None:
                return found
        return None

    def argument_place(self, point: AttachPoint, name: str) -> int | None:
        """The number of the word that holds an argument by name, as of `arg0`; None for none."""
        if point.provider in USERS:
            listed = self._points.programs.arguments(point) or {}
            return listed[name][1] if name in listed else None
        if point.provider == "rawtracepoint":
            parameters: Sequence[BtfParameter] = self.raw_parameters(point.function) or ()
        else:
            function = self._described(point)
            parameters = () if function is None else function.parameters
        found = self._places_of(parameters).get(name)
        return None if found is None else found[1]

    @staticmethod
    def _places_of(parameters: Sequence[BtfParameter]) -> dict[str, tuple[Type, int]]:
        """Types and words of parameters by name, by the calling convention of x86-64.

        A structure of up to two words takes registers where both are left; larger ones, which
        lie on the stack, and whatever stands behind them there, are left out.
        """
        found: dict[str, tuple[Type, int]] = {}
        word, above = 0, 0
        for parameter in parameters:
            size = parameter.type.size
            if size is None or size > 2 * _WORD:
                break
            words = 1 if size <= _WORD else 2
            if word + words <= _REGISTERS:
                place, word = word, word + words
            elif words == 1:
                place, above = _REGISTERS + above, above + 1
            else:
                break
            kind = value_type(parameter.type, "kernel")
            if parameter.name and kind is not None and not isinstance(kind, (Structure, Array)):
                found[parameter.name] = kind, place
        return found

    def raw_parameters(self, name: str) -> tuple[BtfParameter, ...] | None:
        """The arguments of a tracepoint, by a function of its own, whose first one is its data."""
        found = (self._function(f"{prefix}{name}") for prefix in _OF_TRACEPOINTS)
        return next((each.parameters[1:] for each in found if each is not None), None)

    # -- records --------------------------------------------------------------------------

    def _record(self, group: str, name: str) -> Mapping[str, Type] | None:
        """The fields of an event that scripts can use."""
        call = self._points.events.fields.events.get((group, name))
        if call is None:
            return None
        if group == syscalls.GROUP:
            number = {"__syscall_nr": Integer(32, signed=True)}
            if name.startswith(syscalls.EXIT):
                return {**number, "ret": INT64}
            given = self._points.events.fields.arguments(call)
            return {**number, **{each: self._word_of(kind) for kind, each in given}}
        if group == RAW:
            last = {"ret": INT64} if name == "sys_exit" else {"args": Array(UINT64, 6)}
            return {"id": INT64, **last}
        return dict(self._typed(self._points.events.fields.fields(call)))

    def _typed(self, fields: Sequence[EventField]) -> Iterator[tuple[str, Type]]:
        for field in fields:
            kind = self.field_type(field)
            if kind is not None:
                yield field.name, kind

    def field_type(self, field: EventField) -> Type | None:
        """The type of a field; that of one which is elsewhere is a number, its address."""
        text, size = field.ctype.strip(), field.size
        if text.startswith(LOCATIONS):
            return INT64
        array = _ARRAY.match(text)
        if array is not None:
            if array["element"] == "char":
                return TextType(size)
            element = self._plain(array["element"], None, field.signed)
            width = _size_of(element)
            return None if element is None or not width else Array(element, size // width)
        return self._plain(text, size, field.signed)

    def _plain(self, text: str, size: int | None, signed: bool) -> Type | None:
        """A type that is no array; its size is that of the name where none is given."""
        if text.endswith("*"):
            return self._pointer(text)
        name = " ".join(_QUALIFIERS.sub("", text).split())
        found = self.struct(name) if name.startswith(_KEYWORDS) else self.typedef(name)
        kind = None if found is None else value_type(found, "kernel")
        if isinstance(kind, Enumeration) or (isinstance(kind, Structure) and kind.size == size):
            return kind
        if size is None:
            return kind
        return Integer(8 * size, signed) if size in (1, 2, 4, 8) else None

    def _pointer(self, text: str) -> Type:
        space: Space = "user" if "__user" in text else "kernel"
        name = " ".join(_QUALIFIERS.sub("", text[:-1]).split())
        return Pointer(self._target(name, space), space)

    def _target(self, name: str, space: Space) -> Type:
        if name == "char":
            return INT8
        if not name or name == "void":
            return VOID
        if name.endswith("*"):
            return Pointer(self._target(name[:-1].strip(), space), space)
        found = self.struct(name) if name.startswith(_KEYWORDS) else self.typedef(name)
        kind = None if found is None else value_type(found, space)
        return kind or VOID

    def _word_of(self, text: str) -> Type:
        """The type of an argument of a system call, which has 8 bytes in the record."""
        if text.endswith("*"):
            name = " ".join(_QUALIFIERS.sub("", text[:-1]).split())
            return Pointer(self._target(name, "user"), "user")
        found = self.typedef(_QUALIFIERS.sub("", text).strip())
        signed = found is not None and found.resolved.kind in (TypeKind.SIGNED, TypeKind.CHAR)
        return INT64 if signed else UINT64


def _size_of(kind: Type | None) -> int:
    if isinstance(kind, Enumeration):
        kind = kind.integer
    if isinstance(kind, Integer):
        return kind.bits // 8
    return _WORD if isinstance(kind, Pointer) else 0
