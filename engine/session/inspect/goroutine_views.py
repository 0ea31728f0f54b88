"""Goroutines as views: each with its state, where it goes on, and where the user's code is."""

from typing import Final

from engine.errors import CommandError
from engine.image.gofunctions import go_name
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.inspect.goroutines import Goroutine, Goroutines
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import GoroutinesView, GoroutineView

LOCATED: Final = 300
"""Goroutines whose stacks are walked for the views of a stop, the first ones of a list."""
_DEPTHS: Final = (8, 64)
"""Frames in which the user's code is looked for: few are enough for most."""
_MAIN: Final = 1
"""The number of the goroutine that runs main, which the runtime itself starts."""
_RUNTIME: Final = "runtime."
_NOT_USERS: Final = ("internal/", "runtime/internal/")


class GoroutineViews:
    """Makes the views of all goroutines of one session."""

    def __init__(self, session: Session) -> None:
        """Nothing is looked at yet."""
        self._session = session
        self._goroutines = Goroutines(session)
        self._backtraces = Backtraces(session)

    def listed(
        self, space: AddressSpace, shown: Thread, parked: int, located: int = LOCATED
    ) -> GoroutinesView:
        """The goroutines of the program in an address space, or why there are none.

        Args:
            space: the address space.
            shown: the thread that panes show.
            parked: number of the goroutine that they show in place of it; 0 for none.
            located: number of goroutines whose stacks are walked; of others there is the place
                where they go on.
        """
        try:
            found = self._goroutines.listed(space)
        except CommandError as error:
            return GoroutinesView(why=str(error))
        chosen = parked or next((one.id for one in found.found if one.thread == shown.tid), 0)
        views = tuple(
            self._view(one, space, shown=one.id == chosen, located=number < located)
            for number, one in enumerate(found.found)
        )
        return GoroutinesView(views, found.dead, found.left_out, found.why)

    def _view(
        self, one: Goroutine, space: AddressSpace, *, shown: bool, located: bool
    ) -> GoroutineView:
        frames = self._frames(one) if located else ()
        here = frames[0] if frames else None
        user = next((frame for frame in frames if _is_users(frame.function)), here)
        return GoroutineView(
            one.id,
            one.state,
            one.status,
            here.function if here is not None else self._name(space, one.pc),
            user.function if user is not None else "",
            user.file if user is not None else "",
            user.line if user is not None else 0,
            one.thread,
            self._name(space, one.created - 1) if one.id != _MAIN else "",
            self._name(space, one.start),
            shown,
        )

    def _frames(self, one: Goroutine) -> tuple[GuestFrame, ...]:
        """The innermost frames of a goroutine, as far as the user's code; none if damaged."""
        frames: tuple[GuestFrame, ...] = ()
        if not one.thread and not one.stack[0] <= one.sp <= one.stack[1]:
            return frames  # a walk through anything would take long, and find nothing
        for depth in _DEPTHS:
            frames = self._walked(one, depth)
            if any(_is_users(frame.function) for frame in frames) or len(frames) < depth:
                break
        return frames

    def _walked(self, one: Goroutine, depth: int) -> tuple[GuestFrame, ...]:
        thread = self._session.machine.threads.get(one.thread)
        if thread is None:
            return self._backtraces.parked(one, limit=depth).frames
        with self._session.kernel.visit(thread):
            return self._backtraces.take(limit=depth).frames

    def _name(self, space: AddressSpace, address: int) -> str:
        symbol = space.modules.locate(address).symbol
        return go_name(symbol.demangled) if symbol is not None else ""


def _is_users(function: str) -> bool:
    """True for code that a user thinks of as the program's, or has called in the runtime.

    The rule is delve's (G.UserCurrent), by which exported functions of the runtime count.
    """
    if "." not in function or function.startswith(_NOT_USERS):
        return False
    return not function.startswith(_RUNTIME) or function[len(_RUNTIME) :][:1].isupper()
