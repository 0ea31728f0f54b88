"""Reports of stops: where the guest stands after a move, what has stopped it, and its end."""

from collections.abc import Callable
from typing import Final

from engine.language.value_types import INT
from engine.language.values import made
from engine.linux.signals import SIGINT
from engine.session.debugger.catching import received_text
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking
from engine.session.debugger.signal_rules import signal_name, signal_text
from engine.session.debugger.stops import UserBreakpoint, UserStop, UserWatchpoint
from engine.session.protocol.views import RunState, StopCause

_TOLD: Final = (StopCause.HIT, StopCause.EVENT, StopCause.SIGNAL)


Activation = tuple[str, int | None, int | None]
"""A call: its function, its canonical frame address, and where it returns to."""


class StopReports:
    """Says how a move of the guest has ended.

    Attributes:
        left_call: the last move has ended as a function that a user called has returned.
    """

    def __init__(
        self, debugger: Debugger, looking: Looking, at_stop: Callable[[], object]
    ) -> None:
        """Report the stops of a debugger's guest.

        Args:
            debugger: the debugger.
            looking: shows source lines and displays.
            at_stop: called before a stop is told.
        """
        self._debugger = debugger
        self._looking = looking
        self._at_stop = at_stop
        self.left_call = False
        debugger.calls.tell = self.told

    def told(self, before: int) -> bool:
        """Tell the stop, or the end, to which the guest has moved; True if it has arrived.

        Args:
            before: the thread that was looked at before.
        """
        debugger = self._debugger
        call = debugger.calls.returned()
        self.left_call = call is not None
        if call is not None:
            debugger.calls.leave(call)
            return False
        view, reached = debugger.control.view(), debugger.stops.reached
        if debugger.control.sight.place.in_past:  # hits on the way there have been looked at, too
            at = {id(one) for one in debugger.stops.at(view.pc)}
            reached[:] = [
                one
                for one in reached
                if type(one) is not UserBreakpoint or not one.number or id(one) in at
            ]
        for gone, line in debugger.threads.news():
            if debugger.settings["print thread-events"] and not debugger.attached:
                debugger.put(line)
            self._drop_stops_of(gone)
        if view.state is RunState.ENDED:
            debugger.calls.ended()
            if debugger.control.session.left_standing:
                self._tell_cut_short(before)
            else:
                self._ended()
                self._drop_stops_of(debugger.control.session.machine.first.pid)
            return False
        if view.cause is not StopCause.ARRIVED:
            self._tell_switch(before)
        if view.cause is StopCause.INTERRUPTED:
            debugger.put("")
            debugger.put(received_text(SIGINT))
            self.tell_place()
            return False
        if view.cause is StopCause.SIGNAL and debugger.signal:
            debugger.put("")
            debugger.put(received_text(debugger.signal, debugger.threads.culprit))
            self.tell_place()
            return False
        if view.cause in _TOLD and all(stop.number for stop in reached):
            self._tell_hit(reached, view.reason)
            return False
        if view.cause is StopCause.CALL:
            self._tell_call(view.reason)
            return False
        if view.cause in (StopCause.CUT_SHORT, StopCause.FOUND):
            debugger.put(view.reason)
            self.tell_place()
            return False
        return True

    def tell_reached(self) -> None:
        """Tell of the stop at hand, to which no word has led."""
        reached = self._debugger.stops.reached
        if reached:
            self._tell_hit(reached, self._debugger.control.view().reason)
        else:
            self._looking.show_displays()

    def breakpoints_here(self) -> list[UserBreakpoint]:
        """The breakpoints at pc."""
        return self._debugger.stops.at(self._debugger.control.view().pc)

    def tell_here(self) -> bool:
        """Tell of breakpoints to which a step has led; False without one that wants to stop."""
        stops, at = self._debugger.stops, self._debugger.frames.frame.pc
        reached: list[UserStop] = []
        for stop in self.breakpoints_here():
            if stops.wants(stop):
                stop.hit = next((one for one in stop.locations if one.place.address == at), None)
                reached.append(stop)
        stops.reached += reached
        if reached:
            self._tell_hit(reached, "")
        return bool(reached)

    def tell_step(self, before: Activation) -> None:
        """Tell where the guest stands after a step: the function only if it is another one.

        As in gdb, a call of the same function that a step returns to is no other one, if the step
        goes on from the middle of its line.
        """
        debugger, looking = self._debugger, self._looking
        frames = debugger.frames
        here = self.activation()
        same = here[:2] == before[:2]
        if not same and here[0] == before[0] and here[1] is not None and before[1] is not None:
            same = here[1] > before[1] and frames.frame.pc != before[2]
        alone = same and bool(frames.frame.file)
        if not alone:
            debugger.put(frames.heading(0, with_number=False))
        looking.show_source(0, alone=alone)
        looking.show_displays()

    def activation(self) -> Activation:
        """The call that the guest is in."""
        frames = self._debugger.frames.all
        if not frames:
            return "", None, None
        return frames[0].function, frames[0].cfa, frames[1].pc if len(frames) > 1 else None

    def tell_place(self) -> None:
        """A stop that is no breakpoint's."""
        self._at_stop()
        self._debugger.put(self._debugger.frames.heading(0, with_number=False))
        self._looking.show_source(0)
        self._looking.show_displays()

    def _tell_hit(self, reached: list[UserStop], reason: str) -> None:
        """A stop of the user's; without a number it was placed with other words than these."""
        debugger, looking = self._debugger, self._looking
        self._at_stop()  # as in gdb's normal_stop: before the commands, whatever is printed
        debugger.pending[:] = [line for stop in reached for line in stop.commands]
        silent = [stop for stop in reached if stop.commands and stop.commands[0].text == "silent"]
        if not silent:
            text = debugger.frames.heading(0, with_number=False)
            for stop in sorted(reached, key=lambda stop: stop.number):
                if isinstance(stop, UserWatchpoint):
                    culprit = debugger.threads.culprit
                    for line in stop.story:
                        hit = culprit and line.startswith(f"{stop.sense.title} {stop.number}: ")
                        debugger.put(f"{culprit} hit {line}" if hit else line)
                    continue
                if isinstance(stop, UserBreakpoint):
                    debugger.kept.set("_hit_bpnum", made(INT, stop.number, "little"))
                    part = made(INT, stop.hit_number, "little")
                    debugger.kept.set("_hit_locno", part)
                culprit = debugger.threads.culprit
                text = (f"{culprit} hit " if culprit else "") + stop.label + text
                debugger.put("")
                break
            if not reached:
                debugger.put("")
                debugger.put(reason)
            debugger.put(text)
            looking.show_source(0)
            looking.show_displays()
        for stop in reached:
            if stop.temporary and stop.number in debugger.stops.all:
                debugger.stops.delete(stop)
        debugger.pending[:] = [line for line in debugger.pending if line.text != "silent"]

    def _tell_call(self, reason: str) -> None:
        """Functions that were called have returned, as their output says, or one is stuck."""
        debugger = self._debugger
        supervisor = debugger.control.session.supervisor
        over = supervisor is None or supervisor.running is None
        if debugger.attached or not over:
            debugger.put(reason)
        if not over:
            self.tell_place()

    def _tell_switch(self, before: int) -> None:
        """Say that another thread than the selected one has been stopped."""
        debugger = self._debugger
        if debugger.thread != before:
            debugger.put(f"[Switching to {debugger.threads.text()}]")

    def _tell_cut_short(self, before: int) -> None:
        """A deadlock or a limit has ended the run: the program is looked at as it stands then."""
        debugger = self._debugger
        machine = debugger.control.session.machine
        assert machine.exit is not None, "it has ended"
        pid, limit = machine.first.pid, machine.exit.limit
        debugger.put(f"[Inferior 1 (process {pid}) stopped: {limit}]")
        self._tell_switch(before)
        self.tell_place()

    def _drop_stops_of(self, tid: int) -> None:
        """Delete the stops that are for a thread alone, which has ended."""
        debugger = self._debugger
        for stop in list(debugger.stops.all.values()):
            if stop.thread is not None and stop.thread[1] == tid:
                debugger.stops.delete(stop)
                debugger.put(
                    f"Thread-specific breakpoint {stop.number} deleted - thread {stop.thread[0]}"
                    " no longer in the thread list."
                )

    def _ended(self) -> None:
        """The program is over."""
        debugger = self._debugger
        debugger.started = False
        machine = debugger.control.session.machine
        end, pid = machine.exit, machine.first.pid
        if end is not None and end.signal:
            name, text = signal_name(end.signal), signal_text(end.signal)
            debugger.put("")
            debugger.put(f"Program terminated with signal {name}, {text}.")
            debugger.kept.set("_exitsignal", made(INT, end.signal, "little"))
            if debugger.started:
                self.tell_place()
            else:
                debugger.put("The program no longer exists.")
            return
        code = debugger.control.view().exit_code or 0
        debugger.kept.set("_exitcode", made(INT, code, "little"))
        if end is not None and end.limit:
            debugger.put(f"[Inferior 1 (process {pid}) stopped: {end.limit}]")
        elif code:
            debugger.put(f"[Inferior 1 (process {pid}) exited with code 0{code:o}]")
        else:
            debugger.put(f"[Inferior 1 (process {pid}) exited normally]")
