"""AArch64: the facts the generic engine needs, as data."""

from pathlib import Path
from typing import TYPE_CHECKING

from engine.arch.aarch64.abi import ABI
from engine.arch.aarch64.bench import BENCH
from engine.arch.aarch64.engines import ENGINES
from engine.arch.aarch64.frames import UNWIND
from engine.arch.aarch64.jumps import JUMPS
from engine.arch.aarch64.probes import PROBES
from engine.arch.aarch64.screen import (
    SUSPECTS,
    emulate,
    emulate_trapped,
    prepare,
    reads_counter,
    screen,
)
from engine.arch.aarch64.signal_frames import SIGNALS
from engine.arch.aarch64.syscalls import SYSCALLS
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

# DWARF numbers: "DWARF for the Arm 64-bit Architecture (AArch64)", section 4.1.
_REGISTERS = (
    *(Register(f"x{number}", dwarf=number) for number in range(29)),
    Register("x29", dwarf=29, aliases=("fp",)),
    Register("x30", dwarf=30, aliases=("lr",)),
    Register("sp", dwarf=31),
    Register("pc", dwarf=32),
    Register(
        "cpsr",
        bits=32,
        aliases=("pstate", "flags"),
        group="flags",
        flags=((31, "N"), (30, "Z"), (29, "C"), (28, "V")),
    ),
    Register("tpidr", dwarf=36, aliases=("tpidr_el0",), group="system"),
    Register("fpcr", bits=32, group="float"),
    Register("fpsr", bits=32, group="float"),
    *(
        Register(
            f"v{number}", bits=128, dwarf=64 + number, aliases=(f"q{number}",), group="vector"
        )
        for number in range(32)
    ),
)

if TYPE_CHECKING:
    from engine.arch.dataflow import DataFlow
    from engine.arch.gdbtarget import GdbTarget
    from engine.arch.kernel import KernelView
    from engine.arch.kernelcalls import KernelCalls
    from engine.arch.kernelcpu import CpuModel
    from engine.arch.kernelmodules import ModuleLinker
    from engine.arch.kernelprobes import KernelPlaceRules
    from engine.arch.kernelsites import BootedKernel, KernelSites, TableShapes
    from engine.arch.marker_operands import MarkerSyntax
    from engine.arch.ptrace import PtraceAbi

_TRAPS = {  # QEMU's EXCP_* numbers of target/arm
    1: TrapKind.ILLEGAL,
    2: TrapKind.SYSCALL,
    4: TrapKind.ALIGNMENT,  # EXCP_DATA_ABORT: the page table refuses all other accesses
    7: TrapKind.BREAKPOINT,
}

# AT_HWCAP (asm/hwcap.h): what the emulator's fullest model implements at user level, without
# SVE (kept off: its state is not saved) and CPUID (so that nothing tunes by model).
_HWCAP = sum(
    1 << bit
    for bit in (
        *(0, 1),  # FP, ASIMD
        *range(3, 11),  # AES, PMULL, SHA1, SHA2, CRC32, ATOMICS, FPHP, ASIMDHP
        *(12, 13, 14, 15),  # ASIMDRDM, JSCVT, FCMA, LRCPC
        *(17, 18, 19, 20, 21),  # SHA3, SM3, SM4, ASIMDDP, SHA512
        *(30, 31),  # PACA, PACG
    )
)

_FEATURES = (
    "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm jscvt fcma lrcpc sha3 sm3 "
    "sm4 asimddp sha512 paca pacg"
)
"""The same by the names of /proc/cpuinfo."""

_CALLS = frozenset(("bl", "blr", "blraa", "blraaz", "blrab", "blrabz"))

# As on x86-64: between the mappings and the stack.
_WINDOWS = 0xFFFF_F800_0000
# Of a kernel: behind all images. What has to be near an image stands in front of it.
_KERNEL_WINDOWS = 0xFFFF_8001_0000_0000


def _ptrace() -> "PtraceAbi":
    from engine.arch.aarch64.user_regs import PTRACE  # few programs are traced

    return PTRACE


def _kernel_calls() -> "KernelCalls":
    from engine.arch.aarch64.kernel_calls import CALLS

    return CALLS


def _kernel_modules() -> "ModuleLinker":
    from engine.arch.aarch64.kernel_modules import Arm64Linker

    return Arm64Linker()


def _kernel_rules(view: "KernelView") -> "KernelPlaceRules":
    from engine.arch.aarch64.kernel_probes import Arm64KernelRules  # asked for by images only

    return Arm64KernelRules(view)


