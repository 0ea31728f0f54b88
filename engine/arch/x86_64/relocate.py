"""x86-64 instructions moved to another place, and the jump that takes their place.

Linux moves what a boosted kprobe may copy and nothing else (arch/x86/kernel/kprobes/opt.c,
copy_optimized_instructions). Here the last instruction of a window may leave it too: relative
branches get the reach of a near jump, calls push the return address that they have in place.
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.arch.jump import Leaves, Movable
from engine.arch.x86_64.decode import (
    ADDRESS_SIZE,
    LEGACY,
    LOCK,
    OPERAND_SIZE,
    REP,
    REPNE,
    Decoded,
    decode,
    opcodes,
)
from engine.arch.x86_64.jumps import LEAST, MOST
from engine.arch.x86_64.operations import relative_target
from engine.arch.x86_64.verdicts import boostable, strict_refusal

_PAD: Final = 0x2E
"""CS override: a jump ignores it in 64-bit mode (SDM volume 2, 2.1.1)."""
_MASK: Final = (1 << 64) - 1
_STRINGS: Final = frozenset((*range(0xA4, 0xA8), *range(0xAA, 0xB0), *range(0x6C, 0x70)))
_POPF: Final = 0x9D
_PORTS: Final = frozenset((*range(0x6C, 0x70), *range(0xE4, 0xE8), *range(0xEC, 0xF0)))
_SHORT: Final = frozenset(range(0x70, 0x80))
_NEAR: Final = frozenset(range(0x180, 0x190))
_COUNTED: Final = frozenset(range(0xE0, 0xE4))
_WHILE: Final = frozenset({0xE0, 0xE1})
"""loopne and loope: where they end, the emulator takes older flags for those of a sahf."""
_PLAIN: Final = frozenset(
    0x100 + opcode
    for opcode in opcodes(
        "10-1e 28-2f 50-5f 6c 6d 70-73 7c 7d b8 c2-c6 d0 d4 d6 d7 da de e0 e3 e4 e6 e7 ea ee f0"
        " f4 f6 f7 fb"
    )
)
"""Of opcodes that Linux steps because its table was made before them: those that read and write
registers and memory and do nothing else, as all of 0f 38 and 0f 3a do."""
_RELATIVE: Final = _SHORT | _NEAR | _COUNTED | {0xE8, 0xE9, 0xEB}


def movable(raw: bytes, address: int) -> Movable | str:
    """Move the instruction at the front of some bytes, or say why it cannot be moved."""
    insn = decode(raw)
    if insn is None or not insn.known:
        return "no instruction that is known"
    raw = raw[: insn.size]
    if insn.encoding == LEGACY:
        if insn.key in _WHILE:
            return "the emulator would lose flags that the detour has given back just before"
        if insn.key in _RELATIVE:
            return _branch(insn, raw, address)
        if insn.key == 0xFF and insn.reg == 2:
            return _indirect_call(insn, raw, address)
        if insn.key == 0xC3 and not insn.prefixes & OPERAND_SIZE:
            return Movable(insn.size, lambda place: raw, Leaves.ALWAYS)
        if insn.key in _STRINGS and insn.prefixes & (REP | REPNE):
            return "repeats: each turn would be a step of the clock in the detour"
        if insn.key == _POPF:
            return "may set the trap flag, which would trap in the detour"
        if insn.key in _PORTS:
            return "port input or output: refused where it stands"
    if not boostable(insn) and not _plain(insn):
        return "not boostable"
    refusal = strict_refusal(insn)
    if refusal is not None:
        return refusal[1]
    leaves = insn.encoding == LEGACY and insn.key == 0xFF and insn.reg == 4
    if leaves and insn.prefixes & OPERAND_SIZE:
        return "indirect jump with an operand-size prefix"
    after = Leaves.ALWAYS if leaves else Leaves.NEVER
    if not insn.rip_relative:
        return Movable(insn.size, lambda place: raw, after)
    if insn.prefixes & ADDRESS_SIZE:
        return "relative to eip"
    return Movable(insn.size, lambda place: _rebased(insn, raw, address - place), after)


def _plain(insn: Decoded) -> bool:
    """True for an instruction that does the same anywhere, though Linux would not boost it."""
    if insn.encoding != LEGACY or insn.prefixes & ADDRESS_SIZE:
        return False
    return insn.key >= 0x200 or insn.key in _PLAIN


def copyable(raw: bytes) -> bool:
    """True if Linux would copy it into a detour: only what may be boosted."""
    insn = decode(raw)
    return insn is not None and boostable(insn)


def _rebased(insn: Decoded, raw: bytes, distance: int) -> bytes | None:
    at = insn.displacement_at
    (value,) = struct.unpack_from("<i", raw, at)
    moved = _near(value + distance)
    return None if moved is None else raw[:at] + moved + raw[at + 4 :]


def _near(distance: int) -> bytes | None:
    """A signed 32-bit distance; None beyond it."""
    distance = (distance + (1 << 63) & _MASK) - (1 << 63)
    return struct.pack("<i", distance) if -(1 << 31) <= distance < 1 << 31 else None


def _goto(place: int, target: int) -> bytes | None:
    distance = _near(target - place - 5)
    return None if distance is None else b"\xe9" + distance


def _branch(insn: Decoded, raw: bytes, address: int) -> Movable | str:
    if insn.prefixes & (OPERAND_SIZE | LOCK):
        return "branch with a prefix that processors differ about"
    key, target = insn.key, relative_target(insn, raw, address)
    if key in (0xE9, 0xEB):
        return Movable(5, lambda place: _goto(place, target), Leaves.ALWAYS, copied=False)
    if key == 0xE8:
        return _call(address + insn.size, lambda place: _goto(place, target), 5)
    if key in _COUNTED:
        front = raw[: insn.immediate_at] + b"\x02\xeb\x05"  # taken: over the jump behind it
        size = len(front) + 5

        def counted(place: int) -> bytes | None:
            jump = _goto(place + len(front), target)
            return None if jump is None else front + jump

        return Movable(size, counted, Leaves.PERHAPS, copied=False)
    condition = key & 15

    def conditional(place: int) -> bytes | None:
        distance = _near(target - place - 6)
        return None if distance is None else bytes((0x0F, 0x80 | condition)) + distance

    return Movable(6, conditional, Leaves.PERHAPS, copied=False)


def _indirect_call(insn: Decoded, raw: bytes, address: int) -> Movable | str:
    if insn.memory:
        return "call through memory: it would fault behind its push"
    if insn.prefixes & OPERAND_SIZE:
        return "indirect call with an operand-size prefix"
    if insn.modrm & 7 == 4 and not insn.base_high:
        return "call through rsp"
    jump = bytearray(raw)
    jump[insn.modrm_at] = 0xC0 | 4 << 3 | insn.modrm & 7
    return _call(address + insn.size, lambda place: bytes(jump), len(jump))


def _call(back: int, then: Callable[[int], bytes | None], size: int) -> Movable:
    """Push of a return address, whatever it is, without a flag or a register; then a jump."""
    low, high = back & 0xFFFFFFFF, back >> 32
    push = b"\x68" + struct.pack("<I", low)  # push imm32, which extends its sign
    push += b"\xc7\x44\x24\x04" + struct.pack("<I", high)  # mov dword [rsp+4], high

    def emit(place: int) -> bytes | None:
        jump = then(place + len(push))
        return None if jump is None else push + jump

    return Movable(len(push) + size, emit, Leaves.PERHAPS, copied=False)


def jump(place: int, target: int, size: int) -> bytes | None:
    """A jump of so many bytes: it ends where the instructions that it replaces end."""
    distance = _near(target - place - size)
    if distance is None or not LEAST <= size <= MOST:
        return None
    return bytes([_PAD]) * (size - LEAST) + b"\xe9" + distance


def indirect(raw: bytes) -> bool:
    """True if an instruction is `jmp` through a register or memory, or a far one."""
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY:
        return False
    return insn.key == 0xEA or (insn.key == 0xFF and insn.reg in (4, 5))


def fixed(raw: bytes) -> bool:
    """True if a jump goes through a pointer relative to rip."""
    insn = decode(raw)
    return insn is not None and insn.rip_relative
