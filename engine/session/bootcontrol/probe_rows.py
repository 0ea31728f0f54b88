"""The probes and breakpoints that a user has placed in a booted kernel, as a list.

The list outlives a boot: its rows are all that is needed to place the same in another one.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.cpu.unicorn_watches import READ, WRITE, DataRange
from engine.errors import CommandError, KprobeTuiError, ProbeError
from engine.message_text import counted
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.places import KernelPlaceNames
from engine.session.bootcontrol.scope import KernelScope
from engine.session.booted.kernel_events import selected
from engine.session.booted.kernel_probes import ArmedBootProbe
from engine.session.booted.tracing import BootTracing, TracedLine
from engine.session.protocol.probes import EventTexts, ProbeRow, ProbeView
from engine.session.protocol.report import Report

WATCHES: Final = {"watch": WRITE, "rwatch": READ, "awatch": READ | WRITE}
"""Words of watchpoints, and the accesses that each stops at."""
TEMPORARY: Final = "tbreak "
_WATCHED_MOST: Final = 4096
_CONDITION: Final = re.compile(r"\s+if\b\s*")
_IF: Final = " if "


class BootEntry(Struct, eq=False):
    """A row and what came of it.

    Attributes:
        row: as the user has asked.
        events: group and name of those that it makes.
        addresses: where the machine stops for it.
        traced: what came of a definition; None for a breakpoint.
        hits: stops at a breakpoint.
        ignored: stops that are passed by before one ends a motion.
        condition: of a breakpoint: an expression that has to hold; "" for none.
        temporary: it goes with its first stop.
        watched: the data of a watchpoint; None for others.
        value: what stood there when the machine stood last.
    """

    row: ProbeRow
    events: tuple[tuple[str, str], ...] = ()
    addresses: tuple[int, ...] = ()
    traced: TracedLine | None = None
    hits: int = 0
    ignored: int = 0
    condition: str = ""
    temporary: bool = False
    watched: DataRange | None = None
    value: bytes = b""

    def is_passed_by(self) -> bool:
        """True for a stop that the user wants to be passed by, which is one less then."""
        if not self.ignored:
            return False
        self.ignored -= 1
        return True

    def entered_at(self, tracing: BootTracing, pc: int) -> tuple[ArmedBootProbe, ...]:
        """Find the entry's probes at an address, without return probes."""
        armed = (one for event in self.events for one in tracing.armed_of(*event))
        return tuple(one for one in armed if one.probe.place == pc and not one.probe.is_return)


