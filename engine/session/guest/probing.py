"""Probes of a guest: in its first program, and in whatever comes of that by fork and exec.

A user's probe belongs to a file. In each address space one of its own stands for it (a twin;
in the first one it is the user's), as uprobes are one breakpoint for each process that maps
the file: it is copied by fork with all that is probed, and armed again after an exec wherever
the file is mapped. Hits of twins are counted as the user's probe's.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

from engine.arch.plan import Mode
from engine.cpu.base import Stop
from engine.errors import GuestFaultError, ProbeRejectedError
from engine.guest.text import TextOverlay
from engine.linux.space import AddressSpace
from engine.probes.detourroom import RowMemory
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.probes.return_catcher import Noted
from engine.probes.site import InMemory
from engine.session.guest.guest_code import KnownFiles
from engine.session.guest.probed_space import ProbedSpace, ProbingRules
from engine.session.guest.wanted_probes import Wanted, twin_of
from engine.session.program.places import Place, guest_address
from engine.session.program.verdicts import Verdicts

if TYPE_CHECKING:
    from engine.session.guest.dormant_wanted import DormantWanted
    from engine.session.guest.session import Session
    from engine.session.program.implementations import Implementations

OnStop = Callable[[ProbedSpace, Stop], Stop | None]
"""Sees a stop of the CPU in an address space; what is left of it for the guest's kernel."""

OnMapped = Callable[[AddressSpace, int, int], None]
"""Told (address space, start, size) of code that has come."""


