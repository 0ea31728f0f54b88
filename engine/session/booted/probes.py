"""The probes of a booted kernel: definitions judged by its own rules, and where they stand."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.plan import Mode
from engine.arch.program import FetchArg, RecordLayout, Source
from engine.errors import ProbeError
from engine.probes.kernel_places import FTRACE, KernelVerdict
from engine.session.booted.files import BootFiles
from engine.session.booted.made_events import MadeLine, made_line
from engine.session.booted.program_places import (
    ProgramDefinitions,
    clashing,
    is_of_program,
)
from engine.session.kernel.definition_answers import ImageKernel, placed_lines
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import matching_starts
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ProbeRequest
from engine.session.tracing.output import some_lines
from engine.trace import synthetic
from engine.trace.definition import Definition, Deletion, clean_line, matches, named, read_deletion
from engine.trace.kprobe_events import (
    DYNAMIC_EVENTS,
    KPROBE_EVENTS,
    DefinedProbe,
    KprobeEvents,
)
from engine.trace.tracepoints import EPROBES, selection

_FUNCTION_EVENTS: Final = ("f", "t")
_UNKNOWN: Final = (Source.CURRENT, Source.PER_CPU)


class BootProbe(Struct, frozen=True):
    """A probe of a booted kernel.

    Attributes:
        group: of its event.
        event: name of it.
        address: that its rows show.
        begins: the function that it stands at the entry of; None for another place.
        layout: of its rows.
        is_return: it records returns.
        maxactive: calls that it follows at a time; 0 where its definition does not say.
        technique: what serves it in Linux: "ftrace", "jump", "breakpoint".
        line: its definition as the kernel lists it; "" for that of a pattern.
    """

    group: str
    event: str
    address: int
    begins: int | None
    layout: RecordLayout
    is_return: bool
    maxactive: int
    technique: str
    line: str = ""

    @property
    def place(self) -> int:
        """The address that the code comes to when the probe is hit."""
        return self.address if self.begins is None else self.begins


class WaitingProbe(Struct, frozen=True):
    """A probe of a module that the kernel has not loaded.

    Attributes:
        module: its name.
        function: name of the function, or a pattern.
        offset: in the function.
        group: of the event.
        event: name of it; "" for that of each function that a pattern matches.
        layout: of its rows.
        is_return: it records returns.
        maxactive: see `BootProbe`.
        told: the definition, or the option, for messages.
        line: see `BootProbe`.
    """

    module: str
    function: str
    offset: int
    group: str
    event: str
    layout: RecordLayout
    is_return: bool
    maxactive: int
    told: str
    line: str = ""

    def placed(self, function: str, address: int, begins: int | None) -> BootProbe:
        """The probe at a place of a function; see `BootProbe`."""
        event, kind = self.event_of(function), "breakpoint" if begins is None else "ftrace"
        rows = self.layout, self.is_return, self.maxactive
        return BootProbe(self.group, event, address, begins, *rows, kind, self.line)

    def event_of(self, function: str) -> str:
        """The name of the event of a function's probe."""
        return self.event or _event_of(function, is_return=self.is_return)


