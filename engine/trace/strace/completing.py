"""Expressions of strace's -e and sets of calls as far as they are typed, completed."""

import errno
from collections.abc import Iterable

from engine.trace.strace.decoder import call_forms
from engine.trace.strace.injection import FAULT_WORDS, INJECTION_WORDS
from engine.trace.strace.names import signal_name
from engine.trace.strace.selection import CLASSES


def set_words(typed: str) -> list[str]:
    """Sets of calls that begin so."""
    names = call_forms() if typed.rpartition(",")[2].strip("!") else ()
    classes = (f"%{name}" for name in CLASSES)
    return _joined(typed, (*classes, "all", "none", *names))


def signal_words(typed: str) -> list[str]:
    """Sets of signals that begin so."""
    return _joined(typed, ("all", "none", *map(signal_name, range(1, 65))))


def list_words(typed: str, known: Iterable[str]) -> list[str]:
    """Sets of some words that begin so."""
    return _joined(typed, ("all", "none", *known))


def injection_words(typed: str, *, fault: bool) -> list[str]:
    """Expressions of inject= and fault= that begin so."""
    head, colon, last = typed.rpartition(":")
    if not colon:
        return set_words(typed)
    key, sign, value = last.partition("=")
    if not sign:
        known = FAULT_WORDS if fault else INJECTION_WORDS
        return [f"{head}:{word}=" for word in known if word.startswith(key)]
    values: Iterable[str] = ()
    if key == "error":
        values = errno.errorcode.values()
    elif key == "signal":
        values = map(signal_name, range(1, 65))
    return [f"{head}:{key}={word}" for word in values if word.startswith(value)]


def _joined(typed: str, known: Iterable[str]) -> list[str]:
    """Lists that go on with a word; ! may stand in front of all."""
    head, comma, last = typed.rpartition(",")
    mark = "!" * (not comma and last.startswith("!"))
    return [f"{head}{comma}{mark}{word}" for word in known if word.startswith(last[len(mark) :])]
