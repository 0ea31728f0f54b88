"""AArch64 instructions moved to another place, and the branch that takes their place.

A window is one instruction. A detour may use x16 and x17 in a function that never names them:
veneers and linkage tables may change both on the way of any call (AAPCS64, 6.1.1), so they carry
nothing into such a function, through it or out of it. What needs an address in a register of its
own has x17 (`Movable.scratch`).
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.arch.aarch64.decode import Kind, branch_target, classify, signed
from engine.arch.aarch64.encode import branch, load_constant, word
from engine.arch.aarch64.jumps import SIZE
from engine.arch.jump import Leaves, Movable

_MASK: Final = (1 << 64) - 1
_X17, _X30, _ZERO = 17, 30, 31
_COPIED: Final = frozenset({Kind.OTHER, Kind.PAC, Kind.BTI, Kind.NOP, Kind.MRS})
_CONDITIONAL: Final = frozenset({Kind.B_COND, Kind.CBZ, Kind.TBZ})


def jump(place: int, target: int, size: int) -> bytes | None:
    """The branch to a detour."""
    return branch(place, target) if size == SIZE else None


def movable(raw: bytes, address: int) -> Movable | str:
    """Move the instruction at the front of some bytes, or say why it cannot be moved."""
    if len(raw) < SIZE:
        return "no whole instruction"
    raw = raw[:SIZE]
    value = int.from_bytes(raw, "little")
    kind = classify(value)
    if kind in _COPIED:
        return Movable(SIZE, lambda place: raw)
    if kind in (Kind.ADR, Kind.ADRP):
        return _address(value, address, kind)
    if kind in (Kind.LDR_LITERAL, Kind.LDRSW_LITERAL, Kind.LITERAL_SIMD):
        return _literal(value, address, kind)
    if kind in (Kind.BR, Kind.RET):
        return Movable(SIZE, lambda place: raw, Leaves.ALWAYS)
    if kind is Kind.BLR:
        return _call_register(value, address)
    target = branch_target(value, kind, address)
    if kind is Kind.B and target is not None:
        return _leaving(b"", target, Leaves.ALWAYS)
    if kind is Kind.BL and target is not None:
        return _leaving(load_constant(_X30, address + SIZE), target, Leaves.PERHAPS)
    if kind in _CONDITIONAL and target is not None:
        return _conditional(value, kind, target)
    return f"{kind.value}: not moved"


def _leaving(front: bytes, target: int, leaves: Leaves) -> Movable:
    def emit(place: int) -> bytes | None:
        last = branch(place + len(front), target)
        return None if last is None else front + last

    return Movable(len(front) + SIZE, emit, leaves, copied=False)


def _conditional(value: int, kind: Kind, target: int) -> Movable | str:
    """The opposite condition goes over a branch that reaches."""
    if kind is Kind.B_COND:
        if value & 14 == 14:  # al and nv have no opposite
            return _leaving(b"", target, Leaves.ALWAYS)
        opposite = (value ^ 1) & ~(0x7FFFF << 5) | 2 << 5
    elif kind is Kind.CBZ:
        opposite = (value ^ 1 << 24) & ~(0x7FFFF << 5) | 2 << 5
    else:
        opposite = (value ^ 1 << 24) & ~(0x3FFF << 5) | 2 << 5
    return _leaving(word(opposite), target, Leaves.PERHAPS)


def _fixed(code: bytes, leaves: Leaves = Leaves.NEVER, *, scratch: bool = False) -> Movable:
    emit: Callable[[int], bytes | None] = lambda place: code  # noqa: E731
    return Movable(len(code), emit, leaves, copied=False, scratch=scratch)


def _address(value: int, address: int, kind: Kind) -> Movable:
    offset = signed(value, 5, 19) << 2 | value >> 29 & 3
    register = value & 31
    if register == _ZERO:
        return _fixed(word(0xD503201F))
    found = (address & ~0xFFF) + (offset << 12) if kind is Kind.ADRP else address + offset
    return _fixed(load_constant(register, found & _MASK))


def _literal(value: int, address: int, kind: Kind) -> Movable | str:
    source = address + 4 * signed(value, 5, 19) & _MASK
    size, register = value >> 30, value & 31
    if kind is Kind.LITERAL_SIMD:
        if size == 3:
            return "unallocated literal load"
        base = (0xBD400000, 0xFD400000, 0x3DC00000)[size]
    elif kind is Kind.LDRSW_LITERAL:
        base = 0xB9800000
    else:
        base = 0xF9400000 if size & 1 else 0xB9400000
    general = kind is not Kind.LITERAL_SIMD and register != _ZERO
    at = register if general else _X17
    code = load_constant(at, source) + word(base | at << 5 | register)
    return _fixed(code, scratch=not general)


def _call_register(value: int, address: int) -> Movable:
    number = value >> 5 & 31
    front = b""
    if number == _X30:
        front, number = word(0xAA0003E0 | _X30 << 16 | _X17), _X17  # mov x17, x30
    code = front + load_constant(_X30, address + SIZE) + word(0xD61F0000 | number << 5)
    return _fixed(code, Leaves.PERHAPS, scratch=bool(front))


def indirect(raw: bytes) -> bool:
    """True if an instruction is `br`, in any of its forms."""
    if len(raw) < SIZE:
        return False
    value = int.from_bytes(raw[:SIZE], "little")
    kind = classify(value)
    return kind is Kind.BR or (kind is Kind.BRANCH_AUTH and not value & 1 << 21)


def names_scratch(value: int) -> bool:
    """True if an instruction may read or write x16 or x17 (DDI 0487, C4.1: fields by group)."""
    return any(value >> at & 30 == 16 for at in _fields(value))


def _fields(value: int) -> tuple[int, ...]:
    """Lowest bits of the fields that name a general register."""
    group = value >> 25 & 15
    if group & 14 == 8:  # immediates
        kind = value >> 23 & 7
        if kind in (0, 1, 5):  # adr, adrp, movz and the like
            return (0,)
        return (0, 5, 16) if kind == 7 else (0, 5)
    if group & 14 == 10:  # branches, exceptions, system
        if value >> 26 & 31 == 5 or value >> 25 & 127 == 42:  # b, bl, b.cond
            return ()
        return (0, 5, 16)
    if group & 5 == 4:  # loads and stores
        if value & 0x3B200C00 == 0x19000400:  # copies and sets of memory
            return (0, 5, 16)
        vector = bool(value & 1 << 26)
        found: tuple[int, ...] = (5,) if vector else (0, 5)
        pair = value >> 27 & 7 == 5
        if pair and not vector:
            found += (10,)
        elif value >> 24 & 0x3B == 8 and not vector:  # exclusives and ordered
            found += (10, 16)
        else:
            by_register = value & 1 << 21 and not value & 1 << 24 and not pair
            structures = vector and value >> 24 & 0xBE == 0x0C  # with an index behind them
            if by_register or structures:
                found += (16,)
        return found
    if group & 7 == 5:  # registers
        return (0, 5, 10, 16) if value >> 24 & 31 == 27 else (0, 5, 16)
    if group & 7 == 7:  # floating point and vectors
        moves = value & 0x5F20FC00 == 0x1E200000 or value & 0x9FE08400 == 0x0E000400
        fixed = value & 0x5F200000 == 0x1E000000
        return (0, 5) if moves or fixed else ()
    return (0, 5, 10, 16)


def needs(data: bytes, start: int) -> str:
    """Objection to the use of x16 and x17: none in a function that never names them."""
    for at in range(0, len(data) & -SIZE, SIZE):
        (value,) = struct.unpack_from("<I", data, at)
        if names_scratch(value):
            return f"x16 or x17 is in use: the instruction at {start + at:#x} may name one of them"
    return ""
