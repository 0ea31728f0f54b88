"""The state behind gdb's words: a guest, what is asked of it, and how values are found."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image.reader import DamagedError
from engine.language.convenience_functions import FUNCTIONS
from engine.language.evaluation import checked, evaluate
from engine.language.languages import LANGUAGE_NAMES
from engine.language.reach import Reach
from engine.language.values import TypedValue
from engine.linux.signals import SI_USER, PendingSignal, info_kill
from engine.linux.space import AddressSpace
from engine.linux.thread import KeptSignal
from engine.session.control.control import Control
from engine.session.debugger.frames import SelectedFrames, Sources
from engine.session.debugger.kept_values import KeptValues
from engine.session.debugger.late_places import LatePlaces
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.named_threads import NamedThreads
from engine.session.debugger.output import Guard, OutputLog, Put, WordOutput
from engine.session.debugger.own_functions import OwnFunctions
from engine.session.debugger.places import BlockKey, CodePlace, PlaceFinder
from engine.session.debugger.program_calls import CallLeftError, ProgramCalls
from engine.session.debugger.script import ScriptLine
from engine.session.debugger.settings import SettingValues
from engine.session.debugger.signal_rules import SignalTable
from engine.session.debugger.stop_conditions import StopConditions
from engine.session.debugger.stops import UserBreakpoint, UserStops
from engine.session.guest.calling import CallOutcome
from engine.session.guest.entering import CallArguments
from engine.session.guest.session import Session
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.program_files import Files
from engine.session.inspect.stored_program import StoredProgram
from engine.session.inspect.tail_calls import TailCalls
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import RunState

NOT_RUN: Final = "The program is not being run."


class Display(Struct):
    """An expression that is shown at each stop.

    Attributes:
        number: of it.
        text: the expression.
        form: letters behind the slash.
        on: it is shown.
        function: the one whose variables it names; "" for none.
    """

    number: int
    text: str
    form: str = ""
    on: bool = True
    function: str = ""


class Debugger:
    """One guest in the hands of a user who knows gdb.

    Attributes:
        control: the guest.
        stops: the user's breakpoints.
        pending: commands of the breakpoints that stop the guest, to be carried out next.
        signals: what is done with those that the guest gets.
        signal: the one that stops it, 0 for none.
        output: prints the lines of words; `put`, `put_value`, `complain` and `write` are its own.
        kept: values that the user keeps.
        conditions: of stops.
        displays: expressions that are shown at each stop.
        expand: expands macros in an expression.
        frames: of the guest as it stands.
        settings: the values behind `set` and `show`.
        threads: of the run, by number and name.
        attached: it is in the hands of an interface.
        interactive: somebody types the words: they hear of what is understood, too.
        remote: the words come from a client of a server: none of them may touch the host.
        arguments: the program's, as they were typed.
        changed: its arguments or its environment have been, since it was loaded.
        confirm: questions are asked; in scripts they answer themselves.
        calls_stay: functions are called in the program itself, as a word is carried out.
        calls: calls them.
        watches: asked between two instructions, once there was notice: which watchpoints stop the
            guest, "" for none.
        pending_breakpoints: what becomes of a breakpoint whose place no file has: "on" lets it
            wait for one, "auto" asks, "off" refuses.
    """

    def __init__(
        self,
        control: Control,
        out: Put,
        guard: Guard = nullcontext,
        *,
        complaints: Put | None = None,
        attached: bool = False,
        remote: bool = False,
    ) -> None:
        """Take a guest that stands.

        Args:
            control: the guest under control.
            out: takes what is printed.
            guard: held while the guest may move.
            complaints: takes what went wrong without ending a command; `out` if None.
            attached: the guest is in the hands of an interface, whose list of probes gives the
                numbers.
            remote: the words come from a client of a server.
        """
        self.control = control
        self.settings = SettingValues(self._set)
        if attached:  # as the panes beside the words have instructions
            self.settings.begin("disassembly-flavor", "intel")
        own = OwnFunctions(self)
        self.calls_stay, self.calls = False, ProgramCalls(self)
        self.kept = KeptValues({**FUNCTIONS, **own.all}, own.variables)
        log = OutputLog(self.settings, remote=remote)
        self.output = output = WordOutput(out, complaints, log, guard, control.queue.cuts_short)
        self.put, self.put_value = output.put, output.put_value
        self.complain, self.write = output.complain, output.write
        self._guard = guard
        self.conditions, self._late = StopConditions(self), LatePlaces(self)
        self.confirm, self.pending_breakpoints = not attached, "auto"
        self.attached, self.remote = attached, remote
        self.stops = UserStops(control, self.conditions.holds, self.complain, shared=attached)
        self.pending: list[ScriptLine] = []
        self.signals, self.signal = SignalTable(), 0
        self.displays: dict[int, Display] = {}
        self.interactive = attached
        self._begun = self._was_begun = self.changed = False
        self._stored: tuple[Session, bool, StoredProgram] | None = None
        self.arguments = shlex.join(control.config.args)
        self._expanding = False
        self._steps = self._alone = False
        self.expand: Callable[[str], str] = lambda text: text
        self.watches: Callable[[], str] = lambda: ""
        control.questions.looks = self._looks
        control.questions.mapped = self._late.code_came
        self.renew()

    @property
    def started(self) -> bool:
        """True while there is a program to look at; in an interface from the beginning.

        One that a deadlock or a limit has ended stands as it did at that moment. So does one
        that a signal has killed in an interface, whose panes show its frames and registers.
        """
        session = self.control.session
        if self.control.state is RunState.ENDED:
            end = session.machine.exit
            killed = end is not None and bool(end.signal)
            return session.left_standing or (killed and self.attached and not self.remote)
        return self._begun or self.attached or session.core is not None

    @started.setter
    def started(self, begun: bool) -> None:
        self._begun, self._was_begun = begun, begun or self._was_begun

    def stored(self) -> StoredProgram | None:
        """The program's files where a word looks at these: without a process, as gdb.

        Before the first run they stand at the addresses of the file, after a run where the
        program was. What was recorded or is shown in panes can be looked at after the end, too.
        """
        control = self.control
        session, ended = control.session, control.state is RunState.ENDED
        kept = ended and (control.config.history or control.config.recording is not None)
        if self.started or self.attached or kept or session.supervisor is not None:
            return None
        known = self._stored
        if known is None or known[:2] != (session, self._was_begun):
            self._stored = known = session, self._was_begun, self._as_stored(session)
        return known[2]

    def _as_stored(self, session: Session) -> StoredProgram:
        """The program and, once it has run, its loader: gdb has let its libraries go."""
        modules = session.seen.modules
        main = modules.main
        if main is None:
            return StoredProgram(())
        if not self._was_begun:
            return StoredProgram([Module(main.name, main.image, 0)])
        return StoredProgram([main, *(one for one in modules.known if one is not main)])

    @property
    def displacement(self) -> int:
        """The distance of the program in memory from the addresses that words show for it."""
        stored, main = self.stored(), self.control.session.seen.modules.main
        shown = stored.modules.main if stored is not None else main
        return 0 if main is None or shown is None else main.bias - shown.bias

    def _seen_guest(self) -> AddressSpace:
        seen = self.frames.seen
        return seen if isinstance(seen, AddressSpace) else self.control.session.seen

    def renew(self) -> None:
        """Take up another run of the program."""
        session = self._looked_at = self.control.session
        session.calls = self.calls.frames
        self.threads = NamedThreads(self.control)
        self.files = files = Files(session, self.stored)
        self.places = PlaceFinder(session, files, lambda: self.frames.seen, files.modules)
        self.guest_places = PlaceFinder(
            session, files, self._seen_guest, lambda: files.modules(there=session.seen)
        )
        self.frames = SelectedFrames(
            self.control,
            self._scope,
            Sources(self._displayed, self.settings.sources, closed=self.remote),
            self.places.begun_at,
            self._stopped_in,
            self.settings,
            TailCalls(session, self.files),
            self.files.loaded_names,
            self.stored,
            self.code_label,
        )

    def code_label(self, address: int) -> str:
        """The name of an address beside instructions: the linker's, where nothing else is set."""
        if self.settings["print asm-demangle"]:
            return self.scope.symbol(address)
        return self.places.label(address)

    def _set(self) -> None:
        """A setting has changed."""
        self.frames.renew()
        self.output.log.renew()

    def _displayed(self, path: str) -> str:
        """A source file as `set filename-display` wants it."""
        match self.settings["filename-display"]:
            case "basename":
                return path.rpartition("/")[2]
            case "absolute":
                return path
        return self.files.written(path)

    def _stopped_in(self) -> set[BlockKey]:
        """The blocks of code at whose first instruction a breakpoint of theirs has stopped it."""
        return {
            stop.hit.place.block
            for stop in self.stops.reached
            if isinstance(stop, UserBreakpoint) and stop.hit and stop.hit.place.block
        }

    # -- the guest --------------------------------------------------------------------------

    def execute(self, command: cmd.Command) -> str:
        """Have the guest carry a command out; what it came to, in words.

        Raises:
            KprobeTuiError: it cannot.
        """
        with self._guard():
            return self.control.loop.carry_out(command)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Let `set scheduler-locking step` hold for the motions of a step (schedlock_applies)."""
        before, self._steps = self._steps, True
        try:
            yield
        finally:
            self._steps = before

    def _lock(self) -> None:
        """Have one thread run alone, or not, as `set scheduler-locking` says."""
        wanted = self.settings["scheduler-locking"]
        alone = wanted == "on" or (wanted == "step" and self._steps)
        if alone != self._alone:
            self.execute(cmd.StepAlone(on=alone))
            self._alone = alone

    def move(self, command: cmd.Command) -> str:
        """Have it move; what it came to. What held for the place where it stood is forgotten.

        Raises:
            KprobeTuiError: it cannot.
        """
        self._lock()
        self.stops.reached.clear()
        self.signal = 0
        self.pending.clear()
        try:
            return self.execute(command)
        finally:
            self.follow()
            self.frames.moved()

    def follow(self) -> None:
        """Look at the guest in which the front end stands, if that is another one now."""
        if self.control.session is not self._looked_at:
            self.renew()

    @property
    def state(self) -> RunState:
        """The guest's state."""
        return self.control.view().state

    def need_process(self) -> None:
        """Refuse what needs a program that runs, or that a deadlock or a limit has ended.

        Raises:
            CommandError: it is not being run.
        """
        if not self.started or self.control.session.core is not None:
            raise CommandError(NOT_RUN)

    def need_run(self) -> None:
        """Refuse what only a running program can do.

        Raises:
            CommandError: it is not being run, or nothing of it can go on any more.
        """
        self.need_process()
        if self.control.state is RunState.ENDED:
            raise CommandError(f"The program cannot go on: {self.control.view().reason}.")

    def set_arguments(self, rest: str) -> None:
        """Start the program with these arguments from now on, as a shell would split them.

        Raises:
            CommandError: a quote is not closed.
        """
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise CommandError(f"{rest}: {error}") from None
        self.configure(replace(self.control.config, args=tuple(words)))
        self.arguments = rest

    def configure(self, config: GuestConfig) -> None:
        """Start the program so from now on.

        Raises:
            CommandError: it is a recording's.
        """
        if self.control.config.recording is not None and config != self.control.config:
            raise CommandError(
                "A recording is lived through as it was recorded, with its own arguments and"
                " environment."
            )
        self.changed = self.changed or config != self.control.config
        self.control.config = config

    @property
    def thread(self) -> int:
        """Id of the thread that is looked at."""
        return self.control.thread

    def forget_kept(self) -> None:
        """The program goes on elsewhere: what was kept back for the place is not done."""
        thread = self.control.session.machine.current
        thread.kept_signal = thread.kept_call = None

    def give_signal(self, number: int) -> None:
        """Have the thread go on with a signal in place of the one that is kept back; 0: none."""
        thread = self.control.session.machine.current
        kept = thread.kept_signal
        if not number:
            thread.kept_signal = None
        elif kept is not None and kept.item.number == number:
            thread.kept_signal = kept._replace(passes=True)
        else:
            info = info_kill(number, SI_USER, thread.pid, thread.uid)
            thread.kept_signal = KeptSignal(PendingSignal(number, info), None, passes=True)

    def restart(self) -> None:
        """Put the program back to its beginning, with the same breakpoints."""
        self.calls.forget()
        self.move(cmd.Restart())
        self.started = self.changed = False
        self.renew()
        self.stops.restarted(self._late.again)

    def branched(self) -> None:
        """Follow a switch to another branch of the run: what is watched is watched there."""
        self.renew()
        self.frames.moved()
        for watch in self.stops.watchpoints:
            if watch.on:
                watch.arm(False)
                watch.arm(True)

    # -- files that come and go ---------------------------------------------------------------

    def _looks(self) -> str:
        """Asked between two instructions: why the guest is to stop, in words."""
        self._late.look()
        return self.watches()

    def display(self, text: str, form: str) -> Display:
        """Show an expression at each stop from now on."""
        number = max(self.displays, default=0) + 1
        scope = self.scope
        words = set(re.findall(r"(?<![\w.>$])[A-Za-z_]\w*", text))
        local = scope.scope is not None and any(one.name in words for one in scope.locals())
        function = scope.scope.function if local and scope.scope is not None else ""
        self.displays[number] = Display(number, text, form, function=function)
        return self.displays[number]

    # -- expressions ------------------------------------------------------------------------

    def scope_of(
        self, frame: GuestFrame | None, number: int, *, exact: bool = True, depth: int = 0
    ) -> FrameScope:
        """The meaning of names in a frame that may be one of another moment.

        Args:
            frame: the frame; None for none.
            number: of it.
            exact: its pc is where it goes on, and not behind a call.
            depth: how many functions were inlined into each other down to it.
        """
        return self._scope(frame, number, exact, depth)

    def scope_at(self, place: CodePlace) -> FrameScope:
        """The meaning of names in a frame that would stand at a place."""
        frame = GuestFrame(place.address, place.function, file=place.file, line=place.line)
        return self._scope(frame, 0, True)

    def _scope(
        self,
        frame: GuestFrame | None,
        number: int,
        exact: bool,
        depth: int | None = None,
        stored: StoredProgram | None = None,
    ) -> FrameScope:
        return FrameScope(
            self.control.session,
            self.files,
            frame,
            number=number,
            exact=exact,
            write_memory=self.write_memory,
            write_register=self._write_register,
            convenience=self.kept.variables,
            values=self.kept.history,
            call=self._call_function,
            depth=depth,
            functions=self.kept.functions,
            computed=self.kept.computed,
            caller=lambda: self.frames.scope_of_caller(frame),
            called=lambda name: self.frames.scope_of(name),
            expand=self._expanded,
            spoken=self.spoken,
            read_register=partial(self._read_register, number),
            stored=stored,
        )

    def _read_register(self, number: int, name: str) -> int:
        """A register of the thread in sight, as code behind a frame has left it."""
        interrupted = self.frames.interrupted(number) if number and self.calls.frames else None
        if interrupted is not None:
            return interrupted.registers[name]
        with self.control.sight.visit():
            return self.control.session.cpu.read_register(name)

    @property
    def spoken(self) -> str:
        """The language that the user has chosen, as gdb names it; "" for the code's own."""
        chosen = str(self.settings["language"])
        return "" if chosen in ("auto", "local") else chosen

    @property
    def language_name(self) -> str:
        """The language of the code in sight, or of the program's main, as gdb names it."""
        scope = self.scope
        found, main = scope.scope, self.frames.seen.modules.main
        if found is None and main is not None:
            begins = next(iter(main.symbols.find_all("main")), None)
            try:
                found = None if begins is None else self.files.scope(main, begins.address)
            except (ImageError, DamagedError):
                found = None
        return "c" if found is None else LANGUAGE_NAMES.get(found.language, "c")

    def _expanded(self, text: str) -> str:
        """An expression without macros; at a hit names mean what they did when it was given."""
        return text if self.conditions.asking or self._expanding else self._expand_once(text)

    def _expand_once(self, text: str) -> str:
        self._expanding = True  # frames that are looked for meanwhile have arguments to print
        try:
            return self.expand(text)
        finally:
            self._expanding = False

    def _call_function(
        self, address: int, given: CallArguments, results: tuple[str, ...], keeps: bool
    ) -> CallOutcome:
        """Call a function of the program, which stands."""
        if not self.started or self.control.state is RunState.ENDED:
            raise CommandError("You can't do that without a process to debug.")
        if self.conditions.asking:
            raise CommandError("Functions of the program are not called in conditions.")
        stay = self.calls_stay and not self.settings["calls-on-copy"]
        of_kernel = self.control.session.supervisor is not None  # whose memory is all of its RAM
        if stay and not of_kernel:
            return self.calls.call(address, given, results)
        with self._guard():
            return self.control.call(address, given, results, keeps=keeps)

    def write_memory(self, address: int, data: bytes) -> None:
        """Change memory of the guest.

        Raises:
            KprobeTuiError: it cannot be changed.
        """
        if self.stored() is not None:
            raise GuestFaultError(address, "write")
        self._check_life()
        self.execute(cmd.WriteMemory(address, data))
        self.refresh()

    def _write_register(self, name: str, value: int) -> None:
        self._check_life()
        self.execute(cmd.WriteRegister(name, value))
        self.refresh()

    def _check_life(self) -> None:
        """Refuse changes of a program that has ended.

        Raises:
            CommandError: it has.
        """
        if self.control.state is RunState.ENDED and not self.control.session.left_standing:
            raise CommandError(f"The program has ended ({self.control.view().reason}).")

    def refresh(self) -> None:
        """Memory or registers have changed: the same frame is looked at."""
        selected = self.frames.selected
        self.frames.moved()
        self.frames.selected = selected

    @property
    def scope(self) -> FrameScope:
        """The meaning of names where the user looks; before the start that of the files."""
        stored = self.stored()
        return self.guest_scope if stored is None else self._scope(None, 0, True, stored=stored)

    @property
    def guest_scope(self) -> FrameScope:
        """The same with addresses of the guest's memory, where stops are, before a run, too."""
        return self.frames.scope() if self.started else self._scope(None, 0, True)

    @property
    def bare_scope(self) -> FrameScope:
        """The meaning of names without a frame: globals, and the registers of now."""
        return self._scope(None, 0, True)

    @property
    def frame(self) -> GuestFrame | None:
        """The frame that is looked at, None without one."""
        return self.frames.frame if self.started and self.frames.all else None

    def value(self, text: str) -> TypedValue:
        """The value of an expression.

        Raises:
            CommandError: it has none.
        """
        scope = self.scope
        try:
            return evaluate(text, scope)
        except CallLeftError:
            raise
        except CommandError as error:
            self._complain_of_names(text, scope, error)
            raise

    @staticmethod
    def _complain_of_names(text: str, scope: FrameScope, error: CommandError) -> None:
        """Of two complaints make that of a name: gdb looks names up before it evaluates.

        Raises:
            CommandError: a name of the expression means nothing.
        """
        if str(error).startswith("No symbol "):
            return
        try:
            checked(text, scope)
        except CommandError as other:
            # Functions of containers have no code that is called: std::get<int>(v).
            if str(other).startswith("No symbol ") and "<" not in str(other):
                raise other from None

    def number(self, text: str) -> int:
        """The number that an expression is.

        Raises:
            CommandError: it is none.
        """
        return Reach(self.scope).used(self.value(text)).number

    def place(self, text: str) -> CodePlace:
        """The first place that a text names, as it is shown.

        Raises:
            CommandError: there is none.
        """
        wanted = self.wanted(text)
        return (self.places_of if self.stored() is None else self.places.find)(wanted)[0]

    def wanted(self, text: str) -> WantedPlace:
        """The place that a text asks for.

        Raises:
            CommandError: it asks for nothing.
        """
        return self.places.wanted(text, self.frame, self.value)

    def places_of(self, wanted: WantedPlace) -> tuple[CodePlace, ...]:
        """All addresses of a place in the guest's memory, where breakpoints stand.

        Raises:
            CommandError: there is none.
        """
        if wanted.address is not None and self.displacement:
            shown = self.frames.seen.modules.at(wanted.address)
            if shown is not None:
                wanted = replace(wanted, address=wanted.address + self.displacement)
        try:
            return self.guest_places.find(wanted)
        except CommandError:
            address = self.control.probes.address_of(wanted.text) if self.attached else None
            if address is None:
                raise
            return (self.guest_places.at(address),)  # SYMBOL+OFF, LIB:SYMBOL: an interface's own

    def check_names(self, text: str) -> None:
        """Look up the names of an expression.

        Raises:
            CommandError: one of them means nothing, or the text is no expression.
        """
        checked(text, self.scope)
