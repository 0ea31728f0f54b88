"""The output of a trace: rows in, an output format's bytes out, and remarks at the end.

Rows are written in pieces. A piece that does not fit, as on a full disk, is taken back from a file
as a whole and counted as lost; later pieces are tried again, behind a note.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from engine.arch.plan import Rules
from engine.errors import CommandError
from engine.escaping import escaped
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe, Uretprobe
from engine.session.guest.outputs import OutputFile, OutputTree
from engine.session.guest.probing import Probing
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.report import Report
from engine.session.tracing.event_set import TraceEvent
from engine.session.tracing.placed_files import PlacedFiles
from engine.trace.formats.base import Format, PlacedFormat
from engine.trace.graph import GraphProbe
from engine.trace.ring import Ring
from engine.trace.ring_file import Progress, RingFile
from engine.trace.rows import HEAD, count_rows, uniform
from engine.trace.staging import CAPACITY, capacity_of

_SHOWN: Final = 10
PIECE: Final = 1 << 15
"""About how many bytes of rows are written at once."""
_JOINED: Final = 1 << 12
"""Lines behind a trace that are written at once."""


TextOf = Callable[[Format, bytes], bytes]
"""Has a format turn rows into text."""


def plainly(form: Format, rows: bytes) -> bytes:
    """The text of rows of a single program; a `TextOf`."""
    return form.rows(rows)


class TraceOutput:
    """The output of one trace; a file of the user's is as it was until `begin`.

    Attributes:
        format: turns rows into bytes.
        discard: whether everything goes to /dev/null: nothing is formatted then.
        lost: rows that could not be written.
        failure: the first error, None if there was none.
        ring_file: is told how far the file has got, None without one.
        room: bytes of rows that are best held before they are written.
        is_stream: it goes where it cannot be taken back: a pipe, a device, a descriptor that
            others have, too.
    """

    def __init__(
        self,
        form: Format,
        target: OutputFile | OutputTree | None,
        stream: BinaryIO | None,
        *,
        discard: bool = False,
        backed: bool = False,
        streams: bool = False,
        state: Callable[[], dict[str, Any]] = dict,
        written: Callable[..., object] = lambda *, file: None,
        text_of: TextOf = plainly,
    ) -> None:
        """Set it up.

        Args:
            form: the output format.
            target: file to write to, None for the stream.
            stream: None for nowhere.
            discard: format and write nothing.
            backed: keep rows that are not written yet in a file beside it.
            streams: rows are written as they are recorded, in batches of the format's own.
            state: what is stored there beside the format's own state.
            written: told of each piece that was written, and whether it went to a file.
            text_of: has the format turn rows into text.

        Raises:
            CommandError: there cannot be a file beside it, or the format needs a file.
        """
        self.format = form
        placed = form if isinstance(form, PlacedFormat) else None
        if placed is not None and target is None and stream is not None and not discard:
            raise CommandError(f"--format {form.name} needs -o: what it writes is no stream")
        self.discard = discard
        self.lost = 0
        self.failure: OSError | None = None
        self.ring_file: RingFile | None = None
        self._state = state
        self._tell = written
        self._text_of = text_of
        self._given_up = False
        self._written = self._unsaid = self._stage = 0
        self._target = None if discard else target
        self._file: BinaryIO | FileIO | None = None if discard or target is not None else stream
        self._placed = PlacedFiles(placed, target) if isinstance(target, OutputTree) else None
        self._escapes = is_terminal(None if target is None else target.path, stream)
        self._own = self._target is not None and self._target.is_own
        batched = placed is not None and self._own and (streams or backed)
        self.room = max(placed.batch, CAPACITY) if placed is not None and batched else CAPACITY
        if self._target is not None and self._own and backed:
            self.ring_file = RingFile(Path(f"{self._target.path}.ring"), capacity_of(self.room))
        self.is_stream = not self._own and not self.discard

    def begin(self) -> None:
        """The run begins: the file is empty, but not before its last trace's ring file is gone.

        Raises:
            CommandError: the file, or the one beside it, cannot be written.
        """
        if self._target is not None:
            self._target.create()
            if self.ring_file is not None:
                self.ring_file.install()
            if isinstance(self._target, OutputFile):
                self._file = self._target.begin()
            else:
                self._target.begin()

    def rows(self, data: bytes) -> None:
        """Write rows; what does not go counts as lost."""
        if self._file is None and self._placed is None:
            return
        consumed = 0
        for piece in _pieces(data, PIECE if self._placed is None else self._placed.batch):
            before = note = None
            if self._placed is not None:
                before = self.format.state()
                note = self.format.lost(self._unsaid) if self._unsaid else b""
            text = self._text_of(self.format, piece)
            if note is not None:
                text = note + text
            elif self._unsaid and text:
                text = self.format.lost(self._unsaid) + text
            if not self.text(text):
                if self._placed is not None:
                    self.format.restore(before)
                    self._placed.resume()
                count = count_rows(piece)
                self.lost += count
                self._unsaid += count
            elif text or self._placed is not None:
                self._unsaid = 0
            consumed += len(piece)
            self.commit(consumed)
            self._tell(file=self._own)

    def header(self) -> None:
        """Write the format's header."""
        self.text(self.format.header())
        self._stage = 1
        self.commit(0)

    def end(self) -> None:
        """Write what the format ends with."""
        self.text(self.format.end())
        self._stage = 2
        self.commit(0)

    def commit(self, consumed: int | None = None) -> None:
        """Store how far the file has got, so that a kill from here on repeats nothing.

        Args:
            consumed: bytes of rows in the ring file that it has; as before if None.
        """
        ring_file = self.ring_file
        if ring_file is None:
            return
        if consumed is None:
            consumed = ring_file.progress.consumed
        progress = Progress(self._written, consumed, self._unsaid, self._stage)
        state = {**self._state(), "format": self.format.state()}
        if self._placed is not None:
            state["files"] = self._placed.sizes()
        try:
            ring_file.commit(progress, state)
        except OSError as error:  # rather say a thing twice than never
            self.failure = self.failure or error

    def text(self, data: bytes) -> bool:
        """Write all of it, or nothing; False for nothing."""
        if self._placed is not None:
            return self._place(self._placed, data)
        if self._file is None or not data:
            return True
        if self._given_up:
            return False
        if self._escapes:  # whatever a format lets through
            data = escaped(data, keep="\n\t").encode()
        start = self._position()
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            self._file.flush()
        except OSError as error:
            self.failure = self.failure or error
            self._take_back(start)
            return False
        except BaseException:  # the run is cut off while this waits for a reader
            self._given_up = True
            self.failure = self.failure or OSError(errno.EINTR, "the run was ended")
            self._take_back(start)
            raise
        self._written += len(data)
        return True

    def _place(self, placed: "PlacedFiles", data: bytes) -> bool:
        """The same for a format of files of its own."""
        try:
            placed.write(data)
        except OSError as error:
            self.failure = self.failure or error
            return False
        return True

    def _take_back(self, start: int | None) -> None:
        """Undo a write that was not finished, where that can be."""
        if start is not None and self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), start)
                os.lseek(self._file.fileno(), start, os.SEEK_SET)

    def ring(self, ring: Ring) -> None:
        """Write all that a ring has, with its counts; files of a format's own have only that."""
        if self._placed is not None:
            self._placed.cut({})
        self.text(self.format.header(len(ring), ring.written))
        if ring.overwritten:
            self.text(self.format.lost(ring.overwritten))
        for stretch in ring.stretches():
            self.rows(stretch)
        if ring.lost:
            self.text(self.format.lost(ring.lost))

    def tail(self, pieces: Iterable[bytes]) -> None:
        """Write what comes behind the trace; on stderr where the output is no text.

        Args:
            pieces: it, a piece after the other: there may be a million, so some at a time are
                written together.
        """
        if self.discard or not self.format.is_text:
            with open(2, "wb", closefd=False) as stream:
                for text in _together(pieces):
                    stream.write(escaped(text, keep="\n\t").encode())
        else:
            for text in _together(pieces):
                if not self.text(text):
                    break

    def close(self) -> None:
        """Close the file, and remove the one beside it; a stream stays open."""
        if self._target is not None:
            self._target.close()
        if self.ring_file is not None:
            self.ring_file.close()

    def _position(self) -> int | None:
        """The position of the next byte of a file; None for what is not ours or no file."""
        if not self._own or self._file is None:
            return None
        try:
            return os.lseek(self._file.fileno(), 0, os.SEEK_CUR)
        except OSError:
            return None


