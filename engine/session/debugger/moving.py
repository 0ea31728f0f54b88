"""Words that let the guest run: steps, ends of functions, places to run to."""

from collections.abc import Callable
from typing import Final

from engine.errors import CommandError, take_nothing
from engine.language.evaluation import Evaluator
from engine.language.value_types import INT, CType
from engine.language.values import RegisterPlace
from engine.session.control.stepping_thread import SteppingThread
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.looking import Looking
from engine.session.debugger.past_conditions import PastConditions
from engine.session.debugger.program_calls import ProgramCall
from engine.session.debugger.returned import ReturnedValue
from engine.session.debugger.signal_rules import signal_number
from engine.session.debugger.stop_reports import Activation, StopReports
from engine.session.debugger.stops import (
    BreakLocation,
    UserBreakpoint,
    UserStop,
    placed_text,
)
from engine.session.inspect.tail_calls import TAIL
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import CALLED
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


class Moving:
    """Moves the guest.

    Attributes:
        reports: say where it stands then.
    """

    def __init__(
        self,
        debugger: Debugger,
        looking: Looking,
        reports: StopReports,
        skips: Callable[[str, str], bool],
    ) -> None:
        """Move a debugger's guest.

        Args:
            debugger: the debugger.
            looking: shows frames.
            reports: say where the guest stands after a move.
            skips: True for a function of a file in which `step` does not stop.
        """
        self.reports = reports
        self._skips = skips
        self._debugger = debugger
        self._looking = looking
        self._conditions = PastConditions(debugger)

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
        self._pass_by(rest)
        self.go(cmd.Continue())

    def _pass_by(self, rest: str) -> None:
        """Pass the breakpoint at hand by, all but the last of so many times."""
        if not rest:
            return
        left, at = self._debugger.value(rest).number - 1, self.reports.breakpoints_here()
        if left > 0 and at:
            at[0].ignore = left
            if self._debugger.interactive:
                crossings = f"{left} crossings" if left > 1 else "crossing"
                text = f"Will ignore next {crossings} of breakpoint {at[0].number}."
                self._debugger.put(f"{text}  Continuing.")

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
        before: Activation = "", None, None
        with debugger.stepping():
            for _ in range(count):
                before = self.reports.activation()  # the last step's begin decides, as in gdb
                if not once():
                    return
        self.reports.tell_step(before)

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
        around, out = frames.depth(0), False
        while True:
            unknown = not over and bool(debugger.settings["step-mode"])
            before = [one.pc for one in frames.all if one.source != TAIL]
            if not self._moved(cmd.StepLine(over, unknown, same, around, out)):
                return False
            out, same, same_before = False, False, same
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
            if over and self._is_inside_inlined(depth, line):
                out = same = True
                continue
            if not over and self._depth() == depth and here.line == line and frames.enter():
                return True
            if self._depth() == depth and here.line and here.function == start.function:
                again = frames.begins_line(0) and here.line == line and same_before
                if again or not frames.begins_line(0):
                    same = True  # gdb goes on to where another line begins
                    row = debugger.places.span(here.pc)[0]
                    if not debugger.places.begins_no_statement(row):
                        line = here.line  # a jump has led amid another line's code
                    continue
            return True

    def _is_inside_inlined(self, depth: int, line: int) -> bool:
        """True in a function that was inlined into the line that is passed.

        Args:
            depth: of the frame that the step began in.
            line: of its source that is passed.
        """
        frames = self._debugger.frames
        inner = self._depth() - depth
        if not inner:
            return frames.skipped > 0 and frames.frame.line == line
        return inner > 0 and all(one.inlined for one in frames.all[:inner])

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
        return self._skips(frame.function, debugger.files.written(frame.file))

    def _pass_prologue(self) -> bool:
        """A step into a function ends behind its prologue; False at a breakpoint there."""
        debugger = self._debugger
        at = debugger.frames.frame.pc
        body = debugger.places.body_at(at)
        if body != at:
            return self._moved(cmd.RunTo(body, alone=True)) and not self.reports.tell_here()
        return True

    def _depth(self) -> int:
        return sum(one.source != TAIL for one in self._debugger.frames.all)

    def finish(self, rest: str) -> None:
        """Run until the function that is looked at has returned, and print its result."""
        debugger, frames = self._debugger, self._debugger.frames
        debugger.need_run()
        take_nothing("finish", rest)
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
        self.reports.tell_place()
        if not jumped:
            returned.tell()

    def _finish_call(
        self, call: ProgramCall | None, returned: ReturnedValue, command: cmd.Command
    ) -> None:
        """Run until a function that was called in the program has returned; tell its result."""
        debugger = self._debugger
        before = debugger.thread
        debugger.move(command)
        if call is None or debugger.calls.returned() is not call:
            if self.reports.told(before):  # in the past, where the registers have been put back
                self.reports.tell_place()
            return
        tell = returned.tell_later()
        debugger.calls.leave(call)
        self.reports.tell_place()
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
        """Go back to the last hit of a breakpoint, or to the first instruction; N as continue."""
        self.need_past()
        self._pass_by(rest)
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
        take_nothing("reverse-finish", rest)
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
        before, start = self.reports.activation(), debugger.frames.frame
        while self._lines(over=True):
            here = debugger.frames.frame
            if here.cfa != start.cfa or here.pc > start.pc:
                self.reports.tell_step(before)
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
            if self._moved(cmd.Continue()) or self.reports.left_call:
                self.reports.tell_place()
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
        if not self.reports.tell_here():
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
        self._put_back()
        debugger.put(f"[Inferior 1 (process {pid}) killed]")

    def detach(self, rest: str) -> None:
        """Let the program run to its end, whatever it comes by."""
        debugger = self._debugger
        debugger.need_run()
        before, pid = debugger.thread, debugger.control.session.machine.first.pid
        stops = [one for one in debugger.stops.all.values() if one.on]
        for stop in stops:
            debugger.stops.switch(stop, on=False)
        debugger.started = False  # signals pass
        try:
            debugger.move(cmd.Continue())
        finally:
            if debugger.state is RunState.ENDED:
                self._put_back()
            else:
                debugger.started = True
            for stop in stops:
                debugger.stops.switch(stop, on=True)
        if debugger.started:  # the user has stopped it
            self.reports.told(before)
        else:
            debugger.put(f"[Inferior 1 (process {pid}) detached]")

    def _put_back(self) -> None:
        """Put the program back to its beginning; hits count until the next `run`."""
        debugger = self._debugger
        hits = {stop.number: stop.hits for stop in debugger.stops.all.values()}
        debugger.restart()
        for number, count in hits.items():
            if number in debugger.stops.all:
                debugger.stops.all[number].hits = count

    # -- stops ------------------------------------------------------------------------------

    def go(self, command: cmd.Command) -> None:
        """Run to a stop, and tell of it."""
        if self._moved(command):
            self.reports.tell_place()

    def _moved(self, command: cmd.Command) -> bool:
        """Let the guest move; True if it has come where the command leads.

        Else the stop, or the end, has been told.
        """
        debugger = self._debugger
        before = debugger.thread
        debugger.move(command)
        return self.reports.told(before)

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
