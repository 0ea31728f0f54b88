"""Walks over the frames of functions that a debugger has called in the program."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from engine.arch.base import Arch
from engine.session.guest.called_frames import CalledFrame
from engine.session.protocol.frames import CALLED
from engine.unwind.unwinder import Frame, Walk

WalkOn = Callable[[Mapping[str, int], int], Walk]
"""Walks from some registers on, for so many frames."""


def joined(
    arch: Arch, calls: Sequence[CalledFrame], walk: Walk, walk_on: WalkOn, limit: int
) -> Walk:
    """A walk with what lies behind calls of a debugger's: the code that each has interrupted.

    Args:
        arch: the processor.
        calls: those that may be on the stack, and perhaps others.
        walk: the frames down to the first of these calls, and what seems to be behind it.
        walk_on: walks from the registers of interrupted code.
        limit: of frames.
    """
    roles, word = arch.roles, arch.bits // 8
    left = {(one.pc, one.sp): one for one in calls}
    frames: list[Frame] = []
    while True:
        inner, call = list(walk.frames), None
        for number, frame in enumerate(inner):
            call = left.pop((frame.pc, frame.registers.get(roles.sp, -1)), None)
            if call is not None:
                own = replace(
                    frame, cfa=call.sp + word, source=CALLED, exact=True, signal=True, padded=False
                )
                inner[number:] = [own]
                break
        frames += inner
        if call is None or len(frames) >= limit:
            return Walk(tuple(frames[:limit]), walk.end)
        walk = walk_on(call.registers, limit - len(frames))
