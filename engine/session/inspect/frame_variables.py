"""The variables of the frames of a backtrace, and what is in them when somebody asks.

What a frame's registers were is the unwinder's knowledge: a variable that lives in a register
which no unwind rule has brought back is said to be unknown, never guessed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.image.expressions import Where
from engine.image.reader import DamagedError
from engine.image.scopes import Variable
from engine.image.variables import Variables
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import space_of
from engine.session.protocol.frames import GuestFrame, VariableView
from engine.session.protocol.views import PartsView

if TYPE_CHECKING:  # most of `engine.language`: not for programs without variables
    from engine.language.values import TypedValue
    from engine.session.inspect.frame_scope import FrameScope
    from engine.session.inspect.program_files import Files

FRAMES: Final = 8
"""Frames whose variables are read, the innermost ones: a deep recursion has the same in each."""
_MOST: Final = 64
"""Variables of a frame that are read."""


class _FrameContents(Struct, frozen=True):
    """The variables of a frame, in the order in which they are shown."""

    scope: "FrameScope"
    variables: tuple[Variable, ...]


class FrameVariables:
    """Reads the variables of a guest's frames; keeps what was read of the debug information."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._session = session
        self._files: Files | None = None
        self._looked: dict[int, Variables] = {}
        self._frames: list[_FrameContents | None] = []
        self._places: list[tuple[GuestFrame, int, bool, bool]] = []

    def of_frames(self, frames: Sequence[GuestFrame]) -> list[tuple[VariableView, ...]]:
        """The variables of each frame, parameters first; of an inlined one its own.

        Those of `FRAMES` are read, and of a frame further out where `of_frame` asks for it.
        """
        self._frames, self._places = [], []
        exact, level = True, 0
        for number, frame in enumerate(frames):
            here: _FrameContents | None = None
            syscall = frame.source == "syscall"
            innermost = not number or not frames[number - 1].inlined
            self._places.append((frame, level, exact, innermost))
            if number < FRAMES and not syscall and not frame.signal:
                here = self._contents(frame, level, exact, innermost)
            self._frames.append(here)
            level += not syscall and not frame.inlined
            # Where a call returns to, or a signal came, is another place than where it was made.
            exact = frame.signal or syscall or (frame.inlined and exact)
        return [() if here is None else tuple(_views(here)) for here in self._frames]

    def of_frame(self, number: int) -> tuple[VariableView, ...]:
        """The variables of one frame of those asked for last, however far out."""
        if not 0 <= number < len(self._places):
            return ()
        here, place = self._frames[number], self._places[number]
        if here is None and place[0].source != "syscall" and not place[0].signal:
            here = self._frames[number] = self._contents(*place)
        return () if here is None else tuple(_views(here))

    def _contents(
        self, frame: GuestFrame, level: int, exact: bool, innermost: bool
    ) -> _FrameContents | None:
        if self._files is None:
            if not self._has_scope(frame, exact):
                return None
            from engine.session.inspect.program_files import Files

            self._files = Files(self._session)
        from engine.session.inspect.frame_scope import FrameScope

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

    def _has_scope(self, frame: GuestFrame, exact: bool) -> bool:
        """True if debug information describes a frame's function, or is damaged there."""
        place = frame.pc if exact else frame.pc - 1
        module = (space_of(self._session, frame) or self._session.seen).modules.at(place)
        if module is None:
            return False
        variables = self._looked.setdefault(id(module.image), Variables(module.image))
        try:
            return variables.scope(place - module.bias) is not None
        except (ImageError, DamagedError):
            return True

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
    scope: "FrameScope",
    name: str,
    value: "TypedValue",
    steps: Sequence[int],
    first: int,
    count: int,
    letter: str = "",
) -> PartsView:
    """A value, and parts of a part of it; what cannot be read says so in place of them."""
    from engine.session.inspect.value_lines import ValueLines

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
    from engine.session.inspect.value_lines import ValueLines

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
