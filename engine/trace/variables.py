"""Variables in definitions: `name`, `name->field.x[3]`, `*name` as fetch operations.

What a name means at a place comes from the program's debug information; the result is what
somebody could have written by hand: a register, dereferences, a type. The syntax is the
kernel's for BTF arguments, and so are the errors; `[N]`, a leading `*`, `.` on a variable that
is a structure, variables that are no parameters and places inside a function are ours.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.program import Base, FieldType, Source, ValueKind
from engine.errors import ImageError
from engine.fetch.bases import float_result, vector_registers
from engine.fetch.variables import NOT_TEXT, TEXT_ARRAY, Fetched, VariableError
from engine.image.datatypes import DataType, TypeKind
from engine.image.dietypes import DieType
from engine.image.expressions import Term, VariableLocation, Where, nowhere
from engine.image.reader import DamagedError
from engine.image.variables import Scope, Variable, Variables
from engine.trace.fieldtypes import bitfield_at, field_type, string_kind
from engine.trace.valueparts import Value, ValueParts, piece, register_part

_PART: Final = re.compile(
    r"(?P<how>->|\.)(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\[(?P<index>-?[0-9]{1,18})\]"
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\$retval")
_CLONE: Final = re.compile(r"\.(isra|constprop|part|cold)\b")
_RESULT: Final = "$retval"
_SHOWN: Final = 12

_T = TypeVar("_T")


class Spot(Struct, frozen=True):
    """The instruction whose variables are asked for.

    Attributes:
        variables: of its file.
        link: its link address.
        image_base: the link address that `Source.IMAGE` counts from: `link` less its offset in
            the file.
        is_return: the probe fires when the function returns, with what was there at its entry.
        symbol: the symbol around it, "" for none: a compiler's copy of a function need not
            keep the calling convention.
        pad: bytes of the landing pad that the function begins with.
        address: link address of a symbol of the file, for `extern` variables.
        prologue_end: from a function's start to where its variables are in its frame; None if
            that is not known.
    """

    variables: Variables
    link: int
    image_base: int
    is_return: bool
    symbol: str
    pad: int
    address: Callable[[str], int | None]
    prologue_end: Callable[[int], int | None]


class ScopeVariables:
    """The variables that a definition may name at one place."""

    def __init__(self, arch: Arch, spot: Callable[[], Spot], *, floats: bool = True) -> None:
        """Nothing is read before the first question.

        Args:
            arch: of the program.
            spot: finds the place; it may raise `VariableError`.
            floats: numbers with a point may be recorded as such, and out of vector registers:
                the kernel does neither.
        """
        self._arch = arch
        self._floats = floats
        self._find_spot = spot
        self._subject = ""

    @cached_property
    def _parts(self) -> ValueParts:
        return ValueParts(self._fail)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {r.dwarf: r.name for r in self._arch.registers if r.dwarf is not None}

    # -- questions ---------------------------------------------------------------

    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters in order, for `$arg*`.

        Left out are those that cannot be recorded: structures, for instance.
        """
        names = self._guarded(lambda: tuple(v.name for v in self._scope.parameters))
        return tuple(name for name in names if self._is_recorded(name))

    def _is_recorded(self, name: str) -> bool:
        try:
            return self.resolve(name).kind is not None
        except VariableError:
            return False

    def parameter(self, index: int) -> Fetched | None:
        """The parameter `$argN` (index from 0); None where the calling convention says it."""
        try:
            scope = self._scope
        except VariableError as error:
            if error.at_place:
                raise
            return None
        if not scope.entry or index >= len(scope.parameters):
            return None
        found = self._guarded(lambda: self._location(scope, scope.parameters[index]))
        word = DieType(None)
        if found.where is Where.REGISTER and self._names.get(found.register) in self._vectors:
            why = f"{scope.parameters[index].name} is in {self._register(found.register)}: name it"
            raise VariableError("NO_BTFARG", 0, why)
        if found.where is Where.REGISTER or found.where is Where.MEMORY:
            kind = scope.parameters[index].type.kind
            if found.where is Where.MEMORY and kind is TypeKind.RECORD:
                return None
            fetched = self._guarded(lambda: self._fetch(Value(word, found), 0))
            return replace(fetched, kind=FieldType(ValueKind.HEX, self._arch.bits // 8))
        if found.where is Where.NOWHERE and "vector" in found.why:
            raise VariableError("NO_BTFARG", 0, f"{scope.parameters[index].name} {found.why}")
        return None

    def resolve(self, text: str) -> Fetched:
        """A variable, a part of it or what it points at."""
        return self._guarded(lambda: self._resolve(text))

    def visible(self) -> tuple[Variable, ...]:
        """The function's variables, the innermost scope first."""
        return self._guarded(lambda: self._scope.visible)

    def listing(self) -> list[tuple[str, str, str]]:
        """(name, type, location) of what can be named, for people; empty if nothing can."""
        try:
            scope = self._scope
        except VariableError:
            return []
        rows = []
        for variable in scope.visible:
            try:
                where = self._location(scope, variable).text(self._register)
            except (DamagedError, ImageError) as error:
                where = str(error)
            except VariableError as error:
                where = error.why
            rows.append((variable.name, variable.type_text, where))
        return rows

    def entry_places(self) -> list[tuple[Variable, VariableLocation]]:
        """The parameters in order, and where each is at the function's entry.

        Raises:
            VariableError: the place is no function's entry, or nothing is known of it.
        """
        scope = self._scope
        if not scope.entry:
            raise VariableError("NOFENTRY_ARGS", 0, "only a function's entry has its arguments")
        return self._guarded(
            lambda: [(one, self._location(scope, one, vectors=True)) for one in scope.parameters]
        )

    def result(self) -> tuple[DataType, int]:
        """The type of the function's result, and DW_LANG_* of the function.

        Raises:
            VariableError: nothing is known of it.
        """
        return self._scope.returns, self._scope.language

    def _fail(self, code: str, at: int, why: str) -> VariableError:
        """An error about the variable that is being read."""
        return VariableError(code, at, f"{self._subject} at {self._spot.link:#x}: {why}")

    # -- names -------------------------------------------------------------------

    def _guarded(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except (DamagedError, ImageError) as error:
            raise VariableError("NOSUP_BTFARG", 0, str(error)) from error

    @cached_property
    def _spot(self) -> Spot:
        return self._find_spot()

    @cached_property
    def _scope(self) -> Scope:
        spot = self._spot
        try:
            if not spot.variables.are_known:
                why = f"{spot.variables.image.name} has no debug information (DWARF)"
                raise VariableError("NOSUP_BTFARG", 0, why)
            scope = spot.variables.scope(spot.link, spot.pad)
        except ImageError as error:
            raise VariableError("NOSUP_BTFARG", 0, str(error)) from error
        if scope is None:
            why = f"the debug information describes no function at {spot.link:#x}"
            raise VariableError("NO_BTF_ENTRY", 0, why)
        if spot.is_return and not scope.entry:
            raise VariableError("NOFENTRY_ARGS", 0, "only a function's entry has its arguments")
        return scope

    def _resolve(self, text: str) -> Fetched:
        stars = len(text) - len(text.lstrip("*"))
        match = _NAME.match(text, stars)
        if match is None:
            raise VariableError("BAD_FETCH_ARG", stars)
        self._subject = match[0]
        if match[0] == _RESULT:
            value = self._returned()
        else:
            value = self._variable(self._scope, match[0], stars)
        at = match.end()
        while at < len(text):
            part = _PART.match(text, at)
            if part is None:
                raise _bad_part(text, at)
            if part["index"] is not None:
                value = self._parts.indexed(value, int(part["index"]), at)
            else:
                if part["how"] == "->":
                    value = self._parts.pointed(value, part.start("name"))
                value = self._parts.member(value, part["name"], part.start("name"))
            at = part.end()
        for _ in range(stars):
            value = self._parts.pointed(value, 0)
        return self._fetch(value, stars)

    def _variable(self, scope: Scope, name: str, at: int) -> Value:
        for variable in scope.visible:
            if variable.name == name:
                return Value(variable.type, self._location(scope, variable))
        variable_ = self._spot.variables.global_variable(scope, name)
        if variable_ is not None:
            return Value(variable_.type, self._location(scope, variable_))
        known = [variable.name for variable in scope.visible]
        shown = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        raise VariableError("NO_BTFARG", at, f"known here: {shown or 'no variable'}")

    def _returned(self) -> Value:
        if not self._spot.is_return:
            raise VariableError("RETVAL_ON_PROBE")
        kind = self._scope.returns
        if kind.kind is TypeKind.VOID:
            raise VariableError("NO_RETVAL")
        register = self._arch.probes.retval
        if kind.kind is TypeKind.FLOAT and self._floats:
            register = float_result(self._arch) or register
        number = next((n for n, name in self._names.items() if name == register), -1)
        return Value(kind, VariableLocation(Where.REGISTER, register=number))

    # -- places ------------------------------------------------------------------

    def _location(
        self, scope: Scope, variable: Variable, *, vectors: bool = False
    ) -> VariableLocation:
        where = variable.location
        if variable.is_declaration:
            link = self._spot.address(variable.linker_name)
            if link is not None:
                return VariableLocation(Where.MEMORY, Term(offset=link, is_link=True))
        if variable.is_inlined:
            return where
        if not scope.entry:
            return self._in_prologue(scope, variable, where) or where
        position = next((i for i, v in enumerate(scope.parameters) if v is variable), None)
        if position is None:
            if _is_in_frame(where):
                return nowhere("has no value yet at the function's entry; use FILE:LINE")
            return where
        if where.where is not Where.MEMORY or not self._is_own_frame(scope, where.term):
            return where
        # Where nothing at all is said the convention must not be asked: compilers drop
        # arguments of functions that they know all callers of.
        found = self._by_convention(scope, position, vectors=vectors or self._floats)
        return found or nowhere("has no value yet at the function's entry; use FILE:LINE")

    def _in_prologue(
        self, scope: Scope, variable: Variable, where: VariableLocation
    ) -> VariableLocation | None:
        """Why a variable is not in its frame yet; None if it is, or has no frame."""
        if not (_is_in_frame(where) and variable.is_fixed):
            return None
        end = self._spot.prologue_end(scope.start)
        if end is None or self._spot.link >= end:
            return None
        return nowhere(f"is not stored yet: the function's prologue ends at {end:#x}")

    def _by_convention(
        self, scope: Scope, position: int, *, vectors: bool
    ) -> VariableLocation | None:
        convention = self._arch.abi.calls
        if convention is None or _CLONE.search(self._spot.symbol):
            return None
        types = [variable.type for variable in scope.parameters]
        from engine.image.callconv import entry_locations  # few probes ask for arguments

        found = entry_locations(convention, types, scope.returns, scope.language, vectors=vectors)
        for variable, where in zip(scope.parameters, found, strict=True):
            told = variable.location
            if Where.REGISTER is told.where is where.where and told != where:
                return None  # the compiler has changed the convention of this function
        return found[position]

    def _is_own_frame(self, scope: Scope, term: Term) -> bool:
        """True if an address at a function's entry is in the frame that it will have.

        Arguments on the stack lie above the return address, at or above the stack pointer.
        """
        if term.register is None:
            return False
        if term.register == scope.frame_register:
            return True
        name = self._names.get(term.register)
        if name == self._arch.roles.sp:
            return (term.derefs or (term.offset,))[0] < 0
        # The frame pointer is the caller's still; other registers point at what is passed.
        return name == self._arch.roles.fp

    def _register(self, number: int) -> str:
        return self._names.get(number, f"register {number}")

    # -- fetch operations ----------------------------------------------------------

    def _fetch(self, value: Value, at: int) -> Fetched:
        where = self._parts.part(value, at)
        kind, why = field_type(value.type)
        if kind is not None and kind.kind is ValueKind.FLOAT and not self._floats:
            kind = replace(kind, kind=ValueKind.HEX)
        string = string_kind(value.type)
        if where.where is Where.PIECES:
            where, _ = piece(where, 0)
        match where.where:
            case Where.MEMORY:
                term = where.term
                if value.bits:
                    start, kind = bitfield_at(value.bit, value.bits, signed=value.type.is_signed)
                    term, string = term.plus(start), NOT_TEXT
                base, derefs = self._lowered(term.loaded())
                return Fetched(base, derefs, kind, string, why)
            case Where.REGISTER:
                if value.bit or value.bits:
                    kind = register_part(value)
                base, derefs = self._lowered(Term(where.register))
            case Where.VALUE:
                base, derefs = self._lowered(where.term)
            case _:
                raise self._fail("NO_BTFARG", 0, where.why)
        if kind is not None and kind.count:
            kind, why = None, "the array is not in memory"
        if string == TEXT_ARRAY:
            kind, string, why = None, NOT_TEXT, "the array is not in memory"
        is_part = where.where is Where.REGISTER and bool(value.bit or value.bits)
        return Fetched(base, derefs, kind, string, why, is_part)

    def _lowered(self, term: Term) -> tuple[Base, tuple[int, ...]]:
        """A value as base and dereferences."""
        if term.register is None:
            if not term.derefs and not term.is_link:
                return Base(Source.IMMEDIATE, value=term.offset % (1 << self._arch.bits)), ()
            if not term.derefs or term.offset:
                raise self._fail("NO_BTFARG", 0, "is an address in the program's file")
            first, *rest = term.derefs
            if term.is_link:
                return Base(Source.IMAGE, value=first - self._spot.image_base), tuple(rest)
            return Base(Source.ADDRESS, value=first), tuple(rest)
        if term.offset:
            shown = term.text(self._register)
            raise self._fail("NO_BTFARG", 0, f"is the sum {shown}, which cannot be fetched")
        name = self._names.get(term.register)
        if self._floats and name in self._vectors and not term.derefs:
            base = Base(Source.VECTOR, register=name)
            if not self._spot.is_return or self._subject == _RESULT:
                return base, ()
            return Base(Source.AT_ENTRY, fetch=(base, ())), ()
        if name is None or name not in self._general:
            raise self._fail("NO_BTFARG", 0, f"is in {self._register(term.register)}")
        if self._spot.is_return:
            return self._at_entry(name, term.derefs)
        return Base(Source.REGISTER, register=name), term.derefs

    @cached_property
    def _vectors(self) -> frozenset[str]:
        return frozenset(vector_registers(self._arch).values())

    @cached_property
    def _general(self) -> frozenset[str]:
        return frozenset(self._arch.probes.fetch_registers.values())

    def _at_entry(self, name: str, derefs: tuple[int, ...]) -> tuple[Base, tuple[int, ...]]:
        """The fetch for a return: the function's arguments as they were at its entry."""
        probes = self._arch.probes
        if self._subject == _RESULT and name == probes.retval:
            return Base(Source.RETVAL), derefs
        if name in probes.arguments:
            return Base(Source.ENTRY, value=probes.arguments.index(name)), derefs
        if name == self._arch.roles.sp and derefs:
            size = self._arch.bits // 8
            slot = derefs[0] // size - (self._arch.roles.link is None)
            if slot >= 0 and derefs[0] % size == 0:
                number = len(probes.arguments) + slot
                return Base(Source.ENTRY, value=number), derefs[1:]
        raise self._fail("NOFENTRY_ARGS", 0, f"%{name} is not kept from the entry on")


def _is_in_frame(where: VariableLocation) -> bool:
    return where.where is Where.MEMORY and where.term.register is not None


def _bad_part(text: str, at: int) -> VariableError:
    if text[at] == "-":
        code = "BAD_HYPHEN" if text[at : at + 2] != "->" else "NO_BTF_FIELD"
        return VariableError(code, at if code == "BAD_HYPHEN" else at + 2)
    if text[at] == "[":
        return VariableError("BAD_FETCH_ARG", at, "an index is [NUMBER]")
    if text[at] == ".":
        return VariableError("NO_BTF_FIELD", at + 1)
    return VariableError("BAD_FETCH_ARG", at)
