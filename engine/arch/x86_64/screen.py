"""Instructions of x86-64 that Unicorn 2.1.4 executes wrongly, and what is done about each.

- VEX and EVEX encodings run as the legacy SSE instruction of the same opcode (or as a wholly
  different one). So does BMI, whose 32-bit forms heed the upper halves of registers, and of which
  bzhi loses a bit and blsi has the wrong carry. EVEX is refused; VEX is carried out by the host's
  vector unit where there is one, within translations where they can call it (`vex_host`), outside
  else (`vex`), and refused elsewhere. CPUID offers none of these (the processor is an Ivy Bridge
  without AVX), so programs that ask first never get here, unless they were given a later one
  (`haswell`). Where the host lends its own, tzcnt, lzcnt and movbe run in the emulator, whose
  CPUID does not tell; elsewhere tzcnt is bsf, as on such a processor, and the others are refused.
- MXCSR does not show the sticky exception flags: they are put into it before an instruction
  stores it, and forgotten when one loads it. Under one that masks not all exceptions, or has
  denormal numbers flushed, arithmetic is carried out here (`sse_arithmetic`). Not where the host
  computes, see `engine.cpu.unicorn_float`.
- x87's transcendentals and remainders have 53 bits, none of its exceptions is flagged or raised,
  and there are no stack faults: carried out here where no host computes (`x87`).
- Comparisons of strings (SSE4.2) are wrong and may crash the emulator itself; approximations,
  roundings without a flag and sums of a register with itself are wrong: carried out here where no
  host computes (`sse`, `sse_arithmetic`).
- rdrand and rdseed ask the host: given seeded bytes instead.
- bt, bts, btr and btc of a register with a lock prefix, which is no instruction, use an address
  that nobody has set: that of an access before it, or the emulator gives up. Refused.
- shld and shrd by an immediate miss a RIP-relative operand by one byte: carried out here.
- ret with an operand above 0x7FFF takes it as signed: carried out here.
- loope and loopne lose the flags where the count ends them: carried out here.
- lahf and sahf with a REX prefix take spl for ah: carried out here.
- cmpxchg8b and cmpxchg16b lose all flags but ZF where an instruction before them in their block
  has set them: carried out here in such blocks.
- cvtpi2ps and cvtpi2pd of memory empty x87's stack as if they used MMX: carried out here.
- neg of memory with a lock prefix sets the wrong flags: carried out here.
- The second opcode of test with an immediate (f6 /1, f7 /1), which no assembler makes, is none to
  Unicorn: carried out here.
- AMD's SSE4a (movntss, movntsd, extrq, insertq) is executed, which CPUID does not offer, and so is
  0f ae with a register behind a prefix (tpause, umwait, umonitor, incssp), as a fence: refused.
- AMD's XOP prefix, and other forms of 8f that are no instruction, run as pop: refused.
- Unicorn's descriptor tables are not those of Linux, and registers of the system are told as
  they are, which a processor with UMIP refuses: carried out here, as are far transfers
  (`system`).
- iret of 32 bits enters virtual-8086 mode where the flags on the stack have VM set, in long mode,
  too: carried out here (`system`).
- rdtsc is set up to fault (CR4.TSD) and emulated with the guest's deterministic counter.
"""

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from engine.arch.base import Screened, Screening
from engine.arch.machine import ArchCpu, Insn, LentCpu, TrapError
from engine.arch.x86_64 import sse, sse_arithmetic
from engine.arch.x86_64.decode import OPERAND_SIZE, decode, length
from engine.arch.x86_64.extended import ControlWord, from_integer, narrowed
from engine.arch.x86_64.operations import operand_address
from engine.errors import GuestFaultError

_NEG: Final = 3
_NEG_OF_MEMORY: Final = frozenset(modrm for modrm in range(0xC0) if modrm >> 3 & 7 == _NEG)
_SECOND_TEST: Final = frozenset(modrm for modrm in range(256) if modrm >> 3 & 7 == 1)

