"""What Unicorn needs per machine before it runs a program as Linux would start it.

Unicorn opens at ring 0 / EL1, where privileged instructions execute and some can crash the
host process. So each machine is brought to user level once, by the instruction its kernel
would use (iretq, eret), from pages that are mapped for that moment only.
"""

import contextlib
import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import unicorn.arm64_const as arm
import unicorn.unicorn_const as uc_const
import unicorn.x86_const as x86
from unicorn.unicorn_py3.unicorn import Uc, UcError

from engine.cpu.ram import PAGE, PageTable, Ram, Region
from engine.errors import EngineError

_START = 0x400000  # any user address: where the first return to user level lands


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine that Unicorn emulates.

    Attributes:
        open: makes the emulator, before anything is mapped.
        enter_user_mode: brings it to user level; needs the fill hook in place.
        register_id: Unicorn's number of a register.
        mask_write: what of a value may be written from outside to a register.
        instruction_hooks: (instruction id, role) with role syscall, illegal, in or out.
        float_flags: sticky exceptions hidden from the control register.
        clear_float_flags: forgets them.
        settle: to be called after an exception was taken out of the emulator.
    """

    open: Callable[[], Any]
    enter_user_mode: Callable[[Any, Ram, PageTable, bytes], None]
    register_id: Callable[[str], int]
    mask_write: Callable[[str, int], int]
    instruction_hooks: tuple[tuple[int, str], ...]
    float_flags: Callable[[Any], int]
    clear_float_flags: Callable[[Any], None]
    settle: Callable[[Any], None]


def _run_stub(
    uc: Any,
    ram: Ram,
    table: PageTable,
    at: int,
    pages: list[bytes],
    entry: int,
    end: int,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Run code from temporary pages until `end`, which is mapped too; `then` comes last."""
    size = PAGE * (len(pages) + 1)
    physical = ram.allocate(size)
    if physical is None:
        raise EngineError("no guest memory for the emulator's start")
    for index, page in enumerate(pages):
        ram.write(physical + PAGE * index, page)
    landing = physical + PAGE * len(pages)
    ram.write(landing, b"\xf4")  # hlt, for x86-64
    table.load(
        [
            # Unicorn looks up the page before `until` too when a run ends there.
            Region(_START - PAGE, _START, landing, 5),
            Region(_START, _START + PAGE, landing, 5),
            Region(at, at + PAGE * len(pages), physical, 7),
        ]
    )
    try:
        uc.emu_start(entry, end)
    except UcError as error:
        raise EngineError(f"the emulator does not reach user level: {error}") from error
    then()
    uc.ctl_flush_tb()
    table.load([])
    ram.release(physical, size)


# -- x86-64 -------------------------------------------------------------------------------

_X86_NAMES = {"fctrl": "FPCW", "fstat": "FPSW", "ftag": "FPTAG"}
_X86_AT = 0xFFFF800000000000
_USER_CS, _USER_SS = 0x33, 0x2B  # Linux's selectors
_FLAGS_FIXED, _FLAGS_FREE = 0x202, 0x254DD5  # what popf sets at user level, and RF
_CR4_TSD = 4  # rdtsc faults at user level, so that time stays deterministic
_FLOAT_FLAGS_AT: list[int] = []
_OLD_EXCEPTION_AT: list[int] = []


def _open_x86() -> Any:
    return Uc(uc_const.UC_ARCH_X86, uc_const.UC_MODE_64)


def _descriptor(access: int, flags: int) -> bytes:
    limit = 0xFFFFF
    value = limit & 0xFFFF | access << 40 | (limit >> 16) << 48 | flags << 52
    return value.to_bytes(8, "little")


