"""The phases of a hit of a kernel's own kprobe, by the places that its code comes to.

The ways that x86's kernels have (arch/x86/kernel/kprobes, kernel/trace/rethook.c):

- int3: the trap, its entry code, the handler, and the instruction in its slot, which leads back by
  a jump or by another int3; or the instruction carried out by software;
- a jump to a detour, which calls the handlers with all registers saved;
- a call to ftrace's trampoline;
- the trampoline that a return leads to.

Each phase ends where the code comes to one of some places.
"""

import struct
from typing import Final

from msgspec import Struct

from engine.image.kernel.kernelimage import KernelImage
from engine.machine.probedplaces import CaughtReturn, ProbedPlace

INT3, JUMP, CALL = 0xCC, 0xE9, 0xE8
"""First bytes of what stands at a probed place."""
BRANCH: Final = 5
"""Bytes of a jump, and of a call."""
_DISTANCE: Final = struct.Struct("<xi")


class HitPhase(Struct, frozen=True):
    """A phase.

    Attributes:
        name: of it, as people read it.
        text: what happens, in words.
        ends: places at which it is over.
        returns: it begins at the first instruction of a function, and is over at its return.
        alone: it is a single instruction, wherever that leads.
        by_guest: the code that is probed does it, not the machinery.
    """

    name: str
    text: str
    ends: tuple[int, ...] = ()
    returns: bool = False
    alone: bool = False
    by_guest: bool = False


class HitRoute(Struct, frozen=True):
    """The way of a hit.

    Attributes:
        how: "int3", "emulated", "detour", "called" or "returns".
        why: this way, in words.
        phases: in order.
        slot: where the displaced instructions are executed; 0 where they are not, or in place.
        slot_size: bytes there.
        detour: the buffer or trampoline that the code is led to; 0 for none.
    """

    how: str
    why: str
    phases: tuple[HitPhase, ...]
    slot: int = 0
    slot_size: int = 0
    detour: int = 0


class ServingCode(Struct, frozen=True):
    """Addresses of the kernel's code that serves kprobes.

    Attributes:
        gate: where int3 leads.
        entered: the function that its entry code calls.
        asked: the one that looks for a kprobe.
        left: the instruction that returns from a trap in the kernel.
        callback: called by detours.
        served: called by ftrace's trampoline.
        trampoline: where caught returns lead.
        caught: called by that.
        prepare: called with each kprobe that is registered, in front of its arming.
        template: begin, call and end of what detours are copies of.
    """

    gate: int
    entered: int
    asked: int
    left: int
    callback: int
    served: int
    trampoline: int
    caught: int
    prepare: tuple[int, ...]
    template: tuple[int, int, int]

    @property
    def saving(self) -> int:
        """Bytes of a detour in front of its call."""
        return self.template[1] - self.template[0]

    @property
    def around(self) -> int:
        """Bytes of a detour in front of the displaced instructions."""
        return self.template[2] - self.template[0]


def serving_code(image: KernelImage) -> ServingCode | None:
    """The code of a kernel that serves kprobes; None where some of it has no name."""
    find = image.names.find
    prefix = "optprobe_template_"
    names = (
        *("asm_exc_int3", "exc_int3", "kprobe_int3_handler", "native_irq_return_iret"),
        *("optimized_callback", "kprobe_ftrace_handler", "arch_rethook_trampoline"),
        *("arch_rethook_trampoline_callback", "arch_prepare_kprobe", "arch_prepare_kprobe_ftrace"),
        *(prefix + "entry", prefix + "call", prefix + "end"),
    )
    found = [address for name in names if (address := find(name)) is not None]
    if len(found) < len(names):
        return None
    gate, entered, asked, left, callback, served, trampoline, caught = found[:8]
    first, second, entry, call, end = found[8:]
    return ServingCode(
        *(gate, entered, asked, left, callback, served, trampoline, caught),
        (first, second),
        (entry, call, end),
    )


def branch_target(address: int, code: bytes) -> int:
    """Return the target of a jump or a call of five bytes."""
    return int(address + BRANCH + _DISTANCE.unpack(code[:BRANCH])[0]) % (1 << 64)


def route_of(place: ProbedPlace, code: bytes, serving: ServingCode) -> HitRoute | None:
    """The way of a hit; None where no kprobe is armed at a place.

    Args:
        place: the place.
        code: what stands there now.
        serving: the kernel's code.
    """
    if len(code) < BRANCH:
        return None
    if code[0] == INT3:
        return _by_breakpoint(place, serving)
    if code[0] == JUMP and branch_target(place.address, code) == place.detour:
        return _by_jump(place, serving)
    if code[0] == CALL and place.ftrace:
        return _by_call(place, branch_target(place.address, code), serving)
    return None


def route_of_return(calls: tuple[CaughtReturn, ...], serving: ServingCode) -> HitRoute | None:
    """The way of a return that was caught; None where nobody has caught it."""
    real = next((one.leads_to for one in calls if one.leads_to != serving.trampoline), 0)
    if not real:
        return None
    handlers = [one.probe.returned for one in calls if one.probe.returned]
    phases = [
        HitPhase(
            "save",
            "the trampoline pushes all registers as a pt_regs",
            (serving.caught,),
        ),
        *_handlers(
            handlers,
            "find instance",
            "rethook_trampoline_handler takes the instances of this frame off the task's list",
            "return handler",
        ),
        HitPhase(
            "resume",
            "the registers come back, and the trampoline returns where the call came from",
            (real,),
        ),
    ]
    why = "the function returned to the trampoline that stands for its return address"
    return HitRoute("returns", why, tuple(phases))


