"""Calls of the program's functions whose effects on its memory stay, as in gdb.

A call runs on a copy (`engine.session.guest.calling`); what it has left there is written over the
program's own memory when it returns, and nothing where it fails.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.session.guest.call_effects import CallEffects
from engine.session.guest.calling import CallArguments, CallOutcome
from engine.session.protocol import commands as cmd

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger

_ALLOCATOR = "malloc"


class KeptCalls:
    """Calls functions of one debugger's program."""

    def __init__(
        self, debugger: "Debugger", guard: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Take a debugger; `guard` listens to the host while the guest moves."""
        self._debugger, self._guard = debugger, guard

    def call(self, address: int, given: CallArguments, results: tuple[str, ...]) -> CallOutcome:
        """Call a function, and keep what it does to memory.

        Args:
            address: of the function.
            given: its arguments.
            results: registers whose values are told.

        Raises:
            CommandError: it cannot be called.
        """
        given = replace(given, whole=tuple(self._kept_text(one) for one in given.whole))
        with self._guard():
            outcome = self._debugger.control.call(address, given, results, keeps=True)
        self._keep(outcome.effects)
        return outcome

    def _keep(self, effects: CallEffects) -> None:
        """Have the program's memory as a called function has left it."""
        debugger = self._debugger
        trouble = debugger.control.keep_mapped(effects)
        if trouble:
            debugger.complain(
                f"warning: What the function did to memory does not stay: {trouble}."
            )
            return
        self._write(effects)
        debugger.refresh()

    def _write(self, effects: CallEffects) -> None:
        """Write what a call on a copy has left into the program's own memory."""
        for address, data in effects.stretches():
            self._debugger.execute(cmd.WriteMemory(address, data))

    def _kept_text(self, given: int | bytes) -> int | bytes:
        """An argument that a function may keep the address of: in memory that malloc has given."""
        allocate = self._allocator if isinstance(given, bytes) else None
        if not isinstance(given, bytes) or allocate is None:
            return given
        control = self._debugger.control
        result = control.session.arch.linux.result
        with self._guard():
            made = control.call(allocate, CallArguments((len(given),)), (result,), keeps=True)
        address = made.registers[result]
        if not address or control.keep_mapped(made.effects):
            return given
        self._write(made.effects)
        self._debugger.execute(cmd.WriteMemory(address, given))
        return address

    @property
    def _allocator(self) -> int | None:
        """The address of the program's malloc; None for a program without it."""
        debugger = self._debugger
        seen = debugger.control.session.seen
        loader = seen.modules.main and seen.modules.main.image.interpreter
        for module in debugger.files.modules(there=seen):
            for symbol in module.symbols.find_all(_ALLOCATOR) if module.name != loader else ():
                if symbol.is_function and symbol.size:
                    return symbol.address + module.bias
        return None
