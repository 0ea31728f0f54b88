"""The expressions of strace's -e, put together."""

from collections.abc import Callable, Iterable
from typing import Final

from engine.errors import CommandError
from engine.trace.strace.dumps import Descriptors, descriptors_of
from engine.trace.strace.injection import Injection, read_injection
from engine.trace.strace.selection import calls_of, signals_of

_KEYS: Final = {
    "trace": "trace", "t": "trace", "abbrev": "abbrev", "a": "abbrev", "verbose": "verbose",
    "v": "verbose", "raw": "raw", "x": "raw", "signal": "signal", "signals": "signal",
    "s": "signal", "status": "status", "quiet": "quiet", "silent": "quiet", "silence": "quiet",
    "q": "quiet", "inject": "inject", "fault": "fault", "read": "read", "reads": "read",
    "r": "read", "write": "write", "writes": "write", "w": "write",
}  # fmt: skip
NAMES: Final = tuple(dict.fromkeys(_KEYS.values()))
"""The keys by their whole names."""
STATUSES: Final = ("successful", "failed", "unfinished", "unavailable", "detached")
QUIET: Final = ("attach", "exit", "path-resolution", "personality", "thread-execve")


def key_of(head: str) -> str:
    """The whole name of a key, "" for none."""
    return _KEYS.get(head, "")


def _every(name: str) -> bool:
    return True


def _no_call(name: str) -> bool:
    return False


def _no_descriptor(number: int) -> bool:
    return False


class SyscallChoice:
    """Which calls and signals are shown.

    Attributes:
        traced: whether a call is.
        whole: whether structures of a call are shown whole; None for what -v says.
        plain: whether they are not read at all.
        raw: whether a call's arguments are shown as numbers.
        signals: whether a signal is shown.
        statuses: the ends that calls shown may have; None for all.
        silent: kinds of messages that are not wanted.
        injections: what is done to calls, in the order in which it was said.
        reads: descriptors of which what is read is dumped.
        writes: those of which what is written is.
    """

    def __init__(self, expressions: Iterable[str], known: Iterable[str]) -> None:
        """Read the expressions.

        Args:
            expressions: of -e, each KEY=SET or a set of calls.
            known: names of the guest's system calls.

        Raises:
            CommandError: one of them is wrong.
        """
        self.traced: Callable[[str], bool] = _every
        self.whole: Callable[[str], bool] | None = None
        self.plain: Callable[[str], bool] = _no_call
        self.raw: Callable[[str], bool] = _no_call
        self.signals: Callable[[int], bool] = lambda number: True
        self.statuses: frozenset[str] | None = None
        self.silent: frozenset[str] = frozenset()
        self.injections: list[Injection] = []
        self.reads: Descriptors = _no_descriptor
        self.writes: Descriptors = _no_descriptor
        names = tuple(known)
        for each in expressions:
            self._take(each, names)

    def _take(self, text: str, names: tuple[str, ...]) -> None:
        head, sign, rest = text.partition("=")
        option = f"-e {text}"
        if not sign:
            head, rest = "trace", text
        key = key_of(head)
        if not key:
            raise CommandError(
                f"{option}: {head!r} is none of trace, abbrev, verbose, raw, signal, status, "
                "quiet, read, write, inject and fault"
            )
        if key == "trace":
            self.traced = calls_of(option, rest, names)
        elif key in ("inject", "fault"):
            fault = key == "fault"
            self.injections.append(read_injection(option, rest, names, fault=fault))
        elif key == "raw":
            self.raw = calls_of(option, rest, names)
        elif key == "abbrev":
            short = calls_of(option, rest, names)
            self.whole = lambda name: not short(name)
        elif key == "verbose":
            read = calls_of(option, rest, names)
            self.plain = lambda name: not read(name)
        elif key == "read":
            self.reads = descriptors_of(option, rest)
        elif key == "write":
            self.writes = descriptors_of(option, rest)
        elif key == "signal":
            self.signals = signals_of(option, rest)
        elif key == "status":
            self.statuses = _words(option, rest, STATUSES)
        else:
            self.silent = _words(option, rest, QUIET)


def _words(option: str, text: str, known: tuple[str, ...]) -> frozenset[str]:
    inverted = text.startswith("!")
    given = text.removeprefix("!")
    found: set[str] = set()
    for word in given.split(","):
        if word == "all":
            found |= set(known)
        elif word in known:
            found.add(word)
        elif word != "none":
            raise CommandError(f"{option}: {word!r} is none of {', '.join(known)}, all and none")
    return frozenset(known) - found if inverted else frozenset(found)
