"""Moves a guest and stops it: free runs, steps, and hits carried out phase by phase."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.base import TrapKind
from engine.arch.plan import Mode, Rules
from engine.cpu.base import Stop, StopKind
from engine.errors import CommandError, ProbeRejectedError
from engine.guest.hooks import PASSED, SignalAnswer
from engine.image.symtab import shown_place
from engine.linux import signals as sig
from engine.linux.thread import Thread
from engine.probes.hit_machine import HitMachine, PhaseWatch
from engine.probes.manager import ProbeManager
from engine.probes.point import ProbePoint
from engine.session.control.entries import ProbeEntry
from engine.session.control.focus import Focus
from engine.session.control.motions import Motion, Motions
from engine.session.control.probe_list import ProbeList
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.inspect.viewing import Viewing
from engine.session.protocol.views import HitView, Origin, PhaseView, RunState, StopCause

if TYPE_CHECKING:
    from engine.session.control.past.conditions import Condition
    from engine.session.control.past.search import WatchPlace
    from engine.session.kernel.call_results import CallResult  # few guests are kernels
    from engine.session.kernel.supervisor import KernelSupervisor


def _no_condition(text: str) -> "Condition":
    raise CommandError(f"{text}: nobody knows expressions here")


class StopQuestions(Struct):
    """The questions to a debugger while the guest runs; texts say why to stop, "" is to run on.

    Every field has an answer of its own; a debugger replaces those that it wants to give.

    Attributes:
        accepts: (id of a breakpoint or probe) at each hit that would stop the guest, with the
            guest at the hit's address.
        named: (id of a breakpoint or probe) gives what is caught there, in words; "" for a place.
        signal: (number) before a signal is delivered to the current thread.
        call: (number, name) before its system call is carried out; None for no interest.
        returned: (number, name) after it; None for no interest.
        forked: (process id, name of the call): it has made a process.
        mapped: code of a file has come.
        executed: (path): it has begun another program.
        looks: asked between two instructions once `Running.notice` was called.
        watches: gives the accesses of the past at which the user wants to stop.
        condition: gives an expression a meaning where the guest stands, to be asked when it was
            true.
    """

    accepts: Callable[[int], bool] = lambda row: True
    named: Callable[[int], str] = lambda row: ""
    signal: Callable[[int], SignalAnswer] = lambda number: PASSED
    call: Callable[[int, str], str] | None = None
    returned: Callable[[int, str], str] | None = None
    forked: Callable[[int, str], str] = lambda pid, call: ""
    mapped: Callable[[], object] = lambda: None
    executed: Callable[[str], str] = lambda path: ""
    looks: Callable[[], str] = lambda: ""
    watches: Callable[[], "Sequence[WatchPlace]"] = lambda: ()
    condition: Callable[[str], "Condition"] = _no_condition


_OFTEN: Final = 256
"""Steps between two looks at whether the user wants something."""


class Abandoned(BaseException):
    """Leaves a system call in which the guest is blocked: its run is given up."""


class Running:
    """The motions of one run.

    Attributes:
        state: what the guest is doing.
        reason: why it stopped, or how it ended.
        origin: who changed registers since `origin` was last taken; None for no motion since.
        wanted: why the guest is to stop as soon as it can, "" for no reason.
        cause: the kind of the reason.
        on_foot: the questions' `looks` is asked behind each instruction; nothing runs freely then.
        traced: the last motion has ended with a single step, not at a breakpoint.
    """

    def __init__(
        self,
        session: Session,
        probing: Probing,
        probes: ProbeList,
        viewing: Viewing,
        focus: Focus,
        questions: StopQuestions,
    ) -> None:
        """Hook into a run that has not begun; steps are those of the thread in sight."""
        self._questions = questions
        self._session = session
        self._probing = probing
        self._probes = probes
        self._viewing = viewing
        self._focus = focus
        self._motions = Motions(session, viewing.backtraces)
        self._goal: Motion | None = None
        self._machine: HitMachine | None = None
        self._phases: tuple[PhaseView, ...] = ()
        self._over: HitView | None = None
        self._over_in = session.seen
        self._began = 0, 0  # (tick, address) of the hit at hand, or of the last one
        self._earlier = 0  # phases of hits at the same moment before that
        self._halted = False
        self._stays = False  # at a return's trampoline, instead of going on behind it
        self.state, self.reason = RunState.READY, "loaded"
        if session.core is not None:
            number = session.core.signal
            ended = f"ended by {sig.name(number)}" if number else "written while it was alive"
            self.state, self.reason = RunState.STOPPED, f"core file of a process, {ended}"
        self.origin: Origin | None = ""
        self.wanted, self.cause = "", StopCause.ARRIVED
        self.on_foot = self._noticed = self.traced = False
        probing.watch_stops(self._stopped)
        self._listen()
        self._last_call = ""
        if session.supervisor is not None:
            self._listen_to(session.supervisor)

    def ask(self, questions: StopQuestions) -> None:
        """Others are asked whether to stop from now on."""
        self._questions = questions

    def _listen_to(self, supervisor: "KernelSupervisor") -> None:
        """Stop where calls of a kernel's functions are over, or cannot go on."""
        tell = supervisor.returned

        def returned(result: "CallResult") -> None:
            self._last_call = result.lines()[0]
            tell(result)

        def idle() -> None:
            nothing = "no function is called; :call FUNC(ARGS) calls one"
            self.want(self._last_call or nothing, StopCause.CALL)
            self._last_call = ""

        supervisor.returned, supervisor.idle = returned, idle
        supervisor.failed = lambda why: self.want(f"cannot go on: {why}", StopCause.CALL)

    @property
    def _manager(self) -> ProbeManager:
        """The machinery where the guest stands."""
        return self._probing.here.manager

    @property
    def ended(self) -> bool:
        """True if the program is over."""
        return self.state is RunState.ENDED

    @property
    def machine(self) -> HitMachine | None:
        """The hit at hand, None if the guest is not in the middle of one."""
        return self._machine

    @property
    def hit(self) -> HitView | None:
        """The hit at hand, or the one that the last step has carried out."""
        if self._machine is not None:
            return self._viewing.hit(self._machine, self._phases)
        return self._over if self._over_in is self._session.seen else None

    @property
    def phase(self) -> tuple[int, int, int] | None:
        """(tick, address, phases carried out) of the hit at hand, None where there is none.

        Behind a hit the same, if something else is hit at its very moment.
        """
        done = self._earlier + len(self._phases)
        if self._machine is None and (self._over is None or self._place() != self._began):
            return None
        return (*self._began, done)

    def forget_hit(self) -> None:
        """Take the hit that is over for none at hand any more."""
        self._over = None

    def meets(self) -> ProbePoint | None:
        """The point whose hit comes next, where the guest stands in front of one."""
        return self._point() if self._machine is None else None

    def _place(self) -> tuple[int, int]:
        """The tick, and the program's own address."""
        return self._probing.standing()

    def stands_at(self, pc: int) -> int:
        """The program's own address for the processor's pc: where the hit at hand began."""
        began = self._machine.began if self._machine is not None else None
        return self._session.seen.hooks.original_pc(pc) if began is None else began

    @property
    def own(self) -> dict[str, int]:
        """Registers as the program would see them, where the hit at hand has changed them."""
        return self._machine.own if self._machine is not None else {}

    def want(self, text: str, cause: StopCause) -> None:
        """Have the guest stop as soon as it can."""
        self.wanted, self.cause = text, cause

    def notice(self) -> None:
        """Have `looks` asked as soon as it can be: something may be a reason to stop."""
        self._noticed = True
        self._session.nudge()

    # -- motions ------------------------------------------------------------------------------

    def on(self) -> None:
        """Run on to a stop."""
        self._run(None)

    def to_hit(self) -> None:
        """Run on to the next hit of any probe, or another stop.

        Raises:
            CommandError: there is no probe that could be hit.
        """
        with self._probes.all_stopping():
            self._run(None)

    def to(self, address: int, *, alone: bool = False) -> None:
        """Run to an address, or another stop.

        Args:
            address: the address.
            alone: the thread that runs now is to reach it, and no other one.

        Raises:
            ProbeRejectedError: the guest cannot be stopped there.
        """
        if address not in self._manager.points:
            self._manager.check(address, Rules.KPROBE, Mode.KERNEL)
        self._run(self._motions.to(address, alone=alone))

    def out(self) -> None:
        """Run until the current function has returned.

        Raises:
            CommandError: its caller is not known.
        """
        supervisor = self._session.supervisor
        if supervisor is None or supervisor.running is None or self._motions.has_caller():
            self._run(self._motions.out())
            return
        supervisor.pauses = True  # the function that was called: its return ends the call
        try:
            self._run(None)
        finally:
            supervisor.pauses = False

    def call(self, text: str) -> None:
        """Call a function of a kernel image, and run on to a stop.

        Raises:
            CommandError: there is none, or it does not take these arguments.
        """
        supervisor = self._session.supervisor
        if supervisor is None:
            raise CommandError("the guest is no kernel image; print FUNC(ARGS) calls a function")
        if self._machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")
        supervisor.enter(text)
        self._run(None)

    def steps(self, count: int, *, over: bool) -> None:
        """Execute instructions; `over`: a call counts as one."""
        for _ in range(max(count, 1)):
            motion = self._motions.over() if over else None
            if motion is not None:
                self._run(motion)
            else:
                self._move(self._step_thread)
            if self.state is not RunState.STOPPED or self.cause is not StopCause.ARRIVED:
                break

    def step_line(
        self,
        *,
        over: bool,
        unknown: bool = False,
        same: bool = False,
        inlined: int | None = None,
        out: bool = False,
    ) -> None:
        """Run on to another source line.

        Args:
            over: not into functions.
            unknown: into functions without line information, too: their first instruction ends it.
            same: to the next begin of a statement, be it of the same line.
            inlined: number of inlined calls around: it ends in others, too; None for no interest.
            out: to code that is in no more inlined calls than that, whatever its line is.

        Raises:
            CommandError: the current one is not known.
        """
        motions, kernel = self._motions, self._session.kernel
        start = motions.line()
        if start is None:
            raise CommandError("no line information here; i steps an instruction")

        def go() -> None:
            done, known = 0, dict[int, int]()
            while not self.wanted and kernel.exit is None:
                motion = motions.line_call(over=over, unknown=unknown)
                if motion is not None:
                    self._through(motion)
                else:
                    self._step_thread()
                done += 1
                if done % _OFTEN == 0:
                    self._session.hooks.attention()
                deeper = inlined is not None and motions.inlined(known) > inlined
                left = motions.at_statement() if same else motions.left_line(start)
                left = not deeper if out else deeper or left
                if left or (unknown and motions.line() is None):
                    return

        self._move(go)

    def step_phase(self) -> None:
        """Carry out the next phase of the hit at hand; without one, an instruction."""
        if self._machine is None and not self._take_up():
            self._move(self._step, stays=True)
            return
        machine = self._machine
        assert machine is not None
        record = PhaseWatch(machine).advance()
        shown = self._viewing.phase(record, machine)
        self._phases = (*self._phases, shown)
        self.origin = "insn" if shown.by_guest else "machinery"
        self.state, self.reason, self.cause = RunState.STOPPED, shown.name, StopCause.ARRIVED
        if machine.next is None:
            self.wanted, self.state = "", RunState.RUNNING  # the kernel's part may block
            try:
                self._hit_over(machine)
            finally:
                self._look()

    def finish_hit(self) -> None:
        """Carry out all that is left of the hit at hand.

        Raises:
            CommandError: the guest stands at no probe.
        """
        if self._machine is None and not self._take_up():
            raise CommandError("the guest stands at no probe")
        self._move(self._step)

    def move(self, motion: Callable[[], object], *, runs: bool) -> None:
        """Carry out a motion of the thread in sight.

        Args:
            motion: one of the methods above.
            runs: all threads run on; else the thread gets the processor first.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        thread = self._focus.begin()
        if runs or self._reached(thread):
            motion()

    def _reached(self, thread: Thread) -> bool:
        """Run on until a thread has the processor; False if the guest stops before."""
        machine = self._session.machine
        if machine.current is thread:
            return True
        self._move(lambda: self._await(thread))
        return machine.current is thread and self.cause is StopCause.ARRIVED

    # -- how they are done ----------------------------------------------------------------------

    def _move(self, call: Callable[[], None], *, stays: bool = False) -> None:
        """Let the guest move, and see how it stands afterwards."""
        self.state, self.reason = RunState.RUNNING, "stepped"
        self.want("", StopCause.ARRIVED)
        questions, hooks = self._questions, self._session.hooks
        hooks.asked_call = self._called if questions.call is not None else None
        hooks.asked_return = self._returned if questions.returned is not None else None
        self._over, self._stays, self.traced = None, stays, False
        try:
            call()
            self._settle()
        finally:
            self.origin = "insn"
            self._look()

    def _look(self) -> None:
        """See whether the guest stands or has ended."""
        machine = self._session.machine
        if machine.exit is not None:
            self.state = RunState.ENDED
            self._machine = None
            left = next(iter(machine.threads.values()), None)
            if machine.current.ended and left is not None:
                self._session.kernel.look_at(left)  # as after a deadlock of those that are left
        else:
            self.state = RunState.STOPPED
            self.reason = self.wanted or self.reason

    def _run(self, motion: Motion | None) -> None:
        def go() -> None:
            if motion is not None:
                self._through(motion)
            else:
                self._go()

        self._move(go)

    def _go(self, motion: Motion | None = None) -> None:
        kernel = self._session.kernel
        if self.on_foot:
            self._stepping()
            return
        self._pass()
        self._ask()
        while not self.wanted and kernel.exit is None and not (motion and motion.reached):
            self._over = None
            kernel.resume(alone=True)
            kernel.wait()  # what is wanted in a blocked call comes after it
            self._ask()

    def _stepping(self) -> None:
        """Run on instruction by instruction."""
        kernel = self._session.kernel
        done = 0
        while not self.wanted and kernel.exit is None:
            self._step_to_stop()
            done += 1
            if done % _OFTEN == 0:
                self._session.hooks.attention()

    def _ask(self) -> None:
        """See whether what was noticed is a reason to stop, at the program's own code."""
        if not self._noticed or self._session.machine.exit is not None:
            return
        self._noticed = False
        if self._machine is None:
            self._settle()
        text = self._questions.looks()
        if text:
            self.want(text, StopCause.HIT)

    def _through(self, motion: Motion) -> None:
        """Run until a motion has led to its place."""
        manager, self.traced = self._manager, False
        if self.on_foot or self._session.seen not in self._probing.spaces:
            self._on_foot(motion)
            return
        try:
            manager.register(motion.probe)
        except ProbeRejectedError:  # as between an exclusive load and its store
            self._on_foot(motion)
            return
        if manager.points[motion.probe.addr or 0].plan.predicate:  # it may be passed over
            manager.unregister(motion.probe)
            self._on_foot(motion)
            return
        self._goal = motion
        try:
            self._go(motion)
        finally:
            self._goal = None
            lives = any(one.manager is manager for one in self._probing.spaces.values())
            point = manager.points.get(motion.probe.addr or 0) if lives else None
            if point is not None and motion.probe in point.probes:
                manager.unregister(motion.probe)
        if motion.reached:
            self.reason = motion.text

    def _on_foot(self, motion: Motion) -> None:
        """The same where no probe can stand: instruction by instruction."""
        regs, kernel = self._manager.regs, self._session.kernel
        while not self.wanted and kernel.exit is None:
            self._step_to_stop()
            if regs.ip == motion.probe.addr and motion.arrived():
                self.reason = motion.text
                return

    def _step(self) -> None:
        """One instruction, with everything that its probes do."""
        self._over = None
        if not self._pass():
            kernel = self._session.kernel
            self._halted = True
            while self._halted and not self.wanted and kernel.exit is None:
                self._halted = False  # `_stopped` sees whether somebody asked for attention
                kernel.step()
        self._noticed = self._noticed or self.on_foot
        self._ask()

    def _step_thread(self) -> None:
        """One instruction of the thread that runs; others run on while it waits in that."""
        machine = self._session.machine
        thread, self.traced = machine.current, True
        self._step_to_stop()
        if machine.current is not thread and not self.wanted:
            self._await(thread)

    def _await(self, thread: Thread) -> None:
        """Run on until a thread has the processor, or a stop; the thread's end is one."""
        kernel, machine = self._session.kernel, self._session.machine
        kernel.prefer(kernel.scheduler.preferred)
        kernel.awaited = thread
        try:
            self._pass()
            while not self.wanted and kernel.exit is None and not thread.ended:
                self._over = None
                kernel.resume()
                kernel.wait()
                self._ask()
                if machine.current is thread:
                    return
        finally:
            kernel.awaited = None
        if thread.ended and not self.wanted and kernel.exit is None:
            self.want(f"thread {thread.tid} has ended", StopCause.CUT_SHORT)

    def _step_to_stop(self) -> None:
        """One instruction; a breakpoint that it leads to is the user's as in a run."""
        self._step()
        self._settle()
        point = self._point()
        if point is not None and not self.wanted:
            self._wants(point)

    def _point(self) -> ProbePoint | None:
        """The armed probes at pc."""
        if self._session.seen not in self._probing.spaces:
            return None
        point = self._manager.points.get(self._manager.regs.ip)
        return point if point is not None and self._manager.traps(point) else None

    def _take_up(self) -> bool:
        """True if an armed probe stands at pc; its hit is at hand then."""
        manager, point = self._manager, self._point()
        if point is None:
            return False
        place, cpu = self._place(), self._session.cpu
        coming = cpu.coming()
        if cpu.blocks() != coming:  # its tick begins here, as with the trap of a run
            cpu.turn_back(coming)
            cpu.expect(manager.regs.ip)
        self._earlier = self._earlier + len(self._phases) if place == self._began else 0
        self._began = place
        self._machine, self._phases, self._over = manager.machine(point), (), None
        return True

    def _pass(self) -> bool:
        """Carry out the hit at hand, if there is one: whether there was."""
        if self._machine is None and not self._take_up():
            return False
        machine = self._machine
        assert machine is not None
        for record in PhaseWatch(machine).run():
            self._phases = (*self._phases, self._viewing.phase(record, machine))
        self._hit_over(machine)
        return True

    def _hit_over(self, machine: HitMachine) -> None:
        self._over, self._over_in = self._viewing.hit(machine, self._phases), self._session.seen
        self._machine = None
        if machine.stop is not None:
            self._session.kernel.take(machine.stop)

    def _settle(self) -> None:
        """Leave slots and detours: the guest is shown at its own code."""
        kernel = self._session.kernel
        while kernel.exit is None and self._machine is None and self._manager.busy():
            if self._stays and self._point() is not None:
                return
            kernel.step()

    # -- stops ----------------------------------------------------------------------------------

    def _stopped(self, space: ProbedSpace, stop: Stop) -> Stop | None:
        """See a stop of the CPU before the machinery does: is it one of the user's?"""
        manager, arch = space.manager, self._session.arch
        self._halted = stop.kind is StopKind.HALTED
        if stop.kind is StopKind.TRAP and stop.trap is TrapKind.BREAKPOINT:
            at = manager.regs.ip - (len(arch.breakpoint) if arch.trap_advances_pc else 0)
            point = manager.points.get(at)
            if point is not None and point.armed:
                behind, manager.regs.ip = manager.regs.ip, at
                if self._ends_here(point):
                    return None
                manager.regs.ip = behind
        return manager.handle(stop)

    def _ends_here(self, point: ProbePoint) -> bool:
        motion = self._goal
        if motion is not None and motion.probe in point.probes and motion.arrived():
            motion.reached = True
            return True
        return self._wants(point)

    def _wants(self, point: ProbePoint) -> bool:
        """True if the user wants to stop at this hit, be it a call or a return."""
        probes, thread = self._probes, self._session.machine.tid
        # All are asked: each counts its own hits.
        here = [
            (entry, "")
            for entry in probes.stopping_at(point.probes, thread)
            if self._questions.accepts(entry.row.id)
        ]
        if not here:
            calls = self._manager.returns.arriving(point)
            here = [
                (entry, " returns")
                for entry in probes.stopping_after(calls, thread)
                if self._questions.accepts(entry.row.id)
            ]
        if not here:
            return False
        entry, what = here[0]
        text = self._questions.named(entry.row.id) or f"{_hit_text(entry)}{what}"
        self.want(f"{text}{self._process()}", StopCause.HIT)
        self._stays = True
        return True

    # -- what is no breakpoint ------------------------------------------------------------------

    def _listen(self) -> None:
        """Hear of signals, system calls, forks and execs."""
        hooks, moments = self._session.hooks, self._session.machine.moments
        hooks.asked_signal = self._signalled
        moments.started.append(self._started)
        moments.executed.append(self._executed)

    def _signalled(self, number: int) -> SignalAnswer:
        answer = self._questions.signal(number)
        if answer.stops:
            self.want(f"signal {sig.name(number)}", StopCause.SIGNAL)
        return answer

    def _called(self, number: int, name: str) -> bool:
        ask = self._questions.call
        text = ask(number, name) if ask is not None else ""
        if text:
            self.want(text, StopCause.EVENT)
        return bool(text)

    def _returned(self, number: int, name: str) -> None:
        ask = self._questions.returned
        text = ask(number, name) if ask is not None else ""
        if text:
            self.want(text, StopCause.EVENT)

    def _started(self, maker: Thread, thread: Thread) -> None:
        if thread.process is maker.process:
            return
        text = self._questions.forked(thread.pid, maker.call.name)
        if text:
            self.want(text, StopCause.EVENT)

    def _executed(self, thread: Thread, before: int, path: bytes) -> None:
        text = self._questions.executed(path.decode(errors="replace"))
        if text:
            self.want(text, StopCause.EVENT)

    def _process(self) -> str:
        """The process that is hit, in words; nothing where there is but one."""
        machine = self._session.machine
        if len(machine.processes) < 2:
            return ""
        thread = machine.current
        return f" in process {thread.pid} ({thread.comm.decode(errors='replace')})"


def _hit_text(entry: ProbeEntry) -> str:
    kind = "breakpoint" if entry.row.kind == "b" else "probe"
    line = entry.row.line
    if line.startswith("0x") and entry.placed:
        line = entry.placed[0].place.name
    if entry.row.kind == "b":
        line = shown_place(line)
    return f"{kind} {entry.row.id}: {line}"
