"""Instructions of SSE that an emulator gets wrong, carried out on a CPU's registers.

Comparisons of strings (SSE4.2), on some of which Unicorn itself crashes; horizontal sums of a
register with itself (SSSE3); approximations of reciprocals, at which it sets flags that no
processor sets.

Sources: SDM volume 2, section 4.1 for the strings, and the instructions' pages. Approximations
are as near as a float gets: the manual bounds their error only.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.machine import ArchCpu, Insn, TrapError
from engine.arch.x86_64.decode import OPERAND_SIZE, REP, Decoded, decode
from engine.arch.x86_64.extended import (
    NEAREST,
    ONE,
    ControlWord,
    NumberKind,
    Real,
    divide,
    from_single,
    kind_of,
    narrowed,
    quiet,
    real,
    rounded,
    small,
    square_root,
)
from engine.arch.x86_64.operations import operand_address

_PROTECTION: Final = 13
_LANES: Final = 0xFFFF_FFFF
_CARRY, _ZERO, _SIGN, _OVERFLOW = 1, 0x40, 0x80, 0x800
_STATUS: Final = 0x8D5
_STRINGS: Final = frozenset(range(0x360, 0x364))
_HORIZONTAL: Final = frozenset((0x201, 0x202, 0x203, 0x205, 0x206, 0x207))
_APPROXIMATIONS: Final = frozenset((0x152, 0x153))
_ROOTS: Final = 0x152


def wrong(insn: Decoded) -> str:
    """Name what the emulator gets wrong with an instruction; empty for all others."""
    if insn.key in _STRINGS and insn.prefixes & OPERAND_SIZE:
        return "comparison of strings"
    if insn.key in _APPROXIMATIONS and not insn.prefixes & OPERAND_SIZE:
        return "approximation"
    if insn.key in _HORIZONTAL and not insn.memory:
        first, second = _registers(insn)
        if first == second:
            return "sum of a register with itself"
    return ""


def emulate(cpu: ArchCpu, insn: Insn) -> None:
    """Carry out an instruction that `wrong` names; the pc stays.

    Raises:
        TrapError: its operand is not aligned.
        GuestFaultError: of its operand.
    """
    decoded = decode(insn.raw)
    assert decoded is not None
    if decoded.key in _STRINGS:
        _compare(cpu, insn, decoded)
    elif decoded.key in _APPROXIMATIONS:
        _approximate(cpu, insn, decoded)
    else:
        _sum(cpu, decoded)


def _registers(insn: Decoded) -> tuple[int, int]:
    """Numbers of the two registers; MMX has no more than eight."""
    first, second = insn.reg, insn.modrm & 7
    if insn.key in _HORIZONTAL and not insn.prefixes & OPERAND_SIZE:
        return first, second
    return first | (insn.rex & 4) << 1, second | (insn.rex & 1) << 3


def _source(cpu: ArchCpu, insn: Insn, decoded: Decoded, size: int) -> int:
    if not decoded.memory:
        return cpu.read_register(f"xmm{_registers(decoded)[1]}")
    address = operand_address(decoded, insn.raw, insn.address)[0](cpu)
    if decoded.key not in _STRINGS and size == 16 and address & 15:
        raise TrapError(_PROTECTION)
    return int.from_bytes(cpu.read(address, size), "little")


# -- strings --------------------------------------------------------------------------------


def _elements(value: int, kind: int) -> list[int]:
    """Bytes or words, signed ones for the kinds 2 and 3."""
    raw = value.to_bytes(16, "little")
    size = 1 + (kind & 1)
    return [
        int.from_bytes(raw[at : at + size], "little", signed=kind > 1) for at in range(0, 16, size)
    ]


def _length(cpu: ArchCpu, name: str, *, wide: bool, most: int) -> int:
    """The length that a register says, whatever its sign."""
    bits = 64 if wide else 32
    value = cpu.read_register(name) & ((1 << bits) - 1)
    return min(most, value if not value >> (bits - 1) else (1 << bits) - value)


_Match = Callable[[list[int], list[int], int, int, int], bool]
"""(first, second, their lengths, position) to whether it matches there."""


def _any(first: list[int], second: list[int], one: int, other: int, at: int) -> bool:
    return at < other and second[at] in first[:one]


def _ranges(first: list[int], second: list[int], one: int, other: int, at: int) -> bool:
    limits = zip(first[0 : one - 1 : 2], first[1:one:2], strict=False)
    return at < other and any(low <= second[at] <= high for low, high in limits)


def _each(first: list[int], second: list[int], one: int, other: int, at: int) -> bool:
    if at < one and at < other:
        return first[at] == second[at]
    return at >= one and at >= other


def _ordered(first: list[int], second: list[int], one: int, other: int, at: int) -> bool:
    places = range(min(one, len(first) - at))
    return all(at + place < other and first[place] == second[at + place] for place in places)


_MATCHES: Final[tuple[_Match, ...]] = (_any, _ranges, _each, _ordered)


def _compare(cpu: ArchCpu, insn: Insn, decoded: Decoded) -> None:
    """Pcmpestrm, pcmpestri, pcmpistrm and pcmpistri."""
    how = insn.raw[decoded.immediate_at]
    first = _elements(cpu.read_register(f"xmm{_registers(decoded)[0]}"), how & 3)
    second = _elements(_source(cpu, insn, decoded, 16), how & 3)
    most = len(first)
    if decoded.key < 0x362:
        one, other = (_length(cpu, name, wide=decoded.wide, most=most) for name in ("rax", "rdx"))
    else:
        one, other = ((*each, 0).index(0) for each in (first, second))
        one, other = min(one, most), min(other, most)
    match, polarity = _MATCHES[how >> 2 & 3], how >> 4 & 3
    bits = 0
    for at in range(most):
        found = match(first, second, one, other, at)
        if polarity == 1 or (polarity == 3 and at < other):
            found = not found
        bits |= found << at
    flags = cpu.read_register("eflags") & ~_STATUS
    flags |= (_CARRY if bits else 0) | (_ZERO if other < most else 0)
    flags |= (_SIGN if one < most else 0) | (_OVERFLOW if bits & 1 else 0)
    cpu.write_register("eflags", flags)
    if decoded.key & 1:
        last = bits.bit_length() - 1 if how & 0x40 else (bits & -bits).bit_length() - 1
        cpu.write_register("rcx", last if bits else most)
        return
    if how & 0x40:
        width = 128 // most
        bits = sum(((1 << width) - 1) << width * at for at in range(most) if bits >> at & 1)
    cpu.write_register("xmm0", bits)


# -- sums and approximations ----------------------------------------------------------------


def _sum(cpu: ArchCpu, decoded: Decoded) -> None:
    """Phaddw, phaddd, phaddsw, phsubw, phsubd and phsubsw of a register with itself."""
    kind = decoded.key & 3
    bits = 32 if kind == 2 else 16
    width = 128 if decoded.prefixes & OPERAND_SIZE else 64
    number = _registers(decoded)[0]
    value = cpu.read_register(f"xmm{number}") if width == 128 else mmx(cpu, number)
    half = 1 << (bits - 1)
    lanes = [(value >> at & (2 * half - 1)) for at in range(0, width, bits)]
    lanes = [lane - 2 * half if lane & half else lane for lane in lanes]
    sign = -1 if decoded.key & 4 else 1
    sums = [low + sign * high for low, high in zip(lanes[::2], lanes[1::2], strict=True)]
    if kind == 3:
        sums = [max(-half, min(half - 1, each)) for each in sums]
    result = sum((each & (2 * half - 1)) << bits * at for at, each in enumerate(sums + sums))
    if width == 128:
        cpu.write_register(f"xmm{number}", result)
        return
    set_mmx(cpu, number, result)


def mmx(cpu: ArchCpu, number: int) -> int:
    """The value of a register of MMX."""
    top = cpu.read_register("fstat") >> 11 & 7
    return cpu.read_register(f"st{number - top & 7}") & (1 << 64) - 1


def enter_mmx(cpu: ArchCpu) -> None:
    """Make x87's top 0, and nothing empty: registers keep what they hold."""
    names = [f"st{number}" for number in range(8)]
    status = cpu.read_register("fstat")
    values = [cpu.read_register(name) for name in names]
    cpu.write_register("fstat", status & ~0x3800)
    cpu.write_register("ftag", 0)
    top = status >> 11 & 7
    for number in range(8):
        cpu.write_register(names[number], values[number - top & 7])


