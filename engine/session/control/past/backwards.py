"""Motions in the past of a guest, backwards and forwards again."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from engine.arch.base import Register
from engine.arch.machine import Insn
from engine.errors import CommandError
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.timeline import Moment, Timeline
from engine.session.control.past.conditions import Condition, ConditionSearch
from engine.session.control.past.origins import FollowedPlace, NameAt, Origins
from engine.session.control.past.search import PastStretches, StopPlace, StopSearch, WatchPlace
from engine.session.control.past.writes import MemoryWrites, RegisterWrites
from engine.session.guest.past import PastSession
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.views import OriginLink

_RETURN: Final = re.compile(r"(?:\(p\d+\) )?(?:ret|br\.ret|iret|(?:c\.)?jr\s+(?:ra|x1)$)")
"""The texts of instructions that return."""
_STEPS: Final = 100_000
"""Instructions that a motion by source lines looks at."""
_TICKS: Final = 64
"""Ticks whose moments are remembered."""

Line = tuple[str, int]


class Backwards:
    """Moves a guest of the past.

    Attributes:
        timeline: its moments.
        cut: asked now and then: True if the user wants the motion to end.
    """

    def __init__(self, session: PastSession, live: LiveCheckpoints | None = None) -> None:
        """The guest stands in front of its first instruction.

        Args:
            session: the guest of the past.
            live: takes checkpoints of the run itself, if anything does.
        """
        self._session = session
        self._kernel = session.kernel
        self.timeline = Timeline(session.kernel, session.ram, live)
        self._stretches = PastStretches(session, self.timeline)
        self._backtraces = Backtraces(session)
        self._ticks: dict[int, list[Moment]] = {}
        self.cut: Callable[[], bool] = lambda: False
        self._stops = StopSearch(session, self._stretches, lambda: self.cut())
        self._memory_writes = MemoryWrites(session, self._stretches, lambda: self.cut())

    # -- places in time ---------------------------------------------------------------------------

    def go_to(self, clock: int, pc: int) -> None:
        """Go to the instruction of a tick, or of the one behind it, that is at an address.

        Args:
            clock: the tick.
            pc: the address.

        Raises:
            CommandError: it does not execute there.
        """
        now = self.timeline.now()
        for tick in (clock, clock + 1):
            there = next((each for each in self._of_tick(tick) if each.pc == pc), None)
            if there is not None:
                self.timeline.seek(there)
                return
        self.timeline.seek(now)
        raise CommandError(f"nothing at {pc:#x} executes in tick {clock}")

    # -- single instructions ----------------------------------------------------------------------

    def before(self, moment: Moment, *, ended: bool = False) -> Moment | None:
        """The moment in front of another one; None in front of the first instruction.

        Args:
            moment: the later moment.
            ended: it is the end of the run, whose last instruction is in front of it.
        """
        for clock in range(moment.clock, max(moment.clock - 3, -1), -1):
            # What the kernel did at this very instruction is no step of the program.
            here = (-1, -1) if ended else (moment.clock, moment.pc)
            earlier = [
                each
                for each in self._of_tick(clock)
                if each < moment and (each.clock, each.pc) != here
            ]
            if earlier:
                return earlier[-1]
        return None

    def forget(self, clock: int) -> None:
        """The run has gone on from a tick: what is remembered of it may not be what came."""
        for known in [each for each in self._ticks if each >= clock]:
            del self._ticks[known]

    def _of_tick(self, clock: int) -> list[Moment]:
        """All moments of a tick, in order."""
        found = self._ticks.get(clock)
        if found is None:
            found = self._walked(clock)
            while len(self._ticks) >= _TICKS:
                del self._ticks[next(iter(self._ticks))]
            self._ticks[clock] = found
        return found

    def _walked(self, clock: int) -> list[Moment]:
        timeline = self.timeline
        timeline.seek_clock(clock)
        found: list[Moment] = []
        now = timeline.now()
        while now.clock == clock and not timeline.ended:
            found.append(now)
            self._kernel.step()
            following = timeline.now()
            if following <= now:  # an entry of the journal's, at the same instruction
                break
            now = following
        return found

    def step(self) -> None:
        """Go back by one instruction.

        Raises:
            CommandError: this is the first one.
        """
        timeline = self.timeline
        now = timeline.now()
        there = self.before(now, ended=timeline.ended)
        if there is None:
            timeline.seek(now)
            raise CommandError("No more reverse-execution history.")
        timeline.seek(there)

    def step_over(self) -> None:
        """Go back by one instruction; a call that has returned counts as one.

        Raises:
            CommandError: this is the first one.
        """
        now, sp, function = self.timeline.now(), self._sp(), self._function()
        call = self._call_before(now.pc)
        self.step()
        there = self.timeline.now()
        if call is None or there.pc == call:
            return
        if not self._returns() and (
            self._function() == function or function == now.pc or self._calls()
        ):
            return  # it has jumped there, or a call has come there behind one that never returns
        found = self._stops.last((StopPlace(call, lambda: self._sp() == sp, ""),), now)
        if self.cut():
            self._again(now)
            return
        self.timeline.seek(there if found is None else found[0])

    def _call_before(self, pc: int) -> int | None:
        """Address of a call that ends at an address; None for none."""
        session = self._session
        arch = session.arch
        found = []
        for size in range(arch.insn_align, arch.insn_max + 1, arch.insn_align):
            at = pc - size
            insn = next(iter(session.disassembler.decode(at, session.code_at(at))), None)
            if insn is not None and insn.size == size and arch.is_call(insn):
                found.append(at)
        if len(found) > 1:  # a call without its prefix looks like one
            boundary = session.probes().manager.code_map.boundary
            found = [at for at in found if boundary(at)]
        return min(found, default=None)

    # -- lines ------------------------------------------------------------------------------------

    def line(self, *, over: bool) -> None:
        """Go back to the begin of the line before this one.

        Args:
            over: not into functions that were called.

        Raises:
            CommandError: the current line is not known, or there is nothing before it.
        """
        start = self._line()
        if start is None:
            raise CommandError("no line information here; reverse-stepi steps an instruction")
        back = self.step_over if over else self._step_known
        function = self._function()
        back()
        self._while(lambda: self._line() == start and self._function() == function, back)
        # In the middle or at the end of another line: to its begin.
        line, function = self._line(), self._function()
        last = self.timeline.now()
        for _ in range(_STEPS):
            try:
                back()
            except CommandError:
                break
            if self._line() != line or self._function() != function or self.cut():
                break
            last = self.timeline.now()
        self.timeline.seek(last)

    def _step_known(self) -> None:
        """One instruction; functions without source lines count as one."""
        now = self.timeline.now()
        self.step()
        if self._line() is None and self._call_before(now.pc) is not None:
            self.timeline.seek(now)
            self.step_over()

    def _while(self, holds: Callable[[], bool], back: Callable[[], None]) -> None:
        for _ in range(_STEPS):
            if not holds() or self.cut():
                return
            back()

    # -- functions --------------------------------------------------------------------------------

    def finish(self) -> None:
        """Go back to the call of the function at hand.

        Raises:
            CommandError: it is not known where the function begins.
        """
        session, now = self._session, self.timeline.now()
        frames = self._backtraces.take().frames
        inner = next((frame for frame in frames if frame.source != "syscall"), None)
        module = session.seen.modules.at(now.pc)
        symbol = module.symbol_at(now.pc) if module is not None else None
        if inner is None or inner.cfa is None or module is None or symbol is None:
            raise CommandError("it is not known where this function begins")
        if now.pc == symbol.address + module.bias:
            self.step()
            return
        there = self._entered(now.pc, inner.cfa)
        if self.cut():
            self._again(now)
            return
        if there is None:
            self.timeline.seek(now)
            raise CommandError("the call of this function is not in the history")
        self.timeline.seek(there)
        self.step()

    def _entered(self, pc: int, cfa: int) -> Moment | None:
        """The moment at which a call of now has begun; None if it is not in the history.

        The guest may stand anywhere afterwards.

        Args:
            pc: an address of the function.
            cfa: of the call.

        Raises:
            CommandError: it is not known where the function begins.
        """
        session = self._session
        module = session.seen.modules.at(pc)
        symbol = module.symbol_at(pc) if module is not None else None
        if module is None or symbol is None:
            raise CommandError("it is not known where this function begins")
        slot = session.arch.bits // 8 if session.arch.roles.link is None else 0
        if session.arch.code_unit > 1:
            slot = 0  # calls of bundles leave the stack alone
        entry, now = symbol.address + module.bias, self.timeline.now()
        if now.pc == entry and self._sp() == cfa - slot:
            return now
        there = self._stops.last((StopPlace(entry, lambda: self._sp() == cfa - slot, ""),), now)
        return None if there is None else there[0]

    # -- stops ------------------------------------------------------------------------------------

    def to_last(self, places: Iterable[StopPlace], watches: Sequence[WatchPlace] = ()) -> str:
        """Go back to the last hit of any place before now, or to the first instruction.

        Args:
            places: where to stop.
            watches: at whose accesses, in front of the instructions.

        Returns:
            Why it is stopped at; "" at the first instruction, or where it has begun: it was cut.
        """
        now = self.timeline.now()
        found = self._stops.last(tuple(places), now, watches)
        if self.cut():  # what was found may not be the last one
            self._again(now)
            return ""
        if found is None:
            self.timeline.start()
            return ""
        self.timeline.seek(found[0])
        found[1].arrived()
        return found[1].text

    def to_next(
        self, places: Iterable[StopPlace], end: Moment, watches: Sequence[WatchPlace] = ()
    ) -> str | None:
        """Go on to the next hit of any place.

        Args:
            places: where to stop.
            end: the moment behind which there is nothing.
            watches: at whose accesses to stop, behind the instructions.

        Returns:
            Why it is stopped at; "" where it was cut; None if there is no hit up to the end, to
            which it goes then.
        """
        now = self.timeline.now()
        hits = self._stops.between(tuple(places), now, end, watches, first=True)
        there = next(
            (
                hit
                for hit in hits
                if now < hit[0] <= end or (hit[1].behind and now <= hit[0] < end)
            ),
            None,
        )
        if there is None and self.cut():
            here = self.timeline.now()
            self._again(max(now, self._first_of(here.clock)))
            return ""
        if there is None:
            self.timeline.seek(end)
            return None
        self.timeline.seek(there[0])
        if there[1].behind:
            self._kernel.step()
        there[1].arrived()
        return there[1].text

    def _again(self, moment: Moment) -> None:
        """Go to a moment, even if the guest seems to stand there: in the code of a probe."""
        self.timeline.start()
        self.timeline.seek(moment)

    def _first_of(self, clock: int) -> Moment:
        """The moment at which a tick begins."""
        self.timeline.start()
        self.timeline.seek_clock(clock)
        return self.timeline.now()

    # -- writes -----------------------------------------------------------------------------------

    def last_write(self, address: int, size: int) -> str:
        """Go back to the instruction that has last written to memory before now.

        Returns:
            The system call or signal that has written, in words; "" for an instruction, or where
            it has begun: it was cut.

        Raises:
            CommandError: nothing has, since the program was loaded.
        """
        now = self.timeline.now()
        found = self._memory_writes.last(address, size, now)
        if self.cut():  # what was found may not be the last one
            self._again(now)
            return ""
        if found is None:
            self.timeline.seek(now)
            raise CommandError(f"nothing has written to {address:#x} since the program was loaded")
        self.timeline.seek(found[0])
        return found[1]

    def last_register_write(self, name: str, tid: int, callee: tuple[int, int] | None) -> str:
        """Go back to the instruction of a thread that has last written to a register before now.

        Args:
            name: of the register.
            tid: the thread.
            callee: (pc, CFA) of the call at whose begin the register is meant: that of the frame
                inside of the one whose register it is; None for the registers of now.

        Returns:
            The system call or the like that has written, in words; "" for an instruction, or where
            it has begun: it was cut.

        Raises:
            CommandError: nothing has, since the thread began.
        """
        timeline, session = self.timeline, self._session
        if timeline.ended and session.machine.current.tid != tid:
            raise CommandError(f"thread {tid} has ended: no register of it is left")
        register = next(one for one in session.arch.registers if one.name == name)
        now = timeline.now()
        before = now if callee is None else self._entered(*callee)
        found = None
        if before is not None:
            if before != now:
                timeline.seek(before)
            writes = RegisterWrites(session, self._stretches)
            found = writes.last(register, tid, before, self.cut)
        if self.cut():
            self._again(now)
            return ""
        if found is None:
            self._again(now)
            raise CommandError(f"nothing has written to {name} since thread {tid} began")
        timeline.seek(found[0])
        return found[1]

    # -- origins ----------------------------------------------------------------------------------

    def origin(
        self, place: FollowedPlace, callee: tuple[int, int] | None
    ) -> tuple[OriginLink, ...]:
        """Follow a value back to its origin; the guest stands where it did afterwards.

        Args:
            place: the value.
            callee: as in `last_register_write`.

        Returns:
            The links, from now backwards; as far as it has come where it was cut.

        Raises:
            CommandError: it cannot be followed.
        """
        timeline, session = self.timeline, self._session
        now, ended = timeline.now(), timeline.ended
        if ended and place.register and session.machine.current.tid != place.thread:
            raise CommandError(f"thread {place.thread} has ended: no register of it is left")

        def last_register_write(
            register: Register, tid: int, before: Moment, place: NameAt
        ) -> tuple[Moment, str] | None:
            writes = RegisterWrites(session, self._stretches)
            return writes.last(register, tid, before, self.cut, place)

        try:
            if callee is not None:
                before = self._entered(*callee)
                if before is None:
                    raise CommandError("the call of this function is not in the history")
                timeline.seek(before)
            if session.arch.data_flow is None:
                raise CommandError(f"values of {session.arch.name} cannot be followed")
            origins = Origins(
                *(session, timeline, self._memory_writes.last, last_register_write, self.cut)
            )
            return tuple(origins.follow(place))
        finally:
            self._back_to(now, ended=ended)

    # -- conditions -------------------------------------------------------------------------------

    def first_time(self, condition: Condition, present: Moment) -> str:
        """Go to the first moment at which a condition is true, behind what has made it so.

        One that lives with a call is looked for from the call's begin up to now.

        Args:
            condition: the condition.
            present: the end of what is recorded.

        Returns:
            What has made it true, in words; "" where it has begun: it was cut.

        Raises:
            CommandError: it is true nowhere, or the guest has ended.
        """
        end = present if condition.call is None else self.timeline.now()
        return self._when(
            condition,
            lambda truths, floor: truths.first(condition, floor, end),
        )

    def last_time(self, condition: Condition) -> str:
        """Go back to the last moment before now at which a condition became true.

        Returns:
            What has made it true, in words; "" where it has begun: it was cut.

        Raises:
            CommandError: it has not, or the guest has ended.
        """
        now = self.timeline.now()
        return self._when(condition, lambda truths, floor: truths.last(condition, floor, now))

    def _when(
        self, condition: Condition, find: Callable[[ConditionSearch, Moment | None], str]
    ) -> str:
        session, now = self._session, self.timeline.now()
        ended = self.timeline.ended
        text = ""
        try:
            floor = None if condition.call is None else self._entered(*condition.call)
            if not self.cut():
                text = find(ConditionSearch(session, self._stretches, self.cut), floor)
        except CommandError:
            self._back_to(now, ended=ended)
            raise
        if self.cut():
            self._back_to(now, ended=ended)
            return ""
        return text

    def _back_to(self, moment: Moment, *, ended: bool) -> None:
        if ended:
            self.timeline.end()
        else:
            self._again(moment)

    # -- looking ----------------------------------------------------------------------------------

    def _sp(self) -> int:
        session = self._session
        return session.cpu.read_register(session.arch.roles.sp)

    def _line(self) -> Line | None:
        pc = self.timeline.now().pc
        module = self._session.seen.modules.at(pc)
        return module.line_at(pc) if module is not None else None

    def _function(self) -> int:
        pc = self.timeline.now().pc
        module = self._session.seen.modules.at(pc)
        symbol = module.symbol_at(pc) if module is not None else None
        return 0 if symbol is None or module is None else symbol.address + module.bias

    def _returns(self) -> bool:
        """True if the instruction at hand returns from a function."""
        insn = self._insn()
        return insn is not None and _RETURN.match(insn.text) is not None

    def _calls(self) -> bool:
        """True if the instruction at hand calls a function."""
        insn = self._insn()
        return insn is not None and self._session.arch.is_call(insn)

    def _insn(self) -> Insn | None:
        """The instruction at hand."""
        session = self._session
        pc = self.timeline.now().pc
        return next(iter(session.disassembler.decode(pc, session.code_at(pc))), None)
