"""The choices of what is recorded: filters, triggers, functions, kernel events, handlers.

A user's choices are remembered by text, and carried out in run after run.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from msgspec import Struct

from engine.errors import CommandError, KprobeTuiError
from engine.message_text import counted
from engine.session.control.script_switch import ScriptSwitch
from engine.session.guest.session import Session
from engine.session.protocol.config import Mode
from engine.session.protocol.probes import NO_TEXTS, EventTexts
from engine.session.protocol.requests import GraphOptions
from engine.session.tracing.armed import Armed
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.handlers import blamed, load_handlers
from engine.session.tracing.tracing import Tracing
from engine.trace import sched, synthetic, syscalls
from engine.trace.tracepoints import EPROBES

_PERIOD: Final = 0.5
"""Seconds of the host between two texts of a histogram while the guest runs."""


class EventRules:
    """The rules of one run's events. An event that is gone has taken its rules along."""

    def __init__(self, tracing: Tracing) -> None:
        """No event has any."""
        self._tracing = tracing
        self._filters: dict[int, str] = {}
        self._triggers: dict[int, list[tuple[Armed, str]]] = {}

    def of(self, event: str) -> EventTexts:
        """Filter and triggers of an event GROUP/NAME; none where there is no such event."""
        info = self._tracing.infos.get(_key(event))
        if info is None:
            return NO_TEXTS
        texts = tuple(text for _, text in self._triggers.get(info.id, ()))
        return EventTexts(self._filters.get(info.id, ""), texts)

    def set_filter(self, event: str, text: str) -> None:
        """Give an event a filter; "" takes it away, as does "0". A bad one changes nothing.

        Also under the kernel's rules the filter that was there stays: a front end can say at
        once what is wrong with the new one.

        Raises:
            ProbeError: there is no such event, or the filter is not accepted.
        """
        info, text = self._tracing.info(*_key(event)), text.strip()
        self._tracing.controls.set_filter(info, text or "0")
        self._filters[info.id] = "" if text == "0" else text

    def add_trigger(self, event: str, text: str) -> None:
        """Give an event a trigger, or with `!` in front take one away.

        Raises:
            ProbeError: there is no such event, or the trigger is not accepted.
            CommandError: there is none typed, or it needs a ring.
        """
        info, text = self._tracing.info(*_key(event)), text.strip()
        if not text:
            raise CommandError("which trigger? hist:keys=FIELD, stacktrace, traceoff, ...")
        self._tracing.controls.add_trigger(info, text)
        self._tracing.declare_stacks()
        known = self._triggers.setdefault(info.id, [])
        now = self._tracing.controls.of(info).triggers
        known[:] = [item for item in known if item[0] in now]
        # A text that only pauses or clears a histogram adds no trigger.
        present = [armed for armed, _ in known]
        known += [(armed, text) for armed in now if armed not in present]

    def make(self, event: str, wanted: EventTexts) -> list[str]:
        """Bring an event to rules: what did not fit it, in words."""
        now = self.of(event)
        refused = []

        def attempt(change: Callable[[str, str], None], text: str) -> None:
            try:
                change(event, text)
            except KprobeTuiError as error:
                refused.append(f"{event} {text}: {error}")

        if wanted.filter != now.filter:
            attempt(self.set_filter, wanted.filter)
        for text in now.triggers:
            if text not in wanted.triggers:
                attempt(self.add_trigger, f"!{text}")
        for text in wanted.triggers:
            if text not in now.triggers:
                attempt(self.add_trigger, text)
        return refused


class Histograms:
    """The texts of a run's histograms, not made anew more often than anybody reads them."""

    def __init__(self, tracing: Tracing) -> None:
        """There are none."""
        self._tracing = tracing
        self._texts: tuple[str, ...] = ()
        self._made = 0.0

    def texts(self, *, running: bool) -> tuple[str, ...]:
        """Each histogram as the command line prints it, by event.

        Args:
            running: whether the guest runs: then they may be half a second old.
        """
        now = time.monotonic()
        if running and now - self._made < _PERIOD:
            return self._texts
        self._made = now
        texts = tuple(_texts(self._tracing))
        if texts != self._texts:
            self._texts = texts
        return self._texts


def _texts(tracing: Tracing) -> Iterator[str]:
    for table in tracing.controls.tables():
        yield b"\n".join(table).decode(errors="backslashreplace")


