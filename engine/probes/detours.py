"""Detour buffers: where they are, and what stands in one."""

from bisect import bisect_right
from typing import Final

from msgspec import Struct

from engine.arch.jump import ArchJumps, Movable
from engine.arch.recording import Recorder
from engine.cpu.ram import PAGE
from engine.guest.memory import Memory
from engine.probes.engine_window import EngineWindow

_GRAIN: Final = 16

KIND: Final = "jump"
"""Name for people of a point with a detour (`Replacement.kind`)."""


class Detour(Struct, frozen=True):
    """The detour buffer of one point, a `Replacement`; addresses are the guest's.

    Attributes:
        address: of the probe.
        start: where the jump goes.
        recorder: what stands there first.
        bypass: where the displaced instructions begin.
        displaced: (start, the original's address) of the displaced instructions' code, in order.
        back: of the jump back; behind it the buffer ends.
        end: one past its last byte.
        window: one past the last byte of the window.
        original: the window's bytes.
        jump: what stands in the window now; nothing where a breakpoint leads here.
        code: the whole buffer.
    """

    address: int
    start: int
    recorder: Recorder
    bypass: int
    displaced: tuple[tuple[int, int], ...]
    back: int
    end: int
    window: int
    original: bytes
    jump: bytes
    code: bytes

    @property
    def kind(self) -> str:
        """The detour's name for people: a jump."""
        return KIND

    @property
    def again(self) -> int:
        """Address at which the first row is begun anew."""
        return self.start + self.recorder.again

    @property
    def finish(self) -> int:
        """Address at which the registers get their own values back."""
        return self.start + self.recorder.finish

    @property
    def slow(self) -> int | None:
        """The first trap that asks the engine to record a hit."""
        return self.start + self.recorder.slow if self.recorder.slow >= 0 else None

    @property
    def trap(self) -> int | None:
        """The trap at which the engine serves the hit, where no code does."""
        return self.start + self.recorder.trap if self.recorder.trap >= 0 else None

    def part(self, pc: int) -> int:
        """Number of the recording whose code a place lies in."""
        parts = self.recorder.parts
        slow = [number for number, part in enumerate(parts) if self.start + part.slow == pc]
        at = bisect_right(parts, pc - self.start, key=lambda part: part.start) - 1
        return slow[0] if slow else max(at, 0)

    def original_pc(self, pc: int) -> int:
        """The program's own address for a place in the buffer."""
        if pc >= self.back:
            return self.window
        at = bisect_right(self.displaced, pc, key=lambda row: row[0]) - 1
        return self.displaced[at][1] if at >= 0 else self.address

    def moved_pc(self, address: int) -> int | None:
        """Address at which a displaced instruction is carried out; None for no such one."""
        return next((start for start, original in self.displaced if original == address), None)

    def between(self, pc: int) -> bool:
        """True for a place at which a displaced instruction begins, or the last one has ended."""
        return pc == self.back or any(pc == start for start, _ in self.displaced)

    def recording(self, pc: int) -> bool:
        """True for a place in front of the displaced instructions."""
        return pc < self.bypass


class DetourSpace:
    """Hands out room for detours in the engine's windows."""

    def __init__(self, memory: Memory, windows: list[tuple[int, int]]) -> None:
        self._memory = memory
        self.windows = [EngineWindow(memory, start, size) for start, size in windows]
        self._free: dict[int, list[int]] = {}
        self._open: dict[int, tuple[int, int]] = {}  # by window: what is left of its pages
        self.used = 0

    def holds(self, address: int) -> bool:
        """True if an address lies in one of the windows."""
        return any(window.start <= address < window.end for window in self.windows)

    def near(self, address: int, reach: int) -> bool:
        """True if a window is within reach of an address, both ways."""
        return any(_within(window, address, reach) for window in self.windows)

    def take(self, address: int, size: int, reach: int) -> int | None:
        """Room for a detour within reach of an address; None if there is none."""
        size = -(-size // _GRAIN) * _GRAIN
        for window in self.windows:
            if not _within(window, address, reach):
                continue
            for at, place in enumerate(self._free.get(size, [])):
                if window.start <= place < window.end:
                    self.used += size
                    return self._free[size].pop(at)
            place_or_none = self._grow(window, size)
            if place_or_none is not None:
                self.used += size
                return place_or_none
        return None

    def _grow(self, window: EngineWindow, size: int) -> int | None:
        at, end = self._open.get(window.start, (0, 0))
        while end - at < size:
            page = window.page()
            if page is None:
                return None
            at, end = (at, page + PAGE) if page == end else (page, page + PAGE)
        self._open[window.start] = (at + size, end)
        return at

    def free(self, start: int, size: int) -> None:
        """A detour is gone and nobody is in it."""
        size = -(-size // _GRAIN) * _GRAIN
        self.used -= size
        self._free.setdefault(size, []).append(start)


def _within(window: EngineWindow, address: int, reach: int) -> bool:
    return abs(address - window.start) < reach and abs(address - window.end) < reach


def build(
    space: DetourSpace,
    jumps: ArchJumps,
    address: int,
    original: bytes,
    recorder: Recorder,
    moved: list[tuple[int, Movable]],
    *,
    led: bool = False,
) -> Detour | None:
    """Lay a detour out in room of its own; None where something does not reach.

    Nothing is written but the bytes of the result are meant for its place. Where the guest is
    `led` there by a breakpoint, no jump leads there.
    """
    body = sum(one.size for _, one in moved)
    size = len(recorder.code) + body + jumps.least
    start = space.take(address, size, jumps.reach)
    if start is None:
        return None
    window = address + len(original)
    parts, displaced = [recorder.code], []
    at = start + len(recorder.code)
    for where, one in moved:
        code = one.emit(at)
        displaced.append((at, where))
        parts.append(code or b"")
        if code is None:
            space.free(start, size)
            return None
        at += len(code)
    back = jumps.jump(at, window, jumps.least)
    jump = b"" if led else jumps.jump(address, start, len(original))
    if back is None or jump is None:
        space.free(start, size)
        return None
    code = b"".join((*parts, back))
    end = start + size
    return Detour(
        address,
        start,
        recorder,
        displaced[0][0],
        tuple(displaced),
        at,
        end,
        window,
        original,
        jump,
        code,
    )