def is_terminal(path: str | None, stream: BinaryIO | None) -> bool:
    """True if an output, a file by its path or else a stream, is a terminal."""
    if path is None:
        return stream is not None and stream.isatty()
    try:
        if not stat.S_ISCHR(os.stat(path).st_mode):
            return False
        file = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.isatty(file)
    finally:
        os.close(file)


def _pieces(data: bytes, most: int) -> Iterator[bytes]:
    """Whole rows, about `most` bytes at a time."""
    if len(data) <= most:
        yield data
        return
    size, _ = uniform(data)
    start = end = 0
    if size:
        step = max(most // size, 1) * size
        for start in range(0, len(data), step):
            yield data[start : start + step]
        return
    while end < len(data):
        end += HEAD.unpack_from(data, end)[1] * 8
        if end - start >= most:
            yield data[start:end]
            start = end
    if start < end:
        yield data[start:end]


class Tail:
    """Keeps what the snapshot trigger asks for."""

    def __init__(self, make_format: Callable[[], Format], text_of: TextOf = plainly) -> None:
        """`make_format` makes the output format afresh; see `TraceOutput` for `text_of`."""
        self._make_format = make_format
        self._text_of = text_of
        self._kept: tuple[int, int, list[bytes]] | None = None

    def keep(self, ring: Ring) -> None:
        """Remember what a ring has now; the snapshot before goes."""
        self._kept = len(ring), ring.written, list(ring.stretches())

    def snapshot(self) -> bytes:
        """The snapshot as text, nothing if none was taken."""
        if self._kept is None:
            return b""
        form, (kept, written, stretches) = self._make_format(), self._kept
        rows = b"".join(self._text_of(form, stretch) for stretch in stretches)
        return b"\n# snapshot\n" + form.header(kept, written) + rows + form.end()


def profile_lines(events: Iterable[TraceEvent], others: Iterable[Kprobe]) -> Iterator[str]:
    """Hits and misses of the probes (kprobe_profile and uprobe_profile of the kernel).

    As there, filters change nothing in the numbers, and those of a return probe are the entries.

    Args:
        events: with their probes.
        others: probes without an event, which go by their own names.
    """
    uprobes: list[tuple[str, Kprobe]] = []
    named = ((event.info.name, probe) for event in events for probe in event.probes)
    for name, probe in chain(named, ((str(probe), probe) for probe in others)):
        if probe.rules is Rules.UPROBE:
            uprobes.append((name, probe))
        else:
            hits = probe.hits - probe.nmissed
            yield f"  {name:<44} {hits:>15} {probe.nmissed:>15}"
    for name, probe in uprobes:
        yield f"  {_path(probe)} {name:<44} {probe.hits:>15}"


def _together(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of text, some thousand joined."""
    left = iter(pieces)
    while some := list(islice(left, _JOINED)):
        yield b"".join(some)


def _path(probe: Kprobe) -> str:
    return probe.path if isinstance(probe, Uprobe | Uretprobe) else str(probe)


def probing_remarks(probing: Probing) -> Iterator[Report]:
    """Remarks for the user at the end: probes that wait, and what happened to others."""
    yield from placing_remarks(probing)
    pending = probing.never_placed()
    if pending:
        yield some_lines("never placed, as their file was not mapped:", pending)
    changes = [text for text in probing.notices if text not in probing.indirect] + [
        f"{item.probe}: the guest has taken its code away from {item.fate.left:#x}"
        for item in probing.left_behind()
    ]
    if changes:
        yield some_lines("changes to probes:", changes)
    damaged = probing.damaged
    if damaged:
        yield Report(
            (
                "the program has written to the memory where code records its calls: at least "
                f"{damaged} returns are not recorded",
            )
        )


def placing_remarks(probing: Probing) -> Iterator[Report]:
    """Remarks about what places were taken to mean, whether or not the guest ran."""
    yield from assumed(probing.verdicts)
    if probing.indirect:
        yield some_lines("indirect functions:", probing.indirect)


def assumed(verdicts: Verdicts) -> Iterator[Report]:
    """The remark about libraries that no loader finds by their names, if there are any."""
    found = [f"{name}: {path}" for name, path in verdicts.assumed.items()]
    if found:
        yield some_lines("libraries that the program opens later are taken to be these:", found)


def remarks(
    output: str, failure: OSError | None, lost: int, probes: list[Kprobe]
) -> Iterator[Report]:
    """Remarks for the user at the end of a trace.

    Args:
        output: where the trace went, for messages.
        failure: the first error in writing it.
        lost: events that could not be written.
        probes: of all events, and those without one.
    """
    if failure is not None:
        missing = f"{lost} events lost" if lost else "the trace is not whole"
        yield Report((f"{output}: {failure.strerror}; {missing}",))
    missed = [f"{p}: {p.nmissed} of {p.hits} hits missed" for p in probes if p.nmissed]
    if missed:
        yield some_lines("missed hits:", missed)
    unwatched = [
        f"{probe}: {probe.unwatched} of {probe.hits} calls"
        for probe in probes
        # A graph shows by itself which calls do not end.
        if isinstance(probe, Kretprobe) and probe.unwatched and not isinstance(probe, GraphProbe)
    ]
    if unwatched:
        yield some_lines("calls that do not return, or to where no probe can stand:", unwatched)


def some_lines(head: str, lines: Iterable[str]) -> Report:
    """A remark with the first of many lines below its head."""
    found = list(lines)
    more = len(found) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    return Report((head, *found[:_SHOWN], *tail))
