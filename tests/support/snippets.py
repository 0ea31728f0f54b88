"""Single instructions on chosen states: carried out here and by something that is not ours.

A guest (`tests/data/snippets`) takes a file of code and one of states and writes the states as
they are afterwards. The same program runs in the emulator and on the host's own processor, or
under qemu for an architecture that the host has not.
"""

import math
import os
import random
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import capstone

from engine.arch.x86_64 import vex_forms

CODE, STATE, DATA = 0x10000000, 0x20000000, 0x20000100
END = 0x20002000
"""Of all data: the 64 bytes in front of it are the last of a case's."""
SIZE = 1024
_WIDE = 1536
_BACK = bytes.fromhex("ff242508100020")  # jmp [0x20001008]
SLOT = 32
"""Bytes between the beginnings of two pieces of code."""

FLAGS = 0x8D5


@dataclass
class Case:
    """One instruction and the state that it finds.

    Attributes:
        code: of it.
        name: what to call it in a report.
        gpr: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
        flags: status flags.
        data: 256 bytes at DATA.
        fx: an fxsave image.
        undefined: status flags that it leaves undefined.
        mmx: exponents of x87's registers are not compared, and nothing of x87 behind a fault:
            the emulator has emptied its stack by then.
        halves: an operand of 16 bytes that need not be aligned: behind a fault a part of it may
            have been moved.
        nearly: a result of x87 may differ by a unit in the last place, and so may the flags of
            rounding, as it is transcendental; one of SSE is an approximation. Elsewhere than on a
            host of this kind they are exact.
        either: which of two NaNs comes out of SSE is not compared.
        high: the upper halves of ymm0 to ymm15, for programs that are compiled for AVX.
    """

    code: bytes
    name: str
    gpr: list[int]
    flags: int = 0
    data: bytes = bytes(256)
    fx: bytes = bytes(512)
    undefined: int = 0
    mmx: bool = False
    halves: bool = False
    nearly: bool = False
    either: bool = False
    high: bytes = b""


def pack(cases: Sequence[Case]) -> tuple[bytes, bytes]:
    """The file of code and that of states."""
    code, states = bytearray(), bytearray()
    for number, case in enumerate(cases):
        assert len(case.code) + len(_BACK) <= SLOT
        code += (case.code + _BACK).ljust(SLOT, b"\xcc")
        states += struct.pack("<16Q", *case.gpr)
        states += struct.pack("<4Q", 0x202 | case.flags, 0, CODE + SLOT * number, 0)
        states += bytes(96) + case.data.ljust(256, b"\0") + case.fx
        states += case.high.ljust(_WIDE - SIZE, b"\0") if case.high else b""
    return bytes(code), bytes(states)


def _comparable(case: Case, state: bytes, number: int) -> dict[str, object]:
    """What is defined of a state afterwards."""
    gpr = struct.unpack_from("<16Q", state)
    flags, signal, at, why = struct.unpack_from("<4Q", state, 128)
    fx = state[512:]
    control, status, tags = struct.unpack_from("<HHB", fx)
    (mxcsr,) = struct.unpack_from("<I", fx, 24)
    found: dict[str, object] = {f"gpr{at}": hex(value) for at, value in enumerate(gpr)}
    found |= {"flags": hex(flags & FLAGS & ~case.undefined), "signal": signal}
    if signal:
        address, trap, error = struct.unpack_from("<3Q", state, 160)
        address -= CODE + SLOT * number if address == at else 0
        found |= {"at": at % SLOT, "why": why, "address": hex(address)}
        found |= {"trap": trap, "error": hex(error)}
    if signal and ~mxcsr & 0x800 and mxcsr & 0x30:
        # Of an underflow that is not masked and what is inexact beside it one may be missed.
        mxcsr &= ~0x30
        found.pop("why", None)
    if case.nearly:
        status &= ~0x220
    found |= {"control": hex(control), "status": hex(status), "tags": hex(tags)}
    if signal and "set" in case.name:
        del found["flags"]  # the emulator may have put them together before it stores
    if signal and case.mmx:
        tags = 0
        del found["status"], found["tags"]
    found |= {"mxcsr": hex(mxcsr), "data": state[256:512].hex()}
    for number in range(8):
        if tags >> ((number + (status >> 11)) & 7) & 1:
            size = 8 if case.mmx else 10
            found[f"st{number}"] = fx[32 + 16 * number :][:size][::-1].hex()
    if signal and case.halves:
        del found["data"]
    for number in range(16) if not (signal and case.halves) else ():
        found[f"xmm{number}"] = fx[160 + 16 * number : 176 + 16 * number][::-1].hex()
        if case.high:
            found[f"ymm{number}h"] = fx[512 + 16 * number : 528 + 16 * number][::-1].hex()
    return found


