"""Words that let the guest run: steps, ends of functions, places to run to."""

from collections.abc import Callable
from typing import Final

from engine.errors import CommandError
from engine.language.evaluation import Evaluator
from engine.language.value_types import INT, CType
from engine.language.values import RegisterPlace, made
from engine.linux.signals import SIGINT
from engine.session.control.stepping_thread import SteppingThread
from engine.session.debugger.catching import received_text
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking
from engine.session.debugger.past_conditions import PastConditions
from engine.session.debugger.places import WantedPlace
from engine.session.debugger.program_calls import ProgramCall
from engine.session.debugger.returned import ReturnedValue
from engine.session.debugger.signal_rules import signal_name, signal_number, signal_text
from engine.session.debugger.stops import (
    BreakLocation,
    UserBreakpoint,
    UserStop,
    UserWatchpoint,
    placed_text,
)
from engine.session.inspect.tail_calls import TAIL
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import CALLED
from engine.session.protocol.kinds import CommandKind, kind_of
from engine.session.protocol.views import OriginLink, RunState, StopCause

_DIGITS: Final = 20
"""Of a tick, at the most."""
_ENDS: Final = {
    "": "",
    "computation": " [computation]",
    "constant": " [constant]",
    "input": " [input]",
    "start": " [start]",
    "longer": "",
}
"""The words behind a link, by its kind of end."""
_TOLD: Final = (StopCause.HIT, StopCause.EVENT, StopCause.SIGNAL)


_Activation = tuple[str, int | None, int | None]
"""A call: its function, its CFA, and where it returns to."""


