"""The data set of a sweep: Parquet files in directories, a cell's with one rename each.

    DIR/results/cell=ID/cell.parquet        a row: what the cell is, and what came out
    DIR/events/cell=ID/GROUP_NAME.parquet   events of `trace`, a table for each type
    DIR/verdicts/cell=ID/verdicts.parquet   verdicts of `check`

A cell is finished once its directory in `results` is there, which is renamed last: a kill leaves
a cell whole or not begun. One sweep writes at a time.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Mapping
from typing import Final

from engine.errors import CommandError
from engine.session.headless.sweep.cell_runs import EVENTS, VERDICTS
from engine.session.headless.sweep.cells import CellOutcome
from engine.trace.formats.columns import ParquetFormat, read_table, write_table

RESULTS: Final = "results"
_TABLES: Final = (EVENTS, VERDICTS)
_WORK: Final = ".work"
_LOCK: Final = ".lock"
_PARTITION: Final = "cell="
_FILE: Final = f"cell{ParquetFormat.suffix}"
_OUTCOME: Final = {
    "status": "string",
    "exit_code": "int32",
    "reason": "string",
    "message": "string",
    "clock": "uint64",
    "events": "uint64",
    "lost": "uint64",
    "places": "uint64",
    "refused": "uint64",
    "runs": "uint32",
    "seconds": "double",
    "work_seconds": "double",
    "peak_memory": "uint64",
    "stdout": "string",
    "stdout_bytes": "uint64",
    "stdout_sha256": "string",
    "stderr": "string",
    "stderr_bytes": "uint64",
}
"""Columns of what came out, with their types."""
OUTCOME_COLUMNS: Final = frozenset(_OUTCOME)


class ResultSet:
    """The data set of a sweep, which this process alone writes.

    Attributes:
        path: of its directory.
        finished: ids of the cells that are in it.
    """

    def __init__(self, path: str) -> None:
        """Open it, or make an empty one; what a killed sweep was at is removed.

        Raises:
            CommandError: it cannot be written, is no data set, or another sweep writes it.
        """
        self.path = path
        try:
            os.makedirs(path, exist_ok=True)
            known = {RESULTS, *_TABLES, _WORK, _LOCK}
            strangers = sorted(set(os.listdir(path)) - known)
            if strangers:
                raise CommandError(
                    f"{path}: the directory has other files: {strangers[0]}; -o DIR names another"
                )
            self._lock = os.open(
                os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._lock)
                raise CommandError(
                    f"{path}: another sweep writes it; let it end, or give -o another directory"
                ) from error
            shutil.rmtree(self._at(_WORK), ignore_errors=True)
            for name in (RESULTS, _WORK):
                os.makedirs(self._at(name), exist_ok=True)
        except OSError as error:
            raise _unwritten(path, error) from error
        self.finished: set[str] = set()
        self._statuses: dict[str, str] = {}
        self.look()

    def look(self) -> None:
        """See which cells are finished, whatever was interrupted.

        Raises:
            CommandError: the directory cannot be read.
        """
        try:
            names = os.listdir(self._at(RESULTS))
        except OSError as error:
            raise _unwritten(self.path, error) from error
        self.finished = {
            name.removeprefix(_PARTITION) for name in names if name.startswith(_PARTITION)
        }

    def folder(self, cell: str) -> str:
        """An empty directory for the tables of a cell; an absolute path.

        Raises:
            CommandError: it cannot be made.
        """
        folder = os.path.abspath(self._at(_WORK, cell))
        try:
            try:
                os.mkdir(folder)
            except FileExistsError:
                shutil.rmtree(folder)
                os.mkdir(folder)
        except OSError as error:
            raise _unwritten(self.path, error) from error
        return folder

    def publish(
        self,
        outcome: CellOutcome,
        kinds: Mapping[str, str],
        values: Mapping[str, object],
    ) -> bool:
        """Make a cell finished.

        Args:
            outcome: what came out; its tables are in its folder.
            kinds: columns that say what the cell is, with their types.
            values: of these columns.

        Returns:
            False if it was finished before: nothing changes then.

        Raises:
            CommandError: it cannot be written.
        """
        if outcome.cell in self.finished:
            return False
        folder, name = self._at(_WORK, outcome.cell), f"{_PARTITION}{outcome.cell}"
        try:
            came = _came_out(outcome)
            columns = {**kinds, **_OUTCOME}
            full = {**{name: _plain(value) for name, value in values.items()}, **came}
            rows = [[full.get(column) for column in columns]]
            write_table(os.path.join(folder, _FILE), columns, rows)
            for table in _TABLES:
                if os.path.isdir(os.path.join(folder, table)):
                    os.makedirs(self._at(table), exist_ok=True)
                    target = self._at(table, name)
                    if os.path.isdir(target):  # of a kill between two renames
                        shutil.rmtree(target)
                    os.rename(os.path.join(folder, table), target)
            for left in os.scandir(folder):  # what is not kept
                if left.is_dir(follow_symlinks=False):
                    shutil.rmtree(left.path)
                elif left.name != _FILE:
                    os.unlink(left.path)
            os.rename(folder, self._at(RESULTS, name))
        except OSError as error:
            raise _unwritten(self.path, error) from error
        self.finished.add(outcome.cell)
        self._statuses[outcome.cell] = outcome.status.value
        return True

    def statuses(self, cells: Iterable[str]) -> list[str]:
        """The statuses of finished cells, in their order.

        Raises:
            CommandError: a file is damaged.
        """
        asked, known = list(cells), self._statuses
        unknown = [cell for cell in asked if cell not in known]
        for cell, row in zip(unknown, self.rows(unknown, ["status"]), strict=True):
            known[cell] = str(row["status"])
        return [known[cell] for cell in asked]

    def rows(self, cells: Iterable[str], columns: Iterable[str]) -> list[dict[str, object]]:
        """Some columns of the rows of finished cells, in their order.

        Raises:
            CommandError: a file is damaged.
        """
        paths = [self._at(RESULTS, f"{_PARTITION}{cell}", _FILE) for cell in cells]
        return read_table(paths, list(columns))

    def forget(self, cell: str) -> None:
        """Have a cell be unfinished.

        Raises:
            CommandError: it cannot be removed.
        """
        try:
            for name in (RESULTS, *_TABLES):
                path = self._at(name, f"{_PARTITION}{cell}")
                if os.path.isdir(path):
                    shutil.rmtree(path)
        except OSError as error:
            raise _unwritten(self.path, error) from error
        self.finished.discard(cell)
        self._statuses.pop(cell, None)

    def close(self) -> None:
        """Let others write it."""
        shutil.rmtree(self._at(_WORK), ignore_errors=True)
        os.close(self._lock)

    def _at(self, *names: str) -> str:
        return os.path.join(self.path, *names)


def _came_out(outcome: CellOutcome) -> dict[str, object]:
    facts = outcome.facts
    stdout, stderr = outcome.stdout, outcome.stderr
    return {
        "status": outcome.status.value,
        "exit_code": facts.exit_code,
        "reason": _text(facts.reason),
        "message": _text("\n".join(facts.message)),
        "clock": facts.clock,
        "events": facts.events,
        "lost": facts.lost,
        "places": facts.places,
        "refused": facts.refused,
        "runs": facts.runs,
        "seconds": outcome.seconds,
        "work_seconds": facts.seconds,
        "peak_memory": outcome.peak,
        "stdout": stdout.head.decode(errors="backslashreplace"),
        "stdout_bytes": stdout.size,
        "stdout_sha256": stdout.sha256,
        "stderr": stderr.head.decode(errors="backslashreplace"),
        "stderr_bytes": stderr.size,
    }


def _plain(value: object) -> object:
    """A value that Parquet can hold."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """Text without what UTF-8 does not have: names of files may be any bytes."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _unwritten(path: str, error: OSError) -> CommandError:
    why = error.strerror or os.strerror(error.errno or errno.EIO)
    return CommandError(f"{path}: the data set cannot be written: {why}")
