"""The processor as system calls and signals have it, with all that they write noted.

It stands between the guest's kernel and the processor where registers of the program are changed;
the machinery of probes, and whoever only looks, have the processor itself.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.history.journal import Op

if TYPE_CHECKING:
    from engine.cpu.base import Cpu

Note = Callable[..., None]

_WIDE: Final = 16
"""Bytes of the widest registers."""


class NotedRegisters:
    """Passes everything on to a processor, and notes what changes it; a `Cpu`.

    Attributes:
        note: told the kind of change (one of `Op`) and what follows it, before it is made; None
            while nobody wants to know.
        saved: the registers that were saved since this list was made empty.
    """

    def __init__(self, cpu: "Cpu", blank: Callable[[], object]) -> None:
        """No listener is told.

        Args:
            cpu: the processor.
            blank: its registers as a program begins with them.
        """
        self._cpu = cpu
        self._blank = blank
        self.note: Note | None = None
        self.saved: list[object] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cpu, name)

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""
        self.told(name, value)
        self._cpu.write_register(name, value)

    def told(self, name: str, value: int) -> None:
        """A register gets a value."""
        if self.note is None:
            return
        if value >> 64:  # as files have no such numbers
            self.note(Op.BLOCK, (name,), _WIDE, value.to_bytes(_WIDE, "little"))
        else:
            self.note(Op.REGISTER, name, value)

    def write_block(self, names: Sequence[str], size: int, data: bytes) -> None:
        """Set registers from bytes."""
        if self.note is not None:
            self.note(Op.BLOCK, tuple(names), size, bytes(data))
        self._cpu.write_block(names, size, data)

    def clear_float_flags(self) -> None:
        """Forget sticky floating-point exceptions."""
        if self.note is not None:
            self.note(Op.CLEAR_FLAGS)
        self._cpu.clear_float_flags()

    def execute(self, address: int, end: int) -> None:
        """Run code of the engine's own."""
        if self.note is not None:
            self.note(Op.EXECUTE, address, end)
        self._cpu.execute(address, end)

    def expect(self, address: int) -> None:
        """Tell the clock where the program goes on."""
        if self.note is not None:
            self.note(Op.EXPECT, address)
        self._cpu.expect(address)

    def go_on(self, position: object) -> None:
        """Tell the clock that a program begins: nothing else is done from system calls."""
        if self.note is not None:
            self.note(Op.BEGIN)
        self._cpu.go_on(position)

    def save(self, into: object = None) -> object:
        """All registers."""
        state = self._cpu.save(into)
        if self.note is not None:
            self.note(Op.SAVE)
            self.saved.append(state)
        return state

    def restore(self, state: object) -> None:
        """Go back to saved registers."""
        if self.note is not None:
            number = -1
            if state is not self._blank():
                number = next(at for at, each in enumerate(self.saved) if each is state)
            self.note(Op.RESTORE, number)
        self._cpu.restore(state)
