"""Words that may stand at the end of a script that is being typed: places of probes, and names.

Nothing is parsed: a script that is being typed is wrong nearly all the time. It is cut into heads
of probes and blocks, by brackets that stand in no string and no comment.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.errors import KprobeTuiError
from engine.fetch.variables import VariableError
from engine.session.browse import Completion
from engine.session.program.libraries import ProgramFile
from engine.session.program.verdicts import Verdicts
from engine.session.tracing.script.places import (
    KERNELS,
    RAW,
    RAW_EVENTS,
    SIGNALS,
    TIMERS,
    UNITS,
    USERS,
    ScriptPlaces,
)
from engine.trace import sched, syscalls
from engine.trace.bpftrace.attach_points import attach_point, whole_provider
from engine.trace.bpftrace.functions import ROWS
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span
from engine.trace.bpftrace.tree import AttachPoint

MOST: Final = 200
"""Words that are offered at most."""
_PIECES: Final = re.compile(r'"(?:[^"\\]|\\(?s:.))*"?|//[^\n]*|/\*(?s:.)*?(?:\*/|$)|(?s:.)')
_NAMED: Final = re.compile(r"[@$]\w*")
_FIELD: Final = re.compile(r"\bargs(?:\.|->)(\w*)$")
_MEMBER: Final = re.compile(r"(?:\.|->)\s*\w*$")
_WORD: Final = re.compile(r"[@$]?\w*$")
_KEYWORDS: Final = (
    *("if", "else", "while", "for", "unroll", "let", "return", "break", "continue"),
    *("sizeof(", "offsetof(", "true", "false"),
)
_ARGUMENTS: Final = 6
_WITHOUT: Final = ("begin", "end")
_GROUPS: Final = (syscalls.GROUP, RAW, sched.GROUP)
_WATCHED: Final = ("watchpoint", "asyncwatchpoint")


class _Typed(Struct):
    """The end of a script, as far as it is typed.

    Attributes:
        head: of the probe that it is in: its places, without a predicate.
        start: column of the head.
        in_code: it is in a predicate or a block.
        in_text: it is in a string or a comment.
    """

    head: str = ""
    start: int = 0
    in_code: bool = False
    in_text: bool = False


def _typed(text: str) -> _Typed:
    """Find out where in a script its end is."""
    found = _Typed()
    depth, predicate = 0, False
    for match in _PIECES.finditer(text):
        piece, at = match[0], match.start()
        is_comment = piece[:2] in ("//", "/*")
        closed = piece[:1] == '"' and len(piece) > 1 and piece.endswith('"')
        closed = closed or (piece[:2] == "/*" and piece.endswith("*/"))
        if (piece[:1] == '"' or is_comment) and match.end() == len(text) and not closed:
            found.in_text = True
        if is_comment:
            if not depth and not found.head.strip():
                found.head, found.start = "", match.end()
            continue
        if piece == "{":
            depth, predicate = depth + 1, False
        elif piece == "}":
            depth = max(depth - 1, 0)
            if not depth:
                found.head, found.start = "", at + 1
        elif not depth and piece == "/" and _begins_predicate(text[found.start : at], predicate):
            predicate = not predicate
        elif not depth and not predicate:
            found.head += piece
    found.in_code = depth > 0 or predicate
    return found


def _begins_predicate(head: str, predicate: bool) -> bool:
    """True if a slash behind a head begins a predicate, or ends it; paths have some, too."""
    if predicate:
        return True
    return head[-1:].isspace() and bool(head.strip()) and head.rstrip()[-1] not in ",:"


class ScriptCompleter:
    """Completes scripts for one guest."""

    def __init__(
        self, arch: Arch, verdicts: Verdicts, *, is_kernel: bool, is_known: bool = True
    ) -> None:
        """Read nothing before the first question.

        Args:
            arch: the guest's.
            verdicts: knows its files.
            is_kernel: the guest is a kernel.
            is_known: False where it stands for a guest that is not named yet: its own program is
                not offered.
        """
        self._is_known = is_known
        self._arch = arch
        self._verdicts = verdicts
        self._program = verdicts.program
        self._places = ScriptPlaces(arch, verdicts.places, verdicts.program)
        self._is_kernel = is_kernel

    def script(self, text: str) -> Completion:
        """The words that fit at the end of a script."""
        typed = _typed(text)
        if typed.in_text:
            return Completion(len(text))
        if typed.in_code:
            return self._in_code(text, typed.head)
        begun = typed.head.rpartition(",")[2].lstrip()
        return _fitting(begun, self.points(begun), len(text) - len(begun))

    def points(self, typed: str) -> list[str]:
        """The places of probes that begin like this, up to the next colon."""
        try:
            return list(islice(dict.fromkeys(self._points(typed)), MOST))
        except KprobeTuiError:
            return []  # a file that cannot be read

    # -- places of probes -----------------------------------------------------------------

    def _points(self, typed: str) -> Iterator[str]:
        name, colon, rest = typed.partition(":")
        if not colon:
            yield from _begun(typed, self._providers())
            return
        for word in self._behind(whole_provider(name), rest):
            yield f"{name}:{word}"

    def _providers(self) -> Iterator[str]:
        yield from _WITHOUT
        yield from (f"{each}:" for each in sorted({*USERS, *TIMERS, "usdt", "self"}))
        yield from (f"{each}:" for each in ("tracepoint", *_WATCHED))
        if self._is_kernel:
            yield from (f"{each}:" for each in sorted(KERNELS))

    def _behind(self, provider: str, rest: str) -> Iterator[str]:
        """Words behind the colon of a provider."""
        if provider in TIMERS:
            yield from _begun(rest, [f"{unit}:" for unit in ("hz", *UNITS)])
        elif provider == "self":
            yield from _begun(rest, [f"signal:{each}" for each in SIGNALS])
        elif provider == "tracepoint":
            group, colon, name = rest.partition(":")
            if not colon:
                yield from _begun(rest, [f"{each}:" for each in _GROUPS])
                return
            found = self._places.tracepoints(group, f"{name}*")
            yield from (f"{group}:{each}" for _, each in found)
        elif provider in KERNELS and self._is_kernel:
            yield from _functions(self._verdicts.main, rest)
        elif provider in USERS or provider == "usdt":
            target, colon, name = rest.rpartition(":")
            if not colon:
                yield from self._targets(rest)
                if provider in USERS and rest and "/" not in rest and self._is_known:
                    yield from _functions(self._verdicts.main, rest)
                return
            words = self._markers if provider == "usdt" else self._functions_of
            yield from (f"{target}:{word}" for word in words(target, name))

    def _targets(self, typed: str) -> Iterator[str]:
        """The program's files, short names of libraries, and files that a path leads to."""
        if "/" in typed:
            found = dict.fromkeys(self._program.paths(typed))
            yield from (path if path.endswith("/") else f"{path}:" for path in found)
            return
        main = self._verdicts.main
        if self._is_known:
            yield from _begun(typed, [f"{main.path}:"])
        for file in self._program.files[1:]:
            shortest = min(sorted(file.names), key=len)
            yield from _begun(typed, [f"{shortest}:"])

    def _functions_of(self, target: str, typed: str) -> Iterator[str]:
        for file in self._places.files(target):
            yield from _functions(file, typed)

    def _markers(self, target: str, typed: str) -> Iterator[str]:
        """Markers of a file, and their providers; behind a provider its markers."""
        target, colon, provider = target.rpartition(":") if ":" in target else (target, "", "")
        point = AttachPoint(Span(0, 0), "", "usdt", (), target=target, function="*")
        for marker in self._places.markers(point):
            probe = marker.probe
            if colon:
                yield from _begun(typed, [probe.name] * (probe.provider == provider))
            else:
                yield from _begun(typed, [f"{probe.provider}:"])
                yield from _begun(typed, [probe.name])

    # -- code -----------------------------------------------------------------------------

    def _in_code(self, text: str, head: str) -> Completion:
        field = _FIELD.search(text)
        if field is not None:
            return _fitting(field[1], self._fields(head), len(text) - len(field[1]))
        if _MEMBER.search(text) is not None:
            return Completion(len(text))
        match = _WORD.search(text)
        word = "" if match is None else match[0]
        start = len(text) - len(word)
        if word[:1] in ("@", "$"):
            names = dict.fromkeys(each for each in _NAMED.findall(text[:start]) if len(each) > 1)
            return _fitting(word, names, start)
        if word[:1].isdigit():
            return Completion(start)
        provider = whole_provider(head.rpartition(",")[2].strip().partition(":")[0])
        return _fitting(word, sorted(self._words(provider)), start)

    @staticmethod
    def _words(provider: str) -> Iterator[str]:
        """Words that are built in, for probes of a provider; functions with their bracket."""
        yield from _KEYWORDS
        yield from (f"arg{index}" for index in range(_ARGUMENTS) if provider in _CALLED)
        for row in ROWS:
            if not row.refused and (not row.providers or provider in row.providers):
                yield row.name if row.bare else f"{row.name}("

    def _fields(self, head: str) -> list[str]:
        """The names that `args` has at the place of a probe."""
        text = head.rpartition(",")[2].strip()
        point = attach_point(text, Span(0, 0), ScriptRemarks(ScriptText("", text)))
        if point is None:
            return []
        if point.provider == "tracepoint":
            return list(self._event_fields(point.target, point.function))
        try:
            place = self._places.resolved(point)[0].place
            if place is None:
                return []
            scope = self._verdicts.lookup.scope_at(place)
            return [variable.name for variable, _ in scope.entry_places()]
        except (KprobeTuiError, VariableError, IndexError):
            return []

    def _event_fields(self, group: str, name: str) -> Iterable[str]:
        if group == RAW:
            return ("id", "args") if name == RAW_EVENTS[0] else ("id", "ret")
        if group == sched.GROUP:
            event = sched.BY_NAME.get(name)
            return () if event is None else [field for field, _ in event.fields]
        if name.startswith(syscalls.EXIT):
            return ("__syscall_nr", "ret")
        linux, wanted = self._arch.linux, name.removeprefix(syscalls.ENTER)
        for call in linux.syscalls.values():
            if syscalls.event_name(call) == wanted:
                known = syscalls.arguments(call, linux.clone_backwards) or ()
                return ("__syscall_nr", *(each.name for each in known))
        return ()


_CALLED: Final = frozenset((*USERS, *KERNELS, "usdt"))
"""Providers whose probes have arguments by number."""


def _functions(file: ProgramFile, typed: str) -> Iterator[str]:
    """The functions of a file that begin like this, in the order of their names."""
    names = {each.name for each in file.symbols.functions() if each.name.startswith(typed)}
    yield from islice(sorted(names), MOST)


def _begun(typed: str, words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if word.startswith(typed))


def _fitting(typed: str, words: Iterable[str], start: int) -> Completion:
    """The words that begin with what is typed; none if that is the only one already."""
    found = tuple(islice(_begun(typed, dict.fromkeys(words)), MOST))
    return Completion(start, () if found == (typed,) else found)
