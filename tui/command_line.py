"""The command line: gdb's words, words of the interface, and lines of `kprobe_events`.

A word that gdb has means what it means there, and is carried out by the engine; `COMMANDS` is the
list of those that only the interface has. What looks like a definition is one.
"""

import re
import shlex
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, KprobeTuiError
from engine.session.protocol import commands as cmd
from tui.controls import Controls
from tui.guest_editor import number
from tui.panes.registry import PANES
from tui.widgets.bars import Question

Run = Callable[[Controls, str], None]


class CommandSpec(Struct, frozen=True):
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


def _ids(make: Callable[[tuple[int, ...]], cmd.Command]) -> Run:
    def run(on: Controls, rest: str) -> None:
        ids = tuple(probe.row.id for probe in on.desk.view.probes)
        if rest.strip():
            ids = tuple(number(word) for word in rest.split())
        if not ids:
            raise CommandError("there is no probe")
        on.desk.post(make(ids))

    return run


def _go(on: Controls, rest: str) -> None:
    on.navigator.go_to(_needed(rest, "a place"))


def _goto(on: Controls, rest: str) -> None:
    if rest.startswith("#"):
        on.history.go(rest)
    else:
        _say(on, f"goto {rest}")


def _examine(on: Controls, rest: str) -> None:
    text = _needed(rest, "a PLACE or an object")
    try:
        address = on.browser.address_of(text)
    except KprobeTuiError:
        on.desk.post(cmd.ReadLayout(rest.strip()))
        return
    if on.browser.is_code(address) or text[:1].isdigit():
        on.navigator.examine(address)
    else:
        on.desk.post(cmd.ReadLayout(text))


def _set(on: Controls, rest: str) -> None:
    words = rest.split()
    if words and words[0] == "scheduler-locking":  # who runs when one thread does
        if len(words) != 2 or words[1] not in _LOCKING:
            raise CommandError(f"set scheduler-locking {'|'.join(_LOCKING)}")
        on.desk.post(cmd.StepAlone(on=_LOCKING[words[1]]))
        return
    name, equals, value = (part.strip() for part in rest.partition("="))
    registers = {register.name for register in on.desk.view.registers}
    if equals and name in registers and name not in _variables(on):
        on.desk.post(cmd.WriteRegister(name, number(value)))
    else:
        _say(on, f"set {rest}")


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
    found = [name for name in _INFO if len(rest) > 1 and name.startswith(rest)]
    if found:
        on.body.show_pane(_INFO[found[0]])
    else:
        _say(on, f"info {rest}")


def _pane(on: Controls, rest: str) -> None:
    found = [spec.id for spec in PANES if rest and spec.id.startswith(rest)]
    if len(found) != 1:
        raise CommandError(f"pane {'|'.join(spec.id for spec in PANES)}")
    on.body.show_pane(found[0])


def _help(on: Controls, rest: str) -> None:
    if rest:
        _say(on, f"help {rest}")
    else:
        on.desk.help()


def _probe(kind: str) -> Run:
    def place(on: Controls, rest: str) -> None:
        on.desk.post(cmd.Define(f"{kind} {_needed(rest, 'a PLACE')}"))

    return place


_LOCKING: Final = {"on": True, "step": True, "off": False}
_INFO: Final = {"threads": "threads", "inferiors": "threads", "probes": "probes"}
"""Subjects of `info` that a pane shows."""


def _signal(on: Controls, rest: str) -> None:
    import signal

    word = rest.strip().upper()
    name = word if word.startswith("SIG") else f"SIG{word}"
    known = getattr(signal, name, None)
    on.desk.post(cmd.Signal(int(known) if known is not None else number(rest)))


def _load(on: Controls, rest: str) -> None:
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
    lines = [probe.row.line for probe in on.desk.view.probes if probe.kind != "b"]
    _save(on, rest, "".join(f"{line}\n" for line in lines), f"{len(lines)} definitions")


def _export(on: Controls, rest: str) -> None:
    on.export.run(rest)


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


def _graph(on: Controls, rest: str) -> None:
    globs = rest.split()
    gone = tuple(glob[1:] for glob in globs if glob.startswith("-"))
    more = tuple(glob.removeprefix("+") for glob in globs if not glob.startswith("-"))
    if not globs:
        traced = " ".join(on.functions.traced)
        on.desk.say(f"traced: {traced}" if traced else "nothing is traced")
    elif rest == "!":
        on.functions.shrink(())
    elif not all((*gone, *more)):
        raise CommandError("graph [+GLOB] [-GLOB], or ! for none")
    else:
        if gone:
            on.functions.shrink(gone)
        if more:
            on.functions.grow(more)
            on.body.show_pane("graph")


def _handlers(on: Controls, rest: str) -> None:
    if rest == "!":
        on.desk.post(cmd.LoadHandlers(on=False))
    else:
        on.desk.post(cmd.LoadHandlers(_needed(rest, "a FILE") if rest else ""))


