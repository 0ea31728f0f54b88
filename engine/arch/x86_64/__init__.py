"""x86-64: the facts the generic engine needs, as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.arch.base import (
    AddressPlan,
    Arch,
    InterruptCalls,
    LinuxAbi,
    Register,
    Roles,
    StatLayout,
    TrapKind,
    VdsoAbi,
)
from engine.arch.x86_64.abi import ABI
from engine.arch.x86_64.bench import BENCH
from engine.arch.x86_64.engines import ENGINES
from engine.arch.x86_64.frames import UNWIND
from engine.arch.x86_64.jumps import JUMPS
from engine.arch.x86_64.probes import PROBES
from engine.arch.x86_64.screen import (
    FLOAT_SUSPECTS,
    SUSPECT_ENDS,
    SUSPECT_LASTS,
    SUSPECTS,
    clears,
    emulate,
    emulate_trapped,
    prepare,
    reads_counter,
    screen,
)
from engine.arch.x86_64.signal_frames import SIGNALS
from engine.arch.x86_64.slices import SLICES
from engine.arch.x86_64.sse_arithmetic import unusual
from engine.arch.x86_64.syscalls import OWN_CALLS, SYSCALLS, TASK_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.arch.dataflow import DataFlow
    from engine.arch.gdbtarget import GdbTarget
    from engine.arch.kernel import KernelView
    from engine.arch.kernelcalls import KernelCalls
    from engine.arch.kernelcpu import CpuModel
    from engine.arch.kernelmodules import ModuleLinker
    from engine.arch.kernelprobes import KernelPlaceRules
    from engine.arch.kernelsites import BootedKernel, KernelSites
    from engine.arch.machine import Insn, SpelledInsn
    from engine.arch.marker_operands import MarkerSyntax
    from engine.arch.nop_call import NopCalls
    from engine.arch.ptrace import PtraceAbi

# DWARF numbers: System V ABI, AMD64 supplement, figure 3.36.
_REGISTERS = (
    Register("rax", dwarf=0),
    Register("rbx", dwarf=3),
    Register("rcx", dwarf=2),
    Register("rdx", dwarf=1),
    Register("rsi", dwarf=4),
    Register("rdi", dwarf=5),
    Register("rbp", dwarf=6, aliases=("fp",)),
    Register("rsp", dwarf=7, aliases=("sp",)),
    *(Register(f"r{number}", dwarf=number) for number in range(8, 16)),
    Register("rip", dwarf=16, aliases=("pc", "ip")),
    Register(
        "eflags",
        bits=32,
        dwarf=49,
        aliases=("flags", "rflags"),
        group="flags",
        flags=(
            *((0, "CF"), (2, "PF"), (4, "AF"), (6, "ZF"), (7, "SF")),
            *((8, "TF"), (9, "IF"), (10, "DF"), (11, "OF")),
        ),
    ),
    *(
        Register(name, bits=16, dwarf=dwarf, group="system")
        for name, dwarf in (("cs", 51), ("ss", 52), ("ds", 53), ("es", 50), ("fs", 54), ("gs", 55))
    ),
    Register("fs_base", dwarf=58, group="system"),
    Register("gs_base", dwarf=59, group="system"),
    Register("mxcsr", bits=32, dwarf=64, group="float"),
    Register("fctrl", bits=16, dwarf=65, group="float"),
    Register("fstat", bits=16, dwarf=66, group="float"),
    Register("ftag", bits=16, group="float"),
    *(Register(f"st{number}", bits=80, dwarf=33 + number, group="float") for number in range(8)),
    *(
        Register(f"xmm{number}", bits=128, dwarf=17 + number, group="vector")
        for number in range(16)
    ),
    *(Register(f"ymm{number}h", bits=128, group="vector") for number in range(16)),
)

_ELSEWHERE: Final = frozenset(
    {
        *("call", "lcall", "jmp", "ljmp", "ret", "retf", "retfq", "iret", "iretd", "iretq"),
        *("rep", "repe", "repne", "xbegin"),
    }
)
"""Words of Capstone's mnemonics: jumps that read or write memory, and what repeats itself."""

