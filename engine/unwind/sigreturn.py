"""Rows for the code that a signal handler returns to: rt_sigreturn, recognised by its bytes.

C libraries describe theirs in .eh_frame, some with rules that are not quite right; a program's
own and the kernel's have no table at all. The frame's layout is the kernel's in every case.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.unwind.rows import AtRegister, CfaExpression, CfiRow, Rule

_BREG0: Final = 0x70
_DEREF: Final = 0x06


class SignalFrames:
    """Recognises signal return code."""

    source: Final = "trampoline"

    def __init__(self, arch: Arch, read: Callable[[int, int], bytes]) -> None:
        """`read` gives the program's code, less where it ends."""
        assert arch.unwind is not None, "checked by the unwinder"
        self._codes = arch.unwind.sigreturn
        self._read = read
        sp, pc = arch.roles.sp, arch.roles.pc
        rules: dict[str, Rule] = {
            name: AtRegister(sp, offset) for name, offset in arch.unwind.saved.items()
        }
        # The CFA is sp where the program was interrupted, as in the C libraries' own tables.
        number = next(r.dwarf for r in arch.registers if r.name == sp) or 0
        where = bytes((_BREG0 + number, *_sleb(arch.unwind.saved[sp]), _DEREF))
        self._row = CfiRow(CfaExpression(where), rules, pc, signal_frame=True)

    def row(self, pc: int) -> CfiRow | None:
        """The row if signal return code stands at `pc`, exactly."""
        for code, places in self._codes:
            for place in places:
                if self._read(pc - place, len(code)) == code:
                    return self._row
        return None


def _sleb(value: int) -> bytes:
    """A small non-negative number as SLEB128."""
    found = bytearray()
    while value > 0x3F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
