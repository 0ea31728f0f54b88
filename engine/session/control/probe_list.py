"""The probes a user has placed, as a list that is edited: placed, changed, undone.

The list outlives a run of the program: `rows` is all that is needed to place the same probes
in a fresh one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from engine.arch.plan import Mode, Rules
from engine.errors import CommandError, KprobeTuiError, ProbeError
from engine.linux.space import AddressSpace
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import KretprobeInstance
from engine.session.control.editing import ChangeHistory, UndoableChange
from engine.session.control.entries import ProbeEntry, ProbeRows, ProbeViews
from engine.session.control.tracing_choices import EventRules
from engine.session.guest.probing import Probing
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Place, PlaceError
from engine.session.program.verdicts import Placed
from engine.session.protocol.probes import NO_TEXTS, ProbeRow, ProbeView
from engine.session.tracing.tracing import Tracing

_UNDO: Final = 200

_History = list[tuple[str, ProbeRows]]
"""Changes in words, and the list before each."""


class ProbeList:
    """The list for one run.

    Attributes:
        entries: in the order they were placed.
    """

    def __init__(
        self, probing: Probing, tracing: Tracing, mode: Mode, history: ChangeHistory
    ) -> None:
        """Start with an empty list.

        Args:
            probing: places the probes.
            tracing: records their events.
            mode: strictness of placement.
            history: remembers changes of the list.
        """
        self._probing = probing
        self._tracing = tracing
        self._mode = mode
        self._next = 1
        self._undo: _History = []
        self._redo: _History = []
        self._rules = EventRules(tracing)
        self._views = ProbeViews(probing)
        self.entries: list[ProbeEntry] = []
        self._history = history

    # -- asking ---------------------------------------------------------------------------

    def stopping_at(self, probes: Sequence[Kprobe], thread: int) -> Iterator[ProbeEntry]:
        """Of the probes that are hit: the entries that stop the guest, if their filters pass.

        Args:
            probes: that are hit.
            thread: id of the one that hits them.
        """
        for probe in probes:
            if not probe.stops or not probe.enabled:
                continue
            asked = probe.origin or probe
            entry = next((each for each in self.entries if asked in each.stoppers), None)
            if entry is not None and _passes_at(entry, probes, thread):
                yield entry

    def stopping_after(
        self, calls: Sequence[KretprobeInstance], thread: int
    ) -> Iterator[ProbeEntry]:
        """Of the calls that have returned: the entries that stop the guest, likewise."""
        for entry in self.entries if calls else ():
            if entry.stoppers and any(_passes_after(entry, call, thread) for call in calls):
                yield entry

    @contextmanager
    def all_stopping(self) -> Iterator[None]:
        """Let the guest stop wherever a probe is hit that is on, for a while.

        Raises:
            CommandError: there is no such probe.
        """
        if not any(entry.row.enabled for entry in self.entries):
            raise CommandError("no probe is on that could be hit; p places one")
        added = [entry for entry in self.entries if entry.row.enabled and not entry.stoppers]
        for entry in added:
            self._stop(entry)
        try:
            yield
        finally:
            for entry in added:
                if not entry.row.stops:  # the user may want it by now
                    self._unstop(entry)

    @property
    def rows(self) -> ProbeRows:
        """The list, to be placed in another run."""
        return tuple(entry.row for entry in self.entries)

    def entry(self, probe_id: int) -> ProbeEntry:
        """The entry of a probe.

        Raises:
            CommandError: there is none.
        """
        for entry in self.entries:
            if entry.row.id == probe_id:
                return entry
        raise CommandError(f"there is no probe {probe_id}")

    def planted_addresses(self) -> set[int]:
        """The addresses of the list's probes, in all processes."""
        return {
            found.addr
            for space in self._probing.spaces.values()
            for entry in self.entries
            for probe in entry.probes
            if (found := self._probing.stand_in(probe, space)) is not None
            and found.addr is not None
        }

    # -- editing --------------------------------------------------------------------------

    def define(self, line: str, replaces: int | None = None, *, stops: bool = False) -> str:
        """Carry out a line of `kprobe_events`; what came of it in words.

        Raises:
            ProbeError: it is not accepted; nothing has changed.
            CommandError: the probe to replace is gone.
        """
        lines = self._tracing.definitions.spelled_out(line)
        before, texts = self.rows, list[str]()
        try:
            for number, each in enumerate(lines):
                texts.append(self._define_line(each, None if number else replaces, stops=stops))
        except KprobeTuiError:
            if texts:
                self.restore(before)
            raise
        text = texts[0] if len(texts) == 1 else f"placed {line.strip()}: {len(texts)} uprobes"
        self._changed(text, before)
        return text

    def _define_line(self, line: str, replaces: int | None, *, stops: bool) -> str:
        """Carry out one line of `kprobe_events`, as `define` does."""
        line = line.strip()
        old = self.entry(replaces) if replaces is not None else None
        place = self.entries.index(old) if old else len(self.entries)
        if old:
            self._remove(old)
        try:
            row = ProbeRow(
                replaces or self.fresh_id(), "p", line, True, stops or bool(old and old.row.stops)
            )
            made = self._define(row, place)
        except KprobeTuiError:
            if old:
                self._place(old.row, place)
                self._obey([old.row])
            raise
        if made is None:  # a deletion, or nothing but a comment
            self._forget_deleted()
            text = f"deleted by {line}"
        else:
            text = f"placed {line}"
            rules = old.row.rules if old and old.row.rules != NO_TEXTS else None
            refused = self._rules.make(made.event, rules) if rules else []
            self._note(made.event)
            told = f"{made.refused}; here it is placed all the same" if made.refused else ""
            text = "; ".join(filter(None, [text, *refused, told]))
        return text

    def toggle_break(self, place: str) -> str:
        """A breakpoint at a place, or no longer; what was done in words.

        Raises:
            ProbeError: none can stand there.
        """
        before = self.rows
        found = self._resolve(place)
        for entry in self.entries:
            if entry.row.kind == "b" and _same(entry.placed, found):
                self._remove(entry)
                text = f"breakpoint at {entry.row.line} deleted"
                break
        else:
            self._place(ProbeRow(self.fresh_id(), "b", place, True, True), len(self.entries))
            text = f"breakpoint at {place}"
        self._changed(text, before)
        return text

    def delete(self, ids: Iterable[int]) -> str:
        """Take probes out."""
        before = self.rows
        going = [self.entry(number) for number in ids]
        for entry in going:
            self._remove(entry)
        text = f"deleted {_names(going)}"
        self._changed(text, before)
        return text

    def enable(self, ids: Iterable[int], *, on: bool) -> str:
        """Let probes record, or keep them quiet."""
        before = self.rows
        found = [self.entry(number) for number in ids]
        for entry in found:
            self._switch(entry, on)
        text = f"{'enabled' if on else 'disabled'} {_names(found)}"
        self._changed(text, before)
        return text

    def stop_on_hit(self, ids: Iterable[int], *, on: bool) -> str:
        """Let the guest stop where probes are hit, or run through."""
        before = self.rows
        found = [self.entry(number) for number in ids]
        for entry in found:
            if entry.row.kind == "b":
                raise CommandError("a breakpoint always stops; delete or disable it")
            self._set_stops(entry, on)
        text = f"{'stop' if on else 'no stop'} at {_names(found)}"
        self._changed(text, before)
        return text

    def set_filter(self, event: str, wanted: str) -> str:
        """Record of an event only what passes a filter; in words what was done.

        Raises:
            ProbeError: there is no such event, or the filter is not accepted.
        """
        before = self.rows
        self._rules.set_filter(event, wanted)
        self._note(event)
        kept = self._rules.of(event).filter
        text = f"{event} is recorded if {kept}" if kept else f"{event} has no filter"
        self._changed(text, before)
        return text

    def add_trigger(self, event: str, wanted: str) -> str:
        """Give an event a trigger or take one away; in words what was done.

        Raises:
            ProbeError: there is no such event, or the trigger is not accepted.
            CommandError: there is none typed, or it needs a ring.
        """
        before = self.rows
        self._rules.add_trigger(event, wanted)
        self._note(event)
        text = f"trigger of {event}: {wanted.strip()}"
        self._changed(text, before)
        return text

    def undo(self) -> str:
        """Take the last change back; what it was.

        Raises:
            CommandError: there is nothing to take back.
        """
        if not self._undo:
            raise CommandError("nothing to undo")
        return self._back(self._undo, self._redo)

    def redo(self) -> str:
        """Do again what was taken back.

        Raises:
            CommandError: there is nothing to do again.
        """
        if not self._redo:
            raise CommandError("nothing to redo")
        return self._back(self._redo, self._undo)

    def restore(self, rows: ProbeRows) -> list[str]:
        """Make the list these rows: what could not be placed, in words."""
        failures = []
        kept = {row.id: row for row in rows}
        for entry in list(self.entries):
            row = kept.get(entry.row.id)
            if row is None or (row.kind, row.line) != (entry.row.kind, entry.row.line):
                self._remove(entry)
        present = {entry.row.id: entry for entry in self.entries}
        for row in rows:
            self._next = max(self._next, row.id + 1)
            try:
                old = present.get(row.id)
                if old is None:
                    self._place(row, len(self.entries))
                    continue
                if old.row.enabled != row.enabled:
                    self._switch(old, row.enabled)
                self._set_stops(old, row.stops)
            except KprobeTuiError as error:
                failures.append(f"{row.line}: {error}")
        failures += self._obey(rows)
        order = {row.id: number for number, row in enumerate(rows)}
        self.entries.sort(key=lambda entry: order.get(entry.row.id, len(order)))
        return failures

    def _back(self, source: _History, other: _History) -> str:
        text, rows = source.pop()
        other.append((text, self.rows))
        return "; ".join([text, *self.restore(rows)])

    def _changed(self, text: str, before: ProbeRows) -> None:
        self._undo.append((text, before))
        del self._undo[:-_UNDO]
        self._redo.clear()
        self._history.note(UndoableChange(text, self.undo, self.redo, of_list=True))

    # -- the machinery --------------------------------------------------------------------

    def _obey(self, rows: Iterable[ProbeRow]) -> list[str]:
        """Events get the rules of their rows, once all are there; what did not fit, in words."""
        wanted = {row.id: row.rules for row in rows}
        refused = []
        for entry in self.entries:
            rules = wanted.get(entry.row.id)
            if rules is not None and entry.event and rules != self._rules.of(entry.event):
                refused += self._rules.make(entry.event, rules)
                self._note(entry.event)
        return refused

    def _note(self, event: str) -> None:
        """Remember what an event does in all of its rows."""
        rules = self._rules.of(event)
        for entry in self.entries:
            if entry.event == event and entry.row.rules != rules:
                entry.row = replace(entry.row, rules=rules)

    def fresh_id(self) -> int:
        """A number that no probe has, nor will have."""
        self._next += 1
        return self._next - 1

    def _place(self, row: ProbeRow, index: int) -> None:
        if row.kind == "b":
            entry = ProbeEntry(row, self._resolve(row.line))
            self._stop(entry)
            self.entries.insert(index, entry)
            if not row.enabled:
                self._switch(entry, False)
        else:
            self._define(row, index)

    def _refused(self, line: str) -> str:
        """Say why the image's own kernel refuses a definition; "" where it does not.

        Raises:
            ProbeError: it does, and its rules hold.
        """
        kernel = self._tracing.session.opened.kernel
        if kernel is None:
            return ""
        from engine.session.kernel.definition_answers import refusals  # few guests are kernels

        found = next(refusals(kernel, [line]), "")
        if found and self._mode is Mode.KERNEL:
            raise ProbeError(found)
        return found.removeprefix(f"{line}: ")

    def _define(self, row: ProbeRow, index: int) -> ProbeEntry | None:
        refused = self._refused(row.line)
        made = self._tracing.definitions.define_shown(row.line)
        if made is None:
            return None
        defined, placed = made
        entry = ProbeEntry(row, placed, defined, refused=refused)
        self.entries.insert(index, entry)
        try:
            if row.stops:
                self._stop(entry)
            if not row.enabled:
                self._switch(entry, False)
        except KprobeTuiError:
            self._remove(entry)
            raise
        return entry

    def _remove(self, entry: ProbeEntry) -> None:
        self._unstop(entry)
        if entry.defined is not None:
            self._tracing.definitions.remove(entry.defined)
        self.entries.remove(entry)
        self._views.forget(entry)

    def _forget_deleted(self) -> None:
        """A line of definitions has deleted others."""
        left = self._tracing.definitions.defined
        for entry in list(self.entries):
            if entry.defined is not None and entry.defined not in left:
                self._unstop(entry)
                self.entries.remove(entry)
                self._views.forget(entry)

    def _switch(self, entry: ProbeEntry, on: bool) -> None:
        for probe in {*entry.probes, *entry.stoppers}:
            self._probing.switch(probe, on=on)
        entry.row = replace(entry.row, enabled=on)

    def _stop(self, entry: ProbeEntry) -> None:
        wanted: list[Wanted] = []
        for item in entry.placed:
            probe = _stopper(item.place, entry.row.line)
            wanted.append(Wanted(item.place, probe, anywhere=True))
        self._probing.place(wanted)
        entry.stoppers = [one.probe for one in wanted]
        if entry.catches_returns:
            self._probing.attend_returns(1)

    def _set_stops(self, entry: ProbeEntry, on: bool) -> None:
        if entry.row.stops == on or entry.row.kind == "b":
            return
        if not on:
            self._unstop(entry)
        elif not entry.stoppers:
            self._stop(entry)
        entry.row = replace(entry.row, stops=on)
        if not entry.row.enabled:
            self._switch(entry, False)  # what stops the guest is off with the rest

    def _unstop(self, entry: ProbeEntry) -> None:
        probing = self._probing
        if entry.stoppers and entry.catches_returns:
            probing.attend_returns(-1)
        probing.remove(entry.stoppers)
        entry.stoppers = []

    def address_of(self, text: str) -> int | None:
        """The address of a PLACE as definitions have it; None where it names none, or several."""
        try:
            found = self._probing.verdicts.places.resolve(text)
        except (PlaceError, KprobeTuiError):
            return None
        if len(found) != 1:
            return None
        place, space = found[0], self._probing.here.space
        for mapping in space.memory.mappings:
            module = space.modules.at(mapping.start)
            if module is not None and module.name in (place.path, *place.paths):
                return place.link + module.bias
        return None

    def place_text(self, address: int) -> str:
        """SYMBOL+OFF of an address where that means no other place; "" where it does."""
        place = self._probing.here.space.modules.locate(address)
        if place.symbol is None or place.module is None:
            return ""
        text = place.symbol.name + (f"+{place.offset:#x}" if place.offset else "")
        return text if self.address_of(text) == address else ""

    def _resolve(self, text: str) -> tuple[Placed, ...]:
        verdicts = self._probing.verdicts
        try:
            places = verdicts.places.resolve(text)
        except PlaceError as error:
            raise ProbeError(str(error)) from error
        found = tuple(self._judged(place) for place in places)
        for item in found:
            if not item.judgement.ok:
                raise ProbeError(f"{item.place.name}: {item.judgement.reason}")
        return found

    def _judged(self, place: Place) -> Placed:
        """The verdict on a breakpoint, which is a uprobe where a kprobe cannot be.

        Kprobes refuse what they would have to emulate and do not, as a call through memory
        (arch/x86/kernel/kprobes/core.c, can_boost and prepare_emulation); uprobes step it. What
        Linux's uprobes accept and would tear an instruction apart stays refused.
        """
        judge = self._probing.verdicts.judge
        found = judge(place, mode=Mode.KERNEL)
        if found.judgement.ok or place.rules is Rules.UPROBE or place.file_offset is None:
            return found
        other = judge(place.under(Rules.UPROBE), mode=Mode.STRICT)
        return other if other.judgement.ok else found

    def views(self, space: AddressSpace) -> tuple[ProbeView, ...]:
        """All probes as a front end shows them; unchanged ones are the same objects.

        Args:
            space: the address space in sight.
        """
        return self._views.of(self.entries, space)


