"""What is to be said about a run once it is over."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.linux import signals as sig
from engine.linux.ending import Exit

_QUIET = frozenset({sig.SIGINT, sig.SIGTERM, sig.SIGPIPE, sig.SIGHUP, sig.SIGQUIT})
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Report:
    """One remark, in lines; the first says it, the others explain."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reports:
    """How a run ended, and remarks in the order to show them."""

    exit: Exit
    remarks: tuple[Report, ...]

    @property
    def exit_code(self) -> int:
        """The process exit code that stands for it: 128+N for signal N, 124 for a limit."""
        if self.exit.limit:
            return 124
        if self.exit.signal:
            return 128 + self.exit.signal
        return self.exit.code or 0


def ending(end: Exit, place: Callable[[], str]) -> Report | None:
    """The remark about how the guest ended; None if it needs none.

    `place` describes the instruction it ended at: it costs a disassembler and symbols.
    """
    if end.limit == "timeout":
        return Report(("stopped: the time limit (--timeout) ran out", f"at {place()}"))
    if end.limit:
        return Report(("stopped: the block limit (--max-blocks) ran out", f"at {place()}"))
    name = sig.name(end.signal)
    if end.crash is not None:
        return Report((f"guest killed by {name}: {end.crash.why}", f"at {place()}"))
    if end.signal and end.signal not in _QUIET:
        return Report((f"guest killed by {name}", f"at {place()}"))
    return None


def reason(reports: Reports) -> str:
    """How the guest ended, in a few words on one line."""
    end = reports.exit
    if end.limit:
        return f"stopped by --{end.limit}"
    if end.signal:
        why = f": {end.crash.why}" if end.crash is not None else ""
        return f"killed by {sig.name(end.signal)}{why}"
    return f"exited with {reports.exit_code}"


def missing(counts: dict[str, int]) -> Report | None:
    """What the guest asked for and did not get."""
    if not counts:
        return None
    lines = [f"{what} ({count} times)" if count > 1 else what for what, count in counts.items()]
    more = len(lines) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    return Report(("not supported, the guest got an error:", *lines[:_SHOWN], *tail))


def refused(paths: list[tuple[str, str]], dropped: int) -> Report | None:
    """Paths that exist on the host and were kept from the guest."""
    if not paths:
        return None
    lines = [f"{path}  (allow it with {option})" for path, option in paths]
    more = len(lines) - _SHOWN + dropped
    tail = (f"and {more} more",) if more > 0 else ()
    head = "not visible to the guest (--root / would show it the whole file system):"
    return Report((head, *lines[:_SHOWN], *tail))
