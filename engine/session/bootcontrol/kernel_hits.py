"""Hits of the kernel's own kprobes in a booted machine, phase by phase.

Where the machine stands at a place that the kernel has probed, or at the trampoline of a caught
return, the way of that hit is known from the kernel's memory. Phases are counted as the machine
comes to the places at which they end; what the kernel leaves out, as it does for a handler that
changes the way, is left out of the route.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.kprobephases import (
    BRANCH,
    HitPhase,
    HitRoute,
    route_of,
    route_of_return,
    serving_code,
)
from engine.machine.probedplaces import ProbedPlace, ServedProbe, probed_places
from engine.machine.stepping import MachineMoment
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.places import KernelPlaceNames
from engine.session.protocol.views import Change, PhaseView

_WORD: Final = 8
_FIRST_ARGUMENT: Final = "rdi"
_STACK: Final = 1 << 14
"""THREAD_SIZE of x86-64: a hit is served on the stack that it happens on."""
_VALUES: Final = ("trap", "jump", "call", "out of line")
"""Phases whose registers are told: in the others the kernel's functions use them all."""
_FRESH_MOST: Final = 1 << 10
"""Places of kprobes about to be registered that are remembered."""
_GIVEN_BACK: Final = ("to slot", "restore", "resume")
"""Phases behind which registers are as in front of the hit, unless a handler changes them."""


class HitStand(Struct, frozen=True):
    """The machine where a phase begins.

    Attributes:
        moment: when.
        pc: the instruction that comes next.
        registers: the general ones and flags.
        word: what is at the top of the stack of the code that is probed.
    """

    moment: MachineMoment
    pc: int
    registers: dict[str, int]
    word: bytes


class KernelHit(Struct, frozen=True):
    """A hit, as far as it has come.

    Attributes:
        address: of the place.
        sp: the stack pointer there.
        task: address of the task that has come there.
        route: its way.
        place: that is probed; None for a return.
        probes: its probes.
        leads_to: where a return goes on; 0 for other hits.
        done: phases so far.
        stands: the machine in front of each of these, and of the next one.
        ends: of the phase that comes next, if these are known where it begins only.
    """

    address: int
    sp: int
    task: int
    route: HitRoute
    place: ProbedPlace | None
    probes: tuple[ServedProbe, ...]
    leads_to: int
    done: tuple[PhaseView, ...]
    stands: tuple[HitStand, ...]
    ends: tuple[int, ...] = ()

    @property
    def phase(self) -> HitPhase | None:
        """The phase that comes next; None where the hit is over."""
        phases = self.route.phases
        return phases[len(self.done)] if len(self.done) < len(phases) else None


