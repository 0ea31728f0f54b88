"""Return probes among the probes of a guest: what registering one asks and brings."""

from collections.abc import Sequence
from itertools import product
from typing import Final

from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.errors import CommandError, ProbeRejectedError
from engine.guest.memory import Memory
from engine.probes.code_map import CodeMap
from engine.probes.hits import Hits
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import DATA_MAX, Kretprobe
from engine.probes.owens import OwensTrampoline
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import Owner, Returns, ReturnSite, own
from engine.probes.return_sites import ReturnSites
from engine.probes.trampoline import LinuxTrampoline

RETURNS: Final = ("auto", "watched", "mainline", "owens")
"""How returns are caught: where they lead; by a trampoline as Linux does it; by one that every
unwinder understands, where the architecture has it. By default strict mode watches, kernel mode
does as Linux does."""


def catcher(owner: Owner, how: str, trampoline: int) -> Returns:
    """What catches the returns of a guest.

    Args:
        owner: the manager of probes.
        how: one of `RETURNS`.
        trampoline: page of an engine window for what calls return to, 0 for none.

    Raises:
        CommandError: the architecture does not have that way.
    """
    if how == "auto":
        how = "mainline" if owner.mode is Mode.KERNEL else "watched"
    if how == "watched" or not trampoline:
        return ReturnSites(owner)
    if how == "mainline":
        return LinuxTrampoline(owner, trampoline)
    ways = owner.arch.returns
    if ways is None or ways.carried is None:
        raise CommandError(f"{owner.arch.name} has no trampoline with unwind data")
    return OwensTrampoline(owner, trampoline, ways.carried)


class Returning(Hits):
    """The part of `ProbeManager` that deals with return probes."""

    memory: Memory
    code_map: CodeMap
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

    def replan(self, point: ProbePoint, plan: InsnPlan) -> None:
        """Give a point another plan."""
        raise NotImplementedError

    def allow_return(self, probe: Kretprobe, address: int) -> None:
        """What register_kretprobe asks more than register_kprobe."""
        if probe.data_size > DATA_MAX:
            raise ProbeRejectedError(address, f"a pouch has at most {DATA_MAX} bytes", "E2BIG")
        function = self.code_map.function(address)
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
        if isinstance(self.returns, LinuxTrampoline) and not self.returns.point.armed:
            point, start = self.returns.point, self.returns.address - self.returns.kind.entry
            self.memory.commit(start, self.memory.plan.page_size)
            self.memory.poke(start, self.returns.kind.code)
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
            self.always(point)
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
        for mode, rules in product((Mode.STRICT, Mode.KERNEL), Rules):
            plan = self.arch.probes.analyze(raw, address, rules, mode, b"")
            if plan.verdict is not Verdict.REJECTED:
                return self.unconditional(plan)
        raise ProbeRejectedError(address, plan.reason, plan.errno or "EINVAL", plan.rule)

    def unconditional(self, plan: InsnPlan) -> InsnPlan:
        """A plan whose breakpoint traps even where the instruction would do nothing."""
        returns = self.arch.returns
        return plan if returns is None else returns.unconditional(plan)

    def always(self, point: ProbePoint) -> None:
        """Let a point trap whatever the predicate is that its probes depend on."""
        plan = self.unconditional(point.plan)
        if plan is point.plan:
            return
        point.guard = point.plan.predicate
        self.replan(point, plan)

    def unwatch(self, sites: Sequence[ReturnSite]) -> None:
        """Take such probes out."""
        registered = [s for s in sites if s.addr in self.points]
        self.unregister_all(registered)

    def replant(self, address: int) -> None:
        """What is to happen at a point has changed."""
        point = self.points.get(address)
        if point is not None and point.armed:
            self.breakpoints.plant(point)

    def reconsider(self, address: int) -> None:
        """The same, and a jump that stands there is given up."""
        point = self.points.get(address)
        if point is not None and point.armed and self.jumps is not None:
            self.jumps.reconsider(point)
        self.replant(address)

    def placed(self) -> list[ProbePoint]:
        """The points that somebody has asked for: not those of the machinery.

        Their probes' counts of hits are those of now.
        """
        if self.jumps is not None:
            self.jumps.collect()
        found = []
        for point in self.points.values():
            trampoline = isinstance(self.returns, LinuxTrampoline) and point is self.returns.point
            if not trampoline and not all(own(probe) for probe in point.probes):
                found.append(point)
        return found
