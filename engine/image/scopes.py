"""Variables visible at an instruction: the function's parameters and the scopes around it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ImageError
from engine.image import dies
from engine.image.datatypes import DataType
from engine.image.dies import Die, Unit
from engine.image.dietypes import DieType
from engine.image.expressions import (
    OPTIMIZED_OUT,
    FrameContext,
    Term,
    VariableLocation,
    Where,
    constant,
    location_of,
    nowhere,
)
from engine.image.loclists import entry_at
from engine.image.ranges import read_ranges
from engine.image.reader import DamagedError

_PARAMETER, _BLOCK, _SUBPROGRAM, _INLINED, _VARIABLE = 0x05, 0x0B, 0x2E, 0x1D, 0x34
_SCOPES: Final = frozenset((_BLOCK, 0x25, 0x32))  # lexical, catch and try blocks
_SYMBOLS: Final = frozenset((_PARAMETER, _INLINED, _VARIABLE, 0x0A, 0x16, 0x13, 0x02, 0x17, 0x04))
"""Tags of what gives a block symbols: variables, inlined functions, labels, types."""
_AT_DECL_LINE, _AT_VARIABLE_PARAMETER = 0x3B, 0x4B
_GO: Final = 0x16
_GO_DICTIONARY: Final = ".dict"
"""The argument of a generic function that has the address of its dictionary."""
_MAX_SCOPES: Final = 256
_DECLARED_ELSEWHERE: Final = "is declared here and defined elsewhere"


@contextmanager
def blaming(name: str, what: str) -> Iterator[None]:
    """Damage of the debug information as an error for people."""
    try:
        yield
    except DamagedError as error:
        raise ImageError(f"{name}: debug information, {what}: {error}") from error


class Variable(Protocol):
    """A variable or parameter as it is seen from one instruction."""

    @property
    def name(self) -> str:
        """The name of it."""

    @property
    def is_parameter(self) -> bool:
        """True for one of the function, or of the function that was inlined here."""

    @property
    def depth(self) -> int:
        """The depth of the inlined function that it belongs to; 0 for the function itself."""

    @property
    def is_inlined(self) -> bool:
        """True if it belongs to a function that was inlined."""

    @property
    def is_result(self) -> bool:
        """True for a parameter that is a result of the function, as Go's compiler has them."""

    @property
    def is_unset(self) -> bool:
        """True for a result without a name: it has no value before the function returns."""

    @property
    def line(self) -> int:
        """The line of the source that declares it; 0 where nobody says."""

    @property
    def type(self) -> DataType:
        """The variable's type.

        Raises:
            ImageError: the debug information is damaged.
        """

    @property
    def type_text(self) -> str:
        """The variable's type as C spells it; "?" where that is damaged."""

    @property
    def is_declaration(self) -> bool:
        """True if another unit defines it (`extern`)."""

    @property
    def is_fixed(self) -> bool:
        """True if one location is given for all of its scope, the prologue included."""

    @property
    def linker_name(self) -> str:
        """The variable's name in the symbol table, if it is there."""

    @property
    def location(self) -> VariableLocation:
        """The variable's location.

        Raises:
            ImageError: the debug information is damaged.
        """


