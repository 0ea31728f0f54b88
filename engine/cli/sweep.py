"""`kprobe-tui sweep`: many runs, of which each is kept."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.sweep_cells import CellRequests, SweepCell
from engine.errors import CutOff, KprobeTuiError
from engine.session.headless.sweep.cells import CellOutcome, CellStatus, CellWork, not_run
from engine.session.headless.sweep.executors import Executor, executor
from engine.session.headless.sweep.scheduler_access import scheduler_access

if TYPE_CHECKING:  # both need pyarrow, and --help works without
    from click._termui_impl import ProgressBar

    from engine.cli.sweep_plan import SweepPlan
    from engine.session.headless.sweep.results import ResultSet

_SHOWN: Final = 20
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNSURE: Final = tuple(
    each.value for each in CellStatus if each not in (CellStatus.PASSED, CellStatus.FAILED)
)


@click.command(
    cls=GroupedCommand,
    uses=(
        ("Run what is not finished yet", "race.toml"),
        ("See the command lines first", "--list race.toml"),
        (
            "Run again what came to a limit, by four processes",
            "--retry timeout --jobs 4 race.toml",
        ),
    ),
)
@option(
    "-o",
    "output",
    metavar="DIR",
    help="Directory of the data set; output in FILE, or FILE without .toml and with .sweep, if "
    "not given.",
    group=Group.OUTPUT,
)
@option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="K",
    help="Processes that share the cells; as many as there are processors if not given.",
    group=Group.WORKERS,
)
@option(
    "--scheduler",
    metavar="ADDRESS",
    help="Hand the cells to the workers of a Dask cluster, whose scheduler is there: HOST:PORT of "
    "this machine, tls://HOST:PORT.",
    group=Group.WORKERS,
)
@option(
    "--tls-ca-file",
    type=click.Path(),
    metavar="FILE",
    help="Certificate of the authority that has signed those of the cluster's scheduler, workers "
    "and clients (PEM).",
    group=Group.WORKERS,
)
@option(
    "--tls-cert",
    type=click.Path(),
    metavar="FILE",
    help="Certificate of this client.",
    group=Group.WORKERS,
)
@option(
    "--tls-key",
    type=click.Path(),
    metavar="FILE",
    help="Key of that certificate.",
    group=Group.WORKERS,
)
@option(
    "--insecure",
    is_flag=True,
    help="Talk to a scheduler of another machine in the clear: whoever is on the network in "
    "between can execute anything here and there.",
    group=Group.WORKERS,
)
@option(
    "--retry",
    type=click.Choice([*_UNSURE, CellStatus.FAILED.value]),
    multiple=True,
    help="Run finished cells of this status again; again and again.",
    group=Group.EVENTS,
)
@option(
    "--list",
    "listing",
    is_flag=True,
    help="Print the cells' lines and do not run.",
    group=Group.OUTPUT,
)
@option(
    "--shown",
    type=click.IntRange(min=0),
    default=_SHOWN,
    show_default=True,
    metavar="N",
    help="List so many cells that did not pass; 0 for all.",
    group=Group.OUTPUT,
)
@option("--debug", is_flag=True, help="Show tracebacks.", group=Group.OUTPUT)
@click.argument("file", type=click.Path())
def sweep(
    output: str | None,
    jobs: int | None,
    scheduler: str | None,
    tls_ca_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    insecure: bool,
    retry: tuple[str, ...],
    listing: bool,
    shown: int,
    debug: bool,
    file: str,
) -> int:
    """Carry out all cells of FILE, a matrix of runs in TOML, and keep what comes out.

    A cell is a run of trace, check, diff or explore. Results are Parquet files, a cell's at a
    time: what is finished is not run again, also after a kill. The lines of those that did not
    pass are printed.

    Exit code: 0 if all cells passed, 1 if one did not, 2 for bad usage or a bad file.
    """
    if jobs is not None and scheduler is not None:
        raise click.UsageError("--jobs and --scheduler: one of them")
    access = None
    if scheduler is not None:
        access = scheduler_access(scheduler, tls_ca_file, tls_cert, tls_key, insecure=insecure)
    elif insecure or (tls_ca_file, tls_cert, tls_key) != (None, None, None):
        raise click.UsageError("--tls-ca-file, --tls-cert, --tls-key, --insecure: for --scheduler")
    from engine.cli.sweep_plan import sweep_plan
    from engine.session.headless.sweep.results import ResultSet

    plan = sweep_plan(file)
    for remark in plan.remarks:
        console.remark(remark)
    if listing:
        for cell in plan.cells:
            console.put(cell.repeat)
        return 0
    with closing(ResultSet(output or plan.output)) as results:
        _again(plan, results, retry)
        todo = [cell for cell in plan.cells if cell.id not in results.finished]
        done = len(plan.cells) - len(todo)
        if done:
            console.remark(f"{done} of {len(plan.cells)} cells are finished already")
        if todo:
            count = min(jobs or len(os.sched_getaffinity(0)), len(todo))
            with closing(executor(count, access)) as workers:
                _carry_out(plan, todo, results, workers)
        return _summed_up(plan, results, shown)


def _again(plan: "SweepPlan", results: "ResultSet", retry: tuple[str, ...]) -> None:
    """Forget cells of some statuses."""
    if not retry:
        return
    finished = [cell.id for cell in plan.cells if cell.id in results.finished]
    for cell, status in zip(finished, results.statuses(finished), strict=True):
        if status in retry:
            results.forget(cell)


# -- running ---------------------------------------------------------------------------


class _EndedError(Exception):
    """A signal ends the sweep."""


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Have signals end what is done in here by `_EndedError`; yields those that have come."""
    come: list[int] = []

    def heard(number: int, frame: FrameType | None) -> None:
        come.append(number)
        if len(come) == 1:  # what follows it is at work on the end already
            raise _EndedError

    before = {number: signal.signal(number, heard) for number in _ENDING}
    try:
        yield come
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _carry_out(
    plan: "SweepPlan", todo: list[SweepCell], results: "ResultSet", workers: Executor
) -> None:
    """Carry out cells.

    Raises:
        CutOff: a signal has ended it.
        CommandError: what comes out cannot be kept.
    """
    cells = {cell.id: cell for cell in todo}
    with _ended_by_signals() as come:
        try:
            with _Bar(len(todo)) as bar:

                def publish(outcome: CellOutcome) -> None:
                    cell = cells[outcome.cell]
                    values = {**cell.labels, "repeat": cell.repeat}
                    if results.publish(outcome, plan.kinds, values):
                        bar.add(outcome)

                for outcome in workers.outcomes(_works(plan, todo, results, publish)):
                    publish(outcome)
        except _EndedError:
            results.look()
            left = sum(cell.id not in results.finished for cell in todo)
            console.remark(
                f"ended by {signal.Signals(come[0]).name}: {left} of {len(plan.cells)} "
                "cells are left, which the same line goes on with"
            )
            raise CutOff(128 + come[0]) from None


