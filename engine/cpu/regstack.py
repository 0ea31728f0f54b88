"""Registers that processors with a register stack keep back from memory."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class RegisterStack(Protocol):
    """A processor that writes stacked registers to memory when it likes."""

    def with_stack(self, address: int, data: bytes) -> bytes:
        """Bytes of memory with what its register stack has not yet written to there."""
