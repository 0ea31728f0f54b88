"""Calls of functions in the program itself, as gdb makes them (gdb/infcall.c, gdb/dummy-frame.c).

The function runs where the program stands, and returns to an address at which a breakpoint of the
debugger's own ends the call: then the registers are put back. Where it stops before, the program
stands in the function, its caller's frame is `<function called from gdb>`, and the expression is
given up; once the function returns, the registers are put back without a word.

The return address is the second instruction of the program's entry code: code that is there in
every program, of which unwind tables say that nobody has called it, and to which nothing returns.
What the call changes is part of a recorded run. A frame of a call is shown wherever the stack
leads to its return address with its stack pointer, so that none is shown before the call or
behind its end, to whatever moment of the run the user goes.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.cpu.ram import PAGE
from engine.errors import CommandError
from engine.linux.thread import KeptSignal
from engine.message_text import bare_name
from engine.session.debugger.script import ScriptLine
from engine.session.debugger.stops import UserBreakpoint, UserStop
from engine.session.guest.called_frames import CalledFrame
from engine.session.guest.calling import CallOutcome
from engine.session.guest.entering import CallArguments, CopiedObject, enter
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import CALLED, GuestFrame
from engine.session.protocol.views import RunState, StopCause

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger

_PAST: Final = 1000
"""Calls of a recorded run that are over and whose frames its past still shows."""
_ALLOCATOR: Final = "malloc"
_TERMINATE: Final = "_ZSt9terminatev"
"""std::terminate()"""


class CallLeftError(CommandError):
    """An expression is given up, as a function that it calls has stopped."""


class _StopState(Struct, frozen=True):
    """State of a debugger at the stop at which a call is made.

    Attributes:
        reached: the stops that have been reached there.
        pending: commands of theirs that are still to be carried out.
        signal: the signal that has stopped the program; 0 for none.
        kept: the same, kept back from the program.
        reason: of the stop, in words.
        cause: of the stop.
    """

    reached: tuple[UserStop, ...]
    pending: tuple[ScriptLine, ...]
    signal: int
    kept: KeptSignal | None
    reason: str
    cause: StopCause


class ProgramCall(Struct, eq=False):
    """A function that was called and has not returned.

    Attributes:
        name: of the function.
        frame: of the call.
        thread: id of the thread that calls.
        stop: where the program stood.
    """

    name: str
    frame: CalledFrame
    thread: int
    stop: _StopState


class ProgramCalls:
    """Calls functions of one debugger's program.

    Attributes:
        frames: of the calls; of a recorded run those too that are over, for its past.
        is_running: a function runs whose expression is still waited for.
        tell: tells a stop, given the thread that was looked at before.
    """

    def __init__(self, debugger: "Debugger") -> None:
        """Call functions of a debugger's program."""
        self._debugger = debugger
        self.frames: list[CalledFrame] = []
        self.is_running = False
        self.tell: Callable[[int], object] = lambda before: None
        self._calls: list[ProgramCall] = []
        self._end: UserBreakpoint | None = None

    def call(self, address: int, given: CallArguments, results: tuple[str, ...]) -> CallOutcome:
        """Call a function.

        Args:
            address: of the function.
            given: its arguments.
            results: registers whose values are told.

        Raises:
            CallLeftError: the program has stopped in the function, or has ended.
            CommandError: it cannot be called.
        """
        self._debugger.control.check_calls()
        whole = tuple(self._kept(one) for one in given.whole)
        outcome = self._called(address, replace(given, whole=whole), results)
        for one, place in zip(given.whole, whole, strict=True):
            copied = isinstance(one, CopiedObject) and place != one.address
            if isinstance(one, CopiedObject) and copied and one.destructor:
                self._called(one.destructor, CallArguments((place,)), ())
        return outcome

    def _called(self, address: int, given: CallArguments, results: tuple[str, ...]) -> CallOutcome:
        debugger = self._debugger
        control, selected = debugger.control, debugger.frames.selected
        call, room = self._enter(address, given)
        terminates = self._run(call)
        if self._returned() is call:
            with control.sight.visit():
                values = control.session.cpu.read_registers(results)
                pages = self._pages(room, given.room)
            self.leave(call)
            debugger.frames.selected = selected
            return CallOutcome(dict(zip(results, values, strict=True)), room, pages)
        raise CallLeftError(self._left(call, terminates=terminates))

    # -- the call ---------------------------------------------------------------------------

    def _name_of(self, address: int) -> str:
        """A function by its address, as gdb calls it (gdb/infcall.c, get_function_name)."""
        described = self._debugger.places.code_of(address)[1]
        if described:
            return described
        symbol = self._debugger.control.session.seen.modules.locate(address).symbol
        if symbol is None:
            return f"at 0x{address:#x}"
        name = symbol.demangled
        return name[max(name.find(bare_name(name)), 0) :]  # without the type of its result

    def _enter(self, address: int, given: CallArguments) -> tuple[ProgramCall, int]:
        """Stand at the function's first instruction; the call, and the room for its result."""
        debugger = self._debugger
        control = debugger.control
        session, running = control.session, control.sight.here.running
        machine, back = session.machine, self._return_address()
        thread = machine.current
        names = [one.name for one in session.arch.registers]
        before = {name: session.cpu.read_register(name) for name in names}
        stop = _StopState(
            tuple(debugger.stops.reached),
            tuple(debugger.pending),
            debugger.signal,
            thread.kept_signal,
            running.reason,
            running.cause,
        )
        name = self._name_of(address)
        try:
            with control.changed():
                entered = enter(session, machine.registers, address, given, back)
                frame = CalledFrame(back, entered.sp, before)
                self.frames.append(frame)  # for the view of this moment
        except BaseException:
            self._put_back(before)
            raise
        thread.kept_signal = None
        call = ProgramCall(name, frame, thread.tid, stop)
        self._calls.append(call)
        debugger.frames.moved()
        try:
            if self._end is None:
                place = debugger.places.at(back)
                self._end = debugger.stops.add_own(place, lambda: self._returned() is not None)
        except BaseException:
            self.leave(call)
            raise
        return call, entered.room

    def _run(self, call: ProgramCall) -> bool:
        """Run to a stop; True if that is where an exception ends the program."""
        debugger = self._debugger
        terminate = self._watch_terminate(call)
        watched, self.is_running = self.is_running, True
        try:
            # Whoever ends a word that reads files does not end the program's run.
            with debugger.control.sight.reading.listening(lambda: None):
                here = debugger.stops.at(debugger.control.view().pc)
                debugger.stops.reached[:] = [one for one in here if debugger.stops.wants(one)]
                if debugger.stops.reached:
                    running = debugger.control.sight.here.running
                    running.reason, running.cause = "breakpoint", StopCause.HIT
                else:
                    debugger.move(cmd.Continue())
                return terminate is not None and terminate in debugger.stops.reached
        finally:
            self.is_running = watched
            if terminate is not None:
                debugger.stops.delete(terminate)
            debugger.frames.moved()

    def _left(self, call: ProgramCall, *, terminates: bool) -> str:
        """Tell of the stop at which a function has not returned; why that is, in words."""
        debugger = self._debugger
        given_up = "Evaluation of the expression containing the function"
        if terminates:
            self.leave(call)
            return (
                "The program being debugged entered a std::terminate call, most likely\n"
                "caused by an unhandled C++ exception.  GDB blocked this call in order\n"
                "to prevent the program from being terminated, and has restored the\n"
                "context to its original state before the call.\n"
                'To change this behaviour use "set unwind-on-terminating-exception off".\n'
                f"{given_up} ({call.name})\nwill be abandoned."
            )
        view = debugger.control.view()
        signalled = view.cause in (StopCause.SIGNAL, StopCause.INTERRUPTED)
        ended = view.state is RunState.ENDED
        self.tell(call.thread)
        rest = f"{given_up}\n({call.name}) will be abandoned."
        stays = f"{rest}\nWhen the function is done executing, GDB will silently stop."
        if ended:
            return (
                f"The program being debugged exited while in a function called from GDB.\n{rest}"
            )
        if debugger.thread != call.thread:
            what = "received a signal" if signalled else "stopped"
            where = "in another thread while making a function call from GDB."
            return f"The program being debugged {what} {where}\n{stays}"
        if not signalled:
            why = "The program being debugged stopped while in a function called from GDB."
            return f"{why}\n{stays}"
        why = "The program being debugged was signaled while in a function called from GDB."
        if debugger.settings["unwindonsignal"]:
            self.leave(call)
            return (
                f"{why}\nGDB has restored the context to what it was before the call.\n"
                f'To change this behavior use "set unwindonsignal off".\n{rest}'
            )
        return (
            f"{why}\nGDB remains in the frame where the signal was received.\n"
            f'To change this behavior use "set unwindonsignal on".\n{stays}'
        )

    # -- the end of a call --------------------------------------------------------------------

    def returned(self) -> ProgramCall | None:
        """The call whose function has returned where the program stands now."""
        control = self._debugger.control
        stands = control.state is RunState.STOPPED and not control.sight.place.in_past
        return self._returned() if stands else None

    def _returned(self) -> ProgramCall | None:
        session = self._debugger.control.session
        if not self._calls or session.machine.exit is not None:
            return None
        roles, thread = session.arch.roles, session.machine.current.tid
        pc = session.seen.hooks.original_pc(session.cpu.read_register(roles.pc))
        sp = session.cpu.read_register(roles.sp)
        for call in reversed(self._calls):
            if (call.frame.pc, call.frame.sp, call.thread) == (pc, sp, thread):
                return call
        return None

    def of_frame(self, frame: GuestFrame) -> ProgramCall | None:
        """The call that a frame stands for."""
        sp = frame.registers.get(self._debugger.control.session.arch.roles.sp)
        if frame.source != CALLED:
            return None
        return next((one for one in self._calls if one.frame.sp == sp), None)

    def leave(self, call: ProgramCall) -> None:
        """Have the thread where it stood before a call; its calls within that are over, too."""
        debugger = self._debugger
        control, stop = debugger.control, call.stop
        later = self._calls[self._calls.index(call) :]
        over = [one for one in later if one.thread == call.thread]
        self._calls = [one for one in self._calls if one not in over]
        self._drop([one.frame for one in over])
        if self._end is not None and not self._calls:
            ended, self._end = self._end, None
            debugger.stops.delete(ended)
        thread = control.sight.here.focus.thread
        self._put_back(call.frame.registers)
        thread.kept_signal, thread.kept_call = stop.kept, None
        debugger.stops.reached[:], debugger.pending[:] = stop.reached, stop.pending
        debugger.signal = stop.signal
        running = control.sight.here.running
        running.reason, running.cause = stop.reason, stop.cause
        debugger.frames.moved()

    def _put_back(self, registers: Mapping[str, int]) -> None:
        """Write the registers that are other than they were."""
        control = self._debugger.control
        session = control.session
        with control.changed():
            for name, value in registers.items():
                if session.cpu.read_register(name) != value:
                    session.machine.registers.write_register(name, value)

    def _drop(self, over: list[CalledFrame]) -> None:
        """Forget frames of calls that are over, but for those that the past may show."""
        if self._debugger.control.config.history:
            lasting = {id(one.frame) for one in self._calls}
            past = [one for one in self.frames if id(one) not in lasting]
            over = past[: max(len(past) - _PAST, 0)]
        gone = {id(one) for one in over}
        self.frames[:] = [one for one in self.frames if id(one) not in gone]

    def forget(self) -> None:
        """The program is about to be another one, of which nothing was called."""
        self.ended()
        self.frames = []

    def ended(self) -> None:
        """The program has ended, and no function of it returns any more."""
        self._calls.clear()
        if self._end is not None:
            ended, self._end = self._end, None
            self._debugger.stops.delete(ended)

    # -- what is needed for it ------------------------------------------------------------------

    def _return_address(self) -> int:
        """The second instruction of the program's entry code."""
        session = self._debugger.control.session
        main = session.seen.modules.main
        if main is None:
            raise CommandError("Functions are not called here: no program is known.")
        entry = main.image.entry + main.bias
        insns = session.disassembler.decode(entry, session.code_at(entry))
        return entry + (insns[0].size if insns else 0)

    def _pages(self, room: int, size: int) -> dict[int, bytes]:
        """The memory that holds a result, which the next call overwrites."""
        memory = self._debugger.control.session.machine.current.memory
        first, end = room & -PAGE, room + size
        return {at: memory.read(at, PAGE) for at in range(first, end, PAGE)} if size else {}

    def _watch_terminate(self, call: ProgramCall) -> UserBreakpoint | None:
        """Stop where an exception that nobody catches ends the program, if that is wanted."""
        debugger = self._debugger
        if not debugger.settings["unwind-on-terminating-exception"]:
            return None
        address = self._function(_TERMINATE)
        if address is None:
            return None
        machine = debugger.control.session.machine
        place = debugger.places.at(address)
        return debugger.stops.add_own(place, lambda: machine.current.tid == call.thread)

    def _kept(self, given: int | bytes | CopiedObject) -> int | bytes:
        """An argument that a function may keep the address of: in memory that malloc has given.

        An object that its class copies is copied there (gdb/infcall.c, value_arg_coerce).
        """
        if isinstance(given, int):
            return given
        itself = given.address if isinstance(given, CopiedObject) else given
        size = given.size if isinstance(given, CopiedObject) else len(given)
        allocate = self._function(_ALLOCATOR)
        if allocate is None:
            return itself
        result = self._debugger.control.session.arch.linux.result
        made = self._called(allocate, CallArguments((size,)), (result,))
        address = made.registers[result]
        if not address:
            return itself
        if isinstance(given, CopiedObject):
            self._called(given.constructor, CallArguments((address, given.address)), ())
            return address
        with self._debugger.control.changed():
            self._debugger.control.session.machine.current.memory.write(address, given)
        return address

    def _function(self, name: str) -> int | None:
        """The address of a function of the program; None for a program without it."""
        debugger = self._debugger
        seen = debugger.control.session.seen
        loader = seen.modules.main and seen.modules.main.image.interpreter
        for module in debugger.files.modules(there=seen):
            for symbol in module.symbols.find_all(name) if module.name != loader else ():
                if symbol.is_function and symbol.size:
                    return symbol.address + module.bias
        return None