def _kernel_shapes(view: "KernelView") -> "TableShapes":
    from engine.arch.aarch64.kernel_text_tables import ImageShapes

    return ImageShapes(view)


def _kernel_text(view: "KernelView", sites: "KernelSites", cpu: "CpuModel") -> "BootedKernel":
    from engine.arch.aarch64.kernel_text import PatchedWords

    return PatchedWords(view, sites, cpu)


def _gdb() -> "GdbTarget":
    from engine.arch.aarch64.gdb import GDB  # asked for by a server for gdb only

    return GDB


def _markers() -> "MarkerSyntax":
    from engine.arch.aarch64.markers import MARKERS  # few programs have static probes

    return MARKERS


def _data_flow() -> "DataFlow":
    from engine.arch.aarch64.copies import DATA_FLOW  # asked for by who follows values only

    return DATA_FLOW


AARCH64 = Arch(
    name="aarch64",
    elf_machine=183,
    elf_target="elf64-littleaarch64",
    bits=64,
    byteorder="little",
    insn_align=4,
    insn_max=4,
    registers=_REGISTERS,
    roles=Roles(pc="pc", sp="sp", fp="x29", flags="cpsr", tls="tpidr", link="x30"),
    breakpoint=bytes.fromhex("800020d4"),  # brk #4, the immediate Linux reserves for kprobes
    trap_advances_pc=False,
    engines=ENGINES,
    abi=ABI,
    bench=BENCH,
    gdb=_gdb,
    slices={f"w{number}": (f"x{number}", 0, 4) for number in range(31)},
    bpftrace={f"x{number}": f"r{number}" for number in range(31)},
    plan=AddressPlan(
        task_size=1 << 48,
        pie_base=0xAAAA_AAAA_A000,
        stack_top=1 << 48,
        mmap_top=0xFFFF_F7FF_F000,
        mmap_min=0x1_0000,
        trampoline=(_WINDOWS, 0x1_0000),
        xol=(_WINDOWS + 0x1_0000, 0xF_0000),
        detour=(_WINDOWS + 0x10_0000, 0x200_0000),
        vdso=_WINDOWS + 0x210_0000,
        image_detour_size=0x200_0000,
    ),
    linux=LinuxAbi(
        machine="aarch64",
        platform=b"aarch64",
        hwcap=(_HWCAP, 0),
        cpuinfo={
            "BogoMIPS": "100.00",
            "Features": _FEATURES,
            "CPU implementer": "0x00",
            "CPU architecture": "8",
        },
        number="x8",
        arguments=("x0", "x1", "x2", "x3", "x4", "x5"),
        result="x0",
        syscalls=SYSCALLS,
        clobbers=(),
        syscall_size=4,
        open_flags={
            "O_DIRECTORY": 0o40000,
            "O_NOFOLLOW": 0o100000,
            "O_DIRECT": 0o200000,
            "O_LARGEFILE": 0o400000,
        },
        stat_layout=GENERIC_STAT,
        clone_backwards=True,
        epoll_packed=False,
        signals=SIGNALS,
        ptrace=_ptrace,
        vdso=VdsoAbi(Path(__file__).with_name("vdso.so"), (("[vvar]", 4),), True),
    ),
    stack_alignment=16,
    suspects=SUSPECTS,
    screen=screen,
    prepare=prepare,
    emulate=emulate,
    classify_trap=lambda number: _TRAPS.get(number, TrapKind.OTHER),
    emulate_trapped=emulate_trapped,
    reads_counter=reads_counter,
    is_call=lambda insn: insn.mnemonic in _CALLS,
    probes=PROBES,
    unwind=UNWIND,
    jumps=JUMPS,
    kernel_calls=_kernel_calls,
    # Documentation/arch/arm64/memory.rst, 48 bits of addresses: stacks in vmalloc's area.
    kernel_plan=AddressPlan(
        task_size=1 << 64,
        pie_base=0xFFFF_8000_0800_0000,
        stack_top=0xFFFF_8002_0002_0000,
        mmap_top=0xFFFF_8003_0000_0000,
        mmap_min=0x1_0000,
        trampoline=(_KERNEL_WINDOWS, 0x1_0000),
        xol=(_KERNEL_WINDOWS + 0x1_0000, 0xF_0000),
        detour=(_KERNEL_WINDOWS + 0x10_0000, 0x200_0000),
        image_detour_size=0x200_0000,
    ),
    kernel_modules=_kernel_modules,
    kernel_rules=_kernel_rules,
    kernel_text=_kernel_text,
    kernel_shapes=_kernel_shapes,
    data_flow=_data_flow,
    markers=_markers,
)
