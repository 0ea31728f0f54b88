"""The record of an architecture: frozen data and plain functions, no engine object.

Everything above asks these records, never an architecture's name.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.arch.abi import ElfAbi
from engine.arch.bench import BenchGuest
from engine.arch.checks import check
from engine.arch.engines import EngineNames
from engine.arch.frames import ArchUnwind
from engine.arch.jump import ArchJumps
from engine.arch.machine import ArchCpu, FrameCpu, Insn, LentCpu, RegisterFile, SpelledInsn
from engine.arch.plan import ArchProbes
from engine.arch.returns import ArchReturns

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
    from engine.arch.nop_call import NopCalls
    from engine.arch.ptrace import PtraceAbi


class Register(Struct, frozen=True):
    """One architectural register as the user sees it.

    Attributes:
        name: lower-case name, as gdb spells it.
        bits: width.
        dwarf: DWARF number, or None where the ABI gives none.
        aliases: other spellings that definitions and commands accept.
        group: "general", "flags", "system", "vector" or "float": how panes sort it.
        flags: (bit, name) of the flags in it that are worth showing, as gdb names them.
        constant: it has one value whatever is written to it (a register that reads as zero).
    """

    name: str
    bits: int = 64
    dwarf: int | None = None
    aliases: tuple[str, ...] = ()
    group: str = "general"
    flags: tuple[tuple[int, str], ...] = ()
    constant: bool = False


class Roles(Struct, frozen=True):
    """Which register plays which part; `link` is None where calls push the return address."""

    pc: str
    sp: str
    fp: str
    flags: str
    tls: str
    link: str | None = None


class AddressPlan(Struct, frozen=True):
    """Layout of an address space: a user program's as Linux makes it with ASLR off, or a kernel's.

    The windows are the engine's own: they are reserved before the guest starts, so that
    nothing the guest maps moves when a probe is placed. All are page aligned byte addresses.

    Attributes:
        task_size: first address beyond user space; beyond all that there is for a kernel.
        pie_base: load address of a position-independent main program.
        stack_top: end of the initial stack.
        mmap_top: mappings without an address grow down from here.
        mmap_min: lowest address a program may map.
        xol: (start, size) of the out-of-line slots.
        trampoline: (start, size) of return trampolines and the signal-return code.
        detour: (start, size) of detour buffers within branch reach of libraries.
        image_detour_size: bytes reserved for detours next to the main program.
        image_detour_high: where they are instead for much code with little room below it, 0 for
            nowhere else.
        register_stack: (start, size) of the backing store of a register stack; size 0 = none.
        vdso: where the pages of data in front of the vDSO begin; 0 = there is none.
    """

    task_size: int
    pie_base: int
    stack_top: int
    mmap_top: int
    mmap_min: int
    xol: tuple[int, int]
    trampoline: tuple[int, int]
    detour: tuple[int, int]
    image_detour_size: int
    image_detour_high: int = 0
    page_size: int = 4096
    register_stack: tuple[int, int] = (0, 0)
    vdso: int = 0


class TrapKind(Enum):
    """Meaning of an exception of the CPU to the guest's kernel."""

    BREAKPOINT = auto()
    SINGLE_STEP = auto()
    ILLEGAL = auto()
    PRIVILEGED = auto()
    DIVIDE = auto()
    FLOAT = auto()
    ALIGNMENT = auto()
    SYSCALL = auto()
    MEMORY = auto()
    OTHER = auto()


class Screening(Enum):
    """Treatment of an instruction that the emulator would execute wrongly."""

    PREPARE = auto()
    """Runs in the emulator after the architecture's `prepare` has put the state right."""
    EMULATE = auto()
    """Executed by the architecture's own `emulate`, from outside the emulator."""
    REFUSE = auto()
    """Raises an illegal-instruction signal with a message that names it."""
    BORROW = auto()
    """Of a later processor: as EMULATE where the host lends its own, as REFUSE elsewhere."""
    EXTEND = auto()
    """Of a later processor: runs where the host lends its own, as REFUSE elsewhere."""


