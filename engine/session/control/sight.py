"""The run that a front end has at hand, and the moment and the frame of it that are looked at."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from engine.errors import CommandError
from engine.session.control.branches import KeptRun
from engine.session.control.stand import GuestStand
from engine.session.control.standpoint import Standpoint
from engine.session.control.telling import EventTeller
from engine.session.control.typed_words import TypedWords


class RunSight:
    """The run at hand, and all that a front end looks at in this run.

    Attributes:
        words: carries lines of gdb's words out; None before the first of these lines.
        learn: called before the first line: may set `words`.
        moves: counts what the guest has done, threads that were chosen and fresh starts.
        frame: number of the frame that is looked at; the guest's motions make it 0.
    """

    def __init__(self, telling: EventTeller) -> None:
        """No run is at hand.

        Args:
            telling: gets the context of each run that comes to hand.
        """
        self.words: TypedWords | None = None
        self.learn: Callable[[], object] = lambda: None
        self.moves = self.frame = 0
        self._telling = telling
        self._gate = threading.Lock()
        self._hears = False
        self._kept: KeptRun | None = None

    @property
    def is_open(self) -> bool:
        """True while a run is at hand."""
        return self._kept is not None

    @property
    def run(self) -> KeptRun:
        """The run at hand.

        Raises:
            CommandError: the run has been given back, and no memory of it can be looked at.
        """
        if self._kept is None:
            raise CommandError("the guest is closed: nothing can be asked of it any more")
        return self._kept

    @property
    def place(self) -> Standpoint:
        """The place in the run at hand at which the front end stands."""
        return self.run.place

    @property
    def here(self) -> GuestStand:
        """The guest in which the front end stands, and all that works on it."""
        return self.place.here

    # -- the run at hand --------------------------------------------------------------------

    def begin(self, run: KeptRun) -> None:
        """Have a run at hand that begins, and does not hear yet."""
        self._kept = run

    def take(self, run: KeptRun) -> None:
        """Have another run at hand; `attention` is heard in this run from now on."""
        with self._gate:
            self._kept, self._telling.context = run, run.context

    def leave(self) -> None:
        """Tell words that another run is about to be at hand."""
        if self.words is not None:
            self.words.begins_to_move()

    def arrive(self) -> None:
        """Tell words that another run is at hand: what was known of addresses does not hold."""
        self.place.change()
        self.moves_on()
        self.here.running.origin = "insn"
        if self.words is not None:
            self.words.branched()

    def close(self) -> None:
        """Give the run at hand up."""
        self._kept = None

    # -- from any thread --------------------------------------------------------------------

    def hear(self, *, on: bool) -> None:
        """Let `attention` and `nudge` reach the run at hand, or nobody."""
        with self._gate:
            self._hears = on

    def attention(self) -> None:
        """Make a running guest ask soon what has come in."""
        with self._gate:
            if self._hears:
                self.here.session.attend()

    def nudge(self) -> None:
        """Ask again if the guest has not heard yet; for a timer."""
        with self._gate:
            if self._hears and self.here.session.waiting():
                self.here.session.nudge()

    # -- what is looked at ------------------------------------------------------------------

    def known_words(self) -> TypedWords:
        """The object that carries words out.

        Raises:
            CommandError: the front end knows no words.
        """
        if self.words is None:
            self.learn()
        if self.words is None:
            raise CommandError("nobody knows words here")
        return self.words

    def moves_on(self) -> None:
        """Look at another moment, or another thread, and at no frame of it yet."""
        self.moves += 1
        self.frame, self.here.focus.elsewhere = 0, None

    def look_at(self, frame: int) -> None:
        """Look at a frame of the backtrace, and with it at the memory of its program."""
        self.frame = frame
        self.here.focus.elsewhere = self.here.viewing.space_of(frame)

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Have the processor hold the thread in sight, to be looked at, while the guest stands."""
        with self.here.focus.visit() if self.here.stands else nullcontext():
            yield
