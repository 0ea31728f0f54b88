"""The command line: gdb's words, and lines of `kprobe_events` as they are.

`COMMANDS` is the list; a command is a line there. What is no command's name is a definition if
it looks like one.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.errors import CommandError
from engine.session.protocol import commands as cmd
from tui.controls import Controls
from tui.guest_editor import number
from tui.widgets.bars import Question

Run = Callable[[Controls, str], None]


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command.

    Attributes:
        names: what it is called, the usual name first.
        usage: its arguments, "" for none.
        help: what it does.
        run: does it.
        places: whether its argument is a PLACE, for completion.
        events: whether its first argument is an event, for completion.
    """

    names: tuple[str, ...]
    usage: str
    help: str
    run: Run
    places: bool = False
    events: bool = False


def _post(command: cmd.Command) -> Run:
    def run(on: Controls, rest: str) -> None:
        on.desk.post(command)

    return run


def _steps(make: Callable[[int], cmd.Command]) -> Run:
    def run(on: Controls, rest: str) -> None:
        on.desk.post(make(_count(rest)))

    return run


def _ids(make: Callable[[tuple[int, ...]], cmd.Command]) -> Run:
    def run(on: Controls, rest: str) -> None:
        ids = tuple(probe.id for probe in on.desk.view.probes)
        if rest.strip():
            ids = tuple(number(word) for word in rest.split())
        if not ids:
            raise CommandError("there is no probe")
        on.desk.post(make(ids))

    return run


def _break(on: Controls, rest: str) -> None:
    on.desk.post(cmd.ToggleBreak(_needed(rest, "a PLACE")))


def _until(on: Controls, rest: str) -> None:
    on.desk.post(cmd.RunTo(on.browser.address_of(_needed(rest, "a PLACE"))))


def _go(on: Controls, rest: str) -> None:
    on.navigator.go_to(_needed(rest, "a place"))


def _examine(on: Controls, rest: str) -> None:
    address = on.browser.address_of(_needed(rest, "an address"))
    on.navigator.examine(address)


def _set(on: Controls, rest: str) -> None:
    words = rest.split()
    if words and words[0] == "scheduler-locking":  # gdb's: who runs when one thread does
        if len(words) != 2 or words[1] not in _LOCKING:
            raise CommandError(f"set scheduler-locking {'|'.join(_LOCKING)}")
        on.desk.post(cmd.StepAlone(on=_LOCKING[words[1]]))
        return
    name, equals, value = rest.replace("$", "", 1).partition("=")
    if not equals:
        raise CommandError("set REGISTER=VALUE")
    on.desk.post(cmd.WriteRegister(name.strip(), number(value)))


def _thread(on: Controls, rest: str) -> None:
    words = rest.split()
    if not words:
        view = on.desk.view
        comm, pid = view.comms.get(view.thread, ""), view.pids.get(view.thread, view.thread)
        on.desk.say(f"thread {view.thread} ({comm}) of process {pid}")
    elif len(words) > 1:
        raise CommandError("thread N, the id of one")
    else:
        on.desk.post(cmd.ChooseThread(number(words[0])))


def _info(on: Controls, rest: str) -> None:
    found = [name for name in _INFO if rest.strip() and name.startswith(rest.strip())]
    if len(found) != 1:
        raise CommandError(f"info {'|'.join(_INFO)}")
    on.body.show_pane(_INFO[found[0]])


_LOCKING: Final = {"on": True, "step": True, "off": False}
_INFO: Final = {
    "threads": "threads",
    "inferiors": "threads",
    "registers": "registers",
    "breakpoints": "probes",
    "stack": "backtrace",
    "frame": "backtrace",
    "locals": "backtrace",
    "proc": "memory",
}
"""Subjects of gdb's `info`, and the pane that has each."""


def _signal(on: Controls, rest: str) -> None:
    import signal

    word = rest.strip().upper()
    name = word if word.startswith("SIG") else f"SIG{word}"
    known = getattr(signal, name, None)
    on.desk.post(cmd.Signal(int(known) if known is not None else number(rest)))


def _source(on: Controls, rest: str) -> None:
    path = _needed(rest, "a FILE")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file]
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    for line in lines:
        if line.strip():
            on.desk.post(cmd.Define(line))


def _write(on: Controls, rest: str) -> None:
    lines = [probe.definition for probe in on.desk.view.probes if probe.kind != "b"]
    _save(on, rest, "".join(f"{line}\n" for line in lines), f"{len(lines)} definitions")


def _export(on: Controls, rest: str) -> None:
    lines = on.panes.events.lines
    text = lines.copy_text(range(lines.line_count))
    _save(on, rest, text + "\n" if text else "", f"{lines.line_count} events")
    on.quitting.exported()


def _snapshot(on: Controls, rest: str) -> None:
    store = on.panes.events.store
    if store.snapshot is None:
        raise CommandError("no snapshot was taken; :trigger EVENT snapshot takes one at a hit")
    _save(on, rest, "".join(store.snapshot_text()), f"the snapshot up to #{store.snapshot_end}")


