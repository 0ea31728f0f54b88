"""A guest of the past: a recorded run that is lived through again."""

from typing import TYPE_CHECKING, Final

from engine.cpu.ram import Ram
from engine.errors import ImageError
from engine.history.inputs import HostInputs
from engine.history.journal import Journal
from engine.history.recording import RunRecorder
from engine.image import ElfImage
from engine.linux.kernel import Kernel
from engine.session.guest.loading import Value
from engine.session.guest.session import Session
from engine.session.program.libraries import GuestTree
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig

if TYPE_CHECKING:
    from engine.history.replaying import ReplayKernel
    from engine.session.program.recorded import RecordedFiles, RecordedGuest

_OWN: Final = 1 << 30
"""Bytes of the arena for what the machinery of today needs."""


def record(
    session: Session,
    budget: int | None = None,
    inputs: HostInputs | None = None,
    journal: Journal | None = None,
) -> RunRecorder:
    """Record a session, whose configuration has `history`, from its first instruction on.

    Args:
        session: the session that is recorded.
        budget: bytes that the journal may take; None for any number.
        inputs: takes what comes from the host, so that the run can be carried out again.
        journal: it goes there; a journal of its own if None.
    """
    if inputs is not None:
        for volume in session.fs.host_volumes:
            volume.accessed = inputs.accessed
    found = Journal() if journal is None else journal
    return RunRecorder(session.machine, session.noted, found, budget, inputs)


class PastSession(Session):
    """A recorded run, from its start on."""

    kernel: "ReplayKernel"

    def __init__(
        self,
        config: GuestConfig,
        journal: Journal,
        arena: int,
        opened: OpenedProgram | None = None,
        files: "RecordedFiles | None" = None,
    ) -> None:
        """Stand before the first instruction.

        Args:
            config: of the guest.
            journal: what is to happen.
            arena: bytes of the recorded guest's physical memory.
            opened: the program, if it is open already.
            files: the guest's; those of its own tree if None.

        Raises:
            ImageError: the file cannot be run.
        """
        self._journal = journal
        self._arena = arena
        self._files = files
        super().__init__(config, (None, None, None), opened)

    def again(self) -> "PastSession":
        """The same run, before its first instruction."""
        fresh = PastSession(self.config, self._journal, self._arena, self.opened, self._files)
        fresh.kernel.reached = self.kernel.reached
        return fresh

    def another(self) -> "PastSession":
        """The same run, before its first instruction."""
        return self.again()

    def tree(self) -> GuestTree:
        """The files of the guest's tree that are known."""
        if self._files is None:
            return super().tree()
        from engine.session.program.recorded import RecordedTree  # few guests are recorded

        return RecordedTree(self._files, self.fs, self.machine.images)

    def _make_ram(self) -> Ram:
        # What the recorded guest was allowed to touch was seen to then.
        ram = Ram(self._arena + _OWN, budget=self._arena + _OWN)
        ram.allocate_at(0, self._arena)
        return ram

    def _make_kernel(self) -> Kernel:
        from engine.history.replaying import ReplayKernel  # nobody goes to the past at first

        return ReplayKernel(
            self.machine, self.turns, self._journal, self._open_guest_image, self._arena
        )

    def _open_guest_image(self, path: str) -> ElfImage | None:
        if self._files is None:
            return super()._open_guest_image(path)
        try:
            return self._files.image(path)
        except ImageError:
            return None

    def _given(self, value: Value) -> Value:
        found = self.kernel.input()
        if not isinstance(found, type(value)):
            from engine.history.replaying import DivergenceError

            raise DivergenceError(f"the recording has {found!r} as an instruction's input")
        return found

    def _load(self) -> None:
        self.kernel.load()
        self.memory.sync()


def replayed(opened: "RecordedGuest") -> PastSession:
    """A run of a recording, before its first instruction.

    Raises:
        RecordingError: the recording makes no sense.
    """
    session = PastSession(opened.config, opened.journal, opened.arena, opened, opened.files)
    session.kernel.reached = opened.reached
    return session
