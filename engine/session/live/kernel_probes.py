"""The definitions of a trace as lines that the running kernel takes, in groups of our own."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules
from engine.arch.uprobe_faults import FAULTS, INT3, NOP_CALL
from engine.errors import CommandError
from engine.probes.placement_rules import CORRUPTS, Finding, Judgement
from engine.session.live.histograms import counts_here
from engine.session.live.instance import KernelInstance
from engine.session.live.processes import ProbedCode
from engine.session.live.tracefs import LiveKernelError, append, read_text
from engine.session.program.places import Place
from engine.session.program.return_places import spoiled_return
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace import synthetic
from engine.trace.export import CannotError, ExportPlace, kprobe_line, uprobe_line
from engine.trace.kernel_rows import KernelEvent, RowMaker, row_maker
from engine.trace.rows import EventInfo, EventSource
from engine.trace.trigger import EventTrigger, TriggerAction

UPROBES: Final = "uprobe_events"
KPROBES: Final = "kprobe_events"
_ALL_THE_SAME: Final = "(a '!' in front of the definition places it all the same)"
_BY_HAND: Final = (
    "trace has it in the guest; trace --list-as tracefs writes the lines for a kernel"
)
_OTHERS: Final = {
    TriggerAction.STACK: "it would record the kernel's own stack: give --stack",
    TriggerAction.SNAPSHOT: "the rows are read as they come",
}
"""Triggers that mean something else in the running kernel."""


class LiveProbe(Struct, frozen=True):
    """One place of one event.

    Attributes:
        info: the event, as its rows are.
        place: what it was made for.
        exported: the place for the kernel.
        kind: the file that takes its line.
    """

    info: EventInfo
    place: Place
    exported: ExportPlace
    kind: str = UPROBES

    def line(self, group: str, arch: Arch) -> str:
        """The line that makes it an event of a group.

        Raises:
            CommandError: the kernel's language has no words for a part of it.
        """
        definition = replace(self.exported.definition, group=group)
        place = replace(self.exported, definition=definition)
        try:
            return (uprobe_line if self.kind == UPROBES else kprobe_line)(place, arch)
        except CannotError as error:
            raise CommandError(
                f"{self.exported.definition.command}: not for the running kernel: {error}"
            ) from error


class KernelProbes:
    """The events of a trace in the running kernel.

    Attributes:
        probes: a place each.
        left_out: why places that a pattern has found have none.
    """

    def __init__(self, tracing: Tracing, host_path: Callable[[str], str] = str) -> None:
        """Take the definitions of a trace; nothing is placed yet.

        Args:
            tracing: the trace whose definitions are placed.
            host_path: the machine's path of a file that has another one in the program's tree.

        Raises:
            CommandError: the running kernel does not do what is asked, by its rules.
        """
        self._tracing = tracing
        self._arch = tracing.session.arch
        self._groups: dict[str, str] = {}
        if tracing.unplaced.infos:
            raise CommandError(_not_here(tracing.unplaced.infos[0], tracing))
        self.left_out: list[str] = []
        patterned = {
            (one.event.info.group, one.event.info.name) for one in tracing.definitions.patterned
        }
        kept: list[LiveProbe] = []
        for probe in _probes(tracing, host_path):
            try:
                probe.line("g", self._arch)
                self._judge(probe)
            except CommandError as error:
                if (probe.info.group, probe.info.name) not in patterned:
                    raise
                self.left_out.append(str(error))
            else:
                kept.append(probe)
        self.probes = tuple(kept)
        if not self.probes:
            raise CommandError(
                self.left_out[0]
                if self.left_out
                else "none of the places is in a file: there is nothing to place"
            )
        self._judge_breakpoints()
        for info in self.infos.values():
            for trigger in self._triggers(info):
                _check_trigger(trigger, info)

    def _judgement(self, probe: LiveProbe) -> Judgement:
        place = probe.place
        there = Place(replace(place.around, rules=Rules.UPROBE), place.link, place.typed)
        verdicts = self._tracing.session.probes().verdicts
        return verdicts.judge(there, mode=Mode.KERNEL, brief=True).judgement

    def _judge(self, probe: LiveProbe) -> None:
        """Refuse what the kernel refuses or does wrong only at a hit, without a word.

        Raises:
            CommandError: it would.
        """
        if probe.kind != UPROBES:
            return
        judgement = self._judgement(probe)
        if not judgement.ok:
            raise CommandError(
                f"{probe.exported.definition.command}: the running kernel places no uprobe at "
                f"{probe.place.name}: {judgement.reason} ({judgement.errno})"
            )

        definition = probe.exported.definition
        if definition.strict_override:
            return
        for finding in self._damage(judgement):
            raise CommandError(f"{definition.command}: {finding.message} {_ALL_THE_SAME}")
        spoiled = spoiled_return(self._arch, probe.place) if definition.is_return else None
        if spoiled is not None:
            fault, why = spoiled
            message = f"{fault.rule}: {why}, and Linux {fault.text()}"
            raise CommandError(f"{definition.command}: {message} {_ALL_THE_SAME}")

    def _damage(self, judgement: Judgement) -> Iterator[Finding]:
        """The findings about what the running kernel would damage at a place."""
        fault = next((one for one in FAULTS if one.rule == judgement.plan.rule), None)
        if fault is None or _release() >= fault.since:
            yield from (one for one in judgement.errors if one.rule == CORRUPTS)
        calls = self._arch.nop_calls
        called = calls is not None and calls().is_nop(judgement.plan.raw)
        if called and _release() >= NOP_CALL.since:
            yield from (one for one in judgement.findings if one.rule == NOP_CALL.rule)

    def _judge_breakpoints(self) -> None:
        """Refuse uprobes in a program that the running kernel would damage anywhere.

        Raises:
            CommandError: it would.
        """
        definitions = (one.exported.definition for one in self.probes if one.kind == UPROBES)
        first = next((one for one in definitions if not one.strict_override), None)
        if first is None or _release() < INT3.since:
            return
        for file, address in self._tracing.session.probes().verdicts.long_breakpoints():
            raise CommandError(
                f"{first.command}: {INT3.rule}: with a uprobe anywhere in the program Linux"
                f" {INT3.text()}. There is one at {address:#x} of {file.path} {_ALL_THE_SAME}"
            )

    def _why(self, probe: LiveProbe) -> str:
        """The rule by which the kernel has refused a place, which it does not tell of a kprobe."""
        kernel = self._tracing.session.opened.kernel
        if kernel is None:
            return ""
        places = kernel.at(probe.place.link).places
        judge = places.returning if probe.exported.definition.is_return else places.event
        refusal = judge(probe.place.link).refusal
        return "" if refusal is None else f": {refusal.detail}"

    def repeats(self, probe: LiveProbe) -> bool:
        """True for a probe on a string instruction with a repeat prefix."""
        return probe.kind == UPROBES and self._judgement(probe).plan.repeats

    @property
    def infos(self) -> dict[tuple[str, str], EventInfo]:
        """The events by group and name."""
        return {(probe.info.group, probe.info.name): probe.info for probe in self.probes}

    @property
    def code(self) -> list[ProbedCode]:
        """The places of uprobes."""
        return [
            ProbedCode(
                p.info.id, p.place.image, (p.place.path, *p.place.paths), p.exported.file_offset
            )
            for p in self.probes
            if p.kind == UPROBES
        ]

    @property
    def files(self) -> list[str]:
        """The files that get breakpoints."""
        return list(dict.fromkeys(p.exported.path for p in self.probes if p.kind == UPROBES))

    def define(self, instance: KernelInstance) -> dict[int, RowMaker]:
        """Define the events, with their filters and triggers; none is enabled.

        Returns:
            Makers of rows, by the number that records begin with.

        Raises:
            LiveKernelError: the kernel refuses something.
        """
        for group, _ in self.infos:
            self._groups.setdefault(group, instance.group(len(self._groups)))
        for probe in self.probes:
            line = probe.line(self._groups[probe.info.group], self._arch)
            try:
                instance.tracefs.define(probe.kind, line)
            except LiveKernelError as error:
                raise LiveKernelError(f"{error}{self._why(probe)}") from error
        makers: dict[int, RowMaker] = {}
        for info in self.infos.values():
            directory = self._directory(instance, info)
            event = KernelEvent.of(read_text(directory / "format"))
            makers[event.number] = row_maker(info, event)
            control = self._tracing.controls.of(info)
            if control.filter is not None and not counts_here(control):
                instance.tracefs.put(directory / "filter", control.filter.text)
            for trigger in self._triggers(info):
                instance.tracefs.put(directory / "trigger", _theirs(trigger.text, self._groups))
        return makers

    def enable(self, instance: KernelInstance) -> None:
        """Have the events recorded; those that another one's trigger switches on are not yet.

        Raises:
            LiveKernelError: the kernel refuses to place a probe.
        """
        waiting = {
            trigger.target
            for info in self.infos.values()
            for trigger in self._triggers(info)
            if trigger.kind.action is TriggerAction.SWITCH_EVENT
            and trigger.kind.on
            and trigger.target != (info.group, info.name)
        }
        for key, info in self.infos.items():
            if key in waiting:
                continue
            path = self._directory(instance, info) / "enable"
            try:
                append(path, "1")
            except OSError as error:
                lines = [p.exported.definition.command for p in self.probes if p.info is info]
                raise LiveKernelError(
                    f"{lines[0]}: the running kernel does not enable it: {error.strerror}"
                ) from error

    def profile(self, instance: KernelInstance) -> Iterator[str]:
        """The lines of our events in the kernel's profiles, with what they are called here."""
        names, files = {info.name for info in self.infos.values()}, set(self.files)
        for kind in (KPROBES, UPROBES):
            for line in instance.tracefs.listed(f"{kind.partition('_')[0]}_profile"):
                words = line.split()
                event = words[0] if kind == KPROBES else words[1]
                if event in names and (kind == KPROBES or words[0] in files):
                    yield line

    def _directory(self, instance: KernelInstance, info: EventInfo) -> Path:
        return instance.event(self._groups[info.group], info.name)

    def _triggers(self, info: EventInfo) -> list[EventTrigger]:
        """The kernel's triggers of an event, in the order in which they were given."""
        armed = self._tracing.controls.of(info).triggers
        return [one.trigger for one in reversed(armed) if one.trigger.hist is None]


