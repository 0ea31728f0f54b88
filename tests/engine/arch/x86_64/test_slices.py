"""Parts of registers: each lies within a register that there is."""

from engine.arch.x86_64 import X86_64
from engine.arch.x86_64.slices import SLICES


def test_each_lies_within_its_register() -> None:
    widths = {item.name: item.bits // 8 for item in X86_64.registers}
    assert all(start + size <= widths[whole] for whole, start, size in SLICES.values())
    assert not SLICES.keys() & widths.keys()


def test_the_old_names() -> None:
    assert SLICES["eax"] == ("rax", 0, 4)
    assert SLICES["ch"] == ("rcx", 1, 1)
    assert SLICES["sil"] == ("rsi", 0, 1)
    assert SLICES["r9d"] == ("r9", 0, 4)
    assert "sp" not in SLICES  # the whole stack pointer, as in gdb
