"""Names of x86-64 in Unicorn, Capstone and Keystone, and Unicorn's way to ring 3."""

import struct
from typing import Final

from engine.arch.engines import (
    USER_START,
    CapstoneNames,
    EngineNames,
    HiddenFlags,
    KeystoneNames,
    LentInsns,
    ModelExtension,
    Setting,
    TrapFlag,
    UnicornNames,
    UserStart,
)
from engine.arch.x86_64.decode import VEX, decode

_PAGE: Final = 4096
_AT: Final = 0xFFFF_8000_0000_0000
_USER_CS, _USER_SS = 0x33, 0x2B  # Linux's selectors
_FLAGS_FIXED, _FLAGS_FREE = 0x202, 0x254DD5  # what popf sets at user level, and RF
_CONTROL_FREE: Final = 0xFFFF  # the bits that MXCSR has
_CR4_TSD = 4  # rdtsc faults at user level, so that time stays deterministic
_FRAME, _ONES = 0x800, 0x900
_PROTECTION: Final = 13


def _descriptor(access: int, flags: int) -> bytes:
    """A segment of all addresses (Intel SDM, volume 3, 3.4.5)."""
    limit = 0xFFFFF
    value = limit & 0xFFFF | access << 40 | (limit >> 16) << 48 | flags << 52
    return value.to_bytes(8, "little")


def _data_page() -> bytes:
    """The descriptor table, the frame for iretq, and numbers to divide."""
    page = bytearray(_PAGE)
    table = (
        bytes(8)
        + _descriptor(0x9B, 0xA)  # 0x08 kernel code
        + _descriptor(0x93, 0xC)  # 0x10 kernel data
        + bytes(16)
        + _descriptor(0xF3, 0xC)  # 0x2b user data
        + _descriptor(0xFB, 0xA)  # 0x33 user code
    )
    page[: len(table)] = table
    struct.pack_into("<5Q", page, _FRAME, USER_START, _USER_CS, _FLAGS_FIXED, 0, _USER_SS)
    struct.pack_into("<dd", page, _ONES, 1.0, 0.0)
    return bytes(page)


# movsd xmm0,[rax]; divsd xmm0,[rax+8]; nop; iretq
_CODE: Final = bytes.fromhex("f20f1000f20f5e40089048cf").ljust(_PAGE, b"\x90")

_START: Final = UserStart(
    at=_AT,
    pages=_data_page() + _CODE,
    entry=_PAGE + 10,
    settings=(
        Setting("GDTR", (0, _AT, 0xFFF, 0)),
        Setting("CS", 0x08),
        Setting("SS", 0x10),
        Setting("RSP", _AT + _FRAME),
        Setting("RAX", _AT + _ONES),
        Setting("CR4", _CR4_TSD, adds=True),
        # As Linux starts a program (a reset leaves 0: single precision, a full stack).
        Setting("FPCW", 0x37F),
        Setting("FPTAG", 0xFFFF),
        Setting("MXCSR", 0x1F80),
    ),
    level=("CS", 0xFFFF, _USER_CS),
    cleared=("RAX",),
    landing=b"\xf4",  # hlt: a general-protection fault at ring 3
)


def _interrupt(number: int) -> tuple[int, int, int] | None:
    """Int: Linux lets programs raise #BP, #OF and 0x80, and the rest is #GP of the gate."""
    return None if number in (3, 4, 0x80) else (_PROTECTION, number << 3 | 2, 2)


def _cleared(raw: bytes, written: frozenset[str]) -> frozenset[str]:
    """The whole registers of which an instruction with a VEX prefix writes the lower half."""
    decoded = decode(raw)
    if decoded is None or decoded.encoding != VEX:
        return frozenset()
    return frozenset(f"y{name[1:]}" for name in written if name.startswith("xmm"))


def _lent() -> LentInsns:
    from engine.arch.x86_64.vex_host import LENT  # few programs need it

    return LENT


ENGINES: Final = EngineNames(
    unicorn=UnicornNames(
        arch="X86",
        modes=("UC_MODE_64",),
        target="x86_64",
        cpu="UC_CPU_X86_IVYBRIDGE",
        start=_START,
        registers=(
            *(("fctrl", "FPCW"), ("fstat", "FPSW"), ("ftag", "FPTAG")),
            # Instructions of SSE leave rubbish in the upper halves that Unicorn has itself.
            *((f"ymm{number}h", f"XMM{16 + number}") for number in range(16)),
        ),
        writable=(("eflags", _FLAGS_FREE, _FLAGS_FIXED), ("mxcsr", _CONTROL_FREE, 0)),
        hooks=(
            ("UC_X86_INS_SYSCALL", "syscall"),
            ("UC_X86_INS_SYSENTER", "illegal"),
            ("UC_X86_INS_IN", "in"),
            ("UC_X86_INS_OUT", "out"),
        ),
        # MXCSR's exception bits IE, ZE, OE, UE, PE; softfloat uses the same bit numbers.
        hidden_flags=HiddenFlags("MXCSR", entry=_PAGE, end=_PAGE + 9, mark=4, mask=0x3D),
        host_float=True,
        wide_operands=True,
        locks=True,
        lasting_fault=_PROTECTION,
        pairs=tuple((f"ymm{number}", f"xmm{number}", f"ymm{number}h") for number in range(16)),
        # CPUID 1 edx and ecx, 7 ebx; movbe, BMI1 (for tzcnt), lzcnt (in 80000001 ecx).
        extension=ModelExtension(
            (0x78BFBFD, 0xC6982203, 0x281),
            ((1, 1 << 22), (2, 1 << 3), (7, 1 << 5)),
            "cpu_x86_cpuid_x86_64",
        ),
        trap_flag=TrapFlag("eflags", 0x100, 1),
        lent=_lent,
        interrupts=_interrupt,
    ),
    capstone=CapstoneNames("CS_ARCH_X86", ("CS_MODE_64",), beside=_cleared),
    keystone=KeystoneNames("KS_ARCH_X86", ("KS_MODE_64",)),
)