def _kernel_events(group: str, examples: str) -> Callable[[Controls, str], None]:
    def trace(on: Controls, rest: str) -> None:
        off = rest.startswith("!")
        globs = tuple(rest.removeprefix("!").split())
        if not globs and not off:
            raise CommandError(f"which? a GLOB of names is missing: {examples}; ! for none")
        on.desk.post(cmd.TraceKernel(globs, not off, group))

    return trace


def _save(on: Controls, rest: str, text: str, what: str) -> None:
    path = _needed(rest, "a FILE")
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    on.desk.say(f"{what} written to {path}")


def _filter(on: Controls, rest: str) -> None:
    event, _, text = rest.partition(" ")
    on.desk.post(cmd.SetFilter(_event(on, event), text.strip()))


def _trigger(on: Controls, rest: str) -> None:
    event, _, text = rest.partition(" ")
    on.desk.post(cmd.ChangeTrigger(_event(on, event), _needed(text, "a TRIGGER")))


def _hist(on: Controls, rest: str) -> None:
    event, _, text = rest.partition(" ")
    event, text = _event(on, event), _needed(text, "a FIELD")
    keys = text.removeprefix("hist:")
    if re.match(r"\w+=", keys) is None:  # a field alone, perhaps with `.buckets=N`
        keys = f"keys={keys}"
    on.desk.post(cmd.ChangeTrigger(event, f"hist:{keys}"))


def _event(on: Controls, text: str) -> str:
    """GROUP/NAME of an event, whose group may be left out where that is clear."""
    name = _needed(text, "an EVENT")
    found = [event for event in _events(on) if event.partition("/")[2] == name]
    if "/" in name:
        return name
    if len(found) != 1:
        known = ", ".join((found or _events(on))[:10])
        raise CommandError(f"{name}: which event? there are {known or 'none, p places a probe'}")
    return found[0]


def _events(on: Controls) -> list[str]:
    return list(dict.fromkeys(probe.event for probe in on.desk.view.probes if probe.event))


def _theme(on: Controls, rest: str) -> None:
    on.desk.use_theme(rest.strip())


COMMANDS: Final[tuple[CommandSpec, ...]] = (
    CommandSpec(("continue", "c"), "", "run on", _post(cmd.Continue())),
    CommandSpec(("run", "r"), "", "start the program afresh", _post(cmd.Restart())),
    CommandSpec(("stepi", "si"), "[N]", "N instructions", _steps(cmd.StepInsn)),
    CommandSpec(("nexti", "ni"), "[N]", "N instructions, calls as a whole", _steps(cmd.StepOver)),
    CommandSpec(("step", "s"), "", "to another source line", _post(cmd.StepLine())),
    CommandSpec(("next", "n"), "", "the same, calls as a whole", _post(cmd.StepLine(over=True))),
    CommandSpec(("finish", "fin"), "", "until the function has returned", _post(cmd.Finish())),
    CommandSpec(("until", "advance", "u"), "PLACE", "run to a place", _until, places=True),
    CommandSpec(("phase",), "", "the next phase of a hit", _post(cmd.StepPhase())),
    CommandSpec(("interrupt",), "", "stop the program", _post(cmd.Halt())),
    CommandSpec(("break", "b"), "PLACE", "breakpoint; again: no more", _break, places=True),
    CommandSpec(("delete", "d"), "[N...]", "delete probes", _ids(cmd.Delete)),
    CommandSpec(("enable",), "[N...]", "enable probes", _ids(cmd.Enable)),
    CommandSpec(
        ("disable",), "[N...]", "disable probes", _ids(lambda ids: cmd.Enable(ids, False))
    ),
    CommandSpec(("stop",), "[N...]", "stop when they are hit", _ids(cmd.StopOnHit)),
    CommandSpec(("nostop",), "[N...]", "do not stop", _ids(lambda ids: cmd.StopOnHit(ids, False))),
    CommandSpec(("filter",), "EVENT [EXPR]", "record an event only if", _filter, events=True),
    CommandSpec(
        ("trigger",), "EVENT TRIGGER", "do it at an event (!: not)", _trigger, events=True
    ),
    CommandSpec(("hist",), "EVENT FIELD|keys=...", "count hits by fields", _hist, events=True),
    CommandSpec(
        ("syscalls",),
        "GLOB... | ![GLOB...]",
        "record system calls, or no longer",
        _kernel_events("syscalls", "write, *at, sys_enter_*"),
    ),
    CommandSpec(
        ("sched",),
        "GLOB... | ![GLOB...]",
        "record what the scheduler does, or no longer",
        _kernel_events("sched", "sched_switch, sched_process_*"),
    ),
    CommandSpec(("snapshot",), "FILE", "write what a snapshot trigger has kept", _snapshot),
    CommandSpec(("undo",), "", "take the last change back", _post(cmd.Undo())),
    CommandSpec(("redo",), "", "do it again", _post(cmd.Redo())),
    CommandSpec(("go", "g", "list", "l"), "PLACE|#EVENT", "show a place", _go, places=True),
    CommandSpec(("x",), "PLACE", "show memory", _examine, places=True),
    CommandSpec(("thread", "inferior"), "[N]", "look at another thread", _thread),
    CommandSpec(("info",), "threads|inferiors|...", "the pane that shows it", _info),
    CommandSpec(
        ("set",), "REG=VALUE | scheduler-locking on|off", "set a register, or who runs", _set
    ),
    CommandSpec(("signal", "kill"), "NAME", "send the program a signal", _signal),
    CommandSpec(("source", "so"), "FILE", "carry out the definitions of a file", _source),
    CommandSpec(("write", "w"), "FILE", "write the definitions to a file", _write),
    CommandSpec(("export", "copy"), "FILE", "write the events shown to a file", _export),
    CommandSpec(("theme",), "NAME", "another theme", _theme),
    CommandSpec(("help", "h"), "", "keys of the focused pane", lambda on, rest: on.desk.help()),
    CommandSpec(("quit", "q", "exit"), "", "leave", lambda on, rest: on.quitting.ask()),
    CommandSpec(
        ("quit!", "q!"), "", "leave without being asked", lambda on, rest: on.desk.leave()
    ),
)
"""All commands."""

