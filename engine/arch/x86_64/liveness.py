"""Condition flags and red zone in use at the places of a function.

Two analyses over the function's own control flow. Both are quiet where they cannot know:
behind indirect jumps nothing counts as read, addresses that escape are not followed, and
a stack pointer that is not a known distance from its value at entry says nothing.

System V ABI (AMD64), section 3.2.2: the 128 bytes below rsp belong to the function; calls
and returns leave no condition flag (3.2.1).
"""

from typing import Final

from msgspec import Struct

from engine.arch.flow import CodeFlow
from engine.arch.x86_64.decode import (
    ADDRESS_SIZE,
    EVEX,
    FS,
    GS,
    LEGACY,
    LOCK,
    OPERAND_SIZE,
    Decoded,
    decode,
)
from engine.arch.x86_64.effects import (
    ALL,
    FLAG_NAMES,
    RBP,
    RSP,
    access,
    access_size,
    flags_read,
    flags_written,
    written_registers,
)
from engine.arch.x86_64.operations import relative_target

RED_ZONE: Final = 128
_PUSHES: Final = frozenset((*range(0x50, 0x58), 0x68, 0x6A, 0x9C, 0x1A0, 0x1A8))
_POPS: Final = frozenset((*range(0x58, 0x60), 0x9D, 0x1A1, 0x1A9))
_JUMPS: Final = frozenset({0xE9, 0xEB})
_CONDITIONAL: Final = frozenset((*range(0x70, 0x80), *range(0xE0, 0xE4), *range(0x180, 0x190)))
_ENDS: Final = frozenset({0xC2, 0xC3, 0xCA, 0xCB, 0xCF, 0xF4, 0x10B, 0x1B9, 0x1FF, *_JUMPS})
_PLAIN: Final = frozenset(
    (
        *(row | low for row in range(0, 0x40, 8) for low in range(6)),  # arithmetic
        *range(0x80, 0x86),
        0x63,
        *range(0x88, 0x8C),
        0x8D,
        *range(0xB0, 0xC0),
        *(0xC7, 0xA8, 0xA9, 0x90),
    )
)
"""Opcodes that cannot trap with operands in registers: moves, and arithmetic without division."""


class _Step(Struct, frozen=True):
    """One instruction and where it leads inside the function (indices)."""

    address: int
    insn: Decoded
    raw: bytes
    follows: tuple[int, ...]


_Frame = tuple[int | None, int | None]
"""rsp and rbp as distances from rsp at entry; None = not known."""


def flow(data: bytes, start: int) -> CodeFlow:
    """Analyse a function.

    Args:
        data: its bytes.
        start: its address.
    """
    steps = _steps(data, start)
    if not steps:
        return CodeFlow()
    return CodeFlow(_red_zone(steps), _flags(steps))


def _steps(data: bytes, start: int) -> list[_Step]:
    """All instructions; none if something in between is not one."""
    found: list[tuple[int, Decoded, bytes]] = []
    at = 0
    while at < len(data):
        insn = decode(data[at : at + 15])
        if insn is None or not insn.known:
            return []
        found.append((start + at, insn, data[at : at + insn.size]))
        at += insn.size
    index = {address: number for number, (address, _, _) in enumerate(found)}
    steps: list[_Step] = []
    for number, (address, insn, raw) in enumerate(found):
        follows: list[int] = []
        if insn.encoding == LEGACY:
            key = insn.key
            ends = key in _ENDS or (key == 0xFF and insn.reg in (4, 5))
            if key in _JUMPS or key in _CONDITIONAL:
                target = index.get(relative_target(insn, raw, address))
                if target is not None:
                    follows.append(target)
        else:
            ends = False
        if not ends and number + 1 < len(found):
            follows.append(number + 1)
        steps.append(_Step(address, insn, raw, tuple(follows)))
    return steps


