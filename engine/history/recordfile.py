"""Recordings as files.

They are made of `pieces`, whose moments are ticks of the guest's clock. The first pieces say what
guest it is (START) and hold the ELF files that are needed to look at it (FILE); then comes the
journal (ENTRIES), and what a live guest needs to come to the same moments: answers about the
host's files (HOST), whose bytes are contents of the journal, and all else that came from the host
(INPUTS).
"""

import time
from collections.abc import Iterable, Sequence
from io import FileIO
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from engine.cpu.ram import PAGE
from engine.history.entryshapes import check_entry
from engine.history.hostfiles import HostFact, HostWitness
from engine.history.inputs import HostInputs, InputPiece
from engine.history.journal import InstructionInput, Journal, digest_of
from engine.history.pieces import (
    LONGEST,
    PieceReader,
    PieceWriter,
    begins_with,
    check_front,
    contents_of,
)
from engine.history.recordbounds import RecordingBounds, RecordingError
from engine.history.recordedstreams import StreamShape

MAGIC: Final = b"KPTRECORD\0"
VERSION: Final = 5
_START, _FILE, _ENTRIES, _REACHED = b"STRT", b"FILE", b"ENTR", b"TICK"
_HOST, _INPUTS = b"HOST", b"INPT"
_MANY: Final = 4096
"""Entries that are written at once at the latest."""
_MUCH: Final = 1 << 20
_OFTEN: Final = 0.25
"""Seconds between two pieces of a guest that does something."""
_ARENA_MOST: Final = 1 << 40
"""Bytes of memory that a guest can have had."""
_Tick: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Seed: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_CPUS_MOST: Final = 256
"""Processors that a guest can be told of; see `--cpus`."""


class RecordedView(Struct, frozen=True):
    """The part of its host that a recorded guest saw: see `engine.linux.fs.view.View`."""

    guest: bytes | None = None
    cwd: bytes | None = None
    root: bytes | None = None
    shares: tuple[tuple[bytes, bool], ...] = ()
    files: tuple[bytes, ...] = ()
    programs: bool = False


class RecordedOptions(Struct, frozen=True):
    """Options of a recorded guest, as far as a live one has to be started alike.

    Attributes:
        argv0: its argv[0] if that is not the path.
        cwd: its working directory was asked for.
        random_seed: of its secrets if that is not the seed.
        turns: the kind of turns that its threads took; "" for those of `schedule`.
        schedule: tick, thread, and why.
        schedule_name: of that schedule's file, for messages.
        max_blocks: ticks after which it was to stop.
        memory: bytes that it could touch.
        view: what it saw of its host.
    """

    argv0: str | None = None
    cwd: bool = False
    random_seed: _Seed | None = None
    turns: str = ""
    schedule: tuple[tuple[int, int, str], ...] = ()
    schedule_name: str = ""
    max_blocks: int | None = None
    memory: Annotated[int, msgspec.Meta(ge=0)] = 0
    view: RecordedView = RecordedView()


class RecordedProgram(Struct, frozen=True):
    """The guest of a recording.

    Attributes:
        engine: version of the engine that has made it.
        arch: name of the architecture.
        guest: the program as it was typed.
        path: its guest path; `real` with symlinks resolved, `typed` as argv[0] had it.
        real: see `path`.
        typed: see `path`.
        args: its arguments.
        env: its environment.
        cwd: its working directory, a guest path.
        seed: of its secrets.
        start: its clock at the start.
        clock: whose time it saw.
        cpus: processors that it was told of.
        arena: bytes of its physical memory.
        options: how else it was started.
    """

    engine: str
    arch: str
    guest: str
    path: str
    real: str
    typed: str
    args: tuple[str, ...]
    env: tuple[str, ...]
    cwd: str
    seed: _Seed
    start: int | None
    clock: str
    cpus: Annotated[int, msgspec.Meta(ge=1, le=_CPUS_MOST)]
    arena: Annotated[int, msgspec.Meta(ge=PAGE, le=_ARENA_MOST, multiple_of=PAGE)]
    options: RecordedOptions = RecordedOptions()


class StoredFile(Struct, frozen=True):
    """An ELF file of the guest's.

    Attributes:
        paths: guest paths that it is known by.
        data: its bytes.
        more: another piece of the same file follows.
        digest: of its bytes, where they are a content of the journal.
    """

    paths: tuple[str, ...]
    data: bytes
    more: bool = False
    digest: bytes = b""


class HostPiece(Struct, frozen=True):
    """Things that a guest has seen of its host: answers about files, and at first its streams."""

    facts: tuple[HostFact, ...] = ()
    streams: tuple[StreamShape | None, ...] = ()


class Written(Struct, frozen=True):
    """A piece of the journal; contents come before the entries that name them."""

    entries: tuple[msgspec.Raw, ...] = ()
    inputs: tuple[tuple[int, Any], ...] = ()
    complete: bool = False
    contents: tuple[bytes, ...] = ()


