"""The guest as the machinery of probes works on it."""

from collections.abc import Callable

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.cpu.base import Cpu
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.code_map import CodeMap
from engine.probes.goroutines import GoroutineStacks
from engine.probes.regs import PtRegs
from engine.probes.stepping import GuestStep


class ProbeTarget(Struct, frozen=True):
    """The parts of a guest that all of the machinery needs.

    Attributes:
        arch: its architecture.
        cpu: its processor.
        memory: its memory.
        overlay: owner of patched bytes.
        code_map: names and boundaries of its code.
        regs: its registers as handlers see them.
        step: software's side of a step.
        mode: strictness of probes that do not say otherwise.
        thread: id of the running thread.
        goroutines: finds the stacks of Go programs.
        stack_at: the bounds of the stack that an address lies on; None where nothing is mapped.
        notify: told, in words, what happened to a probe without the user's doing.
    """

    arch: Arch
    cpu: Cpu
    memory: Memory
    overlay: TextOverlay
    code_map: CodeMap
    regs: PtRegs
    step: GuestStep
    mode: Mode
    thread: Callable[[], int]
    notify: Callable[[str], None]
    goroutines: GoroutineStacks
    stack_at: Callable[[int], tuple[int, int] | None]
