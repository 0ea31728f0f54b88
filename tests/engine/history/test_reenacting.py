"""A live guest comes to any moment of a recorded run, and goes on from there as that one did."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import build
from historykit import state_of
from sessionkit import SAMPLES

from engine.history.comparing import same_entry
from engine.history.inputs import HostInputs
from engine.history.recording import RunRecorder
from engine.history.reenacting import ReenactmentError
from engine.history.timeline import Moment, Timeline
from engine.session import GuestConfig, Session
from engine.session.guest.branch import BranchSession
from engine.session.guest.past import PastSession, record
from engine.session.guest.terminal import CapturedStreams

GUESTS = Path(__file__).parents[2] / "data" / "guests"
FEW = ("x86_64/forkserver", "aarch64/race")
REST = [
    f"{folder.name}/{guest.name}"
    for folder in sorted(SAMPLES.iterdir())
    for guest in sorted(folder.iterdir())
    if f"{folder.name}/{guest.name}" not in FEW and guest.name != "deadlock"  # it has no end
]
NAMES = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)]
KINDS = ("threads", "exec", "smc", "segv", "signals", "fork", "atomics", "sync", "thrsig")
RUNS = [
    pytest.param(arch, kind, marks=pytest.mark.slow)
    for arch in ("amd64", "arm64")
    for kind in KINDS
]


def _finish(session: Session) -> None:
    """Run to the end as a front end does."""
    while session.machine.exit is None:
        session.kernel.resume()
        session.kernel.wait()


class Forked:
    """A recorded run, and branches of it."""

    def __init__(
        self,
        path: Path,
        *args: str,
        stdin: bytes = b"",
        isolated: bool = True,
        shares: tuple[tuple[str, bool], ...] = (),
    ) -> None:
        self.streams = CapturedStreams(stdin)
        self.config = GuestConfig(
            guest=str(path),
            args=args,
            isolated=isolated,
            shares=shares,
            history=True,
            count_blocks=True,
        )
        self.session = Session(self.config, self.streams.streams())
        self.inputs = HostInputs()
        self.recorder = record(self.session, None, self.inputs)

    def branch(
        self, moment: Moment, goes_on: Callable[[], bool] = lambda: True
    ) -> tuple[BranchSession, RunRecorder, bool]:
        session = BranchSession(self.config, self.streams.streams(), self.session.opened)
        recorder = record(session, None, HostInputs(self.inputs))
        try:
            done = session.reenact(recorder, self.recorder.journal, self.inputs, moment, goes_on)
        except BaseException:
            session.close()
            raise
        return session, recorder, done

    def past(self) -> PastSession:
        journal, ram = self.recorder.journal, self.session.ram
        return PastSession(self.config, journal, ram.size, self.session.opened)

    def close(self) -> None:
        self.session.close()
        self.streams.close()


def _check(ran: Forked, count: int) -> None:
    choose = random.Random(1)
    _finish(ran.session)
    output, end = bytes(ran.streams.output), ran.session.cpu.blocks()
    past = ran.past()
    try:
        timeline = Timeline(past.kernel, past.ram)
        for _ in range(count):
            timeline.seek_clock(choose.randrange(1, max(end, 2)))
            for _ in range(choose.randrange(4)):
                if past.machine.exit is None:
                    past.kernel.step()
            if past.machine.exit is not None:
                continue
            moment = timeline.now()
            session, recorder, done = ran.branch(moment)
            try:
                assert done
                assert not ran.streams.output  # it was written once
                assert state_of(session) == state_of(past), moment
                _finish(session)
                recorder.sync()
                assert (session.machine.exit, session.cpu.blocks()) == (
                    ran.session.machine.exit,
                    end,
                )
                ours, theirs = recorder.journal, ran.recorder.journal
                assert len(ours) == len(theirs)
                assert all(same_entry(ours, theirs, at) for at in range(len(ours)))
                assert output.endswith(ran.streams.output)
            finally:
                session.close()
    finally:
        past.close()


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    ran = Forked(SAMPLES / name)
    try:
        _check(ran, 2)
    finally:
        ran.close()


@pytest.mark.parametrize(("arch", "kind"), RUNS)
def test_guests(arch: str, kind: str) -> None:
    """Signals, threads, processes, programs, code that changes itself."""
    ran = Forked(GUESTS / arch / "guests-static", kind, isolated=False)
    try:
        _check(ran, 2)
    finally:
        ran.close()


def test_what_was_read_is_read_again() -> None:
    """Of input the same comes once more, and the rest of it from the host."""
    ran = Forked(SAMPLES / "x86_64" / "lines", stdin=b"one two two\n" * 40)
    try:
        _finish(ran.session)
        output, end = bytes(ran.streams.output), ran.session.cpu.blocks()
        assert b"one two two\n" in b"".join(
            each for each in ran.inputs.calls if isinstance(each, bytes)
        )
        past = ran.past()
        timeline = Timeline(past.kernel, past.ram)
        timeline.seek_clock(end * 2 // 3)
        session, _, done = ran.branch(timeline.now())
        assert done
        assert state_of(session) == state_of(past)
        _finish(session)
        assert session.cpu.blocks() == end
        assert output.endswith(ran.streams.output)
        session.close()
        past.close()
    finally:
        ran.close()


MAPS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDONLY);
    const char *data = mmap(0, 200000, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("%c\n", data[150000]);
}
"""


def test_a_mapped_file_that_has_changed_is_told(tmp_path: Path) -> None:
    """Its attributes are the same, only bytes are others."""
    data = tmp_path / "data"
    data.write_bytes(b"a" * 200_000)
    before = data.stat()
    program = build(tmp_path, "maps", MAPS, "-static")
    ran = Forked(program, str(data), isolated=False, shares=((str(tmp_path), False),))
    try:
        _finish(ran.session)
        assert ran.streams.output == b"a\n"
        journal = ran.recorder.journal
        moment = Moment(len(journal) - 1, journal[-1].clock, journal[-1].pc)
        with data.open("r+b") as file:
            file.seek(150_000)
            file.write(b"b")
        os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(ReenactmentError, match=r"in mmap.* a file's bytes .* now it is"):
            ran.branch(moment)
    finally:
        ran.close()


def test_a_file_that_has_changed_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"as it was")
    ran = Forked(Path("/bin/cat"), str(data), isolated=False, shares=((str(tmp_path), True),))
    try:
        _finish(ran.session)
        assert ran.streams.output == b"as it was"
        journal = ran.recorder.journal
        at = len(journal) - 1
        data.write_bytes(b"as it is!")
        os.utime(data, (1, 1))  # however soon after the first one
        with pytest.raises(ReenactmentError) as told:
            ran.branch(Moment(at, journal[at].clock, journal[at].pc))
        text = str(told.value)
        assert "does not do again what it did, in fstat" in text or "in newfstatat" in text
        assert "recorded was" in text
        assert "now it is" in text
        assert not ran.streams.output
    finally:
        ran.close()


def test_it_can_be_cut() -> None:
    ran = Forked(SAMPLES / "x86_64" / "sort")
    try:
        _finish(ran.session)
        journal = ran.recorder.journal
        session, _, done = ran.branch(
            Moment(len(journal) - 1, journal.end, journal[len(journal) - 1].pc), lambda: False
        )
        assert not done
        session.close()
    finally:
        ran.close()
