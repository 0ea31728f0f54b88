"""Words that a shell may complete: what fits at the cursor of a command line.

Options are walked as the commands do that they are for: the first word that is none is GUEST, and
all words behind it are the guest's. Functions and events are those of the GUEST on the line, which
may stand behind the cursor.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import click

from engine.cli.grouped import ChoiceOfLater, GroupedCommand, SwitchedCommand
from engine.cli.interface import interface
from engine.cli.scripts import GuestStart, found_by_path
from engine.cli.word_lists import EVERYWHERE, VALUES
from engine.errors import KprobeTuiError
from engine.session.headless.program_words import ProgramWords
from engine.session.protocol.config import GuestConfig, recording_config

_SCRIPT: Final = ".bt"
_OPEN: Final = ("/", ":", "(", "=")
"""Ends of a word that goes on."""
_FILES: Final = ("FILE", "PATH", "RING", "KERNEL", "IMAGE")
_GUESTS: Final = ("guest", "file", "image", "kernel_image")
_FIELD: Final = re.compile(r"[A-Za-z_]\w*$")
_KEYS: Final = re.compile(r"hist:.*(?:=|,)([A-Za-z_]\w*)?$")
_TRIGGERS: Final = (
    *("stacktrace", "traceon", "traceoff", "snapshot"),
    *("enable_event:", "disable_event:", "hist:keys="),
)
_PROGRAMS: Final = 500
"""Programs of PATH that are offered at most."""


class Fit(NamedTuple):
    """A word that fits.

    Attributes:
        word: all of it.
        help: what it is, "" where that is plain.
    """

    word: str
    help: str = ""

    @property
    def goes_on(self) -> bool:
        """True if more of the same word follows."""
        return self.word.endswith(_OPEN)


class _PartedLine:
    """The words of a command, taken apart into options and arguments."""

    def __init__(self, command: click.Command, words: Sequence[str]) -> None:
        options: dict[str, click.Option] = {
            name: each
            for each in _parameters(command, words)
            if isinstance(each, click.Option)
            for name in (*each.opts, *each.secondary_opts)
        }
        self.options = options
        self.values: dict[str, list[str]] = {}
        self.flags: set[str] = set()
        self.arguments: list[str] = []
        self.script: list[str] | None = None
        """A script's words in front of -- and GUEST; None where there is no -- yet, or never."""
        self.waiting: click.Option | None = None
        """The option whose value comes next."""
        self.closed = False
        """No option may follow."""
        mixed = command.context_settings.get("allow_interspersed_args", True)
        self.has_script = isinstance(command, GroupedCommand) and command.guest_behind
        rest = iter(words)
        for word in rest:
            if word == "--" and self.has_script and self.script is None:
                self.script, self.arguments, self.closed = self.arguments, [], True
                continue
            if self.closed or not word.startswith("-") or word == "-":
                self.arguments.append(word)
                self.closed = self.closed or not mixed
                continue
            if word == "--":
                self.closed = True
                continue
            name, equals, value = _split(word, options)
            option = options.get(name)
            if option is None or option.is_flag or option.count:
                self.flags.add(option.name or "" if option is not None else "")
                continue
            if not equals:
                following = next(rest, None)
                if following is None:
                    self.waiting = option
                    break
                value = following
            self.values.setdefault(option.name or "", []).append(value)