_TRAPS = {
    0: TrapKind.DIVIDE,
    1: TrapKind.SINGLE_STEP,
    3: TrapKind.BREAKPOINT,
    6: TrapKind.ILLEGAL,
    13: TrapKind.PRIVILEGED,
    16: TrapKind.FLOAT,
    17: TrapKind.ALIGNMENT,
    19: TrapKind.FLOAT,
}

# Between the lowest address of mappings and the stack Linux leaves 128 MiB free; the windows
# stand there, within branch reach of the libraries below.
_WINDOWS = 0x7FFF_F800_0000
# Of a kernel: where the last modules would stand, in reach of all of its text.
_KERNEL_WINDOWS = 0xFFFF_FFFF_E000_0000

# What CPUID offers, by the names of asm/cpufeatures.h.
_FLAGS = (
    "fpu de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse "
    "sse2 syscall nx rdtscp lm pni pclmulqdq ssse3 cx16 sse4_1 sse4_2 popcnt aes xsave rdrand "
    "hypervisor lahf_lm fsgsbase smep erms"
)


def _interrupt_calls() -> Mapping[int, str]:
    from engine.arch.x86_64.i386_calls import NAMES  # few programs make them

    return NAMES


def _rewrites(raw: bytes) -> bool:
    from engine.arch.x86_64.accesses import rewrites  # needed at faults only

    return rewrites(raw)


def _stores_byte(raw: bytes) -> bool:
    from engine.arch.x86_64.accesses import stores_byte

    return stores_byte(raw)


def _ptrace() -> "PtraceAbi":
    from engine.arch.x86_64.user_regs import PTRACE  # few programs are traced

    return PTRACE


def _nop_calls() -> "NopCalls":
    from engine.arch.x86_64.nop_calls import NOP_CALLS

    return NOP_CALLS


def _kernel_calls() -> "KernelCalls":
    from engine.arch.x86_64.kernel_calls import CALLS

    return CALLS


def _kernel_modules() -> "ModuleLinker":
    from engine.arch.x86_64.kernel_modules import X86Linker

    return X86Linker()


def _kernel_rules(view: "KernelView") -> "KernelPlaceRules":
    from engine.arch.x86_64.kernel_probes import X86KernelRules  # asked for by images only

    return X86KernelRules(view)


def _kernel_text(view: "KernelView", sites: "KernelSites", cpu: "CpuModel") -> "BootedKernel":
    from engine.arch.x86_64.kernel_text import PatchedText

    return PatchedText(view, sites, cpu)


def _gdb_system() -> "GdbTarget":
    from engine.arch.x86_64.gdb import GDB_SYSTEM  # asked for by a server for gdb only

    return GDB_SYSTEM


def _gdb() -> "GdbTarget":
    from engine.arch.x86_64.gdb import GDB  # asked for by a server for gdb only

    return GDB


def _markers() -> "MarkerSyntax":
    from engine.arch.x86_64.markers import MARKERS  # few programs have static probes

    return MARKERS


def _haswell(arch: Arch) -> Arch:
    from engine.arch.x86_64 import haswell  # asked for by --guest-cpu only

    return haswell.later(arch)


def _data_flow() -> "DataFlow":
    from engine.arch.x86_64.copies import DATA_FLOW  # asked for by who follows values only

    return DATA_FLOW


def _spelling() -> "Callable[[Insn, str], SpelledInsn]":
    from engine.arch.x86_64.gnu_spelling import spelled  # asked for by gdb's words only

    return spelled


