"""A live guest that is brought to a moment of a recorded run: all of it is carried out once more.

The same program under the same seed gets what came from outside before: the host's answers, and
what the user has done to it. Its kernel has its own files, pipes and timers that way, and goes on
as any other from there. Its journal is compared with the recorded one, entry by entry: what is
not the same is told.
"""

from collections.abc import Callable
from typing import Any, Final

from engine.cpu.base import Stop, StopKind
from engine.errors import KprobeTuiError
from engine.history.comparing import explained, same_entry, what_differs
from engine.history.inputs import ActKind, HostInputs, UserAct
from engine.history.journal import EntryCause, Journal, Op
from engine.history.moment import Moment
from engine.history.recording import RunRecorder
from engine.linux.kernel import Kernel
from engine.linux.thread import Thread

_SLICE: Final = 1_000_000
"""Ticks between two looks at whether it is to go on."""
_IDLE: Final = 4
"""Times that a guest may wait for what did not come before."""


class ReenactmentError(KprobeTuiError):
    """A run does not do again what it did before."""

    hint = (
        "a branch needs the files that the guest has used as they were: files of a --share that "
        "were changed since, by the guest itself or by others, make another run of it"
    )


class ReenactedKernel(Kernel):
    """A guest's kernel that is told where the processor is to pause.

    Attributes:
        limit: a tick at whose end the processor pauses, unseen by the guest; None for none.
        due: the same, but the kernel looks at what has come from the host there.
        arrived: asked before the program goes on: whether it is to stay.
    """

    limit: int | None = None
    due: int | None = None
    arrived: Callable[[], bool] | None = None
    _unseen = False

    def _quantum(self) -> int | None:
        quantum, now = super()._quantum(), self._cpu.blocks()
        self._unseen = False
        if self.due is not None:
            rest = max(self.due - now, 0)
            quantum = rest if quantum is None else min(quantum, rest)
        if self.limit is not None:
            rest = max(self.limit - now, 0)
            if quantum is None or rest < quantum:
                quantum, self._unseen = rest, True
        return quantum

    def _goes_on(self, thread: Thread) -> bool:
        """True if a thread runs on once its signals have been delivered."""
        return super()._goes_on(thread) and (self.arrived is None or not self.arrived())

    def step_once(self) -> None:
        """One instruction, or what comes in front of it; nobody waits."""
        with self._working():
            self._step()

    def take(self, stop: Stop, *, asked: bool = False) -> None:
        """Do what is left of a stop, unless it is none of the guest's."""
        if stop.kind is not StopKind.QUANTUM or not self._unseen:
            super().take(stop, asked=asked)


