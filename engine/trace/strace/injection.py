"""Tampering with system calls as strace's -e inject= and -e fault= describe it.

`SET[:error=ERRNO|:retval=N][:signal=SIG][:delay_enter=US][:delay_exit=US][:when=WHEN]`, WHEN as
`FIRST[..LAST][+[STEP]]`. `syscall=`, `poke_enter=`, `poke_exit=`, which strace has, are refused.
"""

import errno
import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.trace.strace.names import signal_name
from engine.trace.strace.selection import Chosen, calls_of

_WHEN: Final = re.compile(r"(\d+)(?:\.\.(\d+))?(\+(\d+)?)?")
_MOST: Final = 0xFFFF
"""The highest count of a call in WHEN."""
_ERRORS: Final = 4095
_UNITS: Final = {"": 1000, "us": 1000, "ms": 10**6, "s": 10**9, "ns": 1}
_DELAY: Final = re.compile(r"(\d+)(us|ms|ns|s|)")
_REFUSED: Final = {
    "syscall": "another call in its place is not made here; retval= gives it a result",
    "poke_enter": "memory is not changed here; a probe's handler in Python can: help handlers",
    "poke_exit": "memory is not changed here; a probe's handler in Python can: help handlers",
}


class Injection(Struct, frozen=True):
    """One expression.

    Attributes:
        chosen: the calls that it is about.
        result: the result that the call gets without being carried out; None if it is.
        signal: that the thread gets when it makes the call, 0 for none.
        enter: nanoseconds that pass before the call.
        leave: nanoseconds that pass before it returns.
        first: of the calls that are meant, counted from 1 for each thread.
        last: of them.
        step: each so manieth of them.
    """

    chosen: Chosen
    result: int | None = None
    signal: int = 0
    enter: int = 0
    leave: int = 0
    first: int = 1
    last: int = _MOST
    step: int = 1

    def meant(self, count: int) -> bool:
        """True for the call of a number."""
        return self.first <= count <= self.last and not (count - self.first) % self.step


def read_injection(option: str, text: str, known: Iterable[str], *, fault: bool) -> Injection:
    """Understand an expression.

    Args:
        option: that has it, for messages.
        text: behind the equals sign.
        known: the calls of the guest's architecture.
        fault: it is one of -e fault=, whose calls fail with ENOSYS if nothing else is said.

    Raises:
        CommandError: it is none.
    """
    calls, *words = text.split(":")
    chosen = calls_of(option, calls, known)
    found: dict[str, int] = {}
    when = (1, _MOST, 1)
    for word in words:
        key, sign, value = word.partition("=")
        if key in _REFUSED and sign:
            raise CommandError(f"{option}: {key}=: {_REFUSED[key]}")
        reader = _READERS.get(key)
        if not sign or (reader is None and key != "when") or (fault and key not in FAULT_WORDS):
            names = FAULT_WORDS if fault else INJECTION_WORDS
            raise CommandError(f"{option}: {word!r} is none of {'=, '.join(names)}=")
        if key in found:
            raise CommandError(f"{option}: {key}= is there twice")
        if reader is None:
            when, found[key] = _when(option, value), 1
        else:
            found[key] = reader(option, value)
    if fault and not {"error"} & set(found):
        found["error"] = errno.ENOSYS
    if {"error", "retval"} <= set(found):
        raise CommandError(f"{option}: error= and retval=: one of them")
    if not set(found) - {"when"}:
        raise CommandError(f"{option}: what is to happen? error=ERRNO, retval=N, signal=SIG, ...")
    result = -found["error"] if "error" in found else found.get("retval")
    return Injection(
        chosen,
        result,
        found.get("signal", 0),
        found.get("delay_enter", 0),
        found.get("delay_exit", 0),
        *when,
    )


def _error(option: str, text: str) -> int:
    code: int = getattr(errno, text, 0) if text.startswith("E") else 0
    if text.isdecimal() and 0 < int(text) <= _ERRORS:
        code = int(text)
    if not code:
        raise CommandError(f"{option}: {text!r} is no error: ENOENT, or 1 to {_ERRORS}")
    return code


def _value(option: str, text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = 1 << 64
    if not -(1 << 63) <= value < 1 << 64:
        raise CommandError(f"{option}: {text!r} is no 64-bit number")
    return value - (1 << 64) if value >> 63 else value


def _signal(option: str, text: str) -> int:
    for number in range(1, 65):
        if text.upper() in (name := signal_name(number), name.removeprefix("SIG"), str(number)):
            return number
    raise CommandError(f"{option}: {text!r} is no signal; as SIGUSR1 or usr1")


def _delay(option: str, text: str) -> int:
    found = _DELAY.fullmatch(text)
    if found is None or len(text) > 18:
        raise CommandError(f"{option}: {text!r} is no time: microseconds, or with us, ms, s, ns")
    return int(found[1]) * _UNITS[found[2]]


def _when(option: str, text: str) -> tuple[int, int, int]:
    found = _WHEN.fullmatch(text)
    first, last, plus, step = found.groups() if found is not None else ("0", None, None, None)
    numbers = int(first), int(last or _MOST), int(step or 1)
    if not 0 < numbers[0] <= numbers[1] <= _MOST or not 0 < numbers[2] <= _MOST:
        raise CommandError(f"{option}: when={text} is not of the form FIRST[..LAST][+[STEP]]")
    return numbers if plus or last else (numbers[0], numbers[0], 1)


_READERS: Final[dict[str, Callable[[str, str], int]]] = {
    "error": _error,
    "retval": _value,
    "signal": _signal,
    "delay_enter": _delay,
    "delay_exit": _delay,
}
FAULT_WORDS: Final = ("error", "when")
"""Keys of -e fault=."""
INJECTION_WORDS: Final = (*_READERS, "when")
"""Keys of -e inject=."""