def set_mmx(cpu: ArchCpu, number: int, value: int) -> None:
    """Set a register of MMX."""
    enter_mmx(cpu)
    cpu.write_register(f"st{number}", 0xFFFF << 64 | value)


_CONTROL: Final = ControlWord(0x3F, 24, NEAREST)
_NAN: Final = 0xFFC0_0000


def _approximate(cpu: ArchCpu, insn: Insn, decoded: Decoded) -> None:
    """Rcpps, rcpss, rsqrtps and rsqrtss."""
    count = 1 if decoded.prefixes & REP else 4
    source = _source(cpu, insn, decoded, 4 * count)
    name = f"xmm{_registers(decoded)[0]}"
    result = cpu.read_register(name)
    for at in range(0, 32 * count, 32):
        found = _reciprocal(source >> at & _LANES, root=decoded.key == _ROOTS)
        result = result & ~(_LANES << at) | found << at
    cpu.write_register(name, result)


def _reciprocal(bits: int, *, root: bool) -> int:
    """Of a float, or of its root; a denormal one counts as zero, and none comes out."""
    if small(bits, 4):
        bits &= 1 << 31
    value = from_single(bits)
    kind = kind_of(value)
    if kind in (NumberKind.QUIET, NumberKind.SIGNALLING):
        return narrowed(quiet(value), 4, _CONTROL).value
    if root and kind is not NumberKind.ZERO:
        if bits >> 31:
            return _NAN
        if kind is NumberKind.NORMAL:
            exact = square_root(real(value))
            value = rounded(Real(0, exact.significand, exact.exponent), _CONTROL.long).value
    found = narrowed(divide(ONE, value, _CONTROL).value, 4, _CONTROL).value
    return found & 1 << 31 if small(found, 4) else found
