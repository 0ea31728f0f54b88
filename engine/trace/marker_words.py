"""Arguments of static probes (USDT) as fetch arguments: `-4@-16(%rbp)` becomes `-16(%bp):s32`.

perf probe writes the same for registers, memory behind a register and constants (its `sdt`
events). Memory at a symbol is given as an offset in the file, which the kernel takes; memory
behind two registers, `+8(%ax+%di*4)`, is ours: no kernel can fetch it.
"""

from collections.abc import Callable

from engine.arch.base import Arch
from engine.arch.marker_operands import MarkerOperand
from engine.errors import ProbeError


class UnfetchableError(ProbeError):
    """An argument that cannot be fetched; its text says why."""


SymbolOffset = Callable[[str, bool], int]
"""(name of a symbol, whether an absolute address is needed) to its address, or to what `@+` takes.

It raises an `UnfetchableError` where the symbol has no address.
"""


def fetch_words(operand: MarkerOperand, arch: Arch, symbol: SymbolOffset) -> tuple[str, str]:
    """An argument's body and type in a definition.

    A floating number gives its bits: fetch arguments are integers.

    Args:
        operand: where it is.
        arch: of the program.
        symbol: finds symbols of the file.

    Raises:
        UnfetchableError: it cannot be fetched.
    """
    if operand.problem:
        raise UnfetchableError(operand.problem)
    letter = "x" if operand.real else "s" if operand.signed else "u"
    kind = f"{letter}{8 * operand.size}"
    if operand.memory:
        return _memory(operand, arch, symbol), kind
    if not operand.base:
        return _constant(operand, arch), kind
    if operand.first:
        if operand.signed:
            raise UnfetchableError(f"{operand.text}: a signed part of a register")
        kind = f"b{8 * operand.size}@{8 * operand.first}/{8 * (operand.size + operand.first)}"
    return f"%{_named(operand.base, arch)}", kind


def _constant(operand: MarkerOperand, arch: Arch) -> str:
    limit = 1 << arch.bits
    if not -limit // 2 <= operand.number < limit:
        raise UnfetchableError(f"{operand.number} does not fit into {arch.bits} bits")
    return f"\\{operand.number}"


def _memory(operand: MarkerOperand, arch: Arch, symbol: SymbolOffset) -> str:
    number = operand.number
    if operand.symbol:
        absolute = not operand.relative
        number += symbol(operand.symbol, absolute)
        if not absolute:
            return f"@+{number:#x}" if number >= 0 else f"@+-{-number:#x}"
    if not -(1 << arch.bits - 1) <= number < 1 << arch.bits - 1:
        raise UnfetchableError(f"{operand.text}: its distance does not fit")
    base = f"%{_named(operand.base, arch)}" if operand.base else ""
    if operand.index:
        scale = f"*{operand.scale}" if operand.scale > 1 or not base else ""
        base += f"{'+' if base else ''}%{_named(operand.index, arch)}{scale}"
    if not base:
        return f"@{number % (1 << arch.bits):#x}"
    return f"{number:+d}({base})"


def _named(register: str, arch: Arch) -> str:
    """A register's name in definitions."""
    for short, full in arch.probes.fetch_registers.items():
        if full == register:
            return short
    raise UnfetchableError(f"register {register} cannot be fetched")
