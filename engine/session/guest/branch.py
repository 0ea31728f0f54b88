"""A live guest that is brought to a moment of another run, and goes on from there."""

import os
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.history.hostfiles import LONGEST
from engine.history.inputs import HostInputs
from engine.history.journal import Journal, Op
from engine.history.moment import Moment
from engine.history.recordedstreams import RecordedStreams
from engine.history.recording import RunRecorder
from engine.history.reenacting import ReenactedKernel, Reenactment, ReenactmentError
from engine.image import ElfImage
from engine.linux.fs.host import HostAnswers
from engine.linux.fs.stdio import host_stdio
from engine.linux.fs.vfs import Directory, OpenFile
from engine.linux.fs.view import View
from engine.linux.kernel import Kernel
from engine.session.guest.granted import GrantedFiles, MissingFiles
from engine.session.guest.session import Session
from engine.session.program.libraries import GuestTree
from engine.session.program.opening import OpenedProgram, view_of
from engine.session.program.recorded import RecordedGuest, RecordedTree
from engine.session.protocol.config import GuestConfig

_WHY_NOT: Final = "no branch can be made of this run"


class RecordedRunError(ReenactmentError):
    """A live guest does not do again what a recorded one did."""

    hint = (
        "a branch needs the files of the recorded guest as it has seen them first: those that "
        "others changed while it ran make another run of it"
    )


class BranchSession(Session):
    """A guest that is carried out like another one, up to a moment."""

    kernel: ReenactedKernel

    def __init__(
        self,
        config: GuestConfig,
        stdio: tuple[OpenFile | None, ...] | None,
        opened: OpenedProgram,
    ) -> None:
        """Stand before the first instruction.

        Args:
            config: of the other one; what it writes to the host's directories is written to a
                copy in memory.
            stdio: its standard streams; the host's if None.
            opened: its program.

        Raises:
            ImageError: the file cannot be run.
        """
        super().__init__(replace(config, record_schedule=None), stdio, opened)

    def _make_view(self) -> View:
        # What was written to the host once is not written again.
        return replace(super()._make_view(), copied=True)

    def _make_kernel(self) -> Kernel:
        return ReenactedKernel(self.machine, self.turns, self.config.max_blocks)

    def reenact(
        self,
        recorder: RunRecorder,
        journal: Journal,
        script: HostInputs,
        moment: Moment,
        goes_on: Callable[[], bool],
    ) -> bool:
        """Go to a moment of the other run; False if that was cut.

        Args:
            recorder: of this one.
            journal: of the other one.
            script: what came into that from its host.
            moment: the moment.
            goes_on: asked now and then: False ends it.

        Raises:
            ReenactmentError: it does something else than the other one.
        """
        return Reenactment(self.kernel, recorder, journal, script).run(moment, goes_on)


class RecordedBranchSession(BranchSession):
    """A guest that is carried out like one in a recording, up to a moment.

    It sees the host of that one, as far as the recording holds it. From the moment on it sees
    beside that what the user has granted it of this one.
    """

    opened: RecordedGuest

    def __init__(
        self,
        config: GuestConfig,
        front: tuple[OpenFile | None, ...] | None,
        opened: RecordedGuest,
        parent: "RecordedBranchSession | None" = None,
    ) -> None:
        """Stand before the first instruction.

        Args:
            config: of the recorded run that is lived through again.
            front: the front end's streams, to which output goes; the host's if None.
            opened: the program.
            parent: the branch that this one leaves; None where it leaves the recorded run.

        Raises:
            ImageError: the file cannot be run.
            RecordingError: the recording makes no sense.
        """
        outside = opened.outside
        self._host = outside.host()
        self._missing = MissingFiles()
        self._parent = parent
        self._live_from: Moment | None = None
        self._grants = view_of(config) if config.root is not None or config.shares else None
        self._streams = RecordedStreams(
            outside.streams, outside.contents, host_stdio() if front is None else front
        )
        super().__init__(outside.config(config), None, opened)
        self.machine.host.wait = self._streams.waiting(self.machine.host.wait)

    def _host_answers(self) -> HostAnswers:
        return self._host

    def _standard_streams(self) -> tuple[OpenFile | None, ...]:
        return self._streams.streams(self.clock)

    def _make_view(self) -> View:
        return replace(self.opened.outside.view(), refused=self._missing)

    def tree(self) -> GuestTree:
        """The files of the guest's tree that are known; its own numbers no file for that."""
        return RecordedTree(self.opened.files, self.fs, self.machine.images)

    def _open_guest_image(self, path: str) -> ElfImage | None:
        image = super()._open_guest_image(path)
        if image is not None and not self.opened.files.paths(path):
            self.opened.files.add(path, image)
        return image

    def _working_directory(self) -> Directory:
        try:
            return super()._working_directory()
        except CommandError:
            if self.opened.outside.has_cwd:
                raise
            return self.fs.root

    def reenact(
        self,
        recorder: RunRecorder,
        journal: Journal,
        script: HostInputs,
        moment: Moment,
        goes_on: Callable[[], bool],
    ) -> bool:
        """Go to a moment of the recorded run; see `BranchSession.reenact`."""
        parent = self._parent
        earlier = parent._live_from if parent is not None else None
        self._live_from = moment if earlier is None else min(moment, earlier)
        files = GrantedFiles(self.fs, self._host, self._missing, self._grants)
        reenactment = Reenactment(self.kernel, recorder, journal, script)
        reenactment.on_the_way = self._live_from, files.begin
        try:
            if not reenactment.run(moment, goes_on):
                return False
        except ReenactmentError as error:
            long = ", ".join(map(os.fsdecode, self._host.too_long))
            lacks = f" (files over {LONGEST >> 20} MB are not in it: {long})" if long else ""
            raise RecordedRunError(f"{error}{lacks}") from error
        written: dict[int, int] = {}
        for at in range(moment.at):
            for op in journal[at].ops:
                if op[0] == Op.OUTPUT:
                    written[op[1]] = written.get(op[1], 0) + len(op[2])
        assert recorder.inputs is not None, "it is to be carried out again"
        rest = parent._streams.unread if parent is not None else b""
        self._streams.go_live(recorder.inputs.unread(script) + rest, written)
        return True


def copied_shares(session: Session) -> list[str]:
    """Paths of the host that a guest could write to, and that a branch of it has copies of."""
    opened = session.opened
    if isinstance(opened, RecordedGuest):
        return [os.fsdecode(path) for path, writes in opened.outside.view().shares if writes]
    return [path for path, writes in session.config.shares if writes]


def check_branching(session: Session, inputs: HostInputs | None) -> None:
    """See that a run can be carried out again up to a moment.

    Raises:
        CommandError: it cannot.
    """
    opened = session.opened
    clock = opened.outside.clock if isinstance(opened, RecordedGuest) else session.config.clock
    if clock == "host":
        raise CommandError(f"{_WHY_NOT}: --clock host goes on meanwhile")
    if session.supervisor is not None:
        raise CommandError(f"{_WHY_NOT}: its guest is a kernel image, whose functions are called")
    if inputs is None or session.core is not None:
        raise CommandError(f"{_WHY_NOT}: it is not recorded")
    if inputs.full:
        raise CommandError(f"{_WHY_NOT}: its input took too much memory to be kept")
