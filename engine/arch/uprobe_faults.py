"""Faults of Linux's uprobes: places where they change what the program does.

Verdicts, strict mode, kernel mode, `live` and the table in the chapter `techniques` read this one.
Strict mode refuses such a place, or does right what Linux does wrong; kernel mode does as Linux
does and warns; the running kernel gets a probe there only for a definition with a `!`.

Sources: arch/x86/kernel/uprobes.c (branch_setup_xol_ops, arch_uprobe_analyze_insn,
arch_uprobe_post_xol, arch_uretprobe_hijack_return_addr) and kernel/events/uprobes.c
(handle_swbp, prepare_uretprobe). All of x86-64 but the REX2 prefix was measured on Linux 6.18.
"""

from typing import Final

from msgspec import Struct


class UprobeFault(Struct, frozen=True):
    """A kind of place that Linux's uprobes damage the program at.

    Attributes:
        rule: its name in verdicts.
        arches: names of the architectures that have it.
        place: which instructions or functions, in words.
        does: what Linux does there, in words that follow "Linux"; `{opcode}` is the
            instruction's opcode byte in hexadecimal.
        strict: what strict mode does instead, in words.
        since: the release that brought it, by the kernel's history; 6.18 was measured.
    """

    rule: str
    arches: tuple[str, ...]
    place: str
    does: str
    strict: str
    since: tuple[int, int]

    def text(self, opcode: int = 0) -> str:
        """Say what Linux does, in words that follow "Linux".

        Args:
            opcode: the instruction's opcode byte, where that matters.
        """
        return self.does.format(opcode=f"{opcode:02x}")


_X86: Final = ("x86_64",)
_RETURNS: Final = ("x86_64", "aarch64", "riscv64")
"""Architectures whose Linux has return probes of uprobes."""
REFUSES: Final = "refuses"
"""The word of `UprobeFault.strict` for a place that strict mode takes no probe at."""
_DOES_RIGHT: Final = "does it right"

JUMP: Final = UprobeFault(
    "x86.uprobe-vex-jump",
    _X86,
    "instructions with VEX, EVEX or XOP whose opcode byte is 70 to 7f, e9 or eb",
    "takes opcode byte {opcode} for that of a jump and emulates this: the instruction is left"
    " out, and the jump goes as far as its immediate says",
    REFUSES,
    (3, 16),
)
CALL: Final = UprobeFault(
    "x86.uprobe-vex-call",
    _X86,
    "the same with opcode byte e8",
    "takes opcode byte {opcode} for that of a call and emulates this: a return address is pushed,"
    " and the instruction is left out",
    REFUSES,
    (3, 16),
)
NOP: Final = UprobeFault(
    "x86.uprobe-vex-nop",
    _X86,
    "the same with opcode byte 90",
    "takes opcode byte {opcode} for a no-operation: the instruction is left out",
    REFUSES,
    (3, 16),
)
RETURN: Final = UprobeFault(
    "x86.uprobe-vex-return",
    _X86,
    "the same with opcode byte c2, c3, ca or cb",
    "takes opcode byte {opcode} for that of a return: the program runs on in the slot, in what"
    " stands behind the copy",
    REFUSES,
    (3, 5),
)
POPF: Final = UprobeFault(
    "x86.uprobe-vex-popf",
    _X86,
    "the same with opcode byte 9d",
    "takes opcode byte {opcode} for that of popf and leaves TF of its single step set: SIGTRAP"
    " behind the next instruction",
    REFUSES,
    (3, 5),
)
REX2: Final = UprobeFault(
    "x86.uprobe-rex2",
    _X86,
    "instructions with REX2 whose opcode byte is 70 to 7f, 90, e8, e9 or eb, of any map",
    "takes opcode byte {opcode} for one of the one-byte map and emulates it: the instruction is"
    " left out",
    REFUSES,
    (6, 10),
)
XCHG: Final = UprobeFault(
    "x86.uprobe-xchg",
    _X86,
    "90 with REX.B: `xchg` of `r8` and `rax`",
    "takes it for a no-operation: the registers are not exchanged",
    _DOES_RIGHT,
    (3, 16),
)
PUSHF: Final = UprobeFault(
    "x86.pushf",
    _X86,
    "`pushf`",
    "has the pushed flags show TF of its single step",
    _DOES_RIGHT,
    (3, 5),
)
NOP_CALL: Final = UprobeFault(
    "nop5-red-zone",
    _X86,
    "no-operations of five bytes above a red zone in use",
    "calls a trampoline from the second hit on, which overwrites 32 bytes below the stack pointer",
    "leaves a breakpoint there",
    (6, 18),
)
INT3: Final = UprobeFault(
    "x86.uprobe-int3",
    _X86,
    "`int $3` in two bytes (cd 03), wherever the uprobe is",
    "takes its second byte for the place of the breakpoint and goes on there: the program"
    " executes 03 and what follows as an instruction, and gets no SIGTRAP",
    _DOES_RIGHT,
    (3, 5),
)
NO_CALLER: Final = UprobeFault(
    "return-no-caller",
    _X86,
    "return probes on code that nobody calls: the entry points of the program and of its dynamic"
    " loader, signal restorers",
    "writes its trampoline's address over what stands in the place of a return address: at an"
    " entry point that is argc",
    "refuses, unless returns are watched",
    (3, 10),
)

NO_ENTRY: Final = UprobeFault(
    "return-no-entry",
    _RETURNS,
    "return probes on code that is jumped to: parts of functions (`.cold`), what a linkage table"
    " leads to, an instruction behind a function's first ones",
    "writes its trampoline's address over what stands where a call would have left the return"
    " address: a saved register, a variable, the link register",
    "refuses, unless returns are watched",
    (3, 10),
)
KEPT: Final = UprobeFault(
    "return-kept",
    _RETURNS,
    "return probes on functions that keep their return address or go by it: `setjmp`,"
    " `sigsetjmp`, `getcontext`, `swapcontext`, `dlopen`, `dlmopen`, `dlsym`, `dlvsym`",
    "gives them its trampoline's address instead: `longjmp` and `setcontext` go there when the"
    " call is gone, which kills the program, and the loader finds nobody who calls",
    "refuses, unless returns are watched",
    (3, 10),
)
MOVED: Final = UprobeFault(
    "return-moved",
    _RETURNS,
    "return probes on functions of Go, whose runtime unwinds stacks, to move them among others",
    "writes its trampoline's address over the return address: the runtime finds it on a stack"
    " and ends the program with `unexpected return pc`",
    "refuses, unless returns are watched",
    (3, 10),
)

FAULTS: Final = (
    *(JUMP, CALL, NOP, RETURN, POPF, REX2, XCHG, PUSHF),
    *(NOP_CALL, INT3, NO_CALLER, NO_ENTRY, KEPT, MOVED),
)
"""The faults, in the order of the chapter `techniques`."""