def _handlers(handlers: list[int], name: str, text: str, each: str) -> list[HitPhase]:
    """The phase that leads to handlers, and theirs."""
    phases = []
    for number, handler in enumerate(handlers):
        if number:
            text = f"on to the next {each} of this place"
        phases += [
            HitPhase(name if not number else "next", text, (handler,)),
            HitPhase(each, f"the {each} runs", returns=True),
        ]
    return phases


def _pre_handlers(place: ProbedPlace, text: str) -> list[HitPhase]:
    handlers = [probe.handler for probe in place.probes if probe.handler]
    return _handlers(handlers, "find probe", text, "pre-handler")


def _post_handler(place: ProbedPlace) -> list[HitPhase]:
    if not place.post_handler:
        return []
    text = "the instruction is done: on to the post-handler"
    return _handlers([place.post_handler], "fix-up", text, "post-handler")


def _trapped(serving: ServingCode, trap: str) -> list[HitPhase]:
    """From an int3 to the function that looks for a kprobe."""
    return [
        HitPhase("trap", trap, (serving.gate,)),
        HitPhase(
            "entry",
            "asm_exc_int3 saves all registers as a pt_regs and calls exc_int3",
            (serving.entered,),
        ),
        HitPhase(
            "do_int3",
            "no text is being patched here (poke_int3_handler): kprobe_int3_handler is asked",
            (serving.asked,),
        ),
    ]


_BACK: Final = HitPhase(
    "resume", "iretq: ip, cs, flags, sp and ss come from the saved registers", alone=True
)


def _by_breakpoint(place: ProbedPlace, serving: ServingCode) -> HitRoute:
    phases = _trapped(
        serving,
        "int3 traps: the processor pushes ss, rsp, rflags, cs and rip, and goes on at gate 3",
    )
    phases += _pre_handlers(place, "kprobe_int3_handler looks the address up in kprobe_table")
    left = (serving.left,)
    if place.emulated:
        emulated = "the instruction is carried out on the saved registers: it needs no slot"
        phases.append(HitPhase("emulate", emulated, (place.post_handler, serving.left)))
        if place.post_handler:
            phases.append(HitPhase("post-handler", "the post-handler runs", returns=True))
            phases.append(HitPhase("leave", "the registers come back from the stack", left))
        return HitRoute("emulated", emulated, (*phases, _BACK))
    if place.optimized and place.detour:
        slot, size = place.detour + serving.around, place.moved
        why = "the jump is not planted yet: an int3 leads to the detour's end until then"
    else:
        slot, size = place.slot, place.size
        why = "the slot's copy is followed by a jump back"
    sets = f"setup_singlestep makes {slot:#x} the saved ip; the registers come back"
    phases += [
        HitPhase("set up", sets, left),
        HitPhase("to slot", "iretq: the processor goes on in the slot", alone=True),
        HitPhase(
            "out of line",
            "the displaced code is executed as a copy",
            (slot + size,),
            by_guest=True,
        ),
    ]
    if place.boosted or (place.optimized and place.detour):
        end = place.address + size
        phases.append(HitPhase("resume", "the jump behind the copy leads back", (end,)))
        return HitRoute("int3", why, tuple(phases), slot, size + BRANCH)
    why = "an int3 stands behind the slot's copy, whose effects are put right by software"
    phases += _trapped(serving, "the int3 behind the copy traps")
    phases += _post_handler(place)
    phases.append(
        HitPhase("fix-up", "resume_singlestep puts the saved ip behind the probed place", left)
        if not place.post_handler
        else HitPhase("leave", "the registers come back from the stack", left)
    )
    return HitRoute("int3", why, (*phases, _BACK), slot, size + 1)


def _by_jump(place: ProbedPlace, serving: ServingCode) -> HitRoute:
    slot = place.detour + serving.around
    phases = [
        HitPhase("jump", "the jump leads to the detour: nothing traps", (place.detour,)),
        HitPhase(
            "save",
            "the detour pushes all registers as a pt_regs and calls optimized_callback",
            (serving.callback,),
        ),
        *_pre_handlers(place, "optimized_callback notes which kprobe runs"),
        HitPhase("restore", "the detour takes the registers back", (slot,)),
        HitPhase(
            "out of line",
            "the instructions that the jump stands over are executed as copies",
            (slot + place.moved,),
            by_guest=True,
        ),
        HitPhase("resume", "the detour jumps back", (place.address + place.moved,)),
    ]
    why = "optimised: a jump stands over the instruction"
    return HitRoute("detour", why, tuple(phases), slot, place.moved + BRANCH, place.detour)


def _by_call(place: ProbedPlace, target: int, serving: ServingCode) -> HitRoute:
    phases = [
        HitPhase("call", "the function's own call of ftrace leads to a trampoline", (target,)),
        HitPhase(
            "save",
            "the trampoline saves all registers as a pt_regs and calls kprobe_ftrace_handler",
            (serving.served,),
        ),
        *_pre_handlers(place, "kprobe_ftrace_handler looks the address up in kprobe_table"),
        *_post_handler(place),
        HitPhase(
            "resume",
            "the trampoline takes the registers back and returns into the function",
            (place.address + BRANCH,),
        ),
    ]
    why = "ftrace's: the instruction is the function's call of ftrace, which is a nop otherwise"
    return HitRoute("called", why, tuple(phases), detour=target)