def _backwards(steps: list[_Step], reads: list[int], kills: list[int]) -> list[int]:
    """Live bits before each instruction: read later with no write in between."""
    live = [0] * len(steps)
    changed = True
    while changed:
        changed = False
        for number in range(len(steps) - 1, -1, -1):
            out = 0
            for after in steps[number].follows:
                out |= live[after]
            value = reads[number] | out & ~kills[number]
            if value != live[number]:
                live[number] = value
                changed = True
    return live


# -- flags -----------------------------------------------------------------------------


def _flags(steps: list[_Step]) -> dict[int, str]:
    reads = [flags_read(step.insn) for step in steps]
    kills = [flags_written(step.insn, step.raw) for step in steps]
    return {
        step.address: _NAMES[bits]
        for step, bits in zip(steps, _backwards(steps, reads, kills), strict=True)
        if bits
    }


def overwrites_flags(code: bytes) -> bool:
    """True if instructions in a row overwrite all status flags before anything can look at them.

    A fault shows the flags to a signal handler: nothing may touch memory until then.
    """
    left = ALL
    while code:
        insn = decode(code)
        if insn is None or not insn.known or insn.memory or insn.size > len(code):
            return False
        plain = insn.encoding == LEGACY and insn.key in _PLAIN and not insn.prefixes & LOCK
        if not plain or (insn.key == 0xC7 and insn.reg) or flags_read(insn) & left:
            return False
        left &= ~flags_written(insn, code[: insn.size])
        if not left:
            return True
        code = code[insn.size :]
    return False


_NAMES: Final = tuple(
    " ".join(name for flag, name in FLAG_NAMES if bits & flag) for bits in range(64)
)


# -- red zone --------------------------------------------------------------------------


