"""Uprobes without objects: who asks for the point of one has it, and wakes no other."""

import pytest

from engine.probes.dormant import DormantUprobes
from engine.probes.point import ProbePoint, ProbePoints


class Owner:
    """Wakes uprobes at every tenth address from a first one on."""

    def __init__(self, points: ProbePoints, start: int, count: int) -> None:
        self.points, self.start = points, start
        self.woken: list[int] = []
        self.dormant = DormantUprobes(self.wake)
        addresses = [start + 10 * number for number in range(count)]
        for number, address in enumerate(addresses):
            self.dormant.add(address, number, b"\x90")
        for some in addresses[:3], addresses[2:]:
            points.lay(self.dormant, some)

    def wake(self, number: int) -> None:
        self.woken.append(number)
        address = self.start + 10 * number
        assert self.dormant.wakes(address, number) == b"\x90"
        self.points[address] = ProbePoint(address, None, lambda address: pytest.fail("no plan"))


def test_to_ask_whether_one_is_there_wakes_none() -> None:
    points = ProbePoints()
    first, other = Owner(points, 100, 5), Owner(points, 1000, 2)
    assert [at for at in range(90, 160) if at in points] == [100, 110, 120, 130, 140]
    assert 1010 in points
    assert None not in points
    assert points.get(101) is None
    assert points.get(145, "none") == "none"
    assert not first.woken + other.woken
    assert not points
    assert len(first.dormant) == 5


def test_one_that_is_asked_for_wakes_once() -> None:
    points = ProbePoints()
    owner, other = Owner(points, 100, 5), Owner(points, 1000, 2)
    found = points[120]
    assert found.address == 120
    assert points[120] is points.get(120) is found
    assert points.get(1000) is points[1000]
    assert (owner.woken, other.woken) == ([2], [0])
    assert (len(points), len(owner.dormant), len(other.dormant)) == (2, 4, 1)
    assert owner.dormant.wakes(130, 2) is None
    assert owner.dormant.wakes(120, 2) is None
    del points[120]
    assert 120 not in points
    assert points.get(120) is None
    with pytest.raises(KeyError):
        points[120]


def test_all_of_them_wake_at_once() -> None:
    points = ProbePoints()
    owner, other = Owner(points, 100, 3), Owner(points, 4090, 2)
    points[7] = ProbePoint(7, None, lambda address: pytest.fail("no plan"))
    assert points[110].address == 110
    points.wake_all()
    assert sorted(points) == [7, 100, 110, 120, 4090, 4100]
    assert sorted(point.address for point in points.values()) == sorted(points)
    assert (owner.woken, other.woken) == ([1, 0, 2], [0, 1])
    assert not points.dormant