_BY_NAME: Final = {name: spec for spec in COMMANDS for name in spec.names}


def command_question(on: Controls, text: str = "") -> Question:
    """The question for a line, of which some may be typed already."""
    return Question(
        ":",
        "p:GROUP/EVENT PLACE ARGS, or a gdb command",
        lambda line: execute(on, line),
        text,
        lambda line: complete(on, line),
    )


def execute(on: Controls, line: str) -> None:
    """Carry a line out.

    Raises:
        KprobeTuiError: it means nothing, or cannot be done.
    """
    line = line.strip()
    if not line:
        return
    if is_definition(line):
        on.desk.post(cmd.Define(line))
        return
    selected = cmd.selection(line)
    if selected is not None:  # as `trace -e` takes it
        on.desk.post(cmd.TraceKernel((selected.glob,), group=selected.group))
        return
    name, _, rest = line.partition(" ")
    spec = _BY_NAME.get(name)
    if spec is None:
        begun = [known for known in _BY_NAME if known.startswith(name)]
        specs = {_BY_NAME[known].names[0] for known in begun}
        if len(specs) != 1:
            also = f"; is it {', '.join(sorted(specs))}?" if specs else "; ctrl+p shows everything"
            raise CommandError(f"{name}: no such command{also}")
        spec = _BY_NAME[begun[0]]
    if not spec.usage and rest.strip():
        raise CommandError(f"{spec.names[0]} takes no argument")
    spec.run(on, rest.strip())


def is_definition(line: str) -> bool:
    """True if a line is one of `kprobe_events`: `p:...`, `r8:...`, `p PLACE`, `-:GROUP/EVENT`."""
    line = line.removeprefix("!")
    head, _, rest = line.partition(" ")
    if head.startswith("-:") or (head[:1] in "pr" and ":" in head[:6]):
        return True
    return head in ("p", "r") and bool(rest.strip())


def complete(on: Controls, line: str) -> list[str]:
    """Lines that begin with what is typed."""
    name, space, rest = line.partition(" ")
    if not space:
        names = [n for n in _BY_NAME if n.startswith(name) and len(n) > len(name)]
        return sorted(names, key=len)
    spec = _BY_NAME.get(name)
    if name in cmd.GROUPS:
        begun = rest.removeprefix("!").rpartition(" ")[2]
        front = line.removesuffix(begun)
        return [front + call for call in on.browser.kernel_names(name) if call.startswith(begun)]
    if spec is not None and spec.events:
        return [f"{name} {more}" for more in _complete_event(on, rest)]
    places = (spec is not None and spec.places) or (is_definition(line) and " " not in rest)
    if places and rest:
        return [f"{name} {match.name}" for match in on.browser.complete(rest, 20)]
    return []


def _complete_event(on: Controls, rest: str) -> list[str]:
    """Complete an event, or a field of it behind the event."""
    event, space, text = rest.partition(" ")
    if not space:
        events = _events(on)
        return [e for e in events if e.startswith(event) or e.partition("/")[2].startswith(event)]
    word = re.search(r"[A-Za-z_]\w*$", text)
    if word is None:
        return []
    group, _, name = _event(on, event).partition("/")
    fields = on.panes.events.store.fields(group, name)
    begun = word[0]
    return [rest.removesuffix(begun) + field for field in fields if field.startswith(begun)]


def _needed(rest: str, what: str) -> str:
    words = shlex.split(rest) if rest[:1] in "'\"" else [rest.strip()]
    if not words or not words[0]:
        raise CommandError(f"which? {what} is missing")
    return words[0]


def _count(text: str) -> int:
    return number(text) if text.strip() else 1
