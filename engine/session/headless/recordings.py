"""Runs that are written to files."""

import os
import threading
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from engine.errors import KprobeTuiError
from engine.history import recordfile
from engine.history.hostfiles import LONGEST, HostWitness
from engine.history.inputs import HostInputs
from engine.history.journal import Journal
from engine.history.recordedstreams import shape_of
from engine.history.recordfile import RecordedOptions, RecordedProgram, RecordedView, RecordWriter
from engine.hostlimits import because_of
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.host import HostAnswers
from engine.linux.fs.view import View
from engine.linux.space import AddressSpace
from engine.linux.turns import Recorded
from engine.session.guest.past import record, replayed
from engine.session.guest.session import Attach, Session
from engine.session.headless.endings import explain
from engine.session.program.libraries import CACHE, GuestTree
from engine.session.program.recorded import OpenedRecording
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports

__all__ = ["OPTION", "OpenedRecording", "RecordedRun", "described", "replayed"]

OPTION: Final = "-o"
_FILE_MAX: Final = 1 << 28
_BEAT: Final = 0.5
"""Seconds after which the tick that a guest has come to is written, whatever it does."""


class RecordedRun:
    """A guest that runs and is recorded to a file."""

    def __init__(self, config: GuestConfig, path: str) -> None:
        """Load the guest.

        Args:
            config: the guest and its options.
            path: of the file.

        Raises:
            ImageError: the guest cannot be run.
            CommandError: the file cannot be written.
        """
        self._witness = HostWitness()
        self._inputs = HostInputs()
        self.session = session = _WitnessedSession(
            replace(config, history=True, count_blocks=True), self._witness
        )
        try:
            explain(session)
            self._target = session.outputs.add(OPTION, path)
        except KprobeTuiError:
            session.close()
            raise
        self._stored: set[str] = set()
        self._waiting: dict[str, None] = {}
        self._writer: RecordWriter | None = None
        self._over = threading.Event()

    def run(self, attach: Attach) -> Reports:
        """Run it to its end.

        Raises:
            CommandError: the file cannot be created.
        """
        session = self.session
        try:
            with attach(session):
                reports = session.run(self._begin)
        finally:
            self._over.set()
            if self._writer is not None:
                self._writer.flush(end=True)
        failure = self._writer.failure if self._writer is not None else None
        if failure is None:
            return reports
        text = f"{self._target.name}: {because_of(failure)}; the recording is not whole"
        return reports.behind(Report((text,))).not_whole()

    def close(self) -> None:
        """Give back what belongs to the host.

        Raises:
            CommandError: the guest runs.
        """
        self.session.close()

    def _beat(self) -> None:
        while not self._over.wait(_BEAT):
            self.session.attend()

    def _begin(self) -> None:
        session = self.session
        session.outputs.create()
        journal = Journal()
        self._writer = writer = RecordWriter(
            self._target.begin(), described(session), journal, self._inputs, self._witness
        )
        self._store_program()
        self._witness.begin(writer.keep)
        files = session.process.files
        writer.begin([shape_of(files.peek(fd), writer.keep, LONGEST) for fd in range(3)])
        recording = record(session, None, self._inputs, journal)
        recording.mapped = self._mapped
        recording.grown = self._grown
        self._grown(0)
        session.hooks.attention = self._attended
        threading.Thread(target=self._beat, daemon=True).start()
        writer.flush()

    def _attended(self) -> None:
        if self._writer is not None and self.session.machine.exit is None:
            self._writer.reached(self.session.cpu.blocks())

    def _grown(self, size: int) -> None:
        writer = self._writer
        assert writer is not None
        while self._waiting:  # before the entries that need them
            path = next(iter(self._waiting))
            del self._waiting[path]
            self._store(path, self.session.fs)
        writer.grown(size)

    # -- files ----------------------------------------------------------------------------------

    def _store_program(self) -> None:
        session = self.session
        writer = self._writer
        assert writer is not None
        # The guest's own tree numbers files in the order in which it comes to them.
        fs, images = session.opened.bare()
        program = session.opened.program(GuestTree(fs, images))
        for file in program.files:
            paths = {file.path, *(path for path in file.paths if path.startswith("/"))}
            if file is program.main:
                paths = {session.paths.guest, session.paths.real}
            self._stored |= paths
            writer.store(sorted(paths), bytes(file.image.buffer))
        self._store(CACHE, fs)
        fs.close()

    def _mapped(self, space: AddressSpace, start: int, size: int) -> None:
        """Code of a file, or another program, has come."""
        for mapping in space.memory.overlapping(start, start + size):
            name = mapping.name
            if name.startswith("/") and name not in self._stored and mapping.perms & 4:
                self._waiting[name] = None

    def _store(self, path: str, fs: FileSystem) -> None:
        self._stored.add(path)
        assert self._writer is not None
        with suppress(LinuxError, OSError):
            file = fs.open(fs.root, path.encode(errors="surrogateescape"), 0)
            source = file.mmap_source()
            if file.is_regular and source.size <= _FILE_MAX:
                self._writer.store((path,), bytes(source.read(0, source.size)))


def described(session: Session) -> RecordedProgram:
    """The guest of a session, for its recording."""
    config, paths = session.config, session.paths
    return RecordedProgram(
        recordfile.engine_version(),
        session.arch.full_name,
        config.guest,
        paths.guest,
        paths.real,
        paths.typed,
        config.args,
        config.env,
        config.cwd or ("/" if config.isolated else os.getcwd()),
        config.randomness,
        config.start,
        config.clock,
        config.cpus,
        session.ram.size,
        _options(config, session.view),
    )


def _options(config: GuestConfig, view: View) -> RecordedOptions:
    turns, name = str(config.turns), ""
    schedule: tuple[tuple[int, int, str], ...] = ()
    if isinstance(config.turns, Recorded):
        recorded = config.turns.schedule
        turns, name = "", recorded.name
        schedule = tuple((each.tick, each.thread, each.why.value) for each in recorded.choices)
    return RecordedOptions(
        config.argv0,
        config.cwd is not None,
        config.random_seed,
        turns,
        schedule,
        name,
        config.max_blocks,
        config.memory,
        RecordedView(view.guest, view.cwd, view.root, view.shares, view.files, view.programs),
    )


class _WitnessedSession(Session):
    """A guest of which all is kept that it sees of its host's files."""

    def __init__(self, config: GuestConfig, witness: HostWitness) -> None:
        self._witness = witness
        super().__init__(config)

    def _host_answers(self) -> HostAnswers:
        return self._witness