class _WrittenParts(Struct, frozen=True):
    """The same as it is read: each part is decoded once it is known to be of a usual size."""

    entries: msgspec.Raw = msgspec.Raw(b"\x90")
    inputs: msgspec.Raw = msgspec.Raw(b"\x90")
    complete: bool = False
    contents: msgspec.Raw = msgspec.Raw(b"\x90")


def is_recording(path: str) -> bool:
    """True if a file begins as a recording does.

    Raises:
        OSError: it cannot be read.
    """
    return begins_with(path, MAGIC)


def engine_version() -> str:
    """The version of this engine, "" where that is not known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kprobe-tui")
    except PackageNotFoundError:
        return ""


class RecordWriter:
    """Writes a recording while the guest runs.

    What has been told of is in the file a moment later: a kill loses what is younger. A failure to
    write ends the recording and not the run.
    """

    def __init__(
        self,
        file: FileIO,
        program: RecordedProgram,
        journal: Journal,
        inputs: HostInputs | None = None,
        witness: HostWitness | None = None,
    ) -> None:
        """Begin the file.

        Args:
            file: it, empty.
            program: the guest.
            journal: what is written of it is taken out.
            inputs: what comes from the host; likewise.
            witness: what is seen of the host's files; likewise.
        """
        self._inputs = inputs
        self._witness = witness
        self._stored: set[bytes] = set()
        self._pieces = PieceWriter(file, MAGIC, VERSION)
        self._journal = journal
        self._encoder = msgspec.msgpack.Encoder()
        self._size = 0
        self._seen = 0
        self._written = time.monotonic()
        self._clock = 0
        self._put(_START, program)

    @property
    def failure(self) -> OSError | None:
        """Why no more is written, None if all is well."""
        return self._pieces.failure

    def store(self, paths: Sequence[str], data: bytes) -> None:
        """Keep a file of the guest's."""
        digest = digest_of(data)
        if self._journal.has(digest):
            self.flush()
            self._put(_FILE, StoredFile(tuple(paths), b"", digest=digest))
            return
        self._stored.add(digest)
        for at in range(0, max(len(data), 1), LONGEST // 2):
            piece = data[at : at + LONGEST // 2]
            self._put(_FILE, StoredFile(tuple(paths), piece, at + len(piece) < len(data)))

    def keep(self, data: bytes) -> bytes:
        """Keep bytes of a file that the guest has opened; their digest."""
        digest = digest_of(data)
        if digest not in self._stored and self._journal.content(data)[1]:
            self._size += len(data)
        return digest

    def begin(self, streams: Sequence[StreamShape | None]) -> None:
        """The guest is about to begin.

        Args:
            streams: its standard streams.
        """
        self._put(_HOST, HostPiece(streams=tuple(streams)))

    def grown(self, size: int) -> None:
        """The journal has an entry more, of so many bytes."""
        self._size += size
        count = len(self._journal)
        full = count >= _MANY or self._size >= _MUCH
        if full or (not count & 15 and time.monotonic() - self._written > _OFTEN):
            self.flush()

    def flush(self, *, end: bool = False) -> None:
        """Write what there is.

        Args:
            end: nothing more comes.
        """
        journal = self._journal
        if journal.contents:  # before all that names them
            for contents in self._parts(journal.contents.values()):
                self._put(_ENTRIES, Written(contents=contents))
            journal.contents.clear()
        if self._witness is not None and self._witness.facts:
            facts = tuple(self._witness.facts)
            self._witness.facts.clear()
            self._put(_HOST, HostPiece(facts))
        piece = self._inputs.taken(end=end) if self._inputs is not None else None
        if piece is not None:
            self._put(_INPUTS, piece)
        if journal.raw or journal.inputs or journal.complete:
            self._clock = max(self._clock, journal.end)
            for part in self._parts(journal.raw):
                self._put(_ENTRIES, Written(tuple(map(msgspec.Raw, part))))
            inputs = tuple(journal.inputs)
            self._put(_ENTRIES, Written(inputs=inputs, complete=journal.complete))
            journal.clear()
        self._size = 0
        self._written = time.monotonic()

    @staticmethod
    def _parts(raw: Iterable[bytes]) -> list[tuple[bytes, ...]]:
        """Entries or contents in pieces that are not too long; a single one may be."""
        parts: list[list[bytes]] = [[]]
        size = 0
        for entry in raw:
            if size and size + len(entry) > LONGEST // 2:
                parts.append([])
                size = 0
            parts[-1].append(entry)
            size += len(entry)
        return [tuple(part) for part in parts if part]

    def reached(self, clock: int) -> None:
        """The guest has come to a tick, and goes on."""
        self.flush()
        self._clock = clock
        self._put(_REACHED, clock)

    def _put(self, kind: bytes, content: object) -> None:
        self._pieces.put(kind, self._encoder.encode(content), self._clock)


class ReadRecording(Struct):
    """A recording that was read.

    Attributes:
        program: the guest.
        files: paths and bytes of its ELF files.
        streams: its standard streams; None where that is not known.
        facts: what it saw of its host's files.
        inputs: what else came from its host.
        journal: what happened.
        reached: the last tick that is known of.
        damage: why it is not whole, "" if it is.
    """

    program: RecordedProgram
    files: list[tuple[tuple[str, ...], bytes]]
    streams: tuple[StreamShape | None, ...] | None
    facts: list[HostFact]
    inputs: HostInputs
    journal: Journal
    reached: int
    damage: str


def read_file(path: str) -> ReadRecording:
    """Read a recording as far as it goes; of a file without an end no more than its begin.

    Raises:
        CommandError: the file cannot be read.
        RecordingError: as `read`.
    """
    return read(contents_of(path, MAGIC), path)


def read(data: memoryview, name: str) -> ReadRecording:
    """Read a recording as far as it goes.

    Args:
        data: the file.
        name: of it, for messages.

    Raises:
        RecordingError: it is none, of another version, bad before the guest's first
            instruction, or unpacks to more than a file of its size may.
    """
    check_front(data, name, MAGIC, VERSION, "a recording", "kprobe-tui record -o FILE")
    reading = _RecordingReader(data, name)
    reading.run()
    if reading.program is None or not reading.journal.raw:
        why = reading.damage or "it ends before the guest's first instruction"
        raise RecordingError(f"{name}: {why}")
    return ReadRecording(
        *(reading.program, reading.files, reading.streams, reading.facts, reading.inputs),
        *(reading.journal, reading.reached, reading.damage),
    )


class _RecordingReader:
    """Goes through the pieces of a file: all that is decoded of a recording is decoded here.

    The exception are the entries of the journal, which are many: see `Journal.__getitem__`.
    """

    def __init__(self, data: memoryview, name: str) -> None:
        self.program: RecordedProgram | None = None
        self.files: list[tuple[tuple[str, ...], bytes]] = []
        self.streams: tuple[StreamShape | None, ...] | None = None
        self.facts: list[HostFact] = []
        self.inputs = HostInputs()
        self.journal = Journal(check_entry)
        self.reached = 0
        self.damage = ""
        self._file = PieceReader(data)
        self._bounds = RecordingBounds(name, len(data))
        self._more: list[bytes] = []

    def run(self) -> None:
        """Read all pieces, up to the first bad one.

        Raises:
            RecordingError: they unpack to more than a file of its size may.
        """
        pieces = list(self._file.pieces())
        self._bounds.total(sum(piece.size for piece in pieces))
        for piece in pieces:
            try:
                self._piece(piece.kind, self._file.unpacked(piece))
            except RecordingError:
                raise
            except Exception as error:  # whatever decoders raise when bytes make no sense
                self._damaged(piece.at, error)
                return
            self.reached = max(self.reached, piece.moment)
        if self._file.bad is not None:
            self._damaged(*self._file.bad)
        elif self._file.is_cut or not self.journal.complete:
            self.damage = f"cut off at byte {self._file.end}, tick {self.reached}"

    def _damaged(self, at: int, error: Exception) -> None:
        why = str(error) or type(error).__name__
        self.damage = (
            f"damaged at byte {at} ({why}); what is before it goes up to tick {self.reached}"
        )

    def _piece(self, kind: bytes, raw: bytes) -> None:
        decode = msgspec.msgpack.decode
        if kind == _ENTRIES:
            self._written(raw)
            return
        self._bounds.values(raw)
        if kind == _START:
            self.program = decode(raw, type=RecordedProgram)
        elif kind == _FILE:
            file = decode(raw, type=StoredFile)
            if file.digest:
                self.files.append((file.paths, self.journal.contents[file.digest]))
                return
            self._more.append(file.data)
            if not file.more:
                self.files.append((file.paths, b"".join(self._more)))
                self._more.clear()
        elif kind == _HOST:
            host = decode(raw, type=HostPiece)
            self.facts += host.facts
            if host.streams:
                self.streams = host.streams
        elif kind == _INPUTS:
            self.inputs.put(decode(raw, type=InputPiece))
        elif kind == _REACHED:
            self.reached = decode(raw, type=_Tick)
        else:
            raise ValueError(f"a piece of kind {kind!r}")

    def _written(self, raw: bytes) -> None:
        """A piece of the journal."""
        decode, bounds, journal = msgspec.msgpack.decode, self._bounds, self.journal
        piece = decode(raw, type=_WrittenParts)
        contents, inputs, entries = (
            memoryview(each) for each in (piece.contents, piece.inputs, piece.entries)
        )
        bounds.values(contents)
        for content in decode(contents, type=tuple[bytes, ...]):
            journal.content(content)
        bounds.entries(entries)
        for entry in decode(entries, type=tuple[msgspec.Raw, ...]):
            data = bytes(entry)
            bounds.entry(data)
            journal.extend((data,))
        bounds.values(inputs)
        read = decode(inputs, type=tuple[tuple[_Tick, Any], ...])
        journal.inputs += [InstructionInput(*each) for each in read]
        journal.complete = piece.complete
