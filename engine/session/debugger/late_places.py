"""Breakpoints at places of files that the program maps, or lets go, while it runs."""

from typing import TYPE_CHECKING

from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.places import CodePlace
from engine.session.debugger.stops import UserBreakpoint, UserStop

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger


class LatePlaces:
    """Moves breakpoints to the addresses that their places have in files that have come."""

    def __init__(self, debugger: "Debugger") -> None:
        """Move those of a debugger."""
        self._debugger = debugger
        self._came = False

    def code_came(self) -> None:
        """Code of a file has come: breakpoints may have addresses there."""
        if not self._came and any(_may_move(stop) for stop in self._debugger.stops.all.values()):
            self._came = True
            self._debugger.control.notice()

    def look(self) -> None:
        """Between two instructions, once code has come: move the breakpoints that it concerns."""
        if self._came:
            self._came = False
            with self._debugger.stops.while_running():
                self._place_again()

    def _place_again(self) -> None:
        """Breakpoints have the addresses that their places have by now."""
        for stop in list(self._debugger.stops.all.values()):
            if not isinstance(stop, UserBreakpoint) or not _may_move(stop):
                continue
            places = self.again(stop)
            if [one.place.address for one in stop.locations] == [at.address for at in places]:
                continue
            try:
                self._debugger.stops.move(stop, places)
                if places and (stop.condition or stop.extra):
                    text = stop.condition or stop.extra.removeprefix("if ")
                    self._debugger.conditions.set(stop, text, told=False)
                    self._debugger.stops.settle(stop)
            except TROUBLE as error:
                self._debugger.complain(
                    f"Error in re-setting breakpoint {stop.number}: {message(error)}"
                )
        self._debugger.frames.moved()

    def again(self, stop: UserBreakpoint) -> tuple[CodePlace, ...]:
        """The addresses that a breakpoint's place has by now; those it has where none is left."""
        before = [one.place for one in stop.locations]
        return (
            tuple(before)
            if stop.wanted is None
            else self._debugger.guest_places.again(stop.wanted, before)
        )


def _may_move(stop: UserStop) -> bool:
    """True for a breakpoint at a place that another file may have, too."""
    wanted = stop.wanted if isinstance(stop, UserBreakpoint) else None
    return wanted is not None and wanted.address is None