class BootProbeRows:
    """The list of one boot.

    Attributes:
        entries: in the order in which they were placed.
        failed: rows of an earlier boot that could not be placed, in words.
    """

    def __init__(self, boot: ControlledBoot, rows: tuple[ProbeRow, ...] = ()) -> None:
        """Place rows of an earlier boot, in front of the first instruction."""
        self.entries: list[BootEntry] = []
        self.failed: list[str] = []
        self._boot = boot
        self._places = KernelPlaceNames(boot)
        self._next = 1
        for row in rows:
            try:
                self._place(row)
            except KprobeTuiError as error:
                self.failed.append(f"{row.line}: {error}")

    @property
    def rows(self) -> tuple[ProbeRow, ...]:
        """The rows, to be placed again."""
        return tuple(entry.row for entry in self.entries)

    @property
    def lines(self) -> tuple[str, ...]:
        """The definitions."""
        return tuple(entry.row.line for entry in self.entries if entry.row.kind == "p")

    def found(self, number: int) -> BootEntry | None:
        """The entry of a row; None where there is none."""
        return next((one for one in self.entries if one.row.id == number), None)

    def entry(self, number: int) -> BootEntry:
        """The entry of a row.

        Raises:
            CommandError: there is none.
        """
        found = self.found(number)
        if found is None:
            raise CommandError(f"there is no probe {number}")
        return found

    # -- placing ----------------------------------------------------------------------------

    def define(self, line: str, replaces: int | None, *, stops: bool) -> str:
        """Carry a definition out; what came of it in words.

        Raises:
            KprobeTuiError: it is not accepted; nothing has changed.
        """
        line = line.strip()
        old = self.entry(replaces) if replaces is not None else None
        at = self.entries.index(old) if old is not None else len(self.entries)
        if old is not None:
            self._take_out(old)
        wanted = stops or bool(old is not None and old.row.stops)
        row = ProbeRow(replaces or self._fresh_id(), "p", line, True, wanted)
        try:
            self._place(row, at)
        except KprobeTuiError:
            if old is not None:
                self._place(old.row, at)
            raise
        entry = self.entries[at] if at < len(self.entries) else None
        if entry is None or entry.row is not row:
            return f"deleted by {line}"
        return f"placed {line}"

    def needs_begin(self, line: str) -> bool:
        """True for a line whose events are told from a boot's begin on only."""
        if line.lstrip()[:1] in ("-", "!", "#", ""):
            return False
        return selected(line) is not None or self._places.is_outside(line)

    def toggle(self, place: str) -> str:
        """A breakpoint at a place, or none any more; what was done.

        Raises:
            CommandError: there is no such place.
        """
        address = self._places.address(place)
        for entry in self.entries:
            if entry.row.kind == "b" and entry.addresses == (address,):
                self.entries.remove(entry)
                return f"breakpoint at {entry.row.line} deleted"
        self.add_stop(place)
        return f"breakpoint at {place.strip()}"

    def add_stop(self, line: str) -> None:
        """Add a breakpoint or a watchpoint.

        Args:
            line: `PLACE [if CONDITION]`, with `TEMPORARY` in front for one that goes with its
                first stop; or one of `WATCHES` and an expression.

        Raises:
            CommandError: there is no such place, or the expression has no place in memory.
            GuestFaultError: what leads to the place cannot be read.
        """
        self._place(ProbeRow(self._fresh_id(), "b", line.strip(), True, True))

    def _fresh_id(self) -> int:
        """The number of the next row, which has it once it is placed."""
        return self._next

    def _place(self, row: ProbeRow, at: int | None = None) -> None:
        entry = BootEntry(row)
        if row.kind == "b" and row.line.partition(" ")[0] in WATCHES:
            entry.watched = self._watched(row.line)
            entry.value = self._boot.machine.read(entry.watched.first, entry.watched.size)
        elif row.kind == "b":
            place, _, condition = _CONDITION.sub(_IF, row.line, count=1).partition(_IF)
            entry.temporary = place.startswith(TEMPORARY)
            entry.condition = condition.strip()
            entry.addresses = (self._places.address(place.removeprefix(TEMPORARY)),)
        else:
            entry.traced = self._boot.tracing.define(row.line)
            added = entry.traced.added
            entry.events = tuple((info.group, info.name) for info in entry.traced.infos)
            if not entry.events:
                entry.events = tuple((one.group, one.event) for one in added.probes)
            self._forget_gone(added.gone)
            if not entry.events and not added.waiting:
                return  # it takes something away
            self._find_addresses(entry)
            try:
                self._obey(entry)
            except KprobeTuiError:
                for event in entry.events:
                    self._boot.tracing.remove(*event)
                raise
        self._next = max(self._next, row.id + 1)
        if at is None:
            self.entries.append(entry)
        else:
            self.entries.insert(at, entry)

    def _watched(self, line: str) -> DataRange:
        """The data that a watchpoint's line means now."""
        word, _, text = line.partition(" ")
        text = text.strip().removeprefix("-location").removeprefix("-l").strip()
        if not text:
            raise CommandError("Argument required (expression to compute).")
        value = KernelScope(self._boot).known(text)
        size = value.type.size or 0
        if value.address is None or not size:
            raise CommandError(f"Cannot watch constant value `{text}'.")
        if size > _WATCHED_MOST:
            raise CommandError(f"{text}: {_WATCHED_MOST} bytes are watched at the most")
        return DataRange(value.address, size, WATCHES[word])

    def _find_addresses(self, entry: BootEntry) -> None:
        tracing = self._boot.tracing
        found = [one for event in entry.events for one in tracing.armed_of(*event)]
        entry.addresses = tuple(dict.fromkeys(one.probe.place for one in found))

    def _obey(self, entry: BootEntry) -> None:
        """Give a fresh probe what its row says besides the definition."""
        row, tracing = entry.row, self._boot.tracing
        for event in entry.events:
            if row.rules.filter:
                tracing.set_filter(*event, row.rules.filter)
            for text in row.rules.triggers:
                tracing.add_trigger(*event, text)
            if not row.enabled:
                tracing.enable(*event, on=False)

    def _forget_gone(self, gone: tuple[tuple[str, str], ...]) -> None:
        for entry in list(self.entries):
            entry.events = tuple(event for event in entry.events if event not in gone)
            waits = entry.traced is not None and bool(entry.traced.added.waiting)
            if entry.row.kind == "p" and not entry.events and (gone or not waits):
                self.entries.remove(entry)

    def _take_out(self, entry: BootEntry) -> None:
        self.entries.remove(entry)
        for event in entry.events:
            self._boot.tracing.remove(*event)

    # -- changing ---------------------------------------------------------------------------

    def delete(self, ids: tuple[int, ...]) -> str:
        """Take rows out.

        Raises:
            CommandError: one of them is not there; none is taken out then.
        """
        for entry in [self.entry(number) for number in dict.fromkeys(ids)]:
            self._take_out(entry)
        return f"{counted(len(ids), 'probe')} deleted"

    def enable(self, ids: tuple[int, ...], *, on: bool) -> str:
        """Let rows record and stop, or no longer; raises `CommandError` likewise."""
        for entry in [self.entry(number) for number in ids]:
            for event in entry.events:
                self._boot.tracing.enable(*event, on=on)
            entry.row = replace(entry.row, enabled=on)
        return f"{counted(len(ids), 'probe')} {'on' if on else 'off'}"

    def ignore(self, number: int, count: int) -> None:
        """Pass the next stops at a row by; raises `CommandError` likewise."""
        self.entry(number).ignored = count

    def set_condition(self, number: int, condition: str) -> None:
        """Stop at a breakpoint only where an expression holds; always for "".

        Raises:
            CommandError: there is no such breakpoint.
        """
        entry = self.entry(number)
        if entry.row.kind != "b" or entry.watched is not None:
            raise CommandError(f"{number} is no breakpoint: a probe takes a filter")
        place = _CONDITION.split(entry.row.line, maxsplit=1)[0]
        line = f"{place}{_IF}{condition}" if condition else place
        entry.row, entry.condition = replace(entry.row, line=line), condition

    def stop_on_hit(self, ids: tuple[int, ...], *, on: bool) -> str:
        """Stop, or no longer, where rows are hit; raises `CommandError` likewise."""
        entries = [self.entry(number) for number in ids]
        for entry in entries:
            if entry.row.kind == "p":
                entry.row = replace(entry.row, stops=on)
        return f"{counted(len(ids), 'probe')}: {'stop' if on else 'no stop'} on hits"

    def set_filter(self, event: str, text: str) -> str:
        """Give an event a filter.

        Raises:
            ProbeError: there is no such event, or it is not accepted.
        """
        entry, key = self._of_event(event)
        text = text.strip()
        self._boot.tracing.set_filter(*key, text or "0")
        rules = entry.row.rules
        entry.row = replace(entry.row, rules=replace(rules, filter="" if text == "0" else text))
        return f"{event}: {text}" if text else f"{event}: no filter"

    def change_trigger(self, event: str, text: str) -> str:
        """Give an event a trigger, or with `!` in front take one away; raises likewise."""
        entry, key = self._of_event(event)
        text = text.strip()
        self._boot.tracing.add_trigger(*key, text)
        known = entry.row.rules.triggers
        gone = text.removeprefix("!")
        triggers = tuple(each for each in known if each != gone)
        if not text.startswith("!"):
            triggers = (*triggers, text)
        entry.row = replace(entry.row, rules=EventTexts(entry.row.rules.filter, triggers))
        return f"{event}: {text}"

    def _of_event(self, event: str) -> tuple[BootEntry, tuple[str, str]]:
        group, _, name = event.partition("/")
        for entry in self.entries:
            if (group, name) in entry.events:
                return entry, (group, name)
        raise ProbeError(f"there is no event {event}")

    # -- asking -----------------------------------------------------------------------------

    def stopping(self) -> Iterator[BootEntry]:
        """The entries at whose places the machine stops."""
        for entry in self.entries:
            if entry.row.enabled and entry.row.stops:
                if entry.row.kind == "p":
                    self._find_addresses(entry)  # a module may have come
                yield entry

    def placed(self) -> Iterator[BootEntry]:
        """The entries that are on, wherever they stop."""
        for entry in self.entries:
            if entry.row.enabled:
                if entry.row.kind == "p":
                    self._find_addresses(entry)
                yield entry

    def views(self) -> tuple[ProbeView, ...]:
        """The list as front ends show it."""
        return tuple(map(self._view, self.entries))

    def remarks(self) -> Iterator[Report]:
        """Remarks about probes, where a boot has ended."""
        for entry in self.entries:
            if entry.traced is not None and entry.traced.added.waiting and not entry.addresses:
                yield Report((f"{entry.row.line}: never placed: its module was not loaded",))

    def _view(self, entry: BootEntry) -> ProbeView:
        row = entry.row
        if entry.watched is not None:
            return ProbeView(
                row, "b", "", row.line, hits=entry.hits, how="told",
                reason="the processor itself stops behind an access: nothing is planted",
            )  # fmt: skip
        if row.kind == "b":
            at = entry.addresses[0]
            only = ", ".join(filter(None, (
                "once" if entry.temporary else "",
                f"if {entry.condition}" if entry.condition else "",
                f"ignore next {entry.ignored} hits" if entry.ignored else "",
            )))  # fmt: skip
            return ProbeView(
                row, "b", "", self._places.text(at), entry.addresses, hits=entry.hits, only=only,
                how="told", reason="the processor itself stops here: nothing is planted",
            )  # fmt: skip
        self._find_addresses(entry)
        tracing = self._boot.tracing
        counts = [tracing.counts(*event) for event in entry.events]
        armed = [one for event in entry.events for one in tracing.armed_of(*event)]
        probe = armed[0].probe if armed else None
        event = "/".join(entry.events[0]) if entry.events else ""
        waits = not armed and entry.traced is not None and bool(entry.traced.added.waiting)
        place = self._places.text(probe.address) if probe is not None else row.line
        linux = f"; in Linux: {probe.technique}" if probe is not None else ""
        return ProbeView(
            row,
            "r" if probe is not None and probe.is_return else "p",
            event,
            place,
            tuple(dict.fromkeys(one.probe.address for one in armed)),
            how="" if waits else "told",
            reason=f"the processor tells of the place: nothing is planted{linux}",
            hits=sum(one.hits for one in counts),
            misses=sum(one.missed for one in counts),
            pending=waits,
        )
