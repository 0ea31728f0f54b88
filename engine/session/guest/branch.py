"""A live guest that is brought to a moment of another run, and goes on from there."""

import shlex
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.history.inputs import HostInputs
from engine.history.journal import Journal
from engine.history.moment import Moment
from engine.history.recording import RunRecorder
from engine.history.reenacting import ReenactedKernel, Reenactment
from engine.linux.fs.vfs import OpenFile
from engine.linux.fs.view import View
from engine.linux.kernel import Kernel
from engine.session.guest.past import PastSession
from engine.session.guest.session import Session
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig

_WHY_NOT: Final = "no branch can be made of this run"


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


def check_branching(session: Session, inputs: HostInputs | None) -> None:
    """See that a run can be carried out again up to a moment.

    Raises:
        CommandError: it cannot.
    """
    if isinstance(session, PastSession):
        seed = f" --seed {session.config.seed}" if session.config.seed else ""
        words = shlex.join((session.config.guest, *session.config.args))
        raise CommandError(
            f"{_WHY_NOT}: a recording holds what the kernel did to the program's memory and "
            "registers, and of files only programs and libraries; a kernel that could go on needs "
            "what the host has answered it, and all the files that it has opened, to come to this "
            f"moment again. kprobe-tui{seed} {words} runs the program itself, which has branches"
        )
    if session.config.clock == "host":
        raise CommandError(f"{_WHY_NOT}: --clock host goes on meanwhile")
    if session.supervisor is not None:
        raise CommandError(f"{_WHY_NOT}: its guest is a kernel image, whose functions are called")
    if inputs is None or session.core is not None:
        raise CommandError(f"{_WHY_NOT}: it is not recorded")
    if inputs.full:
        raise CommandError(f"{_WHY_NOT}: its input took too much memory to be kept")
