"""IA-64 (Itanium): the facts the generic engine needs, as data.

An instruction's address is its bundle's plus its slot's number, as Linux has it.
"""

from typing import TYPE_CHECKING, Final

from engine.arch.base import AddressPlan, Arch, LinuxAbi, Roles, StatLayout
from engine.arch.engines import EngineNames
from engine.arch.ia64.breaks import BREAK, break_kind
from engine.arch.ia64.bundle import SIZE
from engine.arch.ia64.frames import UNWIND
from engine.arch.ia64.listing import decode
from engine.arch.ia64.probes import PROBES
from engine.arch.ia64.registers import REGISTERS
from engine.arch.ia64.results import ABI
from engine.arch.ia64.returns import RETURNS
from engine.arch.ia64.signal_frames import SIGNALS
from engine.arch.ia64.syscalls import SYSCALLS
from engine.arch.machine import ArchCpu, Insn

if TYPE_CHECKING:
    from engine.arch.dataflow import DataFlow

_WINDOWS: Final = 0x2000_000F_0000_0000
"""In the region of mappings, beyond a program's heap; brl reaches everything."""

# STACK_TOP with pages of 16 KiB, as distributions had them; the backing store begins
# DEFAULT_USER_STACK_SIZE below it (asm/ustack.h).
_STACK_TOP: Final = 0x6000_0FFF_FFFF_C000
_BACKING_STORE: Final = _STACK_TOP - (1 << 31)


def _before(address: int) -> int:
    """The slot in front of a place; no system call is made in a bundle with a long one."""
    return address - 1 if address & 15 else address - SIZE + 2


def _is_call(insn: Insn) -> bool:
    name = insn.mnemonic.rpartition(" ")[2]  # behind a predicate
    return name.startswith(("br.call", "brl.call"))


def _never(cpu: ArchCpu, insn: Insn) -> int:
    raise AssertionError(f"nothing is screened, but {insn.text} was")


def _data_flow() -> "DataFlow":
    from engine.arch.ia64.copies import DATA_FLOW  # asked for by who follows values only

    return DATA_FLOW


IA64 = Arch(
    name="ia64",
    elf_machine=50,
    elf_target="elf64-ia64-little",
    bits=64,
    byteorder="little",
    insn_align=1,
    insn_max=SIZE,
    registers=REGISTERS,
    parts=(  # outputs of the current frame, predicates
        *(f"out{number}" for number in range(8)),
        *(f"p{number}" for number in range(64)),
    ),
    roles=Roles(pc="ip", sp="r12", fp="r12", flags="pr", tls="r13", link="b0"),
    breakpoint=BREAK.to_bytes(6, "little"),
    trap_advances_pc=False,
    engines=EngineNames(),
    abi=ABI,
    core="ia64",
    decode=decode,
    code_unit=SIZE,
    plan=AddressPlan(
        task_size=0xA000_0000_0000_0000,
        pie_base=0x2000_0008_0000_0000,  # ELF_ET_DYN_BASE
        stack_top=_STACK_TOP,
        mmap_top=0x2000_0007_0000_0000,
        mmap_min=0x1_0000,
        trampoline=(_WINDOWS, 0x1_0000),
        xol=(_WINDOWS + 0x1_0000, 0x3FF_0000),  # as many slots as a large program has
        detour=(_WINDOWS + 0x400_0000, 0x10_0000),
        image_detour_size=0,
        register_stack=(_BACKING_STORE, 8 << 20),
    ),
    linux=LinuxAbi(
        machine="ia64",
        several=False,  # the core finds translated code by virtual addresses
        platform=b"",
        hwcap=(0, 0),
        number="r15",
        arguments=("out0", "out1", "out2", "out3", "out4", "out5"),
        result="r8",
        syscalls=SYSCALLS,
        clobbers=(),
        syscall_size=1,
        open_flags={
            "O_DIRECTORY": 0o200000,
            "O_NOFOLLOW": 0o400000,
            "O_DIRECT": 0o40000,
            "O_LARGEFILE": 0o100000,
        },
        stat_layout=StatLayout(  # asm/stat.h
            "QQQIII4xQqqqqqqqqq24x",
            (
                *("dev", "ino", "nlink", "mode", "uid", "gid", "rdev", "size"),
                *("atime", "mtime", "ctime", "blksize", "blocks"),
            ),
        ),
        clone_backwards=True,
        epoll_packed=False,
        signals=SIGNALS,
        error="r10",
        second="r9",
        syscall_before=_before,
        restorer=False,
        start=(  # start_thread() of asm/processor.h
            ("bsp", _BACKING_STORE),
            ("rsc", 0xF),
            ("fpsr", 0x9804C0270033F),
        ),
        start_scratch=16,
    ),
    stack_alignment=16,
    suspects={},
    screen=lambda insns: (),
    prepare=lambda cpu, insn: None,
    emulate=_never,
    classify_trap=break_kind,
    emulate_trapped=lambda cpu, raw, address: None,
    is_call=_is_call,
    probes=PROBES,
    unwind=UNWIND,
    returns=RETURNS,
    data_flow=_data_flow,
)
