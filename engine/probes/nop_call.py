"""The technique of Linux 6.18 for uprobes: a five-byte no-operation becomes a call (`nop5`).

A point is a breakpoint until its first hit. Then, if all conditions hold (`nop_call_rules`), a
call of a trampoline (`uprobe_trampoline`) is written over the no-operation in the order in which
Linux writes it: the breakpoint stands while the bytes behind it change, and goes last; on the way
back it comes first. Once the last probe there is gone, a new one begins with a breakpoint again.

What the call and the trampoline keep below the program's stack pointer overwrites what a leaf
function has there (its red zone). Linux does it all the same: so does kernel mode.
"""

from collections.abc import Sequence
from typing import Final

from engine.arch.nop_call import NopCalls
from engine.arch.plan import Rules
from engine.probes.jumpplace import JumpPlace
from engine.probes.nop_call_rules import damage, first_failure
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.point_state import Stage
from engine.probes.technique import OTHER_PROBE, Buffers, Refused, Technique, TechniqueHost
from engine.probes.uprobe_call import UprobeCall
from engine.probes.uprobe_trampoline import UprobeTrampolines

_FIRST_HIT: Final = Check("nop5-hit", False, "it has not been hit: the first hit writes the call")
_NO_FILE: Final = Check("nop5-nop", False, "it is in no file's code")


class NopCallTechnique:
    """The calls of one guest; a `engine.probes.technique.Technique`.

    Attributes:
        told: see `Technique`.
        code: the trampolines.
        ready: always.
    """

    ready = True

    def __init__(self, host: TechniqueHost, calls: NopCalls) -> None:
        """There are none.

        Args:
            host: what it works in; it has room for code.
            calls: what the architecture gives.
        """
        room = host.room
        assert room is not None, "asked before"
        self._host, self._calls = host, calls
        self._target = host.target
        self._locate = room.locate
        self._points: dict[int, ProbePoint] = {}  # those that have a call, or wait for a hit
        self._hit: set[int] = set()  # addresses that have been hit since they are probed
        self.told = ""
        windows = (*room.beside, room.window)
        self.code = UprobeTrampolines(self._target, calls, windows, self._points)

    def promising(self, point: ProbePoint) -> bool:
        """True for a no-operation of the right size."""
        return self._calls.is_nop(point.plan.raw)

    def wants_hits(self, point: ProbePoint) -> bool:
        """True before the first hit."""
        return point.state.stage is Stage.CHECK

    def hit(self, point: ProbePoint) -> None:
        """The first hit of a breakpoint writes the call."""
        self.told = ""
        if point.state.stage is not Stage.CHECK or point.address not in self._points:
            return
        call = point.replacement
        assert isinstance(call, UprobeCall), "it waits for its first hit"
        self._hit.add(point.address)
        point.state = point.state.checked(stop=point.wants_stop())
        point.candidacy = point.candidacy.cleared()
        if point.state.stage is Stage.REPLACED:
            unit = len(self._target.arch.breakpoint)
            self._target.overlay.exchange(point.address, call.jump, call.original, unit)
        self._host.replant(point.address)
        self._warn(point)
        self.told = f"the first hit: {call.jump.hex(' ')} is written over {call.original.hex(' ')}"

    def _warn(self, point: ProbePoint) -> None:
        """Say what the call destroys: Linux does not look."""
        place = self._place(point)
        wrong = damage(place) if place is not None else ""
        if wrong:
            names = ", ".join(str(probe) for probe in point.probes if not probe.machinery)
            self._target.notify(
                f"{names or hex(point.address)}: a call, which damages the program from the "
                f"second hit on, as on Linux 6.18: {wrong}"
            )

    def _place(self, point: ProbePoint) -> JumpPlace | None:
        """A point as the rules see it."""
        found = self._locate(point.address)
        if found is None:
            return None
        code, function, bias = found
        asked = [probe for probe in point.probes if not probe.stops] or point.probes
        uprobes = all(probe.rules is Rules.UPROBE for probe in asked)
        points = self._host.points

        def other(start: int, end: int) -> int | None:
            inside = range(start + bias, end + bias)
            return next((at for at in inside if at in points and points[at].armed), None)

        return JumpPlace(
            arch=self._target.arch,
            address=point.address - bias,
            rules=Rules.UPROBE if uprobes else Rules.KPROBE,
            mode=asked[0].mode or self._target.mode,
            code=code,
            function=function,
            other=other,
            reach=lambda address: self.code.near(address + bias),
        )

    def take(self, point: ProbePoint) -> Refused | None:
        """Have the next hit write the call, or write it; or say what is in the way."""
        place = self._place(point)
        if place is None:
            return Refused(_NO_FILE)
        failure = first_failure(place)
        if failure is not None:
            return Refused(failure)
        target, calls, address = self._target, self._calls, point.address
        raw = point.plan.raw
        if target.overlay.original(address, len(raw)) != raw:
            return Refused(Check("nop5-nop", False, "the program has changed its code there"))
        start = self.code.at(address)
        jump = calls.call(address, start) if start is not None else None
        if start is None or jump is None:
            return Refused(Check("nop5-reach", False, "no trampoline is left within reach"))
        call = UprobeCall(address, start, calls, raw, jump, self.code.tables[start])
        stage = Stage.STOP if point.wants_stop() else Stage.REPLACED
        if address not in self._hit:
            stage = Stage.CHECK
        point.state = point.state.replaced(call, stage)
        self._points[address] = point
        value = jump if stage is Stage.REPLACED else self._host.planted(point)
        target.overlay.exchange(address, value, raw, len(target.arch.breakpoint))
        return Refused(_FIRST_HIT) if stage is Stage.CHECK else None

    def fall_back(self, point: ProbePoint, *, gone: bool) -> None:
        """Put the breakpoint back; with `gone` the code there is no longer ours to write."""
        if not gone:
            value, unit = self._host.planted(point), len(self._target.arch.breakpoint)
            self._target.overlay.exchange(point.address, value, point.plan.raw, unit)
        point.state = point.state.fall_back()
        del self._points[point.address]

    def displacing(self, address: int) -> ProbePoint | None:
        """The point whose no-operation an address lies in, behind its first byte."""
        if not self._points:
            return None
        around = range(address - self._calls.size + 1, address)
        return next((self._points[at] for at in around if at in self._points), None)

    def freed(self, address: int) -> Sequence[ProbePoint]:
        """Points in front of an address that had to give way to a breakpoint there."""
        around = range(address - self._calls.size + 1, address)
        found = (self._host.points.get(before) for before in around)
        return [one for one in found if one and one.why and one.why.rule == OTHER_PROBE]

    def vacated(self, address: int) -> None:
        """The next probe there begins with a breakpoint."""
        self._hit.discard(address)

    def follow(self, other: Technique) -> None:
        """A copy has the calls of the one that it was made from."""
        if isinstance(other, NopCallTechnique):
            self._hit |= other._hit

    def buffers(self) -> Buffers:
        """The trampolines; they stay."""
        return Buffers(len(self.code.pages))
