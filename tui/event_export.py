"""The events of the log as a file: written in slices, so that keys are heard meanwhile."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import CommandError
from tui.desk import Desk
from tui.event_selection import EventSelection
from tui.panes.registry import Panes
from tui.quitting import Quitting
from tui.render import grouped
from tui.widgets.slices import Slices

if TYPE_CHECKING:
    from engine.session.tracing.event_output import EventOutput

_LOOK = 0.004
"""Seconds of filtering at once."""
_STOPS = "Ctrl-C stops that"


class EventExport:
    """Writes the events to one file at a time."""

    def __init__(self, desk: Desk, panes: Panes, quitting: Quitting) -> None:
        """Nothing is written yet."""
        self._desk, self._panes, self._quitting = desk, panes, quitting
        self._slices = Slices(panes.events, self._over, self._tell)
        self._file: EventOutput | None = None
        self._selection: EventSelection | None = None
        self._done, self._seen = 0, (0, 0)

    @property
    def idle(self) -> bool:
        """True if nothing is being written."""
        return self._file is None

    def run(self, words: str) -> None:
        """Carry `export` out.

        Args:
            words: behind it: `--all`, `--format NAME` and a path.

        Raises:
            CommandError: they are others, or the file cannot be written.
        """
        from engine.session.tracing.event_output import EventOutput, format_of  # few ask for it

        path, form, everything = _read(words)
        if self._file is not None:
            raise CommandError(f"{self._file.path} is being written; {_STOPS}")
        store = self._panes.events.store
        file = EventOutput(path, form or format_of(path), store.events, store.names)
        self._file, self._done = file, 0
        self._selection = EventSelection(store, everything=everything)
        self._seen = store.version, store.end
        self._slices.start(self._write(file, self._selection))

    def cancel(self) -> bool:
        """Write no more; False if nothing is being written."""
        file, self._file = self._file, None
        if file is None:
            return False
        self._slices.stop()
        file.abandon()
        self._desk.say(f"{file.path} is given up: {grouped(self._done)} events were written")
        return True

    def _write(self, file: "EventOutput", selection: EventSelection) -> Iterator[int | None]:
        """Write a file; the number of its events at the end."""
        programs = self._panes.events.store.programs
        try:
            while selection.look(_LOOK):
                yield None
            file.begin(selection.count, selection.missing)
            while (piece := selection.take()) is not None:
                file.missing(piece.missing)
                for program, rows in programs.runs(piece.rows):
                    file.rows(program, rows)
                self._done += piece.count
                yield None
            file.finish()
        except CommandError as error:
            file.abandon()
            self._file = None
            self._desk.say(str(error), "error")
            return
        yield self._done

    def _tell(self) -> None:
        """A slice is over, and something is left."""
        if self._file is not None and self._selection is not None:
            share = self._done * 100 // max(self._selection.count, 1)
            self._desk.say(f"writing {self._file.path}: {min(share, 99)}%; {_STOPS}")

    def _over(self, count: int | None) -> None:
        file, self._file = self._file, None
        if count is None or file is None or self._selection is None:
            return
        noun = "event" if count == 1 else "events"
        self._desk.say(f"{grouped(count)} {noun} written to {file.path} ({file.format})")
        if self._selection.is_all:
            self._quitting.exported(*self._seen)


def _read(words: str) -> tuple[str, str, bool]:
    """Path, format ("" for none) and whether all events are wanted."""
    try:
        given = shlex.split(words)
    except ValueError as error:
        raise CommandError(f"export: {error}") from error
    form, everything, paths = "", False, list[str]()
    while given:
        word = given.pop(0)
        if word == "--all":
            everything = True
        elif word == "--format" and given:
            form = given.pop(0)
        elif word.startswith("--format="):
            form = word.removeprefix("--format=")
        elif word.startswith("--"):
            raise CommandError(f"export: {word}: it takes --all, --format NAME and a FILE")
        else:
            paths.append(word)
    if len(paths) != 1:
        raise CommandError("export needs a FILE: [--all] [--format NAME] FILE")
    return paths[0], form, everything
