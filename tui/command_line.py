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
from tui.base import AppBase

Run = Callable[[AppBase, str], None]


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
    def run(app: AppBase, rest: str) -> None:
        app.bridge.post(command)

    return run


def _steps(make: Callable[[int], cmd.Command]) -> Run:
    def run(app: AppBase, rest: str) -> None:
        app.bridge.post(make(_count(rest)))

    return run


def _ids(make: Callable[[tuple[int, ...]], cmd.Command]) -> Run:
    def run(app: AppBase, rest: str) -> None:
        ids = tuple(probe.id for probe in app.view.probes)
        if rest.strip():
            ids = tuple(_number(word) for word in rest.split())
        if not ids:
            raise CommandError("there is no probe")
        app.bridge.post(make(ids))

    return run


def _break(app: AppBase, rest: str) -> None:
    app.bridge.post(cmd.ToggleBreak(_needed(rest, "a PLACE")))


def _until(app: AppBase, rest: str) -> None:
    app.bridge.post(cmd.RunTo(app.browser.address_of(_needed(rest, "a PLACE"))))


def _go(app: AppBase, rest: str) -> None:
    app.go_to(_needed(rest, "a place"))


def _examine(app: AppBase, rest: str) -> None:
    address = app.browser.address_of(_needed(rest, "an address"))
    app.show_pane("memory")
    app.pane("memory").locate(address)


def _set(app: AppBase, rest: str) -> None:
    name, equals, value = rest.replace("$", "", 1).partition("=")
    if not equals:
        raise CommandError("set REGISTER=VALUE")
    app.bridge.post(cmd.WriteRegister(name.strip(), _number(value)))


def _signal(app: AppBase, rest: str) -> None:
    import signal

    word = rest.strip().upper()
    name = word if word.startswith("SIG") else f"SIG{word}"
    number = getattr(signal, name, None)
    app.bridge.post(cmd.Signal(int(number) if number is not None else _number(rest)))


def _source(app: AppBase, rest: str) -> None:
    path = _needed(rest, "a FILE")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n") for line in file]
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    for line in lines:
        if line.strip():
            app.bridge.post(cmd.Define(line))


def _write(app: AppBase, rest: str) -> None:
    lines = [probe.definition for probe in app.view.probes if probe.kind != "b"]
    _save(app, rest, "".join(f"{line}\n" for line in lines), f"{len(lines)} definitions")


def _export(app: AppBase, rest: str) -> None:
    lines = app.pane("events").lines
    text = lines.copy_text(range(lines.line_count))
    _save(app, rest, text + "\n" if text else "", f"{lines.line_count} events")
    app.exported = app.view.events


def _snapshot(app: AppBase, rest: str) -> None:
    store = app.pane("events").store
    if store.snapshot is None:
        raise CommandError("no snapshot was taken; :trigger EVENT snapshot takes one at a hit")
    _save(app, rest, "".join(store.snapshot_text()), f"the snapshot up to #{store.snapshot_end}")


def _syscalls(app: AppBase, rest: str) -> None:
    off = rest.startswith("!")
    globs = tuple(rest.removeprefix("!").split())
    if not globs and not off:
        raise CommandError(
            "which? a GLOB of names is missing: write, *at, sys_enter_*; ! for none"
        )
    app.bridge.post(cmd.TraceSyscalls(globs, not off))


def _save(app: AppBase, rest: str, text: str, what: str) -> None:
    path = _needed(rest, "a FILE")
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    app.say(f"{what} written to {path}")


def _filter(app: AppBase, rest: str) -> None:
    event, _, text = rest.partition(" ")
    app.bridge.post(cmd.SetFilter(_event(app, event), text.strip()))


def _trigger(app: AppBase, rest: str) -> None:
    event, _, text = rest.partition(" ")
    app.bridge.post(cmd.ChangeTrigger(_event(app, event), _needed(text, "a TRIGGER")))


def _hist(app: AppBase, rest: str) -> None:
    event, _, text = rest.partition(" ")
    event, text = _event(app, event), _needed(text, "a FIELD")
    keys = text.removeprefix("hist:")
    if re.match(r"\w+=", keys) is None:  # a field alone, perhaps with `.buckets=N`
        keys = f"keys={keys}"
    app.bridge.post(cmd.ChangeTrigger(event, f"hist:{keys}"))


def _event(app: AppBase, text: str) -> str:
    """GROUP/NAME of an event, whose group may be left out where that is clear."""
    name = _needed(text, "an EVENT")
    found = [event for event in _events(app) if event.partition("/")[2] == name]
    if "/" in name:
        return name
    if len(found) != 1:
        known = ", ".join((found or _events(app))[:10])
        raise CommandError(f"{name}: which event? there are {known or 'none, p places a probe'}")
    return found[0]


