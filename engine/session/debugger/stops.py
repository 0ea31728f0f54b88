"""The user's breakpoints by number, and what they ask before they stop the guest."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

from msgspec import Struct, field

from engine.errors import CommandError, KprobeTuiError
from engine.language.syntax import Expression
from engine.session.control.control import Control
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.places import CodePlace
from engine.session.debugger.script import ScriptLine
from engine.session.protocol import commands as cmd


class UserStop(Struct, kw_only=True):
    """Something that stops the guest for the user.

    Attributes:
        number: of it; 0 for one that a command places for its own use.
        temporary: it goes with its first stop.
        on: it is enabled.
        condition: stop only where this holds, "" for everywhere.
        tree: the condition, read.
        anywhere: it means the same in every frame.
        ignore: hits to pass by.
        hits: so far.
        disabling: it is disabled with the last of some stops.
        lasting: how many of these are left.
        commands: carried out at each stop.
        only: a command's own question, asked in place of the condition.
        fits: asked first at each hit: is what happens of the kind that is waited for?
        at_hit: asked at each hit that counts, where no other question lets it pass by.
        event: what has happened at its last hit, where there is more than one thing to catch.
        thread: number and id of the thread that it is for; None for all.
    """

    name: ClassVar[str] = "breakpoint"
    """The word that stands in front of its number."""

    number: int = 0
    temporary: bool = False
    on: bool = True
    condition: str = ""
    tree: Expression | None = None
    anywhere: bool = False
    ignore: int = 0
    hits: int = 0
    disabling: bool = False
    lasting: int = 0
    commands: tuple[ScriptLine, ...] = ()
    only: Callable[[], bool] | None = None
    fits: Callable[[], bool] | None = None
    at_hit: Callable[[], bool] | None = None
    event: str = ""
    thread: tuple[int, int] | None = None

    @property
    def label(self) -> str:
        """The words in front of the place where it stops: "Temporary breakpoint 1, "."""
        name = f"Temporary {self.name}" if self.temporary else self.name.capitalize()
        event = f" ({self.event})" if self.event else ""
        return f"{name} {self.number}{event}, "

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        return ""

    @property
    def detail(self) -> str:
        """A line of its own below it in `info breakpoints`; "" for none."""
        return ""

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return ""


class BreakLocation(Struct):
    """One address of a breakpoint.

    Attributes:
        place: where it is.
        on: it is enabled.
        valid: the condition means something there.
        probe: id of the breakpoint in the list of probes, 0 while it is off.
    """

    place: CodePlace
    on: bool = True
    valid: bool = True
    probe: int = 0

    @property
    def is_live(self) -> bool:
        """True if it is to stop the guest; for a stub the function that it leads to does."""
        return self.on and self.valid and not self.place.linkage


class UserBreakpoint(UserStop, kw_only=True):
    """A breakpoint of the user's.

    Attributes:
        locations: its addresses; none while it waits for a file that has the place.
        wanted: the place as it was asked for; None for one that stays where it is.
        hardware: the user has asked for one of the processor's.
        stands_for: what its hit stops the guest for, where that is not itself.
        hit: the location of its last hit.
        extra: the condition as it was given, while nobody could tell what it means.
    """

    locations: list[BreakLocation] = field(default_factory=list)
    wanted: WantedPlace | None = None
    hardware: bool = False
    stands_for: "UserStop | None" = None
    hit: BreakLocation | None = None
    extra: str = ""

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return "hw breakpoint" if self.hardware else "breakpoint"

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        if not self.locations:
            text = self.wanted.text if self.wanted is not None else ""
            return f"{text} {self.extra}".strip()
        place = self.locations[0].place
        wanted = self.wanted
        here = wanted is not None and wanted.address is not None and wanted.text[:1] != "*"
        if here and place.file:
            return f"{place.written}:{place.line}"  # the place where the user has stood
        return place_text(place)

    @property
    def is_split(self) -> bool:
        """True if its locations have lines of their own in `info breakpoints`."""
        found = self.locations
        return len(found) > 1 or any(not (one.on and one.valid) for one in found)

    @property
    def label(self) -> str:
        """The words in front of the place where it stops: "Temporary breakpoint 1.2, "."""
        name = f"Temporary {self.name}" if self.temporary else self.name.capitalize()
        event = f" ({self.event})" if self.event else ""
        part = f".{self.hit_number}" if len(self.locations) > 1 and self.hit else ""
        return f"{name} {self.number}{part}{event}, "

    @property
    def hit_number(self) -> int:
        """The number of the location of its last hit, from 1."""
        numbers = (n for n, one in enumerate(self.locations, 1) if one is self.hit)
        return next(numbers, 1)

    def at(self, address: int) -> BreakLocation | None:
        """Return the breakpoint's location at an address that may stop the guest."""
        for one in self.locations:
            if one.is_live and one.place.address == address:
                return one
        return None


