"""Completion of a line that is being typed, as gdb's `complete` has it.

Names of the program itself come first; those of its libraries are offered where it has none. What
stands where is looked up, never computed: no function of the program is called for a completion.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image.datatypes import Member, TypeKind
from engine.image.reader import DamagedError
from engine.language.evaluation import evaluate
from engine.message_text import bare_name
from engine.session.debugger.command_table import WordTable
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.settings import TABLE
from engine.session.guest.session import Session
from engine.session.protocol.views import RunState

if TYPE_CHECKING:
    from engine.session.tracing.script.completing import ScriptCompleter

MOST: Final = 200
"""Completions of one line; gdb's `max-completions` is as many."""
_DEEP: Final = 16
_PLACES: Final = frozenset(
    (
        "break",
        "tbreak",
        "hbreak",
        "thbreak",
        "until",
        "advance",
        "list",
        "clear",
        "jump",
        "dprintf",
    )
)
_FUNCTIONS: Final = frozenset(("info scope", "info line", "info address", "rbreak", "disassemble"))
_FILES: Final = frozenset(("source", "save", "load", "write", "generate-core-file", "snapshot"))
_STOPS: Final = frozenset(("delete", "enable", "disable", "condition", "ignore", "commands"))
_THREADS: Final = frozenset(("thread", "info threads"))
_SCRIPT: Final = "bpftrace"
_TYPES: Final = frozenset(("whatis", "ptype"))
_WORD: Final = re.compile(r"[A-Za-z_~][\w:~]*$")
_DOLLAR: Final = re.compile(r"\$\w*$")
_MEMBER: Final = re.compile(r"(\.|->)\s*(\w*)$")
_PLACE: Final = re.compile(r"[^\s,]?.*$")
_HIDDEN: Final = re.compile(r"@|\.(cold|part|isra|constprop)\b|^(__pfx_|_init$|_fini$)")
_TROUBLE: Final = (CommandError, GuestFaultError, ImageError, DamagedError)