class Moving:
    """Moves the guest, and says where it stands then.

    Attributes:
        at_stop: called before a stop is told.
        skips: True for a function of a file in which `step` does not stop.
    """

    def __init__(self, debugger: Debugger, looking: Looking) -> None:
        """Move a debugger's guest."""
        self._debugger = debugger
        self._looking = looking
        self._conditions = PastConditions(debugger)
        self._alone = self._left_call = False
        debugger.calls.tell = self.told
        self.at_stop: Callable[[], object] = lambda: None
        self.skips: Callable[[str, str], bool] = lambda function, file: False

    # -- running ----------------------------------------------------------------------------

    def run(self, rest: str) -> None:
        """Run the program from its beginning: run [ARGUMENTS]."""
        self._begin(rest)
        self.go(cmd.Continue())

    def _begin(self, arguments: str) -> None:
        """Stand at the first instruction of the program, started again if it has run."""
        debugger = self._debugger
        if arguments:
            debugger.set_arguments(arguments)
        whole = debugger.control.config.recording is not None  # nothing can have changed it
        waits = debugger.state is RunState.READY and (whole or not debugger.started)
        if not waits or debugger.changed:
            debugger.restart()
        for stop in debugger.stops.all.values():
            stop.hits = 0
        debugger.started = True

    def start(self, rest: str) -> None:
        """Run the program up to main."""
        debugger = self._debugger
        wanted = WantedPlace("main", function="main")
        places = debugger.places_of(wanted)
        locations = [BreakLocation(place) for place in places]
        stop = debugger.stops.add(
            UserBreakpoint(locations=locations, wanted=wanted, temporary=True)
        )
        debugger.put(placed_text(stop, debugger.displacement))
        self.run(rest)

    def starti(self, rest: str) -> None:
        """Bring the program to its first instruction."""
        debugger = self._debugger
        self._begin(rest)
        debugger.frames.moved()
        debugger.put("")
        debugger.put("Program stopped.")
        debugger.put(debugger.frames.heading(0, with_number=False))
        self._looking.show_source(0)

    def continue_(self, rest: str) -> None:
        """Run on: continue [N] passes the breakpoint at hand by N - 1 times."""
        self._debugger.need_run()
        if rest:
            left, at = self._debugger.value(rest).number - 1, self._here()
            if left > 0 and at:
                at[0].ignore = left
                if self._debugger.interactive:
                    crossings = f"{left} crossings" if left > 1 else "crossing"
                    text = f"Will ignore next {crossings} of breakpoint {at[0].number}."
                    self._debugger.put(f"{text}  Continuing.")
        self.go(cmd.Continue())

    def call(self, rest: str) -> None:
        """Call a function: print its result, unless it has none.

        Of a kernel image it runs as any code does, stops included.
        """
        debugger = self._debugger
        if debugger.control.session.supervisor is None:
            self._looking.call(rest)
            return
        if debugger.state is RunState.ENDED:
            self._begin("")
        debugger.started = True
        self.go(cmd.CallFunction(rest))

    def stepi(self, rest: str) -> None:
        """Execute an instruction: stepi [N]."""
        self._repeat(rest, lambda: self._moved(cmd.StepInsn()))

    def nexti(self, rest: str) -> None:
        """Execute an instruction, a call as one: nexti [N]."""
        self._repeat(rest, lambda: self._moved(cmd.StepOver()))

    def step(self, rest: str) -> None:
        """Run to another source line, into functions: step [N]."""
        self._repeat(rest, lambda: self._lines(over=False))

    def next(self, rest: str) -> None:
        """Run to another source line, over functions: next [N]."""
        self._repeat(rest, lambda: self._lines(over=True))

    def _repeat(self, rest: str, once: Callable[[], bool], *, back: bool = False) -> None:
        """Do a step several times; only the last says where the guest stands."""
        debugger = self._debugger
        if back:
            self.need_past()
        else:
            debugger.need_run()
        count = debugger.value(rest).number if rest else 1
        before = self._activation()
        for _ in range(count):
            if not once():
                return
        self._tell_step(before)

    def _lines(self, *, over: bool) -> bool:
        debugger = self._debugger
        frames = debugger.frames
        frames.selected = 0
        if not frames.all or not frames.frame.line:
            if debugger.settings["step-mode"]:
                return self._moved(cmd.StepOver() if over else cmd.StepInsn())
            name = frames.frame.function if frames.all else ""
            if name:
                debugger.put(f"Single stepping until exit from function {name},")
                debugger.put("which has no line number information.")
            if not self._left_function():
                return False
            if not frames.all or not frames.frame.line or frames.begins_line(0):
                return True  # in the middle of the caller's line gdb finishes that
        if not over and frames.enter() and not self._is_skipped():
            return True
        depth, start = self._depth(), frames.frame
        line, same = start.line, False
        while True:
            unknown = not over and bool(debugger.settings["step-mode"])
            before = [one.pc for one in frames.all if one.source != TAIL]
            if not self._moved(cmd.StepLine(over, unknown, same)):
                return False
            same, same_before = False, same
            here = frames.frame
            if not over and self._depth() > depth and self._is_skipped():
                if not self._moved(cmd.Finish()):
                    return False
                if frames.begins_line(0) and frames.frame.line != line:
                    return True
                continue  # the line of the call is not over
            if self._depth() < depth and not frames.begins_line(0) and here.line:
                # Back in the caller, in the middle of the line of the call: gdb finishes it.
                depth, line = self._depth(), here.line
                # A row of lines that begins without a statement where the call returns to does
                # not count as the line at hand.
                same = debugger.places.begins_no_statement(before[-depth])
                continue
            deeper = here.function != start.function or self._depth() > depth
            if not over and deeper and here.line:
                return self._pass_prologue()
            if self._depth() == depth and here.line and here.function == start.function:
                again = frames.begins_line(0) and here.line == line and same_before
                if again or not frames.begins_line(0):
                    same = True  # gdb goes on to where another line begins
                    continue
            return True

    def _left_function(self) -> bool:
        """Leave a function without lines; one that nothing has called is left step by step."""
        debugger = self._debugger
        frames = debugger.frames
        if len(frames.all) > 1 or not frames.all:
            return self._moved(cmd.Finish())
        space = debugger.places.function_span(frames.frame.pc)
        if space is None:
            return self._moved(cmd.StepOver())
        while frames.all and frames.frame.pc in space:
            if not self._moved(cmd.StepOver()):
                return False
        return True

    def _is_skipped(self) -> bool:
        """True in a function that `skip` names."""
        debugger = self._debugger
        frame = debugger.frames.frame
        return self.skips(frame.function, debugger.files.written(frame.file))

    def _pass_prologue(self) -> bool:
        """A step into a function ends behind its prologue; False at a breakpoint there."""
        debugger = self._debugger
        at = debugger.frames.frame.pc
        body = debugger.places.body_at(at)
        if body != at:
            return self._moved(cmd.RunTo(body, alone=True)) and not self._tell_here()
        return True

    def _tell_here(self) -> bool:
        """Tell of breakpoints to which a step has led; False without one that wants to stop."""
        stops, at = self._debugger.stops, self._debugger.frames.frame.pc
        reached: list[UserStop] = []
        for stop in self._here():
            if stops.wants(stop):
                stop.hit = next((one for one in stop.locations if one.place.address == at), None)
                reached.append(stop)
        stops.reached += reached
        if reached:
            self._tell_hit(reached, "")
        return bool(reached)

    def _depth(self) -> int:
        return sum(one.source != TAIL for one in self._debugger.frames.all)

    def _activation(self) -> _Activation:
        frames = self._debugger.frames.all
        if not frames:
            return "", None, None
        return frames[0].function, frames[0].cfa, frames[1].pc if len(frames) > 1 else None

    def _tell_step(self, before: _Activation) -> None:
        """Tell where the guest stands after a step: the function only if it is another one.

        As in gdb, a call of the same function that a step returns to is no other one, if the step
        goes on from the middle of its line.
        """
        debugger, looking = self._debugger, self._looking
        frames = debugger.frames
        here = self._activation()
        same = here[:2] == before[:2]
        if not same and here[0] == before[0] and here[1] is not None and before[1] is not None:
            same = here[1] > before[1] and frames.frame.pc != before[2]
        alone = same and bool(frames.frame.file)
        if not alone:
            debugger.put(frames.heading(0, with_number=False))
        looking.show_source(0, alone=alone)
        looking.show_displays()

    def finish(self, rest: str) -> None:
        """Run until the function that is looked at has returned, and print its result."""
        debugger, frames = self._debugger, self._debugger.frames
        debugger.need_run()
        number = frames.selected
        supervisor = debugger.control.session.supervisor
        if supervisor is not None and supervisor.running is not None and len(frames.all) == 1:
            self._moved(cmd.Finish())
            return
        if number + 1 >= len(frames.all):
            raise CommandError('"finish" not meaningful in the outermost frame.')
        returned = ReturnedValue(debugger, number)
        jumped, outer = frames.all[number].source == TAIL, number + 1
        while outer + 1 < len(frames.all) and frames.all[outer].source == TAIL:
            outer += 1  # nothing returns to what has jumped away
        if frames.all[outer].source == CALLED:
            call = debugger.calls.of_frame(frames.all[outer])
            self._finish_call(call, returned, cmd.Continue() if number else cmd.Finish())
            return
        if not (self._moved(cmd.Finish()) if not number else self._returned_to(outer)):
            return
        self._tell_stop()
        if not jumped:
            returned.tell()

    def _finish_call(
        self, call: ProgramCall | None, returned: ReturnedValue, command: cmd.Command
    ) -> None:
        """Run until a function that was called in the program has returned; tell its result."""
        debugger = self._debugger
        before = debugger.thread
        self._lock(command)
        debugger.move(command)
        if call is None or debugger.calls.returned() is not call:
            if self.told(before):  # in the past, where the registers have been put back
                self._tell_stop()
            return
        tell = returned.tell_later()
        debugger.calls.leave(call)
        self._tell_stop()
        tell()

    # -- backwards --------------------------------------------------------------------------

    def need_past(self) -> None:
        """Refuse what only a program can do that has run, be it that it has ended.

        Raises:
            CommandError: it has not.
        """
        debugger = self._debugger
        if debugger.control.history() is None or debugger.control.state is RunState.READY:
            debugger.need_process()
        debugger.started = True

    def reverse_continue(self, rest: str) -> None:
        """Go back to the last hit of a breakpoint, or to the first instruction."""
        self.need_past()
        self.go(cmd.ContinueBack())

    def reverse_stepi(self, rest: str) -> None:
        """Go back by an instruction: reverse-stepi [N]."""
        self._repeat(rest, lambda: self._moved(cmd.StepBack()), back=True)

    def reverse_nexti(self, rest: str) -> None:
        """Go back by an instruction, over a call that has returned: reverse-nexti [N]."""
        self._repeat(rest, lambda: self._moved(cmd.StepBack(over=True)), back=True)

    def reverse_step(self, rest: str) -> None:
        """Go back to the begin of the source line before, into functions: reverse-step [N]."""
        self._repeat(rest, lambda: self._moved(cmd.LineBack()), back=True)

    def reverse_next(self, rest: str) -> None:
        """Go back to the begin of the source line before, over functions: reverse-next [N]."""
        self._repeat(rest, lambda: self._moved(cmd.LineBack(over=True)), back=True)

    def reverse_finish(self, rest: str) -> None:
        """Go back to the call of the function at hand."""
        self.need_past()
        self.go(cmd.FinishBack())

    def last_write(self, rest: str) -> None:
        """Go back to what has last written to a value in memory or a register: last-write EXPR."""
        asked = self._asked(rest)
        if asked.register:
            thread, callee = asked.thread, asked.callee
            self.go(cmd.LastRegisterWrite(asked.register, thread, callee))
        else:
            self.go(cmd.LastWrite(asked.first, asked.size))

    def _asked(self, rest: str) -> cmd.Origin:
        """The value that is asked about, in memory or in a register.

        Raises:
            CommandError: it is in neither.
        """
        debugger = self._debugger
        self.need_past()
        if not rest:
            raise CommandError("Argument required (expression to compute).")
        value = debugger.value(rest)
        place, size = value.place, value.type.size or 1
        if isinstance(place, RegisterPlace) and not value.missing:
            if not rest.lstrip().startswith("$"):
                debugger.put(f"{rest} is in ${place.name} here.")
            frames = debugger.frames
            callee = frames.callee(frames.selected) if frames.all else None
            meant = None
            if callee is not None:
                if callee.cfa is None:
                    raise CommandError("it is not known where the calls inside of this one begin")
                meant = callee.pc, callee.cfa
            return cmd.Origin(rest, place.name, place.offset, size, debugger.thread, meant)
        if value.address is None or value.missing:
            raise CommandError("Attempt to take address of value not located in memory.")
        return cmd.Origin(rest, "", value.address, size, debugger.thread)

    def origin(self, rest: str) -> None:
        """Tell where a value came from: origin EXPR; origin N goes to link N, origin: again."""
        debugger, number = self._debugger, rest.strip()
        links = debugger.control.sight.links
        if number.isdecimal() or not number:
            self.need_past()
            if not links:
                raise CommandError("No value has been followed.  origin EXPR follows one.")
            if not number:
                self._tell_links(links)
                return
            if len(number) > _DIGITS or int(number) >= len(links):
                raise CommandError(f"No link {number[:_DIGITS]}: 0 to {len(links) - 1}.")
            link = links[int(number)]
            self.go(cmd.Seek(link.clock, link.pc))
            return
        selected = debugger.frames.selected
        debugger.move(self._asked(rest))
        view = debugger.control.view()
        if debugger.frames.all:
            debugger.frames.select(selected)
        self._tell_links(debugger.control.sight.links)
        if view.cause is StopCause.INTERRUPTED:
            debugger.put("Cut off: the value is from further back.")

    def _tell_links(self, links: tuple[OriginLink, ...]) -> None:
        put = self._debugger.put
        for number, link in enumerate(links):
            where = f"{link.pc:#x} <{link.symbol}>" if link.symbol else f"{link.pc:#x}"
            line = f" at {link.line}" if link.line else ""
            if link.insn:
                put(f"#{number:<3} tick {link.clock}, thread {link.thread}: {where}{line}")
                put(f"     {link.insn}")
            else:
                put(f"#{number:<3} the start")
            put(f"     {link.where} = {link.value}: {link.what}{_ENDS[link.end]}")

    def first_time(self, rest: str) -> None:
        """Go to the first moment of the recorded run at which a value is true: first-time EXPR."""
        self._time(rest, cmd.FirstTime(rest))

    def last_time(self, rest: str) -> None:
        """Go back to the last moment before this at which a value became true: last-time EXPR."""
        self._time(rest, cmd.LastTime(rest))

    def _time(self, rest: str, command: cmd.Command) -> None:
        self.need_past()
        if not rest:
            raise CommandError("Argument required (expression to compute).")
        self._conditions.ask(rest)
        self.go(command)

    def _returned_to(self, number: int) -> bool:
        """Run until a frame further out is the innermost; True if it is."""
        target = self._debugger.frames.all[number]
        stop = self._own(target.pc, lambda: self._innermost() == target.cfa)
        try:
            return self._moved(cmd.Continue())
        finally:
            self._debugger.stops.delete(stop)

    def _own(self, address: int, only: Callable[[], bool]) -> UserStop:
        """A stop for the thread in sight alone, where a condition holds."""
        debugger = self._debugger
        with debugger.control.sight.visit():
            moved = SteppingThread(debugger.control.session)
        return debugger.stops.add_own(debugger.places.at(address), lambda: moved.runs and only())

    def _innermost(self) -> int | None:
        """The CFA of the frame where the guest is at a hit."""
        frames = self._debugger.frames
        frames.moved()
        return frames.innermost().cfa

    def until(self, rest: str) -> None:
        """Run to a place in this frame, or to a later line of the function: until [PLACE]."""
        debugger = self._debugger
        debugger.need_run()
        if rest:
            self._run_to(rest, same_frame=True)
            return
        debugger.frames.selected = 0
        before, start = self._activation(), debugger.frames.frame
        while self._lines(over=True):
            here = debugger.frames.frame
            if here.cfa != start.cfa or here.pc > start.pc:
                self._tell_step(before)
                return

    def advance(self, rest: str) -> None:
        """Run to a place: advance PLACE."""
        self._debugger.need_run()
        if not rest:
            raise CommandError("Argument required (a location).")
        self._run_to(rest, same_frame=False)

    def _run_to(self, rest: str, *, same_frame: bool) -> None:
        """Run to a place, or until the frame that is looked at has returned."""
        debugger, frames = self._debugger, self._debugger.frames
        place, start = debugger.place(rest), frames.frame
        behind = frames.selected + 1
        caller = frames.all[behind] if behind < len(frames.all) else None
        floor = start.cfa or 0

        def left() -> bool:
            return (self._innermost() or 0) > floor

        def reached() -> bool:
            return not same_frame or (self._innermost() or 0) >= floor

        stops = [self._own(place.address, reached)]
        try:
            if caller is not None and caller.pc != place.address and caller.source != CALLED:
                stops.append(self._own(caller.pc, left))
            if self._moved(cmd.Continue()) or self._left_call:
                self._tell_stop()
        finally:
            for stop in stops:
                debugger.stops.delete(stop)

    def jump(self, rest: str) -> None:
        """Go on at another place: jump PLACE."""
        debugger = self._debugger
        debugger.need_run()
        if not rest:
            raise CommandError("Argument required (starting address).")
        address = debugger.place(rest).address
        debugger.forget_kept()
        debugger.execute(cmd.WriteRegister(debugger.control.session.arch.roles.pc, address))
        debugger.frames.moved()
        if debugger.interactive:
            debugger.put(f"Continuing at {address:#x}.")
        if not self._tell_here():
            self.go(cmd.Continue())

    def return_(self, rest: str) -> None:
        """Leave a function without carrying the rest of it out: return [EXPR]."""
        debugger, frames = self._debugger, self._debugger.frames
        if not debugger.started:
            raise CommandError("No selected frame.")
        debugger.need_run()
        session = debugger.control.session
        if session.arch.returns is not None:
            raise CommandError("return is not there on this architecture; finish is.")
        number = frames.selected
        if number + 1 >= len(frames.all):
            raise CommandError("Can not force return from the outermost frame")
        scope = frames.scope(number)
        declared = scope.scope.returns if scope.scope is not None else None
        kind: CType = INT if declared is None else declared
        value = Evaluator(scope).operators.cast(debugger.value(rest), kind) if rest else None
        target = frames.all[number + 1]
        call = debugger.calls.of_frame(target)
        if call is not None:
            debugger.calls.leave(call)
            if debugger.interactive:
                self._looking.show_frame()
            return
        known = dict(target.registers)
        if session.arch.roles.pc not in known or session.arch.roles.sp not in known:
            raise CommandError("The caller's registers are not known.")
        debugger.forget_kept()
        for name, content in known.items():
            if session.cpu.read_register(name) != content:
                debugger.execute(cmd.WriteRegister(name, content))
        frames.moved()
        if value is not None:
            register = frames.scope(0).results.only_register(kind)
            number = int.from_bytes(value.raw, scope.order)
            debugger.execute(cmd.WriteRegister(register, number))
            frames.moved()
        if debugger.interactive:
            self._looking.show_frame()

    def kill(self, rest: str) -> None:
        """End the program."""
        debugger = self._debugger
        debugger.need_process()
        pid = debugger.control.session.machine.first.pid
        hits = {stop.number: stop.hits for stop in debugger.stops.all.values()}
        debugger.restart()
        for number, count in hits.items():  # they are forgotten by the next `run`
            if number in debugger.stops.all:
                debugger.stops.all[number].hits = count
        debugger.put(f"[Inferior 1 (process {pid}) killed]")

    # -- stops ------------------------------------------------------------------------------

    def go(self, command: cmd.Command) -> None:
        """Run to a stop, and tell of it."""
        if self._moved(command):
            self._tell_stop()

    def _moved(self, command: cmd.Command) -> bool:
        """Let the guest move; True if it has come where the command leads.

        Else the stop, or the end, has been told.
        """
        debugger = self._debugger
        before = debugger.thread
        self._lock(command)
        debugger.move(command)
        return self.told(before)

    def _lock(self, command: cmd.Command) -> None:
        """Have one thread run alone, or not, as `set scheduler-locking` says."""
        wanted = self._debugger.settings["scheduler-locking"]
        stepping = kind_of(command) is CommandKind.STEP
        alone = wanted == "on" or (wanted == "step" and stepping)
        if alone != self._alone:
            self._debugger.execute(cmd.StepAlone(on=alone))
            self._alone = alone

    def told(self, before: int) -> bool:
        """Tell the stop, or the end, to which the guest has moved; True if it has arrived.

        Args:
            before: the thread that was looked at before.
        """
        debugger = self._debugger
        call = debugger.calls.returned()
        self._left_call = call is not None
        if call is not None:
            debugger.calls.leave(call)
            return False
        view, reached = debugger.control.view(), debugger.stops.reached
        news = debugger.threads.news()
        if debugger.settings["print thread-events"] and not debugger.attached:
            for line in news:
                debugger.put(line)
        if view.state is RunState.ENDED:
            debugger.calls.ended()
            if debugger.control.session.left_standing:
                self._tell_cut_short(before)
            else:
                self._ended()
            return False
        if view.cause is not StopCause.ARRIVED:
            self._tell_switch(before)
        if view.cause is StopCause.INTERRUPTED:
            debugger.put("")
            debugger.put(received_text(SIGINT))
            self._tell_stop()
            return False
        if view.cause is StopCause.SIGNAL and debugger.signal:
            debugger.put("")
            debugger.put(received_text(debugger.signal, debugger.threads.culprit))
            self._tell_stop()
            return False
        if view.cause in _TOLD and all(stop.number for stop in reached):
            self._tell_hit(reached, view.reason)
            return False
        if view.cause is StopCause.CALL:
            self._tell_call(view.reason)
            return False
        if view.cause in (StopCause.CUT_SHORT, StopCause.FOUND):
            debugger.put(view.reason)
            self._tell_stop()
            return False
        return True

    def _tell_call(self, reason: str) -> None:
        """Functions that were called have returned, as their output says, or one is stuck."""
        debugger = self._debugger
        supervisor = debugger.control.session.supervisor
        over = supervisor is None or supervisor.running is None
        if debugger.attached or not over:
            debugger.put(reason)
        if not over:
            self._tell_stop()

    def _here(self) -> list[UserBreakpoint]:
        """The breakpoints at pc."""
        debugger = self._debugger
        return debugger.stops.at(debugger.control.view().pc)

    def _tell_switch(self, before: int) -> None:
        """Say that another thread than the selected one has been stopped."""
        debugger = self._debugger
        if debugger.thread != before:
            debugger.put(f"[Switching to {debugger.threads.text()}]")

    def signal(self, rest: str) -> None:
        """Go on with a signal, or with 0 without the one that has stopped the program."""
        debugger = self._debugger
        debugger.need_run()
        if not rest:
            raise CommandError("Argument required (signal number).")
        if debugger.control.of_recording:
            raise CommandError("A recording gets the signals that were recorded.")
        debugger.give_signal(0 if rest == "0" else signal_number(rest))
        self.go(cmd.Continue())

    def _tell_hit(self, reached: list[UserStop], reason: str) -> None:
        """A stop of the user's; without a number it was placed with other words than these."""
        debugger, looking = self._debugger, self._looking
        self.at_stop()  # as in gdb's normal_stop: before the commands, whatever is printed
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
                    debugger.set_convenience("_hit_bpnum", made(INT, stop.number, "little"))
                    part = made(INT, stop.hit_number, "little")
                    debugger.set_convenience("_hit_locno", part)
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

    def tell_stop(self) -> None:
        """Tell of the stop at hand, to which no word has led."""
        reached = self._debugger.stops.reached
        if reached:
            self._tell_hit(reached, self._debugger.control.view().reason)
        else:
            self._looking.show_displays()

    def _tell_stop(self) -> None:
        """A stop that is no breakpoint's."""
        self.at_stop()
        self._debugger.put(self._debugger.frames.heading(0, with_number=False))
        self._looking.show_source(0)
        self._looking.show_displays()

    def _tell_cut_short(self, before: int) -> None:
        """A deadlock or a limit has ended the run: the program is looked at as it stands then."""
        debugger = self._debugger
        machine = debugger.control.session.machine
        assert machine.exit is not None, "it has ended"
        pid, limit = machine.first.pid, machine.exit.limit
        debugger.put(f"[Inferior 1 (process {pid}) stopped: {limit}]")
        self._tell_switch(before)
        self._tell_stop()

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
            debugger.set_convenience("_exitsignal", made(INT, end.signal, "little"))
            if debugger.started:
                self._tell_stop()
            else:
                debugger.put("The program no longer exists.")
            return
        code = debugger.control.view().exit_code or 0
        debugger.set_convenience("_exitcode", made(INT, code, "little"))
        if end is not None and end.limit:
            debugger.put(f"[Inferior 1 (process {pid}) stopped: {end.limit}]")
        elif code:
            debugger.put(f"[Inferior 1 (process {pid}) exited with code 0{code:o}]")
        else:
            debugger.put(f"[Inferior 1 (process {pid}) exited normally]")