def _key(event: str) -> tuple[str, str]:
    """Group and name.

    Raises:
        CommandError: it is not of that form.
    """
    group, slash, name = event.partition("/")
    if not (group and slash and name):
        raise CommandError(f"{event}: not of the form GROUP/NAME")
    return group, name


_WORDS: Final = {
    syscalls.GROUP: "system calls",
    sched.GROUP: "the scheduler's events",
    synthetic.GROUP: "synthetic events",
    EPROBES: "event probes",
}


class GraphSwitch:
    """Function tracing as a front end switches it on and off, run after run.

    Attributes:
        globs: what is traced, () for nothing.
        depth: how deep calls are followed, 0 for all.
    """

    def __init__(self) -> None:
        """Trace no function."""
        self.globs: tuple[str, ...] = ()
        self.depth = 0
        self._tracing: Tracing | None = None
        self._graphing: Graphing | None = None

    def again(self) -> "GraphSwitch":
        """One for another run, which is to trace the same."""
        twin = GraphSwitch()
        twin.globs, twin.depth = self.globs, self.depth
        return twin

    def follow(self, other: "GraphSwitch") -> None:
        """Trace what another one does.

        Raises:
            ProbeError: no function matches.
        """
        if (self.globs, self.depth) != (other.globs, other.depth):
            if self.globs:
                self.turn((), on=False, depth=self.depth)
            if other.globs:
                self.turn(other.globs, on=True, depth=other.depth)

    def begin(self, tracing: Tracing) -> None:
        """Trace in a run that begins what was traced in the last one."""
        self._tracing, self._graphing = tracing, None
        if self.globs:
            self.turn(self.globs, on=True, depth=self.depth)

    def turn(self, globs: tuple[str, ...], *, on: bool, depth: int) -> str:
        """Trace functions, or no longer (without patterns: none at all); in words what was done.

        Raises:
            ProbeError: no function matches.
        """
        assert self._tracing is not None, "a run has begun"
        if self._graphing is None:
            typed = self._tracing.options.mode is not Mode.KERNEL
            options = GraphOptions(args=typed, retval=typed, typed=typed)
            self._graphing = Graphing(self._tracing, options)
        graphing, self.depth = self._graphing, depth
        assert graphing.calls is not None
        graphing.calls.depth_max = depth
        if not on:
            count = graphing.remove(*globs) if globs else graphing.clear()
            self.globs = tuple(glob for glob in self.globs if globs and glob not in globs)
            return f"{count} functions are no longer traced"
        done = graphing.add(*globs)
        self.globs = tuple(dict.fromkeys((*self.globs, *globs)))
        refused = f", {len(done.refused)} refused" if done.refused else ""
        deep = f", {depth} deep" if depth else ""
        return f"{len(graphing.probes)} functions traced{deep}{refused}"


class HandlersSwitch:
    """The file of handlers of a front end, registered afresh in each run.

    Attributes:
        path: of the file, "" for none.
    """

    def __init__(self, out: Callable[[str], object]) -> None:
        """There is none; `out` takes what handlers print."""
        self.path = ""
        self._out = out
        self._session: Session | None = None
        self._names: dict[str, Any] = {}

    def again(self) -> "HandlersSwitch":
        """One for another run, which is to have the same file."""
        twin = HandlersSwitch(self._out)
        twin.path = self.path
        return twin

    def follow(self, other: "HandlersSwitch") -> None:
        """Have the file that another one has.

        Raises:
            KprobeTuiError: it cannot be used.
        """
        if self.path != other.path:
            if other.path:
                self.load(other.path)
            else:
                self.unload()

    def begin(self, session: Session) -> str:
        """Read the file again for a run that begins; what is wrong with it now, "" for nothing."""
        self._session, self._names = session, {}
        if self.path:
            try:
                self.load(self.path)
            except KprobeTuiError as error:
                return str(error)
        return ""

    def load(self, path: str) -> str:
        """Register a file's probes in place of the last one's; in words what was done.

        Raises:
            CommandError: there was no file before, or this one cannot be used: the last one is
                out all the same.
            ProbeError: a probe cannot be placed.
        """
        path = path or self.path
        if not path:
            raise CommandError("which? a FILE of handlers is missing")
        assert self._session is not None, "a run has begun"
        self.unload()
        with blamed(path):
            self._names = load_handlers(path, self._session, out=self._out)
        leave = self._names.get("exit")
        if leave in self._session.at_end:
            self._session.at_end.remove(leave)  # `over` calls it
        self.path = path
        return f"{counted(len(self._names['probes']), 'probe')} of {path}"

    def over(self, names: dict[str, Any] | None = None, path: str = "") -> None:
        """The guest has ended, or the file goes: its `exit` is called, once.

        Raises:
            CommandError: it fails.
        """
        leave = (self._names if names is None else names).pop("exit", None)
        if callable(leave):
            with blamed(path or self.path):
                leave()

    def unload(self) -> str:
        """Take the probes out, as a kernel module goes; in words what was done."""
        names, self._names = self._names, {}
        path, self.path = self.path, ""
        if not names or self._session is None:
            return "no handlers are loaded"
        self.over(names, path)
        self._session.probes().remove(list(names["probes"]))
        return f"{path} is out"


