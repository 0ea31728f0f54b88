"""The processor of `--guest-cpu v3`: a Haswell, which has AVX2, FMA, F16C, BMI and movbe.

It is the Ivy Bridge of the record with more in CPUID, with the system call XSAVE switched on
(CR4.OSXSAVE; XCR0 is x87, SSE and AVX), and without transactions. Unicorn has none of this, so
cpuid, xgetbv and the instructions that save state are carried out here, and the state in signal
frames is always what xsave stores. Sources: Intel SDM volume 2 (CPUID), volume 1, chapter 13;
the x86-64 psABI for the level's name; QEMU's Haswell-noTSX for what such a processor says.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.arch.base import Screened, Screening
from engine.arch.machine import Insn, LentCpu, TrapError
from engine.arch.x86_64 import extended_state
from engine.arch.x86_64.decode import LEGACY, LOCK, OPERAND_SIZE, REP, REPNE, decode, length
from engine.arch.x86_64.operations import operand_address
from engine.arch.x86_64.screen import SUSPECTS, clears, emulate, screen, show_float_flags
from engine.arch.x86_64.signal_frames import SIGNALS, enter

if TYPE_CHECKING:
    from engine.arch.base import Arch

NAME: Final = "v3"
_LOW: Final = (1 << 32) - 1
_ILLEGAL, _PROTECTION = 6, 13
_CPUID, _GROUP_7, _GROUP_15 = 0x1A2, 0x101, 0x1AE
_XGETBV: Final = 0xD0
_XSAVE, _XRSTOR, _XSAVEOPT = 4, 5, 6
_LIKELY: Final = re.compile(rb"\x0f(?:\xa2|\x01\xd0|\xae[\x20-\x37\x60-\x77\xa0-\xb7])", re.DOTALL)
"""In the bytes of all blocks that have one of these instructions."""
_PREFIXED: Final = OPERAND_SIZE | LOCK | REP | REPNE

_VENDOR: Final = (0x756E6547, 0x6C65746E, 0x49656E69)
"""GenuineIntel, in the order ebx, ecx, edx."""
_SIGNATURE: Final = 0x306C1
_LEAVES: Final[Mapping[tuple[int, int], tuple[int, int, int, int]]] = {
    (0, 0): (0xD, *_VENDOR),
    # The word of the Ivy Bridge with FMA, movbe, OSXSAVE, AVX and F16C.
    (1, 0): (_SIGNATURE, 0x800, 0xFED83203, 0x78BFBFD),
    (2, 0): (1, 0, 0, 0x2C307D),
    # Caches: 32 KiB of instructions and of data, 4 MiB.
    (4, 0): (0x121, 0x1C0003F, 0x3F, 1),
    (4, 1): (0x122, 0x1C0003F, 0x3F, 1),
    (4, 2): (0x143, 0x3C0003F, 0xFFF, 1),
    (5, 0): (0, 0, 3, 0),
    (6, 0): (4, 0, 0, 0),
    # FSGSBASE, BMI1, AVX2, SMEP, BMI2, ERMS.
    (7, 0): (0, 0x3A9, 0, 0),
    (0xD, 0): (extended_state.FEATURES, extended_state.SIZE, extended_state.SIZE, 0),
    (0xD, 1): (1, 0, 0, 0),  # xsaveopt
    (0xD, 2): (0x100, extended_state.LEGACY_SIZE, 0, 0),
    (0x8000_0000, 0): (0x8000_0008, *_VENDOR),
    (0x8000_0001, 0): (_SIGNATURE, 0, 0x21, 0x28100800),  # lahf, lzcnt
    # Intel Core Processor (Haswell, no TSX)
    (0x8000_0002, 0): (0x65746E49, 0x6F43206C, 0x50206572, 0x65636F72),
    (0x8000_0003, 0): (0x726F7373, 0x61482820, 0x65777373, 0x202C6C6C),
    (0x8000_0004, 0): (0x54206F6E, 0x295853, 0, 0),
    (0x8000_0005, 0): (0x1FF01FF, 0x1FF01FF, 0x40020140, 0x40020140),
    (0x8000_0006, 0): (0, 0x42004200, 0x2008140, 0),
    (0x8000_0008, 0): (0x3028, 0, 0, 0),
}
"""(eax, ebx, ecx, edx) by leaf and subleaf; all others have zeros."""
_SUBLEAVES: Final = frozenset({4, 7, 0xB, 0xD})
_HIGHEST, _EXTENDED = 0xD, range(0x8000_0000, 0x8000_0009)
_HYPERVISOR: Final = range(0x4000_0000, 0x4000_0100)

_MORE_FLAGS: Final = "fma movbe avx f16c abm bmi1 avx2 bmi2 xsaveopt"


def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    """Values of eax, ebx, ecx and edx behind cpuid."""
    if leaf > _HIGHEST and leaf not in _EXTENDED and leaf not in _HYPERVISOR:
        leaf = _HIGHEST  # as Intel's processors answer
    return _LEAVES.get((leaf, subleaf if leaf in _SUBLEAVES else 0), (0, 0, 0, 0))


@lru_cache(maxsize=1 << 10)
def own(raw: bytes) -> str:
    """Name of an instruction that is carried out here; "" for any other."""
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY:
        return ""
    if insn.key == _CPUID:
        return "cpuid" if not insn.prefixes & LOCK else ""
    if insn.key == _GROUP_7 and insn.modrm == _XGETBV and not insn.prefixes & _PREFIXED:
        return "xgetbv"
    if insn.key == _GROUP_15 and insn.memory and not insn.prefixes & _PREFIXED:
        return {_XSAVE: "xsave", _XRSTOR: "xrstor", _XSAVEOPT: "xsaveopt"}.get(insn.reg, "")
    return ""


def _screen(insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
    if _LIKELY.search(b"".join(insn.raw for insn in insns)) is None:
        return screen(insns)
    found = {
        insn.address: Screened(insn.address, insn.size, Screening.EMULATE, what)
        for insn in insns
        if (what := own(insn.raw))
    }
    others = (item for item in screen(insns) if item.address not in found)
    return tuple(sorted((*found.values(), *others), key=lambda item: item.address))


def _clears(raw: bytes) -> bool:
    if _LIKELY.search(raw) is None:
        return clears(raw)
    at = 0
    while at < len(raw):
        size = length(raw[at : at + 15])
        if size <= 0 or own(raw[at : at + size]):
            return False
        at += size
    return clears(raw)


def _emulate(cpu: LentCpu, insn: Insn) -> int:
    what = own(insn.raw)
    if not what:
        return emulate(cpu, insn)
    low, count = cpu.read_register("rax") & _LOW, cpu.read_register("rcx") & _LOW
    if what == "cpuid":
        for name, value in zip(("rax", "rbx", "rcx", "rdx"), cpuid(low, count), strict=True):
            cpu.write_register(name, value)
    elif what == "xgetbv":
        if count:
            raise TrapError(_PROTECTION)
        cpu.write_register("rax", extended_state.FEATURES)
        cpu.write_register("rdx", 0)
    else:
        decoded = decode(insn.raw)
        assert decoded is not None
        at = operand_address(decoded, insn.raw, insn.address)[0](cpu)
        if what == "xrstor":
            extended_state.restore(cpu, at, low)
        else:
            show_float_flags(cpu)
            extended_state.save(cpu, at, low, sparing=what == "xsaveopt")
    return insn.address + insn.size


def later(arch: "Arch") -> "Arch":
    """The record of a program's processor of this kind.

    Args:
        arch: the record of x86-64.
    """
    linux = arch.linux
    words = {
        **linux.cpuinfo,
        "model": f"{0x3C}",
        "stepping": "1",
        "flags": f"{linux.cpuinfo['flags']} {_MORE_FLAGS}",
    }
    return replace(
        arch,
        model=NAME,
        models={},
        suspects={**SUSPECTS, 0x0F: SUSPECTS[0x0F] | {_CPUID & 0xFF}},
        float_suspects={
            first: seconds | {_CPUID & 0xFF} if first == 0x0F else seconds
            for first, seconds in arch.float_suspects.items()
        },
        screen=_screen,
        clears=_clears,
        emulate=_emulate,
        linux=replace(
            linux, cpuinfo=words, signals=replace(SIGNALS, enter=partial(enter, extended=True))
        ),
    )
