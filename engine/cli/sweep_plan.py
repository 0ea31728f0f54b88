"""The plan of a sweep: all cells that a file stands for, and what they may take."""

import hashlib
import itertools
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final

import click
from msgspec import Struct

from engine.cli.options import size
from engine.cli.sweep_cells import KINDS, MODES, CellRequests, Label, SweepCell
from engine.cli.sweep_dimensions import MOST, SweepDimensions, SweepGuest, column
from engine.cli.sweep_file import SweepFile
from engine.cli.sweep_options import ModeOption, SweepOptions
from engine.errors import CommandError
from engine.session.headless.sweep.results import OUTCOME_COLUMNS

_TOP: Final = ("mode", "output", "tables", "files", "limits", "matrix", "options", "exclude")
_LIMITS: Final = ("seconds", "memory")
_LEAST_MEMORY: Final = 256 << 20
_INPUT: Final = "{input}"
_PLAIN: Final = bytes(each for each in range(0x20, 0x7F) if chr(each) not in "'\\")
"""Characters that stand for themselves in a shell's $'...'."""


class SweepPlan(Struct, frozen=True):
    """The cells of a file, and what they may take.

    Attributes:
        cells: in the order of the file.
        kinds: columns that say what a cell is, with their types.
        output: directory of the data set.
        seconds: that a cell may take, None for any time.
        memory: bytes that the process of a cell may take, None for any number.
        tables: events and verdicts are kept.
        remarks: files that were left out.
    """

    cells: tuple[SweepCell, ...]
    kinds: dict[str, str]
    output: str
    seconds: float | None
    memory: int | None
    tables: bool
    remarks: tuple[str, ...]


def sweep_plan(path: str) -> SweepPlan:
    """Read a file.

    Raises:
        SweepFileError: it means nothing.
        CommandError: it, or a file that it names, cannot be read.
    """
    return _PlanMaker(SweepFile(path)).plan()


class _MatrixPoint(Struct, frozen=True):
    """A point of the matrix; see `SweepDimensions` for its parts."""

    mode: str
    guest: SweepGuest
    args: tuple[str, ...]
    input: str | None
    name: str | None
    definitions: tuple[str, ...]
    options: tuple[ModeOption, ...]
    seed: int | None

    def chosen(self) -> list[str]:
        """The options of the combination as words of a command line."""
        return [word for option in self.options for word in option.words.get(self.mode, ())]

    def seeded(self) -> list[str]:
        """The option of its seed; nothing where it has none."""
        return [] if self.seed is None else ["--seed", str(self.seed)]

    def defined(self) -> list[str]:
        """The options of its definitions."""
        return [word for line in self.definitions for word in ("-e", line)]