class Completing:
    """Completes lines of gdb's words for one debugger."""

    def __init__(self, debugger: Debugger, words: WordTable) -> None:
        """Read nothing before the first question.

        Args:
            debugger: knows the program.
            words: that a line may begin with.
        """
        self._debugger, self._words = debugger, words
        self._functions: dict[int, tuple[Module, tuple[str, ...]]] = {}
        self._listed: dict[tuple[int, str], tuple[Module, tuple[str, ...]]] = {}
        self._scripts: tuple[Session, ScriptCompleter] | None = None

    def lines(self, line: str) -> list[str]:
        """Whole lines that a line may become, the likeliest first, `MOST` of them at most."""
        front, found = self._found(line)
        return [front + one for one in islice(dict.fromkeys(found), MOST)]

    def _found(self, line: str) -> tuple[str, Iterable[str]]:
        """The front of a line that stays, and the texts that may follow it."""
        name, space, rest = line.partition(" ")
        if not space:
            known = (one for names, _ in self._words.listed() for one in names)
            return "", sorted(n for n in known if " " not in n and n.startswith(line))
        if name == _SCRIPT:
            return self._script(line, rest)
        try:
            whole = self._words.find(name.partition("/")[0]).names[0]
        except CommandError:
            return line, ()
        if whole in ("info", "set", "show", "help"):
            subject = self._subject(whole, rest)
            if subject is not None:
                return line[: len(line) - len(rest)], subject
            word, _, rest = rest.partition(" ")
            whole = f"{whole} {word}"
        front = line[: len(line) - len(rest)]
        condition = re.search(r"(^|\s)(if|thread)\s", rest)
        if whole in _PLACES and condition is None and not rest.startswith("*"):
            return front, self._places(rest)
        if whole in _FUNCTIONS:
            return front, self._names(rest)
        if whole in _FILES:
            path = rest.rpartition(" ")[2]
            return front + rest[: len(rest) - len(path)], _paths(path)
        word = rest.rpartition(" ")[2]
        front = line[: len(line) - len(word)]
        if whole in _STOPS:
            stops = (str(number) for number in self._debugger.stops.all if number > 0)
            if whole != "condition" or " " not in rest:
                return front, _begun(word, stops)
        if whole in _THREADS:
            return front, _begun(word, map(str, self._debugger.thread_numbers()))
        if whole == "frame" and word.isdigit():
            count = len(self._debugger.frames.all) if self._debugger.started else 0
            return front, _begun(word, map(str, range(min(count, MOST * 10))))
        return self._expression(line, types=whole in _TYPES)

    def _script(self, line: str, rest: str) -> tuple[str, Iterable[str]]:
        """A script of bpftrace: its text, or its file."""
        completion = self._scripts_of(self._debugger.control.session).script(rest)
        front = line[: len(line) - len(rest) + completion.start]
        word = rest.rpartition(" ")[2]
        if completion.words or "{" in rest:
            return front, completion.words
        return line[: len(line) - len(word)], _paths(word)

    def _scripts_of(self, session: Session) -> "ScriptCompleter":
        if self._scripts is None or self._scripts[0] is not session:
            from engine.session.tracing.script.completing import ScriptCompleter  # few lines are

            verdicts = session.probes().verdicts
            found = ScriptCompleter(session.arch, verdicts, is_kernel=session.is_kernel)
            self._scripts = session, found
        return self._scripts[1]

    def _subject(self, whole: str, rest: str) -> Iterable[str] | None:
        """Subjects of `info`, settings, words of `help`; None where what is typed is whole."""
        if whole == "info":
            if " " in rest:
                return None
            return _begun(rest, (one.names[0] for one in self._words.info))
        if whole == "help":
            return _begun(rest, (one for names, _ in self._words.listed() for one in names))
        found = _begun(rest, (one.name for one in TABLE))
        expression = whole == "set" and rest.startswith(("var ", "variable ", "$"))
        return found if found and not expression else None

    # -- places ----------------------------------------------------------------------------

    def _places(self, typed: str) -> Iterator[str]:
        """Functions, and files with a colon behind them."""
        yield from self._names(typed)
        if typed and ":" not in typed:
            main = self._debugger.control.session.seen.modules.main
            files = main.lines.files() if main is not None else ()
            for name in sorted({path.rpartition("/")[2] for path in files}):
                if name.startswith(typed):
                    yield f"{name}:"

    def _names(self, typed: str) -> Iterator[str]:
        """Functions that begin so, or whose own name does; the program's before all others."""
        if not typed:
            return
        modules = self._modules()
        for chosen in (modules[:1], modules[1:]):
            whole: list[str] = []
            parts: list[str] = []
            for module in chosen:
                for name in self._functions_of(module):
                    if name.startswith(typed):
                        whole.append(name)
                    elif f"::{typed}" in name.partition("<")[0]:
                        parts.append(name)
            if whole or parts:
                yield from sorted(whole)
                yield from sorted(parts)
                return

    def _functions_of(self, module: Module) -> tuple[str, ...]:
        key = id(module.image)
        if key not in self._functions:
            try:
                symbols = list(module.symbols.functions())
            except _TROUBLE:
                symbols = []
            names = dict.fromkeys(
                bare_name(one.demangled) if one.demangled != one.name else one.name
                for one in symbols
                if not _HIDDEN.search(one.name)
            )
            self._functions[key] = module, tuple(names)
        return self._functions[key][1]

    def _modules(self) -> list[Module]:
        return self._debugger.files.modules()

    # -- expressions -------------------------------------------------------------------------

    def _expression(self, line: str, *, types: bool) -> tuple[str, Iterable[str]]:
        dollar = _DOLLAR.search(line)
        if dollar is not None:
            return line[: dollar.start()], self._dollars(dollar[0])
        member = _MEMBER.search(line)
        if member is not None:
            begin = _begin_of_value(line[: member.start()])
            front = line[: member.start(2)]
            return front, _begun(member[2], self._members(line[begin : member.start()]))
        word = _WORD.search(line)
        if word is None:
            return line, ()
        return line[: word.start()], self._things(word[0], types=types)

    def _dollars(self, typed: str) -> list[str]:
        """Registers and the user's own variables."""
        debugger = self._debugger
        arch = debugger.control.session.arch
        names = ["pc", "sp", "fp"]
        names += [name for one in arch.registers for name in (one.name, *one.aliases)]
        own = debugger.convenience
        return _begun(typed, (f"${name}" for name in dict.fromkeys((*names, *own))))

    def _members(self, text: str) -> Iterator[str]:
        """The members of what an expression means, those of base classes too."""
        if not text.strip() or re.search(r"[\w\])]\s*\(|=[^=]|\+\+|--", text):
            return  # nothing is called or changed
        if self._debugger.state is RunState.RUNNING:
            return
        try:
            kind = evaluate(text, self._debugger.scope).type.resolved
            for _ in range(_DEEP):  # of a pointer to a pointer gdb offers the same
                if kind.kind is not TypeKind.POINTER or kind.target is None:
                    break
                kind = kind.target.resolved
            yield from _member_names(kind.members, 0)
        except _TROUBLE:
            return

    def _things(self, typed: str, *, types: bool) -> Iterator[str]:
        """Variables of the frame, then variables, functions and types of the program."""
        debugger = self._debugger
        stands = debugger.started and debugger.state is not RunState.RUNNING
        try:
            local = [one.name for one in debugger.scope.locals()] if stands else []
        except _TROUBLE:
            local = []
        yield from _begun(typed, local)
        main = self._modules()[:1]
        for module in main:
            for kind in ("type", "variable") if types else ("variable", "type"):
                yield from sorted(_begun(typed, self._listed_of(module, kind)))
        yield from self._names(typed)

    def _listed_of(self, module: Module, kind: str) -> tuple[str, ...]:
        """Names of the program's debug information, read once."""
        key = id(module.image), kind
        if key not in self._listed:
            names: dict[str, None] = {}
            try:
                known = self._debugger.files.names(module)
                for entry in known.listed(kind) if known is not None else ():
                    if entry.name and not entry.name.startswith("."):
                        names[entry.name] = None
            except _TROUBLE:
                pass
            self._listed[key] = module, tuple(names)
        return self._listed[key][1]