def _works(
    plan: "SweepPlan",
    todo: list[SweepCell],
    results: "ResultSet",
    publish: Callable[[CellOutcome], None],
) -> Iterator[CellWork]:
    """The work of cells, made when somebody can do it; a cell that is none is published."""
    cwd, requests = os.getcwd(), CellRequests()
    for cell in todo:
        folder = results.folder(cell.id)
        try:
            request = requests.of(cell)
        except (click.ClickException, KprobeTuiError) as error:
            text = error.format_message() if isinstance(error, click.ClickException) else error
            publish(not_run(cell.id, CellStatus.INVALID, str(text)))
            continue
        yield CellWork(
            cell.id,
            request,
            cwd,
            cell.stdin,
            plan.seconds,
            plan.memory,
            plan.tables,
            folder,
            cell.files,
        )


class _Bar:
    """A bar on a terminal; nothing elsewhere."""

    def __init__(self, count: int) -> None:
        self._statuses: Counter[str] = Counter()
        self._bar: ProgressBar[int] = click.progressbar(
            length=count,
            file=sys.stderr,
            label="cells",
            show_pos=True,
            item_show_func=lambda _: self._text(),
            hidden=sys.stderr is None or not sys.stderr.isatty(),
        )

    def __enter__(self) -> "_Bar":
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.render_finish()

    def add(self, outcome: CellOutcome) -> None:
        """One more is finished."""
        self._statuses[outcome.status.value] += 1
        self._bar.update(1, current_item=None)

    def _text(self) -> str:
        return _counted(self._statuses)


def _counted(statuses: Counter[str]) -> str:
    """Numbers of cells by status, in the order of `CellStatus`."""
    found = [f"{statuses[each.value]} {each.value}" for each in CellStatus if statuses[each.value]]
    return ", ".join(found)


# -- the end ---------------------------------------------------------------------------


def _summed_up(plan: "SweepPlan", results: "ResultSet", shown: int) -> int:
    """Print how the cells have ended; the exit code."""
    from engine.session.headless.sweep.results import RESULTS

    ids = [cell.id for cell in plan.cells]
    statuses = results.statuses(ids)
    console.put(f"{len(ids)} cells: {_counted(Counter(statuses))}")
    failed = [
        cell
        for cell, status in zip(plan.cells, statuses, strict=True)
        if status != CellStatus.PASSED.value
    ]
    listed = failed[: shown or None]
    rows = results.rows([cell.id for cell in listed], ["status", "reason", "message", "stdout"])
    for cell, row in zip(listed, rows, strict=True):
        said = str(row["message"] or "").splitlines()[:1] or str(row["stdout"]).splitlines()[-1:]
        console.put(": ".join((str(row["status"]), str(row["reason"]), *said)))
        console.put(f"  {cell.repeat}")
    if shown and len(failed) > shown:
        console.put(
            f"and {len(failed) - shown} more: --shown 0 lists all; so does the column repeat of "
            f"{os.path.join(results.path, RESULTS)}"
        )
    strangers = len(results.finished) - len(ids)
    if strangers:
        console.remark(
            f"{results.path} has {strangers} cells, too, that the file does not stand for any more"
        )
    return int(bool(failed))