class Reenactment:
    """Brings one guest to moments of a run that was recorded.

    Attributes:
        on_the_way: a moment, and what is to be done there before the guest goes on.
    """

    on_the_way: tuple[Moment, Callable[[], object]] | None = None

    def __init__(
        self,
        kernel: ReenactedKernel,
        recorder: RunRecorder,
        journal: Journal,
        script: HostInputs,
    ) -> None:
        """The guest stands in front of its first instruction.

        Args:
            kernel: its own.
            recorder: records it; its inputs are given again.
            journal: of the recorded run.
            script: what came into that from its host.
        """
        assert recorder.inputs is not None, "it is to be carried out again"
        self._kernel = kernel
        self._cpu = kernel.machine.cpu
        self._machine = kernel.machine
        self._pc = kernel.machine.arch.roles.pc
        self._recorder = recorder
        self._inputs = recorder.inputs
        self._old = journal
        self._new = recorder.journal
        self._script = script
        self._unlike: int | None = None
        self._compared = 0
        recorder.grown = lambda size: self._compare()
        self._compare()

    def run(self, moment: Moment, goes_on: Callable[[], bool]) -> bool:
        """Bring the guest to a moment, from which it is live; False if that was cut.

        Args:
            moment: of the recorded run, in front of an instruction.
            goes_on: asked now and then: False ends it.

        Raises:
            ReenactmentError: the guest does not do what it did.
        """
        way = self.on_the_way
        for act in self._script.acts:
            # What the user did at the moment itself comes behind it.
            if act.moment >= moment:
                break
            if way is not None and way[0] <= act.moment:
                if not self._to(way[0], goes_on):
                    return False
                way[1]()
                way = None
            if not self._to(act.moment, goes_on):
                return False
            self._do(act)
        if way is not None and way[0] < moment:
            if not self._to(way[0], goes_on):
                return False
            way[1]()
            way = None
        if not self._to(moment, goes_on):
            return False
        if way is not None:
            way[1]()
        self._recorder.grown = lambda size: None
        ours, theirs = self._new.contents, self._old.contents
        ours.update(
            (key, theirs[key]) for key in ours.keys() & theirs.keys()
        )  # kept once for both
        self._inputs.go_live()
        return True

    def _now(self, *, whole: bool = False) -> Moment:
        """The moment at which the guest stands.

        Args:
            whole: the entry that is being made is done.
        """
        pc = self._machine.current.hooks.original_pc(self._cpu.read_register(self._pc))
        return Moment(len(self._new) + whole, self._cpu.coming(), pc)

    def _to(self, moment: Moment, goes_on: Callable[[], bool]) -> bool:
        kernel, cpu = self._kernel, self._cpu
        idle = 0
        kernel.arrived = lambda: self._now(whole=self._is_whole()) == moment
        try:
            while True:
                self._settle()
                self._check()
                now = self._now()
                if now == moment:
                    return True
                if not goes_on():
                    return False
                if now[:2] > moment[:2]:
                    raise self._parted("the guest has gone on")
                if self._machine.exit is not None:
                    raise self._parted("the guest has ended")
                idle = idle + 1 if self._inputs.dry else 0
                if idle > _IDLE:
                    raise self._parted("the guest waits for what did not come then")
                self._inputs.dry = False
                slice_end = cpu.blocks() + _SLICE
                kernel.limit, kernel.due = slice_end, None
                inside = bool(self._recorder.open_ops)
                following = now.at + inside
                if following < moment.at:
                    entry = self._old[following]
                    if entry.cause == EntryCause.QUANTUM:
                        kernel.due = entry.clock
                    kernel.resume()
                elif inside:
                    kernel.step_once()
                elif now.clock < moment.clock and cpu.blocks() < moment.clock - 1:
                    kernel.limit = min(slice_end, moment.clock - 1)
                    kernel.resume()
                else:
                    kernel.step_once()
        finally:
            kernel.limit = kernel.due = kernel.arrived = None

    def _settle(self) -> None:
        """Have all in the journal that the recorded run had there at this moment."""
        if self._is_whole():
            self._recorder.sync()

    def _is_whole(self) -> bool:
        """True if all has happened that the entry has which is being made."""
        at, ready = len(self._new), self._recorder.open_ops
        return bool(ready) and at < len(self._old) and ready >= len(self._old[at].ops)

    def _compare(self) -> None:
        """See whether the entries that have come are those of the recorded run."""
        old, new = self._old, self._new
        while self._compared < len(new) and self._unlike is None:
            at = self._compared
            if at >= len(old) or not same_entry(old, new, at):
                self._unlike = at
                return
            new.raw[at] = old.raw[at]  # kept once for both
            self._compared += 1

    def _check(self) -> None:
        if self._unlike is not None:
            at = self._unlike
            raise ReenactmentError(
                f"the guest does not do again what it did, in {self._machine.caller.call.name}: "
                + what_differs(self._old, self._new, at)
            )
        if self._inputs.unlike:
            raise self._parted("the guest asks its host for something else")

    def _parted(self, what: str) -> ReenactmentError:
        now = self._now()
        at = now.at
        recorded = explained(self._old[at]) if at < len(self._old) else "nothing more"
        return ReenactmentError(
            f"the guest does not do again what it did: {what}, at tick {now.clock}, pc "
            f"{now.pc:#x}, thread {self._machine.tid}; recorded was {recorded}"
        )

    # -- what the user did ------------------------------------------------------------------------

    def _do(self, act: UserAct) -> None:
        kernel, machine = self._kernel, self._machine
        if act.kind is ActKind.EDIT:
            with self._recorder.edited():
                for op in act.value:
                    self._change(op)
        elif act.kind is ActKind.SIGNAL:
            kernel.host_signal(act.value)
            kernel.hear()
        else:
            thread = machine.threads.get(act.value) if act.value else None
            kernel.prefer(thread, at_once=act.kind is ActKind.PREFER)

    def _change(self, op: Any) -> None:
        """A change by the user; what follows from it follows by itself."""
        kind, *rest = op
        if kind == Op.REGISTER:
            self._machine.registers.write_register(*rest)
        elif kind == Op.BLOCK:
            self._machine.registers.write_block(*rest)
        elif kind == Op.WRITE:
            self._machine.current.memory.poke(*rest)
        elif kind == Op.POKE:
            number, address, data = rest
            self._recorder.space(number).memory.poke(address, data)
        elif kind == Op.SWITCH:
            self._kernel.look_at(self._machine.threads[rest[0]])
