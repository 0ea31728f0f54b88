"""RISC-V of 64 bits (RV64GC): the facts the generic engine needs, as data.

There are no jump probes, as Linux has none: they would need a register that nobody can give.
`jal` reaches 1 MiB, where most programs have no room for detours; `auipc` and `jalr` reach further
through a register. A recorder needs one too, for the address of the save area: without, nothing
can be named but the ends of the address space, where null pointers and MAP_FAILED must fault.
The calling convention frees none at a function's entry, as a caller may keep a value in any
register over a call that it knows not to change it (GCC's -fipa-ra). Memory below the stack
pointer belongs to nobody, but what a detour leaves there shows in variables that are never
initialised and in padding that is written out: a probe would change the run. What is left is a
register that the function writes before it reads it, which takes the liveness of all registers.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from engine.arch.base import (
    GENERIC_STAT,
    AddressPlan,
    Arch,
    LinuxAbi,
    Register,
    Roles,
    TrapKind,
    VdsoAbi,
)
from engine.arch.frames import Flow
from engine.arch.machine import Insn
from engine.arch.riscv64.abi import ABI
from engine.arch.riscv64.bench import BENCH
from engine.arch.riscv64.decode import FLOAT_NAMES, NAMES
from engine.arch.riscv64.engines import ENGINES
from engine.arch.riscv64.frames import UNWIND
from engine.arch.riscv64.probes import PROBES
from engine.arch.riscv64.screen import SUSPECTS, emulate, emulate_trapped, prepare, screen
from engine.arch.riscv64.signal_frames import SIGNALS
from engine.arch.riscv64.syscalls import OWN_CALLS, SYSCALLS

if TYPE_CHECKING:
    from engine.arch.dataflow import DataFlow
    from engine.arch.gdbtarget import GdbTarget
    from engine.arch.marker_operands import MarkerSyntax
    from engine.arch.ptrace import PtraceAbi

# DWARF numbers: RISC-V DWARF Specification, table 1.
_REGISTERS = (
    *(
        Register(
            name,
            dwarf=number,
            aliases=("fp", "x8") if name == "s0" else (f"x{number}",),
            constant=number == 0,
        )
        for number, name in enumerate(NAMES)
    ),
    Register("pc", aliases=("epc",)),
    Register("fcsr", bits=32, group="float"),
    *(
        Register(name, dwarf=32 + number, aliases=(f"f{number}",), group="float")
        for number, name in enumerate(FLOAT_NAMES)
    ),
)

_TRAPS = {  # mcause (volume II, table 3.6), as QEMU's RISCV_EXCP_*
    0: TrapKind.ALIGNMENT,
    2: TrapKind.ILLEGAL,
    3: TrapKind.BREAKPOINT,
    4: TrapKind.ALIGNMENT,
    6: TrapKind.ALIGNMENT,
    8: TrapKind.SYSCALL,
}

# AT_HWCAP: a bit for each letter of the instruction set (asm/hwcap.h).
_HWCAP = sum(1 << ord(letter) - ord("A") for letter in "IMAFDC")

# Linux with page tables of four levels (Sv48); between the mappings and the stack, as on x86-64.
_TASK_SIZE = 1 << 47
_WINDOWS = _TASK_SIZE - 0x800_0000


def _is_call(insn: Insn) -> bool:
    found = UNWIND.read(insn.raw, insn.address)
    return found is not None and found.flow is Flow.CALL


def _gdb() -> "GdbTarget":
    from engine.arch.riscv64.gdb import GDB  # asked for by a server for gdb only

    return GDB


def _ptrace() -> "PtraceAbi":
    from engine.arch.riscv64.user_regs import PTRACE  # few programs are traced

    return PTRACE


def _markers() -> "MarkerSyntax":
    from engine.arch.riscv64.markers import MARKERS  # few programs have static probes

    return MARKERS


def _data_flow() -> "DataFlow":
    from engine.arch.riscv64.copies import DATA_FLOW  # asked for by who follows values only

    return DATA_FLOW


RISCV64 = Arch(
    name="riscv64",
    elf_machine=243,
    elf_target="elf64-littleriscv",
    bits=64,
    byteorder="little",
    insn_align=2,
    insn_max=4,
    registers=_REGISTERS,
    roles=Roles(pc="pc", sp="sp", fp="s0", flags="fcsr", tls="tp", link="ra"),
    breakpoint=bytes.fromhex("73001000"),  # ebreak
    trap_advances_pc=False,
    engines=ENGINES,
    abi=ABI,
    bench=BENCH,
    gdb=_gdb,
    plan=AddressPlan(
        task_size=_TASK_SIZE,
        pie_base=0x5555_5555_5000,
        stack_top=_TASK_SIZE,
        mmap_top=_WINDOWS - 0x1000,
        mmap_min=0x1_0000,
        trampoline=(_WINDOWS, 0x1_0000),
        xol=(_WINDOWS + 0x1_0000, 0x4_0000),  # all of it within reach of the libraries below
        detour=(_WINDOWS + 0x10_0000, 0x200_0000),
        vdso=_WINDOWS + 0x210_0000,
        image_detour_size=0x4_0000,  # within reach of a jump (1 MiB), with most of the program
    ),
    linux=LinuxAbi(
        machine="riscv64",
        platform=b"",
        hwcap=(_HWCAP, 0),
        cpuinfo={"hart": "0", "isa": "rv64imafdc_zicsr_zifencei", "mmu": "sv48"},
        number="a7",
        arguments=("a0", "a1", "a2", "a3", "a4", "a5"),
        result="a0",
        syscalls=SYSCALLS,
        clobbers=(),
        syscall_size=4,
        open_flags={
            "O_DIRECT": 0o40000,
            "O_LARGEFILE": 0o100000,
            "O_DIRECTORY": 0o200000,
            "O_NOFOLLOW": 0o400000,
        },
        stat_layout=GENERIC_STAT,
        clone_backwards=True,
        own_calls=OWN_CALLS,
        epoll_packed=False,
        signals=SIGNALS,
        ptrace=_ptrace,
        restorer=False,
        vdso=VdsoAbi(Path(__file__).with_name("vdso.so"), (("[vvar]", 4),), True),
    ),
    stack_alignment=16,
    suspects=SUSPECTS,
    screen=screen,
    prepare=prepare,
    emulate=emulate,
    classify_trap=lambda number: _TRAPS.get(number, TrapKind.OTHER),
    emulate_trapped=emulate_trapped,
    is_call=_is_call,
    probes=PROBES,
    unwind=UNWIND,
    data_flow=_data_flow,
    markers=_markers,
)
