"""Verdicts on the places of a kernel image, one row each."""

import errno
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import translate
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.kernelprobes import KernelRefusal
from engine.errors import ProbeError
from engine.probes.kernel_places import FTRACE, NOTRACE, OPTIMISED, REJECTED, KernelVerdict
from engine.probes.kernel_places import Outcome as PlaceOutcome
from engine.session.kernel.opened import OpenedKernel

if TYPE_CHECKING:
    from engine.trace.kprobe_events import Outcome

_FILLS: Final = (b"\xcc", b"\0")
_FILL_LEAST: Final = 256
FPROBE, TRACEPOINT = "fprobe", "tracepoint"
_NO_REASON: Final = "a breakpoint: nothing was asked about a jump"
_REASONS: Final = {
    FTRACE: "on ftrace's site: served by ftrace, without a breakpoint",
    OPTIMISED: "a breakpoint, and then a jump to a detour buffer",
}


class KernelRow(Struct, frozen=True):
    """The verdict on a place, or on a definition.

    Attributes:
        address: of the place; None where a definition has none.
        symbol: around it; "" where there is none.
        offset: in the symbol.
        era: version whose rules hold.
        technique: "ftrace", "jump", "breakpoint"; "fprobe", "tracepoint" for events that are no
            kprobes; "rejected" where no probe may stand; "none" where nothing stands.
        reason: in words.
        rule: id of the rule that decided; "" where none stands against a probe.
        errno: name of the error of a refusal, "" for none.
        culprit: address of what is at fault, if that is elsewhere.
        registered: name of the error with which register_kprobe, called by a module, refuses it;
            "" for none. Events are refused more.
        line: the definition.
        error: the kernel's text in error_log; "" for none.
        command: the definition as error_log shows it: `%pd` is other words there; "" without an
            entry in error_log.
        column: of the caret in that; None without an entry.
        shown: the line as kprobe_events reads then.
        format: the event's format file.
    """

    address: int | None
    symbol: str
    offset: int
    era: str
    technique: str
    reason: str
    rule: str
    errno: str
    culprit: int | None = None
    registered: str = ""
    line: str | None = None
    error: str = ""
    command: str = ""
    column: int | None = None
    shown: str = ""
    format: str = ""

    @property
    def ok(self) -> bool:
        """True if the kernel takes it."""
        return not self.errno

    @property
    def ftrace(self) -> bool:
        """True if it is served by ftrace."""
        return self.technique == FTRACE

    @property
    def optimized(self) -> bool:
        """True if it becomes a jump."""
        return self.technique == OPTIMISED


def error_name(number: int) -> str:
    """The name of an error; of two for one number the one that Linux uses."""
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]


def row_of(
    opened: OpenedKernel,
    address: int | None,
    verdict: KernelVerdict | None,
    *,
    line: str | None = None,
    outcome: "Outcome | None" = None,
) -> KernelRow:
    """The row for a place and the answer to it.

    Args:
        opened: the image.
        address: as it was asked for; None where a definition has no place.
        verdict: on it.
        line: a definition.
        outcome: the kernel's answer to the definition.
    """
    if verdict is not None:
        address = verdict.address
    symbol, offset = "", 0
    if address is not None:
        found = opened.names.bounds(address)
        if found is not None:
            symbol, offset = found[0], address - found[1]
    technique, reason, rule, name = "", "", "", ""
    culprit: int | None = None
    registered = ""
    if verdict is not None:
        technique = verdict.kind
        why: KernelRefusal | None = verdict.refusal or verdict.stays
        if why is not None:
            reason, rule = why.detail, why.rule
            culprit = why.address if why.address != address else None
        else:
            reason = _REASONS.get(technique, _NO_REASON)
        name = verdict.refusal.errno if verdict.refusal is not None else ""
        technique = technique or REJECTED
        if verdict.refusal is not None and rule == NOTRACE:
            raw = opened.places.registered(verdict.address).refusal
            registered = raw.errno if raw is not None else ""
        else:
            registered = name
    error, command, column, shown, text = "", "", None, "", ""
    if outcome is not None:
        if outcome.rc:
            name = error_name(-outcome.rc)
            technique = REJECTED
            error, column = outcome.text or "", outcome.column
            command = getattr(outcome.error, "command", "")
            reason = reason or error or _without(str(outcome.error), line, name)
            rule = rule or getattr(outcome.error, "code", "")
        shown, text = outcome.shown, outcome.format or ""
        if not outcome.rc and verdict is None:
            technique, reason = _other(outcome)
    return KernelRow(
        address,
        symbol,
        offset,
        opened.era,
        technique or "none",
        reason,
        rule,
        name,
        culprit,
        registered,
        line,
        error,
        command,
        column,
        shown,
        text,
    )


