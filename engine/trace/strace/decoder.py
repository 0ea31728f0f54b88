"""Calls as text: the arguments when a call is made, the rest and the result when it returns."""

import errno
import os
from functools import cache
from typing import Final

from msgspec import Struct

from engine.trace.strace.call import Kind, TracedCall, Words
from engine.trace.strace.kinds import KINDS, LATE, NOTES, RESULTS, SPLIT
from engine.trace.strace.names import table_lines
from engine.trace.strace.scalars import hexadecimal

_RESTARTS: Final = {
    512: "ERESTARTSYS (To be restarted if SA_RESTART is set)",
    513: "ERESTARTNOINTR (To be restarted)",
    514: "ERESTARTNOHAND (To be restarted if no handler)",
    516: "ERESTART_RESTARTBLOCK (Interrupted by signal)",
}
"""The kernel's own errors of calls that a signal interrupts (include/linux/errno.h)."""
_ERRNO_NAMES: Final = {11: "EAGAIN", 35: "EDEADLK", 95: "EOPNOTSUPP"}
"""Errors that have two names."""
_BLOCKS: Final = frozenset({"nanosleep", "clock_nanosleep", "poll"})
_NO_HANDLER: Final = frozenset(
    {"pause", "rt_sigsuspend", "select", "pselect6", "ppoll", "msgrcv", "msgsnd"}
)
_INTERRUPTED: Final = frozenset(
    {"epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait", "semop", "semtimedop"}
)
_NEVER_FAILS: Final = frozenset(
    (
        *("getuid", "geteuid", "getgid", "getegid", "getpid", "gettid", "getppid", "getpgrp"),
        *("personality", "umask", "setfsuid", "setfsgid"),
    )
)


class ArgumentForm(Struct, frozen=True):
    """The form of one argument.

    Attributes:
        kind: its name in `KINDS`; "skip" for one that is not shown.
        show: shows it.
        words: of the kind.
        late: it is read when the call returns.
    """

    kind: str
    show: Kind | None
    words: Words
    late: bool


class CallForm(Struct, frozen=True):
    """The form of a call.

    Attributes:
        classes: those of -e trace=%CLASS that it belongs to.
        arguments: in order.
        result: kind of its result.
    """

    classes: tuple[str, ...]
    arguments: tuple[ArgumentForm, ...]
    result: str


@cache
def call_forms() -> dict[str, CallForm]:
    """All calls of `calls.txt` by name."""
    found = {}
    for line in table_lines("calls.txt"):
        name, classes, arguments, result = line.split("|")
        forms = tuple(_argument(word) for word in arguments.split())
        found[name] = CallForm(tuple(filter(None, classes.split(","))), forms, result)
    return found


def _argument(word: str) -> ArgumentForm:
    late = word.startswith(">")
    kind, *words = word.removeprefix(">").split(":")
    return ArgumentForm(kind, KINDS.get(kind), tuple(words), late)


def form_of(name: str, count: int) -> CallForm:
    """Return the form of a call; one that the table does not have is so many numbers."""
    found = call_forms().get(name)
    if found is not None:
        return found
    return CallForm((), tuple(_argument("lx") for _ in range(count)), "")


class ShownCall:
    """One call on its way to a line.

    Attributes:
        call: what is known of it.
        whole: all of its arguments are shown already.
    """

    def __init__(self, call: TracedCall, count: int) -> None:
        """Begin to show a call.

        Args:
            call: as it is made.
            count: of arguments, where the table does not have it.
        """
        self.call = call
        self._form = form_of(call.name, count)
        self._raw = call.style.raw(call.name)
        self._at = 0
        self._split = -1
        self._shown = False
        self.whole = False

    def begin(self) -> str:
        """Name and arguments, up to the first that the call stores."""
        call = self.call
        for index, each in enumerate(self._form.arguments):
            note = NOTES.get(each.kind)
            if note is not None:
                note(call, index)
        text = self._next(stops=True)
        return f"{call.name}({text}"

    def finish(self) -> str:
        """The rest of the arguments, and the bracket."""
        call, text = self.call, ""
        if self._split >= 0:
            each = self._form.arguments[self._split]
            text = SPLIT[each.kind][1](call, self._split, each.words) or ""
        if not self.whole:
            text += self._next(stops=False)
        return f"{text})"

    def _next(self, *, stops: bool) -> str:
        """The texts of the arguments from here on, each but the first behind a comma."""
        call = self.call
        found: list[str] = []
        forms = self._form.arguments
        while self._at < len(forms):
            each = forms[self._at]
            if stops and not self._raw and self._is_late(each):
                break
            if each.kind == "skip" and not self._raw:
                self._at += 1
                continue
            text = self._text(each, self._at)
            if text is None:
                self._at = len(forms)
                break
            found.append(f", {text}" if self._shown else text)
            self._shown = True
            split = SPLIT.get(each.kind)
            self._at += 1
            if stops and not self._raw and split is not None and split[0](call):
                self._split = self._at - 1
                return "".join(found)
        self.whole = self._at >= len(forms)
        if stops and not self.whole and self._shown:
            found.append(", ")
            self._shown = False  # the comma is there
        return "".join(found)

    def _is_late(self, each: ArgumentForm) -> bool:
        late = LATE.get(each.kind)
        return each.late or (late is not None and late(self.call))

    def _text(self, each: ArgumentForm, index: int) -> str | None:
        call = self.call
        if self._raw or each.show is None:
            return hexadecimal(call.arguments[index] & (1 << 64) - 1)
        return each.show(call, index, each.words)

    def result(self) -> str:
        """The result behind the equals sign, with its comment."""
        call = self.call
        value = call.result
        if value is None:
            return "?"
        if call.failed and (call.name not in _NEVER_FAILS or call.saved.get("given")):
            return self._failure(-value)
        text = (
            hexadecimal(value & (1 << 64) - 1)
            if self._raw
            else RESULTS[self._form.result](call, value)
        )
        return f"{text} ({call.comment})" if call.comment and not self._raw else text

    def _failure(self, code: int) -> str:
        restarts = restart_code(self.call) if self.call.saved.get("interrupted") else 0
        if restarts:
            return f"? {_RESTARTS[restarts]}"
        name = _ERRNO_NAMES.get(code) or errno.errorcode.get(code)
        if name is None:
            return f"-1 ERRNO_{code} ({os.strerror(code)})"
        return f"-1 {name} ({os.strerror(code)})"


def restart_code(call: TracedCall) -> int:
    """The kernel's own errno of a call that a signal has interrupted; 0 for a plain EINTR."""
    name = call.name
    if name in _INTERRUPTED:
        return 0
    if name in _BLOCKS or (name == "futex" and call.arguments[3] and _waits(call)):
        return 516
    return 514 if name in _NO_HANDLER else 512


def _waits(call: TracedCall) -> bool:
    return call.arguments[1] & 0x7F in (0, 9)
