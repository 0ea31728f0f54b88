"""The places where functions' bodies begin, behind their prologues, as gdb finds them.

gdb: gdb/symtab.c (skip_prologue_sal), gdb/amd64-tdep.c (amd64_skip_prologue). Line tables tell
where they come from LLVM, and on all machines but x86-64; instructions tell for GCC there. Go's
compiler marks the body of a function that first looks whether its stack is large enough.
"""

from collections.abc import Callable
from typing import Final

from engine.errors import ImageError
from engine.guest.modules import Module
from engine.image import dies, forms
from engine.image.dies import Die, Unit
from engine.image.gotypes import GO
from engine.image.reader import DamagedError
from engine.image.scopes import CodeBlock
from engine.image.variables import Variables

_VARIABLE, _PARAMETER = 0x34, 0x05
_AT_PRODUCER: Final = 0x25
_LONGEST: Final = 64
"""Bytes of code that are looked at."""


class FunctionBodies:
    """Finds the places behind prologues in the files of a guest."""

    def __init__(
        self,
        frame_made: Callable[[bytes], int] | None,
        variables: Callable[[Module], Variables],
        block: Callable[[Module, int], CodeBlock | None],
    ) -> None:
        """Nothing is looked up yet.

        Args:
            frame_made: see `ArchUnwind`.
            variables: gives the variables of a file.
            block: gives the innermost block of code around a link address of a file.
        """
        self._frame_made = frame_made
        self._variables, self._block = variables, block
        self._optimized: dict[int, bool] = {}

    def of(self, module: Module, link: int) -> int:
        """The place behind the prologue of a function, or of an inlined copy, that begins there.

        Args:
            module: the file.
            link: link address of its first instruction.

        Returns:
            A link address; that of a copy is its own, unless it is in a prologue.
        """
        try:
            scope = self._variables(module).scope(link)
        except (ImageError, DamagedError):
            scope = None
        if scope is None or scope.unit is None:
            return self._of_symbol(module, link)
        block = self._block(module, link)
        if block is None or self._is_optimized(scope.unit):
            return link
        function = block.functions[-1]
        return max(link, self._skipped(module, function.start, function.end, scope.unit))

    def _of_symbol(self, module: Module, link: int) -> int:
        """The same of a function that only a symbol table knows."""
        return self._behind_frame(module, link)

    def _skipped(self, module: Module, start: int, end: int, unit: Unit) -> int:
        if unit.root.number(dies.AT_LANGUAGE) == GO:
            return module.lines.marked_body(start, end) or start
        by_lines = module.lines.body_by_lines(start, end, self._in_copy(module))
        if self._frame_made is None:
            return by_lines or start
        llvm = "clang " in (unit.root.string(_AT_PRODUCER) or "")  # rustc says so, too
        found = max(start, by_lines) if llvm and by_lines else self._behind_frame(module, start)
        span = module.lines.span_at(found)
        if span is not None and span[0] != found and start <= span[1] < end:
            return span[1]  # what is left of the line is of the prologue, too
        return found

    def _behind_frame(self, module: Module, start: int) -> int:
        """The place behind the instructions that make a frame; the start where none do."""
        if self._frame_made is None:
            return start
        try:
            return start + self._frame_made(module.image.read_vaddr(start, _LONGEST))
        except ImageError:
            return start

    def _in_copy(self, module: Module) -> Callable[[int], bool]:
        def asked(link: int) -> bool:
            block = self._block(module, link)
            return block is not None and block.functions[0].inlined

        return asked

    def _is_optimized(self, unit: Unit) -> bool:
        """True if GCC says where variables are from a function's first instruction on."""
        known = self._optimized.get(id(unit))
        if known is None:
            producer = unit.root.string(_AT_PRODUCER) or ""
            known = self._optimized[id(unit)] = producer.startswith("GNU ") and _has_lists(unit)
        return known


def _has_lists(unit: Unit) -> bool:
    """True if a variable or parameter of a unit has a list of locations."""
    lists = any(
        name == dies.AT_LOCATION and step not in forms.BLOCK_STEPS
        for abbrev in unit.abbrevs.values()
        if abbrev.tag in (_VARIABLE, _PARAMETER)
        for name, _, _, step in abbrev.attributes
    )
    shape = unit.shape
    # Units of link-time optimisation share their abbreviations: the entries themselves tell then.
    return lists and any(
        isinstance(Die(unit, shape.offsets[index]).get(dies.AT_LOCATION), int)
        for index, tag in enumerate(shape.tags)
        if tag in (_VARIABLE, _PARAMETER)
    )
