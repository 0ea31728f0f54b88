"""Completion of a line that is being typed, as gdb's `complete` has it.

`line_grammar` says what may stand behind which word; `completing_names` knows functions and
places, `completing_values` what is in expressions. Names of the program itself come first; those
of its libraries are offered where it has none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import CommandError
from engine.session.debugger.command_table import WordTable
from engine.session.debugger.completing_names import TROUBLE, OfferedFunctions
from engine.session.debugger.completing_values import OfferedValues, begun
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.line_grammar import (
    GRAMMAR,
    INFO,
    ArgumentKind,
    Grammar,
    Position,
    position,
)
from engine.session.debugger.settings import TABLE, GdbSetting, SettingKind
from engine.session.debugger.signal_rules import ACTIONS, SIGNALS
from engine.session.debugger.stops import UserBreakpoint
from engine.session.guest.session import Session

if TYPE_CHECKING:
    from engine.session.tracing.script.completing import ScriptCompleter

MOST: Final = 200
"""Completions of one line; gdb's `max-completions` is as many."""
_DEEP: Final = 16
_ELSEWHERE: Final = {"confirm": ("off", "on"), "breakpoint pending": ("auto", "off", "on")}
"""Settings that are none of the table's, and their values."""
_CONDITION: Final = re.compile(r"(?:^|\s)(?:if|-force-condition)\s+|(?:^|\s)thread\s+\d+\s+(?=\S)")
_THREAD: Final = re.compile(r"(?:^|\s)thread\s+(\d*)$")
_NUMBERED: Final = (
    ArgumentKind.STOPS,
    ArgumentKind.FRAME,
    ArgumentKind.THREADS,
    ArgumentKind.DISPLAYS,
)
_PRINT: Final = "print "

_DEEPEST: Final = 20
"""Lines within each other, as behind `thread apply all`, that are looked into."""

Found = tuple[str, Iterable[str]]
"""The front of a line that stays, and the texts that may follow it."""