def place_text(place: CodePlace) -> str:
    """A place as `info breakpoints` shows it."""
    if place.wanted:
        return place.wanted
    if place.file:
        return f"in {place.function} at {place.written}:{place.line}"
    return f"<{place.symbol}>"


class Sense(Struct, frozen=True):
    """A kind of watchpoint.

    Attributes:
        kind: the words of `info breakpoints` for it.
        title: the words at its stops.
        reads: loads stop the guest.
        writes: stores do.
    """

    kind: str
    title: str
    reads: bool
    writes: bool


CHANGES: Final = Sense("hw watchpoint", "Hardware watchpoint", reads=False, writes=True)
READS: Final = Sense("read watchpoint", "Hardware read watchpoint", reads=True, writes=False)
ACCESSES: Final = Sense(
    "acc watchpoint", "Hardware access (read/write) watchpoint", reads=True, writes=True
)
STEPPED: Final = Sense("watchpoint", "Watchpoint", reads=False, writes=True)
"""Of what only single steps can show: registers."""


class UserWatchpoint(UserStop, kw_only=True):
    """A watched expression of the user's.

    Attributes:
        sense: what stops the guest.
        text: the expression, as it is shown.
        arm: places it with its value of now, or takes it out.
        local: it lives with a call.
        story: what is told of the stop at hand, a line each.
    """

    sense: Sense
    text: str
    arm: Callable[[bool], None]
    local: bool = False
    story: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return self.sense.kind

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        return self.text


class Catchpoint(UserStop, kw_only=True):
    """A stop at something that happens.

    Attributes:
        catches: "syscall", "signal", "fork", "vfork" or "exec".
        names: of system calls or signals in the order they were given; empty for all.
    """

    name: ClassVar[str] = "catchpoint"
    catches: str
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return "catchpoint"

    @property
    def what(self) -> str:
        """The last column of `info breakpoints`."""
        if self.catches == "syscall":
            many = "s" if len(self.names) > 1 else ""
            return f'syscall{many} "{", ".join(self.names) or "<any syscall>"}" '
        if self.catches == "signal":
            return f'signal{"s" if len(self.names) > 1 else ""} "{" ".join(self.names)}" '
        return self.catches


class DynamicPrint(UserBreakpoint, kw_only=True):
    """A place at which values are printed, and where nothing stops: `dprintf`.

    Attributes:
        text: the format and the expressions.
    """

    name: ClassVar[str] = "dprintf"
    text: str = ""

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return "dprintf"


class UserProbe(UserBreakpoint, kw_only=True):
    """A probe of the list that an interface shares with these words."""

    @property
    def kind(self) -> str:
        """The words of `info breakpoints` for it."""
        return "probe"


