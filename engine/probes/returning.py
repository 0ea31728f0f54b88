"""Return probes among the probes of a guest: what registering one asks and brings."""

from collections.abc import Sequence

from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.errors import ProbeRejectedError
from engine.guest.memory import Memory
from engine.probes.hits import Hits
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import DATA_MAX, Kretprobe
from engine.probes.placement import Placement
from engine.probes.point import ProbePoint
from engine.probes.returns import ReturnSite
from engine.probes.trampoline import Hijacked


class Returning(Hits):
    """The part of `ProbeManager` that deals with return probes."""

    memory: Memory
    placement: Placement
    _return_probes: int

    def behind_pad(self, address: int) -> int:
        """Where a kprobe on a function's entry goes."""
        raise NotImplementedError

    def allow(self, address: int) -> None:
        """Refuse an address that cannot have a breakpoint."""
        raise NotImplementedError

    def original(self, address: int, size: int) -> bytes:
        """Original bytes; fewer where the memory ends."""
        raise NotImplementedError

    def arm(self, points: list[ProbePoint]) -> None:
        """Plant the breakpoints of points."""
        raise NotImplementedError

    def refresh(self, point: ProbePoint) -> None:
        """The point's probes have changed."""
        raise NotImplementedError

    def unregister_all(self, probes: Sequence[Kprobe]) -> None:
        """Take probes out."""
        raise NotImplementedError

    def allow_return(self, probe: Kretprobe, address: int) -> None:
        """What register_kretprobe asks more than register_kprobe."""
        if self.arch.probes.no_returns:
            raise ProbeRejectedError(
                address, self.arch.probes.no_returns, "EOPNOTSUPP", "return-unsupported"
            )
        if probe.data_size > DATA_MAX:
            raise ProbeRejectedError(address, f"a pouch has at most {DATA_MAX} bytes", "E2BIG")
        function = self.placement.function(address)
        if probe.rules is Rules.UPROBE or function is None:
            return
        if address not in (function[0], self.behind_pad(function[0])):
            raise ProbeRejectedError(
                address, "a return probe goes on a function's entry", "EINVAL", "entry"
            )

    def admit(self, probes: Sequence[Kretprobe]) -> None:
        """Return probes are registered."""
        if not probes:
            return
        if isinstance(self.returns, Hijacked) and not self.returns.point.armed:
            point = self.returns.point
            self.memory.commit(point.address, self.memory.plan.page_size)
            self.memory.poke(point.address, self.arch.breakpoint)
            self.points[point.address] = point
            point.armed = True
            self.breakpoints.plant(point)
        self._return_probes += len(probes)
        for probe in probes:
            self.returns.admit(probe)

    def dismiss(self, probes: Sequence[Kretprobe]) -> None:
        """Return probes are gone."""
        if not probes:
            return
        self.returns.dismiss(probes)
        self._return_probes -= len(probes)
        if not self._return_probes:
            self.returns.close()

    # -- where calls return to --------------------------------------------------------------

    def watch(self, site: ReturnSite) -> bool:
        """Plant the engine's own probe where a call returns to; False if it cannot be.

        Any instruction that either kind of probe may displace will do.
        """
        address = site.addr or 0
        point = self.points.get(address)
        if point is not None:
            point.probes.insert(0, site)
            self.refresh(point)
            return True
        try:
            self.allow(address)
            point = ProbePoint(address, self.plan_of_return(address))
        except ProbeRejectedError:
            return False
        point.probes.append(site)
        if not self.breakpoints.prepare(point):
            return False
        self.points[address] = point
        self.arm([point])
        return True

    def plan_of_return(self, address: int) -> InsnPlan:
        """What is done with the instruction that a call returns to.

        Raises:
            ProbeRejectedError: neither kind of probe could displace it.
        """
        raw = self.original(address - address % self.arch.code_unit, self.arch.insn_max)
        for rules in Rules:
            plan = self.arch.probes.analyze(raw, address, rules, Mode.KERNEL, b"")
            if plan.verdict is not Verdict.REJECTED:
                return plan
        raise ProbeRejectedError(address, plan.reason, plan.errno or "EINVAL", plan.rule)

    def unwatch(self, sites: Sequence[ReturnSite]) -> None:
        """Take such probes out."""
        registered = [s for s in sites if s.addr in self.points]
        self.unregister_all(registered)

    def replant(self, address: int) -> None:
        """What is to happen at a point has changed."""
        point = self.points.get(address)
        if point is not None and point.armed:
            self.breakpoints.plant(point)

    def placed(self) -> list[ProbePoint]:
        """The points that somebody has asked for: not those of the machinery.

        Their probes' counts of hits are those of now.
        """
        if self.jumps is not None:
            self.jumps.collect()
        found = []
        for point in self.points.values():
            own = isinstance(self.returns, Hijacked) and point is self.returns.point
            if not own and any(not isinstance(probe, ReturnSite) for probe in point.probes):
                found.append(point)
        return found