class KernelHits:
    """The hit of the kernel's own that one machine stands in.

    Attributes:
        hit: that hit, as far as it has come; None where the machine stands in none.
        serving: the kernel's code that serves kprobes; None where the image does not tell.
        known: whether the kernel's image tells how its kprobes are served.
    """

    def __init__(self, boot: ControlledBoot) -> None:
        """Stand in none."""
        image = boot.opened.image
        self._boot, self._machine = boot, boot.machine
        self._arch = boot.opened.arch
        self._places = probed_places(image, boot.machine.addresses)
        self.serving = serving_code(image)
        self.known = self._places is not None and self.serving is not None
        self._names = KernelPlaceNames(boot)
        self._fresh: set[int] = set()
        self.hit: KernelHit | None = None
        self._shown = [
            one.name for one in self._arch.registers
            if one.group in ("general", "flags") and one.name != self._arch.roles.pc
        ]  # fmt: skip

    # -- stops ------------------------------------------------------------------------------

    @property
    def addresses(self) -> set[int]:
        """Places to stop at on the way to a hit; `meets` says whether one is."""
        if self._places is None or self.serving is None:
            return set()
        found = self._places.addresses() | self._fresh
        return found | {self.serving.trampoline, *self.serving.prepare}

    def meets(self) -> bool:
        """True where the machine stands at a hit.

        A kprobe that is about to be registered is remembered.
        """
        if self._places is None or self.serving is None:
            return False
        if self._machine.pc in self.serving.prepare:
            address = self._places.address_of(self._machine.register(_FIRST_ARGUMENT))
            if address and len(self._fresh) < _FRESH_MOST:  # the guest may register any number
                self._fresh.add(address)
            return False
        return self._begun() is not None

    # -- the hit at hand ----------------------------------------------------------------------

    @property
    def phase(self) -> HitPhase | None:
        """The phase that comes next; None where the machine stands in no hit, or at its end."""
        return self.hit.phase if self.hit is not None else None

    @property
    def begins(self) -> tuple[MachineMoment, ...]:
        """The moments in front of the phases that were carried out."""
        hit = self.hit
        return tuple(stand.moment for stand in hit.stands[: len(hit.done)]) if hit else ()

    @property
    def carried_out(self) -> str:
        """The name of the phase that was carried out last; "" for none."""
        return self.hit.done[-1].name if self.hit is not None and self.hit.done else ""

    @property
    def by_machinery(self) -> bool:
        """True if the phase that was carried out last was none of the probed code's own."""
        hit = self.hit
        return hit is not None and bool(hit.done) and not hit.done[-1].by_guest

    @property
    def any_probed(self) -> bool:
        """True if the kernel has probed a place by now."""
        return self._places is not None and bool(self._places.addresses() | self._fresh)

    def look(self) -> None:
        """Find out whether the machine stands in front of a hit; forget the one before."""
        self.hit = self._begun()

    def _begun(self) -> KernelHit | None:
        places, serving, machine = self._places, self.serving, self._machine
        if places is None or serving is None or self._boot.in_program:
            return None
        pc, sp = machine.pc, machine.register(self._arch.roles.sp)
        leads_to = 0
        place: ProbedPlace | None = None
        probes: tuple[ServedProbe, ...] = ()
        if pc == serving.trampoline:
            calls = places.returns(machine.task_address(), sp - _WORD)
            route = route_of_return(calls, serving)
            probes = tuple(call.probe for call in calls)
            if route is not None:
                leads_to = route.phases[-1].ends[0]
        else:
            code = machine.read(pc, BRANCH)
            place = places.place(pc) if code[:1] in (b"\xcc", b"\xe9", b"\xe8") else None
            route = route_of(place, code, serving) if place is not None else None
            probes = place.probes if place is not None else ()
        if route is None:
            return None
        hit = KernelHit(pc, sp, machine.task_address(), route, place, probes, leads_to, (), ())
        return replace(hit, stands=(self._stand(hit),))

    def _stand(self, hit: KernelHit) -> HitStand:
        machine = self._machine
        registers = {name: machine.register(name) for name in self._shown}
        return HitStand(machine.moment, machine.pc, registers, machine.read(hit.sp, _WORD))

    # -- phases -----------------------------------------------------------------------------

    @property
    def ends(self) -> tuple[int, ...]:
        """Places at which the next phase, or one behind it, is over."""
        hit = self.hit
        if hit is None:
            return ()
        behind = hit.route.phases[len(hit.done) :]
        return (hit.address, *hit.ends, *(at for each in behind for at in each.ends if at))

    def begin_phase(self) -> None:
        """Note where the function returns that the next phase is, if it is one."""
        hit = self.hit
        phase = hit.phase if hit is not None else None
        if hit is not None and phase is not None and phase.returns and not hit.ends:
            sp = self._machine.register(self._arch.roles.sp)
            leads_to = int.from_bytes(self._machine.read(sp, _WORD), "little")
            self.hit = replace(hit, ends=(leads_to,))

    def arrived(self) -> bool:
        """True where the machine stands at the end of the next phase, or of one behind it."""
        hit, machine = self.hit, self._machine
        if hit is None or machine.pc not in self.ends:
            return False
        sp = machine.register(self._arch.roles.sp)
        if machine.pc == hit.address and sp != hit.sp:
            return False
        return machine.task_address() == hit.task and abs(sp - hit.sp) < _STACK

    def follow(self) -> None:
        """Count phases that are over where the machine stands now."""
        hit = self.hit
        phase = hit.phase if hit is not None else None
        if hit is None or phase is None or self._machine.moment == hit.stands[-1].moment:
            return
        if phase.alone:
            self._count(hit, len(hit.done))
        elif self.arrived():
            pc, at = self._machine.pc, len(hit.done)
            phases = hit.route.phases
            over = [n for n in range(at, len(phases)) if pc in phases[n].ends]
            if pc in hit.ends or over:
                self._count(hit, at if pc in hit.ends else over[0])
            else:
                self.look()  # it begins anew, as behind a fault in its slot

    def _count(self, hit: KernelHit, number: int) -> None:
        """The phase of a number is over; those in front of it were left out."""
        at, phases = len(hit.done), hit.route.phases
        phase = phases[number]
        route = replace(hit.route, phases=(*phases[:at], *phases[number:]))
        begin, now = hit.stands[-1], self._stand(hit)
        before, names, text = begin, frozenset[str](), phase.text
        if phase.name in _VALUES:
            names = frozenset(self._shown)
        elif phase.name in _GIVEN_BACK:
            own = (moved for each in hit.done if each.by_guest for moved in each.registers)
            before, names = hit.stands[0], frozenset(self._shown) - {name for name, *_ in own}
        moved = tuple(
            (name, old, now.registers[name])
            for name, old in before.registers.items()
            if name in names and old != now.registers[name]
        )
        if phase.returns or (phase.ends and len(phase.ends) == 1 and not phase.by_guest):
            text = f"{text} ({self._names.text(begin.pc if phase.returns else now.pc)})"
        view = PhaseView(
            phase.name, text, begin.pc, now.pc, moved, self._changes(hit, phase, begin, now),
            phase.by_guest,
        )  # fmt: skip
        done, stands = (*hit.done, view), (*hit.stands, now)
        self.hit = replace(hit, route=route, done=done, stands=stands, ends=())

    def _changes(
        self, hit: KernelHit, phase: HitPhase, begin: HitStand, now: HitStand
    ) -> tuple[Change, ...]:
        """The memory that a phase has changed, as far as it concerns the code that is probed."""
        if phase.name == "trap":
            sp = now.registers[self._arch.roles.sp]
            return (Change(sp, b"", self._machine.read(sp, _WORD)),)
        if not phase.by_guest and begin.word != now.word:
            return (Change(hit.sp, begin.word, now.word),)
        return ()

    def go_back(self) -> None:
        """The machine stands in front of the phase that was carried out last."""
        hit = self.hit
        if hit is not None and hit.done:
            self.hit = replace(hit, done=hit.done[:-1], stands=hit.stands[:-1], ends=())