def _probes(tracing: Tracing, host_path: Callable[[str], str]) -> Iterator[LiveProbe]:
    kernel = tracing.session.opened.kernel is not None
    for place, exported in TraceListing(tracing).exported():
        definition = exported.definition
        info = tracing.infos[definition.group, definition.event]
        exported = replace(exported, path=host_path(exported.path))
        yield LiveProbe(info, place, exported, KPROBES if kernel else UPROBES)


def _not_here(info: EventInfo, tracing: Tracing) -> str:
    """Why an event is none of live's, and what there is instead.

    Args:
        info: the event, which is no probe's.
        tracing: the trace that has it.
    """
    name = f"{info.group}/{info.name}"
    if info.source is EventSource.EPROBE:
        probes = tracing.unplaced.event_probes
        if probes is not None and probes.on_probe(info):
            return (
                f"{name}: Linux has event probes on tracepoints alone, and {info.attached} is a"
                " probe: give that one the arguments, and --filter, itself"
            )
        return f"{name}: live places probes only, and this is an event probe: {_BY_HAND}"
    if info.group == synthetic.GROUP:
        return f"{name}: live counts the kernel's events, and makes none of them: {_BY_HAND}"
    return f"{name}: live places probes only, and this event has none: {_BY_HAND}"


def _release() -> tuple[int, ...]:
    """Version of the running kernel."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return tuple(map(int, found.groups())) if found else ()


def _check_trigger(trigger: EventTrigger, info: EventInfo) -> None:
    why = _OTHERS.get(trigger.kind.action)
    if why is not None:
        raise CommandError(f"--trigger {info}:{trigger.text}: not for the running kernel: {why}")


def _theirs(trigger: str, groups: Mapping[str, str]) -> str:
    """A trigger with our groups' names."""
    name, colon, rest = trigger.partition(":")
    group, more, end = rest.partition(":")
    if name not in ("enable_event", "disable_event") or group not in groups:
        return trigger
    return f"{name}{colon}{groups[group]}{more}{end}"