class _PlanMaker:
    """Makes a plan of a file's data."""

    def __init__(self, file: SweepFile) -> None:
        self._file = file
        self._options = SweepOptions(file)
        self._dimensions = SweepDimensions(file)
        self._requests = CellRequests()

    def plan(self) -> SweepPlan:
        data = self._file.data
        self._file.known("", data, _TOP)
        modes = self._file.names("mode", data.get("mode", "trace"), tuple(MODES))
        limits = self._file.table("limits")
        self._file.known("limits", limits, _LIMITS)
        output = data.get("output")
        if output is not None and (not isinstance(output, str) or not output):
            raise self._file.error("output", "the path of a directory is wanted")
        tables = data.get("tables", True)
        if not isinstance(tables, bool):
            raise self._file.error("tables", "true or false is wanted")
        seconds, memory = self._seconds(limits), self._memory(limits)
        remarks = []
        stem = self._file.path.removesuffix(".toml")
        cells = tuple(self._cells(modes))
        dimensions = self._dimensions
        others = [column(name) for name in dimensions.others]
        if dimensions.skipped:
            first, *more = sorted(dimensions.skipped)
            rest = f" and {len(more)} more" if more else ""
            remarks.append(f"left out, as they are no programs: {first}{rest}")
        return SweepPlan(
            cells,
            {**KINDS, **dict.fromkeys(others, "string")},
            dimensions.beside(output) if output else f"{stem}.sweep",
            seconds,
            memory,
            tables,
            tuple(remarks),
        )

    # -- limits ------------------------------------------------------------------------

    def _seconds(self, limits: dict[str, Any]) -> float | None:
        value = limits.get("seconds")
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
            raise self._file.error(
                "limits.seconds", f"{value!r} is not a positive number of seconds"
            )
        return float(value)

    def _memory(self, limits: dict[str, Any]) -> int | None:
        value = limits.get("memory")
        if value is None:
            return None
        try:
            found = size(str(value))
        except click.BadParameter as error:
            raise self._file.error("limits.memory", error.message) from error
        if found < _LEAST_MEMORY:
            raise self._file.error(
                "limits.memory",
                f"{value} is less than the engine takes itself; from 256M on"
                " (memory of the guest's is the option memory)",
            )
        return found

    # -- cells -------------------------------------------------------------------------

    def _cells(self, modes: list[str]) -> Iterator[SweepCell]:
        file, dimensions = self._file, self._dimensions
        common = self._options.common(modes)
        shared: list[tuple[str, str]] = []
        if "files" in file.data:
            paths = dimensions.paths("files", file.strings("files", file.data["files"]))
            shared += [(path, dimensions.digest("files", path)) for path in paths]
        excluded = dimensions.exclusions()
        used: set[int] = set()
        seen: set[str] = set()
        usable: set[tuple[object, ...]] = set()
        for point in self._points(modes):
            cell = self._cell(point, common[point.mode], shared)
            matching = {n for n, each in enumerate(excluded) if _matches(each, cell)}
            used |= matching
            if cell.id in seen or matching:
                continue
            seen.add(cell.id)
            kind = (point.mode, point.name, *(option.label for option in point.options))
            if kind not in usable:
                usable.add(kind)
                self._try(cell)
            yield cell
        if not seen:
            raise file.error("exclude", "no cell is left")
        for number in range(len(excluded)):
            if number not in used:
                raise file.error("exclude", "it leaves out no cell: none has its values", number)

    def _points(self, modes: list[str]) -> Iterator[_MatrixPoint]:
        """The points of the matrix; several may be one cell."""
        file, dimensions = self._file, self._dimensions
        matrix = file.table("matrix")
        for name in dimensions.others:
            if column(name) in {*OUTCOME_COLUMNS, *KINDS}:
                raise file.error(f"matrix.{name}", "a column of the results has this name")
        options = [
            [
                self._options.choice(f"matrix.{name}", name, value, modes)
                for value in file.values(f"matrix.{name}", matrix[name])
            ]
            for name in dimensions.others
        ]
        axes: tuple[Sequence[Any], ...] = (
            modes,
            dimensions.guests(matrix),
            dimensions.arguments(matrix),
            dimensions.inputs(matrix),
            dimensions.definitions(matrix),
            list(itertools.product(*options)),
            dimensions.seeds(matrix),
        )
        count = prod(map(len, axes))
        if count > MOST:
            raise file.error("matrix", f"{count} cells, which are more than {MOST}")
        for mode, guest, args, given, (named, lines), chosen, seed in itertools.product(*axes):
            if mode == "check":  # nothing runs
                yield _MatrixPoint(mode, guest, (), None, named, lines, chosen, None)
            elif mode == "explore":  # without probes
                yield _MatrixPoint(mode, guest, args, given, None, (), chosen, seed)
            else:
                yield _MatrixPoint(mode, guest, args, given, named, lines, chosen, seed)

    def _try(self, cell: SweepCell) -> None:
        """Have a subcommand look at all words of a cell."""
        try:
            self._requests.of(cell)
        except click.ClickException as error:
            raise self._file.error("", f"{cell.repeat}: {error.format_message()}") from error
        except CommandError as error:
            raise self._file.error("", f"{cell.repeat}: {error}") from error

    def _cell(
        self, point: _MatrixPoint, common: list[str], shared: list[tuple[str, str]]
    ) -> SweepCell:
        mode, guest = point.mode, point.guest.path
        words = [*common, *point.chosen(), *point.seeded()]
        seed_at = None if point.seed is None else len(words) - 1
        words += point.defined()
        args, stdin = point.args, point.input
        if stdin is not None and any(_INPUT in word for word in args):
            args = tuple(word.replace(_INPUT, stdin) for word in args)
            if os.path.relpath(stdin).split(os.sep)[0] == os.pardir:
                words += ["--share", stdin]  # else the guest sees it as it is
            stdin = None
        read = dict.fromkeys([guest, *([point.input] if point.input is not None else [])])
        read.update(dict.fromkeys(_files_in(words, args)))
        program = len(words)
        words += [guest, *args]
        files = {path: self._dimensions.digest("matrix", path) for path in read}
        files.update(shared)
        identity = json.dumps([mode, words, stdin, sorted(files.items())])
        labels: dict[str, Label] = {
            "mode": mode,
            "guest": guest,
            "guest_sha256": files[guest],
            "arch": point.guest.arch,
            "args": args,
            "input": point.input,
            "seed": point.seed,
            "definitions": point.name,
        }
        for name, option in zip(self._dimensions.others, point.options, strict=True):
            labels[column(name)] = option.label if mode in option.words else None
        runs, limits = mode != "check", self._file.table("limits")
        timed = ["--timeout", str(limits["seconds"])] if runs and "seconds" in limits else []
        line = " ".join(map(_quoted, ("kprobe-tui", mode, *timed, *words)))
        return SweepCell(
            hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16],
            mode,
            tuple(words),
            program,
            seed_at,
            stdin,
            labels,
            tuple(files.items()),
            f"{line} < {_quoted(stdin or os.devnull)}" if runs else line,
        )


def _files_in(options: Sequence[str], args: Sequence[str]) -> Iterator[str]:
    """Files that options name, and those arguments of the guest that are files which it sees."""
    yield from filter(_is_read, map(_path_in, options))
    for word in args:
        if word and os.path.relpath(word).split(os.sep)[0] != os.pardir and _is_read(word):
            yield word


def _is_read(path: str) -> bool:
    """True for a file with contents of its own; one that the kernel makes up has no size."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return os.fstat(file.fileno()).st_size > 0 or not file.read(1)
    except OSError:
        return False


def _path_in(word: str) -> str:
    """The path in a word of a command line, if it has one: of an option, or of @FILE."""
    value = word.partition("=")[2] if word.startswith("--") else word
    return value.removeprefix("@")


def _quoted(word: str) -> str:
    """A word for a shell; bytes that are no UTF-8 as $'...' has them (POSIX 2024, 2.2.4)."""
    raw = os.fsencode(word)
    try:
        raw.decode()
    except UnicodeDecodeError:
        plain = "".join(chr(each) if each in _PLAIN else f"\\{each:03o}" for each in raw)
        return f"$'{plain}'"
    return shlex.quote(word)


def _matches(excluded: dict[str, set[Label]], cell: SweepCell) -> bool:
    """True if a cell has one of the values of each key."""
    return all(cell.labels[name] in values for name, values in excluded.items())