class UserStops:
    """All of them.

    Attributes:
        all: by number.
        reached: those that stop the guest where it stands; emptied when it moves.
    """

    def __init__(
        self,
        control: Control,
        holds: Callable[[UserStop], bool],
        complain: Callable[[str], None],
        *,
        shared: bool = False,
    ) -> None:
        """None yet.

        Args:
            control: the guest.
            holds: says whether a stop's condition does, at a hit.
            complain: takes the locations of a breakpoint that cannot stop the guest.
            shared: the list of probes is an interface's, too, and its numbers hold.
        """
        self._control = control
        self._complain = complain
        self._shared = shared
        self._holds = holds
        self._running = False
        self._own: list[UserBreakpoint] = []
        self._numbers = 0
        self.all: dict[int, UserStop] = {}
        self.reached: list[UserStop] = []
        control.questions.accepts = self._accepts
        control.questions.named = self._event_of

    def numbered(self, stop: UserStop) -> UserStop:
        """Give a new stop its number, and keep it."""
        if not self._shared:
            self._numbers += 1
            stop.number = self._numbers
        else:
            locations = stop.locations if isinstance(stop, UserBreakpoint) else []
            rows = (one.probe for one in locations if one.probe)  # a stub has none
            stop.number = next(rows, 0) or self._control.probes.fresh_id()
        self.all[stop.number] = stop
        return stop

    def add(self, stop: UserBreakpoint) -> UserBreakpoint:
        """A new breakpoint.

        Raises:
            CommandError: none can stand there.
        """
        if self._shared and stop.locations:
            there = [self._standing(one) for one in stop.locations]
            if all(there):
                number = min(there)
                raise CommandError(
                    f"Breakpoint {number} is there; condition {number} EXPR changes it."
                )
        self.arm(stop)
        self.numbered(stop)
        return stop

    def _standing(self, wanted: BreakLocation) -> int:
        """The number of the user's breakpoint at a location, 0 for none."""
        there = (other for other in self.at(wanted.place.address) if not _is_probe(other))
        return next((other.number for other in there), 0)

    def add_own(
        self, place: CodePlace, only: Callable[[], bool], stands_for: UserStop | None = None
    ) -> UserBreakpoint:
        """One that a command places for its own use, and takes out with `delete`.

        Args:
            place: where.
            only: asked at each hit; False lets the guest run on.
            stands_for: what its hit stops the guest for, where that is not itself.

        Raises:
            CommandError: none can stand there.
        """
        stop = UserBreakpoint(locations=[BreakLocation(place)], only=only, stands_for=stands_for)
        self.arm(stop)
        self._own.append(stop)
        return stop

    def _breakpoints(self) -> Iterator[UserBreakpoint]:
        for stop in (*self._own, *self.all.values()):
            if isinstance(stop, UserBreakpoint):
                yield stop

    @property
    def passing_rows(self) -> list[int]:
        """The rows of the list of probes that are there for a command's own use alone."""
        rows = [(stop, one.probe) for stop in self._breakpoints() for one in stop.locations]
        users = {row for stop, row in rows if stop.number}
        return [row for stop, row in rows if row and not stop.number and row not in users]

    def joined(self, rows: Sequence[int]) -> UserStop | None:
        """One stop of rows of the list of probes that were one before; None if none is there."""
        found = [stop for stop in map(self.all.get, rows) if isinstance(stop, UserBreakpoint)]
        for other in found[1:]:
            found[0].locations += other.locations
            del self.all[other.number]
        return found[0] if found else None

    def arm(self, stop: UserBreakpoint) -> None:
        """Let a breakpoint stop the guest at all of its addresses that are on.

        An address where none can stand is told and leaves the breakpoint, if others are there.

        Raises:
            KprobeTuiError: none can stand at any of them.
        """
        refused: list[tuple[BreakLocation, KprobeTuiError]] = []
        for one in stop.locations:
            if one.is_live and not one.probe:
                try:
                    self._arm(stop, one)
                except KprobeTuiError as error:
                    refused.append((one, error))
        if refused and not any(one.probe for one in stop.locations):
            raise refused[0][1]
        for one, why in refused:
            stop.locations.remove(one)
            where = f"{one.place.address:#x} <{one.place.symbol}>"
            self._complain(f"Cannot insert a breakpoint at {where}: {why}")

    def _arm(self, stop: UserBreakpoint, wanted: BreakLocation) -> None:
        address = wanted.place.address
        for other in self._breakpoints():
            for one in () if _is_probe(other) else other.locations:
                if one is not wanted and one.probe and one.place.address == address:
                    wanted.probe = one.probe
                    if self._shared and not (other.on and one.is_live):
                        self._control.loop.carry_out(cmd.Enable((one.probe,)))
                    return
        toggle = self._control.probes.toggle_break if self._running else self._toggle
        toggle(self._place_text(wanted.place))
        wanted.probe = self._control.probes.rows[-1].id

    def _toggle(self, place: str) -> None:
        self._control.loop.carry_out(cmd.ToggleBreak(place))

    def _place_text(self, place: CodePlace) -> str:
        """A place in the guest as the list of probes takes it: in a file.

        Raises:
            CommandError: it is in none.
        """
        address = place.address
        if self._shared and not place.counter:  # a list that people read
            named = self._control.probes.place_text(address)
            if named:
                return named
        modules = self._control.session.seen.modules
        module = modules.at(address)
        if module is not None and module is modules.main and not place.counter:
            return f"{address - module.bias:#x}"
        offset = None if module is None else module.image.file_offset(address - module.bias)
        if module is None or offset is None:
            raise CommandError(
                f"Cannot insert a breakpoint at {address:#x}: no file's code is there."
            )
        counter = f"({place.counter:#x})" if place.counter else ""
        return f"{module.name}:{offset:#x}{counter}"

    def _disarm(self, gone: BreakLocation) -> None:
        """Let one address of a breakpoint stop nobody."""
        probe, gone.probe = gone.probe, 0
        used = any(one.probe == probe for stop in self._breakpoints() for one in stop.locations)
        if not probe:
            return
        if used:
            if self._shared and not self._is_live(probe):
                self._control.loop.carry_out(cmd.Enable((probe,), on=False))
            return
        if self._running:
            self._control.probes.delete((probe,))
        else:
            self._control.loop.carry_out(cmd.Delete((probe,)))

    def _is_live(self, probe: int) -> bool:
        """True for a row that somebody wants to stop at."""
        return any(
            stop.on and one.is_live and one.probe == probe
            for stop in self._breakpoints()
            for one in stop.locations
        )

    def delete(self, stop: UserStop) -> None:
        """Forget it."""
        if isinstance(stop, UserBreakpoint):
            for one in stop.locations:
                self._disarm(one)
        elif isinstance(stop, UserWatchpoint) and stop.on:
            stop.arm(False)
        if stop.number:
            del self.all[stop.number]
        else:
            self._own = [other for other in self._own if other is not stop]

    def switch(self, stop: UserStop, *, on: bool) -> None:
        """Let a stop be, or keep it quiet."""
        was, stop.on = stop.on, on
        if isinstance(stop, UserWatchpoint) and was != on:
            stop.arm(on)
        if isinstance(stop, UserBreakpoint):
            self.settle(stop)

    def settle(self, stop: UserBreakpoint) -> None:
        """Take note of switched locations: the guest stops at those that are on, if it is.

        Raises:
            CommandError: none can stand at one of them.
        """
        for one in stop.locations:
            if self._shared and one.probe:
                self._control.loop.carry_out(cmd.Enable((one.probe,), self._is_live(one.probe)))
            elif not (stop.on and one.is_live):
                self._disarm(one)
        if stop.on:
            self.arm(stop)

    def move(self, stop: UserBreakpoint, places: Sequence[CodePlace]) -> None:
        """Give a breakpoint other addresses; what is known of those that stay is kept.

        Raises:
            CommandError: none can stand at one of them.
        """
        for gone in self._take(stop, places):
            self._disarm(gone)
        self.settle(stop)

    @staticmethod
    def _take(stop: UserBreakpoint, places: Sequence[CodePlace]) -> list[BreakLocation]:
        """Give a breakpoint locations; those that it had and has no more."""
        known = {one.place.address: one for one in stop.locations}
        stop.locations = [
            known.pop(each.address) if each.address in known else BreakLocation(each)
            for each in places
        ]
        return list(known.values())

    @contextmanager
    def while_running(self) -> Iterator[None]:
        """Change them between two instructions of a guest that runs."""
        self._running = True
        try:
            yield
        finally:
            self._running = False

    def restarted(self, places: Callable[[UserBreakpoint], Sequence[CodePlace]]) -> None:
        """The program is put back to its beginning: its breakpoints are placed afresh.

        Args:
            places: gives the addresses of one that was asked for by a place.
        """
        for each in self.all.values():
            each.hits = 0
        if not self._shared:  # else the list of probes has seen to it
            placed = [one for stop in self._breakpoints() for one in stop.locations if one.probe]
            there = {row.id for row in self._control.probes.rows}
            gone = there.intersection(one.probe for one in placed)
            self._control.loop.carry_out(cmd.Delete(tuple(gone)))
            for one in placed:
                one.probe = 0
            for stop in self._breakpoints():
                if stop.wanted is not None:
                    self._take(stop, places(stop))
            for stop in self._breakpoints():
                if stop.on:
                    self.arm(stop)
        for watch in self.watchpoints:
            if watch.local:
                watch.on = False  # the call that it belongs to is gone
                self.delete(watch)
            elif watch.on:
                watch.arm(True)

    @property
    def watchpoints(self) -> list[UserWatchpoint]:
        """The watchpoints, by number."""
        return [stop for stop in self.all.values() if isinstance(stop, UserWatchpoint)]

    def adopt(self, at: Callable[[int], CodePlace]) -> None:
        """Take over what the list of probes has come to; `at` gives the place of an address."""
        rows = {view.row.id: view for view in self._control.probe_views()}
        known = set[int]()
        for number, stop in list(self.all.items()):
            if not isinstance(stop, UserBreakpoint) or not stop.locations:
                continue
            had_rows = any(one.probe for one in stop.locations)
            kept = [one for one in stop.locations if not one.probe or one.probe in rows]
            placed = [one for one in kept if one.probe]
            stop.locations = kept
            known |= {one.probe for one in placed}
            if not placed:
                if had_rows:
                    del self.all[number]
            elif len(kept) == 1 or _is_probe(stop):
                stop.on = rows[placed[0].probe].row.enabled
            elif stop.on:
                for one in placed:
                    one.on = rows[one.probe].row.enabled
        own = {one.probe for stop in self._own for one in stop.locations}
        for number, view in rows.items():
            if number in known or number in own:
                continue
            make = UserBreakpoint if view.kind == "b" else UserProbe
            places = [at(address) for address in view.addresses] or [CodePlace(0)]
            locations = [BreakLocation(place, probe=number) for place in places]
            self.all[number] = make(number=number, locations=locations, on=view.row.enabled)
        self.all = dict(sorted(self.all.items()))

    def find(self, number: int) -> UserStop:
        """A stop by number.

        Raises:
            CommandError: there is none.
        """
        stop = self.all.get(number)
        if stop is None:
            raise CommandError(f"No breakpoint number {number}.")
        return stop

    def at(self, address: int) -> list[UserBreakpoint]:
        """The user's breakpoints at an address that are on."""
        return [
            stop
            for stop in self._breakpoints()
            if stop.number and stop.on and stop.at(address) is not None
        ]

    def of_row(self, row: int) -> UserStop | None:
        """The stop that a row of the list of probes belongs to."""
        for stop in self._breakpoints():
            if stop.number and any(one.probe == row for one in stop.locations):
                return stop
        return self.all.get(row)

    def _accepts(self, probe: int) -> bool:
        """A breakpoint or probe in the list is hit: does anybody want to stop?"""
        session = self._control.session
        pc = session.cpu.read_register(session.arch.roles.pc)
        stops: list[UserBreakpoint] = []
        known = False
        for stop in self._breakpoints():
            mine = [one for one in stop.locations if one.probe == probe]
            known = known or bool(mine)
            live = [one for one in mine if stop.on and one.is_live]
            if live:
                stop.hit = next((one for one in live if one.place.address == pc), live[0])
                stops.append(stop)
        if not stops:
            return not known  # one that was placed without these words
        wanted = [stop for stop in stops if self.wants(stop)]
        self.reached += [stop.stands_for or stop for stop in wanted]
        return bool(wanted)

    def _event_of(self, probe: int) -> str:
        """Say what a row of the list of probes catches; "" for a mere place.

        One of several places has the breakpoint's number: its row has another one.
        """
        for stop in self._breakpoints():
            mine = [one for one in stop.locations if one.probe == probe] if stop.number else []
            if mine and stop.event:
                return f"{stop.name} {stop.number}: {stop.event}"
            if mine and len(stop.locations) > 1:
                part, place = stop.locations.index(mine[0]) + 1, mine[0].place
                return f"{stop.name} {stop.number}.{part}: {place.function or place.symbol}"
        return ""

    def wants(self, stop: UserStop) -> bool:
        """Count a hit of a stop; True if it stops the guest.

        As in gdb's bpstat_check_breakpoint_conditions, one whose condition does not hold is
        not hit, and one that is ignored is.
        """
        if stop.only is not None:
            return stop.only()
        if stop.thread and stop.thread[1] != self._control.session.machine.current.tid:
            return False
        if stop.fits is not None and not stop.fits():
            return False
        if stop.condition and not self._holds(stop):
            return False
        stop.hits += 1
        if stop.ignore:
            stop.ignore -= 1
            return False
        stops = stop.at_hit is None or stop.at_hit()
        if stops and stop.disabling:  # as in gdb, it stays so where it is enabled again
            stop.lasting = max(stop.lasting - 1, 0)
            stop.on = bool(stop.lasting)
        return stops


def placed_text(stop: UserBreakpoint, displacement: int = 0) -> str:
    """The line that says where a breakpoint has been placed (gdb/breakpoint.c, say_where).

    Args:
        stop: the breakpoint.
        displacement: the program's distance in memory from the addresses that are shown.
    """
    kind = "Temporary breakpoint" if stop.temporary else "Breakpoint"
    kind = "Hardware assisted breakpoint" if stop.hardware else kind
    if not stop.locations:
        return f"{kind} {stop.number} ({stop.what}) pending."
    first, many = stop.locations[0].place, len(stop.locations)
    where = ""
    if first.file and many == 1:
        where = f": file {first.written}, line {first.line}."
    elif first.file and stop.wanted is not None:
        text = f"{first.file}:{stop.wanted.line}" if stop.wanted.current else stop.wanted.text
        where = f": {text}."
    count = f" ({many} locations)" if many > 1 else ""
    return f"{kind} {stop.number} at {first.address - displacement:#x}{where}{count}"


def _is_probe(stop: UserStop) -> bool:
    return isinstance(stop, UserProbe)
