"""The work of a cell, carried out in this process: a run of a subcommand, and its facts."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from msgspec.structs import replace

from engine.errors import EngineError
from engine.session.guest.session import Session
from engine.session.headless.checks import check
from engine.session.headless.effect import compare
from engine.session.headless.explore import Explored, explored
from engine.session.headless.kernel_guests import check_image
from engine.session.headless.sweep.cells import CUT, EXIT_CODES, CellFacts, CellStatus, CellWork
from engine.session.headless.traces import opened_trace
from engine.session.program.opening import OpenedFiles, OpenedProgram
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report
from engine.session.protocol.requests import (
    CheckRequest,
    DiffRequest,
    ExploreRequest,
    TraceRequest,
)
from engine.trace.formats.columns import ParquetFormat, file_stem, row_count, write_table

if TYPE_CHECKING:
    from engine.session.headless.checks import Placed
    from engine.session.headless.kernel_checks import KernelRow

EVENTS: Final = "events"
VERDICTS: Final = "verdicts"
_AGAIN: Final = 0.01
"""Seconds between two nudges: a stop that reaches the emulator between two runs is lost."""
_TIMEOUT, _BLOCKS = "timeout", "max-blocks"
"""Limits of runs."""
_OUT_OF_TIME: Final = EXIT_CODES[CellStatus.TIMEOUT]
_VERDICT_COLUMNS: Final = {
    "address": "uint64",
    "symbol": "string",
    "offset": "uint64",
    "verdict": "string",
    "technique": "string",
    "how": "string",
    "reason": "string",
    "rule": "string",
    "errno": "string",
    "no_jump": "string",
    "lint": "string[]",
}
"""Of the table of verdicts: names and types."""


class CellRuns:
    """Carries out the work of one cell after the other.

    Cells have in common what is read of a file, and nothing that a run can change.
    """

    def __init__(self) -> None:
        """No file is open yet."""
        self._files = OpenedFiles()

    def carry_out(self, work: CellWork) -> CellFacts:
        """Do the work of a cell; standard streams are this process's.

        Raises:
            KprobeTuiError: it could not begin, or the engine failed, or its tables cannot be
                written.
        """
        started = time.perf_counter()
        end = None if work.seconds is None else time.monotonic() + work.seconds
        request = work.request
        if isinstance(request, TraceRequest):
            facts = _traced(request, work, end, self._files)
        elif isinstance(request, CheckRequest):
            facts = _checked(request, work, self._files)
        elif isinstance(request, DiffRequest):
            facts = _compared(request, end, self._files)
        else:
            facts = _explored(request, end, self._files)
        return replace(facts, seconds=time.perf_counter() - started)


@contextmanager
def limited(session: Session, end: float | None) -> Iterator[None]:
    """Have a run end at a time of `time.monotonic`, with what it has recorded."""
    over = threading.Event()

    def watch() -> None:
        if over.wait(_left(end)):
            return
        session.stop(_TIMEOUT)
        while not over.wait(_AGAIN):
            session.nudge()

    if end is None:
        yield
        return
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _left(end: float | None) -> float | None:
    """Seconds until a time; none is left where it is over."""
    return None if end is None else max(end - time.monotonic(), 0.001)


def _lines(remarks: tuple[Report, ...]) -> tuple[str, ...]:
    return tuple(line for remark in remarks for line in remark.lines)


# -- trace -----------------------------------------------------------------------------


def _traced(
    request: TraceRequest, work: CellWork, end: float | None, files: OpenedFiles
) -> CellFacts:
    folder = Path(work.folder)
    target = folder / "trace"
    # What a killed cell has recorded is dropped: no file beside its tables would be looked at.
    form = ParquetFormat.name
    options = replace(request.options, format=form, output=str(target), backed=False)
    clocks: list[int] = []

    @contextmanager
    def attach(session: Session) -> Iterator[None]:
        session.cpu.count_blocks(True)
        with limited(session, end):
            yield
        clocks.append(session.cpu.blocks())

    def load(config: GuestConfig) -> Session:
        return Session(config, opened=OpenedProgram.open(config, files))

    asked = replace(request, options=options, report=None)
    with _errors() as stream, opened_trace(asked, stream, load) as traced:
        said = traced.refused
        reports = traced.run(attach)
        lost, names = traced.lost, traced.names
    tables = _placed_events(target, folder / EVENTS, names)
    events = sum(map(row_count, tables))
    if not work.tables:
        shutil.rmtree(folder / EVENTS, ignore_errors=True)
    return CellFacts(
        reports.exit_code,
        reports.reason,
        clock=clocks[0] if clocks else 0,
        events=events,
        lost=lost,
        message=(*said, *_lines((*reports.damage, *reports.remarks))),
        is_cut=reports.exit_code == _OUT_OF_TIME and reports.limit in (_TIMEOUT, _BLOCKS),
    )


def _placed_events(target: Path, folder: Path, names: tuple[tuple[str, str], ...]) -> list[str]:
    """The tables of a trace in a directory, each under the name of its event."""
    if target.is_dir():
        target.rename(folder)
    elif target.exists() and names:
        folder.mkdir()
        target.rename(folder / f"{file_stem(*names[0])}{ParquetFormat.suffix}")
    if not folder.is_dir():
        return []
    return sorted(map(str, folder.iterdir()))


@contextmanager
def _errors() -> Iterator[BinaryIO]:
    """Standard error, unbuffered."""
    with open(2, "wb", 0, closefd=False) as stream:
        yield stream


# -- check -----------------------------------------------------------------------------


def _checked(request: CheckRequest, work: CellWork, files: OpenedFiles) -> CellFacts:
    rows: list[tuple[object, ...]] = []
    kernel = check_image(request)
    if kernel is not None:
        rows += map(_kernel_verdict, kernel.asked)
        asked = any(row[3] == _REJECTED for row in rows)
        rows += map(_kernel_verdict, kernel.rest)
        damage = kernel.damage
    else:
        found = check(request, files=files)
        rows += map(_verdict, found.asked)
        asked = any(row[3] == _REJECTED for row in rows)
        rows += map(_verdict, found.rest)
        damage = found.damage
    if work.tables:
        _write_verdicts(Path(work.folder), rows)
    refused = sum(row[3] == _REJECTED for row in rows)
    return CellFacts(
        int(asked),
        f"{len(rows)} places, {refused} rejected",
        places=len(rows),
        refused=refused,
        runs=0,
        message=_lines(damage()),
    )


_REJECTED: Final = "rejected"


def _write_verdicts(folder: Path, rows: list[tuple[object, ...]]) -> None:
    """Write the table, which is in its directory once it is whole."""
    target = folder / "table"
    try:
        write_table(str(target), _VERDICT_COLUMNS, rows)
        (folder / VERDICTS).mkdir()
        target.rename(folder / VERDICTS / f"{VERDICTS}{ParquetFormat.suffix}")
    except OSError as error:
        raise EngineError(f"verdicts cannot be written: {error.strerror or error}") from error


def _verdict(placed: "Placed") -> tuple[object, ...]:
    place, judgement = placed.place, placed.judgement
    errors = [row.rule for row in judgement.checks if not row.ok]
    return (
        place.link,
        place.symbol,
        place.offset,
        "ok" if judgement.ok else _REJECTED,
        placed.technique if judgement.ok else None,
        judgement.how,
        judgement.reason,
        errors[0] if errors else None,
        judgement.errno or None,
        placed.lacks or None,
        [f"{each.severity} {each.rule}: {each.message}" for each in judgement.findings],
    )


def _kernel_verdict(row: "KernelRow") -> tuple[object, ...]:
    refused = row.technique == _REJECTED
    return (
        row.address,
        row.symbol,
        row.offset,
        _REJECTED if refused else "ok",
        None if refused else row.technique,
        None,
        row.reason,
        row.rule or None,
        row.errno or None,
        None,
        [],
    )


# -- diff ------------------------------------------------------------------------------


def _compared(request: DiffRequest, end: float | None, files: OpenedFiles) -> CellFacts:
    effect = compare(request, lambda session: limited(session, end), files=files)
    plain, probed = effect.plain, effect.probed
    said = [*_lines(effect.damage), *effect.refused]
    facts = CellFacts(
        int(bool(effect.lines)),
        "the probes have an effect" if effect.lines else "no effect",
        clock=plain.time,
        events=probed.hits,
        places=probed.points,
        refused=len(effect.refused),
        runs=2,
        message=(*effect.lines, *said),
    )
    if not effect.cut:
        return facts
    # Where the host's clock cuts runs off, they end at two places.
    return replace(facts, exit_code=_OUT_OF_TIME, reason=CUT, message=tuple(said), is_cut=True)


# -- explore ---------------------------------------------------------------------------


def _explored(request: ExploreRequest, end: float | None, files: OpenedFiles) -> CellFacts:
    found = explored(replace(request, seconds=_left(end)), files)
    message = _lines(found.remarks)
    if found.trial is None or found.ran is None:
        code, reason = (0, "nothing differed") if found.in_time else (_OUT_OF_TIME, CUT)
        return CellFacts(
            code,
            reason,
            clock=found.first.clock,
            runs=found.tried,
            message=message,
            is_cut=not found.in_time,
        )
    return CellFacts(
        1,
        found.ran.reason,
        clock=found.ran.clock,
        runs=found.tried,
        message=(*_difference(found), *message),
    )


def _difference(found: Explored) -> Iterator[str]:
    """The run that differs, and the last of the switches that it takes."""
    assert found.trial is not None
    assert found.ran is not None
    yield f"seed {found.trial.seed}, turns {found.trial.turns}: {found.ran.reason}"
    if found.ran.met:
        yield found.ran.met
    if found.cause is not None:
        yield f"{len(found.cause.seen)} of {found.cause.total} switches make the difference"
        for seen in found.cause.seen[-1:]:
            yield f"tick {seen.tick}: {seen.left.thread} is preempted in {seen.left.place}"
