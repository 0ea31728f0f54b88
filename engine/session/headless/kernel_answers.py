"""Definitions as the kernel of an image answers them itself, beside our verdicts.

The kernel runs in a machine, where each line is written to its kprobe_events. Each definition
meets a kernel without events, as with `check`; those that are accepted are then enabled, many at a
time that cannot touch each other, to see what the kernel makes of them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.kernel.recognition import is_kernel_image
from engine.machine.agent import (
    DATA_MOST,
    TRUNCATE,
    FileAnswer,
    FileRequest,
    When,
    reading,
    sleeping,
    writing,
)
from engine.session.headless.agent_machine import AgentMachine, AgentRequest
from engine.session.kernel.definition_answers import defined_rows, placed_lines
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import KernelRow, error_name, matching_starts
from engine.session.protocol.kernels import KernelChoice, Patched
from engine.session.protocol.report import Report
from engine.session.protocol.requests import CheckRequest, Rules
from engine.trace.kprobe_events import DYNAMIC_EVENTS, KPROBE_EVENTS

_TRACING: Final = "/sys/kernel/tracing"
_LOG: Final = f"{_TRACING}/error_log"
_LIST: Final = "/sys/kernel/debug/kprobes/list"
_ENTRY: Final = re.compile(r"\[ *\d+\.\d+\] \w+: error: (.*)")
_COMMAND: Final = "  Command: "
_LISTED: Final = re.compile(r"([0-9a-f]+) +[a-z] +(.*)")
_SHOWN: Final = re.compile(r"[^:\s]+:([^/\s]+)/(\S+)")
_DISABLED, _FTRACE, _OPTIMIZED = "DISABLED", "FTRACE", "OPTIMIZED"
_GROUP: Final = "kprobe_tui_asks"
"""Group of the events that are enabled."""
_HASHED: Final = re.compile(r"0x(?:[0-9a-f]{16}|\(____ptrval____\))")
"""An address as `%p` prints it: a number drawn at boot, or none before there is randomness."""
_ID: Final = re.compile(r"^ID: \d+$", re.MULTILINE)
_TOGETHER: Final = 100
"""Definitions that are written, and events that are enabled, at a time."""
_APART: Final = 64
"""Bytes between two places that have nothing to do with each other: more than a jump and what it
moves away."""
_PAUSE, _PAUSES = 500, 20
"""Milliseconds between two looks at whether the kernel has made its jumps, and the most looks."""
_SETTLED: Final = 4
"""Looks without a change after which it has made them."""


class AskedAnswer(Struct, frozen=True):
    """The kernel's own answer to a definition.

    Attributes:
        errno: name of the error that the writer gets; "" where it is accepted.
        error: the text in error_log; "" without an entry.
        command: the definition as error_log shows it; "" without an entry.
        column: of the caret in that; None without an entry.
        shown: the line as the file reads then.
        address: of the kprobe; None without one.
        flags: of the enabled kprobe in kprobes/list, as "OPTIMIZED"; None if they are not known.
        format: the event's format file.
    """

    errno: str
    error: str = ""
    command: str = ""
    column: int | None = None
    shown: str = ""
    address: int | None = None
    flags: tuple[str, ...] | None = None
    format: str = ""

    @property
    def accepted(self) -> bool:
        """True if the kernel takes it."""
        return not self.errno

    @property
    def optimized(self) -> bool | None:
        """True if it becomes a jump; None where that is not known."""
        return None if self.flags is None else _OPTIMIZED in self.flags

    @property
    def ftrace(self) -> bool | None:
        """True if ftrace serves it; None where that is not known."""
        return None if self.flags is None else _FTRACE in self.flags


class AskedRow(Struct, frozen=True):
    """Our verdict on a definition and the kernel's answer.

    Attributes:
        row: the verdict.
        answer: the answer.
        differences: names of what differs.
    """

    row: KernelRow
    answer: AskedAnswer
    differences: tuple[str, ...]


class KernelAsked(Struct, frozen=True):
    """Return the definitions of a request with the kernel's answers.

    Attributes:
        rows: in their order.
        remarks: about what was not as it should be, for debugging.
    """

    rows: list[AskedRow]
    remarks: tuple[Report, ...]


def ask_kernel(request: CheckRequest, append: str, timeout: float | None) -> KernelAsked:
    """Judge the definitions of a request, and have the kernel of the image judge them.

    Args:
        request: the definitions, or functions whose entries are probed.
        append: more words of the kernel's command line.
        timeout: seconds until it is given up; None for no limit.

    Raises:
        CommandError: no machine boots here, the kernel did not answer, or a choice is none.
        CutOff: the time ran out.
        ImageError: the image cannot be read, or is none that is booted.
        ProbeError: no function matches a pattern.
    """
    config, choice = request.config, request.config.kernel
    _check_choices(request, choice)
    opened = OpenedKernel.open(config.guest, choice)
    machine = AgentMachine(AgentRequest(config.guest, append, timeout), opened.image)
    try:
        if choice.cpu == KernelChoice().cpu and choice.patched is Patched.BOOT:
            opened.boot_on(machine.cpuinfo)
        lines = list(_lines(opened, request))
        file = DYNAMIC_EVENTS if choice.dynamic_events else KPROBE_EVENTS
        rows = list(defined_rows(opened, lines, sequence=choice.sequence, file=file))
        shown = [row.shown for row in rows]
        found = answered(machine, lines, shown, file=file, sequence=choice.sequence)
    finally:
        machine.close()
    pairs = zip(rows, found, strict=True)
    asked = [AskedRow(row, answer, tuple(differing(row, answer))) for row, answer in pairs]
    told = (*opened.remarks, *machine.remarks)
    return KernelAsked(asked, (Report(("cache of kernels:", *told)),) if told else ())


def _check_choices(request: CheckRequest, choice: KernelChoice) -> None:
    if not is_kernel_image(request.config.guest):
        raise CommandError(f"{request.config.guest}: no kernel image, which --ask-kernel boots")
    if request.rules is Rules.UPROBE:
        raise CommandError("--as uprobe: no uprobe is in a kernel; its own rules decide")
    if request.everything or choice.together or choice.modules:
        raise CommandError(
            "--ask-kernel asks about definitions, -e or -f, in a kernel without modules: --all, "
            "--together and --module do not go with it"
        )
    if not request.definitions and not request.functions:
        raise CommandError("--ask-kernel: which definitions? -e DEF names one, -f GLOB functions")


def _lines(opened: OpenedKernel, request: CheckRequest) -> Iterator[str]:
    """The lines to be written, each with one place at most."""
    for line in request.definitions:
        for placed in placed_lines(opened, line.removesuffix("\n")):
            if len(_raw(placed)) > DATA_MOST:
                raise CommandError(f"-e {placed[:40]}...: too long to be asked")
            yield placed
    if request.functions:
        names = opened.image.names
        for start in matching_starts(opened, request.functions):
            found = names.at(start)
            single = found is not None and found.start == start and names.count(found.name) == 1
            yield f"p {found.name}" if found is not None and single else f"p {start:#x}"


def _raw(line: str) -> bytes:
    return line.encode("utf-8", "surrogateescape") + b"\n"


# -- asking ----------------------------------------------------------------------------


def answered(
    machine: AgentMachine,
    lines: Sequence[str],
    shown: Sequence[str],
    *,
    file: str,
    sequence: bool,
) -> list[AskedAnswer]:
    """The kernel's answers to lines.

    Args:
        machine: the kernel, without events; it is left so.
        lines: definitions.
        shown: for each line how the file will read then, as far as that is known: names the event
            whose format is read.
        file: KPROBE_EVENTS or DYNAMIC_EVENTS.
        sequence: they build on each other. Nothing is enabled then.

    Raises:
        CommandError: the kernel did not answer.
        CutOff: the time ran out.
    """
    path = f"{_TRACING}/{file}"
    found: list[AskedAnswer] = []
    for at in range(0, len(lines), _TOGETHER):
        asked = [
            _definition(line, _last_event(known), path, keep=sequence)
            for line, known in zip(
                lines[at : at + _TOGETHER], shown[at : at + _TOGETHER], strict=True
            )
        ]
        answers = iter(machine.ask([request for each in asked for request in each]))
        found += [_answer([next(answers) for _ in each]) for each in asked]
    if sequence:
        machine.ask((writing(path, b"", TRUNCATE),))
        return found
    unknown = [answer for answer in found if answer.address is not None and answer.flags is None]
    places = {_place(answer) for answer in unknown}
    flags: dict[tuple[str, int], tuple[str, ...] | None] = {}
    for batch in _batches(sorted(places)):
        flags |= _enabled(machine, batch)
    return [
        replace(answer, flags=flags.get(_place(answer)))
        if answer.address is not None and answer.flags is None
        else answer
        for answer in found
    ]


def _definition(line: str, event: str, path: str, *, keep: bool) -> tuple[FileRequest, ...]:
    """Write a line and read what becomes of it; nothing is left but what is to be kept."""
    remove = () if keep else (writing(path, b"", TRUNCATE, When.TAKEN),)
    probes = () if keep else (reading(_LIST, When.TAKEN),)
    return (
        writing(path, _raw(line)),
        reading(path, When.TAKEN),
        reading(f"{_TRACING}/events/{event}/format", When.TAKEN),
        reading(_LOG, When.REFUSED),
        *probes,
        *remove,
        writing(_LOG, b"", TRUNCATE, When.REFUSED),
    )


def _answer(answers: Sequence[FileAnswer]) -> AskedAnswer:
    """Read the answers to `_definition`; where no list was asked for, the fifth has no data."""
    wrote, shown, shape, log, listed = answers[:5]
    number = wrote.number or 0
    if number < 0:
        return _refusal(_error(number), _text(log))
    probes = _listed(_text(listed))
    address = next(iter(probes)) if len(probes) == 1 else None
    flags = tuple(flag for flag in probes.get(address or 0, ()) if flag != _DISABLED)
    text = _ID.sub("ID: N", _text(shape))
    known = flags if _FTRACE in flags else None  # which never becomes a jump
    return AskedAnswer("", shown=_text(shown), address=address, flags=known, format=text)


def _refusal(name: str, log: str) -> AskedAnswer:
    """A refusal with the entry in error_log."""
    lines = log.split("\n")
    for at, line in enumerate(lines[:-2]):
        match = _ENTRY.fullmatch(line)
        if match is not None and lines[at + 1].startswith(_COMMAND):
            command = lines[at + 1].removeprefix(_COMMAND)
            caret = lines[at + 2].rfind("^")
            column = caret - len(_COMMAND) if caret >= 0 else None
            return AskedAnswer(name, match[1], command, column)
    return AskedAnswer(name)


def _listed(text: str) -> dict[int, tuple[str, ...]]:
    """The flags of each kprobe in kprobes/list."""
    found: dict[int, tuple[str, ...]] = {}
    for line in text.splitlines():
        match = _LISTED.match(line)
        if match is not None:
            found[int(match[1], 16)] = tuple(re.findall(r"\[([A-Z]+)\]", match[2]))
    return found


def _place(answer: AskedAnswer) -> tuple[str, int]:
    """Kind and address of an accepted kprobe: what the kernel makes of it depends on no more."""
    assert answer.address is not None, "there is one kprobe"
    return answer.shown.lstrip()[:1], answer.address


def _last_event(shown: str) -> str:
    """GROUP/NAME of the event in the last line of how a file reads; "" for none."""
    match = _SHOWN.match(shown.strip().rpartition("\n")[2])
    return f"{match[1]}/{match[2]}" if match is not None else ""


def _batches(places: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Places of probes that can be enabled at once."""
    left = list(places)
    while left:
        taken: list[tuple[str, int]] = []
        later: list[tuple[str, int]] = []
        parts: set[int] = set()
        for kind, address in left:
            part = address // _APART
            if len(taken) == _TOGETHER or parts & {part - 1, part, part + 1}:
                later.append((kind, address))
                continue
            taken.append((kind, address))
            parts.add(part)
        yield taken
        left = later