_CVTPI, _MOVNT, _GROUP_9 = 0x2A, 0x2B, 0xC7
_EXTRACTS: Final = (0x78, 0x79)
"""Second bytes of extrq and insertq."""
_TABLES: Final = range(4)
"""Second bytes of instructions that look at the system's tables and registers."""
_SAHF, _LAHF = 0x9E, 0x9F
_IRET: Final = 0xCF
SUSPECTS: Final = {
    # Three-byte VEX: the second names the opcode map 1, 2 or 3; others are no instructions.
    0xC4: frozenset(byte for byte in range(256) if byte & 0x1F in (1, 2, 3)),
    0xC5: frozenset(range(256)),
    # EVEX: bit 3 is clear, the map is 1, 2, 3, 5 or 6.
    0x62: frozenset(byte for byte in range(256) if byte & 0xF in (1, 2, 3, 5, 6)),
    0x8F: frozenset(byte for byte in range(256) if byte & 0x38),
    _IRET: frozenset(),  # only as the last byte of a block, which it always is
    **dict.fromkeys(range(0x40, 0x50), frozenset({_SAHF, _LAHF})),
    0xF6: _SECOND_TEST | _NEG_OF_MEMORY,
    0xF7: _SECOND_TEST | _NEG_OF_MEMORY,
    0x0F: frozenset(
        (
            *(*_TABLES, _CVTPI, _MOVNT, *_EXTRACTS),
            *(0xA3, 0xA4, 0xAB, 0xAC, 0xAE, 0xB3, 0xBA, 0xBB, 0xBD, 0xC7),
        )
    ),
}
_FWAIT: Final = 0x9B
_X87: Final = frozenset((_FWAIT, *range(0xD8, 0xE0)))
_SSE: Final = sse_arithmetic.OPCODES | {0x38, 0x3A, 0x52, 0x53}
"""Second bytes of opcodes that `sse` and `sse_arithmetic` have to do with."""
FLOAT_SUSPECTS: Final = {
    **{byte: frozenset(range(256)) for byte in _X87},
    0x0F: SUSPECTS[0x0F] | _SSE,
}
"""Suspects where no host computes."""
_RET: Final = 0xC2
SUSPECT_ENDS: Final = frozenset({_RET})
_LOOPNE, _LOOPE = 0xE0, 0xE1
SUSPECT_LASTS: Final = frozenset({_LOOPNE, _LOOPE})
_PREFIXES: Final = frozenset(b"\x66\x67\xf0\xf2\xf3\x2e\x36\x3e\x26\x64\x65")
_REPEATS: Final = frozenset(b"\xf2\xf3")
_NAMES: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *(f"r{number}" for number in range(8, 16)),
)
_BMI: Final = frozenset({0x2F2, 0x2F3, 0x2F5, 0x2F6, 0x2F7, 0x3F0})
"""Opcodes of BMI1 and BMI2, with their maps."""
_STMXCSR: Final = 3
_LONGEST: Final = 15
"""Bytes of an instruction at the most."""
_FX_SIZE: Final = 512
_CARRY, _PARITY, _ZERO, _SIGN, _OVERFLOW = 1, 4, 0x40, 0x80, 0x800
_ADJUST = 0x10
_ARITHMETIC = 0x8D5
_LOW_FLAGS: Final = 0xD5
_PROTECTION, _SIMD = 13, 19  # exceptions of the processor
_BIT_TESTS: Final = (0xA3, 0xAB, 0xB3, 0xBB)
_BSR: Final = 0xBD
_BIT_TEST_IMMEDIATE, _SHLD, _SHRD = 0xBA, 0xA4, 0xAC
_RIP_RELATIVE: Final = 5
_POP: Final = 0x8F
_TESTS: Final = (0xF6, 0xF7)


_EXCHANGE: Final = "exchange of two words behind flags"
_NEUTRAL: Final = ("mov", "lea", "push", "nop", "endbr64", "cmov", "set", "xchg")
"""Beginnings of names of instructions that leave the flags alone, like pop."""


def _opcode(raw: bytes) -> tuple[int, int]:
    """Index of the first opcode byte behind the prefixes, and REX (0 unless it comes last)."""
    index = rex = 0
    while index < len(raw):
        byte = raw[index]
        if 0x40 <= byte <= 0x4F:
            rex = byte
        elif byte in _PREFIXES:
            rex = 0
        else:
            break
        index += 1
    return index, rex


def _vex(raw: bytes) -> "_Remedy":
    """An instruction with a VEX prefix, or what is none."""
    from engine.arch.x86_64 import vex  # a table that few programs need

    found = vex.known(raw)
    if found is None:
        return _Remedy(Screening.REFUSE, "no instruction that has a VEX prefix")
    kind = "BMI" if found.fields.key in _BMI else "AVX (VEX)"
    return _Remedy(Screening.BORROW, f"{kind} instruction, {_LACKING}", vex.emulate)