class DieVariable(Struct, eq=False, dict=True):
    """A variable or parameter by its entry; a `Variable`.

    Attributes:
        name: of it.
        is_parameter: of the function, or of the function that was inlined here.
        depth: it belongs to a function that was inlined so deep; 0 for the function itself.
    """

    name: str
    is_parameter: bool
    depth: int
    _die: Die
    _frame: FrameContext
    _file: str

    @property
    def entry(self) -> Die:
        """The entry of the debug information that describes it."""
        return self._die

    @property
    def is_inlined(self) -> bool:
        """True if it belongs to a function that was inlined."""
        return self.depth > 0

    @property
    def is_result(self) -> bool:
        """True for a parameter that is a result of the function, as Go's compiler has them."""
        return bool(self._die.number(_AT_VARIABLE_PARAMETER)) and self.is_parameter

    @property
    def is_unset(self) -> bool:
        """True for a result without a name: it has no value before the function returns."""
        return self.is_parameter and self.name.startswith("~")

    @cached_property
    def line(self) -> int:
        """The line of the source that declares it; 0 where nobody says."""
        lines = (die.number(_AT_DECL_LINE) for die in self._die.origins())
        return next((line for line in lines if line is not None), 0)

    @cached_property
    def type(self) -> DataType:
        """The variable's type.

        Raises:
            ImageError: the debug information is damaged.
        """
        with blaming(self._file, f"type of {self.name}"):
            return DieType(self._die.type)

    @cached_property
    def type_text(self) -> str:
        """The variable's type as C spells it; "?" where that is damaged."""
        try:
            return self.type.text
        except (DamagedError, ImageError):
            return "?"

    @cached_property
    def is_declaration(self) -> bool:
        """True if another unit defines it (`extern`)."""
        return self._die.has(dies.AT_DECLARATION) and not self._die.has(dies.AT_LOCATION)

    @cached_property
    def is_fixed(self) -> bool:
        """True if one location is given for all of its scope, the prologue included."""
        found = (die.get(dies.AT_LOCATION) for die in self._die.origins())
        return isinstance(next((value for value in found if value is not None), None), bytes)

    def expression_at(self, pc: int) -> bytes | None:
        """The expression of its location at a link address; None without one.

        Raises:
            DamagedError: its list is damaged.
        """
        for die in self._die.origins():
            value = die.get(dies.AT_LOCATION)
            if isinstance(value, int):
                return entry_at(die, dies.AT_LOCATION, value, pc)
            if value is not None:
                return value
        return None

    @property
    def frame(self) -> FrameContext:
        """The instruction that it is seen from."""
        return self._frame

    @property
    def linker_name(self) -> str:
        """The variable's name in the symbol table, if it is there."""
        return self._die.linkage_name or self.name

    @cached_property
    def location(self) -> VariableLocation:
        """The variable's location.

        Raises:
            ImageError: the debug information is damaged.
        """
        return self._located()

    def _located(self) -> VariableLocation:
        with blaming(self._file, f"location of {self.name}"):
            for die in self._die.origins():
                found = location_of(die, dies.AT_LOCATION, self._frame)
                if found is not None:
                    return found
                value = die.get(dies.AT_CONST_VALUE)
                if isinstance(value, int):
                    return VariableLocation(Where.VALUE, Term(offset=value))
                if isinstance(value, bytes):
                    return constant(value, die.unit)
            return nowhere(_DECLARED_ELSEWHERE) if self.is_declaration else OPTIMIZED_OUT


class EscapedVariable(DieVariable):
    """A variable of Go that lives on the heap: its entry is the pointer to it, named "&x"."""

    @cached_property
    def type(self) -> DataType:
        """The type of the variable itself.

        Raises:
            ImageError: the debug information is damaged.
        """
        with blaming(self._file, f"type of {self.name}"):
            return DieType(self._die.type).target

    @cached_property
    def location(self) -> VariableLocation:
        """The variable's location: the place that the pointer leads to.

        Raises:
            ImageError: the debug information is damaged.
        """
        found = self._located()
        if found.where is Where.MEMORY:
            return VariableLocation(Where.MEMORY, found.term.loaded())
        if found.where is Where.REGISTER:
            return VariableLocation(Where.MEMORY, Term(register=found.register))
        return OPTIMIZED_OUT


class Scope(Struct, frozen=True):
    """The variables known at one instruction.

    Attributes:
        function: name of the function around it.
        inlined: names of the functions inlined there, the outermost first.
        start: the function's first instruction, a link address.
        entry: whether the instruction is the function's entry.
        language: DW_LANG_*.
        parameters: of the function, in the order of its declaration.
        locals: everything but that, the innermost scope first.
        returns: its result's type.
        frame_register: DWARF number of the register that its frame is described by, which the
            prologue has to set first; None for the frame address of the unwind tables.
        unit: where it is described; None for what is not described by DWARF.
        hidden: what the compiler of Go passes to generic functions, beside what the source does.
    """

    function: str
    inlined: tuple[str, ...]
    start: int
    entry: bool
    language: int
    parameters: tuple[Variable, ...]
    locals: tuple[Variable, ...]
    returns: DataType
    frame_register: int | None
    unit: Unit | None
    hidden: tuple[Variable, ...] = ()

    def declared_before(self, line: int) -> "Scope":
        """The same without the variables that the source declares at a line or behind it.

        Blocks of Go are those of the source, where a variable is not there before its
        declaration; the variables of each stand in the order of their lines.
        """
        known = tuple(item for item in self.locals if item.is_inlined or item.line < line)
        return replace(self, locals=known)

    def at_depth(self, depth: int) -> "Scope":
        """The variables of one function here: the outermost itself, or one inlined so deep."""
        if not depth and not self.inlined:
            return self
        own = tuple(item for item in self.locals if item.depth == depth)
        hidden = tuple(item for item in self.hidden if item.depth == depth)
        if not depth:
            return replace(self, locals=own, hidden=hidden)
        return replace(
            self,
            function=self.inlined[depth - 1] if depth <= len(self.inlined) else self.function,
            parameters=tuple(item for item in own if item.is_parameter),
            locals=tuple(item for item in own if not item.is_parameter),
            hidden=hidden,
        )

    @property
    def visible(self) -> tuple[Variable, ...]:
        """All of the function's variables, the innermost scope first; hidden ones left out."""
        found: dict[str, Variable] = {}
        for variable in (*self.locals, *self.parameters):
            found.setdefault(variable.name, variable)
        return tuple(found.values())