class Screened(Struct, frozen=True):
    """One instruction in a new block that must not run as it stands.

    Attributes:
        address: where it is.
        size: of it.
        action: what is done about it.
        what: why, in words.
        computes: nothing need be done where floating point is the host's own.
        unusual: nothing need be done unless the arch's `unusual_float` is true.
    """

    address: int
    size: int
    action: Screening
    what: str
    computes: bool = False
    unusual: bool = False


OwnCall = Callable[..., int]
"""(registers, memory, *arguments) to the result or -errno: see `LinuxAbi.own_calls`."""


class StatLayout(Struct, frozen=True):
    """Layout of struct stat.

    Attributes:
        form: for `struct`, without the byte order.
        fields: what fills it, in order; a time is its seconds and its nanoseconds.
    """

    form: str
    fields: tuple[str, ...]


GENERIC_STAT: Final = StatLayout(
    "QQIIIIQ8xqi4xqqqqqqq8x",
    (
        *("dev", "ino", "mode", "nlink", "uid", "gid", "rdev", "size", "blksize", "blocks"),
        *("atime", "mtime", "ctime"),
    ),
)
"""asm-generic/stat.h on 64 bits."""


class LinuxAbi(Struct, frozen=True):
    """Facts of an architecture in the user-mode ABI of Linux.

    Attributes:
        machine: `uname -m`.
        platform: AT_PLATFORM; empty = there is none.
        hwcap: AT_HWCAP and AT_HWCAP2.
        number: register with the system-call number.
        arguments: registers with up to six arguments.
        result: register that takes the result or -errno.
        syscalls: number to name.
        clobbers: (register, register copied into it) by the system-call instruction.
        syscall_size: bytes of that instruction, to step back over it for a restart.
        open_flags: O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_LARGEFILE by name.
        stat_layout: of struct stat.
        epoll_packed: whether struct epoll_event has no padding.
        signals: the architecture's signal frames.
        error: register that becomes -1 where a call fails, whose result is the errno itself
            then, and 0 where it succeeds; "" = the result is -errno.
        second: register with the second result of `pipe`, whose first is the result then; "" =
            it stores both in memory.
        syscall_before: address of the system-call instruction, from the one behind it, where
            `syscall_size` does not tell.
        restorer: whether struct sigaction has a field for the return code.
        start: registers as a program finds them, written in this order; the rest are 0.
        start_scratch: bytes between sp and the argument count.
        clone_backwards: clone's fourth argument is the TLS, its fifth the child's thread id
            (CONFIG_CLONE_BACKWARDS).
        cpuinfo: further lines of /proc/cpuinfo, as the kernel names them.
        semid_padded: whether struct semid64_ds has a word behind each time (asm/sembuf.h).
        own_calls: system calls that no other architecture has, by name: given the registers
            (`RegisterFile`), the memory (`MemoryAccess`) and the arguments, they return what
            the kernel does: a result or -errno. A GuestFaultError becomes -EFAULT.
        several: a processor of ours can hold more than one thread and program of it in turn.
        ptrace: registers as a debugger inside the guest sees them; None where nobody can be one.
        vsyscalls: a page whose addresses are system calls that programs call as functions:
            (its address, address in it to a call's number); None where there is none.
        interrupt: another way to make system calls; None where there is none.
        vdso: the shared object that every program finds mapped; None where there is none.
        refuses_counter: a thread may be refused the time stamp counter (PR_SET_TSC).
    """

    machine: str
    platform: bytes
    hwcap: tuple[int, int]
    number: str
    arguments: tuple[str, ...]
    result: str
    syscalls: Mapping[int, str]
    clobbers: tuple[tuple[str, str], ...]
    syscall_size: int
    open_flags: Mapping[str, int]
    stat_layout: StatLayout
    epoll_packed: bool
    signals: "SignalAbi"
    error: str = ""
    second: str = ""
    syscall_before: Callable[[int], int] | None = None
    restorer: bool = True
    cpuinfo: Mapping[str, str] = field(default_factory=dict)
    semid_padded: bool = False
    start: tuple[tuple[str, int], ...] = ()
    start_scratch: int = 0
    clone_backwards: bool = False
    own_calls: Mapping[str, OwnCall] = field(default_factory=dict)
    several: bool = True
    ptrace: "Callable[[], PtraceAbi] | None" = None
    vsyscalls: tuple[int, Mapping[int, int]] | None = None
    interrupt: "InterruptCalls | None" = None
    vdso: "VdsoAbi | None" = None
    refuses_counter: bool = False