def differences(
    cases: Sequence[Case], ours: bytes, theirs: bytes
) -> list[tuple[Case, dict[str, tuple[object, object]]]]:
    """Cases that differ, each with what: (ours, theirs)."""
    size = _WIDE if cases[0].high else SIZE
    assert len(ours) == len(theirs) == size * len(cases)
    found = []
    for number, case in enumerate(cases):
        mine, other = (
            _comparable(case, states[size * number : size * (number + 1)], number)
            for states in (ours, theirs)
        )
        differing = {
            key: (mine.get(key), other.get(key))
            for key in mine | other
            if mine.get(key) != other.get(key)
            and not (case.nearly and _near(mine.get(key), other.get(key)))
            and not (case.either and _nans(mine.get(key), other.get(key)))
        }
        if differing:
            found.append((case, differing))
    return found


def _near(one: object, other: object) -> bool:
    """True for two registers of x87 that differ in the last bit, or two of like floats."""
    if not (isinstance(one, str) and isinstance(other, str) and len(one) == len(other)):
        return False
    if len(one) == 20:
        return abs(_place(one) - _place(other)) <= 1
    if len(one) != 32:
        return False
    pairs = zip(*(struct.unpack(">4f", bytes.fromhex(each)) for each in (one, other)), strict=True)
    return all(
        math.isclose(mine, theirs, rel_tol=2**-11) or (mine != mine and theirs != theirs)
        for mine, theirs in pairs
    )


def _place(register: str) -> int:
    """Where a register of x87 is in the row of all its values: the last of an exponent is followed
    by the first of the next one, whose upper bit is not counted."""
    return (int(register[:4], 16) << 63) + (int(register[4:], 16) & ~(1 << 63))


def _nans(one: object, other: object) -> bool:
    """True for registers of SSE in which NaNs stand where they differ."""
    if not (isinstance(one, str) and isinstance(other, str) and len(one) == len(other) == 32):
        return False
    return any(
        all(
            mine == theirs or (mine != mine and theirs != theirs)
            for mine, theirs in zip(
                *(struct.unpack(form, bytes.fromhex(each)) for each in (one, other)), strict=True
            )
        )
        for form in (">4f", ">2d")
    )


