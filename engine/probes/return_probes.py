"""Return probes among the probes of a guest, and the places that their calls return to."""

from collections.abc import Sequence

from engine.errors import ProbeRejectedError
from engine.probes.admission import Admission
from engine.probes.arming import Arming
from engine.probes.breakpoint_actions import Breakpoints
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint
from engine.probes.return_catchers import catcher
from engine.probes.target import ProbeTarget


class ReturnProbes:
    """Registers return probes with the catcher of their returns.

    Attributes:
        target: the guest.
        catcher: catches returns.
    """

    def __init__(
        self,
        target: ProbeTarget,
        admission: Admission,
        arming: Arming,
        breakpoints: Breakpoints,
        returns: str,
        page: int,
    ) -> None:
        """No return probe is registered.

        Args:
            target: the guest.
            admission: says where calls may be watched to return.
            arming: of points.
            breakpoints: prepares slots and actions.
            returns: how returns are caught, of `return_catchers.RETURNS`.
            page: of an engine window for a trampoline, 0 for none.

        Raises:
            CommandError: the architecture cannot catch returns in that way.
        """
        self.target: ProbeTarget = target
        self._admission = admission
        self._arming = arming
        self._breakpoints = breakpoints
        self._registered = 0
        self.replant = arming.replant
        self.reconsider = arming.reconsider
        self.catcher = catcher(self, returns, page)
        if self.catcher.trampoline is not None:
            end = page + target.memory.plan.page_size
            admission.blacklist.add(page, end, "[kprobe-tui]")

    def admit(self, probes: Sequence[Kretprobe]) -> None:
        """Return probes are registered."""
        self._registered += len(probes)
        for probe in probes:
            self.catcher.admit(probe)

    def dismiss(self, probes: Sequence[Kretprobe]) -> None:
        """Return probes are gone."""
        if not probes:
            return
        self.catcher.dismiss(probes)
        self._registered -= len(probes)
        if not self._registered:
            self.catcher.close()

    # -- what the catcher asks for ----------------------------------------------------------

    def watch(self, site: Kprobe) -> bool:
        """Plant a probe of the engine's own, as where a call returns to; False if it cannot be."""
        address = site.addr or 0
        point = self._arming.points.get(address)
        if point is not None:
            point.add(site)
            self._arming.always(point)
            self._arming.refresh(point)
            return True
        try:
            self._admission.allow(address)
            point = ProbePoint(address, self._admission.plan_of_return(address))
        except ProbeRejectedError:
            return False
        point.add(site)
        if not self._breakpoints.prepare(point):
            return False
        self._arming.points[address] = point
        self._arming.arm([point])
        return True

    def unwatch(self, sites: Sequence[Kprobe]) -> None:
        """Take such probes out."""
        self._arming.remove([site for site in sites if site.addr in self._arming.points])

    def stand(self, point: ProbePoint, start: int, code: bytes) -> None:
        """Map a page for code of the machinery's own, in which a point stands."""
        memory = self.target.memory
        memory.commit(start, memory.plan.page_size)
        memory.patch(start, code)
        self._arming.points[point.address] = point
        point.state = point.state.arm()
        self._breakpoints.plant(point)