class Completing:
    """Completes lines of gdb's words for one debugger."""

    def __init__(self, debugger: Debugger, words: WordTable) -> None:
        """Read nothing before the first question.

        Args:
            debugger: knows the program.
            words: that a line may begin with.
        """
        self._debugger, self._words = debugger, words
        self._deep = 0
        self._names = OfferedFunctions(debugger)
        self._values = OfferedValues(debugger, self._names)
        self._values.known_macros = words.macros.known
        self._scripts: tuple[Session, ScriptCompleter] | None = None
        self._by_kind: dict[ArgumentKind, Callable[[Position], Found]] = {
            ArgumentKind.VALUE: lambda at: self._value(at.rest),
            ArgumentKind.COUNT: lambda at: self._value(at.rest) if at.rest else ("", ()),
            ArgumentKind.TYPE: lambda at: self._value(at.rest, types=True),
            ArgumentKind.TYPE_NAME: lambda at: ("", self._values.named(at.rest, "type")),
            ArgumentKind.VARIABLE_NAME: lambda at: ("", self._values.named(at.rest, "variable")),
            ArgumentKind.PLACE: lambda at: self._place(at.rest, called=bool(at.grammar.options)),
            ArgumentKind.LISTED: lambda at: self._listed(at.rest),
            ArgumentKind.CODE: lambda at: ("", self._values.code(at.rest)),
            ArgumentKind.FUNCTION: lambda at: ("", self._names.begun(at.rest)),
            ArgumentKind.PATTERN: lambda at: (
                "",
                filter(_matches_itself, self._names.begun(at.rest)),
            ),
            ArgumentKind.FILE: lambda at: _last(at.rest, _paths),
            ArgumentKind.FILE_THEN_VALUE: self._file_then_value,
            ArgumentKind.SOURCE: lambda at: _last(at.rest, self._names.sources),
            ArgumentKind.STOPS: lambda at: _last(at.rest, self._stops),
            ArgumentKind.STOP_THEN_VALUE: self._stop_then_value,
            ArgumentKind.DISPLAYS: lambda at: _numbers(at.rest, debugger.displays),
            ArgumentKind.FRAME: lambda at: self._frame(at.rest),
            ArgumentKind.THREADS: lambda at: _numbers(at.rest, debugger.threads.numbers()),
            ArgumentKind.SIGNALS: lambda at: _words(at.rest, SIGNALS),
            ArgumentKind.ACTIONS: lambda at: _words(at.rest, ("all", *ACTIONS, *SIGNALS)),
            ArgumentKind.CALLS: lambda at: _words(at.rest, self._calls()),
            ArgumentKind.REGISTERS: lambda at: _last(at.rest, self._registers),
            ArgumentKind.MACRO: lambda at: ("", self._values.begun_macros(at.rest)),
            ArgumentKind.MARK: lambda at: ("", begun(at.rest, self._marks())),
            ArgumentKind.MOMENT: lambda at: ("", begun(at.rest, ("begin", "end", *self._marks()))),
            ArgumentKind.LINE: lambda at: (
                ("", ()) if at.first and at.grammar.skipped else self._found(at.rest)
            ),
            ArgumentKind.SETTING: self._set,
            ArgumentKind.SHOWN: lambda at: self._setting(at.rest, values=False),
            ArgumentKind.SETTING_THEN_LINE: self._with,
            ArgumentKind.PRINTED: lambda at: self._printed(at.rest),
            ArgumentKind.INFO: lambda at: self._info(at.rest),
            ArgumentKind.WORD: lambda at: ("", self._first(at.rest)),
            ArgumentKind.SCRIPT: lambda at: self._script(at.rest),
        }

    def lines(self, line: str) -> list[str]:
        """Whole lines that a line may become, the likeliest first, `MOST` of them at most."""
        front, found = self._found(line)
        return [front + one for one in islice(dict.fromkeys(found), MOST)]

    def _found(self, line: str) -> Found:
        """The front of a line that stays, and what may follow it; lines hold lines."""
        if self._deep == _DEEPEST:
            return line, ()
        self._deep += 1
        try:
            return self._of_line(line)
        finally:
            self._deep -= 1

    def _of_line(self, line: str) -> Found:
        start = len(line) - len(line.lstrip(" "))
        name, space, rest = line[start:].partition(" ")
        if name[:1] in ("!", "|") and name:  # no blank need stand behind these
            name, space, rest = name[:1], " ", line[start + 1 :]
        if not space:
            return line[:start], self._first(name)
        bare, slash, _ = name.partition("/")
        whole = self._whole(bare)
        if whole not in GRAMMAR:
            return line, ()
        grammar = GRAMMAR[whole]
        if slash and grammar.kind is ArgumentKind.PRINTED:  # options stand in front of a format
            grammar = Grammar(ArgumentKind.VALUE)
        rest = rest.lstrip(" ")
        found, texts = self._behind(grammar, rest)
        return line[: len(line) - len(rest)] + found, texts

    def _whole(self, name: str) -> str:
        """The whole name of a word that a line begins with; "" for none."""
        try:
            return self._words.find(name).names[0]
        except CommandError:
            return name

    def _first(self, typed: str) -> list[str]:
        """Words that begin so; of their other names only those that are not the word cut short."""
        names = chain.from_iterable(_whole_names(word.names) for word in self._words.all)
        return begun(typed, sorted({*names, *self._words.own}))

    def _behind(self, grammar: Grammar, rest: str) -> Found:
        """Completions of the text behind a word."""
        at = position(grammar, rest)
        front = rest[: len(rest) - len(at.rest)]
        options = begun(at.rest, sorted(at.grammar.options)) if at.rest[:1] in "-/" else []
        if at.rest and options:
            return front, options
        words = begun(at.rest, sorted(at.grammar.words)) if at.first else []
        kind = self._by_kind.get(at.kind)
        found, texts = ("", ()) if kind is None else kind(at)
        if not words:
            return front + found, texts
        if at.kind is ArgumentKind.SIGNALS:
            return front, chain(texts, words)
        if at.kind is ArgumentKind.WORD:
            return front, texts
        if at.kind in (ArgumentKind.SETTING, ArgumentKind.SHOWN):
            return front, sorted({*words, *self._setting(at.rest, values=False)[1]})
        numbers = (text for text in texts if text.isdigit()) if at.kind in _NUMBERED else ()
        return front, chain(numbers, words)

    # -- kinds of texts ----------------------------------------------------------------------

    def _value(self, text: str, *, types: bool = False) -> Found:
        column, texts = self._values.completed(text, types=types)
        return text[:column], texts

    def _printed(self, text: str) -> Found:
        """Options in front of an expression, up to their --."""
        behind = re.match(r"-.*?\s--\s+", text)
        if behind is not None:
            front, texts = self._value(text[behind.end() :])
            return behind[0] + front, texts
        if text[:1] == "-":
            *before, last = text.split(" ")
            printing = [one.name for one in TABLE if one.option and one.name.startswith(_PRINT)]
            options = [f"-{name.removeprefix(_PRINT)}" for name in printing]
            found = begun(last, sorted(options)) if last[:1] == "-" else []
            if before and before[-1] in options:
                setting = next(one for one in TABLE if one.name == _PRINT + before[-1][1:])
                found = begun(last, _values_of(setting)) + found
            if found:
                return text[: len(text) - len(last)], found
        return self._value(text)

    def _listed(self, text: str) -> Found:
        """Places with source lines, two of them with a comma between."""
        before, comma, last = text.rpartition(",")
        if text[:1] == "*":
            return self._value(text)
        return before + comma, self._names.places(last, lined=True)

    def _place(self, text: str, *, called: bool) -> Found:
        condition = _CONDITION.search(text)
        if condition is not None:
            front, texts = self._held(text[: condition.start()], text[condition.end() :])
            return text[: condition.end()] + front, texts
        thread = _THREAD.search(text)
        if thread is not None:
            numbers = map(str, self._debugger.threads.numbers())
            return text[: thread.start(1)], begun(thread[1], numbers)
        if text[:1] == "*":
            return self._value(text)
        before, comma, last = text.rpartition(",")
        if comma and '"' in before:  # dprintf PLACE,"FORMAT",VALUE
            front, texts = self._held(before.partition(",")[0], last)
            return before + comma + front, texts
        return "", self._names.places(text, called=called)

    def _held(self, place: str, text: str) -> Found:
        """An expression whose variables are those of a place, a breakpoint's."""
        debugger = self._debugger
        try:
            found = debugger.places.find(debugger.wanted(place.strip()))[0] if place else None
        except TROUBLE:
            found = None
        if found is None:
            return self._value(text)
        column, texts = self._values.completed_at(found, text)
        return text[:column], texts

    def _file_then_value(self, at: Position) -> Found:
        path, space, rest = at.rest.partition(" ")
        if not space:
            return "", _paths(path)
        front, texts = self._value(rest)
        return path + space + front, texts

    def _stop_then_value(self, at: Position) -> Found:
        number, space, rest = at.rest.partition(" ")
        if not space:
            return "", self._stops(number)
        stop = self._debugger.stops.all.get(int(number)) if number.isdigit() else None
        places = [one.place for one in stop.locations] if isinstance(stop, UserBreakpoint) else []
        if places:
            column, texts = self._values.completed_at(places[0], rest)
            return number + space + rest[:column], texts
        front, more = self._value(rest)
        return number + space + front, more

    def _frame(self, text: str) -> Found:
        debugger = self._debugger
        if text and not text.isdigit():
            return self._value(text)
        count = len(debugger.frames.all) if debugger.started else 0
        return "", begun(text, map(str, range(min(count, MOST * 10))))

    def _registers(self, typed: str) -> list[str]:
        bare = typed.removeprefix("$")
        return [typed[: len(typed) - len(bare)] + one for one in self._values.registers(bare)]

    def _stops(self, typed: str) -> list[str]:
        return begun(typed, (str(n) for n in self._debugger.stops.all if n > 0))

    def _calls(self) -> list[str]:
        return sorted(self._debugger.control.session.arch.linux.syscalls.values())

    def _marks(self) -> list[str]:
        view = self._debugger.control.view().history
        return [] if view is None else [one.name for one in view.marks]

    def _info(self, rest: str) -> Found:
        """Subjects of `info`, and what stands behind them."""
        name, space, behind = rest.partition(" ")
        names = [one.names[0] for one in self._words.info]
        if not space:
            whole = chain.from_iterable(_whole_names(one.names) for one in self._words.info)
            return "", begun(name, sorted(whole))
        found = [one.names[0] for one in self._words.info if name in one.names]
        found = found or begun(name, names)
        if len(found) != 1 or found[0] not in INFO:
            return rest, ()
        front, texts = self._behind(INFO[found[0]], behind.lstrip(" "))
        return rest[: len(rest) - len(behind.lstrip(" "))] + front, texts

    def _script(self, rest: str) -> Found:
        """A script of bpftrace: its text, or its file."""
        completion = self._scripts_of(self._debugger.control.session).script(rest)
        if completion.words or "{" in rest:
            return rest[: completion.start], completion.words
        return _last(rest, _paths)

    def _scripts_of(self, session: Session) -> "ScriptCompleter":
        if self._scripts is None or self._scripts[0] is not session:
            from engine.session.tracing.script.completing import ScriptCompleter  # few lines are

            verdicts = session.probes().verdicts
            found = ScriptCompleter(session.arch, verdicts, is_kernel=session.is_kernel)
            self._scripts = session, found
        return self._scripts[1]

    # -- settings ----------------------------------------------------------------------------

    def _set(self, at: Position) -> Found:
        """A setting and its value, or an expression that changes something."""
        front, texts = self._setting(at.rest, values=True)
        found = list(texts)
        if found or _is_setting(at.rest):
            return front, found
        return self._value(at.rest)

    def _with(self, at: Position) -> Found:
        setting, dashes, line = at.rest.partition(" -- ")
        if dashes:
            front, texts = self._found(line)
            return setting + dashes + front, texts
        return self._setting(at.rest, values=True)

    def _setting(self, rest: str, *, values: bool) -> Found:
        """The next word of a setting's name; behind the name its values."""
        *before, last = rest.split(" ")
        front = rest[: len(rest) - len(last)]
        names = [*_ELSEWHERE, *(one.name for one in TABLE)]
        for number, word in enumerate(before):
            there = [name for name in names if len(name.split()) > number]
            exact = [name for name in there if name.split()[number] == word]
            names = exact or [name for name in there if name.split()[number].startswith(word)]
        at = len(before)
        words = {name.split()[at] for name in names if len(name.split()) > at}
        found = begun(last, sorted(words))
        whole = [name for name in names if len(name.split()) == at]
        if len(whole) == 1 and values:
            if whole[0] == "logging file":
                return front, _paths(last)
            offered = _ELSEWHERE.get(whole[0])
            setting = next((one for one in TABLE if one.name == whole[0]), None)
            found += begun(last, offered or (_values_of(setting) if setting else ()))
        return front, found


