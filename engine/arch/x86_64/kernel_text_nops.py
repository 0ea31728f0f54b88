"""Instructions moved to another place, and padding made of few long nops.

(arch/x86/kernel/alternative.c: add_nop, optimize_nops, apply_relocation, recompute_jump)
"""

from collections.abc import Callable
from typing import Final

from engine.arch.x86_64.decode import LEGACY, Decoded, decode

_NOPS: Final = tuple(
    bytes.fromhex(text)
    for text in (
        "",
        "90",
        "6690",
        "0f1f00",
        "0f1f4000",
        "0f1f440000",
        "660f1f440000",
        "0f1f8000000000",
        "0f1f840000000000",
        "2e0f1f840000000000",
        "662e0f1f840000000000",
        "66662e0f1f840000000000",
    )
)
_INT3, _JUMP, _SHORT, _CALL = b"\xcc", b"\xe9", b"\xeb", b"\xe8"
_SHORT_REACH: Final = 127


def add_nop(size: int) -> bytes:
    """Bytes that do nothing: one nop, or a jump over int3."""
    if size < len(_NOPS):
        return _NOPS[size]
    if size <= _SHORT_REACH:
        return _SHORT + bytes((size - 2,)) + _INT3 * (size - 2)
    return _JUMP + (size - 5).to_bytes(4, "little") + _INT3 * (size - 5)


def _insn(code: bytes, at: int) -> Decoded | None:
    """The instruction at a position; None where there is none that is known."""
    found = decode(code[at : at + 15])
    return found if found is not None and found.known else None


def _is_nop(insn: Decoded) -> bool:
    """True for 90 without a repeat prefix and for 0f 1f."""
    if insn.encoding != LEGACY:
        return False
    if insn.key == 0x90:
        return not insn.prefixes & 16 and not insn.rex & 1
    return insn.key == 0x11F


def optimized_in_pieces(code: bytes, nops: Callable[[int], bytes]) -> bytes:
    """Code whose runs of single-byte nops became long ones, of eight bytes at most.

    Args:
        code: of one place.
        nops: makes those of a number of bytes.
    """
    if b"\x90" not in code:
        return code
    made = bytearray(code)
    at = 0
    while at < len(code):
        insn = _insn(code, at)
        if insn is None:
            break
        if insn.size == 1 and code[at] == 0x90:
            end = at
            while end < len(code) and code[end] == 0x90:
                end += 1
            made[at:end] = nops(end - at)
            at = end
        else:
            at += insn.size
    return bytes(made)


def optimized(code: bytes) -> bytes:
    """Code whose runs of nops became one each."""
    if b"\x90" not in code and b"\x0f\x1f" not in code:
        return code
    made = bytearray(code)
    at = 0
    while at < len(code):
        insn = _insn(bytes(made), at)
        if insn is None:
            break
        end = at + insn.size
        if _is_nop(insn):
            while end < len(code):
                more = _insn(bytes(made), end)
                if more is None or not _is_nop(more):
                    break
                end += more.size
            made[at:end] = add_nop(end - at)
        at = end
    return bytes(made)


def relocated(code: bytes, address: int, origin: int, size: int) -> bytes:
    """Code that was made for one place, at another, padding included.

    Args:
        code: with its padding.
        address: of the place it goes to.
        origin: address it was made for.
        size: its bytes without padding.
    """
    made = bytearray(code)
    at = 0
    moved = origin - address
    while at < len(code):
        insn = _insn(bytes(made), at)
        if insn is None:
            break
        end = at + insn.size
        if insn.encoding == LEGACY and _is_branch(insn):
            distance = _immediate(made, at, insn)
            if not 0 <= end + distance <= size:
                _add(made, at + insn.immediate_at, insn.immediate_size, moved)
            if insn.key == 0xE9:
                distance += moved + 3
                if -128 <= distance <= 127:
                    made[at : at + 2] = _SHORT + bytes((distance & 0xFF,))
                    made[at + 2 : end] = _INT3 * (insn.size - 2)
        if insn.rip_relative:
            offset = at + insn.displacement_at
            distance = int.from_bytes(made[offset : offset + 4], "little", signed=True)
            if not 0 <= end + distance <= size:
                _add(made, offset, 4, moved)
        at = end
    return optimized(bytes(made))


def relocated_call(code: bytes, address: int, origin: int, nops: Callable[[int], bytes]) -> bytes:
    """Code whose first instruction, a call or a jump, was made for another place.

    Args:
        code: without padding.
        address: of the place it goes to.
        origin: address it was made for.
        nops: makes those of a number of bytes.
    """
    if len(code) != 5:
        return code
    distance = int.from_bytes(code[1:], "little", signed=True) + origin - address
    if code[:1] == _CALL:
        return _CALL + (distance & 0xFFFFFFFF).to_bytes(4, "little")
    if code[:1] != _JUMP:
        return code
    if distance + 5 >= 0 and distance + 3 <= _SHORT_REACH:
        return _SHORT + bytes((distance + 3,)) + nops(3)
    return _JUMP + (distance & 0xFFFFFFFF).to_bytes(4, "little")


def _is_branch(insn: Decoded) -> bool:
    """True for relative jumps and calls: of 8 or 32 bits, with or without a condition."""
    key = insn.key
    return key in (0xEB, 0xE9, 0xE8) or 0x70 <= key <= 0x7F or 0x180 <= key <= 0x18F


def _immediate(code: bytearray, at: int, insn: Decoded) -> int:
    """The signed immediate of an instruction."""
    start = at + insn.immediate_at
    return int.from_bytes(code[start : start + insn.immediate_size], "little", signed=True)


def _add(code: bytearray, at: int, size: int, number: int) -> None:
    """Adds to a number in code."""
    value = int.from_bytes(code[at : at + size], "little") + number
    code[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
