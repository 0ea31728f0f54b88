"""The answers to each signal that the guest gets: gdb's table of stop, print and pass."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.linux import signals as sig

_TEXTS: Final = {
    "SIGHUP": "Hangup",
    "SIGINT": "Interrupt",
    "SIGQUIT": "Quit",
    "SIGILL": "Illegal instruction",
    "SIGTRAP": "Trace/breakpoint trap",
    "SIGABRT": "Aborted",
    "SIGFPE": "Arithmetic exception",
    "SIGKILL": "Killed",
    "SIGBUS": "Bus error",
    "SIGSEGV": "Segmentation fault",
    "SIGSYS": "Bad system call",
    "SIGPIPE": "Broken pipe",
    "SIGALRM": "Alarm clock",
    "SIGTERM": "Terminated",
    "SIGURG": "Urgent I/O condition",
    "SIGSTOP": "Stopped (signal)",
    "SIGTSTP": "Stopped (user)",
    "SIGCONT": "Continued",
    "SIGCHLD": "Child status changed",
    "SIGTTIN": "Stopped (tty input)",
    "SIGTTOU": "Stopped (tty output)",
    "SIGIO": "I/O possible",
    "SIGXCPU": "CPU time limit exceeded",
    "SIGXFSZ": "File size limit exceeded",
    "SIGVTALRM": "Virtual timer expired",
    "SIGPROF": "Profiling timer expired",
    "SIGWINCH": "Window size changed",
    "SIGUSR1": "User defined signal 1",
    "SIGUSR2": "User defined signal 2",
    "SIGPWR": "Power fail/restart",
}
"""In gdb's order (include/gdb/signals.def)."""
SIGNALS: Final = tuple(_TEXTS)
"""Names of signals, those of real time apart."""
_NUMBERS: Final = {name: number for number, name in sig.NAMES.items()}
_QUIET: Final = frozenset(
    ("SIGALRM", "SIGURG", "SIGCHLD", "SIGIO", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIG32")
)
OWN: Final = (sig.SIGINT, sig.SIGTRAP)
"""Signals that gdb keeps for itself."""
HEADING: Final = "Signal        Stop\tPrint\tPass to program\tDescription"
_LAST: Final = 64


def signal_name(number: int) -> str:
    """Gdb's name of a signal: real-time ones are SIG34 and so on."""
    known = sig.NAMES.get(number, "")
    return known if known in _TEXTS else f"SIG{number}"


def signal_text(number: int) -> str:
    """Return a signal's description."""
    return _TEXTS.get(signal_name(number), f"Real-time event {number}")


def signal_number(word: str) -> int:
    """The signal that a word names: SIGUSR1, 10 (1 to 15 as in gdb).

    Raises:
        CommandError: there is none.
    """
    if word in _NUMBERS:
        return _NUMBERS[word]
    match = re.fullmatch(r"(SIG)?(\d+)", word)
    number = int(match[2]) if match else 0
    if not match or not 1 <= number <= _LAST:
        raise CommandError(f'"{word}" is no signal.')
    if not match[1] and number > 15:
        raise CommandError(
            "Only signals 1-15 are valid as numeric signals.\n"
            'Use "info signals" for a list of symbolic signals.'
        )
    return number


class SignalRule(Struct):
    """One line of the table.

    Attributes:
        stop: the guest stops in front of it.
        told: it is said that it has come.
        passed: the program gets it.
    """

    stop: bool = True
    told: bool = True
    passed: bool = True


class SignalTable:
    """The rules of all signals."""

    def __init__(self) -> None:
        """As in gdb at its start."""
        self._rules: dict[int, SignalRule] = {}
        for number in range(1, _LAST + 1):
            quiet = signal_name(number) in _QUIET
            self._rules[number] = SignalRule(not quiet, not quiet, number not in OWN)

    def __getitem__(self, number: int) -> SignalRule:
        """The rule of a signal."""
        return self._rules[number]

    def handle(self, words: Iterable[str]) -> None:
        """Change rules: signals, and what is to be done with them, in any order.

        Raises:
            CommandError: a word means nothing.
        """
        chosen: list[int] = []
        does: list[str] = []
        for word in words:
            if word == "all":
                chosen += [n for n in self._rules if n not in (*OWN, sig.SIGKILL)]
            elif word in ACTIONS:
                does.append(word)
            else:
                try:
                    chosen += self._chosen(word)
                except CommandError:
                    raise CommandError(f'Unrecognized or ambiguous flag word: "{word}".') from None
        for number in chosen:
            for word in does:
                for name, value in ACTIONS[word]:
                    setattr(self._rules[number], name, value)

    @staticmethod
    def _chosen(word: str) -> list[int]:
        first, _, last = word.partition("-")
        if not last:
            return [signal_number(first)]
        low, high = sorted((signal_number(first), signal_number(last)))
        return list(range(low, high + 1))

    def lines(self, numbers: Iterable[int] = ()) -> Iterator[str]:
        """Rows of `info signals`, all of them if no numbers are given."""
        every = [_NUMBERS[name] for name in _TEXTS]
        for number in numbers or (*every, *(n for n in self._rules if n not in every)):
            rule = self._rules[number]
            stop, told, passed = (
                "Yes" if on else "No" for on in (rule.stop, rule.told, rule.passed)
            )
            yield f"{signal_name(number):<13} {stop}\t{told}\t{passed}\t\t{signal_text(number)}"


CRASHES: Final = frozenset(
    (sig.SIGSEGV, sig.SIGBUS, sig.SIGILL, sig.SIGFPE, sig.SIGABRT, sig.SIGSYS)
)
"""Signals that code gets for what it does itself."""
ACTIONS: Final = {
    "stop": (("stop", True), ("told", True)),
    "nostop": (("stop", False),),
    "print": (("told", True),),
    "noprint": (("told", False), ("stop", False)),
    "pass": (("passed", True),),
    "nopass": (("passed", False),),
    "ignore": (("passed", False),),
    "noignore": (("passed", True),),
}
