"""Stops where a kernel tells of something bad: an oops, a panic, a warning."""

from collections.abc import Iterable
from typing import Final

from engine.errors import CommandError
from engine.escaping import escaped
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.debugging import DebuggedMachine

OOPS: Final = "oops"
PANIC: Final = "panic"
WARN: Final = "warn"
_PLACES: Final = {OOPS: "oops_enter", PANIC: "panic", WARN: "__warn"}
"""Functions of kernel/panic.c that each of a kind goes through first."""
CATCHES: Final = tuple(_PLACES)
_TEXT_MOST: Final = 256


class KernelCatches:
    """The kinds of what a machine stops at, besides its breakpoints.

    Attributes:
        kinds: those that are on, by the address of their function.
    """

    def __init__(self, opened: OpenedKernel, machine: DebuggedMachine) -> None:
        """None is on.

        Args:
            opened: the kernel.
            machine: it runs in.
        """
        self.kinds: dict[int, str] = {}
        self._opened, self._machine = opened, machine

    def choose(self, kinds: Iterable[str]) -> None:
        """Turn these kinds on, and all others off.

        Raises:
            CommandError: there is no such kind, or the kernel has no such function.
        """
        found: dict[int, str] = {}
        for kind in kinds:
            function = _PLACES.get(kind)
            if function is None:
                raise CommandError(f"catch {kind}: there are {', '.join(CATCHES)}")
            address = self._opened.names.find(function)
            if address is None:
                raise CommandError(f"catch {kind}: this kernel has no {function}")
            found[address] = kind
        self.kinds = found

    @property
    def places(self) -> set[int]:
        """The addresses at which the machine is to stop."""
        return set(self.kinds)

    def caught(self) -> str:
        """The words for what was caught where the machine stands; "" for nothing."""
        machine = self._machine
        kind = self.kinds.get(machine.pc, "")
        what = ""
        if kind == PANIC:
            what = self._text(machine.register("rdi"))
        elif kind == WARN:
            file = self._text(machine.register("rdi"))
            what = f"{file}:{machine.register('rsi') & 0xFFFFFFFF}" if file else ""
        if not kind:
            return ""
        told = {OOPS: "an oops", PANIC: "a panic", WARN: "a warning"}[kind]
        return f"caught {told}: {what}" if what else f"caught {told}"

    def _text(self, address: int) -> str:
        """A text of the kernel's; "" where there is none."""
        found = self._machine.read(address, _TEXT_MOST).partition(b"\0")[0]
        return escaped(found.decode(errors="surrogateescape").strip())
