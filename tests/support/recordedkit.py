"""Recordings, and live guests that go on from moments of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guestrun import run

from engine.history.comparing import same_entry, what_differs
from engine.history.inputs import HostInputs
from engine.history.journal import Journal, Op
from engine.history.moment import Moment
from engine.history.recording import RunRecorder
from engine.history.timeline import Timeline
from engine.session import Session
from engine.session.guest.branch import RecordedBranchSession
from engine.session.guest.past import PastSession, record, replayed
from engine.session.guest.terminal import CapturedStreams
from engine.session.program.recorded import OpenedRecording


def recorded(folder: Path, *words: str, stdin: bytes | None = None) -> Path:
    """The recording of a run."""
    done = run("record", "-o", "run.rec", *words, cwd=folder, stdin=stdin)
    assert (folder / "run.rec").exists(), done.err
    return folder / "run.rec"


def finish(session: Session) -> None:
    """Run to the end as a front end does."""
    while session.machine.exit is None:
        session.kernel.resume()
        session.kernel.wait()


class Recording:
    """A recording that was opened, its run, and branches of it.

    Attributes:
        past: its run, lived through again.
        timeline: leads to its moments.
        journal: of the run.
        streams: the front end's.
    """

    def __init__(
        self,
        path: Path,
        *,
        stdin: bytes = b"",
        root: str | None = None,
        shares: tuple[tuple[str, bool], ...] = (),
    ) -> None:
        recording = OpenedRecording(str(path))
        config = recording.config("auto", "auto", follow=True, root=root, shares=shares)
        self.opened = recording.opened(config)
        self.past: PastSession = replayed(self.opened)
        self.timeline = Timeline(self.past.kernel, self.past.ram)
        self.journal: Journal = self.opened.journal
        self.inputs = self.opened.outside.inputs
        self.streams = CapturedStreams(stdin)

    def call(self, text: bytes) -> Moment:
        """A moment soon behind the call that wrote a text."""
        for entry in self.journal:
            if any(op[0] == Op.OUTPUT and text in op[2] for op in entry.ops):
                self.timeline.seek_clock(entry.clock + 2)
                return self.timeline.now()
        raise AssertionError(text)

    @contextmanager
    def branch(
        self, moment: Moment, parent: RecordedBranchSession | None = None
    ) -> Iterator[tuple[RecordedBranchSession, RunRecorder]]:
        """A live guest at a moment."""
        session = RecordedBranchSession(
            self.past.config, self.streams.streams(), self.opened, parent
        )
        try:
            recorder = record(session, None, HostInputs(self.inputs))
            done = session.reenact(recorder, self.journal, self.inputs, moment, lambda: True)
            assert done
            yield session, recorder
        finally:
            session.close()

    def follow(self, session: RecordedBranchSession, recorder: RunRecorder) -> None:
        """Have the run of a branch at hand in place of the recorded one."""
        recorder.sync()
        assert recorder.inputs is not None
        self.past.close()
        self.journal, self.inputs = recorder.journal, recorder.inputs
        self.past = PastSession(
            *(self.past.config, self.journal, session.ram.size, self.opened, self.opened.files)
        )
        self.timeline = Timeline(self.past.kernel, self.past.ram)

    def check_rest(self, session: Session, recorder: RunRecorder) -> None:
        """Run a branch to its end: nothing of it may differ from the recorded run."""
        finish(session)
        recorder.sync()
        ours, theirs = recorder.journal, self.journal
        for at in range(min(len(ours), len(theirs))):
            assert same_entry(theirs, ours, at), what_differs(theirs, ours, at)
        assert len(ours) == len(theirs)
        assert session.cpu.blocks() == theirs.end or session.machine.exit is not None

    def close(self) -> None:
        self.past.close()
        self.streams.close()