def run(
    program: Path,
    folder: Path,
    cases: Sequence[Case],
    *under: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """The states afterwards; `under`: the command that runs the program."""
    code, states = folder / "code", folder / "states"
    for path, content in zip((code, states), pack(cases), strict=True):
        path.write_bytes(content)
    done = subprocess.run(
        [*under, program, code, states],
        capture_output=True,
        check=False,
        cwd=folder,
        timeout=600,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout


EMULATOR = (sys.executable, "-m", "tui", "run")
"""The command that runs a program here."""
PORTABLE = {"KPROBE_TUI_PORTABLE": "1"}
"""Variables with which nothing is left to the host's own processor."""


# -- values ---------------------------------------------------------------------------------

_FLOATS = (0.0, 1.0, -1.0, 0.5, 3.0, 1e-310, -1e-320, 5e-324, 1e308, 1.7e308, 2.5, 1e10, 1 / 3)
_SPECIAL = (0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x7FF4 << 48, 0xFFF8_0000_0000_1234, 1 << 63)
_SINGLES = (
    *(0, 0x80000000, 0x3F800000, 0xBF800000, 1, 0x80000001, 0x7FFFFF, 0x7F7FFFFF, 0x7F800000),
    *(0xFF800000, 0x7FC00000, 0x7FA00001, 0xFFC01234, 0x4F000000, 0x40490FDB, 0x00800000),
)


def double(random_: random.Random) -> int:
    """Bits of a double, often an odd one."""
    kind = random_.random()
    if kind < 0.35:
        return int.from_bytes(struct.pack("<d", random_.choice(_FLOATS)), "little")
    if kind < 0.5:
        return random_.choice(_SPECIAL)
    if kind < 0.6:
        return random_.getrandbits(64)
    if kind < 0.65:
        return random_.getrandbits(52)
    exponent = random_.choice((random_.randrange(1000, 1048), random_.randrange(1, 2047)))
    return random_.getrandbits(1) << 63 | exponent << 52 | random_.getrandbits(52)


def single(random_: random.Random) -> int:
    """Bits of a float, often an odd one."""
    kind = random_.random()
    if kind < 0.5:
        return random_.choice(_SINGLES)
    if kind < 0.6:
        return random_.getrandbits(32)
    exponent = random_.choice((random_.randrange(110, 150), random_.randrange(1, 255)))
    return random_.getrandbits(1) << 31 | exponent << 23 | random_.getrandbits(23)


def extended(random_: random.Random) -> bytes:
    """A register of x87, often an odd one."""
    kind = random_.random()
    sign = random_.getrandbits(1) << 15
    one = 1 << 63
    if kind < 0.25:
        exponent, fraction = random_.choice(
            (
                *((0, 0), (0x3FFF, one), (0x7FFF, one), (0x7FFF, 3 << 62), (0x7FFF, 5 << 61)),
                *((0, 1), (0, one), (0, one - 1), (1, one), (0x7FFE, (1 << 64) - 1)),
                *((0x3FFF, 1), (0x7FFF, 1), (0x4000, 0xC90FDAA22168C235), (0x403E, one)),
            )
        )
    elif kind < 0.4:
        whole = random_.choice((random_.getrandbits(8), random_.getrandbits(62))) | 1
        bits = whole.bit_length()
        exponent, fraction = 0x3FFE + bits, whole << (64 - bits)
    elif kind < 0.5:
        exponent = 0x3FFE + random_.randrange(1, 60)
        fraction = one | random_.getrandbits(20) << 43
    elif kind < 0.9:
        exponent, fraction = 0x3FFF + random_.randrange(-70, 70), one | random_.getrandbits(63)
    else:
        exponent, fraction = random_.randrange(0x7FFF), one | random_.getrandbits(63)
    return struct.pack("<QH", fraction, sign | exponent)


def fx_image(random_: random.Random, *, unmasked: float = 0.2, empty: float = 0.1) -> bytes:
    """A state of x87 and SSE, with exceptions that are not masked now and then."""
    control = 0x37F & ~0x300 | random_.choice((0, 2, 3, 3, 3)) << 8 | random_.getrandbits(2) << 10
    if random_.random() < unmasked:
        control &= ~random_.getrandbits(6)
    status = random_.getrandbits(3) << 11 | (random_.getrandbits(16) & 0x4700)
    if random_.random() < 0.3:
        status |= random_.getrandbits(6) & control
    tags = sum((random_.random() >= empty) << number for number in range(8))
    mxcsr = 0x1F80 | random_.choice((0, 0, random_.getrandbits(2) << 13))
    if random_.random() < unmasked:
        mxcsr &= ~(random_.getrandbits(6) << 7)
    if random_.random() < 0.2:
        mxcsr |= random_.choice((0x40, 0x8000, 0x8040))
    if random_.random() < 0.3:
        mxcsr |= random_.getrandbits(6)
    image = bytearray(512)
    struct.pack_into("<HHB", image, 0, control, status, tags)
    struct.pack_into("<I", image, 24, mxcsr)
    for number in range(8):
        image[32 + 16 * number : 42 + 16 * number] = extended(random_)
    for number in range(16):
        image[160 + 16 * number : 176 + 16 * number] = vector(random_)
    return bytes(image)


def vector(random_: random.Random) -> bytes:
    """Two doubles, four floats or anything."""
    kind = random_.randrange(3)
    if kind == 0:
        return struct.pack("<2Q", double(random_), double(random_))
    if kind == 1:
        return struct.pack("<4I", *(single(random_) for _ in range(4)))
    return random_.randbytes(16)


# -- instructions ---------------------------------------------------------------------------


def general(random_: random.Random) -> list[int]:
    """General registers with all kinds of numbers; rsi and r14 point to data."""
    gpr = [
        random_.choice(
            (
                *(random_.getrandbits(64), random_.getrandbits(32), random_.getrandbits(8)),
                *(-random_.getrandbits(8) & (1 << 64) - 1, 1 << random_.randrange(64), 0),
                *(double(random_), single(random_)),
            )
        )
        for _ in range(16)
    ]
    gpr[6] = gpr[14] = DATA
    return gpr


_ENVIRONMENT = {(0xD9, 4), (0xD9, 6), (0xDD, 4), (0xDD, 6)}
"""fldenv, fnstenv, frstor, fnsave: what they store of the last instruction is not compared."""
_STORES = {
    *((first, field) for first in (0xD9, 0xDB, 0xDD, 0xDF) for field in (1, 2, 3)),
    *((0xDF, 6), (0xDF, 7), (0xDB, 7)),
}


def x87(random_: random.Random, *, unmasked: float, empty: float, exact: bool = False) -> Case:
    """An instruction of x87.

    Any but those named in `engine.cpu.unicorn_float`'s exceptions, unless it is to be `exact`, as
    `engine.arch.x86_64.x87` is; then none whose operand is out of the range that is defined.
    """
    while True:
        first = random_.randrange(0xD8, 0xE0)
        modrm = random_.choice((random_.randrange(0xC0, 0x100), random_.randrange(8) << 3 | 6))
        field, memory = modrm >> 3 & 7, modrm < 0xC0
        if memory and (first, field) in _ENVIRONMENT:
            continue
        if memory and unmasked and (first, field) in _STORES and not exact:
            continue  # an exception of theirs comes early
        moves = (first in (0xDA, 0xDB) and field < 4) or (first, field) == (0xD9, 3)
        if not memory and empty and moves and not exact:
            continue  # fcmov, and fstp as nobody writes it
        if (first, modrm) in ((0xDB, 0xE0), (0xDB, 0xE1), (0xDB, 0xE4)):
            continue  # of the 8087 and 287
        break
    data = bytearray(random_.randbytes(256))
    kind = random_.randrange(4)
    if (first, modrm) == (0xDF, 0x26):
        digits = bytes(random_.randrange(10) << 4 | random_.randrange(10) for _ in range(9))
        data[:10] = digits + bytes((random_.getrandbits(1) << 7,))
    elif kind == 0:
        struct.pack_into("<I", data, 0, single(random_))
    elif kind == 1:
        struct.pack_into("<Q", data, 0, double(random_))
    elif kind == 2:
        data[:10] = extended(random_)
    gpr, flags = general(random_), random_.getrandbits(12) & FLAGS
    fx = bytearray(fx_image(random_, unmasked=unmasked, empty=empty))
    if exact and (first, modrm) in _SMALL:
        (exponent,) = struct.unpack_from("<H", fx, 40)
        struct.pack_into(
            "<H", fx, 40, exponent & 0xBFFF if exponent & 0x7FFF < 0x7FFF else exponent
        )
    nearly = exact and (first, modrm) in _TRANSCENDENTAL
    name = f"x87 {first:02x} {modrm:02x}"
    return Case(bytes((first, modrm)), name, gpr, flags, bytes(data), bytes(fx), nearly=nearly)


_SMALL = {(0xD9, 0xF0), (0xD9, 0xF9)}
"""f2xm1, fyl2xp1: what they give of larger numbers than 1 is not defined."""
_TRANSCENDENTAL = {(0xD9, modrm) for modrm in (0xF0, 0xF1, 0xF2, 0xF3, 0xF9, 0xFB, 0xFE, 0xFF)}

_CAPSTONE = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_CAPSTONE.detail = True
_VECTORS = {
    getattr(capstone.x86, f"X86_GRP_{name}")
    for name in ("SSE1", "SSE2", "SSE3", "SSE41", "SSE42", "SSSE3", "AES", "PCLMUL", "MMX")
}
_ROWS = (*range(0x10, 0x18), *range(0x28, 0x30), *range(0x50, 0x80), *range(0xC2, 0xC7))
_AWAY = ("esp", "rsp", "spl", " sp")
"""The stack's place is nobody's choice."""


def _somewhere(random_: random.Random) -> int:
    """An address of data, often not aligned, now and then next to the end of them."""
    kind = random_.random()
    if kind < 0.6:
        return DATA
    return DATA + random_.randrange(16) if kind < 0.8 else END - random_.randrange(1, 20)


def _modrm(random_: random.Random) -> int:
    """Two registers, or one and [rsi]."""
    return random_.choice((0xC0 | random_.randrange(64), random_.randrange(8) << 3 | 6))


def _vector_code(random_: random.Random) -> bytes:
    prefix = random_.choice((b"", b"\x66", b"\xf3", b"\xf2"))
    rex = random_.choice((b"", b"", b"\x48", b"\x45", b"\x44", b"\x41", b"\x4c"))
    kind = random_.randrange(6)
    if kind < 4:
        opcode = bytes((random_.choice((*_ROWS, *range(0xD0, 0x100))),))
    elif kind == 4:
        opcode = bytes((0x38, random_.choice((*range(0x42), *range(0xD8, 0xE0)))))
    else:
        table = (*range(8, 0x18), *range(0x20, 0x23), *range(0x40, 0x45), *range(0x60, 0x64))
        opcode = bytes((0x3A, random_.choice((*table, 0xDF))))
    modrm = _modrm(random_)
    if modrm >= 0xC0 and random_.random() < 0.3:
        modrm = 0xC0 | (modrm & 7) * 9  # a register with itself
        rex = random_.choice((b"", b"\x45"))
    number = random_.choice((random_.randrange(256), random_.randrange(16)))
    return prefix + rex + b"\x0f" + opcode + bytes((modrm, number))


def sse(
    random_: random.Random, *, unmasked: float, plain: bool = False, unusual: bool = False
) -> Case:
    """An instruction of MMX or SSE up to SSE4.2, AES and PCLMUL.

    With `plain` all exceptions are masked, and that of a denormal operand is noted already;
    nothing is flushed to zero. With `unusual` one of these is not so.
    """
    while True:
        code = _vector_code(random_)
        insn = next(_CAPSTONE.disasm(code, 0), None)
        if insn is None or not set(insn.groups) & _VECTORS or insn.size < len(code) - 1:
            continue
        text = f"{insn.mnemonic} {insn.op_str}"
        code = bytes(insn.bytes)
        compares = insn.mnemonic.startswith("cmp") and code[-1] > 7  # other numbers are AVX's
        doubled = insn.mnemonic in ("movhlps", "movlhps", "movnti") and code[0] in b"\x66\xf2\xf3"
        if compares or doubled or any(name in text for name in _AWAY):
            continue
        if not insn.mnemonic.startswith("maskmov"):
            break
    fx = bytearray(fx_image(random_, unmasked=unmasked))
    (mxcsr,) = struct.unpack_from("<I", fx, 24)
    if insn.mnemonic.startswith("dpp"):  # an unmasked exception ends it between its steps
        mxcsr |= 0x1F80
    if plain:
        mxcsr = mxcsr & 0x7FBF | 0x1F82
    if unusual and mxcsr & 0x9FC0 == 0x1F80:
        mxcsr |= random_.choice((0x40, 0x8000, 0x8040))
    struct.pack_into("<I", fx, 24, mxcsr)
    data = vector(random_) + random_.randbytes(240)
    gpr, flags = general(random_), random_.getrandbits(12) & FLAGS
    if not (plain or unusual):  # without host code they may stand anywhere
        gpr[6] = gpr[14] = _somewhere(random_)
    nearly = (plain or unusual) and insn.mnemonic.startswith(("rcp", "rsqrt"))
    mmx = " mm" in text
    halves = insn.mnemonic in ("movups", "movupd", "movdqu", "lddqu")
    return Case(
        code,
        text,
        gpr,
        flags,
        data,
        bytes(fx),
        mmx=mmx,
        halves=halves,
        nearly=nearly,
        either=plain,
    )


def vex(random_: random.Random, *, unmasked: float) -> Case:
    """An instruction with a VEX prefix; tzcnt, lzcnt or movbe now and then."""
    kind = random_.random()
    code = _later_code(random_) if kind < 0.04 else _vex_code(random_)
    fx = bytearray(fx_image(random_, unmasked=unmasked))
    insn = next(_CAPSTONE.disasm(code, 0), None)
    name = f"{insn.mnemonic} {insn.op_str}" if insn is not None else "(unknown)"
    if name.startswith("vdpp"):  # an unmasked exception ends it between its steps
        struct.pack_into("<I", fx, 24, struct.unpack_from("<I", fx, 24)[0] | 0x1F80)
    high = b"".join(vector(random_) for _ in range(16))
    data = bytearray(vector(random_) + vector(random_) + random_.randbytes(224))
    if "ldmxcsr" in name:
        data[:4] = struct.pack("<I", random_.choice((0x1F80, 0x7FC5, 0x11F80)))
    if "gather" in name:
        for number in range(16):  # small indexes of all sizes, in every other register
            if number % 2:
                size = 8 if code[3] & 1 else 4
                index = b"".join(
                    random_.choice((-4, 0, 1, 3, 9)).to_bytes(size, "little", signed=True)
                    for _ in range(32 // size)
                )
                fx[160 + 16 * number : 176 + 16 * number] = index[:16]
                high = high[: 16 * number] + index[16:] + high[16 * number + 16 :]
    gpr, flags = general(random_), random_.getrandbits(12) & FLAGS
    gpr[6], gpr[7] = DATA + 64 * ("gather" in name), DATA + 64
    undefined = FLAGS & ~(_CF | _ZF) if name.startswith(("lzcnt", "tzcnt")) else 0
    return Case(code, name, gpr, flags, bytes(data), bytes(fx), undefined, high=high)


def _later_code(random_: random.Random) -> bytes:
    rex = random_.choice((b"", b"\x48", b"\x44", b"\x4c"))
    if random_.random() < 0.5:
        at_rsi = bytes((random_.randrange(4) << 3 | 6,))
        return rex + b"\x0f\x38" + random_.choice((b"\xf0", b"\xf1")) + at_rsi
    prefix = random_.choice((b"\xf3", b"\x66\xf3"))
    modrm = 0xC0 | random_.choice((0, 1, 2, 3)) << 3 | random_.choice((0, 1, 2, 3, 6, 7))
    return prefix + rex + b"\x0f" + random_.choice((b"\xbc", b"\xbd")) + bytes((modrm,))


def _vex_code(random_: random.Random) -> bytes:
    """Any instruction of the table, in any of its forms."""
    while True:
        key, prefix, memory = random_.choice(sorted(vex_forms.all_forms()))
        form = vex_forms.form_of(key, prefix, memory)
        assert form is not None
        gathers = form.size == "gather"
        wide = random_.getrandbits(1) if form.wide is None else int(form.wide)
        long = random_.getrandbits(1) if form.long is None else int(form.long)
        reg = random_.randrange(16) if form.groups is None else random_.choice([*form.groups])
        vvvv = random_.randrange(16) if form.has_register else 0
        rm = 6 if memory else random_.randrange(16)
        index = random_.randrange(1, 16, 2) if gathers else 0
        if 4 in (reg, vvvv, rm) or (gathers and len({reg, vvvv, index}) < 3):
            continue  # the stack's place is nobody's choice
        second = key >> 8 | (not reg & 8) << 7 | (not index & 8) << 6 | (not rm & 8) << 5
        third = wide << 7 | (~vvvv & 15) << 3 | long << 2 | prefix
        displacement = random_.choice((b"", b"", b"\0", b"\x01", b"\x10", b"\x20"))
        modrm = (0x40 if displacement else 0) if memory else 0xC0
        code = bytes((0xC4, second, third, key & 0xFF, modrm | (reg & 7) << 3 | rm & 7))
        if gathers:
            sib = random_.randrange(4) << 6 | (index & 7) << 3 | 6
            code = code[:4] + bytes((code[4] & 0xF8 | 4, sib))
        code += displacement if memory else b""
        if key >> 8 == 3 or key in (*range(0x170, 0x174), 0x1C2, 0x1C4, 0x1C5, 0x1C6):
            code += bytes((random_.choice((random_.randrange(256), random_.randrange(16))),))
        return code


_CF, _PF, _AF, _ZF, _SF, _OF = 1, 4, 0x10, 0x40, 0x80, 0x800
_CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le")
UNDEFINED_FLAGS = {
    **dict.fromkeys(
        (
            *("add", "adc", "sub", "sbb", "cmp", "inc", "dec", "neg", "not", "xadd", "xchg"),
            *("mov", "movzx", "movsx", "movsxd", "bswap", "cbw", "cwde", "cdqe", "cwd", "cdq"),
            *("cqo", "popcnt", "crc32", "clc", "stc", "cmc", "lahf"),
            *("movsb", "movsw", "movsd", "movsq", "stosb", "stosw", "stosd", "stosq", "lodsb"),
            *("lodsw", "lodsd", "lodsq", "scasb", "scasw", "scasd", "scasq", "cmpsb", "cmpsw"),
            *(
                "cmpsd",
                "cmpsq",
                "sahf",
                "cld",
                "std",
                "loop",
                "loope",
                "loopne",
                "jrcxz",
                "cmpxchg8b",
                "cmpxchg16b",
            ),
            *(f"set{condition}" for condition in _CONDITIONS),
            *(f"cmov{condition}" for condition in _CONDITIONS),
        ),
        0,
    ),
    **dict.fromkeys(("and", "or", "xor", "test"), _AF),
    **dict.fromkeys(("imul", "mul"), _SF | _ZF | _AF | _PF),
    **dict.fromkeys(("shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr"), _AF | _OF),
    **dict.fromkeys(("bt", "bts", "btr", "btc"), FLAGS & ~(_CF | _ZF)),
    **dict.fromkeys(("div", "idiv"), FLAGS),
}
"""Instructions to the flags that they leave undefined."""
_LOCKABLE = (
    *("add", "or", "adc", "sbb", "and", "sub", "xor", "inc", "dec", "not", "neg", "bts", "btr"),
    *("btc", "xadd", "xchg", "cmpxchg", "cmpxchg8b", "cmpxchg16b"),
)
_PREFIXES = b"\x66\xf0\xf2\xf3"
_STRINGS = ("movs", "stos", "lods", "scas", "cmps")


def _integer_code(random_: random.Random) -> bytes:
    prefix = random_.choice((b"", b"", b"\x66", b"\xf3", b"\xf2", b"\xf0"))
    rex = random_.choice((b"", b"\x48", b"\x44", b"\x41", b"\x4d", b"\x40"))
    opcode = bytes((random_.randrange(256),))
    kind = random_.randrange(8)
    if kind > 5:
        opcode = random_.choice((b"\xc0", b"\xc1", b"\xd2", b"\xd3", b"\xf6", b"\xf7", b"\xe0\0"))
    elif kind > 2:
        opcode = random_.choice((b"\x0f" + opcode, b"\x0f\xc7", b"\x0f\x38\xf1", b"\xe1\0"))
    if prefix == b"\xf3" and opcode == b"\x90":
        prefix = b""  # with REX.B an exchange to some processors, PAUSE to others
    behind = random_.choice((random_.randbytes(8), bytes((random_.randrange(70),) * 8)))
    return prefix + rex + opcode + bytes((_modrm(random_),)) + behind


def _fits(insn: Any, name: str, text: str) -> bool:
    """Leave out what is no instruction to a processor, and what processors differ in."""
    code = bytes(insn.bytes)
    memory = "[" in text
    lock = 0xF0 in code[:4]
    if lock and (not memory or insn.operands[0].type != capstone.x86.X86_OP_MEM):
        return False
    if lock and name not in _LOCKABLE:
        return False
    if 0x64 in code[:4] or 0x65 in code[:4]:
        return False  # whether a segment prefix behind it counts
    if name in ("loop", "loope", "loopne", "jrcxz"):
        return code[-1] == 0 and b"\x66" not in code  # to what is next
    opcode = next(byte for byte in code if byte & 0xF0 != 0x40 and byte not in _PREFIXES)
    if opcode in (0xF6, 0xF7) and name == "test" and insn.modrm >> 3 & 7:
        return False  # nobody writes it so
    if opcode in (0xC6, 0xC7) and insn.rex & 4:
        return False
    if name.startswith(_STRINGS) and name != "movsx" and len(name) == 5 and "xmm" not in text:
        return "cs:" not in text
    if memory and "[rsi]" not in text and "[r14]" not in text:
        return False
    return name != "bt" or not memory


def integer(random_: random.Random) -> Case:
    """One to three instructions on general registers, strings and flags.

    One that leaves flags undefined, or moves strings, stands alone.
    """
    code, undefined = b"", 0
    texts: list[str] = []
    strings = compares = False
    wanted = random_.randrange(1, 4)
    while len(texts) < wanted and len(code) < 14:
        insn = next(_CAPSTONE.disasm(_integer_code(random_), 0), None)
        if insn is None:
            continue
        name = insn.mnemonic.split()[-1]
        text = f"{insn.mnemonic} {insn.op_str}"
        if name not in UNDEFINED_FLAGS or insn.size > 10 or not _fits(insn, name, text):
            continue
        moves = name.startswith(_STRINGS) and name != "movsx" and len(name) == 5
        if "mm" in text or (
            not moves and any(part in text for part in (*_AWAY, "s,", "s:", "[rip", "dr", "cr"))
        ):
            continue
        if wanted > 1 and (moves or UNDEFINED_FLAGS[name]):
            continue
        code += bytes(insn.bytes)
        texts.append(text)
        undefined |= UNDEFINED_FLAGS[name]
        strings |= moves
        compares |= "cmpxchg" in name
    gpr = general(random_)
    gpr[6] = gpr[14] = _somewhere(random_)
    gpr[7] = DATA + 128
    data = bytearray(random_.randbytes(256))
    flags = random_.getrandbits(12) & FLAGS
    if strings:
        gpr[6] = DATA + 64
        gpr[1] = random_.randrange(8)
        flags |= random_.choice((0, 0x400))
        if random_.random() < 0.5:
            data[32:96] = data[96:160]
    if compares and random_.random() < 0.5:
        gpr[0], gpr[2] = struct.unpack_from("<2Q", data)
    return Case(code, "; ".join(texts), gpr, flags, bytes(data), bytes(_PLAIN), undefined)


_PLAIN = struct.pack("<H22xI", 0x37F, 0x1F80).ljust(512, b"\0")
