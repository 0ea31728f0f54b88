"""A cell of a sweep, the work that it is, and what came out: plain records."""

import hashlib
import traceback
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.session.protocol.requests import (
    CheckRequest,
    DiffRequest,
    ExploreRequest,
    TraceRequest,
)

CellRequest = TraceRequest | CheckRequest | DiffRequest | ExploreRequest
"""The requests that a cell can be."""


class CellStatus(StrEnum):
    """Ends of cells."""

    PASSED = "passed"  # with exit code 0
    FAILED = "failed"  # with another: the guest's, an effect, a difference, a refusal
    INVALID = "invalid"  # it could not begin: a file or a definition is not accepted
    TIMEOUT = "timeout"  # a limit of time or blocks ran out
    MEMORY = "memory"  # the limit of memory ran out
    ENGINE = "engine"  # the engine failed
    CRASHED = "crashed"  # its process died


EXIT_CODES: Final = {
    CellStatus.INVALID: 2,
    CellStatus.TIMEOUT: 124,
    CellStatus.MEMORY: 137,
    CellStatus.ENGINE: 125,
    CellStatus.CRASHED: 125,
}
"""Exit codes that stand for an end: those of the command line, and that of a killed process."""
CUT: Final = "stopped by --timeout"
"""The reason of what a limit of time has ended, as reports of runs say it."""


class CellWork(Struct, frozen=True):
    """The work of a cell, for any process that can read its files.

    Attributes:
        cell: id of the cell.
        request: what is asked for.
        cwd: the current directory, which paths start from.
        stdin: path of the guest's standard input, None for an empty one.
        seconds: after which it is ended, None for never.
        memory: bytes that its process may take, None for any number.
        tables: tables of events and verdicts are wanted, not their counts alone.
        folder: directory for those tables, absolute; it is there and empty.
        files: (path, SHA-256) of the files that it reads.
    """

    cell: str
    request: CellRequest
    cwd: str
    stdin: str | None
    seconds: float | None
    memory: int | None
    tables: bool
    folder: str
    files: tuple[tuple[str, str], ...] = ()


class CellFacts(Struct, frozen=True):
    """The results of a cell's run.

    Attributes:
        exit_code: of the command that the cell is.
        reason: its end in a few words.
        clock: of the guest at the end, in ticks; 0 where nothing ran.
        events: recorded (`trace`), or hits of probes (`diff`).
        lost: events that were not recorded, and hits that were missed.
        places: that were judged (`check`) or probed (`diff`).
        refused: those of them that take no probe.
        runs: of the guest.
        message: what there is to say besides, in lines.
        seconds: that the work took by itself.
        is_cut: a limit of time or blocks has ended it.
    """

    exit_code: int
    reason: str
    clock: int = 0
    events: int = 0
    lost: int = 0
    places: int = 0
    refused: int = 0
    runs: int = 1
    message: tuple[str, ...] = ()
    seconds: float = 0.0
    is_cut: bool = False


class KeptText(Struct, frozen=True):
    """The bytes that went to a stream.

    Attributes:
        head: the first bytes.
        size: of all.
        sha256: of all, in hexadecimal digits.
    """

    head: bytes
    size: int
    sha256: str


class CellOutcome(Struct, frozen=True):
    """The results of a cell, with those about its process.

    Attributes:
        cell: its id.
        status: how it has ended.
        facts: of its run; what is known of one that did not come to its end.
        seconds: from the beginning to the end, with what it took to keep the tables.
        peak: bytes of memory that its process had at most.
        stdout: the guest's standard output.
        stderr: the guest's standard error, with remarks of the engine among it.
    """

    cell: str
    status: CellStatus
    facts: CellFacts
    seconds: float
    peak: int
    stdout: KeptText
    stderr: KeptText


def traced(error: BaseException) -> list[str]:
    """Lines that tell where an exception comes from; the place itself first."""
    *_, last = traceback.extract_tb(error.__traceback__)
    told = "".join(traceback.format_exception(error))
    return [f"at {last.filename}:{last.lineno}", *told.splitlines()]


def not_run(cell: str, status: CellStatus, why: str, *more: str) -> CellOutcome:
    """The outcome of a cell that nobody has carried out to its end.

    Args:
        cell: its id.
        status: one of `EXIT_CODES`.
        why: in a few words.
        more: lines that explain it.
    """
    nothing = KeptText(b"", 0, hashlib.sha256().hexdigest())
    facts = CellFacts(EXIT_CODES[status], why, runs=0, message=more)
    return CellOutcome(cell, status, facts, 0.0, 0, nothing, nothing)
