"""The call that stands in place of a uprobe's no-operation."""

from msgspec import Struct

from engine.arch.nop_call import NopCalls
from engine.probes.nop5 import KIND
from engine.probes.trampoline_table import TrampolineTable


class UprobeCall(Struct, frozen=True):
    """The call of one point, a `Replacement`; addresses are the guest's.

    Attributes:
        address: of the probe.
        start: of the trampoline.
        calls: what the architecture gives.
        original: the no-operation.
        jump: the call.
        table: of the trampoline.
    """

    address: int
    start: int
    calls: NopCalls
    original: bytes
    jump: bytes
    table: TrampolineTable

    @property
    def kind(self) -> str:
        """The call's name for people."""
        return KIND

    @property
    def window(self) -> int:
        """One past the last byte of the no-operation."""
        return self.address + len(self.original)

    @property
    def bypass(self) -> None:
        """None: a no-operation is displaced nowhere."""

    @property
    def trap(self) -> int | None:
        """None: the trampoline's serves all."""
        return None

    @property
    def code(self) -> bytes:
        """The trampoline, which it shares."""
        return self.calls.code

    def lead(self, code: int) -> bool:
        """Have its hits go to code that finds the registers as they are at the probe."""
        return self.table.lead(self.window, code)

    def leave(self) -> None:
        """Leave them to the engine."""
        self.table.leave(self.window)

    @property
    def end(self) -> int:
        """One past the last byte of the trampoline."""
        return self.start + len(self.code)