class KernelSwitch:
    """Which events of one group of the kernel's are recorded, run after run.

    Attributes:
        globs: patterns of their names, () for none.
    """

    def __init__(self, group: str) -> None:
        """None of a group are recorded."""
        self.globs: tuple[str, ...] = ()
        self._group = group
        self._tracing: Tracing | None = None

    def again(self) -> "KernelSwitch":
        """One for another run, of which the same is to be recorded."""
        twin = KernelSwitch(self._group)
        twin.globs = self.globs
        return twin

    def follow(self, other: "KernelSwitch") -> None:
        """Record what another one does.

        Raises:
            ProbeError: no event matches.
        """
        if self.globs != other.globs:
            self.turn((), on=False)
            if other.globs:
                self.turn(other.globs, on=True)

    def begin(self, tracing: Tracing) -> None:
        """Record in a run that begins what was recorded in the last one."""
        self._tracing = tracing
        for glob in self.globs:
            tracing.definitions.define(self._line(glob))

    def _line(self, glob: str) -> str:
        """The line that chooses events; what other events make is chosen by its definition."""
        return glob if self._group in (synthetic.GROUP, EPROBES) else f"{self._group}/{glob}"

    def turn(self, globs: tuple[str, ...], *, on: bool) -> str:
        """Record events, or no longer (without patterns: none at all); in words what was done.

        Raises:
            ProbeError: no event matches.
        """
        tracing, group = self._tracing, self._group
        assert tracing is not None, "a run has begun"
        if on:
            for glob in globs:
                tracing.definitions.define(self._line(glob))
                self.globs = tuple(dict.fromkeys((*self.globs, glob)))
        else:
            self.globs = tuple(glob for glob in self.globs if globs and glob not in globs)
        attached = tracing.unplaced.attached_only(group)
        tracing.unplaced.source(group).record_only((*self.globs, *attached))
        return f"{_WORDS[group]} recorded: {' '.join(self.globs) or 'none'}"


class RunSwitches(Struct):
    """All that is traced in one run.

    Attributes:
        graph: functions.
        handlers: probes written in Python that are registered.
        script: the script of bpftrace that is attached.
        kernel: which of the kernel's events, by their group.
    """

    graph: GraphSwitch
    handlers: HandlersSwitch
    script: ScriptSwitch
    kernel: dict[str, KernelSwitch]

    def again(self) -> "RunSwitches":
        """Make the switches of another run, in which the same is to be traced."""
        kernel = {group: switch.again() for group, switch in self.kernel.items()}
        return RunSwitches(self.graph.again(), self.handlers.again(), self.script.again(), kernel)

    def follow(self, other: "RunSwitches") -> Iterator[str]:
        """Trace what is traced in another run; what cannot be, in words."""
        follow: list[Callable[[], None]] = [
            partial(self.graph.follow, other.graph),
            partial(self.handlers.follow, other.handlers),
            partial(self.script.follow, other.script),
        ]
        for group, switch in self.kernel.items():
            follow.append(partial(switch.follow, other.kernel[group]))
        for each in follow:
            try:
                each()
            except KprobeTuiError as error:
                yield str(error)

    def prepare(self, tracing: Tracing) -> None:
        """Define in a run that begins what triggers of its probes may name: synthetic events."""
        self.kernel[synthetic.GROUP].begin(tracing)

    def begin(self, tracing: Tracing, session: Session) -> str:
        """Trace in a run that begins what was traced in the last one; what cannot be, in words.

        Args:
            tracing: records its events.
            session: the run that begins.
        """
        self.graph.begin(tracing)
        failure = self.handlers.begin(session)
        for group, switch in self.kernel.items():
            if group != synthetic.GROUP:
                switch.begin(tracing)
        return "; ".join(filter(None, (failure, self.script.begin(tracing, session))))
