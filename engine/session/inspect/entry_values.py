"""Registers at the first instruction of a frame's function, as its caller tells of the call.

A compiler notes at a call what it gives to the callee, in terms that outlive the call (DWARF 5,
3.4). Values of parameters that are gone follow from that, and gdb's `n@entry`
(gdb/dwarf2/loc.c, dwarf_expr_reg_to_entry_parameter).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.guest.modules import Module
from engine.image.callsites import register_of
from engine.image.headers import PT_TLS
from engine.image.reader import DamagedError
from engine.image.scopes import DieVariable, Scope, Variable

if TYPE_CHECKING:
    from engine.session.inspect.frame_scope import FrameScope


class EntryValues:
    """Registers of a frame at the entry of its function."""

    def __init__(
        self, scope: Scope, module: Module, caller: "Callable[[], FrameScope | None]"
    ) -> None:
        """Nothing is asked yet.

        Args:
            scope: the function.
            module: its file.
            caller: gives the frame that the function was called from.
        """
        self._scope, self._module, self._caller = scope, module, caller
        self._known: dict[int, int | None] = {}

    def register(self, number: int) -> int | None:
        """A register by its DWARF number; None if nobody tells."""
        if number not in self._known:
            self._known[number] = None  # of a call that asks for itself
            self._known[number] = self._asked(number)
        return self._known[number]

    def of(self, variable: Variable) -> int | None:
        """The bits of a parameter's register; None for what is not known or was in memory."""
        if not isinstance(variable, DieVariable) or not variable.is_parameter or variable.depth:
            return None
        try:
            number = register_of(variable.expression_at(self._scope.start))
        except DamagedError:
            return None
        return None if number is None else self.register(number)

    def _asked(self, number: int) -> int | None:
        caller = self._caller()
        site = caller.call_site() if caller is not None else None
        code = site.given.get(number) if site is not None else None
        if caller is None or site is None or code is None:
            return None
        if site.callee:
            symbols = self._module.symbols.covering(self._scope.start)
            names = {self._scope.function, *(one.name for one in symbols)}
            if not names & site.callee:
                return None
        elif caller.number_of(site.target, site.unit) != self._scope.start + self._module.bias:
            return None
        return caller.number_of(code, site.unit)


def thread_local(
    module: Module | None, behind: int | None, pointer: int | None, offset: int
) -> int | None:
    """The address of a thread-local variable of the program (ELF Handling For TLS, 3).

    Args:
        module: its file; blocks of libraries are found by the C library alone.
        behind: see `ElfAbi.thread_block`.
        pointer: of the thread.
        offset: of the variable in the block of its file.
    """
    segments = module.image.segments if module is not None else ()
    block = next((one for one in segments if one.type == PT_TLS), None)
    if block is None or not pointer:
        return None
    align = max(block.align, 1)
    if behind is None:
        return pointer - -(-(block.memsz + block.vaddr % align) // align) * align + offset
    return pointer + -(-behind // align) * align + offset