def _enabled(
    machine: AgentMachine, places: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], tuple[str, ...] | None]:
    """Enable kprobes together and read their flags; None for one that is not enabled."""
    path = f"{_TRACING}/{KPROBE_EVENTS}"
    lines = [f"{kind}:{_GROUP}/n{at} {place:#x}\n" for at, (kind, place) in enumerate(places)]
    on = [writing(f"{_TRACING}/events/{_GROUP}/n{at}/enable", b"1\n") for at in range(len(lines))]
    pairs = zip(lines, on, strict=True)
    said = machine.ask(
        [each for line, enable in pairs for each in (writing(path, line.encode()), enable)]
    )
    listed = _settled(machine)
    off = writing(f"{_TRACING}/events/{_GROUP}/enable", b"0\n")
    machine.ask((off, writing(path, b"", TRUNCATE), writing(_LOG, b"", TRUNCATE)))
    return {
        place: listed.get(place[1]) if (said[2 * at + 1].number or 0) > 0 else None
        for at, place in enumerate(places)
    }


def _settled(machine: AgentMachine) -> dict[int, tuple[str, ...]]:
    """kprobes/list once the kernel has made its jumps, which it does after a while."""
    before, still = "", 0
    for _ in range(_PAUSES):
        _, listed = machine.ask((sleeping(_PAUSE), reading(_LIST)))
        text = _text(listed)
        still = still + 1 if text == before else 0
        before = text
        if still == _SETTLED:
            break
    return _listed(before)


