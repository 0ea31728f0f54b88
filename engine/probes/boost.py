"""Boosted copies that run past the next instruction, and the probes that stand there.

On IA-64 the rest of a bundle runs with its copy. While another of its slots behind is probed, a
copy is stepped instead. Linux's prepare_booster sees to the same, but boosts none of them again.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from engine.probes.breakpoint_actions import Breakpoints
from engine.probes.point import ProbePoint

Points = Mapping[int, ProbePoint]


def crowded(points: Points, point: ProbePoint, others: Collection[int] = ()) -> bool:
    """Tell whether a point's boosted copy would run past another one.

    Args:
        points: all of them.
        point: the one in question.
        others: addresses that count as armed, too.
    """
    for address in range(point.plan.next, point.plan.boosted_next):
        other = points.get(address)
        if address in others or (other is not None and other.armed):
            return True
    return False


def unboost(points: Points, arming: Sequence[ProbePoint], breakpoints: Breakpoints) -> None:
    """Before points are armed: copies that would run past any of them are stepped from now on."""
    fresh = {point.address for point in arming}
    for point in arming:
        if point.boosted and crowded(points, point, fresh):
            point.copy = replace(point.copy, boosted=False)
        for other in _in_front(points, point):
            if other.boosted and other.plan.boosted_next:
                other.copy = replace(other.copy, boosted=False)
                if other.armed and other.address not in fresh:
                    breakpoints.plant(other)


def boost_again(points: Points, disarmed: Sequence[ProbePoint], breakpoints: Breakpoints) -> None:
    """After points are disarmed: copies that may run on now do so."""
    for point in disarmed:
        for other in _in_front(points, point):
            if other.armed and other.slot is not None:
                breakpoints.fill(other, other.slot)
                breakpoints.plant(other)


def _in_front(points: Points, point: ProbePoint) -> list[ProbePoint]:
    """The points in front of one in the same unit of code."""
    found = (points.get(address) for address in range(point.plan.base, point.address))
    return [other for other in found if other is not None]