class VdsoAbi(Struct, frozen=True):
    """The vDSO of an architecture: what `make -C engine/arch` has built from its `vdso.S`.

    Attributes:
        file: the image.
        data: (name in /proc/PID/maps, pages) of what stands in front of the image; the first page
            begins with the words that `vdso.h` tells of.
        returns: whether signal handlers return to its copy of `SignalAbi.return_code`.
    """

    file: Path
    data: tuple[tuple[str, int], ...]
    returns: bool


class InterruptCalls(Struct, frozen=True):
    """System calls of the 32-bit architecture that came before, made by an exception.

    Attributes:
        exception: number of it.
        number: register with the call's number, of which the lower half counts, as of others.
        arguments: registers with up to six arguments.
        names: number to name, of calls whose arguments mean the same to a 64-bit program.
    """

    exception: int
    number: str
    arguments: tuple[str, ...]
    names: "Callable[[], Mapping[int, str]]"


class SignalFrame(Struct, frozen=True):
    """Registers with which a handler is entered, and those that a return from it restores.

    Attributes:
        number: signal number.
        siginfo: 128 bytes of siginfo_t.
        handler: address of the handler.
        restorer: address of the return code; 0 = none given by the program.
        mask: blocked signals to restore, bit N-1 = signal N.
        stack_top: where the frame is built downwards from.
        altstack: (sp, flags, size) for uc_stack.
        fault_address: address of the fault, 0 if none.
        trap_number: the CPU's exception number where the ABI shows it.
        error_code: the CPU's error code where the ABI shows it.
        on_altstack: the frame starts a fresh alternate stack.
    """

    number: int
    siginfo: bytes
    handler: int
    restorer: int
    mask: int
    stack_top: int
    altstack: tuple[int, int, int]
    fault_address: int = 0
    trap_number: int = 0
    error_code: int = 0
    on_altstack: bool = False


class SignalAbi(Struct, frozen=True):
    """Layout of signal frames.

    Attributes:
        enter: builds the frame and points the registers at the handler; given where
            `return_code` stands.
        leave: reads the frame of rt_sigreturn; returns (mask, altstack) to restore.
        return_code: code in the vDSO (`VdsoAbi.returns`), or the engine's own in the trampoline
            window: it begins with a call of rt_sigreturn for handlers without a restorer; helpers
            of `enter` may follow.
        traps: what each exception becomes: (signal, si_code, whether si_addr is the pc).
        exception: the same from the registers, an exception's kind and its number, where these
            tell more; None where they do not.
        misaligned: (address, error code) of an access that was refused as misaligned, from the
            registers and the instruction's bytes; None where si_addr is what `traps` says.
        fault_codes: (trap number, error code) of a refused access, from its kind ("read",
            "write", "execute"), whether a page is there at all, and its address.
        canonical: whether a refused access to an address is a page fault.
        no_address: (signal, trap number, error code) of one that is not, from the bytes of the
            instruction.
        details: what siginfo has behind si_addr, from the exception's kind, its number, the
            refused access and the pc.
        trap_codes: what frames show after an exception, from its number and the address that
            they showed before: (fault address, trap number, error code).
        minimum_stack: AT_MINSIGSTKSZ.
        saved_mask: place of the signal mask in a frame, as a distance from sp once the handler has
            returned.
    """

    enter: Callable[[FrameCpu, SignalFrame, int], None]
    leave: Callable[[FrameCpu, int], tuple[int, tuple[int, int, int]]]
    return_code: bytes
    traps: Mapping[TrapKind, tuple[int, int, bool]]
    fault_codes: Callable[[str, bool, int], tuple[int, int]]
    canonical: Callable[[int], bool]
    no_address: Callable[[bytes], tuple[int, int, int]]
    trap_codes: Callable[[int, int], tuple[int, int, int]]
    minimum_stack: int
    saved_mask: int
    exception: Callable[[RegisterFile, TrapKind, int], tuple[int, int, bool] | None] = (
        lambda registers, kind, number: None
    )
    details: Callable[[TrapKind, int, str, int], bytes] = lambda kind, number, access, pc: b""
    misaligned: Callable[[RegisterFile, bytes], tuple[int, int] | None] = lambda registers, raw: (
        None
    )