_LACKING: Final = "which the emulated CPU does not have"


class _Remedy(NamedTuple):
    """An instruction that must not run, and its treatment.

    Attributes:
        action: of the screen.
        what: why, in words.
        serve: carries it out, where no host computes for the guest; None for all others.
        unusual: only under an MXCSR that Unicorn does not heed.
    """

    action: Screening
    what: str
    serve: Callable[[LentCpu, Insn], None] | None = None
    unusual: bool = False


@lru_cache(maxsize=1 << 12)
def _classify(raw: bytes) -> _Remedy | None:
    index, rex = _opcode(raw)
    if index >= len(raw):
        return None
    first = raw[index]
    if first in (_SAHF, _LAHF):
        return _Remedy(Screening.EMULATE, "REX prefix on flags and ah") if rex else None
    if first in (0xC4, 0xC5):
        return _vex(raw)
    if first == _IRET:
        return None if rex & 8 else _Remedy(Screening.EMULATE, "return from an interrupt")
    if first == 0x62:
        return _Remedy(Screening.REFUSE, f"AVX-512 (EVEX) instruction, {_LACKING}")
    if first == _RET and 0x66 not in raw[:index] and raw[index + 2 : index + 3] >= b"\x80":
        return _Remedy(Screening.EMULATE, "return that pops more than 32 KiB")
    if first in SUSPECT_LASTS:
        return _Remedy(Screening.EMULATE, "loop that looks at ZF")
    if first in _X87:
        return _Remedy(Screening.EMULATE, "x87", _x87)
    if first == _POP and len(raw) > index + 1 and raw[index + 1] & 0x38:
        return _Remedy(Screening.REFUSE, f"XOP instruction, {_LACKING}")
    if first in _TESTS and len(raw) > index + 1 and raw[index + 1] in _SECOND_TEST:
        return _Remedy(Screening.EMULATE, "test by its second opcode")
    negates = first in _TESTS and len(raw) > index + 1 and raw[index + 1] in _NEG_OF_MEMORY
    if negates and 0xF0 in raw[:index]:
        return _Remedy(Screening.EMULATE, "lock prefix on a negation")
    if first != 0x0F or len(raw) < index + 3:
        return None
    second, modrm = raw[index + 1], raw[index + 2]
    if _is_foreign(raw[:index], second, modrm):
        return _Remedy(Screening.REFUSE, _LACKING)
    if second in _TABLES:
        return _system(raw)
    field, memory = modrm >> 3 & 7, modrm < 0xC0
    if second == _BSR and 0xF3 in raw[:index]:
        return _Remedy(Screening.EXTEND, f"lzcnt, {_LACKING}")
    if second == 0xAE and memory and field <= _STMXCSR and 0xF3 not in raw[:index]:
        return _MXCSR_MOVES[field]
    if second == _CVTPI and memory and not _REPEATS & set(raw[:index]):
        return _Remedy(Screening.EMULATE, "conversion of two integers in memory")
    if second == _GROUP_9 and memory and field == 1:
        return _Remedy(Screening.EMULATE, _EXCHANGE)
    if second in _SSE:
        return _vector(raw)
    if second == 0xC7 and not memory and field in (6, 7) and 0xF3 not in raw[:index]:
        return _Remedy(Screening.EMULATE, "random number")
    if 0xF0 in raw[:index] and not memory and _tests_bit(second, field):
        return _Remedy(Screening.REFUSE, "lock prefix on a register")
    if second in (_SHLD, _SHRD) and modrm & 0xC7 == _RIP_RELATIVE:
        if 0xF0 in raw[:index]:
            return _Remedy(Screening.REFUSE, "lock prefix on a shift")
        return _Remedy(Screening.EMULATE, "double shift of a RIP-relative operand")
    return None


def _is_foreign(prefixes: bytes, second: int, modrm: int) -> bool:
    """Tell whether it is one of AMD's SSE4a, or a later one that Unicorn takes for a fence."""
    if second == _MOVNT:
        return bool(_REPEATS & set(prefixes))
    if second in _EXTRACTS:
        return 0x66 in prefixes or 0xF2 in prefixes
    if second != 0xAE or modrm < 0xC0:
        return False
    based = 0xF3 in prefixes and modrm >> 3 & 7 <= _WRGSBASE
    return not based and bool(prefixes.translate(None, _HARMLESS))