def _events(app: AppBase) -> list[str]:
    return list(dict.fromkeys(probe.event for probe in app.view.probes if probe.event))


def _theme(app: AppBase, rest: str) -> None:
    name = rest.strip()
    if name not in app.available_themes:
        raise CommandError(f"there is {', '.join(sorted(app.available_themes))}")
    app.theme = name


def _action(name: str) -> Run:
    def run(app: AppBase, rest: str) -> None:
        app.call_later(app.run_action, name)

    return run


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
        ("syscalls",), "GLOB... | ![GLOB...]", "record system calls, or no longer", _syscalls
    ),
    CommandSpec(("snapshot",), "FILE", "write what a snapshot trigger has kept", _snapshot),
    CommandSpec(("undo",), "", "take the last change back", _post(cmd.Undo())),
    CommandSpec(("redo",), "", "do it again", _post(cmd.Redo())),
    CommandSpec(("go", "g", "list", "l"), "PLACE|#EVENT", "show a place", _go, places=True),
    CommandSpec(("x",), "PLACE", "show memory", _examine, places=True),
    CommandSpec(("set",), "REG=VALUE", "set a register", _set),
    CommandSpec(("signal", "kill"), "NAME", "send the program a signal", _signal),
    CommandSpec(("source", "so"), "FILE", "carry out the definitions of a file", _source),
    CommandSpec(("write", "w"), "FILE", "write the definitions to a file", _write),
    CommandSpec(("export", "copy"), "FILE", "write the events shown to a file", _export),
    CommandSpec(("theme",), "NAME", "another theme", _theme),
    CommandSpec(("help", "h"), "", "keys of the focused pane", _action("help")),
    CommandSpec(("quit", "q", "exit"), "", "leave", _action("leave")),
    CommandSpec(("quit!", "q!"), "", "leave without being asked", lambda app, rest: app.exit(0)),
)
"""All commands."""

_SYSCALLS: Final = "syscalls/"
_BY_NAME: Final = {name: spec for spec in COMMANDS for name in spec.names}


def execute(app: AppBase, line: str) -> None:
    """Carry a line out.

    Raises:
        KprobeTuiError: it means nothing, or cannot be done.
    """
    line = line.strip()
    if not line:
        return
    if is_definition(line):
        app.bridge.post(cmd.Define(line))
        return
    if line.startswith(_SYSCALLS):  # as `trace -e` takes it
        app.bridge.post(cmd.TraceSyscalls((line.removeprefix(_SYSCALLS),)))
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
    spec.run(app, rest.strip())


def is_definition(line: str) -> bool:
    """Whether a line is one of `kprobe_events`: `p:...`, `r8:...`, `p PLACE`, `-:GROUP/EVENT`."""
    line = line.removeprefix("!")
    head, _, rest = line.partition(" ")
    if head.startswith("-:") or (head[:1] in "pr" and ":" in head[:6]):
        return True
    return head in ("p", "r") and bool(rest.strip())


def complete(app: AppBase, line: str) -> list[str]:
    """Lines that begin with what is typed."""
    name, space, rest = line.partition(" ")
    if not space:
        names = [n for n in _BY_NAME if n.startswith(name) and len(n) > len(name)]
        return sorted(names, key=len)
    spec = _BY_NAME.get(name)
    if name == "syscalls":
        begun = rest.removeprefix("!").rpartition(" ")[2]
        front = line.removesuffix(begun)
        return [front + call for call in app.browser.syscall_names() if call.startswith(begun)]
    if spec is not None and spec.events:
        return [f"{name} {more}" for more in _complete_event(app, rest)]
    places = (spec is not None and spec.places) or (is_definition(line) and " " not in rest)
    if places and rest:
        return [f"{name} {match.name}" for match in app.browser.complete(rest, 20)]
    return []


def _complete_event(app: AppBase, rest: str) -> list[str]:
    """What an event, or a field of it behind the event, may become."""
    event, space, text = rest.partition(" ")
    if not space:
        events = _events(app)
        return [e for e in events if e.startswith(event) or e.partition("/")[2].startswith(event)]
    word = re.search(r"[A-Za-z_]\w*$", text)
    if word is None:
        return []
    group, _, name = _event(app, event).partition("/")
    fields = app.pane("events").store.fields(group, name)
    begun = word[0]
    return [rest.removesuffix(begun) + field for field in fields if field.startswith(begun)]


def _needed(rest: str, what: str) -> str:
    words = shlex.split(rest) if rest[:1] in "'\"" else [rest.strip()]
    if not words or not words[0]:
        raise CommandError(f"which? {what} is missing")
    return words[0]


def _count(text: str) -> int:
    return _number(text) if text.strip() else 1


def _number(text: str) -> int:
    try:
        return int(text.strip(), 0)
    except ValueError:
        raise CommandError(f"{text.strip()}: not a number") from None
