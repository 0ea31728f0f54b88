"""Variables and parameters that are known at an instruction, with their types and places.

Nothing is read before the first question, and then the unit that holds the address. What a
damaged file says is an `ImageError` that names the place; nothing here hangs or recurses on
it: every list is bounded by the bytes it stands in, every chain of references by a number.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.errors import ImageError
from engine.image import dies, headers
from engine.image.cfa import cfa_at
from engine.image.debuginfo import DebugInfo
from engine.image.dies import Die, Unit
from engine.image.dietypes import DieType
from engine.image.elf import ElfImage
from engine.image.expressions import (
    OPTIMIZED_OUT,
    FrameContext,
    VariableLocation,
    Where,
    location_of,
    nowhere,
)
from engine.image.functions import function_block
from engine.image.ranges import read_functions, read_ranges
from engine.image.reader import DamagedError
from engine.image.scopes import (
    CodeBlock,
    DieVariable,
    FunctionBlock,
    Scope,
    ScopeReader,
    Variable,
    blaming,
    in_order,
)

if TYPE_CHECKING:
    from engine.image.callsites import CallSite
    from engine.image.kernel.btfscopes import BtfScopes

__all__ = ["Scope", "Variable", "Variables"]


_INLINED, _VARIABLE, _LABEL, _BLOCK, _DECL_LINE = 0x1D, 0x34, 0x0A, 0x0B, 0x3B
_ASSEMBLER: Final = 0x8001  # DW_LANG_Mips_Assembler, which assemblers of all machines give
_BLOCKS_KEPT: Final = 1024
_SPACES: Final = frozenset((0x11, 0x4A, 0x39, 0x3C, 0x41, 0x1E))  # units, namespaces, modules


class Variables:
    """The variables of one image; addresses are its link addresses."""

    def __init__(self, image: ElfImage, debug_dirs: Sequence[str] | None = None) -> None:
        """Nothing is read yet.

        Args:
            image: the program or library.
            debug_dirs: folders to search for a separate debug file; None = the usual ones.
        """
        self.image = image
        self._debug_dirs = debug_dirs
        self._functions: dict[int, list[tuple[int, int, int]]] = {}
        self._calls: dict[int, dict[int, CallSite]] = {}
        self._code_blocks: dict[int, CodeBlock | None] = {}

    @cached_property
    def info(self) -> DebugInfo | None:
        """The debug information; None = there is none."""
        return DebugInfo.of(self.image, self._debug_dirs)

    @cached_property
    def carried(self) -> "BtfScopes | None":
        """BTF of functions that the DWARF of the file does not describe; None without it."""
        if self.image.section(headers.BTF) is None:
            return None
        from engine.image.kernel.btfscopes import BtfScopes  # kernels' alone, nearly

        return BtfScopes.of(self.image)

    @property
    def are_known(self) -> bool:
        """True if there is any debug information.

        Raises:
            ImageError: it is damaged.
        """
        return self.info is not None or self.carried is not None

    def at(self, pc: int, name: Callable[[int], str] = str) -> list[tuple[str, str, str]]:
        """(name, type, location) of what is known at an instruction, for people.

        Args:
            pc: link address.
            name: of a register by its DWARF number.

        Raises:
            ImageError: the debug information is damaged.
        """
        scope = self.scope(pc)
        found = scope.visible if scope is not None else ()
        return [(v.name, v.type_text, v.location.text(name)) for v in found]

    def scope(self, pc: int, pad: int = 0) -> Scope | None:
        """The variables known at an instruction; None where no function is described.

        Args:
            pc: link address.
            pad: bytes of a landing pad at the function's start: the instruction behind it is
                the entry too.

        Raises:
            ImageError: the debug information is damaged, or a part of it is missing.
        """
        if self.info is not None:
            with blaming(self.info.name, f"at {pc:#x}"):
                for unit in self.info.containing(pc):
                    index = self._function(unit, pc)
                    if index is not None:
                        return self._scope(unit, index, pc, pad)
        return None if self.carried is None else self.carried.scope(pc, pad)

    def copy_at(self, pc: int) -> int | None:
        """Which inlined copy of a function an address is in; None for none or if not known."""
        try:
            for unit in self.info.containing(pc) if self.info is not None else ():
                index = self._function(unit, pc)
                if index is not None:
                    reader = _blocks(unit, index, pc)
                    return reader.inlined[-1] if reader.inlined else None
        except DamagedError as error:
            self.image.damage.note(f"{self.image.name}: inlined copy at {pc:#x}: {error}")
        except ImageError:  # a part of it is in a file that we do not have
            pass
        return None

    def block_at(self, pc: int) -> CodeBlock | None:
        """The innermost block of code around an address; None if none is known."""
        if pc not in self._code_blocks:  # deep recursion asks for one address again and again
            if len(self._code_blocks) >= _BLOCKS_KEPT:
                self._code_blocks.clear()
            self._code_blocks[pc] = self._block(pc)
        return self._code_blocks[pc]

    def _block(self, pc: int) -> CodeBlock | None:
        try:
            for unit in self.info.containing(pc) if self.info is not None else ():
                index = self._function(unit, pc)
                if index is not None:
                    reader = _blocks(unit, index, pc)
                    functions = [function_block(unit, one) for one in (index, *reader.inlined)]
                    key = unit.offset, reader.blocks[-1]
                    return CodeBlock(key, tuple(reversed(functions)))
        except DamagedError as error:
            self.image.damage.note(f"{self.image.name}: block at {pc:#x}: {error}")
        except ImageError:  # a part of it is in a file that we do not have
            pass
        return None

    def type_of(self, function: FunctionBlock) -> DieType | None:
        """The type of a function, as its declaration has it; None where it is damaged."""
        info, (unit, index) = self.info, function.key
        if info is None:
            return None
        try:
            whole = info.unit("info", unit)
            return DieType(Die(whole, whole.shape.offsets[index]).origins()[-1])
        except DamagedError as error:
            self.image.damage.note(f"{self.image.name}: type of {function.name}: {error}")
            return None

    def pieces(self, function: FunctionBlock) -> list[tuple[int, int]]:
        """The ranges of a function's link addresses, that of its begin first."""
        info, (unit, index) = self.info, function.key
        if info is None:
            return []
        try:
            whole = info.unit("info", unit)
            return list(read_ranges(Die(whole, whole.shape.offsets[index])))
        except (DamagedError, ImageError):
            return []

    def labels(self, function: FunctionBlock) -> dict[str, tuple[int, int]]:
        """The link addresses of the labels in a function's code, and their lines, by name."""
        info, (unit, index) = self.info, function.key
        found: dict[str, tuple[int, int]] = {}
        if info is None:
            return found
        try:
            whole = info.unit("info", unit)
            shape = whole.shape
            todo = list(shape.children(index))
            while todo:
                one = todo.pop()
                if shape.tags[one] == _LABEL:
                    die = Die(whole, shape.offsets[one])
                    at = die.address(dies.AT_LOW_PC)
                    if die.name and at is not None:
                        found.setdefault(die.name, (at, die.number(_DECL_LINE) or 0))
                elif shape.tags[one] == _BLOCK:
                    todo += shape.children(one)
        except (DamagedError, ImageError):
            pass
        return found

    def call_at(self, behind: int) -> "CallSite | None":
        """The call in front of a link address; None where no compiler tells of it."""
        return next((site for _, site in self.calls_in(behind - 1, behind)), None)

    def calls_in(self, start: int, end: int) -> "list[tuple[int, CallSite]]":
        """The calls of a range of link addresses, with the addresses behind them."""
        from engine.image.callsites import call_sites  # the debugger alone asks

        found: list[tuple[int, CallSite]] = []
        try:
            for unit in self.info.containing(start) if self.info is not None else ():
                known = self._calls.get(id(unit))
                if known is None:
                    known = self._calls[id(unit)] = call_sites(unit)
                if end == start + 1:
                    found += [(end, known[end])] if end in known else []
                else:
                    found += [(at, site) for at, site in known.items() if start < at <= end]
        except DamagedError as error:
            self.image.damage.note(f"{self.image.name}: calls at {start:#x}: {error}")
        except ImageError:  # a part of it is in a file that we do not have
            pass
        return found

    def inlined(self, name: str) -> list[int]:
        """The inlined copies of a function: link addresses of their first instructions.

        Args:
            name: of the function, as in the source or as the linker would call it.

        Raises:
            ImageError: the debug information is damaged, or a part of it is missing.
        """
        info = self.info
        if info is None or not name:
            return []
        found: set[int] = set()
        with blaming(info.name, f"inlined copies of {name}"):
            for unit in info.naming((name,)):
                if unit.kind not in dies.TYPE_UNITS:
                    found.update(self._inlined_in(info.whole(unit), name))
        low, high = max(self.image.low, 1), self.image.high
        return sorted(address for address in found if low <= address < high)

    def global_variable(self, scope: Scope, name: str) -> Variable | None:
        """A variable of the file's own scope, a namespace's or a function's static one.

        Args:
            scope: seen from where.
            name: of it.

        Raises:
            ImageError: the debug information is damaged.
        """
        unit = scope.unit
        if unit is None:
            return None
        file = unit.info.name
        frame = FrameContext(scope.start, False, None, lambda: nowhere("is none"))
        declared: DieVariable | None = None
        with blaming(file, f"variable {name}"):
            shape = unit.shape
            for index, tag in enumerate(shape.tags):
                parent = shape.parents[index]
                if tag != _VARIABLE or parent < 0 or shape.tags[parent] not in _SPACES:
                    continue
                die = Die(unit, shape.offsets[index])
                if die.name == name:
                    found = DieVariable(name, False, 0, die, frame, file)
                    if not found.is_declaration:
                        return found
                    declared = declared or found
        return declared

    # -- functions ---------------------------------------------------------------

    def _function(self, unit: Unit, pc: int) -> int | None:
        """The index of the innermost subprogram around an address."""
        table = self._functions.get(id(unit))
        if table is None:
            # An assembler tells of functions, but never of their parameters.
            known = unit.root.number(dies.AT_LANGUAGE) != _ASSEMBLER
            table = self._functions[id(unit)] = read_functions(unit) if known else []
        at = bisect_right(table, pc, key=lambda row: row[0])
        # Nested functions do not overlap their parents; a damaged file's may.
        for low, high, index in reversed(table[max(at - 4, 0) : at]):
            if low <= pc < high:
                return index
        return None

    def _scope(self, unit: Unit, index: int, pc: int, pad: int) -> Scope:
        die = Die(unit, unit.shape.offsets[index])
        start = _start(die)
        entry = pc == start or (pad > 0 and pc == start + pad)
        frame = self._frame(die, pc, entry)
        reader = ScopeReader(unit, frame)
        reader.walk(index)
        base = frame.base()
        origins = die.origins()
        names = [Die(unit, unit.shape.offsets[inner]).name or "?" for inner in reader.inlined]
        return Scope(
            function=die.name or die.linkage_name or "?",
            inlined=tuple(names),
            start=start,
            entry=entry,
            language=unit.root.number(dies.AT_LANGUAGE) or 0,
            parameters=in_order(reader.parameters, origins[-1] if len(origins) > 1 else None),
            locals=tuple(reader.locals),
            returns=DieType(die.type),
            frame_register=base.register if base.where is Where.REGISTER else None,
            unit=unit,
            hidden=tuple(reader.hidden),
        )

    def _frame(self, die: Die, pc: int, entry: bool) -> FrameContext:
        cfa = cfa_at(self.image, pc)
        bare = FrameContext(pc, entry, cfa, lambda: nowhere("is described by itself"))

        def base() -> VariableLocation:
            found = location_of(die, dies.AT_FRAME_BASE, bare)
            return found or nowhere("is not described")

        return FrameContext(pc, entry, cfa, base)

    def _inlined_in(self, unit: Unit, name: str) -> Iterator[int]:
        shape = unit.shape
        wanted: dict[tuple[int, str, int], bool] = {}
        for index, tag in enumerate(shape.tags):
            if tag != _INLINED:
                continue
            die = Die(unit, shape.offsets[index])
            origin = die.reference(dies.AT_ABSTRACT_ORIGIN)
            if origin is None:
                continue
            if origin.key not in wanted:
                wanted[origin.key] = name in (origin.name, origin.linkage_name)
            if wanted[origin.key] and read_ranges(die):
                yield _start(die)


def _start(die: Die) -> int:
    """The entry of a function or of an inlined copy (DWARF 5, 2.18).

    GCC's entry of a copy whose instructions were moved may lie outside of it: then it is no
    place where the copy's variables are known, and the first range's start counts, as in gdb.
    """
    ranges = read_ranges(die)
    low = die.address(dies.AT_LOW_PC)
    base = low if low is not None else ranges[0][0]
    given = die.number(dies.AT_ENTRY_PC)
    if given is None:
        return base
    address = die.address(dies.AT_ENTRY_PC)
    entry = base + given if address is None else address
    return entry if any(start <= entry < end for start, end in ranges) else ranges[0][0]


def _blocks(unit: Unit, function: int, pc: int) -> ScopeReader:
    """The blocks and inlined functions around an address, without where variables are."""
    reader = ScopeReader(unit, FrameContext(pc, False, None, lambda: OPTIMIZED_OUT))
    reader.walk(function)
    return reader