class Arch(Struct, frozen=True):
    """One architecture: data plus pure functions.

    Attributes:
        name: as in messages and options.
        elf_machine: e_machine.
        bits: 32 or 64.
        byteorder: "little" or "big".
        insn_align: alignment of instructions in bytes.
        insn_max: longest instruction in bytes.
        registers: all registers, in display order.
        roles: which is pc, sp, ...
        parts: names that its CPU has beside them, for parts of registers or what they stand for.
        breakpoint: bytes Linux plants for a probe.
        trap_advances_pc: whether the trap leaves pc behind the breakpoint.
        slices: (register, first byte, bytes) of registers that are a part of another one: eax.
        elf_target: name that binutils gives to its files; "" where that has none.
        engines: what third-party engines are told about it.
        abi: calls, linkage stubs, mapping symbols.
        bench: the guest that `bench` measures on; None where there is none.
        gdb: its registers as gdb's remote protocol has them; None where gdb is not served.
        gdb_system: those of a processor in system mode; None where no machine is booted.
        flag_set: the beginning of gdb's names for types of flags; "" for the architecture's name.
        bpftrace: registers that bpftrace calls otherwise than `registers` does.
        plan: the address space.
        linux: the kernel ABI.
        stack_alignment: of sp at process entry.
        suspects: byte pairs (first to seconds) one of which is in every instruction to screen;
            a block without any holds none.
        suspect_ends: bytes that do the same as the third last of a block whose last byte is
            above 0x7F: operands of 16 bits that have their sign bit.
        suspect_lasts: bytes that do the same as the second last of a block.
        unusual_float: tells whether the program controls floating point as the emulator can't.
        float_suspects: suspects more where no host computes floating point for the guest.
        screen: the instructions of a block that must not run, given its decoded form.
        clears: tells from a block's bytes alone that `screen` would find nothing; where it cannot
            tell they are decoded.
        prepare: puts the state right before a screened instruction runs in place.
        emulate: executes a screened instruction; returns the next pc.
        classify_trap: emulator exception number to what it means.
        emulate_trapped: executes an instruction whose execution the CPU refused at user
            level although Linux lets programs use it (counters, far returns); None when it is
            not ours. A TrapError says that it raises something else than the CPU reported.
        reads_counter: whether bytes begin with one of those that reads a counter, which changes
            nothing but registers.
        is_call: tells whether an instruction calls a function.
        rewrites: tells from its bytes whether an instruction writes an operand in memory that it
            reads first, which is refused as a write.
        stores_byte: tells from its bytes whether an instruction stores single bytes.
        goes_elsewhere: tells whether an instruction that accesses memory may go on elsewhere
            than behind itself, or repeats itself.
        probes: what breakpoint probes need of it.
        unwind: what the unwinder needs of it; None where unwinding has its own tables only.
        core: which CPU runs it, of `engine.cpu.cores`.
        decode: (address, bytes from the unit around it on) to its instructions from there on;
            None where a third-party engine decodes.
        code_unit: bytes that are decoded as a whole: an instruction's begin at a multiple of it.
        jumps: what jump probes need of it; None where there are none.
        nop_calls: what calls in place of no-operations need of it; None where Linux has none.
        kernel_calls: calls functions of a kernel; None where that is not known.
        kernel_plan: the address space that they are called in; given with `kernel_calls`.
        kernel_modules: lays modules of a kernel out; None where none are known.
        kernel_shapes: finds tables of a kernel that it has no names for; None where none has such.
        kernel_text: boots a kernel on a CPU, as far as its text shows it; None where not known.
        kernel_rules: for probes on the text of a kernel image; None where none are known.
        returns: what return probes need of it beside `probes`; None where that is nothing.
        data_flow: which values instructions copy; None where values cannot be followed.
        spelling: writes instructions as gdb does; None where they are shown as they are decoded.
        markers: its way to write operands of static probes (USDT); None where they are not read.
        model: the later processor that it is, a name of `--guest-cpu`; "" for the usual one.
        models: makers of the records of later processors, by name, from this one.
    """

    name: str
    elf_machine: int
    bits: int
    byteorder: str
    insn_align: int
    insn_max: int
    registers: tuple[Register, ...]
    roles: Roles
    breakpoint: bytes
    trap_advances_pc: bool
    engines: EngineNames
    plan: AddressPlan
    linux: LinuxAbi
    stack_alignment: int
    suspects: Mapping[int, frozenset[int]]
    screen: Callable[[tuple[Insn, ...]], tuple[Screened, ...]]
    prepare: Callable[[ArchCpu, Insn], None]
    emulate: Callable[[LentCpu, Insn], int]
    classify_trap: Callable[[int], TrapKind]
    emulate_trapped: Callable[[ArchCpu, bytes, int], int | None]
    is_call: Callable[[Insn], bool]
    probes: ArchProbes
    unwind: ArchUnwind | None = None
    jumps: ArchJumps | None = None
    nop_calls: "Callable[[], NopCalls] | None" = None
    kernel_calls: "Callable[[], KernelCalls] | None" = None
    kernel_plan: AddressPlan | None = None
    kernel_modules: "Callable[[], ModuleLinker] | None" = None
    kernel_rules: "Callable[[KernelView], KernelPlaceRules] | None" = None
    kernel_shapes: "Callable[[KernelView], TableShapes] | None" = None
    kernel_text: "Callable[[KernelView, KernelSites, CpuModel], BootedKernel] | None" = None
    clears: Callable[[bytes], bool] = lambda raw: False
    suspect_ends: frozenset[int] = frozenset()
    suspect_lasts: frozenset[int] = frozenset()
    unusual_float: Callable[[RegisterFile], bool] = lambda cpu: False
    float_suspects: Mapping[int, frozenset[int]] = field(default_factory=dict)
    core: str = "unicorn"
    decode: "Callable[[int, bytes], tuple[Insn, ...]] | None" = None
    code_unit: int = 1
    returns: ArchReturns | None = None
    parts: tuple[str, ...] = ()
    slices: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)
    elf_target: str = ""
    abi: ElfAbi = field(default_factory=ElfAbi)
    bench: BenchGuest | None = None
    gdb: "Callable[[], GdbTarget] | None" = None
    gdb_system: "Callable[[], GdbTarget] | None" = None
    flag_set: str = ""
    bpftrace: Mapping[str, str] = field(default_factory=dict)
    reads_counter: Callable[[bytes], bool] = lambda raw: False
    goes_elsewhere: Callable[[Insn], bool] = lambda insn: False
    rewrites: Callable[[bytes], bool] = lambda raw: False
    stores_byte: Callable[[bytes], bool] = lambda raw: True
    data_flow: "Callable[[], DataFlow] | None" = None
    spelling: "Callable[[], Callable[[Insn, str], SpelledInsn]] | None" = None
    markers: "Callable[[], MarkerSyntax] | None" = None
    model: str = ""
    models: "Mapping[str, Callable[[Arch], Arch]]" = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The name with the model, where that is not the usual one: see `engine.arch.by_name`."""
        return f"{self.name}-{self.model}" if self.model else self.name

    def __post_init__(self) -> None:
        """Check it; EngineError where it is incomplete."""
        check(self)
