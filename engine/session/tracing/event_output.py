"""Events that a front end has kept, as a file of an output format: the same as a trace writes."""

import os
import shutil
from pathlib import Path
from typing import Final

from engine.errors import CommandError
from engine.session.guest.outputs import OutputFile, OutputTree
from engine.session.tracing.output import TraceOutput
from engine.trace.formats import FORMAT_NAMES, format_named
from engine.trace.formats.base import Names, PlacedFormat
from engine.trace.function import is_function
from engine.trace.graph import is_entry
from engine.trace.rows import EventSource, EventTable

_SUFFIXES: Final = {
    ".jsonl": "jsonl",
    ".perfetto": "perfetto",
    ".perfetto-trace": "perfetto",
    ".pftrace": "perfetto",
    ".folded": "folded",
    ".dat": "trace.dat",
    ".data": "perf.data",
    ".ctf": "ctf",
    ".pprof": "pprof",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
}


def format_of(path: str) -> str:
    """The name of the format that a file's name asks for: "ftrace" where it asks for no other."""
    return _SUFFIXES.get(Path(path.rstrip("/")).suffix.lower(), FORMAT_NAMES[0])


class EventOutput:
    """A file, or a directory, that events are written to.

    Attributes:
        path: of it.
        format: name of its format.
    """

    def __init__(self, path: str, form: str, events: EventTable, names: Names) -> None:
        """Look at it; nothing is created or changed.

        Args:
            path: of it, the host's.
            form: one of the output formats.
            events: the event table.
            names: turns addresses and threads into names.

        Raises:
            CommandError: there is no such format, it cannot have these events, or the file cannot
                be written.
        """
        if form not in FORMAT_NAMES:
            known = ", ".join(FORMAT_NAMES)
            raise CommandError(f"there is no format {form!r}; there are {known}")
        make = format_named(form)
        stacks = any(
            info.source is EventSource.STACK or is_entry(info) or is_function(info)
            for info in events.values()
        )
        if make.wants_stacks and not stacks:
            raise CommandError(
                f"{form} is made of call stacks, and none were recorded: "
                f":trigger EVENT stacktrace records them"
            )
        self.path, self.format = path, form
        self._form = made = make(events, names)
        self._was = os.path.lexists(path)
        target: OutputFile | OutputTree
        if isinstance(made, PlacedFormat):
            target = OutputTree("export", path, lambda: made.is_directory, made.owns)
        else:
            target = OutputFile("export", path)
        self._output = TraceOutput(made, target, None)
        self._program = 0

    def begin(self, kept: int, missing: int) -> None:
        """Make it empty, and write what stands in front of the events.

        Args:
            kept: events that will be written.
            missing: events before the first one that are not kept any more.

        Raises:
            CommandError: it cannot be created.
        """
        self._output.begin()
        self._output.text(self._form.header(kept, kept + missing))
        self.missing(missing)

    def missing(self, events: int) -> None:
        """So many events are missing at this place."""
        if events:
            self._output.text(self._form.lost(events))

    def rows(self, program: int, data: bytes) -> None:
        """Write whole rows of one program.

        Raises:
            CommandError: there is no room.
        """
        if program != self._program:
            self._program = program
            self._form.program(program)
        self._output.rows(data)
        self._check()

    def finish(self) -> None:
        """Write what stands behind the events.

        Raises:
            CommandError: there is no room.
        """
        self._output.text(self._form.end())
        self._check()
        self._output.close()

    def abandon(self) -> None:
        """Write no more; a file that was not there before is gone."""
        self._output.close()
        if self._was:
            return
        if os.path.isdir(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            Path(self.path).unlink(missing_ok=True)

    def _check(self) -> None:
        failure = self._output.failure
        if failure is not None:
            raise CommandError(f"{self.path}: {failure.strerror}")