class Probing:
    """The probes of a guest.

    Attributes:
        verdicts: places and verdicts from the files alone.
        notices: what happened to probes without the user's doing, in order, once each.
        indirect: what indirect functions were found to stand for, in words, once each.
        spaces: what is probed in each address space.
        mapped: told of code that has come, in any address space.
    """

    def __init__(self, guest: "Session", mode: Mode = Mode.STRICT) -> None:
        """Wire the machinery to a loaded guest that has not run yet."""
        self._guest = guest
        program = guest.opened.program(guest.tree(), guest.user_files)
        technique = guest.config.technique
        self._program = program
        self.verdicts = Verdicts(
            guest.arch,
            program,
            mode,
            technique,
            self._in_memory,
            lambda file, symbol: self.picked(file, symbol),
        )
        self.indirect: list[str] = []
        self.notices: list[str] = []
        self._noticed: set[str] = set()
        self.mapped: list[OnMapped] = []
        files: KnownFiles = {}
        self._rules = ProbingRules(self.verdicts, mode, files, self._notify, self._mapped)
        self._follows = guest.config.follow
        self._on_stop: OnStop | None = None
        self._attached: tuple[RowMemory, Callable[[], bytes]] | None = None
        self._damaged = self._changes = self._attending = 0
        self._stood: set[int] = set()  # of probes that were placed in other processes
        self._told = False  # of processes without probes
        self._noted: Noted | None = None
        self.spaces: dict[AddressSpace, ProbedSpace] = {}
        self._here = self._add(guest.space)
        self._here.manager.enter()
        events = guest.machine.spaces
        events.copied, events.replaced, events.ended = self._copied, self._replaced, self._ended
        events.lent = self._lent
        guest.kernel.switched.append(self._switched)

    def _add(self, space: AddressSpace) -> ProbedSpace:
        made = self.spaces[space] = ProbedSpace(self._guest, space, self._rules)
        made.manager.leave()
        if self._on_stop is not None:
            space.hooks.stopped = partial(self._on_stop, made)
        if self._attached is not None:
            made.manager.techniques.attach(*self._attached)
        if self._attending:
            made.manager.returns.attend(self._attending)
        if self._noted is not None:
            made.manager.returns.note(self._noted)
        return made

    def _in_memory(self, place: Place) -> InMemory | None:
        """The code of a place's file in the memory of the thread that runs, as it was written."""
        here = self.here
        carried = self._guest.user_files
        if carried is not None and carried.has(place.path, place.image):
            return None  # nothing of it runs yet
        address = guest_address(place, here.space.modules, here.space.memory)
        if address is None:
            return None
        bias = address - place.link

        def read(link: int, written: bytes) -> bytes:
            try:
                return here.overlay.original(link + bias, len(written))
            except GuestFaultError:
                return written

        return read

    @cached_property
    def picked(self) -> "Implementations":
        """Tells what indirect functions stand for."""
        from engine.session.guest.resolving import GuestChoice  # few are probed
        from engine.session.program.implementations import Implementations

        program = self._program
        choice = self._guest.opened.choice(program) or GuestChoice(program, self._guest.another)
        found = Implementations(program, choice, self._tell_indirect)
        self._guest.lent.append(found.close)
        return found

    def _tell_indirect(self, text: str) -> None:
        self.indirect.append(text)
        self._notify(text)

    # -- where ----------------------------------------------------------------------------

    @property
    def first(self) -> ProbedSpace:
        """The address space of the guest's first process."""
        return self.spaces[self._guest.space]

    @property
    def here(self) -> ProbedSpace:
        """The address space of the thread that runs; the first process's where that has ended."""
        return self.spaces.get(self._guest.seen) or self.first

    @property
    def manager(self) -> ProbeManager:
        """The machinery in the guest's first process."""
        return self.first.manager

    @property
    def overlay(self) -> TextOverlay:
        """The patched bytes of the guest's first process."""
        return self.first.overlay

    @property
    def changes(self) -> int:
        """Counts changes of what is planted, in any process."""
        return self._changes + sum(one.overlay.changes for one in self.spaces.values())

    @property
    def pending(self) -> list[Wanted]:
        """Probes that wait for their file in the guest's first process."""
        return self.first.pending

    @property
    def damaged(self) -> int:
        """Calls lost, at least, as the program has written to what code in the guest records."""
        return self._damaged + sum(one.manager.returns.damaged for one in self.spaces.values())

    def where(self, name: str) -> int | None:
        """Address of a symbol in the first process; None while its file is not mapped."""
        return self.first.addresses.where(name)

    def standing(self) -> tuple[int, int]:
        """(tick, address) of the program's own next instruction, of a guest that stands.

        In front of a return's trampoline that is the one behind the return, in a tick of its own.
        """
        guest = self._guest
        pc = guest.cpu.read_register(guest.arch.roles.pc)
        manager = self.here.manager
        trampoline = manager.returns.trampoline
        point = manager.points.get(pc) if trampoline is not None and trampoline[0] == pc else None
        calls = manager.returns.arriving(point) if point is not None else ()
        if calls:
            return guest.cpu.coming() + 1, calls[0].ret_addr
        return guest.cpu.coming(), manager.original_pc(pc)

    # -- probes by place ------------------------------------------------------------------

    def place(self, wanted: Iterable[Wanted]) -> None:
        """Register probes at places, all or none; those of files not mapped yet wait.

        They are placed in all processes; what cannot be there but in the first is told.

        Raises:
            ProbeRejectedError: one of them cannot be placed in the first process.
        """
        asked = list(wanted)
        first = self.first
        for one in asked:
            if isinstance(one.probe, Kretprobe):
                self._allow_return(one, one.probe)
        first.place(asked)
        for space in self.spaces.values() if self._follows else ():
            if space is not first:
                self._place_too(space, asked)

    def waits(self, place: Place) -> bool:
        """True if all probes in a place's file wait until the first process maps it."""
        return len(self.spaces) == 1 and self.first.addresses.waits(place)

    def wait(self, rows: "DormantWanted") -> None:
        """Have probes wait for their file (see `waits`)."""
        self.first.wait(rows)

    def _allow_return(self, one: Wanted, probe: Kretprobe) -> None:
        """Refuse a return probe whose trampoline would damage the program.

        Raises:
            ProbeRejectedError: strict mode does not take it.
        """
        manager = self.first.manager
        strict = (probe.mode or manager.mode) is Mode.STRICT
        if not strict or manager.returns.trampoline is None:
            return
        from engine.session.program.return_places import refusal, spoiled_return  # few have one

        found = spoiled_return(self._guest.arch, one.place, manager.returns.changes)
        if found is not None:
            raise ProbeRejectedError(one.place.link, refusal(*found), "EINVAL", found[0].rule)

    def _place_too(self, space: ProbedSpace, asked: list[Wanted]) -> None:
        for one in asked:
            if one.place.file_offset is None:
                continue
            made = twin_of(one.probe)
            made.addr = None
            try:
                space.place([one.of(made)])
            except ProbeRejectedError as error:
                self._notify(f"{one.place.text}: not placed in another process: {error}")
            else:
                space.twins[id(one.probe)] = made, one.probe

    def place_each(self, wanted: Iterable[Wanted]) -> list[tuple[Place, str]]:
        """Register as many as can be: the places that cannot take a probe, and why."""
        refused: list[tuple[Place, str]] = []
        good: list[Wanted] = []
        first = self.first
        for one in wanted:
            address = first.addresses.of(one.place)
            try:
                if isinstance(one.probe, Kretprobe):
                    self._allow_return(one, one.probe)
                if address is not None and (one.traces or address not in first.manager.points):
                    first.settle(one, address)
            except ProbeRejectedError as error:
                refused.append((one.place, error.reason))
            else:
                good.append(one)
        self.place(good)
        return refused

    def remove(self, probes: Iterable[Kprobe]) -> None:
        """Take probes out of all processes, those that wait for their file among them."""
        gone = list(probes)
        for space in self.spaces.values():
            space.fold()
            space.remove([made for _, made in self._in(space, gone)])
            for probe in gone:
                space.twins.pop(id(probe), None)

    def switch(self, probe: Kprobe, *, on: bool) -> None:
        """Let a probe's handlers run, or keep it quiet, in all processes."""
        for space in self.spaces.values():
            for _, made in self._in(space, [probe]):
                space.switch(made, on=on)

    def renew(self, probe: Kprobe) -> None:
        """Prepare a probe anew in all processes: it is to record something else."""
        for space in self.spaces.values():
            for _, made in self._in(space, [probe]):
                space.renew(made)

    def _in(self, space: ProbedSpace, probes: Iterable[Kprobe]) -> Iterator[tuple[Kprobe, Kprobe]]:
        """The probes that stand for the user's in an address space."""
        first = space is self.first
        for probe in probes:
            found = space.twins.get(id(probe))
            if found is not None:
                yield probe, found[0]
            elif first:
                yield probe, probe

    def collect(self) -> None:
        """Bring the counts of the user's probes up to date."""
        for space in self.spaces.values():
            self._stood |= space.fold()

    def tally(self) -> tuple[int, int]:
        """(places, hits) of the user's probes, those among them whose code is gone by now."""
        self.collect()
        probes = {
            id(probe): probe
            for point in self.manager.placed()
            for probe in point.probes
            if not probe.machinery
        }
        gone = [
            item
            for item in self.pending
            if (item.fate.again or id(item.probe) in self._stood) and id(item.probe) not in probes
        ]
        places = {(item.place.path, item.place.link) for item in gone}
        probes.update((id(item.probe), item.probe) for item in gone)
        return (
            len(self.manager.placed()) + len(places),
            sum(probe.hits for probe in probes.values()),
        )

    def never_placed(self) -> list[str]:
        """Places of probes whose file was mapped in no process, as they were given."""
        self.collect()
        return [
            item.text
            for item in self.pending
            if not item.fate.again and id(item.probe) not in self._stood
        ]

    def left_behind(self) -> list[Wanted]:
        """Probes whose code the program has taken away, and not put anywhere else."""
        return [item for item in self.pending if item.fate.left is not None]

    # -- for those above ------------------------------------------------------------------

    def watch_stops(self, on_stop: OnStop) -> None:
        """Let somebody see each stop of the CPU before the machinery does."""
        self._on_stop = on_stop
        for space in self.spaces.values():
            space.space.hooks.stopped = partial(on_stop, space)

    def attend_returns(self, more: int) -> None:
        """So many more (or fewer) who stop the guest at returns want to see them."""
        self._attending += more
        for space in self.spaces.values():
            space.manager.returns.attend(more)

    def note_returns(self, noted: Noted) -> None:
        """From now on somebody hears of each change that is made for a call, in any process."""
        self._noted = noted
        for space in self.spaces.values():
            space.manager.returns.note(noted)

    def stand_in(self, probe: Kprobe, space: ProbedSpace) -> Kprobe | None:
        """The probe that stands for a user's in an address space, None for none."""
        return next((made for _, made in self._in(space, [probe])), None)

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        """A trace begins: where the rows of code in the guest go, the running thread's name."""
        if self._attached is None:
            self._attached = sink, comm
        for space in self.spaces.values():
            space.manager.techniques.attach(sink, comm)

    def release(self) -> None:
        """The trace that was the first has come to nothing: the next one is the first."""
        self._attached = None
        for space in self.spaces.values():
            space.manager.techniques.release()

    # -- processes ------------------------------------------------------------------------

    def _notify(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self.notices.append(text)

    def _mapped(self, space: AddressSpace, start: int, size: int) -> None:
        for told in self.mapped:
            told(space, start, size)

    def _switched(self) -> None:
        """Note that another thread runs from here on."""
        if self.here is self._here:
            self._here.manager.switched()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """The processor has changed to another address space."""
        self._here.manager.leave()
        self._here = self.here
        self._here.manager.enter()

    def _copied(self, old: AddressSpace, new: AddressSpace) -> None:
        """A new process begins with a copy of the memory."""
        there = self.spaces.get(old)
        if there is None:
            return
        if self._follows:
            self._add(new).follow(there)
            return
        there.leave(new.memory)
        if not self._told:
            self._told = True
            self._notify(
                "the guest has forked; its new processes run without probes (--follow no)"
            )

    def _lent(self, space: AddressSpace, parent: int, child: int) -> None:
        """A new process runs in the memory of another one (vfork)."""
        there = self.spaces.get(space)
        if there is not None:
            there.manager.returns.lend(parent, child)

    def _replaced(self, old: AddressSpace, new: AddressSpace) -> None:
        """A process has begun another program."""
        there, first = self.spaces.get(old), self._guest.space is new
        if there is None and not first:
            return
        if self._follows and there is not None:
            self._add(new).begin(there, take=not old.users)
        elif first:
            self._add(new)
            if there is not None and there.manager.placed():
                self._notify(
                    "the guest began another program; its probes stayed with the first "
                    "(--follow no)"
                )
        if there is self._here:
            self._go_on()

    def _ended(self, space: AddressSpace) -> None:
        """Drop an address space in which no thread runs any more."""
        gone = self.spaces.pop(space, None)
        if gone is not None:
            self._stood |= gone.fold()
            self._damaged += gone.manager.returns.damaged
            self._changes += gone.overlay.changes