def _enter_x86(uc: Any, ram: Ram, table: PageTable, keys: bytes) -> None:
    gdt = (
        bytes(8)
        + _descriptor(0x9B, 0xA)  # 0x08 kernel code
        + _descriptor(0x93, 0xC)  # 0x10 kernel data
        + bytes(16)
        + _descriptor(0xF3, 0xC)  # 0x2b user data
        + _descriptor(0xFB, 0xA)  # 0x33 user code
    )
    data = bytearray(PAGE)
    data[: len(gdt)] = gdt
    frame, ones = 0x800, 0x900
    struct.pack_into("<5Q", data, frame, _START, _USER_CS, _FLAGS_FIXED, 0, _USER_SS)
    struct.pack_into("<dd", data, ones, 1.0, 0.0)
    # movsd xmm0,[rax]; divsd xmm0,[rax+8]; nop; iretq
    code = bytes.fromhex("f20f1000f20f5e40089048cf").ljust(PAGE, b"\x90")
    uc.reg_write(x86.UC_X86_REG_GDTR, (0, _X86_AT, 0xFFF, 0))
    uc.reg_write(x86.UC_X86_REG_CS, 0x08)
    uc.reg_write(x86.UC_X86_REG_SS, 0x10)
    uc.reg_write(x86.UC_X86_REG_RSP, _X86_AT + frame)
    uc.reg_write(x86.UC_X86_REG_RAX, _X86_AT + ones)
    uc.reg_write(x86.UC_X86_REG_CR4, uc.reg_read(x86.UC_X86_REG_CR4) | _CR4_TSD)
    # As Linux starts a program (a reset leaves 0, which means single precision).
    uc.reg_write(x86.UC_X86_REG_FPCW, 0x37F)
    uc.reg_write(x86.UC_X86_REG_MXCSR, 0x1F80)
    start = uc.context_save()
    before = _context_bytes(start)
    entry = _X86_AT + PAGE
    _run_stub(uc, ram, table, _X86_AT, [bytes(data), code], entry, entry + 9)
    if not _FLOAT_FLAGS_AT:
        _FLOAT_FLAGS_AT.append(_find_float_flags(before, _context_bytes(uc.context_save())))
    uc.context_restore(start)
    _run_stub(
        uc, ram, table, _X86_AT, [bytes(data), code], entry + 10, _START, lambda: _learn_fault(uc)
    )
    if uc.reg_read(x86.UC_X86_REG_CS) != _USER_CS:
        raise EngineError("the emulator did not reach ring 3")
    uc.reg_write(x86.UC_X86_REG_RAX, 0)


def _learn_fault(uc: Any) -> None:
    """Raise one general-protection fault and see where the emulator notes it.

    Unicorn never forgets a fault it has handed out, so that the next one would be a double
    fault and the third would stop the processor: the note is taken back after each.
    """
    before = uc.context_save()
    with contextlib.suppress(UcError):
        uc.emu_start(_START, 0)
    if not _OLD_EXCEPTION_AT:
        first, second = _context_bytes(before), _context_bytes(uc.context_save())
        found = [
            index
            for index in range(0, len(first) - 3, 4)
            if (first[index : index + 4], second[index : index + 4])
            == (b"\xff\xff\xff\xff", b"\x0d\0\0\0")
        ]
        if len(found) != 1:
            raise EngineError("the emulator's note of the last fault is not where it was")
        _OLD_EXCEPTION_AT.extend(found)
    uc.context_restore(before)


def _x86_settle(uc: Any) -> None:
    context = uc.context_save()
    base = ctypes.cast(context.context, ctypes.c_void_p).value or 0
    ctypes.c_int32.from_address(base + _OLD_EXCEPTION_AT[0]).value = -1
    uc.context_restore(context)


def _context_bytes(context: Any) -> bytes:
    return ctypes.string_at(ctypes.cast(context.context, ctypes.c_void_p).value or 0, context.size)


def _find_float_flags(before: bytes, after: bytes) -> int:
    """Where softfloat's sticky flags are: the byte that a division by zero turned to 4."""
    found = [
        index
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if old == 0 and new == 4
    ]
    return found[0] if len(found) == 1 else -1


def _x86_float_flags(uc: Any) -> int:
    """MXCSR's exception bits IE, ZE, OE, UE, PE; softfloat uses the same bit numbers."""
    at = _FLOAT_FLAGS_AT[0]
    return _context_bytes(uc.context_save())[at] & 0x3D if at >= 0 else 0


def _x86_clear_float_flags(uc: Any) -> None:
    at = _FLOAT_FLAGS_AT[0]
    if at < 0:
        return
    context = uc.context_save()
    base = ctypes.cast(context.context, ctypes.c_void_p).value or 0
    ctypes.c_uint8.from_address(base + at).value = 0
    uc.context_restore(context)


def _x86_register_id(name: str) -> int:
    number: int = getattr(x86, "UC_X86_REG_" + _X86_NAMES.get(name, name.upper()))
    return number


def _x86_mask_write(name: str, value: int) -> int:
    if name == "eflags":
        return value & _FLAGS_FREE | _FLAGS_FIXED
    return value


# -- AArch64 ------------------------------------------------------------------------------

