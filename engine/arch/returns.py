"""An architecture's part in return probes: marks of pending calls, trampolines.

An architecture without such a record has one stack, whose pointer tells calls apart, and a
breakpoint as its trampoline.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.arch.plan import InsnPlan, StepCpu


def _as_it_is(plan: InsnPlan) -> InsnPlan:
    return plan


class FrameKeys(Struct, frozen=True):
    """Numbers that tell activations of functions apart where the stack pointer does not.

    They stand wherever other architectures have the stack pointer at a function's entry. Of two
    activations on one stack the newer one has the smaller number.

    Attributes:
        entry: registers that `entered` wants, the stack pointer first.
        entered: their values at a function's first instruction to its number.
        exit: registers that `returned` wants, the stack pointer first.
        returned: their values where the call has returned to, to the same number.
        shift: the stack pointer is the number shifted right by so many bits.
    """

    entry: tuple[str, ...]
    entered: Callable[[Sequence[int]], int]
    exit: tuple[str, ...]
    returned: Callable[[Sequence[int]], int]
    shift: int


class Trampoline(Struct, frozen=True):
    """Code that calls return to in place of their return address.

    Attributes:
        code: all of it.
        entry: distance of the breakpoint that calls return to.
        step: from there to the next instruction.
        unwind: its unwind information in the architecture's own form, b"" for none.
    """

    code: bytes
    entry: int = 0
    step: int = 0
    unwind: bytes = b""


class CarriedReturns(Struct, frozen=True):
    """Return probes that keep the return address in the stack frame of the hooked call.

    Attributes:
        trampoline: restores what `hook` has changed and returns; every unwinder gets through it.
        give_back: given the address that the call has returned to, does what that code does, but
            for the registers that it needs for itself; GuestFaultError as the code would have it.
        size: bytes by which `hook` moves the stack pointer down.
        scratch: bytes above the stack pointer, the function's own, that `hook` writes to.
        registers: that it changes.
        hook: given the address to return to, changes the registers and the stack at a function's
            entry; GuestFaultError, with nothing changed, where the stack has no room.
    """

    trampoline: Trampoline
    size: int
    scratch: int
    registers: tuple[str, ...]
    hook: Callable[[StepCpu, int], None]
    give_back: Callable[[StepCpu, int], None]


class ArchReturns(Struct, frozen=True):
    """An architecture's part in return probes.

    Attributes:
        trampoline: a breakpoint, as Linux has it.
        keys: how activations are told apart.
        carried: the other way to hook a return; None where there is none.
        skipped: whether the call that ends with some bytes may be passed over, so that what it
            returns to can be reached without it.
        unconditional: a plan whose breakpoint traps whatever the instruction's predicate is.
    """

    trampoline: Trampoline
    keys: FrameKeys
    carried: CarriedReturns | None = None
    skipped: Callable[[bytes], bool] = lambda code: False
    unconditional: Callable[[InsnPlan], InsnPlan] = _as_it_is