class ShellWords:
    """The words of one command line."""

    def __init__(self, group: click.Group, before: Sequence[str], after: Sequence[str]) -> None:
        """Take the line apart.

        Args:
            group: has the subcommands.
            before: words in front of the one at the cursor, without the command's own name.
            after: those behind it.
        """
        self._root = click.Context(group, info_name="kprobe-tui")
        walk = _PartedLine(interface, before)
        first = walk.arguments[:1]
        command = group.get_command(self._root, first[0]) if first else None
        at = before.index(first[0]) + 1 if command is not None else 0
        self._command: click.Command = interface if command is None else command
        self._is_start = not first
        self._before, self._after = before[at:], after
        self._walk = _PartedLine(self._command, self._before)

    def fitting(self, typed: str) -> list[Fit]:
        """The words that fit at the cursor, of which a part is typed already."""
        walk = self._walk
        if walk.waiting is not None:
            return list(self._values(walk.waiting, typed))
        if typed.startswith("-") and not walk.closed:
            name, equals, value = _split(typed, walk.options)
            if equals and name in walk.options:
                fits = self._values(walk.options[name], value)
                return [Fit(f"{name}={fit.word}", fit.help) for fit in fits]
            return list(self._options(typed))
        if walk.has_script and walk.script is None:
            return self._script_words(typed)
        found: list[Fit] = []
        group = self._root.command if self._is_start else self._command
        if isinstance(group, click.Group) and not (walk.arguments and group is self._command):
            names = group.list_commands(self._context)
            found = [Fit(name) for name in names if name.startswith(typed)]
        taken = len(walk.arguments)
        arguments = [
            each
            for each in self._command.get_params(self._context)
            if isinstance(each, click.Argument)
        ]
        for each in arguments:
            if each.nargs == -1 or not taken:
                return [*found, *self._values(each, typed)]
            taken -= each.nargs
        return found

    def _script_words(self, typed: str) -> list[Fit]:
        """Words in front of --: a pattern of probes, a script's file, its parameters."""
        walk = self._walk
        if "listing" in walk.flags:
            found = self._program.script_points(typed) if not walk.arguments else []
            return [*map(Fit, found), *_behind(typed, walk.arguments)]
        if "script" not in walk.values and not walk.arguments:
            return list(_script_files(typed))
        return [*_behind(typed, ("",)), *_files(typed)]

    @cached_property
    def _context(self) -> click.Context:
        return click.Context(self._command, parent=self._root, info_name=self._command.name)

    def _options(self, typed: str) -> Iterator[Fit]:
        shown = {id(each): each for each in self._walk.options.values() if not each.hidden}
        options = [*shown.values()]
        helped = self._command.get_help_option(self._context)
        options += [helped] if helped is not None and id(helped) not in shown else []
        if self._is_start:
            root = (*self._root.command.params, self._root.command.get_help_option(self._root))
            options += [each for each in root if isinstance(each, click.Option)]
        names = ((name, each) for each in options for name in (*each.opts, *each.secondary_opts))
        for name, each in dict(names).items():
            if name.startswith(typed):
                yield Fit(name, (each.help or "").partition(".")[0])

    # -- values of one parameter ---------------------------------------------------------------

    def _values(self, parameter: click.Parameter, typed: str) -> Iterable[Fit]:
        """Words that may be the value of an option, or an argument."""
        kind, name = parameter.type, parameter.name or ""
        if isinstance(kind, click.Choice | ChoiceOfLater):
            return [
                Fit(item.value) for item in kind.shell_complete(self._context, parameter, typed)
            ]
        own = [
            item for item in parameter.shell_complete(self._context, typed) if item.type == "plain"
        ]
        if own:
            return [Fit(item.value) for item in own]
        meta = parameter.metavar or ""
        listed = VALUES.get((self._command.name or "", name)) or EVERYWHERE.get(name)
        if listed is not None:
            return [Fit(word) for word in listed(typed)]
        if name == "perf_definitions":
            return [Fit(word) for word in self._functions(typed)]
        for known, found in self._kinds.items():
            if meta == known:
                return [Fit(word) for word in found(typed)]
        if isinstance(parameter, click.Argument):
            return self._argument(name, typed)
        if meta.startswith("DIR"):
            return _files(typed, only_folders=True)
        if meta.startswith(_FILES) or isinstance(kind, click.Path):
            return _files(typed)
        return []

    @cached_property
    def _kinds(self) -> Mapping[str, Callable[[str], Iterable[str]]]:
        """Finders of words, by how an option's value is called."""
        return {
            "GLOB": self._functions,
            "PLACE": self._functions,
            "PLACE[,PLACE...]": self._functions,
            "RANGE": self._functions,
            "DEF": self._definitions,
            "SCRIPT": self._scripts,
            "FILE.bt": lambda typed: [fit.word for fit in _script_files(typed)],
            "GROUP/NAME:EXPR": lambda typed: self._events(typed, self._fields),
            "GROUP/NAME:TRIGGER": lambda typed: self._events(typed, self._triggers),
        }

    def _argument(self, name: str, typed: str) -> Iterable[Fit]:
        if name == "place":
            return [Fit(word) for word in self._functions(typed)]
        found = list(_files(typed))
        if name == "guest" and "/" not in typed and typed:
            root = self._line.values.get("root", [])
            found += [Fit(each) for each in _programs(typed, root[-1] if root else None)]
        return found

    def _functions(self, typed: str) -> list[str]:
        return self._program.functions(typed)

    def _scripts(self, typed: str) -> list[str]:
        return self._program.script(typed)

    def _definitions(self, typed: str) -> Iterable[str]:
        if typed.startswith("@"):
            return [f"@{fit.word}" for fit in _files(typed[1:])]
        return self._program.definitions(typed)

    def _events(
        self, typed: str, fitting: Callable[[str, Sequence[str]], Iterable[str]]
    ) -> list[str]:
        """Words for GROUP/NAME:REST."""
        known = self._program.events(self._line.values.get("definitions", []))
        event, colon, rest = typed.partition(":")
        if not colon:
            return [f"{name}:" for name in known if name.startswith(typed)]
        return [f"{event}:{word}" for word in fitting(rest, known.get(event, ()))]

    @staticmethod
    def _fields(typed: str, fields: Sequence[str]) -> list[str]:
        match = _FIELD.search(typed)
        start = len(typed) if match is None else match.start()
        return [typed[:start] + each for each in fields if each.startswith(typed[start:])]

    def _triggers(self, typed: str, fields: Sequence[str]) -> list[str]:
        if _KEYS.match(typed) is not None:
            return self._fields(typed, fields)
        return [each for each in _TRIGGERS if each.startswith(typed)]

    # -- the program that the line is about ------------------------------------------------------

    @cached_property
    def _line(self) -> _PartedLine:
        """All words of the line but the one at the cursor."""
        waits = self._walk.waiting is not None
        words = [*self._before[: len(self._before) - waits], *self._after]
        return _PartedLine(self._command, words)

    @cached_property
    def _program(self) -> ProgramWords:
        names = [
            each.name
            for each in self._command.get_params(self._context)
            if isinstance(each, click.Argument)
        ]
        words = dict(zip(names, self._line.arguments, strict=False))
        guest = next((words[name] for name in _GUESTS if name in words), "")
        root = self._line.values.get("root", [None])[-1]
        if not guest:
            return ProgramWords(None)
        path = os.path.expanduser(guest)
        found = found_by_path(GuestStart(path, (), None, ()), root)
        config = GuestConfig(found.guest, root=root)
        try:
            return ProgramWords(recording_config(config))
        except KprobeTuiError:
            return ProgramWords(None)


