"""Names, numbers and code by which third-party engines are told about an architecture.

Plain data: no engine is imported below this package. `engine.cpu.unicorn_machines` and
`engine.insn` look the names up in the engines' own constants.
"""

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.machine import Insn

USER_START: Final = 0x400000
"""Address at which the emulator reaches user level: any that a program may have."""


class Setting(Struct, frozen=True):
    """A register of the emulator that is set before its first instruction runs.

    Attributes:
        register: name of Unicorn's constant behind UC_..._REG_ ("GDTR").
        value: what is written; a tuple where Unicorn wants one.
        key: for a register that stands for many (ARM's CP_REG): which, in front of the value.
        adds: bits that are set already stay.
    """

    register: str
    value: int | tuple[int, ...]
    key: tuple[int, ...] = ()
    adds: bool = False


class HiddenFlags(Struct, frozen=True):
    """Floating-point exceptions that Unicorn keeps where no register shows them.

    Where they are is learnt once, from what a division by zero changes in a saved context: unless
    the register shows it, as it does where the host computes.

    Attributes:
        register: what should show them.
        entry: offset in `UserStart.pages` of code that divides by zero and does no more.
        end: offset behind it.
        mark: the byte that holds the flags, which was 0, afterwards.
        mask: the flags in that byte, with the bits of IEEE's exceptions in the CPU's order.
    """

    register: str
    entry: int
    end: int
    mark: int
    mask: int


class UserStart(Struct, frozen=True):
    """The emulator's way to user level: the instruction with which a kernel enters it.

    Attributes:
        at: address of pages that are mapped for that moment only.
        pages: what stands there.
        entry: offset in them of the code, which ends at `USER_START` at user level.
        settings: registers written before, in order.
        secrets: registers that get 8 bytes each of a secret that the run's seed decides.
        level: (name of a register, mask, value under it): user level is reached.
        cleared: registers that are 0 afterwards.
        landing: code at `USER_START`; the engine replaces it afterwards.
    """

    at: int
    pages: bytes
    entry: int
    settings: tuple[Setting, ...]
    level: tuple[str, int, int] | None
    secrets: tuple[tuple[str, tuple[int, ...]], ...] = ()
    cleared: tuple[str, ...] = ()
    landing: bytes = b""


class UnicornNames(Struct, frozen=True):
    """Names in Unicorn, and its differences from the processor.

    Attributes:
        arch: of "UC_ARCH_..."; registers are "UC_<arch>_REG_...", in its module of constants.
        modes: "UC_MODE_..." constants that are combined.
        target: how its library's functions of this architecture end ("x86_64").
        start: the way to user level.
        cpu: the constant of the processor model, "" for the default one.
        page_size: of the target in bytes, 0 = Unicorn's default.
        registers: (our name, Unicorn's) where that is not ours in upper case.
        writable: (register, bits that may be set from outside, bits that are always set).
        hooks: (constant of an instruction, its role): "syscall", "illegal", "in" or "out".
        hidden_flags: floating-point exceptions that no register shows.
        host_float: whether the host's own floating point can take the place of Unicorn's.
        wide_operands: whether operands of 16 bytes have to be looked after, see
            `engine.cpu.unicorn_operands`.
        locks: whether instructions may have a lock prefix, see `engine.cpu.unicorn_locks`.
        lasting_fault: number of an exception that Unicorn never forgets, so that the next one
            would be a double fault; None where it forgets them all.
        advances: (number of an exception, bytes): pc is so far behind the instruction at it
            although the processor leaves it there.
        refused_breakpoints: encodings of breakpoints that Unicorn reports as invalid
            instructions.
        unsaved: our names of registers that a saved context leaves out.
        pairs: (name, lower half, upper half) of registers that instructions name and that are two
            of ours.
        extension: what Unicorn executes beyond the processor model where it is told to.
        trap_flag: what has the processor trap behind each instruction; None where programs
            cannot set it.
        lent: asked for what makes code of instructions that the host lends; None for none.
        interrupts: the exception, its error code and the instruction's size, where an instruction
            asks for an exception of this number that programs may not raise; None if they may.
    """

    arch: str
    modes: tuple[str, ...]
    target: str
    start: UserStart
    cpu: str = ""
    page_size: int = 0
    registers: tuple[tuple[str, str], ...] = ()
    writable: tuple[tuple[str, int, int], ...] = ()
    hooks: tuple[tuple[str, str], ...] = ()
    hidden_flags: HiddenFlags | None = None
    host_float: bool = False
    wide_operands: bool = False
    locks: bool = False
    lasting_fault: int | None = None
    advances: tuple[tuple[int, int], ...] = ()
    refused_breakpoints: tuple[bytes, ...] = ()
    unsaved: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    extension: "ModelExtension | None" = None
    trap_flag: "TrapFlag | None" = None
    lent: "Callable[[], LentInsns] | None" = None
    interrupts: Callable[[int], tuple[int, int, int] | None] = lambda number: None


class TrapFlag(Struct, frozen=True):
    """A flag with which a program single-steps itself.

    Attributes:
        register: it is in.
        bit: it, as a mask.
        exception: number of the trap.
    """

    register: str
    bit: int
    exception: int


class LentCode(Struct, frozen=True):
    """Host code for one instruction, called in the emulator's translations.

    Attributes:
        code: that may stand anywhere.
        sets_flags: it leaves flags of its own, where `engine.cpu.unicorn_lent_code` says.
    """

    code: bytes
    sets_flags: bool


class _MakesLentCode(Protocol):
    def __call__(
        self, raw: bytes, address: int, routine: Callable[[str], int], *, hooked: bool
    ) -> LentCode | None: ...


class LentInsns(Struct, frozen=True):
    """The maker of code that calls the host's own instructions for the guest.

    Attributes:
        code: makes the code of one, by its bytes, its address, the addresses of routines by name,
            and whether its accesses to memory are to be seen; None where it cannot.
        depends_on_address: tells whether the code of one is for its address alone.
    """

    code: _MakesLentCode
    depends_on_address: Callable[[bytes], bool]


class ModelExtension(Struct, frozen=True):
    """Instructions that Unicorn executes rightly, and leaves out for its processor model.

    Attributes:
        features: the first words of features of the model, as QEMU keeps them.
        added: (index of a word, bits) that are switched on.
        tells: the library's function that tells programs of features; it is kept from that.
    """

    features: tuple[int, ...]
    added: tuple[tuple[int, int], ...]
    tells: str


class CapstoneNames(Struct, frozen=True):
    """Constants to open Capstone with.

    Attributes:
        arch: "CS_ARCH_..." constant.
        modes: "CS_MODE_..." constants that are combined.
        options: (option, constant) in order: ("CS_OPT_SYNTAX", "CS_OPT_SYNTAX_ATT").
        respell: an instruction as it is to be shown, where Capstone's text misleads.
        beside: (bytes of an instruction, registers that it writes) to those that it writes beside
            them, where Capstone leaves some out.
    """

    arch: str
    modes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    respell: "Callable[[Insn], Insn] | None" = None
    beside: Callable[[bytes, frozenset[str]], frozenset[str]] | None = None


class KeystoneNames(Struct, frozen=True):
    """Constants to open Keystone with: "KS_ARCH_..." and "KS_MODE_..."."""

    arch: str
    modes: tuple[str, ...]


class EngineNames(Struct, frozen=True):
    """The third-party engines of an architecture, None where it has none.

    Attributes:
        unicorn: the emulator.
        capstone: the disassembler.
        keystone: the assembler.
    """

    unicorn: UnicornNames | None = None
    capstone: CapstoneNames | None = None
    keystone: KeystoneNames | None = None