X86_64 = Arch(
    name="x86_64",
    elf_machine=62,
    elf_target="elf64-x86-64",
    bits=64,
    byteorder="little",
    insn_align=1,
    insn_max=15,
    registers=_REGISTERS,
    roles=Roles(pc="rip", sp="rsp", fp="rbp", flags="eflags", tls="fs_base"),
    breakpoint=b"\xcc",
    trap_advances_pc=True,
    engines=ENGINES,
    abi=ABI,
    bench=BENCH,
    gdb=_gdb,
    gdb_system=_gdb_system,
    flag_set="i386",
    slices=SLICES,
    plan=AddressPlan(
        task_size=TASK_SIZE,
        pie_base=0x5555_5555_4000,
        stack_top=TASK_SIZE,
        mmap_top=0x7FFF_F7FF_F000,
        mmap_min=0x1_0000,
        trampoline=(_WINDOWS, 0x1_0000),
        xol=(_WINDOWS + 0x1_0000, 0xF_0000),
        detour=(_WINDOWS + 0x10_0000, 0x200_0000),
        vdso=_WINDOWS + 0x210_0000,
        image_detour_size=0x200_0000,
        image_detour_high=0x7D00_0000,  # in reach of all that is linked to low addresses
    ),
    linux=LinuxAbi(
        machine="x86_64",
        platform=b"x86_64",
        # CPUID leaf 1 edx of the emulated processor; HWCAP2: fsgsbase.
        hwcap=(0x078BFBFD, 2),
        semid_padded=True,
        cpuinfo={
            "vendor_id": "GenuineIntel",
            "cpu family": "6",
            "model": "58",
            "stepping": "9",
            "flags": _FLAGS,
            "clflush size": "64",
            "address sizes": "40 bits physical, 48 bits virtual",
        },
        number="rax",
        arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
        result="rax",
        syscalls=SYSCALLS,
        clobbers=(("rcx", "rip"), ("r11", "eflags")),
        syscall_size=2,
        open_flags={
            "O_DIRECT": 0o40000,
            "O_LARGEFILE": 0o100000,
            "O_DIRECTORY": 0o200000,
            "O_NOFOLLOW": 0o400000,
        },
        stat_layout=StatLayout(  # asm/stat.h
            "QQQIII4xQqqqqqqqqq24x",
            (
                *("dev", "ino", "nlink", "mode", "uid", "gid", "rdev", "size", "blksize"),
                *("blocks", "atime", "mtime", "ctime"),
            ),
        ),
        epoll_packed=True,
        own_calls=OWN_CALLS,
        # arch/x86/entry/vsyscall: gettimeofday, time and getcpu, with which vsyscall=xonly leaves
        # a page that can be executed and not read.
        refuses_counter=True,
        vsyscalls=(0xFFFF_FFFF_FF60_0000, {0: 96, 0x400: 201, 0x800: 309}),
        interrupt=InterruptCalls(
            0x80, "rax", ("rbx", "rcx", "rdx", "rsi", "rdi", "rbp"), _interrupt_calls
        ),
        signals=SIGNALS,
        ptrace=_ptrace,
        vdso=VdsoAbi(
            Path(__file__).with_name("vdso.so"), (("[vvar]", 4), ("[vvar_vclock]", 2)), False
        ),
    ),
    stack_alignment=16,
    suspects=SUSPECTS,
    suspect_ends=SUSPECT_ENDS,
    suspect_lasts=SUSPECT_LASTS,
    float_suspects=FLOAT_SUSPECTS,
    unusual_float=unusual,
    screen=screen,
    clears=clears,
    prepare=prepare,
    emulate=emulate,
    classify_trap=lambda number: _TRAPS.get(number, TrapKind.PRIVILEGED),
    emulate_trapped=emulate_trapped,
    reads_counter=reads_counter,
    rewrites=_rewrites,
    stores_byte=_stores_byte,
    is_call=lambda insn: insn.mnemonic in ("call", "lcall"),
    goes_elsewhere=lambda insn: not _ELSEWHERE.isdisjoint(insn.mnemonic.split()),
    probes=PROBES,
    unwind=UNWIND,
    jumps=JUMPS,
    nop_calls=_nop_calls,
    kernel_calls=_kernel_calls,
    # Documentation/arch/x86/x86_64/mm.rst: stacks in vmalloc's area.
    kernel_plan=AddressPlan(
        task_size=1 << 64,
        pie_base=0xFFFF_FFFF_8000_0000,
        stack_top=0xFFFF_C900_0002_0000,
        mmap_top=0xFFFF_E000_0000_0000,
        mmap_min=0x1_0000,
        trampoline=(_KERNEL_WINDOWS, 0x1_0000),
        xol=(_KERNEL_WINDOWS + 0x1_0000, 0xF_0000),
        detour=(_KERNEL_WINDOWS + 0x10_0000, 0x200_0000),
        image_detour_size=0x100_0000,
    ),
    kernel_modules=_kernel_modules,
    kernel_rules=_kernel_rules,
    kernel_text=_kernel_text,
    data_flow=_data_flow,
    spelling=_spelling,
    markers=_markers,
    models={"v3": _haswell},
)