def _script(on: Controls, rest: str) -> None:
    if rest in ("", "!"):
        on.desk.post(cmd.LoadScript())
        return
    name, text = "stdin", rest
    parameters: tuple[str, ...] = ()
    if "{" not in rest:
        name, *words = rest.split()
        parameters = tuple(words)
        try:
            text = Path(name).read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise CommandError(f"{name}: {why}") from error
    on.desk.post(cmd.LoadScript(name, text, parameters))
    on.body.show_pane("histogram")


def _theme(on: Controls, rest: str) -> None:
    on.desk.use_theme(rest.strip())


def _copy_as(on: Controls, rest: str) -> None:
    if rest not in _FORMS:
        raise CommandError(f"copyas {'|'.join(_FORMS)}")
    on.desk.post(cmd.ListDefinitions(rest))


_FORMS: Final = ("tracefs", "perf", "bpftrace")
"""Tools of a real machine that take definitions."""

COMMANDS: Final[tuple[CommandSpec, ...]] = (
    CommandSpec(("phase",), "", "the next phase of a hit", _post(cmd.StepPhase())),
    CommandSpec(("reverse-phase",), "", "the phase before", _post(cmd.PhaseBack())),
    CommandSpec(("interrupt",), "", "stop the program", _post(cmd.Halt())),
    CommandSpec(("probe",), "PLACE [ARGS]", "place a probe", _probe("p"), places=True),
    CommandSpec(("retprobe",), "PLACE [ARGS]", "probe a return", _probe("r"), places=True),
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
    CommandSpec(("graph",), "+GLOB -GLOB | !", "trace functions, or no longer", _graph),
    CommandSpec(
        ("handlers",), "[FILE | !]", "probes written in Python: load, again, none", _handlers
    ),
    CommandSpec(
        ("bpftrace",),
        "FILE [PARAMS] | PROBE { ... } | !",
        "a script of bpftrace, its maps in the pane of histograms; none any more",
        _script,
    ),
    CommandSpec(("snapshot",), "FILE", "write what a snapshot trigger has kept", _snapshot),
    CommandSpec(("undo",), "", "take the last change back", _post(cmd.Undo())),
    CommandSpec(("redo",), "", "do it again", _post(cmd.Redo())),
    CommandSpec(("go", "g"), "PLACE|#EVENT", "show a place", _go, places=True),
    CommandSpec(
        ("goto",), "#EVENT|40%|TICK|BOOKMARK|start|end", "go to a moment of the run", _goto
    ),
    CommandSpec(("refill",), "", "make the log of the recorded run anew", _post(cmd.Refill())),
    CommandSpec(
        ("examine",),
        "PLACE|&OBJECT",
        "show memory in its pane, of an object its parts",
        _examine,
        places=True,
    ),
    CommandSpec(("pane",), "NAME", "go to a pane", _pane),
    CommandSpec(("thread", "inferior"), "[N]", "look at another thread", _thread),
    CommandSpec(("info",), "threads|probes|...", "gdb's, or the pane that shows it", _info),
    CommandSpec(
        ("set",), "REG=VALUE | scheduler-locking on|off | ...", "gdb's, or a register", _set
    ),
    CommandSpec(("signal",), "NAME", "send the program a signal", _signal),
    CommandSpec(("load",), "FILE", "carry out the definitions of a file", _load),
    CommandSpec(("write", "w"), "FILE", "write the definitions to a file", _write),
    CommandSpec(
        ("copyas",), "|".join(_FORMS), "copy the probes for a real machine's tool", _copy_as
    ),
    CommandSpec(
        ("export", "copy"),
        "[--all] [--format NAME] FILE",
        "write the events shown to a file, as its name asks for or in a format of `trace`",
        _export,
    ),
    CommandSpec(("theme",), "NAME", "another theme", _theme),
    CommandSpec(
        ("explore",),
        "[SEEDS]",
        "search schedules of the threads for one that ends in another way",
        lambda on, rest: on.desk.explore(rest),
    ),
    CommandSpec(
        ("learn",),
        "[LESSON | hint|next|back|again|fold|close]",
        "list the lessons, open one, or go on in the one that is open",
        lambda on, rest: on.desk.lessons.learn(rest),
    ),
    CommandSpec(
        ("help", "h"), "[WORD]", "the chapter of the focused pane, or what a word does", _help
    ),
    CommandSpec(("quit", "q", "exit"), "", "leave", lambda on, rest: on.quitting.ask()),
    CommandSpec(
        ("quit!", "q!"), "", "leave without being asked", lambda on, rest: on.desk.leave()
    ),
)
"""All commands."""

_WORD: Final = re.compile(r"[A-Za-z][\w-]*")
_OPENING: Final = re.compile(r"(comm(a|an|and|ands)?|def(i|in|ine)?|document|if|while)\b")
"""Words that hold lines up to their `end`."""
_BY_NAME: Final = {name: spec for spec in COMMANDS for name in spec.names}


