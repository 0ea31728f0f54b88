"""A guest under control: what looks at it, moves it and changes it."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from engine.arch.plan import Mode
from engine.session.control.editing import ChangeHistory, Editing
from engine.session.control.focus import Focus
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import Running, StopQuestions
from engine.session.control.tracing_choices import Histograms
from engine.session.guest.session import Session
from engine.session.inspect.troubles import Troubles
from engine.session.inspect.viewing import Viewing
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.views import RunState
from engine.session.tracing.tracing import Tracing
from engine.trace.staging import Consumer
from engine.unwind.compare import UNWINDERS

if TYPE_CHECKING:
    from engine.session.control.past.search import StopPlace


class DebuggedGuest:
    """A guest, and what looks at it, moves it and changes it.

    Attributes:
        session: the guest.
        tracing: records its events.
        probing: its probes.
        probes: the list of those that the user has placed in it.
        histograms: of its events.
        troubles: what it has asked for in vain.
        focus: the thread in sight.
        viewing: looks at it.
        running: moves it.
        history: its changes that can be taken back.
        editing: changes it.
    """

    def __init__(
        self,
        session: Session,
        mode: Mode,
        questions: StopQuestions,
        *,
        take: Consumer,
        keep: Callable[[], object] | None = None,
        alone: bool = False,
        unwinder: str = UNWINDERS[0].name,
    ) -> None:
        """No probe is placed, and nothing is recorded yet.

        Args:
            session: the guest, which stands in front of its first instruction.
            mode: strictness of placement.
            questions: what is asked while it runs.
            take: takes the rows of its events.
            keep: called for a snapshot trigger.
            alone: step the thread in sight alone.
            unwinder: finds its frames.
        """
        self.session = session
        self.tracing = Tracing(session, TraceOptions(mode=mode), consumer=take, keep=keep)
        self.probing = session.probes(mode)
        self.history = ChangeHistory()
        self.probes = ProbeList(self.probing, self.tracing, mode, self.history)
        self.histograms = Histograms(self.tracing)
        self.troubles = Troubles(session)
        self.focus = Focus(session, alone=alone)
        self.viewing = Viewing(session, self.focus)
        self.viewing.choose(unwinder, now=False)
        self.running = Running(
            session, self.probing, self.probes, self.viewing, self.focus, questions
        )
        self.editing = Editing(session, self.focus, self.history)
        self._questions = questions
        self._told = 0

    def ask(self, questions: StopQuestions) -> None:
        """Others are asked whether to stop from now on."""
        self._questions = questions
        self.running.ask(questions)

    @property
    def stands(self) -> bool:
        """True if the guest can be looked at."""
        return self.running.state is not RunState.RUNNING or bool(self.session.kernel.waiting_in)

    def fresh_notices(self) -> list[str]:
        """The notices of its probes since this was asked last."""
        notices = self.probing.notices
        fresh, self._told = notices[self._told :], len(notices)
        return fresh

    def stop_places(self) -> "list[StopPlace]":
        """The places at which the user wants it to stop, for motions in its past."""
        from engine.session.control.past.search import StopPlace  # few runs are recorded

        found = []
        for view in self.probes.views(self.focus.space):
            if view.row.stops and view.row.enabled:
                kind = "breakpoint" if view.kind == "b" else "probe"
                text = self._questions.named(view.row.id) or (
                    f"{kind} {view.row.id}: {view.row.line}"
                )
                for address in view.addresses:
                    accepts = partial(self._questions.accepts, view.row.id)
                    found.append(StopPlace(address, accepts, text))
        return found
