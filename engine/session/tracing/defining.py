"""Definitions carried out: events made, probes placed, and taken out again."""

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.plan import Mode, Rules
from engine.arch.program import RecordLayout
from engine.errors import ProbeError, ProbeRejectedError, UnloggedError
from engine.fetch.types import beyond_linux
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe, Uretprobe
from engine.probes.placement_rules import CORRUPTS
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Place, PlaceError
from engine.session.program.verdicts import RETURN_ENTRY, Placed
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ProbeRequest
from engine.session.tracing.defined_set import DefinedSet
from engine.session.tracing.event_set import Defined, EventSet, TraceEvent
from engine.session.tracing.recorders import Recorders
from engine.session.tracing.store_events import GROUP as WATCHES
from engine.trace import synthetic
from engine.trace.definition import Definition, Deletion, matches, named, parse
from engine.trace.head_syntax import HEAD
from engine.trace.place_syntax import FileOffset
from engine.trace.rows import EventInfo, EventSource
from engine.trace.tracepoints import Selection, selection

if TYPE_CHECKING:
    from engine.session.tracing.typed_events import TypedEvents


class Patterned(Struct, frozen=True):
    """A probe that a pattern has placed.

    Attributes:
        place: where.
        event: of it.
        is_return: it records returns.
    """

    place: Place
    event: TraceEvent
    is_return: bool


_LINES: Final = (EventSource.SYNTHETIC, EventSource.EPROBE)
"""Events without a probe that lines define all the same."""
_READ: Final = 4096
"""Definitions that are kept as read, of those that are kept as lines."""
_MANY: Final = 100_000
"""New objects from which on a search of them all is dearer than to ask who keeps some frozen."""
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_]")


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for garbage: thousands of new probes all stay, and each search reads them all."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Freezing and thawing makes all new objects old without a look at each. Objects that
        # somebody keeps frozen for good would thaw, too; the question counts them one by one.
        if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()


