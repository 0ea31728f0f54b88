"""Sets of calls and signals as options name them: -e trace=SET, -e signal=SET."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from engine.errors import CommandError
from engine.trace.strace.decoder import call_forms
from engine.trace.strace.names import signal_name

_OLD: Final = frozenset(("file", "desc", "process", "network", "signal", "ipc", "memory"))
"""Classes that may be named without %."""
CLASSES: Final = (
    *("file", "desc", "process", "network", "signal", "ipc", "memory", "stat", "lstat", "fstat"),
    *("statfs", "fstatfs", "%stat", "%statfs", "clock", "creds", "pure"),
)
_ALSO: Final = {
    "%stat": ("stat", "lstat", "fstat"),
    "%statfs": ("statfs", "fstatfs"),
}
Chosen = Callable[[str], bool]


def _all(name: str) -> bool:
    return True


def calls_of(option: str, text: str, known: Iterable[str]) -> Chosen:
    """Tell calls of a set from others.

    Args:
        option: that names the set, for messages.
        text: the set: names, %CLASS, /REGEX, all, none, joined by commas; behind ! all but those;
            with ? in front of one it may be unknown.
        known: the calls that the guest's architecture has.

    Raises:
        CommandError: nothing has a name of the set.
    """
    inverted = text.startswith("!")
    given = text.removeprefix("!")
    names = frozenset(known)
    chosen: set[str] = set()
    for word in given.split(","):
        chosen |= _word(option, word, names)
    if not inverted and given == "all":
        return _all
    if inverted:
        return lambda name: name not in chosen
    return lambda name: name in chosen


def _word(option: str, word: str, names: frozenset[str]) -> set[str]:
    may_miss = word.startswith("?")
    word = word.lstrip("?")
    if word == "all":
        return set(names)
    if word == "none":
        return set()
    if word.startswith("/"):
        try:
            pattern = re.compile(word[1:])
        except re.error as error:
            raise CommandError(f"{option}: {word!r} is no regular expression: {error}") from error
        found = {name for name in names if pattern.search(name)}
    elif word.startswith("%") or word in _OLD:
        found = _class(option, word.removeprefix("%"), names)
    elif word.isdecimal():
        found = {f"#{word}"}
    else:
        plain = word.partition("@")[0]
        found = {plain} & names
        found |= {name for name in names if name == plain}
        if not found and plain in call_forms():
            return {plain}  # of another architecture: nothing matches it
    if not found and not may_miss:
        raise CommandError(
            f"{option}: invalid system call {word!r}; names, %CLASS "
            f"(%{', %'.join(CLASSES)}) and /REGEX are"
        )
    return found


def _class(option: str, name: str, names: frozenset[str]) -> set[str]:
    if name not in CLASSES:
        raise CommandError(f"{option}: invalid class %{name}; there are %{', %'.join(CLASSES)}")
    wanted = {name, *_ALSO.get(name, ())}
    forms: Mapping[str, object] = call_forms()
    return {each for each in names if each in forms and wanted & set(call_forms()[each].classes)}


def signals_of(option: str, text: str) -> Callable[[int], bool]:
    """Tell signals of a set from others: names with or without SIG, numbers, all, none, !.

    Raises:
        CommandError: there is no such signal.
    """
    inverted = text.startswith("!")
    known = {signal_name(number): number for number in range(1, 65)}
    chosen: set[int] = set()
    for word in text.removeprefix("!").split(","):
        if word == "all":
            chosen |= set(known.values())
        elif word == "none":
            continue
        elif word.isdecimal() and 0 < int(word) <= 64:
            chosen.add(int(word))
        else:
            name = word.upper()
            found = known.get(name) or known.get(f"SIG{name}")
            if found is None:
                raise CommandError(f"{option}: invalid signal {word!r}; as SIGSEGV or segv")
            chosen.add(found)
    if inverted:
        return lambda number: number not in chosen
    return lambda number: number in chosen
