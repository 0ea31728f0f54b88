"""The variables of the frames of a backtrace, and what is in them when somebody asks.

What a frame's registers were is the unwinder's knowledge: a variable that lives in a register
which no unwind rule has brought back is said to be unknown, never guessed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.image.expressions import Where
from engine.image.reader import DamagedError
from engine.image.scopes import Variable
from engine.language.values import TypedValue
from engine.session.guest.session import Session
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.program_files import Files
from engine.session.inspect.value_lines import ValueLines
from engine.session.protocol.frames import GuestFrame, VariableView
from engine.session.protocol.views import PartsView

FRAMES: Final = 8
"""Frames whose variables are read, the innermost ones: a deep recursion has the same in each."""
_MOST: Final = 64
"""Variables of a frame that are read."""


class _FrameContents(Struct, frozen=True):
    """The variables of a frame, in the order in which they are shown."""

    scope: FrameScope
    variables: tuple[Variable, ...]


class FrameVariables:
    """Reads the variables of a guest's frames; keeps what was read of the debug information."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._session = session
        self._files = Files(session)
        self._frames: list[_FrameContents | None] = []

    def of_frames(self, frames: Sequence[GuestFrame]) -> list[tuple[VariableView, ...]]:
        """The variables of each frame, parameters first; of an inlined one its own."""
        self._frames = []
        exact, level = True, 0
        for number, frame in enumerate(frames):
            here: _FrameContents | None = None
            syscall = frame.source == "syscall"
            if number < FRAMES and not syscall and not frame.signal:
                innermost = not number or not frames[number - 1].inlined
                here = self._contents(frame, level, exact, innermost)
            self._frames.append(here)
            level += not syscall and not frame.inlined
            # Where a call returns to, or a signal came, is another place than where it was made.
            exact = frame.signal or syscall or (frame.inlined and exact)
        return [() if here is None else tuple(_views(here)) for here in self._frames]

    def _contents(
        self, frame: GuestFrame, level: int, exact: bool, innermost: bool
    ) -> _FrameContents | None:
        frame_scope = FrameScope(
            self._session,
            self._files,
            frame,
            number=level,
            exact=exact,
            write_memory=_nobody,
            write_register=_nobody,
            convenience={},
            values=[],
        )
        scope = frame_scope.scope
        if scope is None:
            return None
        shown: Iterable[Variable]
        try:
            if frame.inlined:  # all inlined here are told together, in the innermost frame
                shown = [item for item in scope.visible if item.is_inlined] if innermost else []
            else:
                own = [item for item in scope.locals if not item.is_inlined]
                shown = dict.fromkeys((*scope.parameters, *own))
            wanted = [item for item in shown if not (item.is_declaration or item.is_unset)]
        except (ImageError, DamagedError):
            return None
        return _FrameContents(frame_scope, tuple(wanted[:_MOST]))

    def parts(
        self, frame: int, variable: int, steps: Sequence[int], first: int, count: int
    ) -> PartsView | None:
        """Parts of a part of a variable; None where there is no such variable.

        Args:
            frame: number of its frame, of those asked for last.
            variable: number of it there.
            steps: which part of it, which part of that, and so on.
            first: number of the first part that is wanted.
            count: parts at the most.
        """
        here = self._frames[frame] if 0 <= frame < len(self._frames) else None
        if here is None or not 0 <= variable < len(here.variables):
            return None
        item = here.variables[variable]
        return parts_of(here.scope, item.name, here.scope.of_variable(item), steps, first, count)


def parts_of(
    scope: FrameScope,
    name: str,
    value: TypedValue,
    steps: Sequence[int],
    first: int,
    count: int,
    letter: str = "",
) -> PartsView:
    """A value, and parts of a part of it; what cannot be read says so in place of them."""
    lines = ValueLines(scope)
    own = lines.shown(name, value, letter)
    try:
        found, more = lines.parts(lines.part(value, steps), first, count)
        return PartsView(own, tuple(lines.view(*part) for part in found), more)
    except GuestFaultError as error:
        return PartsView(own, (), trouble=f"{error.address:#x} cannot be read")
    except CommandError as error:
        return PartsView(own, (), trouble=str(error))
    except (ImageError, DamagedError):
        return PartsView(own, (), trouble="the debug information is damaged")


def _views(here: _FrameContents) -> Iterator[VariableView]:
    lines = ValueLines(here.scope)
    for item in here.variables:
        try:
            kind = item.type_text
        except (ImageError, DamagedError):
            kind = "?"
        value = here.scope.of_variable(item)
        if value.missing and (why := _why_nowhere(item)):
            value = replace(value, missing=f"<{why}>")
        yield lines.view(item.name, value, kind, is_parameter=item.is_parameter)


def _why_nowhere(item: Variable) -> str:
    """Why a variable stands nowhere, as far as that is known."""
    try:
        return item.location.why if item.location.where is Where.NOWHERE else ""
    except (ImageError, DamagedError):
        return ""


def _nobody(place: int | str, data: bytes | int) -> None:
    """Values are looked at here, and not changed."""
    raise CommandError("nothing is changed by looking at it")
