"""The guest as the checker of a script sees it: places, types, symbols.

Types come from the debug information of the guest's program and libraries, of tracepoints from
their fields, of markers from the operands in their notes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.errors import ImageError, ProbeError
from engine.fetch.variables import VariableError
from engine.image.datatypes import DataType
from engine.session.guest.session import Session
from engine.session.program.verdicts import Verdicts
from engine.session.tracing.script.places import (
    KERNELS,
    RAW,
    RAW_EVENTS,
    TIMERS,
    USERS,
    WATCHES,
    PointError,
    ScriptPlaces,
)
from engine.session.tracing.script.script_symbols import ScriptSymbols
from engine.trace import sched, syscalls
from engine.trace.bpftrace.attach_points import has_glob
from engine.trace.bpftrace.c_types import enumeration, value_type
from engine.trace.bpftrace.captures import PC
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.bpftrace.types import (
    INT8,
    INT64,
    UINT64,
    Array,
    Enumeration,
    Integer,
    Pointer,
    TextType,
    Type,
)

if TYPE_CHECKING:
    from engine.image.names import FileNames

_ASTERISKS: Final = re.compile(r" ((?:\* ?)+)(?=\w)")
_COMM: Final = 16
"""Bytes of a thread's name, the NUL included."""
_PATH: Final = 4096
_INT: Final = Integer(32, signed=True)
_KEYWORDS: Final = ("struct", "union", "enum", "class")
_SIZES: Final = {"pid_t": 32, "int": 32, "long": 64, "bool": 8}
_UNSIGNED: Final = (
    "unsigned",
    "size_t",
    "umode_t",
    "qid_t",
    "aio_context_t",
    "__u32",
    "u64",
    "u32",
)
_PROGRAMS: Final = (
    "the guest is a program: uprobe:BINARY:FUNCTION has its functions, and probes of a kernel are"
    " for a guest that is one"
)
_SIGNALS: Final = ("signal()", "signal_thread()")
_RECORDED: Final = (
    "{} would change a run that is recorded, which it could then not be gone back in:"
    " kprobe-tui bpftrace runs the guest anew"
)
_OF_KERNELS: Final = {
    "curtask()": "the guest is a program, whose kernel has no records of tasks: pid, tid, comm"
    " and ppid tell of them",
    "path()": "the guest is a program, and has no struct path",
}
_COUNTERS: Final = (
    "an emulated processor has no counters of its hardware: profile and interval probes sample by"
    " the guest's time"
)
_REFUSED: Final = {
    "hardware": _COUNTERS,
    "software": "the guest's kernel has no counters of its software: tracepoint:sched has the"
    " switches, profile and interval probes sample by the guest's time",
    "iter": "there are no iterators of BPF: tracepoint:sched follows tasks as they come and go",
    "bench": "bench probes are measured by bpftrace --mode bench; kprobe-tui bench measures here",
    "test": "test probes are run by bpftrace --mode test",
}