def _error(number: int) -> str:
    """The name of an error's negative number; "" for none."""
    try:
        return error_name(-number) if number < 0 else ""
    except KeyError:
        return str(-number)


def _text(answer: FileAnswer) -> str:
    return answer.data.decode("utf-8", "surrogateescape")


# -- comparing -------------------------------------------------------------------------


def differing(row: KernelRow, answer: AskedAnswer) -> Iterator[str]:
    """Names of what differs between our verdict and the kernel's answer."""
    if row.ok != answer.accepted:
        yield "accepted"
        return
    pairs: list[tuple[str, object, object]] = [
        ("errno", row.errno, answer.errno),
        ("error", row.error, answer.error),
        ("command", row.command, answer.command),
        ("column", row.column, answer.column),
        ("shown", _HASHED.sub("0x?", row.shown), _HASHED.sub("0x?", answer.shown)),
    ]
    if row.ok:
        if answer.address is not None:
            pairs.append(("address", row.address, answer.address))
        if answer.flags is not None:
            pairs.append(("ftrace", row.ftrace, answer.ftrace))
            pairs.append(("optimized", row.optimized, answer.optimized))
        if answer.format and row.format:
            pairs.append(("format", row.format, answer.format))
    for name, ours, theirs in pairs:
        if ours != theirs:
            yield name