class AddedProbes(Struct, frozen=True):
    """The things that one more line of a user's defines.

    Attributes:
        probes: in the kernel itself.
        waiting: of modules.
        programs: in programs.
        made: events that other events make.
        gone: events (group and name) that the line takes away.
    """

    probes: tuple[BootProbe, ...] = ()
    waiting: tuple[WaitingProbe, ...] = ()
    programs: tuple[Definition, ...] = ()
    made: tuple[MadeLine, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()


class BootProbes:
    """Carries out the definitions of a trace of a booted kernel.

    Attributes:
        remarks: about places that were left out.
        waiting: probes of modules, which the kernel may load.
        programs: definitions of probes in programs.
        made: lines that define events which other events make.
    """

    def __init__(
        self, opened: OpenedKernel, files: BootFiles | None = None, mode: Mode = Mode.STRICT
    ) -> None:
        """None yet.

        Args:
            opened: the kernel that is booted.
            files: of its system, as far as they are known.
            mode: strictness of definitions in programs; the kernel judges those in itself.
        """
        self.programs = ProgramDefinitions(opened.arch, files or BootFiles(), mode)
        self.remarks: list[Report] = []
        self.waiting: list[WaitingProbe] = []
        self.made: list[MadeLine] = []
        self._opened = opened
        self._kernel = ImageKernel(opened)
        self._events = KprobeEvents(self._kernel)

    def probes(self, request: ProbeRequest) -> Iterator[BootProbe]:
        """The probes that a request names, in order.

        Raises:
            ProbeError: one is not accepted, with the kernel's own words.
            CommandError: a FILE:LINE is not found.
        """
        if request.watches:
            raise ProbeError("--watch: no memory of a booted kernel is watched")
        for line in request.definitions:
            self._take(line)
        for done in self._events.defined:
            self._check(done)
            if done.address is not None:
                yield self._defined(done, done.address)
            else:
                self._wait(done)
        yield from self.functions(request.entries, "-f", is_return=False)
        yield from self.functions(request.returns, "-r", is_return=True)
        yield from self.bodies(request.bodies)

    def probe(self, line: str) -> BootProbe:
        """The probe of one more definition, which stands in the kernel itself.

        Raises:
            ProbeError: it is not accepted, with the kernel's own words.
        """
        made = len(self.made)
        self._take(line)
        if len(self.made) > made:
            raise ProbeError(f"{line.strip()}: an event that others make has no place")
        done = self._events.defined[-1]
        self._check(done)
        assert done.address is not None, "no module is named"
        return self._defined(done, done.address)

    def add(self, line: str) -> AddedProbes:
        """The probes that one more line defines, and the events that it takes away.

        Raises:
            ProbeError: it is not accepted, with the kernel's own words.
        """
        defined, programs = list(self._events.defined), list(self.programs.defined)
        made, waiting, names = list(self.made), len(self.waiting), self._all_names()
        self._take(line)
        fresh = [one for one in self._events.defined if one not in defined]
        probes = []
        try:
            for done in fresh:
                self._check(done)
                if done.address is not None:
                    probes.append(self._defined(done, done.address))
                else:
                    self._wait(done)
        except ProbeError:
            for done in fresh:
                one = done.probe.definition
                self._take(f"-:{one.group}/{one.event}")
            raise
        left = self._all_names()
        self.waiting[:] = [
            one for one in self.waiting if not one.event or (one.group, one.event) in left
        ]
        return AddedProbes(
            tuple(probes),
            tuple(self.waiting[waiting:]),
            tuple(one for one in self.programs.defined if one not in programs),
            tuple(one for one in self.made if one not in made),
            tuple(name for name in names if name not in left),
        )

    def _all_names(self) -> tuple[tuple[str, str], ...]:
        return (*sorted(self._names()), *(one.name for one in self.made))

    @property
    def instances(self) -> int:
        """Calls that Linux follows at a time where a definition does not say."""
        return self._kernel.instances

    def listing(self) -> str:
        """The definitions as the kernel lists them."""
        programs = "".join(f"{one.listing()}\n" for one in self.programs.defined)
        return self._events.listing(DYNAMIC_EVENTS) + programs

    def _take(self, line: str) -> None:
        selected = selection(line)
        if selected is not None and selected.group in (synthetic.GROUP, EPROBES):
            self.made.append(made_line(selected, self._names()))
            return
        if selected is not None:
            raise ProbeError(
                f"{line.strip()}: no probes stand on a booted kernel's events, which are recorded "
                "as they are: GROUP:EVENT"
            )
        if line.lstrip()[:1] in ("-", "!") and self._unmake(line):
            return
        if is_of_program(line):
            for made in self.programs.take(line):
                if any(one.name == (made.group, made.event) for one in self._events.defined):
                    raise clashing(made)
            return
        if line.lstrip().startswith("-") and self._delete(line):
            return
        file = DYNAMIC_EVENTS if line.strip()[:1] in _FUNCTION_EVENTS else KPROBE_EVENTS
        for placed in placed_lines(self._opened, line):
            outcome = self._events.take(placed, file)
            if outcome.error is not None:
                judged = self._kernel.judged
                if judged is not None and judged.refusal is not None:
                    _explain(outcome.error, judged)
                raise outcome.error
            self._kernel.judged = None
            done = outcome.definition
            if done is not None and self.programs.named(done.group, done.event) is not None:
                raise clashing(done)

    def _names(self) -> frozenset[tuple[str, str]]:
        """The events of the probes that are defined so far."""
        own = (one.probe.definition for one in self._events.defined)
        return frozenset((one.group, one.event) for one in (*own, *self.programs.defined))

    def _delete(self, line: str) -> bool:
        """Take out the events of programs that a line means; False if it may mean others."""
        deletion = read_deletion(tuple(clean_line(line).split()))
        if not self.programs.delete(deletion):
            return False
        others = (one.probe.definition for one in self._events.defined)
        return not any(matches(deletion, one) for one in others)

    def _unmake(self, line: str) -> bool:
        """Take out the events that others make and a line means; False if it may mean others.

        Raises:
            ProbeError: there is no such synthetic event.
        """
        gone = synthetic.removed(line)
        if gone:
            deletion = Deletion(synthetic.GROUP, gone)
        else:
            line = synthetic.other_removal(line) or line
            if not line.lstrip().startswith("-"):
                return False
            deletion = read_deletion(tuple(clean_line(line).split()))
        left = [one for one in self.made if deletion.place or not named(deletion, *one.name)]
        found = len(left) < len(self.made)
        self.made = left
        if gone and not found:
            raise ProbeError(f"{line.strip()}: there is no such event (ENOENT)")
        others = (one.probe.definition for one in self._events.defined)
        return found and not any(matches(deletion, one) for one in others)

    def _wait(self, done: DefinedProbe) -> None:
        one = done.probe.definition
        module, _, symbol = (done.probe.symbol or "").partition(":")
        layout = RecordLayout.of(one.args, one.is_return)
        names = module, symbol, done.probe.offset, one.group, one.event
        line = done.probe.listing(done.maxactive)
        self.waiting.append(
            WaitingProbe(*names, layout, one.is_return, one.maxactive, one.command, line)
        )

    def _check(self, done: DefinedProbe) -> None:
        """Refuse what the kernel takes and what is not carried out here."""
        one = done.probe.definition
        if done.probe.tracepoint:
            raise ProbeError(
                f"{one.command}: no probes stand on tracepoints; their events are recorded as the "
                "kernel has them: GROUP:EVENT"
            )
        unknown = next((arg for arg in one.args if _asks(arg, _UNKNOWN)), None)
        if unknown is not None:
            raise ProbeError(f"{one.command}: {unknown.text}: this base is not carried out here")

    def _defined(self, done: DefinedProbe, address: int) -> BootProbe:
        one = done.probe.definition
        verdict = self._kernel.verdict(address, is_return=one.is_return)
        return BootProbe(
            one.group,
            one.event,
            verdict.address,
            self._begins(verdict),
            RecordLayout.of(one.args, one.is_return),
            one.is_return,
            one.maxactive,
            verdict.kind,
            done.probe.listing(done.maxactive),
        )

    def _begins(self, verdict: KernelVerdict) -> int | None:
        """The function whose entry a probe stands at, where that is sure to begin a block.

        Only compiled code has ftrace's sites, and the compiler's code falls into no function from
        the one in front.
        """
        bounds = self._opened.at(verdict.address).names.bounds(verdict.address)
        if verdict.kind != FTRACE or bounds is None:
            return None
        start = bounds[1]
        return start if self._kernel.at_entry(start, verdict.address - start) else None

    def functions(
        self, globs: Sequence[str], option: str, *, is_return: bool
    ) -> Iterator[BootProbe]:
        """A probe on each function that patterns match; those that are refused are told.

        Args:
            globs: the patterns.
            option: what gave them, for messages.
            is_return: the probe records returns.

        Raises:
            ProbeError: no function matches a pattern, or none of those takes a probe.
        """
        refused: list[str] = []
        layout = RecordLayout.of((), is_return)
        for glob in globs:
            module, colon, pattern = glob.partition(":")
            if colon:
                told = f"{option} {glob}"
                names = module, pattern, 0, "kprobes", ""
                self.waiting.append(WaitingProbe(*names, layout, is_return, 0, told))
                continue
            try:
                starts = matching_starts(self._opened, (glob,))
            except ProbeError as error:
                raise ProbeError(f"{option} {glob}: no function matches") from error
            taken = 0
            for start in starts:
                verdict = self._kernel.verdict(start, is_return=is_return)
                name = (self._opened.names.bounds(start) or (f"{start:#x}", 0, 0))[0]
                if verdict.refusal is not None:
                    refused.append(f"{name}: {verdict.refusal.detail}")
                    continue
                taken += 1
                event = _event_of(name, is_return=is_return)
                begins = self._begins(verdict)
                place = verdict.address, begins
                yield BootProbe("kprobes", event, *place, layout, is_return, 0, verdict.kind)
            if not taken:
                raise ProbeError(f"{option} {glob}: no function that matches takes a probe")
        if refused:
            self.remarks.append(some_lines("no probe on these:", refused))

    def bodies(self, globs: Sequence[str]) -> Iterator[BootProbe]:
        """A probe on every instruction of each function that patterns match.

        What lies in the way of ftrace at an entry counts as one place, as in Linux.

        Raises:
            ProbeError: no function matches a pattern.
        """
        refused: list[str] = []
        layout = RecordLayout.of((), False)
        for glob in globs:
            try:
                starts = matching_starts(self._opened, (glob,))
            except ProbeError as error:
                raise ProbeError(f"--every-insn {glob}: no function matches") from error
            for address in _instructions(self._opened, starts):
                verdict = self._kernel.verdict(address, is_return=False)
                name, start, _ = self._opened.names.bounds(address) or (
                    f"{address:#x}",
                    address,
                    0,
                )
                if verdict.refusal is not None:
                    refused.append(f"{name}+{address - start:#x}: {verdict.refusal.detail}")
                    continue
                event = _event_of(name, is_return=False, offset=address - start)
                place = verdict.address, self._begins(verdict)
                yield BootProbe("kprobes", event, *place, layout, False, 0, verdict.kind)
        if refused:
            self.remarks.append(some_lines("no probe on these:", refused))


def _instructions(opened: OpenedKernel, starts: Iterable[int]) -> Iterator[int]:
    """The addresses of all instructions of functions."""
    for start in starts:
        places = opened.at(start).places
        function = places.function(start)
        if function is not None:
            yield from (address for address, _ in places.instructions(function))


def _event_of(function: str, *, is_return: bool, offset: int = 0) -> str:
    """The kernel's automatic name for a probe in a function, or on its returns."""
    name = "".join(one if one.isalnum() or one == "_" else "_" for one in function)
    return f"{'r' if is_return else 'p'}_{name}_{offset}"


def _asks(arg: FetchArg, sources: Iterable[Source]) -> bool:
    base = arg.base
    return base.source in sources or (base.fetch is not None and base.fetch[0].source in sources)


def _explain(error: ProbeError, verdict: KernelVerdict) -> None:
    explain = getattr(error, "explain", None)
    if explain is not None and verdict.refusal is not None:
        explain(verdict.refusal.detail)