_ARM_NAMES = {"cpsr": "PSTATE", "tpidr": "TPIDR_EL0"}
_ARM_AT = 0xFFFF_0000_0000_0000
_SYSTEM_REGISTERS = {  # (op0, op1, CRn, CRm, op2)
    "SCTLR_EL1": (3, 0, 1, 0, 0),
    "SCR_EL3": (3, 6, 1, 1, 0),
    "HCR_EL2": (3, 4, 1, 1, 0),
    "TCR_EL1": (3, 0, 2, 0, 2),
    "CNTKCTL_EL1": (3, 0, 14, 1, 0),
}
# nTWE, nTWI: wfe and wfi are no traps; DZE, UCT, UCI: dc zva, ctr_el0 and cache maintenance
# at EL0; EnIA, EnIB, EnDA, EnDB: pointer authentication.
_SCTLR = 1 << 18 | 1 << 16 | 1 << 14 | 1 << 15 | 1 << 26 | 1 << 31 | 1 << 30 | 1 << 27 | 1 << 13
_HCR = 1 << 41 | 1 << 40 | 1 << 31  # API, APK, RW
_SCR = 1 << 17 | 1 << 16 | 1 << 10 | 1  # API, APK, RW, NS
_TCR = 16 | 16 << 16 | 5 << 32 | 1 << 37  # 48-bit addresses, TBI0 as Linux sets it
_PAUTH_KEYS = (
    *((3, 0, 2, 1, op2) for op2 in range(4)),  # APIAKey, APIBKey
    *((3, 0, 2, 2, op2) for op2 in range(4)),  # APDAKey, APDBKey
    *((3, 0, 2, 3, op2) for op2 in range(2)),  # APGAKey
)


def _open_arm() -> Any:
    uc = Uc(uc_const.UC_ARCH_ARM64, uc_const.UC_MODE_ARM)
    uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
    uc.ctl_set_page_size(PAGE)  # else 1 KiB: four times the TLB misses
    return uc


def _system(uc: Any, key: tuple[int, int, int, int, int], value: int) -> None:
    op0, op1, crn, crm, op2 = key
    uc.reg_write(arm.UC_ARM64_REG_CP_REG, (crn, crm, op0, op1, op2, value))


def _enter_arm(uc: Any, ram: Ram, table: PageTable, keys: bytes) -> None:
    op0, op1, crn, crm, op2 = _SYSTEM_REGISTERS["SCTLR_EL1"]
    sctlr = uc.reg_read(arm.UC_ARM64_REG_CP_REG, (crn, crm, op0, op1, op2))
    uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # FP and SIMD; SVE stays off
    _system(uc, _SYSTEM_REGISTERS["SCTLR_EL1"], sctlr | _SCTLR)
    _system(uc, _SYSTEM_REGISTERS["HCR_EL2"], _HCR)
    _system(uc, _SYSTEM_REGISTERS["SCR_EL3"], _SCR)
    _system(uc, _SYSTEM_REGISTERS["TCR_EL1"], _TCR)
    _system(uc, _SYSTEM_REGISTERS["CNTKCTL_EL1"], 0)  # counters trap, so that time is ours
    for index, key in enumerate(_PAUTH_KEYS):
        _system(uc, key, int.from_bytes(keys[8 * index : 8 * index + 8], "little"))
    # msr spsr_el1, x1; msr elr_el1, x2; eret
    code = struct.pack("<3I", 0xD5184001, 0xD5184022, 0xD69F03E0).ljust(PAGE, b"\0")
    uc.reg_write(arm.UC_ARM64_REG_X1, 0)
    uc.reg_write(arm.UC_ARM64_REG_X2, _START)
    _run_stub(uc, ram, table, _ARM_AT, [code], _ARM_AT, _START)
    if uc.reg_read(arm.UC_ARM64_REG_PSTATE) & 0xF:
        raise EngineError("the emulator did not reach EL0")
    uc.reg_write(arm.UC_ARM64_REG_X2, 0)


def _arm_register_id(name: str) -> int:
    number: int = getattr(arm, "UC_ARM64_REG_" + _ARM_NAMES.get(name, name.upper()))
    return number


def _arm_mask_write(name: str, value: int) -> int:
    if name == "cpsr":
        return value & 0xF0000C00  # NZCV, BTYPE: all else of PSTATE is not a program's to set
    return value


MACHINES = {
    "X86": Machine(
        open=_open_x86,
        enter_user_mode=_enter_x86,
        register_id=_x86_register_id,
        mask_write=_x86_mask_write,
        instruction_hooks=(
            (x86.UC_X86_INS_SYSCALL, "syscall"),
            (x86.UC_X86_INS_SYSENTER, "illegal"),
            (x86.UC_X86_INS_IN, "in"),
            (x86.UC_X86_INS_OUT, "out"),
        ),
        float_flags=_x86_float_flags,
        clear_float_flags=_x86_clear_float_flags,
        settle=_x86_settle,
    ),
    "ARM64": Machine(
        open=_open_arm,
        enter_user_mode=_enter_arm,
        register_id=_arm_register_id,
        mask_write=_arm_mask_write,
        instruction_hooks=(),
        float_flags=lambda uc: 0,
        clear_float_flags=lambda uc: None,
        settle=lambda uc: None,
    ),
}
"""By `EngineNames.unicorn`: the one list to extend."""
