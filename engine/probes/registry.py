"""Registration of probes, and code that goes from under them.

The order of checks and the names of the errors are kernel/kprobes.c's.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from engine.errors import ProbeRejectedError
from engine.probes.admission import Admission
from engine.probes.arming import Arming
from engine.probes.breakpoint_actions import Breakpoints
from engine.probes.kprobe import Kprobe, ProbeFlags
from engine.probes.kretprobe import Kretprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.plain_insns import PlainInsn
from engine.probes.point import ProbePoint
from engine.probes.point_state import NO_COPY
from engine.probes.return_probes import ReturnProbes

_NONE: Final[Mapping[int, PlainInsn]] = {}

Unmapped = Callable[[list[Kprobe]], Collection[Kprobe]]
"""Given probes whose code is gone: those that will be registered again."""


class ProbeRegistry:
    """The probes of one guest.

    Attributes:
        asked: the probes that somebody has asked for and not taken out again, in that order,
            and of those that were, the ones with hits that were not served.
    """

    def __init__(
        self,
        admission: Admission,
        arming: Arming,
        breakpoints: Breakpoints,
        return_probes: ReturnProbes,
        notify: Callable[[str], None],
        unmapped: Unmapped,
    ) -> None:
        """No probe is registered.

        Args:
            admission: says whether a probe may be registered.
            arming: of points.
            breakpoints: prepares slots and actions.
            return_probes: those among the probes.
            notify: told, in words, what happened to a probe without the user's doing.
            unmapped: see `Unmapped`.
        """
        self.asked: dict[Kprobe, None] = {}
        self._points = arming.points
        self._admission = admission
        self._arming = arming
        self._breakpoints = breakpoints
        self._return_probes = return_probes
        self._notify = notify
        self._unmapped = unmapped

    def register(self, probe: Kprobe) -> None:
        """Register and arm one probe (register_kprobe).

        Raises:
            ProbeRejectedError: with the kernel's errno.
        """
        self.register_all([probe])

    def register_all(
        self, probes: Sequence[Kprobe], plain: Mapping[int, PlainInsn] = _NONE
    ) -> None:
        """Register all or none (register_kprobes).

        Args:
            probes: the probes.
            plain: by guest address, instructions to which uprobes were admitted (`PlainRun`).

        Raises:
            ProbeRejectedError: of the first that cannot be placed; EINVAL for none at all.
        """
        if not probes:
            raise ProbeRejectedError(0, "no probes given", "EINVAL")
        done: list[Kprobe] = []
        fresh: dict[int, ProbePoint] = {}
        known: dict[int, PlainInsn] = {}
        try:
            for probe in probes:
                at = probe.addr or 0
                if at in plain and at not in fresh and at not in self._points:
                    known[at] = insn = plain[at]
                    fresh[at] = self._plain_point(probe, at, insn)
                    done.append(probe)
                    continue
                point = self._place(probe, fresh)
                if known.pop(point.address, None) is not None:
                    point.copy = NO_COPY  # with two of them more counts than the bytes
                # A return comes before what happens to stand where it returns to.
                there = point.probes
                point.add(probe, behind=int(bool(there) and isinstance(there[0], ReturnSite)))
                done.append(probe)
            for point in fresh.values():
                if point.address in known:
                    continue  # it has its copy
                if point.enabled() and not self._breakpoints.prepare(point):
                    raise ProbeRejectedError(point.address, "no slot is left", "ENOMEM")
        except ProbeRejectedError:
            self._undo(done, fresh)
            raise
        self._admission.settled()
        self.asked.update(dict.fromkeys(p for p in done if not p.machinery and not p.stops))
        self._points.update(fresh)
        returns = [probe for probe in done if isinstance(probe, Kretprobe)]
        if returns:
            self._return_probes.admit(returns)
        enabled = [at for at, point in fresh.items() if at in known or point.enabled()]
        self._arming.arm([fresh[at] for at in enabled], known)
        for address in {probe.addr for probe in done if probe.addr not in fresh}:
            self._arming.refresh(self._points[address or 0])
        if returns:
            self._return_probes.catcher.armed()

    def follow(
        self, points: Mapping[int, ProbePoint], twin: Callable[[Kprobe], Kprobe | None]
    ) -> None:
        """Probe the same places in a copy of another guest's memory; nothing is probed yet.

        Args:
            points: those of the other one.
            twin: makes the probe that stands for one of its here, None where none is wanted.
        """
        fresh: list[ProbePoint] = []
        for point in points.values():
            probes = [made for probe in point.probes if (made := twin(probe)) is not None]
            if not probes:
                continue
            mine = ProbePoint(point.address, point.plan)
            mine.guard, mine.probes, mine.covered = point.guard, probes, point.covered
            if mine.enabled() and not self._breakpoints.prepare(mine):
                names = ", ".join(map(str, probes))
                self._notify(f"{names}: no slot is left in a new process")
                continue
            fresh.append(mine)
            self.asked.update(dict.fromkeys(probe for probe in probes if not probe.stops))
            self._points[mine.address] = mine
            self._return_probes.admit([one for one in probes if isinstance(one, Kretprobe)])
        self._arming.arm([point for point in fresh if point.enabled() and not point.covered])
        if any(isinstance(probe, Kretprobe) for point in fresh for probe in point.probes):
            self._return_probes.catcher.armed()

    def awaken(self, probe: Kprobe, raw: bytes) -> None:
        """A dormant uprobe wakes: its breakpoint is planted already.

        Args:
            probe: the probe, with its address.
            raw: bytes of its instruction.
        """
        address = probe.addr or 0
        insn = self._admission.plain(raw, address, self._admission.mode_of(probe))
        point = self._points[address] = self._plain_point(probe, address, insn)
        point.state = point.state.arm()
        self.asked[probe] = None

    def _plain_point(self, probe: Kprobe, address: int, insn: PlainInsn) -> ProbePoint:
        admission = self._admission
        again = admission.planner(probe.rules, admission.mode_of(probe))
        point = ProbePoint(address, None, again)
        point.copy, point.probes = insn.copy, (probe,)
        return point

    def _place(self, probe: Kprobe, fresh: dict[int, ProbePoint]) -> ProbePoint:
        admission = self._admission
        address, mode = admission.address(probe), admission.mode_of(probe)
        point = self._points.get(address) or fresh.get(address)
        if point is not None and probe in point.probes:
            raise ProbeRejectedError(address, "this probe is registered already", "EINVAL")
        probe.flags &= ProbeFlags.DISABLED  # the only one that may be given; others are dropped
        admission.allow(address)
        if isinstance(probe, Kretprobe):
            admission.allow_return(probe, address)
        if point is None:
            plan = admission.planned(address, probe.rules, mode)
            again = None if probe.always else admission.planner(probe.rules, mode)
            if probe.always:
                plan = admission.unconditional(plan)
            point = fresh[address] = ProbePoint(address, plan, again)
        elif any(
            other.machinery or other.always or other.rules is not probe.rules
            for other in point.probes
        ):
            plan = admission.plan(address, probe.rules, mode)  # its own rules must allow it too
            if not point.plan.predicate:
                point.guard = plan.predicate
        elif probe.always and address not in fresh:
            self._arming.always(point)
        probe.addr = address
        return point

    def _undo(self, done: Sequence[Kprobe], fresh: dict[int, ProbePoint]) -> None:
        """Take back what was done for probes of which one was refused."""
        for probe in done:
            assert probe.addr is not None
            owner = fresh.get(probe.addr) or self._points[probe.addr]
            owner.drop(probe)
            if probe.symbol_name is not None:
                probe.addr = None
        for point in fresh.values():
            self._breakpoints.give_back(point)

    def unregister(self, probe: Kprobe) -> None:
        """Take one probe out (unregister_kprobe)."""
        self.unregister_all([probe])

    def unregister_all(self, probes: Iterable[Kprobe]) -> None:
        """Take probes out, all of them at once.

        Raises:
            ProbeRejectedError: EINVAL for one that is not registered; the others are gone.
        """
        gone, unknown = self._arming.remove(probes)
        for probe in gone:
            if not probe.nmissed and not (isinstance(probe, Kretprobe) and probe.unwatched):
                self.asked.pop(probe, None)
        self._return_probes.dismiss([probe for probe in gone if isinstance(probe, Kretprobe)])
        if unknown:
            probe = unknown[-1]
            raise ProbeRejectedError(probe.addr or 0, f"{probe} is not registered", "EINVAL")

    def enable(self, probe: Kprobe) -> None:
        """Let a probe's handlers run again; EINVAL if it is gone or not registered."""
        self._switch(probe, on=True)

    def disable(self, probe: Kprobe) -> None:
        """Keep a probe, but quiet; its point is disarmed once all its probes are disabled."""
        self._switch(probe, on=False)

    def _switch(self, probe: Kprobe, *, on: bool) -> None:
        point = self._points.get(probe.addr or 0)
        if point is None or probe not in point.probes or ProbeFlags.GONE in probe.flags:
            raise ProbeRejectedError(probe.addr or 0, f"{probe} is not registered", "EINVAL")
        probe.flags = ProbeFlags.NONE if on else ProbeFlags.DISABLED
        self._arming.refresh(point)

    # -- code that goes -------------------------------------------------------------------

    def lost(self, address: int, why: str) -> None:
        """The overlay gave a patch up: its code is gone, or is other code now."""
        point = self._points.get(address)
        if point is None:
            return
        self._arming.lost(point)
        asked = [probe for probe in point.probes if not probe.machinery]
        if why == "rewritten":
            try:
                self._arm_again(point, asked)
                return
            except ProbeRejectedError as error:
                why = f"rewritten by the guest: {error.reason}"
        self._arming.drop(point)
        waiting = self._unmapped(asked) if why == "unmapped" else ()
        for probe in point.probes:
            if probe not in waiting:
                probe.flags |= ProbeFlags.GONE
        self._return_probes.catcher.forget(address)
        self._return_probes.dismiss([probe for probe in asked if isinstance(probe, Kretprobe)])
        names = ", ".join(str(probe) for probe in asked if probe not in waiting)
        if names:
            self._notify(f"the code at {address:#x} was {why}; {names}: dropped")

    def _arm_again(self, point: ProbePoint, asked: Sequence[Kprobe]) -> None:
        """The guest has written other code to a place: probe that, if it can be."""
        address, admission = point.address, self._admission
        modes = {(probe.rules, admission.mode_of(probe)) for probe in asked}
        plans = [admission.plan(address, rules, mode) for rules, mode in modes]
        plan = plans[0] if plans else admission.plan_of_return(address)
        self._arming.replace(point, plan)
        names = ", ".join(str(probe) for probe in asked)
        if names:
            self._notify(
                f"the guest rewrote its code at {address:#x}; {names}: armed again on "
                f"the new instruction"
            )
