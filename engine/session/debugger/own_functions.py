"""Functions of expressions that ask for the debugger's state: `$_caller_is`, `$_gdb_setting`."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.language import value_types as ct
from engine.language.convenience_functions import (
    ConvenienceFunction,
    pattern_of,
    string_of,
    text_value,
    truth_value,
)
from engine.language.surroundings import Surroundings
from engine.language.values import TypedValue, made
from engine.message_text import bare_name
from engine.session.debugger.frames import SelectedFrames
from engine.session.debugger.marker_values import MarkerValues
from engine.session.debugger.settings import GdbSetting
from engine.session.debugger.signal_info import siginfo

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger


class OwnFunctions:
    """Looks at a debugger's frames and settings for expressions.

    Attributes:
        all: by name without the dollar.
        variables: of the debugger's own, likewise.
    """

    def __init__(self, debugger: "Debugger") -> None:
        """Look at a debugger."""
        self._debugger = debugger
        self.all: Mapping[str, ConvenienceFunction] = {
            "_caller_is": self._caller_is,
            "_caller_matches": self._caller_matches,
            "_any_caller_is": self._any_caller_is,
            "_any_caller_matches": self._any_caller_matches,
            "_gdb_setting": self._setting,
            "_gdb_setting_str": self._setting_text,
        }
        self.variables: Mapping[str, Callable[[], TypedValue]] = {
            "_thread": self._thread,
            "_gthread": self._thread,
            "_siginfo": lambda: siginfo(debugger),
            "_inferior": lambda: made(ct.INT, 1, debugger.scope.order),
            **MarkerValues(debugger).variables,
        }

    def _thread(self) -> TypedValue:
        """The number of the thread that is looked at; 0 for none."""
        debugger = self._debugger
        numbers = debugger.threads.numbers() if debugger.started else {}
        found = (number for number, tid in numbers.items() if tid == debugger.thread)
        return made(ct.INT, next(found, 0), debugger.scope.order)

    def _names(self, around: Surroundings, given: list[TypedValue]) -> Iterator[str]:
        """The functions that are asked about, from the frame that is looked at outwards."""
        frames = self._need_frames()
        start = frames.selected
        if len(given) > 1:
            number = given[1].number
            if number < 0:
                raise CommandError("nframes must be >= 0")
            names = [frame.function for frame in frames.all[start + number :][:1]]
        else:
            names = [frame.function for frame in frames.all[start + 1 :][:1]]
        return map(bare_name, names)

    def _need_frames(self) -> SelectedFrames:
        debugger = self._debugger
        if not debugger.started or not debugger.frames.all:
            raise CommandError("No frame is currently selected.")
        return debugger.frames

    def _every(self) -> Iterator[str]:
        frames = self._need_frames()
        return (bare_name(frame.function) for frame in frames.all[frames.selected :])

    @staticmethod
    def _is(around: Surroundings, names: Iterator[str], given: TypedValue) -> TypedValue:
        wanted = string_of(around, given).decode(errors="replace")
        return truth_value(around, holds=any(name == wanted for name in names))

    @staticmethod
    def _matches(around: Surroundings, names: Iterator[str], given: TypedValue) -> TypedValue:
        pattern = pattern_of(string_of(around, given))
        found = any(pattern.match(name.encode()) for name in names)
        return truth_value(around, holds=found)

    def _caller_is(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return self._is(around, self._names(around, given), given[0])

    def _caller_matches(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return self._matches(around, self._names(around, given), given[0])

    def _any_caller_is(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return self._is(around, self._every(), given[0])

    def _any_caller_matches(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return self._matches(around, self._every(), given[0])

    def _setting(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return self._debugger.settings.typed(self._named(around, given[0]), around.order)

    def _setting_text(self, around: Surroundings, given: list[TypedValue]) -> TypedValue:
        return text_value(around, self._debugger.settings.text(self._named(around, given[0])))

    def _named(self, around: Surroundings, given: TypedValue) -> GdbSetting:
        """The setting whose name is given."""
        name = string_of(around, given).decode(errors="replace")
        found = self._debugger.settings.find(name)
        if found is None:
            raise CommandError(f'There is no setting "{name}".')
        return found[0]
