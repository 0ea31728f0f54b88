"""An architecture's part in unwinding: effects of instructions on the stack, signal frames.

The effects are stated in a small language of their own, so that one analysis (engine.unwind)
serves every architecture.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto

from msgspec import Struct


class Flow(Enum):
    """Ways of control from an instruction."""

    NEXT = auto()
    JUMP = auto()
    """To `target` only; None = wherever a register or memory says."""
    BRANCH = auto()
    """To `target` or on."""
    CALL = auto()
    RETURN = auto()
    STOP = auto()
    """Nowhere: a trap, undefined code."""


class Copy(Struct, frozen=True):
    """`target` becomes `source` + `offset`; source "" = nobody knows what."""

    target: str
    source: str
    offset: int = 0


class Constant(Struct, frozen=True):
    """`target` becomes a number."""

    target: str
    value: int


class Add(Struct, frozen=True):
    """`target` becomes `left` + `sign` * `right`, all registers."""

    target: str
    left: str
    right: str
    sign: int


class Store(Struct, frozen=True):
    """The word at `base` + `offset` becomes register `source`; "" = something unknown."""

    base: str
    offset: int
    source: str


class Load(Struct, frozen=True):
    """Register `target` becomes the word at `base` + `offset`."""

    target: str
    base: str
    offset: int


Effect = Copy | Constant | Add | Store | Load


class StackInsn(Struct, frozen=True):
    """An instruction as the unwinder sees it.

    Attributes:
        size: bytes.
        effects: what happens to registers and words of the stack, in order; a return's own
            removal of the return address is not among them.
        flow: where it leads.
        target: of a direct jump, branch or call.
    """

    size: int
    effects: tuple[Effect, ...] = ()
    flow: Flow = Flow.NEXT
    target: int | None = None


class OrcSource(Struct, frozen=True):
    """A way to find the caller's stack pointer, as kernels' ORC tables number them.

    Attributes:
        register: it begins with.
        moved: the entry's offset is added to it.
        indirect: what is stored there is meant.
        behind: the offset is added to what is stored there, and not before.
    """

    register: str
    moved: bool = True
    indirect: bool = False
    behind: bool = False


class OrcNumbers(Struct, frozen=True):
    """The numbers in kernels' ORC tables, and the registers that kernels save.

    Attributes:
        stack: ways to find the caller's stack pointer.
        in_frame: number of a frame pointer that is saved at an offset from it.
        by_pointer: number of one saved at an offset from the frame pointer.
        saved: offsets of registers where all are saved (struct pt_regs).
        partial: offsets of those that the processor saves itself.
        thunks: beginnings of the names of code that stands for a computed jump: it may call
            itself once, to return to where the jump goes, which tables do not tell of.
    """

    stack: Mapping[int, OrcSource]
    in_frame: int
    by_pointer: int
    saved: Mapping[str, int]
    partial: Mapping[str, int]
    thunks: tuple[str, ...] = ()


class ArchUnwind(Struct, frozen=True):
    """An architecture's part in unwinding.

    Attributes:
        read: (up to `insn_max` bytes, address) to the instruction; None if there is none.
        preserved: registers that a function gives back as it found them; sp is not among them.
        alignment: of the CFA in bytes.
        sigreturn: code of rt_sigreturn as C libraries and the kernel write it, with the offsets
            of its instructions.
        saved: register to the offset of its word from sp while that code runs.
        strip: an address without its authentication code.
        popped: puts in what a return itself changes beside pc and sp (the register stack),
            given what is known of the caller, the callee's registers, the memory, and whether
            it is the return from a signal's handler; None where it changes nothing more.
        stacks: registers beside sp that tell the frames of one function apart.
        tables: whose unwind tables the files carry, "dwarf" or "ia64".
        formats: the rules to ask for, in order, of `engine.unwind.unwinder.FORMATS`.
        frame_end: distance from the frame pointer to the end of the frame, below which the
            return address and the caller's frame pointer stand; None = they stand at the frame
            pointer, so that the end is behind the two.
        padded: compilers leave room behind a function's last call, so that a return address
            lies in the function itself.
        orc: of its kernels' ORC tables; None where they have none.
        frame_made: how many of a function's first bytes make its frame, as gdb skips them where
            GCC has compiled it; None where gdb asks line tables alone.
    """

    read: Callable[[bytes, int], StackInsn | None]
    preserved: tuple[str, ...]
    alignment: int
    sigreturn: tuple[tuple[bytes, tuple[int, ...]], ...]
    saved: Mapping[str, int]
    strip: Callable[[int], int]
    popped: (
        Callable[[dict[str, int], Mapping[str, int], Callable[[int, int], bytes], bool], None]
        | None
    ) = None
    stacks: tuple[str, ...] = ()
    tables: str = "dwarf"
    formats: tuple[str, ...] = ("orc", "cfi", "trampoline", "prologue", "framepointer")
    frame_end: int | None = None
    padded: bool = False
    orc: OrcNumbers | None = None
    frame_made: Callable[[bytes], int] | None = None