def _without(text: str, line: str | None, error: str) -> str:
    """The words of an error without the line and the number that are told beside it."""
    return text.removeprefix(f"{(line or '').strip()}: ").removesuffix(f" ({error})")


def _other(outcome: "Outcome") -> tuple[str, str]:
    """Technique and reason of what was accepted and is no kprobe on a place of the image."""
    one = outcome.definition
    if one is None:
        return "none", "accepted: it defines nothing"
    if one.kind == "kprobe":
        return "none", "accepted: it waits for its module, which is not in this image"
    if one.words[0][0] == "t":
        return TRACEPOINT, "called by the tracepoint, without a breakpoint"
    return FPROBE, "a function event: served by ftrace, without a breakpoint"


def entry_rows(opened: OpenedKernel, starts: Sequence[int]) -> Iterator[KernelRow]:
    """A row for the entry of each function.

    Args:
        opened: the image.
        starts: addresses of the functions.
    """
    for start in starts:
        where = opened.at(start)
        yield row_of(where, start, where.places.event(start))


def matching_starts(opened: OpenedKernel, globs: Sequence[str]) -> list[int]:
    """Addresses of functions that patterns match, in the order of the patterns, each once.

    MOD:GLOB are those of a module that is loaded.

    Raises:
        ProbeError: a pattern matches none.
    """
    found: dict[int, None] = {}
    for glob in globs:
        module, _, pattern = glob.partition(":")
        inside = next((each for each in opened.loaded if each.image.module == module), None)
        starts = function_starts(inside or opened, pattern if inside is not None else glob)
        if not starts:
            raise ProbeError(f"-f {glob}: no function matches")
        found.update(dict.fromkeys(starts))
    return list(found)


def function_starts(opened: OpenedKernel, glob: str = "*") -> list[int]:
    """Addresses in text that have a name matching a pattern, sorted, each once."""
    names = opened.image.names
    matches = re.compile(translate(glob)).match
    starts: set[int] = set()
    for low, high in opened.tables.text:
        first, last = bisect_left(names.addresses, low), bisect_left(names.addresses, high)
        pairs = zip(names.names[first:last], names.addresses[first:last], strict=True)
        starts.update(address for name, address in pairs if matches(name))
    return sorted(starts)


def place_rows(
    opened: OpenedKernel, starts: Sequence[int], *, together: bool
) -> Iterator[KernelRow]:
    """A row for every instruction of functions, but not for what fills a gap behind them.

    Args:
        opened: the image.
        starts: of the functions.
        together: all of a function's places are probed at once.
    """
    for start in starts:
        where = opened.at(start)
        places = where.places
        function = places.function(start)
        if function is None:
            continue
        end = function.start + _without_fill(function.code)
        starts_of = (address for address, _ in places.instructions(function))
        found = (places.event(address) for address in takewhile(end.__gt__, starts_of))
        if together:
            verdicts = list(found)
            armed = sorted(verdict.address for verdict in verdicts if verdict.ok)
            found = (places.crowded(verdict, armed) for verdict in verdicts)
        for verdict in found:
            yield row_of(where, verdict.address, verdict)


def place_counts(opened: OpenedKernel, starts: Sequence[int]) -> "Counter[PlaceOutcome]":
    """The number of rows that `place_rows` gives, probed one by one, by technique and rule.

    Args:
        opened: the image.
        starts: of the functions.
    """
    found: Counter[PlaceOutcome] = Counter()
    for start in starts:
        places = opened.at(start).places
        function = places.function(start)
        if function is not None:
            end = function.start + _without_fill(function.code)
            found.update(places.counted(function, end))
    return found


def _without_fill(code: bytes) -> int:
    """Bytes of code without what the linker fills megabytes with, up to the next name."""
    for fill in _FILLS:
        used = len(code.rstrip(fill))
        if len(code) - used > _FILL_LEAST:
            return used
    return len(code)
