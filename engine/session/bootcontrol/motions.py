"""Motions of a booted kernel, forwards and backwards, and why each has ended."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.machine import Insn
from engine.cpu.unicorn_watches import WRITE, DataRange
from engine.errors import CommandError, KprobeTuiError
from engine.insn.disasm import Disassembler
from engine.machine.clock import BLOCK
from engine.machine.machine import BootEnd
from engine.machine.stepping import MachineMoment
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.kernel_hits import KernelHits
from engine.session.bootcontrol.places import KernelPlaceNames
from engine.session.bootcontrol.probe_rows import BootEntry, BootProbeRows
from engine.session.bootcontrol.scope import KernelScope
from engine.session.booted.kernel_probes import ArmedBootProbe
from engine.session.headless.booting import ended
from engine.session.machine.catches import KernelCatches
from engine.session.protocol.views import RunState, StopCause

_WORD: Final = 8
_LINES_MOST: Final = 1 << 16
"""Instructions in which another source line is looked for."""
_OVER: Final = (BootEnd.OFF, BootEnd.RESET, BootEnd.HALTED)
_INTERRUPTED: Final = "interrupted"
_BLOCKS: Final = 2
"""Blocks in front of a time in which its instruction may begin."""
_NEAR: Final = 256
"""Instructions behind these in which the instruction is looked for."""


class AwaitedReturn(Struct, frozen=True):
    """A return that the machine is to stop at.

    Attributes:
        leads_to: where it goes on.
        sp: the stack pointer behind it.
        task: address of the task that returns.
        number: of the row of the list that wants the stop; 0 for a motion of its own.
    """

    leads_to: int
    sp: int
    task: int
    number: int = 0


class MachineMotions:
    """Moves one boot.

    Attributes:
        state: what the machine does.
        reason: why it stands, in words.
        cause: the kind of that.
        exit_code: once the boot has ended.
        catches: what it stops at besides probes.
        hits: the hit of the kernel's own kprobes that it stands in.
        hears: whoever wants attention gets it where the machine moves; not on the way back, which
            only the user's stop ends.
    """

    def __init__(
        self, boot: ControlledBoot, rows: BootProbeRows, goes_on: Callable[[], bool]
    ) -> None:
        """Stand in front of the first instruction.

        Args:
            boot: the boot.
            rows: the user's probes and breakpoints.
            goes_on: called where the machine was paused while it moves: hears what has come in;
                False where the motion is to end.
        """
        self.state, self.reason, self.cause = RunState.READY, "", StopCause.ARRIVED
        self.exit_code: int | None = None
        self.hears = True
        self._boot, self._rows, self._goes_on = boot, rows, goes_on
        self._machine = boot.machine
        self.catches = KernelCatches(boot.opened, boot.machine)
        self.hits = KernelHits(boot)
        self._is_within = False
        self._returns: set[AwaitedReturn] = set()
        self._known = boot.machine.newest
        self._names = KernelPlaceNames(boot)
        self._scope = KernelScope(boot)
        self._disassembler = Disassembler(boot.opened.arch)

    # -- beginning and end of a motion --------------------------------------------------------

    def move(self, motion: Callable[[], None]) -> None:
        """Carry a motion out, and note why it has ended.

        Raises:
            CommandError: the machine does not move like that.
        """
        before = self.state, self.reason, self.cause
        self._boot.begins_to_move()
        self._known = self._machine.newest
        self.state, self.cause = RunState.RUNNING, StopCause.ARRIVED
        self.reason = ""
        self.hears = True
        self._is_within = False
        try:
            motion()
        except CommandError:
            if self.state is RunState.RUNNING:
                self.state, self.reason, self.cause = before
            raise
        finally:
            self._machine.watch(())
            if not self._is_within:
                self.hits.look()
        if self._machine.end is not None:
            self._end()
        elif self.state is RunState.RUNNING:
            self.state = RunState.STOPPED

    def repeated(
        self, motion: Callable[[], None], count: int, through: StopCause = StopCause.ARRIVED
    ) -> None:
        """Carry a motion out several times, as if each were a motion of its own.

        Args:
            motion: the motion.
            count: how often.
            through: the kind of reason of which the next one begins all the same.
        """
        for left in reversed(range(count)):
            motion()
            if not left or self._machine.end is not None or self.cause is not through:
                return
            if not self._goes_on():
                self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
                return
            if not self._is_within:
                self.hits.look()
            self._stop("", StopCause.ARRIVED)

    def passing(self, motion: Callable[[], None], count: int) -> None:
        """Carry a motion out that passes the breakpoint at hand by, all but the last time.

        Args:
            motion: the motion.
            count: the stop at that breakpoint that it ends at; other stops end it before.
        """
        pc = self._machine.pc
        for entry in self._rows.stopping():
            if pc in entry.addresses:
                entry.ignored = count - 1
                break
        motion()

    def _end(self) -> None:
        end = self._machine.end
        assert end is not None, "the boot has ended"
        self.state = RunState.ENDED
        self.reason = ended(end, self._boot.booted.place(end.pc)) or "the machine is switched off"
        if self._boot.booted.recorded is not None and end.reason is BootEnd.HALTED:
            self.reason = f"the recording ends here: {self.reason}"
        self.exit_code = 0 if end.reason in _OVER else 1

    def need_standing(self) -> None:
        """Refuse to go on behind the end; raises `CommandError`."""
        if self._machine.end is not None:
            what = "recording" if self._boot.booted.recorded is not None else "boot"
            raise CommandError(f"the {what} is over: r starts afresh, R goes back")

    @property
    def _is_new(self) -> bool:
        """True at a moment that the machine comes to for the first time."""
        return self._machine.moment > self._known

    def _stop(self, reason: str, cause: StopCause) -> None:
        self.reason, self.cause = reason, cause

    def _stop_at(self, *more: int, every: bool = False) -> None:
        """Have the machine stop at all places where it is to."""
        rows = self._rows.placed() if every else self._rows.stopping()
        places = {at for entry in rows for at in entry.addresses}
        places |= self.catches.places | {one.leads_to for one in self._returns}
        if every:
            places |= self.hits.addresses
        self._machine.stop_at(places | set(more))
        self._watch()

    def _watch(self) -> None:
        """Have the machine stop at accesses to what the user watches."""
        entries = [entry for entry in self._rows.stopping() if entry.watched is not None]
        for entry in entries:
            entry.value = self._value(entry)
        self._machine.watch([entry.watched for entry in entries if entry.watched is not None])

    def _value(self, entry: BootEntry) -> bytes:
        watched = entry.watched
        return b"" if watched is None else self._machine.read(watched.first, watched.size)

    def _stands_at_access(self) -> bool:
        """True if the machine stands at an access that the user waits for; says which then."""
        machine, access = self._machine, self._machine.accessed
        for entry in self._rows.stopping() if access is not None else ():
            if entry.watched is None or access is None or not access.meets(entry.watched):
                continue
            before, now = entry.value, self._value(entry)
            entry.value = now
            if entry.watched.kinds == WRITE and now == before:
                continue  # as gdb, which compares values
            entry.hits += self._is_new
            if entry.is_passed_by():
                continue
            text = f"watchpoint {entry.row.id}: {entry.row.line.partition(' ')[2].strip()}"
            if now != before and access.kinds & WRITE:
                text += f", {_number(before)} -> {_number(now)}"
            elif access.kinds & WRITE:
                text += ", written next"
            else:
                text += f", read: {_number(now)}"
            self._stop(f"{text}, at {self._names.text(machine.pc)}", StopCause.HIT)
            return True
        return False

    # -- forwards -----------------------------------------------------------------------------

    def go(self, *, every: bool = False) -> None:
        """Run on to the next stop.

        Args:
            every: any probe that is on is one.
        """
        self.run(lambda: False, every=every)

    def to(self, address: int) -> None:
        """Run on to an address, or to a stop before."""

        def arrived() -> bool:
            return self._machine.pc == address

        self.run(arrived, address)

    def run(self, arrived: Callable[[], bool], *more: int, every: bool = False) -> None:
        """Run on until something holds at one of some more places, or to a stop before."""
        self.need_standing()
        machine = self._machine
        self._await_returns(every=every)
        while True:
            self._stop_at(*more, every=every)
            stopped = machine.go()
            if machine.end is not None:
                return
            if stopped:
                if self._stands_at_access() or arrived():
                    return
                if self._stands_at_stop(every=every):
                    return
            elif not self._goes_on():
                self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
                return

    def _stands_at_stop(self, *, every: bool) -> bool:
        """True if the machine stands where the user wants it to; says why then."""
        pc = self._machine.pc
        if (caught := self.catches.caught()) and pc in self.catches.places:
            self._stop(caught, StopCause.EVENT)
            return True
        if self._has_returned(every=every):
            return True
        for entry in list(self._rows.placed() if every else self._rows.stopping()):
            if pc not in entry.addresses:
                continue
            place = self._names.text(pc)
            if entry.row.kind == "b":
                trouble = self._condition_of(entry)
                if trouble is None:
                    continue
                entry.hits += self._is_new
                if entry.is_passed_by():
                    continue
                text = f"breakpoint {entry.row.id} at {place}"
                self._stop(f"{text}; {trouble}" if trouble else text, StopCause.HIT)
                if entry.temporary:
                    self._rows.entries.remove(entry)
                return True
            entered = entry.entered_at(self._boot.tracing, pc)
            if entered:
                if not _were_recorded(entered) or entry.is_passed_by():
                    continue
                self._stop(f"probe {'/'.join(entry.events[0])} at {place}", StopCause.HIT)
                return True
            self._await_return(entry.row.id)
        if every and self.hits.meets():
            self._stop(f"the kernel's own kprobe at {self._names.text(pc)}", StopCause.HIT)
            return True
        return False

    def _condition_of(self, entry: BootEntry) -> str | None:
        """Ask a breakpoint's condition.

        Returns:
            None if it is false, "" if it holds, else why it could not be asked.
        """
        if not entry.condition:
            return ""
        try:
            return "" if self._scope.known(entry.condition).truth else None
        except KprobeTuiError as error:  # as gdb, which stops there
            return f"error in its condition: {error}"

    def _await_returns(self, *, every: bool) -> None:
        """The machine may stand at the entry of a function whose return is to stop it by now."""
        pc = self._machine.pc
        for entry in list(self._rows.placed() if every else self._rows.stopping()):
            is_entry = bool(entry.entered_at(self._boot.tracing, pc))
            if pc in entry.addresses and entry.row.kind == "p" and not is_entry:
                self._await_return(entry.row.id)

    def _await_return(self, number: int) -> None:
        """The machine stands at the entry of a function whose return is to stop it."""
        machine = self._machine
        sp = machine.register(self._boot.opened.arch.roles.sp)
        leads_to = int.from_bytes(machine.read(sp, _WORD), "little")
        if leads_to:
            task = machine.task_address()
            self._returns.add(AwaitedReturn(leads_to, sp + _WORD, task, number))

    def _has_returned(self, *, every: bool) -> bool:
        machine = self._machine
        sp = machine.register(self._boot.opened.arch.roles.sp)
        here = machine.pc, sp, machine.task_address()
        for one in self._returns:
            if (one.leads_to, one.sp, one.task) == here:
                self._returns.discard(one)
                entry = self._rows.found(one.number)
                if entry is None or not entry.events or not (entry.row.stops or every):
                    return False
                armed = [each for event in entry.events
                         for each in self._boot.tracing.armed_of(*event)]  # fmt: skip
                if not _were_recorded(armed) or entry.is_passed_by():
                    return False
                name = "/".join(entry.events[0])
                self._stop(f"probe {name} at {self._names.text(machine.pc)}", StopCause.HIT)
                return True
        return False

    def step(self, count: int, *, over: bool = False) -> None:
        """Execute instructions; with `over` a call is one.

        An interrupt that is due is delivered in place of an instruction.
        """
        self.need_standing()
        self._is_within = self.hits.phase is not None
        for _ in range(count):
            if not self._one(over=over):
                return
            if self._is_within:
                self.hits.follow()
                self._is_within = self.hits.phase is not None
            if self._machine.end is not None or self._has_cause():
                return

    def phase(self) -> None:
        """Go on to the end of the next phase of a hit; outside of hits by an instruction."""
        phase = self.hits.phase
        if phase is None:
            self.step(1)
            return
        self.need_standing()
        self._is_within = True
        self.hits.begin_phase()
        if phase.alone:
            self._step()
        else:
            self.run(self.hits.arrived, *self.hits.ends)
        before = len(self.hits.begins)
        self.hits.follow()
        if len(self.hits.begins) > before and not self._has_cause():
            self.reason = self.hits.carried_out

    def phase_back(self) -> None:
        """Go back by a phase: outside of a hit to the last one of the hit before.

        Where the kernel has no kprobes, and never had any here, by an instruction.
        """
        hits, machine = self.hits, self._machine
        self.hears = False
        if not hits.begins:
            if not hits.any_probed:
                self.step_back()
                return
            self._to_last_phase()
        if hits.begins:
            self._is_within = True
            machine.seek(hits.begins[-1])
            hits.go_back()
            self._stop(hits.carried_out or "in front of the hit", StopCause.ARRIVED)

    def _to_last_phase(self) -> None:
        """Go back to the last hit, and on to the end of its last phase in front of here."""
        hits, machine = self.hits, self._machine
        now = machine.moment
        self._back(hits.meets, *hits.addresses)
        if self._has_cause():
            return
        hits.look()
        while hits.phase is not None:
            before = machine.moment
            self.phase()
            if self._has_cause() or machine.moment == before:
                return
            if machine.moment >= now:
                return

    def _has_cause(self) -> bool:
        return self.cause is not StopCause.ARRIVED

    def _one(self, *, over: bool) -> bool:
        """Execute an instruction; False where the user has ended it."""
        insn = self._insn(self._machine.pc) if over else None
        if insn is None or not self._boot.opened.arch.is_call(insn):
            return self._step()
        machine, roles = self._machine, self._boot.opened.arch.roles
        behind, sp = insn.address + insn.size, machine.register(roles.sp)
        task = machine.task_address()

        def arrived() -> bool:
            same = machine.pc == behind and machine.register(roles.sp) == sp
            return same and machine.task_address() == task

        self.run(arrived, behind)
        return not self._has_cause()

    def _step(self) -> bool:
        """Execute an instruction; False where the user has ended the motion before or behind."""
        machine = self._machine
        before = machine.moment
        self._watch()
        while machine.moment == before and machine.end is None:  # somebody asks for attention
            machine.step()
            if self._stands_at_access():
                return False
            if not self._goes_on():
                self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
                return False
        return True

    def _insn(self, address: int) -> Insn | None:
        arch = self._boot.opened.arch
        found = self._disassembler.decode(address, self._machine.read(address, arch.insn_max))
        return found[0] if found else None

    def line(self, *, over: bool) -> None:
        """Run on to another source line.

        Raises:
            CommandError: the place has none.
        """
        self.need_standing()
        before = self._line()
        for _ in range(_LINES_MOST):
            if not self._one(over=over) or self._machine.end is not None or self._has_cause():
                return
            now = self._line(needed=False)
            if now is not None and now != before:
                return

    def _line(self, *, needed: bool = True) -> tuple[str, int] | None:
        pc = self._machine.pc
        found = self._boot.opened.lines.line_at(pc)
        if found is None and needed:
            raise CommandError(
                "the kernel image has no source lines here (a vmlinux with debug information has"
                " some); i and o step instructions"
            )
        return found

    def finish(self) -> None:
        """Run on until the current function has returned.

        Raises:
            CommandError: its caller is not known.
        """
        self.need_standing()
        machine, roles = self._machine, self._boot.opened.arch.roles
        frames = self._boot.frames.take(2).frames if not self._boot.in_program else ()
        if len(frames) < 2 or frames[0].cfa is None:
            raise CommandError("the caller of this function is not known")
        leads_to, cfa, task = frames[1].pc, frames[0].cfa, machine.task_address()

        def arrived() -> bool:
            same = machine.pc == leads_to and machine.register(roles.sp) >= cfa
            return same and machine.task_address() == task

        self.run(arrived, leads_to)

    # -- backwards ----------------------------------------------------------------------------

    def step_back(self, *, over: bool = False) -> None:
        """Go back by an instruction; with `over` a call that has returned is one."""
        machine, roles = self._machine, self._boot.opened.arch.roles
        behind, sp, task = machine.pc, machine.register(roles.sp), machine.task_address()
        self.hears = False
        if not machine.step_back():
            self._stop("the boot begins here", StopCause.CUT_SHORT)
            return
        inner = machine.register(roles.sp)
        if not over or inner >= sp or inner + _WORD != sp:
            return
        call = self._call_in_front(behind)
        if call is None:
            return

        def arrived() -> bool:
            same = machine.pc == call and machine.register(roles.sp) == sp
            return same and machine.task_address() == task

        self._back(arrived, call)

    def _call_in_front(self, behind: int) -> int | None:
        """The call instruction that ends at an address; None where there is none."""
        bounds = self._boot.opened.names.bounds(behind - 1)
        if bounds is None:
            return None
        code = self._machine.read(bounds[1], behind - bounds[1])
        found = self._disassembler.decode(bounds[1], code)
        last = found[-1] if found else None
        is_call = last is not None and self._boot.opened.arch.is_call(last)
        return last.address if last is not None and is_call else None

    def finish_back(self) -> None:
        """Go back to the call of the current function.

        Raises:
            CommandError: it is not known.
        """
        machine, roles = self._machine, self._boot.opened.arch.roles
        frames = self._boot.frames.take(2).frames if not self._boot.in_program else ()
        call = self._call_in_front(frames[1].pc) if len(frames) > 1 else None
        if call is None or frames[0].cfa is None:
            raise CommandError("the call of this function is not known")
        sp, task = frames[0].cfa, machine.task_address()

        def arrived() -> bool:
            same = machine.pc == call and machine.register(roles.sp) == sp
            return same and machine.task_address() == task

        self._back(arrived, call)

    def go_back(self) -> None:
        """Go back to the last stop, or to the first instruction."""
        self._back(lambda: False)

    def _back(self, arrived: Callable[[], bool], *more: int) -> None:
        machine = self._machine
        self.hears = False
        while True:
            self._stop_at(*more)
            if not machine.go_back():
                if machine.moment == machine.oldest:
                    self._stop("the boot begins here", StopCause.CUT_SHORT)
                else:
                    self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
                return
            if self._stands_at_access() or arrived() or self._stands_at_stop(every=False):
                return
            if not self._goes_on():
                self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
                return

    def last_write(self, address: int, size: int) -> None:
        """Go back to the instruction that has last written to memory."""
        machine = self._machine
        self.hears = False
        machine.stop_at(set())
        machine.watch([DataRange(address, size, WRITE)])
        before = machine.moment
        if machine.go_back() and machine.accessed is not None:
            self._stop(f"{self._names.text(machine.pc)} writes here next", StopCause.FOUND)
            return
        interrupted = machine.moment == before
        machine.watch(())
        machine.seek(before)
        if interrupted:
            self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
        else:
            raise CommandError(f"nothing has written to {address:#x} since the boot began")

    def line_back(self, *, over: bool) -> None:
        """Go back to the begin of the source line before.

        Raises:
            CommandError: the place has none.
        """
        before, found = self._line(), None
        for _ in range(_LINES_MOST):
            self.step_back(over=over)
            now = self._line(needed=False)
            if self._has_cause() or not self._goes_on():
                return
            if found is None and now is not None and now != before:
                found = now
            elif found is not None and now != found:
                self._machine.step()
                return

    def live_again(
        self, newest: MachineMoment, now: MachineMoment, tell: Callable[[int], object]
    ) -> None:
        """Run from power-on to a moment, and go back to another one.

        Args:
            newest: the moment that another run of the same boot has come to.
            now: the one at which it stood.
            tell: is told the time that was come to, in nanoseconds.
        """
        machine = self._machine
        self._live(lambda goes_on: machine.run_to(newest, goes_on), tell)
        if self._has_come(machine.moment >= newest) and now < newest:
            self._known = machine.newest
            self.seek(now)

    def live_to(self, newest: int, now: int, tell: Callable[[int], object]) -> None:
        """Run from power-on to a time, and go back to another one.

        Args:
            newest: the time that another boot has come to, in nanoseconds.
            now: the one at which it stood.
            tell: is told the time that was come to, in nanoseconds.
        """
        machine = self._machine
        self._live(lambda goes_on: machine.run_to_time(newest, goes_on), tell)
        if self._has_come(machine.nanoseconds >= newest) and now < newest:
            self._known = machine.newest
            self.seek_time(now)

    def _live(
        self, run: Callable[[Callable[[], bool]], object], tell: Callable[[int], object]
    ) -> None:
        """Run without stops; `tell` is told the time meanwhile."""
        machine = self._machine
        machine.stop_at(set())

        def goes_on() -> bool:
            tell(machine.nanoseconds)
            return self._goes_on()

        run(goes_on)

    def _has_come(self, arrived: bool) -> bool:
        """True if the machine has come to where it was to; else the user has interrupted it."""
        if not arrived and self._machine.end is None:
            self._stop(_INTERRUPTED, StopCause.INTERRUPTED)
            return False
        return True

    def seek(self, moment: MachineMoment) -> None:
        """Go to a moment that the machine has come to.

        Raises:
            CommandError: the machine was not there.
        """
        self.hears = False
        self._machine.seek(moment)
        self._found_time()

    def seek_time(self, time: int, pc: int | None = None) -> None:
        """Go to a time.

        Args:
            time: in nanoseconds since power-on.
            pc: the instruction near it in front of which to stand; None for any.

        Raises:
            CommandError: there is no way back.
        """
        machine = self._machine
        if time > machine.time_of_newest and self._boot.booted.recorded is not None:
            self._live_through(time)
            return
        self.hears = False
        machine.seek_time(time if pc is None else time - _BLOCKS * BLOCK)
        for _ in range(_NEAR if pc is not None else 0):
            if machine.pc == pc or machine.moment >= machine.newest:
                break
            machine.step()
        self._found_time()

    def _live_through(self, time: int) -> None:
        """Go on in a recorded boot to a time that it was not come to yet, past all stops."""
        machine = self._machine
        machine.stop_at(set())
        if machine.is_past:
            machine.seek(machine.newest)
        machine.run_to_time(time, self._goes_on)
        if machine.end is None:
            arrived = machine.nanoseconds >= time
            self._stop(*((self._time(), StopCause.FOUND) if arrived
                         else (_INTERRUPTED, StopCause.INTERRUPTED)))  # fmt: skip

    def _time(self) -> str:
        return f"{self._machine.nanoseconds} ns after power-on"

    def _found_time(self) -> None:
        if self._machine.is_past:
            self._stop(self._time(), StopCause.FOUND)


def _were_recorded(probes: Sequence[ArmedBootProbe]) -> bool:
    """False where filters have let none of the hits pass that were told last.

    Of hits of the past nobody is told again: these pass.
    """
    passed = [probe.passed for probe in probes]
    for probe in probes:
        probe.passed = None
    return not passed or any(each is not False for each in passed)


def _number(data: bytes) -> str:
    """The bytes of watched memory as a number, or one by one; "?" where no page was there."""
    if not data:
        return "?"
    if len(data) in (1, 2, 4, 8):
        return f"{int.from_bytes(data, 'little'):#x}"
    return data[:16].hex(" ") + ("..." if len(data) > 16 else "")
