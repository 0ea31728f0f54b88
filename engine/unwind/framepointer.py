"""Rows from the frame pointer, for code that keeps one: the last resort.

x86-64 (System V ABI, figure 3.3): fp points at the caller's fp, with the return address above.
AArch64 (AAPCS64, section 6.4.6): fp points at a frame record of both, which stands anywhere in
the frame; that it ends the frame is a guess that only the CFA depends on. RISC-V (psABI, section
2.1 "Frame Pointer Convention"): fp is the end of the frame, the two stand right below it.
"""

from typing import Final

from engine.arch.base import Arch
from engine.unwind.rows import AtCfa, CfaRegister, CfiRow


class FramePointers:
    """The one row that fits every function with a frame pointer."""

    source: Final = "framepointer"

    def __init__(self, arch: Arch) -> None:
        roles, word = arch.roles, arch.bits // 8
        column = roles.link or roles.pc
        end = arch.unwind.frame_end if arch.unwind is not None else None
        self._row = CfiRow(
            CfaRegister(roles.fp, 2 * word if end is None else end),
            {roles.fp: AtCfa(-2 * word), column: AtCfa(-word)},
            column,
        )

    def row(self, pc: int, exact: bool) -> CfiRow:
        """The row; whether it fits shows when it is carried out."""
        return self._row