class FunctionBlock(Struct, frozen=True):
    """The code of a function, or of one copy of it that was inlined.

    Attributes:
        key: tells the blocks of a file apart.
        name: of the function.
        start: link address of its first instruction.
        inlined: it is a copy.
        end: one past the piece of code that begins at `start`.
        is_main: the program begins there, whatever the name (DWARF 5, 3.3.1).
        linkage: its name for the linker, "" where the compiler tells none.
    """

    key: tuple[int, int]
    name: str
    start: int
    inlined: bool
    end: int = 0
    is_main: bool = False
    linkage: str = ""


class CodeBlock(Struct, frozen=True):
    """The innermost block of code around an address.

    Attributes:
        key: tells the blocks of a file apart.
        functions: around it, the innermost first.
    """

    key: tuple[int, int]
    functions: tuple[FunctionBlock, ...]


def in_order(found: list[DieVariable], origin: Die | None) -> tuple[DieVariable, ...]:
    """Parameters in the order of the declaration: a compiler's copies may lack some."""
    if origin is None or origin.tag != _SUBPROGRAM:
        return tuple(found)
    unit = origin.unit
    shape = unit.shape
    by_origin = {variable._die.origins()[-1].offset: variable for variable in found}
    ordered: list[DieVariable] = []
    for index in shape.children(unit.index(origin.offset)):
        if shape.tags[index] != _PARAMETER:
            continue
        die = Die(unit, shape.offsets[index])
        known = by_origin.pop(die.offset, None)
        if known is None and found and by_origin and die.name:
            same = [key for key, v in by_origin.items() if v.name == die.name]
            known = by_origin.pop(same[0]) if same else None
        if known is None and die.name and found:
            frame = found[0]._frame
            known = DieVariable(die.name, True, 0, die, frame, unit.info.name)
        if known is None and die.name:
            frame = FrameContext(0, False, None, lambda: nowhere("is not described"))
            known = DieVariable(die.name, True, 0, die, frame, unit.info.name)
        if known is not None:
            ordered.append(known)
    return (*ordered, *by_origin.values())


class ScopeReader:
    """Collects what is visible at an address of one function."""

    def __init__(self, unit: Unit, frame: FrameContext) -> None:
        self._unit = unit
        self._frame = frame
        self.parameters: list[DieVariable] = []
        self.locals: list[DieVariable] = []
        self.hidden: list[DieVariable] = []
        self.inlined: list[int] = []
        self.blocks: list[int] = []
        """Scopes around the address that hold anything, the outermost first."""

    def walk(self, index: int) -> None:
        """From a subprogram down to the innermost scope around the address."""
        unit, shape, pc = self._unit, self._unit.shape, self._frame.pc
        top = index
        here: int | None = index
        for _ in range(_MAX_SCOPES):
            if here is None:
                return
            inner: int | None = None
            own: list[DieVariable] = []
            if here == top or shape.tags[here] == _INLINED or self._holds_names(here):
                self.blocks.append(here)
            for child in shape.children(here):
                tag = shape.tags[child]
                if tag in (_PARAMETER, _VARIABLE):
                    variable = self._variable(child, tag == _PARAMETER)
                    if variable is not None and here == top and variable.is_parameter:
                        self.parameters.append(variable)
                    elif variable is not None:
                        own.append(variable)
                elif inner is None and (tag == _INLINED or tag in _SCOPES):
                    ranges = read_ranges(Die(unit, shape.offsets[child]))
                    if any(low <= pc < high for low, high in ranges):
                        inner = child
                        if tag == _INLINED:
                            self.inlined.append(child)
            if unit.root.number(dies.AT_LANGUAGE) == _GO:  # its compiler sorts them by their size
                own.sort(key=lambda variable: variable.line)
            self.locals[:0] = own
            here = inner

    def _holds_names(self, index: int) -> bool:
        """True if gdb makes a block of a lexical one: it does of those that have symbols."""
        shape = self._unit.shape
        return any(shape.tags[child] in _SYMBOLS for child in shape.children(index))

    def _variable(self, index: int, is_parameter: bool) -> DieVariable | None:
        die = Die(self._unit, self._unit.shape.offsets[index])
        name = die.name
        if name is None:
            return None
        file, depth = self._unit.info.name, len(self.inlined)
        if name.startswith(".") and self._unit.root.number(dies.AT_LANGUAGE) == _GO:
            # The compiler's own: names of the source have no dot.
            if name == _GO_DICTIONARY:
                found = DieVariable(name, is_parameter, depth, die, self._frame, file)
                self.hidden.append(found)
            return None
        if name.startswith("&"):
            return EscapedVariable(name[1:], is_parameter, depth, die, self._frame, file)
        return DieVariable(name, is_parameter, depth, die, self._frame, file)