def _red_zone(steps: list[_Step]) -> dict[int, tuple[int, int]]:
    frames = _frames(steps)
    uses: dict[int, tuple[int, int, str]] = {}
    for number, step in enumerate(steps):
        place = _stack_operand(step.insn, step.raw, frames[number])
        frame = frames[number]
        if place is None or frame is None or frame[0] is None:
            continue
        kind = access(step.insn)
        if kind != "none":
            uses[number] = (place, access_size(step.insn), kind)
    below = [
        (place, size)
        for number, (place, size, _) in uses.items()
        if (frame := frames[number]) is not None and frame[0] is not None and place < frame[0]
    ]
    if not below:
        return {}
    low = min(place for place, _ in below)
    high = max(place + size for place, size in below)
    if high - low > 1 << 12:
        return {}

    def bits(place: int, size: int) -> int:
        first, last = max(place, low), min(place + size, high)
        return ((1 << last - first) - 1) << first - low if first < last else 0

    count = len(steps)
    reads, kills, writes, lost = [0] * count, [0] * count, [0] * count, [0] * count
    for number, (place, size, kind) in uses.items():
        if kind != "write":
            reads[number] = bits(place, size)
        else:
            kills[number] = bits(place, size)
        if kind != "read":
            writes[number] = bits(place, size)
    for number, step in enumerate(steps):
        frame = frames[number]
        if _is_call(step.insn) and frame is not None and frame[0] is not None:
            lost[number] = bits(low, max(frame[0] - low, 0))
            kills[number] |= lost[number]
    live = _backwards(steps, reads, kills)
    stored = _forwards(steps, writes, lost)
    found: dict[int, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        frame = frames[number]
        if frame is None or frame[0] is None:
            continue
        used = live[number] & stored[number] & bits(frame[0] - RED_ZONE, RED_ZONE)
        if used:
            first = (used & -used).bit_length() - 1 + low - frame[0]
            last = used.bit_length() - 1 + low - frame[0]
            found[step.address] = (first, last)
    return found


def _forwards(steps: list[_Step], writes: list[int], lost: list[int]) -> list[int]:
    """Bits that may have been written before each instruction."""
    stored = [0] * len(steps)
    waiting = list(range(len(steps)))
    while waiting:
        number = waiting.pop()
        out = (stored[number] & ~lost[number]) | writes[number]
        for after in steps[number].follows:
            if out & ~stored[after]:
                stored[after] |= out
                waiting.append(after)
    return stored


def _is_call(insn: Decoded) -> bool:
    return insn.encoding == LEGACY and (
        insn.key in (0xE8, 0x9A) or (insn.key == 0xFF and insn.reg in (2, 3))
    )


def _frames(steps: list[_Step]) -> list[_Frame | None]:
    """Rsp and rbp before each instruction; None where control does not get."""
    frames: list[_Frame | None] = [None] * len(steps)
    frames[0] = (0, None)
    waiting = [0]
    while waiting:
        number = waiting.pop()
        frame = frames[number]
        assert frame is not None, "only reached instructions wait"
        after = _moved(steps[number], frame)
        for follower in steps[number].follows:
            old = frames[follower]
            new = after if old is None else _meet(old, after)
            if new != old:
                frames[follower] = new
                waiting.append(follower)
    return frames


def _meet(one: _Frame, other: _Frame) -> _Frame:
    rsp = one[0] if one[0] == other[0] else None
    return rsp, one[1] if one[1] == other[1] else None


def _moved(step: _Step, frame: _Frame) -> _Frame:
    """Rsp and rbp behind an instruction."""
    insn, raw = step.insn, step.raw
    rsp, rbp = frame
    key = insn.key
    if insn.encoding != LEGACY:
        changed = written_registers(insn)
        return None if RSP in changed else rsp, None if RBP in changed else rbp
    push = key in _PUSHES or (key == 0xFF and insn.reg == 6)
    if push or key in _POPS or (key == 0x8F and insn.memory):
        size = 2 if insn.prefixes & OPERAND_SIZE else 8
        if key == 0x5C and not insn.base_high:
            return None, rbp
        if key == 0x5D and not insn.base_high:
            rbp = None
        return None if rsp is None else rsp + (-size if push else size), rbp
    if key == 0xC9:
        return None if rbp is None else rbp + 8, None
    if key == 0xC8:
        return None, None
    if insn.wide and insn.modrm >= 0 and not insn.rex & 5:
        if key in (0x81, 0x83) and insn.modrm in (0xC4, 0xEC):  # add, sub rsp
            at = insn.immediate_at
            change = int.from_bytes(raw[at : at + insn.immediate_size], "little", signed=True)
            sign = 1 if insn.modrm == 0xC4 else -1
            return None if rsp is None else rsp + sign * change, rbp
        if (key, insn.modrm) in ((0x89, 0xE5), (0x8B, 0xEC)):  # mov rbp, rsp
            return rsp, rsp
        if (key, insn.modrm) in ((0x89, 0xEC), (0x8B, 0xE5)):  # mov rsp, rbp
            return rbp, rbp
        if key == 0x8D and insn.reg in (RSP, RBP):
            place = _stack_operand(insn, raw, frame)
            return (place, rbp) if insn.reg == RSP else (rsp, place)
    changed = written_registers(insn)
    return None if RSP in changed else rsp, None if RBP in changed else rbp


def _stack_operand(insn: Decoded, raw: bytes, frame: _Frame | None) -> int | None:
    """Distance of the memory operand from rsp at entry, where it is known."""
    if (
        frame is None
        or not insn.memory
        or insn.base_high
        or insn.prefixes & (ADDRESS_SIZE | FS | GS)
    ):
        return None
    mod, rm = insn.modrm >> 6, insn.modrm & 7
    if rm == RSP:
        if insn.sib >> 3 & 7 != RSP or insn.index_high:
            return None
        rm = insn.sib & 7
    if rm == RSP:
        base = frame[0]
    elif rm == RBP and mod:
        base = frame[1]
    else:
        return None
    if base is None:
        return None
    at = insn.displacement_at
    size = insn.displacement_size
    displacement = int.from_bytes(raw[at : at + size], "little", signed=True) if size else 0
    if insn.encoding == EVEX and size == 1:
        return None  # EVEX scales it by the size of the vector
    return base + displacement