_WRGSBASE: Final = 3
_HARMLESS: Final = b"\x2e\x36\x3e\x26\x64\x65\x67\xf0" + bytes(range(0x40, 0x50))
"""Prefixes that make no other instruction of one with 0f ae."""


def _vector(raw: bytes) -> _Remedy | None:
    """An instruction of SSE that the host computes where it can."""
    decoded = decode(raw)
    if decoded is None:
        return None
    if decoded.key in _LONG_MMX and decoded.rex & 4 and not decoded.prefixes & OPERAND_SIZE:
        return _Remedy(Screening.EMULATE, "REX prefix on a register of MMX", _no_register)
    why = sse.wrong(decoded)
    if why:
        return _Remedy(Screening.EMULATE, why, sse.emulate)
    if not sse_arithmetic.computes(decoded):
        return None
    unusual = not sse_arithmetic.silent(decoded, raw)
    return _Remedy(Screening.EMULATE, "arithmetic", sse_arithmetic.emulate, unusual)


_LONG_MMX: Final = frozenset((*range(0x200, 0x20C), *range(0x21C, 0x21F), 0x30F))
"""Opcodes of SSSE3 on MMX registers, behind the last of which Unicorn writes with REX.R."""
_INVALID: Final = 6


def _no_register(cpu: ArchCpu, insn: Insn) -> None:
    """Refuse it, though a processor passes over the prefix: nobody writes it so."""
    raise TrapError(_INVALID)


def _system(raw: bytes) -> _Remedy | None:
    """An instruction that looks at tables or registers of the system."""
    from engine.arch.x86_64 import system  # few programs look at them

    return _Remedy(Screening.EMULATE, "tables of the system") if system.known(raw) else None


def _tests_bit(opcode: int, field: int) -> bool:
    return opcode in _BIT_TESTS or (opcode == _BIT_TEST_IMMEDIATE and field >= 4)


def clears(raw: bytes) -> bool:
    """True if none of the instructions in a block's bytes is one to screen.

    Most suspicious bytes are parts of constants and distances: to see that takes no disassembler.
    """
    at = 0
    while at < len(raw):
        size = length(raw[at : at + _LONGEST])
        if not 0 < size <= len(raw) - at or _classify(raw[at : at + size]) is not None:
            return False
        at += size
    return True


_NAMED: Final = frozenset({Screening.REFUSE, Screening.BORROW, Screening.EXTEND})
"""Treatments whose reason is told."""