def _whole_names(names: Sequence[str]) -> Iterator[str]:
    """The names of a word, without those that are its first one cut short."""
    return (name for name in names if name == names[0] or not names[0].startswith(name))


def _matches_itself(name: str) -> bool:
    """True for a name that is a regular expression for itself."""
    try:
        return re.fullmatch(name, name) is not None
    except re.error:
        return False


def _is_setting(rest: str) -> bool:
    """True if what is typed is the whole name of a setting, behind which a value stands."""
    name = rest.rpartition(" ")[0].strip()
    return name in _ELSEWHERE or any(one.name == name for one in TABLE)


def _values_of(setting: GdbSetting) -> tuple[str, ...]:
    """Words that a setting may be given."""
    if setting.kind is SettingKind.SWITCH:
        return tuple("on" if one else "off" for one in setting.only) or ("off", "on")
    if setting.only:
        return tuple(sorted("unlimited" if one is None else str(one) for one in setting.only))
    is_limit = setting.kind in (SettingKind.LIMIT, SettingKind.COUNT)
    return ("unlimited",) if is_limit else ()


def _last(rest: str, found: Callable[[str], Iterable[str]]) -> Found:
    """Completions of the last of several words."""
    word = rest.rpartition(" ")[2]
    return rest[: len(rest) - len(word)], found(word)


def _words(rest: str, names: Iterable[str]) -> Found:
    return _last(rest, lambda word: begun(word, names))


def _numbers(rest: str, numbers: Iterable[int]) -> Found:
    return _words(rest, [str(number) for number in numbers if number > 0])


def _paths(typed: str) -> Iterator[str]:
    """Files of the host that begin so; directories end in a slash."""
    folder, slash, start = typed.rpartition("/")
    try:
        place = Path(f"{folder}{slash}" or ".").expanduser()
        found = sorted(islice(place.iterdir(), MOST * 100))
    except (OSError, RuntimeError, ValueError):
        return
    for one in found:
        if one.name.startswith(start) and (start or not one.name.startswith(".")):
            yield f"{folder}{slash}{one.name}{'/' if one.is_dir() else ''}"