def _parameters(command: click.Command, words: Sequence[str]) -> Iterable[click.Parameter]:
    """The parameters of a command, of the other one behind its flag."""
    if isinstance(command, SwitchedCommand) and command.flag in words:
        return (*command.params, *command.other.params)
    return command.params


def _split(word: str, options: Mapping[str, click.Option]) -> tuple[str, str, str]:
    """An option's name and value in one word: --name=value, -nvalue; the middle is "" for none."""
    if word.startswith("--") or word in options:
        name, equals, value = word.partition("=")
        return name, equals, value
    return word[:2], word[2:] and "=", word[2:]


def _files(typed: str, *, only_folders: bool = False) -> Iterator[Fit]:
    """Files whose path begins so, folders with a slash; hidden ones where a dot is typed."""
    folder, slash, name = typed.rpartition("/")
    where = os.path.expanduser(folder + slash) or "."
    try:
        entries = sorted(os.scandir(where), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.startswith(name) or (entry.name.startswith(".") and not name):
            continue
        try:
            is_folder = entry.is_dir()
        except OSError:
            is_folder = False
        if is_folder or not only_folders:
            yield Fit(f"{folder}{slash}{entry.name}{'/' * is_folder}")


def _script_files(typed: str) -> list[Fit]:
    """Files of scripts whose path begins so, and folders; all files where there is none."""
    found = list(_files(typed))
    return [each for each in found if each.word.endswith((_SCRIPT, "/"))] or found


def _behind(typed: str, words: Sequence[str]) -> list[Fit]:
    """The -- that follows what stands in front of it, where nothing else is typed."""
    return [Fit("--", "what follows is GUEST")] if words and not typed else []


def _programs(typed: str, root: str | None) -> list[str]:
    """Programs of PATH whose names begin so."""
    base = "" if root is None else os.path.abspath(root).rstrip("/")
    found: dict[str, None] = {}
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not folder.startswith("/"):
            continue
        try:
            entries = list(os.scandir(base + folder))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(typed) and os.access(entry.path, os.X_OK):
                found[entry.name] = None
    return sorted(found)[:_PROGRAMS]