class Definitions:
    """The definitions of one trace.

    Attributes:
        defined: those that were carried out, in order.
        patterned: the probes that patterns have placed, in order.
        beyond_linux: what is said of the first definition that Linux has no words for.
    """

    def __init__(
        self,
        session: Session,
        mode: Mode,
        probing: Probing,
        events: EventSet,
        recorders: Recorders,
        choose: Callable[[Selection], None],
        drop: Callable[[Deletion, list[tuple[str, str]]], bool],
        typing: tuple[str | None, tuple[str, ...]] = (None, ()),
    ) -> None:
        """Set up.

        Args:
            session: the guest.
            mode: strictness.
            probing: places probes.
            events: of the trace; definitions add theirs.
            recorders: give probes their recorders.
            choose: adds events that the kernel has without a definition.
            drop: takes away events without probes that a line means, and tells whether there were
                any, given the names of those with probes that it means, too.
            typing: path of a header with functions that no debug information describes, and how
                values with types are printed (`TraceOptions.printing`).
        """
        self.defined = DefinedSet()
        self.patterned: list[Patterned] = []
        self._session = session
        self._mode = mode
        self._probing = probing
        self._events = events
        self._recorders = recorders
        self._choose, self._drop = choose, drop
        self._typing = typing
        self.beyond_linux = ""
        self._read = lru_cache(maxsize=_READ)(self._read_again)

    def place(self, probes: ProbeRequest) -> None:
        """Define events and place their probes, as a request names them.

        Raises:
            ProbeError: something is not accepted; what came before stays.
        """
        if probes.typed and self._mode is Mode.KERNEL:
            raise ProbeError(
                "--args: Linux's events have no such arguments; leave out --mode kernel, or "
                "define them with -e"
            )
        with collector_paused(), self._probing.verdicts.lookup.settled():
            self._define_all(probes.definitions)
            for command in probes.perf:
                self._define_lines(self._probing.verdicts.perf_lines(command))
        for glob in probes.entries:
            self.on_entries(glob, typed=probes.typed)
        for glob in probes.returns:
            self.on_returns(glob, typed=probes.typed)
        for glob in probes.bodies:
            self.on_bodies(glob)
        for text in probes.watches:
            self._choose(Selection(WATCHES, text))
        if probes.sample:
            from engine.trace.sample import GROUP as SAMPLES  # few traces have any

            self._choose(Selection(SAMPLES, str(probes.sample)))

    def _define_all(self, lines: Sequence[str]) -> None:
        """Define the events of many lines; what is alike in two that follow is done once."""
        if len(lines) < 2:
            for line in lines:
                self._define_lines(self.spelled_out(line))
            return
        from engine.session.tracing.alike_lines import AlikeLines  # one line is alike to none

        alike = AlikeLines(self._mode, self._probing, self._events, self.defined)
        for line in lines:
            if not alike.take(line):
                made = self._define_lines(self.spelled_out(line))
                alike.follow(line, made[0] if len(made) == 1 else None)

    def spelled_out(self, line: str) -> tuple[str, ...]:
        """The lines that a definition stands for; what they leave out is reported.

        Raises:
            ProbeError: see `Verdicts.spelled_out`.
        """
        lines, left_out = self._probing.verdicts.spelled_out(line)
        if left_out:
            self._session.remarks.append(Report(left_out))
        return lines

    def define(self, line: str) -> Defined | None:
        """Carry out a line of `dynamic_events`, or `syscalls/GLOB`, `sched/GLOB`.

        Returns:
            The probes that it has defined, None if it has not.

        Raises:
            ProbeError: it is not accepted; what came before stays.
        """
        definition = self._definition(line)
        return None if definition is None else self._define(definition, line, bare=True)[0]

    def _define_lines(self, lines: Sequence[str]) -> list[Defined]:
        """Carry out lines; all that they have defined goes again where one is not accepted."""
        done: list[Defined] = []
        try:
            for line in lines:
                made = self.define(line)
                done += [made] if made is not None else []
        except ProbeError:
            if done:
                self.remove(*done)
            raise
        return done

    def define_shown(self, line: str) -> tuple[Defined, tuple[Placed, ...]] | None:
        """Carry out a line for somebody who shows the verdicts on its places, those on jumps too.

        Returns:
            The probes that it has defined, and the verdicts; None if it has not.

        Raises:
            ProbeError: it is not accepted; what came before stays.
        """
        definition = self._definition(line)
        return None if definition is None else self._define(definition, line, bare=False)

    def _definition(self, line: str) -> Definition | None:
        """The definition that a line is; what else it may be is carried out."""
        selected = selection(line)
        if selected is not None:
            self._choose(selected)
            return None
        if "!" in line:
            if gone := synthetic.removed(line):
                self._delete(Deletion(synthetic.GROUP, gone), line)
                return None
            line = synthetic.other_removal(line) or line
        lookup = self._probing.verdicts.lookup
        parsed = parse(line, self._session.arch, mode=self._mode, lookup=lookup)
        if parsed is None or isinstance(parsed, Definition):
            return parsed
        self._delete(parsed, line)
        return None

    def _define(
        self, definition: Definition, line: str, *, bare: bool
    ) -> tuple[Defined, tuple[Placed, ...]]:
        known = self._events.events.get((definition.group, definition.event))
        if not self.beyond_linux and (why := beyond_linux(definition.args)):
            self.beyond_linux = f"{definition.group}/{definition.event}: {why}"
        key = definition.group, definition.event
        if known is None and key in self._events.infos.others:
            raise definition.error("EVENT_EXIST", HEAD)
        self.defined.agree(definition, known.defined if known is not None else ())
        mode = Mode.KERNEL if definition.strict_override else self._mode
        try:
            placed = self._probing.verdicts.of_definition(definition, bare=bare)
        except PlaceError as error:
            raise _explained(definition, error.code, str(error)) from error
        for item in placed:
            verdict = item.judgement
            if not verdict.ok:
                code = "BAD_INSN_BNDRY" if verdict.errno == "EILSEQ" else "FAIL_REG_PROBE"
                if any(finding.rule == RETURN_ENTRY for finding in verdict.findings):
                    code = "BAD_RETPROBE"
                nearest = next((f.nearest for f in verdict.findings if f.nearest), None)
                hint = f"; the nearest place that would do is {nearest:#x}" if nearest else ""
                why = f"{item.place.name}: {verdict.reason} ({verdict.errno}){hint}"
                raise _explained(definition, code, why)
            if verdict.errors:
                self._warn(definition, item)
        if not placed:
            why = self._probing.verdicts.unhit(definition)
            self._session.remarks.append(Report((f"{definition.command}: {why}",)))
        event = self._events.named(
            definition.group,
            definition.event,
            RecordLayout.of(definition.args, definition.is_return),
            definition.kind,
        )
        wanted = tuple(
            self._wanted(
                event, self._probing.verdicts.at_one(definition, placed, item.place), item, mode
            )
            for item in placed  # the verdicts themselves would take more room
        )
        try:
            self._probing.place(wanted)
        except ProbeRejectedError as error:
            raise _explained(definition, "FAIL_REG_PROBE", str(error)) from error
        what = line if definition.stands_alone else definition
        done = Defined(what, wanted[0] if len(wanted) == 1 else wanted, event, self._read)
        event.add(done)
        self.defined.add(done, definition)
        return done, placed

    def _warn(self, definition: Definition, item: Placed) -> None:
        """Tell of what kernel mode damages at a place, as Linux does."""
        damage = next((one for one in item.judgement.errors if one.rule == CORRUPTS), None)
        if damage is not None:
            text = f"{definition.command}: {item.place.name}: {damage.message}"
            self._session.remarks.append(Report((text,)))

    def _read_again(self, line: str) -> Definition:
        """A definition of this trace that means the same whatever the program is."""
        found = parse(line, self._session.arch, mode=self._mode)
        assert isinstance(found, Definition), "it was read as one before"
        return found

    def _wanted(
        self, event: TraceEvent, definition: Definition, placed: Placed, mode: Mode
    ) -> Wanted:
        place = placed.place
        probe = _make(place, mode, event.info, definition.is_return, definition.maxactive)
        layout = RecordLayout.of(definition.args, definition.is_return)
        if isinstance(definition.target, FileOffset):
            probe.reference = definition.target.reference
        return self._recorders.wanted(place, probe, event, layout)

    def on_entries(self, glob: str, *, typed: bool = False) -> None:
        """An entry event on every function that matches a pattern.

        Args:
            glob: the pattern.
            typed: with the arguments that the source names.

        Raises:
            ProbeError: none does.
        """
        places = self._probing.verdicts.places.matching(glob)
        self._on_places(places, f"-f {glob}", typed=typed)

    def on_returns(self, glob: str, *, typed: bool = False) -> None:
        """A return event on every function that matches a pattern.

        Args:
            glob: the pattern.
            typed: with the result, of the type that the source names.

        Raises:
            ProbeError: none does.
        """
        places = self._probing.verdicts.places.matching(glob)
        self._on_places(places, f"-r {glob}", is_return=True, typed=typed)

    def on_bodies(self, glob: str) -> None:
        """An event on every instruction of the functions that match a pattern.

        Raises:
            ProbeError: none does.
        """
        verdicts = self._probing.verdicts
        places = (
            at for entry in verdicts.places.matching(glob) for at in verdicts.instructions(entry)
        )
        self._on_places(places, f"--every-insn {glob}")

    @collector_paused()
    def _on_places(
        self,
        places: Iterable[Place],
        option: str,
        *,
        is_return: bool = False,
        typed: bool = False,
    ) -> None:
        """An event that records nothing but its place, or what types tell, on many places.

        Args:
            places: where; those that cannot take a probe are reported.
            option: what asked for them, for messages.
            is_return: record returns.
            typed: with arguments, or the result, where their types are known.

        Raises:
            ProbeError: there are no places.
        """
        plain = RecordLayout.of((), is_return)
        wanted: list[Wanted] = []
        owners: dict[int, TraceEvent] = {}
        for place in places:
            name = identifier(place, is_return)
            known = self._typed.of(place, is_return=is_return) if typed else None
            layout, forms = (plain, ()) if known is None else (known.layout, known.forms)
            if typed:
                name = self._events.free_name("kprobes", name, layout, forms)
            event = self._events.named("kprobes", name, layout, "kprobe", forms)
            probe = _make(place, self._mode, event.info, is_return)
            if known is not None and known.values is not None:
                one = self._recorders.wanted_values(place, probe, event, known.values)
            else:
                one = self._recorders.wanted(place, probe, event, layout)
            one.traces = True
            wanted.append(one)
            owners[id(probe)] = event
        if not wanted:
            raise ProbeError(f"{option}: no function matches")
        refused = self._probing.place_each(wanted)
        gone = {place.link for place, _ in refused}
        for one in wanted:
            if one.place.link not in gone:
                event = owners[id(one.probe)]
                event.add_patterned(one.probe)
                self.patterned.append(Patterned(one.place, event, is_return))
        for place, why in refused:
            self._session.remarks.append(Report((f"no probe on {place.name}: {why}",)))

    @cached_property
    def _typed(self) -> "TypedEvents":
        from engine.session.tracing.library_calls import TypedFunctions  # few traces have types
        from engine.session.tracing.typed_events import TypedEvents

        functions = TypedFunctions(self._session.arch, *self._typing)
        return TypedEvents(self._session, functions, self._probing.verdicts.lookup.scope_at)

    def _delete(self, deletion: Deletion, line: str) -> None:
        candidates: Iterable[Defined] = self.defined
        if deletion.event and deletion.group is not None:
            event = self._events.events.get((deletion.group, deletion.event))
            candidates = event.defined if event is not None else ()
        found = [
            old
            for old in candidates
            if named(deletion, *old.name)
            and (not deletion.place or matches(deletion, old.definition))
        ]
        dropped = self._drop(deletion, [old.name for old in found])
        info = self._events.infos.get((deletion.group or "", deletion.event))
        if not found and not dropped and info is not None and info.source not in _LINES:
            text = f"{line.strip()}: events of the kernel's own stay to the end"
            raise UnloggedError(text, "EBUSY")
        if not found and not dropped:
            raise UnloggedError(f"{line.strip()}: no such event", "ENOENT")
        self.remove(*found)

    def remove(self, *gone: Defined) -> None:
        """Take the probes of definitions out; an event goes with its last definition."""
        self._probing.remove([probe for old in gone for probe in old.probes])
        self.defined.remove(gone)
        keys = dict.fromkeys(old.name for old in gone)
        taken = set(gone)
        for key in keys:
            event = self._events.events[key]
            event.remove(taken)
            if not event.defined:
                self._events.forget(*key)


def _make(
    place: Place, mode: Mode, name: EventInfo, is_return: bool = False, maxactive: int = 0
) -> Kprobe:
    if place.rules is Rules.UPROBE:
        kind, offset = Uretprobe if is_return else Uprobe, place.file_offset or 0
        if offset == place.link:
            offset = place.link  # a million numbers are worth keeping once
        return kind(place.path, offset, mode=mode, name=name)
    if is_return:
        return Kretprobe(maxactive=maxactive, mode=mode, name=name)
    return Kprobe(mode=mode, name=name)


def _explained(definition: Definition, code: str, why: str) -> ProbeError:
    error = definition.error(code)
    error.explain(why)
    return error


def identifier(place: Place, is_return: bool = False) -> str:
    """The kernel's automatic name for a probe on a function, or for its returns."""
    name = place.symbol or f"{place.link:#x}"
    letter = "r" if is_return else "p"
    return f"{letter}_{_UNNAMEABLE.sub('_', name)}_{place.offset}"