def _member_names(members: Iterable[Member], depth: int) -> Iterator[str]:
    for member in members:
        if member.name:
            yield member.name
        elif depth < _DEEP:  # a base class, or a structure without a name
            yield from _member_names(member.type.resolved.members, depth + 1)


def _begun(typed: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def _begin_of_value(text: str) -> int:
    """The column at which the last value of a text begins: the a of "1 + a.b[i]"."""
    at, depth = len(text), 0
    while at:
        letter = text[at - 1]
        if letter in ")]":
            depth += 1
        elif letter in "([":
            if not depth:
                break
            depth -= 1
        elif not depth and not (letter.isalnum() or letter in "_$.:" or text[at - 2 : at] == "->"):
            if letter == "-" and text[at : at + 1] == ">":
                at -= 1
                continue
            break
        at -= 1
    return at


def _paths(typed: str) -> list[str]:
    """Files of the host that begin so; directories end in a slash."""
    folder, slash, begun = typed.rpartition("/")
    try:
        place = Path(f"{folder}{slash}" or ".").expanduser()
        found = sorted(chain(islice(place.iterdir(), MOST * 100)))
    except (OSError, RuntimeError, ValueError):
        return []
    return [
        f"{folder}{slash}{one.name}{'/' if one.is_dir() else ''}"
        for one in found
        if one.name.startswith(begun) and (begun or not one.name.startswith("."))
    ]