def _passes_at(entry: ProbeEntry, probes: Iterable[Kprobe], thread: int) -> bool:
    """True if the filter of an entry's event passes the hit at hand; a return's knows no entry."""
    if entry.catches_returns:
        return not entry.row.rules.filter
    own = next((each for each in probes if (each.origin or each) in entry.probes), None)
    passes = own.passes if own is not None else None
    return passes is None or passes(thread)


def _passes_after(entry: ProbeEntry, call: KretprobeInstance, thread: int) -> bool:
    """True if a call is one of an entry's, and its return passes the filter of the event."""
    probe = call.rp
    if not probe.enabled or (probe.origin or probe) not in entry.probes:
        return False
    captured = () if call.entry is None else (call.entry,)
    return probe.passes is None or probe.passes(thread, call.ret_addr, *captured)


def _stopper(place: Place, name: str) -> Kprobe:
    """A probe that does nothing but make the hit come to the engine."""
    probe = Kprobe(mode=Mode.KERNEL, name=name, pre_handler=lambda probe, regs: None)
    if place.rules is Rules.UPROBE:
        from engine.session.program.marker_places import counter_of  # few places are uprobes'

        probe = uprobe = Uprobe(place.path, place.file_offset or 0, mode=Mode.KERNEL, name=name)
        uprobe.handler = lambda probe, regs: None
        probe.reference = counter_of(place)
    probe.stops = True
    return probe


def _same(one: tuple[Placed, ...], other: tuple[Placed, ...]) -> bool:
    return [(p.place.path, p.place.link) for p in one] == [
        (p.place.path, p.place.link) for p in other
    ]


def _names(entries: list[ProbeEntry]) -> str:
    if len(entries) > 3:
        return f"{len(entries)} probes"
    return ", ".join(entry.row.line for entry in entries)