def screen(insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
    """The instructions among these that must not run as they stand.

    One alone is taken for one whose block has changed flags.
    """
    found = []
    flags = len(insns) == 1
    for insn in _spelled(insns):
        verdict = _classify(insn.raw)
        if verdict is not None and (flags or verdict.what != _EXCHANGE):
            what, action = verdict.what, verdict.action
            if action in _NAMED:
                what = f"{insn.text}: {what}"
            computes = action is Screening.PREPARE or (
                action is Screening.EMULATE and verdict.serve is not None
            )
            found.append(
                Screened(insn.address, insn.size, verdict.action, what, computes, verdict.unusual)
            )
        flags = flags or not (insn.mnemonic == "pop" or insn.mnemonic.startswith(_NEUTRAL))
    return tuple(found)


def _spelled(insns: tuple[Insn, ...]) -> Iterator[Insn]:
    """The same, one by one where the disassembler does not know the first of several."""
    for insn in insns:
        raw, address = insn.raw, insn.address
        while insn.unknown and 0 < (size := length(raw)) < len(raw):
            yield Insn(address, raw[:size], insn.mnemonic, insn.operands)
            raw, address = raw[size:], address + size
        yield Insn(address, raw, insn.mnemonic, insn.operands)


def prepare(cpu: ArchCpu, insn: Insn) -> None:
    """Before MXCSR is stored: show the sticky flags."""
    show_float_flags(cpu)


def _x87(cpu: ArchCpu, insn: Insn) -> None:
    """Any instruction of x87."""
    # Seven modules that a start needs where no host computes for the guest only.
    from engine.arch.x86_64 import x87

    x87.emulate(cpu, insn)


def _load_mxcsr(cpu: ArchCpu, insn: Insn) -> None:
    """Ldmxcsr."""
    _set_mxcsr(cpu, int.from_bytes(cpu.read(_operand(cpu, insn), 4), "little"))


def _set_mxcsr(cpu: ArchCpu, value: int) -> None:
    if value >> 16:
        raise TrapError(_PROTECTION)
    cpu.clear_float_flags()
    cpu.write_register("mxcsr", value)


def _load_image(cpu: ArchCpu, insn: Insn) -> None:
    """Fxrstor: all of x87 and SSE (SDM volume 1, section 10.5)."""
    address = _operand(cpu, insn)
    if address & 15:
        raise TrapError(_PROTECTION)
    image = cpu.read(address, _FX_SIZE)
    control, status, tags = struct.unpack_from("<HHB", image)
    _set_mxcsr(cpu, int.from_bytes(image[24:28], "little"))
    cpu.write_register("fctrl", control & 0x1F3F | 0x40)
    cpu.write_register("fstat", status)
    cpu.write_register(
        "ftag", sum(3 << 2 * number for number in range(8) if not tags >> number & 1)
    )
    for number in range(8):
        at = 32 + 16 * number
        cpu.write_register(f"st{number}", int.from_bytes(image[at : at + 10], "little"))
    for number in range(16):
        at = 160 + 16 * number
        cpu.write_register(f"xmm{number}", int.from_bytes(image[at : at + 16], "little"))


_MXCSR_MOVES: Final = (
    _Remedy(Screening.PREPARE, "stores MXCSR"),
    _Remedy(Screening.EMULATE, "loads MXCSR", _load_image),
    _Remedy(Screening.EMULATE, "loads MXCSR", _load_mxcsr),
    _Remedy(Screening.PREPARE, "stores MXCSR"),
)
"""By the field of ModRM: fxsave, fxrstor, ldmxcsr, stmxcsr."""


def show_float_flags(cpu: ArchCpu) -> None:
    """Make MXCSR what a program should read."""
    flags = cpu.float_flags()
    if flags:
        cpu.write_register("mxcsr", cpu.read_register("mxcsr") | flags)


def emulate(cpu: LentCpu, insn: Insn) -> int:
    """A screened instruction that does not run in the emulator; where it leads to."""
    verdict = _classify(insn.raw)
    if verdict is not None and verdict.serve is not None:
        verdict.serve(cpu, insn)
        return insn.address + insn.size
    index, rex = _opcode(insn.raw)
    if insn.raw[index] == _RET:
        return _return(cpu, int.from_bytes(insn.raw[index + 1 : index + 3], "little"))
    if insn.raw[index] in SUSPECT_LASTS:
        return _loop(cpu, insn, index)
    if insn.raw[index] == _IRET:
        from engine.arch.x86_64 import system  # few programs go there

        return system.interrupt_return(cpu, insn.raw)
    if insn.raw[index] in _TESTS and insn.raw[index + 1] in _SECOND_TEST:
        _test(cpu, insn)
    elif insn.raw[index] in _TESTS:
        _negate(cpu, insn)
    elif insn.raw[index] in (_SAHF, _LAHF):
        _flags_and_ah(cpu, insn.raw[index])
    elif insn.raw[index] == 0x0F and insn.raw[index + 1] in _TABLES:
        from engine.arch.x86_64 import system

        return system.carry_out(cpu, insn)
    elif insn.raw[index + 1] in (_SHLD, _SHRD):
        _double_shift(cpu, insn, index, rex)
    elif insn.raw[index + 1] == _CVTPI:
        _convert(cpu, insn, doubles=0x66 in insn.raw[:index])
    elif insn.raw[index + 1] == _GROUP_9 and insn.raw[index + 2] < 0xC0:
        _exchange(cpu, insn, size=8 if rex & 8 else 4)
    else:
        _random(cpu, insn.raw, index, rex)
    return insn.address + insn.size


def _loop(cpu: ArchCpu, insn: Insn, index: int) -> int:
    """Loope and loopne (SDM volume 2, LOOPcc)."""
    mask = 0xFFFFFFFF if 0x67 in insn.raw[:index] else 0xFFFFFFFFFFFFFFFF
    count = cpu.read_register("rcx") - 1 & mask
    cpu.write_register("rcx", count)
    behind = insn.address + insn.size
    zero = cpu.read_register("eflags") & _ZERO != 0
    if not count or zero != (insn.raw[index] == _LOOPE):
        return behind
    return behind + int.from_bytes(insn.raw[index + 1 : index + 2], "little", signed=True)


def _flags_and_ah(cpu: ArchCpu, opcode: int) -> None:
    """Lahf and sahf (SDM volume 2)."""
    flags, value = cpu.read_register("eflags"), cpu.read_register("rax")
    if opcode == _LAHF:
        cpu.write_register("rax", value & ~0xFF00 | (flags & _LOW_FLAGS | 2) << 8)
    else:
        cpu.write_register("eflags", flags & ~_LOW_FLAGS | value >> 8 & _LOW_FLAGS)


def _negate(cpu: ArchCpu, insn: Insn) -> None:
    """Neg of memory (SDM volume 2)."""
    decoded = decode(insn.raw)
    assert decoded is not None
    wide = 8 if decoded.wide else 2 if decoded.prefixes & OPERAND_SIZE else 4
    size = wide if decoded.key & 1 else 1
    address = _operand(cpu, insn)
    try:
        old = int.from_bytes(cpu.read(address, size), "little")
    except GuestFaultError as fault:
        raise GuestFaultError(fault.address, "write") from None
    new = -old & (1 << 8 * size) - 1
    cpu.write(address, new.to_bytes(size, "little"))
    sign = 1 << 8 * size - 1
    flags = cpu.read_register("eflags") & ~_ARITHMETIC
    flags |= _CARRY if old else 0
    flags |= _PARITY if (new & 0xFF).bit_count() % 2 == 0 else 0
    flags |= _ADJUST if old & 0xF else 0
    flags |= _ZERO if not new else 0
    flags |= _SIGN if new & sign else 0
    flags |= _OVERFLOW if old == sign else 0
    cpu.write_register("eflags", flags)


def _test(cpu: ArchCpu, insn: Insn) -> None:
    """Test with an immediate (SDM volume 2)."""
    decoded = decode(insn.raw)
    assert decoded is not None
    wide = 8 if decoded.wide else 2 if decoded.prefixes & OPERAND_SIZE else 4
    size = wide if decoded.key & 1 else 1
    at = decoded.immediate_at
    field = insn.raw[at : at + decoded.immediate_size]
    if decoded.memory:
        value = int.from_bytes(cpu.read(_operand(cpu, insn), size), "little")
    else:
        number = decoded.modrm & 7 | decoded.base_high << 3
        high = size == 1 and not decoded.rex and number > 3
        value = cpu.read_register(_NAMES[number - 4 * high]) >> 8 * high
    sign = 1 << 8 * size - 1
    result = value & int.from_bytes(field, "little", signed=True) & 2 * sign - 1
    flags = cpu.read_register("eflags") & ~(_ARITHMETIC & ~_ADJUST)
    flags |= _PARITY if (result & 0xFF).bit_count() % 2 == 0 else 0
    flags |= _ZERO if not result else 0
    flags |= _SIGN if result & sign else 0
    cpu.write_register("eflags", flags)


def _exchange(cpu: ArchCpu, insn: Insn, size: int) -> None:
    """Cmpxchg8b and cmpxchg16b: words of `size` bytes; memory is always written (SDM volume 2)."""
    address = _operand(cpu, insn)
    if size == 8 and address & 15:
        raise TrapError(_PROTECTION)
    try:
        old = cpu.read(address, 2 * size)
    except GuestFaultError as fault:
        raise GuestFaultError(fault.address, "write") from None
    mask = (1 << 8 * size) - 1
    low, high, new_low, new_high = (
        (cpu.read_register(name) & mask).to_bytes(size, "little")
        for name in ("rax", "rdx", "rbx", "rcx")
    )
    flags = cpu.read_register("eflags") & ~_ZERO
    if old == low + high:
        cpu.write(address, new_low + new_high)
        flags |= _ZERO
    else:
        cpu.write(address, old)
        cpu.write_register("rax", int.from_bytes(old[:size], "little"))
        cpu.write_register("rdx", int.from_bytes(old[size:], "little"))
    cpu.write_register("eflags", flags)


def _convert(cpu: ArchCpu, insn: Insn, *, doubles: bool) -> None:
    """Cvtpi2ps and cvtpi2pd of memory (SDM volume 2)."""
    decoded = decode(insn.raw)
    assert decoded is not None
    name = f"xmm{decoded.reg | (decoded.rex & 4) << 1}"
    numbers = struct.unpack("<2i", cpu.read(_operand(cpu, insn), 8))
    if doubles:
        cpu.write_register(name, int.from_bytes(struct.pack("<2d", *numbers), "little"))
        return
    mxcsr = cpu.read_register("mxcsr")
    control = ControlWord(mxcsr >> 7 & 0x3F, 24, mxcsr >> 13 & 3)
    low, high = (narrowed(from_integer(number), 4, control) for number in numbers)
    flags = low.flags | high.flags
    cpu.write_register("mxcsr", mxcsr | flags)
    if flags & ~control.masks:
        raise TrapError(_SIMD)
    above = cpu.read_register(name) >> 64 << 64
    cpu.write_register(name, above | high.value << 32 | low.value)


def _operand(cpu: ArchCpu, insn: Insn) -> int:
    """Address of an operand in memory."""
    decoded = decode(insn.raw)
    assert decoded is not None
    return operand_address(decoded, insn.raw, insn.address)[0](cpu)


def _return(cpu: ArchCpu, popped: int) -> int:
    stack = cpu.read_register("rsp")
    target = int.from_bytes(cpu.read(stack, 8), "little")
    cpu.write_register("rsp", stack + 8 + popped)
    return target


def _random(cpu: ArchCpu, raw: bytes, index: int, rex: int) -> None:
    """Rdrand and rdseed with seeded bytes; carry set, as after success."""
    name = _NAMES[raw[index + 2] & 7 | (rex & 1) << 3]
    if rex & 8:
        value = int.from_bytes(cpu.entropy(8), "little")
    elif 0x66 in raw[:index]:
        value = cpu.read_register(name) & ~0xFFFF | int.from_bytes(cpu.entropy(2), "little")
    else:
        value = int.from_bytes(cpu.entropy(4), "little")
    cpu.write_register(name, value)
    cpu.write_register("eflags", cpu.read_register("eflags") & ~_ARITHMETIC | _CARRY)


def _double_shift(cpu: ArchCpu, insn: Insn, index: int, rex: int) -> None:
    """Shld and shrd of a RIP-relative operand by an immediate (SDM volume 2, SHLD)."""
    raw = insn.raw
    size = 8 if rex & 8 else 2 if 0x66 in raw[:index] else 4
    bits, count = 8 * size, raw[index + 7] & (0x3F if rex & 8 else 0x1F)
    address = _operand(cpu, insn)
    old = int.from_bytes(cpu.read(address, size), "little")
    source = cpu.read_register(_NAMES[raw[index + 2] >> 3 & 7 | (rex & 4) << 1])
    source &= (1 << bits) - 1
    # Counts above 16 are undefined for 16 bits; processors go on with the operand itself.
    if raw[index + 1] == _SHLD:
        wide = (old << bits | source) << bits | old
        result = wide >> (2 * bits - count) & ((1 << bits) - 1)
        carry = wide >> (3 * bits - count) & 1
    else:
        wide = (old << bits | source) << bits | old
        result = wide >> count & ((1 << bits) - 1)
        carry = wide >> (count - 1) & 1 if count else 0
    cpu.write(address, result.to_bytes(size, "little"))
    if not count:
        return
    flags = cpu.read_register("eflags") & ~(_ARITHMETIC & ~0x10)
    flags |= _CARRY * carry
    flags |= 0 if bin(result & 0xFF).count("1") & 1 else _PARITY
    flags |= 0 if result else _ZERO
    flags |= _SIGN if result >> (bits - 1) else 0
    flags |= _OVERFLOW if (result ^ old) >> (bits - 1) else 0
    cpu.write_register("eflags", flags)


_RDTSC, _RDTSCP = b"\x0f\x31", b"\x0f\x01\xf9"


def reads_counter(raw: bytes) -> bool:
    """True for rdtsc and rdtscp."""
    return raw.startswith((_RDTSC, _RDTSCP))


def emulate_trapped(cpu: ArchCpu, raw: bytes, pc: int) -> int | None:
    """Rdtsc and rdtscp, which fault at user level here, or a far transfer; where control goes."""
    if raw[:2] == _RDTSC:
        size = 2
    elif raw[:3] == _RDTSCP:
        size = 3
        cpu.write_register("rcx", 0)  # IA32_TSC_AUX: processor 0
    else:
        from engine.arch.x86_64 import system  # few programs go there

        return system.transferred(cpu, raw, pc)
    value = cpu.counter()
    cpu.write_register("rax", value & 0xFFFFFFFF)
    cpu.write_register("rdx", value >> 32 & 0xFFFFFFFF)
    return pc + size
