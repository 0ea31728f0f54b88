"""Backtraces of other unwinders at a stop, as far as return probes make them differ.

Linux replaces the return addresses of probed functions by the address of a trampoline. Where
that is so here too, the walk finds it in place; where returns are caught without touching the
stack, the comparison puts it there. What each unwinder then knows of it is its own:

- `naive`: nothing. The trampoline is an address like any other; no table describes it.
- `kernel-2005`: the kernel's dump_stack of 2.6.12 and its kin print every word of the stack
  that lies in executable memory: stale words too, and the trampoline for every hooked call.
- `kernel`: unwind tables alone, as ORC has them, and kretprobe_find_ret_addr (5.15), which
  knows the real address of an instance whose frame is the slot that was read.
- `owens`: Keith Owens' proposal of 2005: the trampoline has unwind data of its own, so it stands
  in the trace as a frame between the hooked function and its true caller.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import GuestFaultError
from engine.unwind.unwinder import (
    LIMIT,
    EndReason,
    Frame,
    UnwindEnd,
    Unwinder,
    UnwindGuest,
    Walk,
)

_SCANNED: Final = 1 << 16
"""Bytes of the stack that a scan looks at."""


class Comparison(Struct, frozen=True):
    """One way to unwind.

    Attributes:
        name: as options and panes call it.
        text: what it is, in a line.
        walk: (the guest, address of the trampoline, registers, limit) to its backtrace.
    """

    name: str
    text: str
    walk: Callable[[UnwindGuest, int, Mapping[str, int], int], Walk]


def _full(view: UnwindGuest, trampoline: int, registers: Mapping[str, int], limit: int) -> Walk:
    return Unwinder(view).walk(registers, limit=limit)


def _hooked(view: UnwindGuest, trampoline: int) -> UnwindGuest:
    """The same guest with the trampoline's address wherever a return is caught."""

    def resolve(address: int, slot: int, met: int) -> int | None:
        return None if view.resolve_return(address, slot, met) is None else trampoline

    def executable(address: int) -> bool:
        return address in (trampoline, trampoline - 1) or view.executable(address)

    return replace(view, resolve_return=resolve, executable=executable)


def _naive(view: UnwindGuest, trampoline: int, registers: Mapping[str, int], limit: int) -> Walk:
    walk = Unwinder(_hooked(view, trampoline)).walk(registers, limit=limit)
    # Nothing tells it that a return address is out of place.
    return Walk(tuple(replace(frame, trampoline=False) for frame in walk.frames), walk.end)


def _kernel(view: UnwindGuest, trampoline: int, registers: Mapping[str, int], limit: int) -> Walk:
    return Unwinder(view, ("cfi", "trampoline", "leaf")).walk(registers, limit=limit)


def _owens(view: UnwindGuest, trampoline: int, registers: Mapping[str, int], limit: int) -> Walk:
    walk = Unwinder(view).walk(registers, limit=limit)
    frames: list[Frame] = []
    for frame in walk.frames:
        if frame.trampoline and frame.pc != trampoline:
            hooked = frames[-1]
            frames.append(
                Frame(trampoline, hooked.cfa, frame.registers, "trampoline", trampoline=True)
            )
        frames.append(frame if frame.pc == trampoline else replace(frame, trampoline=False))
    if len(frames) > limit:
        return Walk(
            tuple(frames[:limit]), UnwindEnd(EndReason.LIMIT, f"the limit of {limit} frames")
        )
    return Walk(tuple(frames), walk.end)


def _kernel_2005(
    view: UnwindGuest, trampoline: int, registers: Mapping[str, int], limit: int
) -> Walk:
    if view.arch.unwind is not None and view.arch.unwind.stacks:
        # Return addresses are in registers: dump_stack has always unwound by tables.
        return _naive(view, trampoline, registers, limit)
    roles, word = view.arch.roles, view.arch.bits // 8
    order: Literal["little", "big"] = "little" if view.arch.byteorder == "little" else "big"
    hooked = _hooked(view, trampoline)
    words = _hooked_words(view, registers)
    pc, sp = view.original_pc(registers[roles.pc]), registers[roles.sp]
    frames = [Frame(pc, None, registers, "", exact=True)]
    if roles.link is not None:
        frames += _if_code(hooked, registers.get(roles.link, 0))
    for address in range(sp & -word, (sp & -word) + _SCANNED, word):
        if len(frames) >= limit:
            return Walk(tuple(frames), UnwindEnd(EndReason.LIMIT, f"the limit of {limit} frames"))
        try:
            value = int.from_bytes(view.read(address, word), order)
        except GuestFaultError:
            break
        if any(low <= address < high and value == pc for low, high, pc in words):
            value = trampoline
        frames += _if_code(hooked, value)
    return Walk(tuple(frames), UnwindEnd(EndReason.UNREADABLE, "the stack has been scanned"))


def _if_code(view: UnwindGuest, value: int) -> list[Frame]:
    if not value or not view.executable(value):
        return []
    return [Frame(value, None, {}, "", exact=True)]


def _hooked_words(view: UnwindGuest, registers: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """(start, end, value) of stretches where a word of that value is a caught return address."""
    frames = Unwinder(view).walk(registers).frames
    return [
        (callee.registers[view.arch.roles.sp], callee.cfa, caller.pc)
        for callee, caller in pairwise(frames)
        if caller.trampoline and callee.cfa is not None
    ]


UNWINDERS: Final = (
    Comparison("full", "everything that is known here", _full),
    Comparison("naive", "return addresses as they stand", _naive),
    Comparison("kernel-2005", "every word of the stack that is code (2.6.12)", _kernel_2005),
    Comparison("kernel", "tables and kretprobe_find_ret_addr (5.15)", _kernel),
    Comparison("owens", "the trampoline as a frame of its own (proposed 2005)", _owens),
)
"""All ways to unwind, the first is the right one."""


def by_name(name: str) -> Comparison:
    """The unwinder of a name; KeyError if there is none."""
    for unwinder in UNWINDERS:
        if unwinder.name == name:
            return unwinder
    raise KeyError(name)


__all__ = ["LIMIT", "UNWINDERS", "Comparison", "by_name"]