def command_question(on: Controls, word: str = "", rest: str = "") -> Question:
    """The question for a line, which may begin with a word and what it is asked about."""
    on.desk.post(cmd.AskWords())
    front = f"{word} " if word else ""
    return Question(
        ":",
        "one of gdb's words, or p:GROUP/EVENT PLACE ARGS",
        lambda line: execute(on, line),
        front + rest,
        lambda line: complete(on, line),
        old=bool(rest),
        kept=len(front),
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
    spec, rest = _own(on, line)
    if spec is None:
        _say(on, line)
        return
    if not spec.usage and rest:
        raise CommandError(f"{spec.names[0]} takes no argument")
    spec.run(on, rest)


def _own(on: Controls, line: str) -> tuple[CommandSpec | None, str]:
    """The interface's own command of a line, None for one of gdb's, and what stands behind it.

    Raises:
        CommandError: the line begins with no word of either.
    """
    name, _, rest = line.partition(" ")
    spec = _BY_NAME.get(name)
    word = _WORD.match(line)
    begun = word[0] if word is not None else name
    theirs = on.desk.words
    if spec is not None or any(each.startswith(begun) for each in theirs) or not word:
        return spec, rest.strip()
    specs = {_BY_NAME[known].names[0] for known in _BY_NAME if known.startswith(name)}
    if len(specs) == 1 and (theirs or len(name) > 1):  # a letter alone may be one of theirs
        return _BY_NAME[specs.pop()], rest.strip()
    near = sorted(specs) or get_close_matches(begun, (*theirs, *_BY_NAME), 2)
    if theirs and near and not on.desk.works:  # a line at work may define it
        raise CommandError(f"{begun}: no such word; is it {' or '.join(near)}?")
    return None, ""  # the engine knows what to say


def _say(on: Controls, line: str) -> None:
    """Have the engine carry one of gdb's words out, once all lines that it holds are typed."""
    lines = [line]

    def depth() -> int:
        opened = sum(bool(_OPENING.match(each)) for each in lines)
        return opened - sum(each == "end" for each in lines)

    def more(text: str) -> None:
        lines.append(text.strip())
        go_on()

    def go_on() -> None:
        if depth() > 0:
            on.desk.ask(Question(">", "another line; end is the last one", more))
        else:
            on.desk.type("\n".join(lines))

    go_on()


def _variables(on: Controls) -> list[str]:
    """Names of the variables of the frame that is looked at."""
    view = on.desk.view
    frames = view.frames[view.frame : view.frame + 1]
    return [variable.name for frame in frames for variable in frame.variables]


def is_definition(line: str) -> bool:
    """True if a line is one of `kprobe_events`: `p:...`, `r8:...`, `-:GROUP/EVENT`."""
    head = line.removeprefix("!").partition(" ")[0]
    return head.startswith("-:") or (head[:1] in "pr" and ":" in head[:6])


def complete(on: Controls, line: str) -> list[str] | None:
    """Lines that begin with what is typed; None where the engine is asked, which offers them."""
    name, space, rest = line.partition(" ")
    if not space:
        theirs = on.desk.words.items()
        cut = {short for short, whole in theirs if whole != short and whole.startswith(short)}
        known = (*_BY_NAME, *(word for word, _ in theirs if word not in cut))
        names = {n for n in known if n.startswith(name) and n != name}
        return sorted((n for n in names if " " not in n), key=lambda n: (len(n), n))
    spec = _BY_NAME.get(name)
    if name in cmd.GROUPS:
        begun = rest.removeprefix("!").rpartition(" ")[2]
        front = line.removesuffix(begun)
        return [front + call for call in on.browser.kernel_names(name) if call.startswith(begun)]
    if name == "goto":
        return [f"{name} {found}" for found in on.history.complete(rest)]
    if name in ("switch", "diff"):
        return [f"{name} {found}" for found in on.history.branches() if found.startswith(rest)]
    if spec is not None and spec.events:
        return [f"{name} {more}" for more in _complete_event(on, rest)]
    if is_definition(line):
        completion = on.browser.complete_definition(line, len(line))
        return [line[: completion.start] + word for word in completion.words]
    if spec is not None and spec.places and name != "examine":
        return [f"{name} {match.name}" for match in on.browser.complete(rest, 20)] if rest else []
    if name == "pane":
        return [f"{name} {pane.id}" for pane in PANES if pane.id.startswith(rest)]
    if name == "theme":
        return [f"{name} {theme}" for theme in on.desk.themes if theme.startswith(rest)]
    if name == "learn":
        return [f"{name} {word}" for word in on.desk.lessons.words if word.startswith(rest)]
    if name == "copyas":
        return [f"{name} {form}" for form in _FORMS if form.startswith(rest)]
    on.desk.post(cmd.CompleteLine(line))
    return None


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
