"""Makes a branch: a live guest that is brought to the moment at which another one is looked at."""

import time
from collections.abc import Callable
from typing import Final

from engine.errors import CommandError
from engine.history.inputs import HostInputs
from engine.history.recording import RunRecorder
from engine.linux.fs.vfs import OpenFile
from engine.session.control.stand import GuestStand
from engine.session.control.standpoint import Standpoint
from engine.session.control.travel import Travel
from engine.session.guest.branch import (
    BranchSession,
    RecordedBranchSession,
    check_branching,
    copied_shares,
)
from engine.session.program.recorded import RecordedGuest
from engine.session.protocol.views import RunState

_ASK: Final = 0.02
"""Seconds between two looks at whether to go on."""


class BranchLeap:
    """The way of a guest from its first instruction to the moment of another one.

    Attributes:
        moment: the moment at which the branch begins.
        script: what came into the other one from its host.
        remarks: what the user has to know of the branch.
    """

    def __init__(self, place: Standpoint) -> None:
        """Go to where a front end stands.

        Raises:
            CommandError: no branch can leave there.
        """
        travel = place.travel
        assert travel is not None, "the run is recorded"
        self._old = place.present.session
        recorder = travel.recorder
        check_branching(self._old, recorder.inputs)
        here = place.here
        if here.running.ended or here.session.machine.exit is not None:
            raise CommandError("the program has ended here; a branch leaves an earlier moment")
        if here.session.kernel.waiting_in:
            raise CommandError(
                f"the program waits in {here.session.kernel.waiting_in}() here; a branch leaves "
                "before that or behind it"
            )
        self.moment = travel.now()
        self._travel = travel
        self._marks = {
            name: moment
            for name, moment in travel.landmarks.marks.items()
            if moment <= self.moment
        }
        assert recorder.inputs is not None, "it was seen to"
        self.script: HostInputs = recorder.inputs
        writable = copied_shares(self._old)
        self.remarks: tuple[str, ...] = ()
        if writable:
            self.remarks = (
                f"what it writes to {', '.join(writable)} stays its own, in memory: the host's "
                "files are as the run before has left them",
            )

    def session(self, streams: tuple[OpenFile | None, ...] | None) -> BranchSession:
        """The guest, in front of its first instruction.

        Args:
            streams: its standard streams; the host's if None.

        Raises:
            ImageError: the program cannot be run any more.
        """
        opened = self._old.opened
        if isinstance(opened, RecordedGuest):
            parent = self._old if isinstance(self._old, RecordedBranchSession) else None
            return RecordedBranchSession(self._old.config, streams, opened, parent)
        return BranchSession(self._old.config, streams, opened)

    def carry_out(self, travel: Travel, stand: GuestStand, goes_on: Callable[[], bool]) -> None:
        """Bring the guest there.

        Args:
            travel: the way to its past.
            stand: it, in front of its first instruction.
            goes_on: asked now and then: False ends it.

        Raises:
            CommandError: that was cut.
            ReenactmentError: it does something else than the other one.
        """
        session, recorder = stand.session, travel.recorder
        assert isinstance(session, BranchSession), "it was made here"
        assert isinstance(recorder, RunRecorder), "it is recorded"
        due = time.monotonic() + _ASK

        def asked() -> bool:
            nonlocal due
            if time.monotonic() < due:
                return True
            due = time.monotonic() + _ASK
            return goes_on()

        if not session.reenact(
            recorder, self._travel.recorder.journal, self.script, self.moment, asked
        ):
            raise CommandError("interrupted: there is no new branch")
        travel.landmarks.marks.update(self._marks)
        stand.running.state = RunState.STOPPED
