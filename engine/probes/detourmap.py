"""The detours that there are, by address: those that jumps lead to, and those being left."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from engine.probes.detours import Detour
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint


class LiveDetour(Struct, eq=False):
    """A detour buffer that the guest may be in.

    Attributes:
        point: whose it is, or was.
        detour: the buffer and its code.
        probes: what it records.
        zombie: no jump leads there any more; it is freed once the guest has left it.
        unchecked: simulated CPUs that have to pass its breakpoint first (see `djprobe`).
    """

    point: ProbePoint
    detour: Detour
    probes: tuple[Kprobe, ...]
    zombie: bool = False
    unchecked: set[int] = field(default_factory=set)

    def probe(self, part: int) -> Kprobe:
        """The probe that a part of the recorder is for; all of them may be for one."""
        return self.probes[part if len(self.probes) > 1 else 0]


class DetourMap:
    """Detours by their own addresses and by those of the instructions that they displace.

    Attributes:
        zombies: detours without a jump that could not be freed yet.
        freed: how many that jumps led to have been freed so far.
    """

    def __init__(self) -> None:
        """None yet."""
        self._starts: list[int] = []
        self._live: dict[int, LiveDetour] = {}
        self._inner: dict[int, LiveDetour] = {}
        self._waiting: dict[int, list[LiveDetour]] = {}
        self.zombies: list[LiveDetour] = []
        self.freed = 0

    def add(self, point: ProbePoint, detour: Detour, probes: tuple[Kprobe, ...]) -> LiveDetour:
        """A jump is about to lead to a detour."""
        live = LiveDetour(point, detour, probes)
        self._starts.insert(bisect_left(self._starts, detour.start), detour.start)
        self._live[detour.start] = live
        self._inner |= {address: live for _, address in detour.displaced[1:]}
        return live

    def retire(self, detour: Detour) -> LiveDetour:
        """No jump leads to a detour any more."""
        live = self._live[detour.start]
        for _, address in detour.displaced[1:]:
            self._inner.pop(address, None)
        live.zombie = True
        self.zombies.append(live)
        return live

    def reap(self, used: Callable[[LiveDetour], bool]) -> list[Detour]:
        """The zombies that nobody uses any more: they are forgotten here."""
        gone = [live.detour for live in self.zombies if not used(live)]
        self.zombies = [live for live in self.zombies if live.detour not in gone]
        for detour in gone:
            del self._starts[bisect_left(self._starts, detour.start)]
            del self._live[detour.start]
        self.freed += sum(bool(detour.jump) for detour in gone)
        return gone

    def at(self, address: int) -> LiveDetour | None:
        """The detour that an address lies in."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        live = self._live[self._starts[at]]
        return live if address < live.detour.end else None

    def inner(self, address: int) -> LiveDetour | None:
        """The detour that displaces an instruction which is not the first of its window."""
        return self._inner.get(address)

    @property
    def covers(self) -> bool:
        """True if there are such instructions, or zombies."""
        return bool(self._inner or self.zombies)

    def waiting(self, address: int) -> list[LiveDetour]:
        """The detours of an address that wait for CPUs to pass it."""
        return self._waiting.get(address, [])

    def wait(self, live: LiveDetour, cpus: Iterable[int]) -> None:
        """A detour waits for CPUs to pass its breakpoint; for none any more if they are none."""
        address = live.detour.address
        live.unchecked = set(cpus)
        left = [other for other in self.waiting(address) if other is not live]
        left += [live] if live.unchecked else []
        if left:
            self._waiting[address] = left
        else:
            self._waiting.pop(address, None)

    def __len__(self) -> int:
        """Number of detours, zombies included."""
        return len(self._live)

    def standing(self) -> list[LiveDetour]:
        """The detours that are no zombies."""
        return [live for live in self._live.values() if not live.zombie]