class GuestSurroundings:
    """Answers what a script can know of one guest; a `checked.ScriptSurroundings`.

    Attributes:
        missing: places that were asked for and are nowhere, and why.
    """

    def __init__(
        self,
        session: Session,
        verdicts: Verdicts,
        places: ScriptPlaces,
        symbols: ScriptSymbols,
        *,
        typed: bool = True,
        recorded: bool = False,
    ) -> None:
        """Take the guest; types and places are looked for when a script asks.

        Args:
            session: the guest.
            verdicts: knows its files.
            places: finds what probes name.
            symbols: finds what `uaddr()` names.
            recorded: the run can be lived through again.
            typed: types of arguments are wanted; they cost a millisecond for each place.
        """
        self._typed, self._recorded, self._symbols = typed, recorded, symbols
        self._session = session
        self._arch = session.arch
        self._verdicts = verdicts
        self._places = places
        self._found: dict[tuple[str, str], DataType | None] = {}
        self.missing: dict[AttachPoint, str] = {}

    @property
    def aligns_unnamed(self) -> bool:
        """True if bitfields without a name align structures."""
        calls = self._arch.abi.calls
        return calls is not None and calls.aligns_unnamed

    @property
    def pointer_size(self) -> int:
        """Bytes of an address."""
        return self._arch.bits // 8

    @property
    def registers(self) -> Sequence[str]:
        """The names that `reg()` takes."""
        return tuple(dict.fromkeys((*self._arch.probes.fetch_registers, PC)))

    # -- types by name ----------------------------------------------------------------------

    @cached_property
    def _files(self) -> tuple["FileNames", ...]:
        """The names in debug information, file by file."""
        return tuple(self._named())

    def _named(self) -> Iterator["FileNames"]:
        from engine.image.names import GlobalNames  # few scripts name types of the guest's

        for file in self._verdicts.program.files:
            try:
                info = file.variables.info
            except ImageError:
                continue
            if info is not None:
                yield GlobalNames(info)
            elif file.variables.carried is not None:
                yield file.variables.carried.names

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
        if (name, word) not in self._found:
            self._found[name, word] = self._looked_up(name, word)
        return self._found[name, word]

    def _looked_up(self, name: str, word: str) -> DataType | None:
        declared: DataType | None = None
        for names in self._files:
            try:
                found = names.type(name, word)
            except ImageError:
                continue
            if found is not None and not found.is_declared_only:
                return found
            declared = declared or found
        return declared

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""
        for names in self._files:
            try:
                found = names.enumerator(name)
            except ImageError:
                continue
            if found is not None:
                return found[1], enumeration(found[0])
        return None

    # -- places -----------------------------------------------------------------------------

    def places(self, point: AttachPoint) -> Sequence[AttachPoint]:
        """The places of a point with globs, or itself in full; none if it is nowhere."""
        try:
            found = self._places.expanded(point)
        except PointError as error:
            self.missing[point] = str(error)
            return ()
        if not found:
            where = f"{point.target}:{point.function}" if point.target else point.function
            self.missing[point] = f"No matches for {point.provider} {where}"
        return found

    def arguments(self, point: AttachPoint) -> Mapping[str, Type] | None:
        """The members of `args` there; None where nothing tells them."""
        if point.provider in USERS | KERNELS:
            return self._parameters(point) if self._typed else None
        if point.provider in ("tracepoint", "rawtracepoint") and self._typed:
            return self._fields(point.target, point.function)
        if point.provider in WATCHES:
            return {}
        return None

    def _parameters(self, point: AttachPoint) -> Mapping[str, Type] | None:
        try:
            place = self._places.resolved(point)[0].place
            if place is None:
                return None
            listed = self._verdicts.lookup.scope_at(place).entry_places()
        except (ProbeError, VariableError, ImageError, IndexError):
            return None
        space = "kernel" if self._session.is_kernel else "user"
        found = {}
        for variable, _ in listed:
            kind = value_type(variable.type, space)  # type: ignore[arg-type]
            if kind is not None:
                found[variable.name] = kind
        return found

    def described(self, point: AttachPoint) -> list[str]:
        """The arguments of a place as C declares them, and its result."""
        if point.provider == "usdt":
            kinds = self.usdt_arguments(point) or ()
            return [f"{_c_text(kind)} arg{at}" for at, kind in enumerate(kinds)]
        if point.provider == "tracepoint":
            return self._described_fields(point.target, point.function)
        try:
            place = self._places.resolved(point)[0].place
            if place is None:
                return []
            scope = self._verdicts.lookup.scope_at(place)
            listed = [declaration(one.type.declared(one.name)) for one, _ in scope.entry_places()]
            returned, _ = scope.result()
        except (ProbeError, VariableError, ImageError, IndexError):
            return []
        return [*listed, declaration(returned.declared("retval"))]

    def _described_fields(self, group: str, name: str) -> list[str]:
        if group == sched.GROUP:
            return [f"{text} {each}" for each, text in sched.BY_NAME[name].fields]
        found = dict(self._fields(group, name) or {})
        if group == syscalls.GROUP and name.startswith(syscalls.ENTER):
            found.pop("__syscall_nr")
            calls = self._arch.linux.syscalls.values()
            wanted = name.removeprefix(syscalls.ENTER)
            call = next(each for each in calls if syscalls.event_name(each) == wanted)
            listed = syscalls.arguments(call, self._arch.linux.clone_backwards) or ()
            return ["int __syscall_nr", *(f"{one.ctype} {one.name}" for one in listed)]
        return [f"{_c_text(kind)} {each}" for each, kind in found.items()]

    def returns(self, point: AttachPoint) -> Type | None:
        """The type of `retval` there, where types are known."""
        if not self._typed:
            return None
        try:
            place = self._places.resolved(point)[0].place
            if place is None:
                return None
            kind, _ = self._verdicts.lookup.scope_at(place).result()
        except (ProbeError, VariableError, ImageError, IndexError):
            return None
        return value_type(kind, "kernel" if self._session.is_kernel else "user")

    def _fields(self, group: str, name: str) -> Mapping[str, Type] | None:
        """The fields of a tracepoint."""
        if has_glob(group) or has_glob(name):
            return None
        if group == RAW:
            last = {"args": Array(UINT64, 6)} if name == RAW_EVENTS[0] else {"ret": INT64}
            return {"id": INT64, **last}
        if group == sched.GROUP:
            event = sched.BY_NAME.get(name)
            return None if event is None else {each: _kind(text) for each, text in event.fields}
        if group != syscalls.GROUP:
            return None
        if name.startswith(syscalls.EXIT):
            return {"__syscall_nr": _INT, "ret": INT64}
        calls = self._arch.linux.syscalls.values()
        wanted = name.removeprefix(syscalls.ENTER)
        call = next((each for each in calls if syscalls.event_name(each) == wanted), "")
        listed = syscalls.arguments(call, self._arch.linux.clone_backwards)
        if listed is None:
            return None
        return {"__syscall_nr": _INT, **{one.name: self._argument(one.ctype) for one in listed}}

    def _argument(self, ctype: str) -> Type:
        """The type of an argument of a system call, which has 8 bytes in the event."""
        if ctype.endswith("*"):
            words = ctype.replace("*", " * ").split()
            target = " ".join(word for word in words if word not in ("*", "const", "__user"))
            if target == "char":
                kind: Type = INT8
            else:
                keyed = target.startswith(_KEYWORDS)
                found = self.struct(target) if keyed else self.typedef(target)
                kind = (value_type(found, "user") if found is not None else None) or INT8
            for _ in range(words.count("*")):
                kind = Pointer(kind, "user")
            return kind
        return UINT64 if ctype.startswith(_UNSIGNED) else INT64

    def usdt_arguments(self, point: AttachPoint) -> Sequence[Type] | None:
        """The types of `arg0` and so on of a marker; None if that is not known."""
        try:
            markers = self._places.markers(point)
        except ProbeError:
            return None
        if not markers:
            return None
        return tuple(
            Integer(8 * (one.size or 8), one.signed and not one.real)
            for one in markers[0].operands
        )

    def symbol_size(self, name: str, point: AttachPoint, kernel: bool) -> int | None:
        """Bytes of what `kaddr()` and `uaddr()` name; None if there is no such."""
        if kernel and not self._session.is_kernel:
            return None
        found = self._symbols.find(name, point.target)
        return None if found is None else found[1].size

    def provides(self, what: str) -> str | None:
        """None if a provider or a function can be had here; else why not, and what to do."""
        if what in KERNELS and not self._session.is_kernel:
            return _PROGRAMS
        if self._recorded and (what in TIMERS or what in _SIGNALS):
            return _RECORDED.format(what)
        if what in _OF_KERNELS and not self._session.is_kernel:
            return f"{what} is refused: {_OF_KERNELS[what]}"
        if what == "rawtracepoint":
            return "it has no arguments with types here: tracepoint:GROUP:NAME has them"
        return _REFUSED.get(what)


def declaration(text: str) -> str:
    """A declaration with its asterisks where bpftrace has them: `char* name`."""
    return _ASTERISKS.sub(lambda found: f"{found[1].replace(' ', '')} ", text)


def _c_text(kind: Type) -> str:
    """A number's type as C has it."""
    if isinstance(kind, Array):
        return f"{_c_text(kind.element)}[{kind.count}]"
    if not isinstance(kind, Integer):
        return "void*"
    name = {8: "char", 16: "short", 32: "int"}.get(kind.bits, "long")
    return name if kind.signed else f"unsigned {name}"


def _kind(ctype: str) -> Type:
    """The type of a field of the scheduler's events."""
    if ctype.startswith("char["):
        return TextType(_COMM)
    if "char" in ctype:
        return TextType(_PATH)
    return Integer(_SIZES.get(ctype, 64), signed=ctype != "bool")
