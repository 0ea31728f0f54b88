"""Returns caught as Linux catches them: a trampoline's address in place of the return address.

The rules are those of uprobes (kernel/events/uprobes.c), whose instances live on a user stack
that longjmp may cut: at each call and return the instances whose frame is gone are dropped, a
call that finds the trampoline as its return address is chained to the one before it, and a
thread has at most 64 pending. Kretprobes share the list but for that limit: they have their
pools. The trampoline is a breakpoint whose emulation is the return to the real address.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from engine.arch.base import TrapKind
from engine.arch.plan import InsnPlan, Mode, Operation, Rules, StepCpu, Verdict
from engine.arch.returns import Trampoline
from engine.cpu.base import LEAVE, Stop, StopKind, TrapAction
from engine.errors import GuestFaultError
from engine.message_text import counted
from engine.probes.frame_reader import FrameReader
from engine.probes.hooked_calls import HookedCall, HookedCalls, KeyedCalls, StackedCalls, drop
from engine.probes.instance_pool import InstancePool
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import CallWork, Kretprobe, KretprobeInstance
from engine.probes.pending_calls import ReturnSite
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import (
    CatcherKind,
    Noted,
    ReturnCatcher,
    ReturnChanges,
)
from engine.probes.stepping import StepStopError
from engine.probes.target import ProbeTarget

if TYPE_CHECKING:
    from engine.probes.return_probes import ReturnProbes
    from engine.probes.return_sites import ReturnSites

DEPTH_MAX: Final = 64
"""Pending uretprobes of a thread (MAX_URETPROBE_DEPTH)."""

NAME: Final = "kretprobe_trampoline"


class ReturnHijack(Protocol):
    """A way to lead calls to a trampoline, and on from there when they come.

    Attributes:
        code: the trampoline.
        text: what comes of a return to it, in words.
        changes: what is changed of the program's own.
        explained: unwinders get through the trampoline by its own unwind data.
    """

    code: Trampoline
    text: str
    changes: ReturnChanges
    explained: bool

    def replace(
        self, frames: FrameReader, sp: int, address: int, made: list[KretprobeInstance]
    ) -> bool:
        """Let a call return to the trampoline.

        Args:
            frames: has just read its frame.
            sp: of that.
            address: of the trampoline.
            made: the call's instances.

        Returns:
            False, with nothing changed, if that cannot be.
        """

    def give_back(self, address: int) -> None:
        """At the trampoline: make the caller's frame what it is behind the call.

        Args:
            address: of the trampoline.

        Raises:
            GuestFaultError: what was saved cannot be read.
            StepStopError: the register stack cannot be.
        """


class AddressReplaced:
    """Return addresses are overwritten, as Linux does it; a `ReturnHijack`."""

    text = "goes on where the call was made"
    explained = False

    def __init__(self, target: ProbeTarget) -> None:
        """Take the architecture's usual trampoline."""
        usual, link = target.arch.returns, target.arch.roles.link
        self.code = usual.trampoline if usual is not None else Trampoline(target.arch.breakpoint)
        self.changes = ReturnChanges(True, () if link is None else (link,))

    def replace(
        self, frames: FrameReader, sp: int, address: int, made: list[KretprobeInstance]
    ) -> bool:
        """Overwrite the return address."""
        return frames.redirect(sp, address)

    def give_back(self, address: int) -> None:
        """Nothing: the return itself has done that."""


class _TrampolineProbe(Kprobe):
    """The engine's own probe on the trampoline."""

    machinery = True

    __slots__ = ()


class TrampolineReturns:
    """Catches returns at a trampoline that calls are led to.

    Attributes:
        told: see `ReturnCatcher`, as for what follows.
        trampoline: (where calls return to, end) of its code.
        changes: the return address, and what comes with that.
        in_guest: code in the guest may not record calls.
        damaged: none, therefore.
        frames: reads the frames of calls.
        pool: gives instances to calls.
        address: where calls return to: a breakpoint.
        point: the trampoline as a probed place.
        threads: the calls that are pending, by thread id.
    """

    def __init__(self, host: "ReturnProbes", start: int, hijack: ReturnHijack) -> None:
        """Nothing is written yet.

        Args:
            host: of the catcher.
            start: where the trampoline goes.
            hijack: how calls are led there.
        """
        self._host = host
        self._target = target = host.target
        self.told = ""
        self.changes = hijack.changes
        self.in_guest: ReturnSites | None = None
        self.damaged = 0
        self.frames = FrameReader(target)
        self.pool = InstancePool(target, self._sweep)
        self._hijack = hijack
        self._replace = hijack.replace
        pushes = bool(target.arch.probes.pushes) and not hijack.explained
        self._leaves = target.mode is Mode.KERNEL and pushes
        code = hijack.code
        self.address = address = start + code.entry
        self.threads: dict[int, HookedCalls] = {}
        plan = InsnPlan(
            address,
            code.code[code.entry : code.entry + target.arch.insn_max],
            Verdict.EMULATED,
            f"the return trampoline: {hijack.text}",
            operation=Operation(
                "return through the trampoline",
                self._leave,
                machinery=target.mode is not Mode.KERNEL,  # Linux has the program trap there, too
            ),
            step=code.step,
        )
        self._inherited: HookedCalls | None = None  # of a new process's first thread
        self._replaced: int | None = None  # the return address that the last call had
        self.point = ProbePoint(address, plan)
        self._probe = _TrampolineProbe(addr=address, name=NAME)
        self.point.add(self._probe)
        self.trampoline: tuple[int, int] | None = (address, start + len(code.code))

    # -- registration ---------------------------------------------------------------------

    def admit(self, probe: Kretprobe) -> None:
        """A return probe is registered: the trampoline has to stand."""
        if not self.point.armed:
            code = self._hijack.code
            self._host.stand(self.point, self.address - code.entry, code.code)
        self.pool.admit(probe)
        if probe.handler is not None:
            self.attend(1)

    def armed(self) -> None:
        """Nothing more is needed."""

    def dismiss(self, probes: Iterable[Kretprobe]) -> None:
        """Return probes are gone.

        Instances stay, as their frames hold the trampoline's address, but serve nobody; only a
        tracker still hears of them.
        """
        gone = set(probes)
        self.pool.serves -= self.pool.handled(gone)
        for thread in self.threads.values():
            for hook in thread:
                if hook.instance.rp in gone and hook.instance.rp.tracker is None:
                    hook.instance.rp = _GONE

    def attend(self, more: int) -> None:
        """Somebody wants the trampoline to come to the engine."""
        self.pool.serves += more
        if self.pool.serves and self._probe.pre_handler is None:
            self._probe.pre_handler = lambda probe, regs: 0
            self._host.replant(self.address)

    def replace_call(self, probe: Kretprobe, call: CallWork | None) -> None:
        """Nothing: code in the guest does nothing about calls."""

    def forget(self, address: int) -> None:
        """Nothing: no place of the program's is watched."""

    def close(self) -> None:
        """No return probe is left; the trampoline stays for the calls that are pending."""

    def follow(self, other: ReturnCatcher, twins: Mapping[Kprobe, Kprobe]) -> None:
        """The calls that are pending in the thread that makes a new process return in both.

        Their frames are copies that hold the trampoline's address (dup_utask).
        """
        if isinstance(other, TrampolineReturns):
            number = self._target.thread()
            self._inherited = other.copied(number, lambda rp: twins.get(rp, _GONE))

    def lend(self, thread: int, child: int) -> None:
        """Lend calls to a new process: they return there, and again in the memory's own."""
        self.threads[child] = self.copied(thread, lambda rp: rp)

    def over(self, thread: int, low: int, high: int) -> None:
        """All calls of the thread are gone."""
        for hook in self.threads.pop(thread, self._none()):
            drop(hook.instance)

    def copied(self, thread: int, twin: Callable[[Kretprobe], Kprobe]) -> HookedCalls:
        """A copy of a thread's pending calls.

        Args:
            thread: its id.
            twin: gives the probe that stands for one of theirs.
        """
        made = self._none()
        for hook in reversed(list(self.threads.get(thread, ()))):
            probe = twin(hook.instance.rp)
            assert isinstance(probe, Kretprobe), "it stands for one"
            instance = hook.instance.twin(probe)
            if probe.tracker is not None:
                instance.rp = _GONE
            instance.rp.active += 1
            made.push(HookedCall(instance, chained=hook.chained, leads=hook.leads))
        return made

    def note(self, noted: Noted) -> None:
        """From now on somebody hears of each value that is replaced for a call."""
        replace, names = self._hijack.replace, self.changes.registers
        read, sp_name = self._target.cpu.read_registers, self._target.arch.roles.sp

        def noting(
            frames: FrameReader, sp: int, address: int, made: list[KretprobeInstance]
        ) -> bool:
            stack, before = self._target.cpu.read_register(sp_name), read(names)
            if not replace(frames, sp, address, made):
                return False
            changed = zip(names, before, read(names), strict=True)
            pairs = [(old, new) for name, old, new in changed if name != sp_name]
            noted(stack, ((made[0].ret_addr, address), *pairs))
            return True

        self._replace = noting

    # -- a call ---------------------------------------------------------------------------

    def action(self, point: ProbePoint, go: TrapAction) -> TrapAction:
        """Replace the return address, whatever else is on the point."""
        plain = [probe for probe in point.enabled() if not isinstance(probe, Kretprobe)]
        thread, frame, hook = self._target.thread, self.frames.frame, self._hook

        def action() -> int:
            try:
                sp, ret_addr = frame()
            except GuestFaultError:
                return LEAVE
            for probe in plain:
                probe.hits += 1
                if probe.record is not None:
                    probe.record(thread())
            hook(point, sp, ret_addr)
            return go()

        return action

    def enter(self, point: ProbePoint) -> None:
        """The same outside of the emulator."""
        try:
            self._hook(point, *self.frames.frame())
        except GuestFaultError:
            self.told = "the return address cannot be read"
            return
        self.told = "the call is not hooked"
        if self._replaced is not None:
            self.told = f"the return address {self._replaced:#x} is replaced by {NAME}"

    def _hook(self, point: ProbePoint, sp: int, ret_addr: int) -> None:
        thread = self._thread()
        self._replaced = None
        chained = ret_addr == self.address
        thread.begin(sp, chained, lambda instance: self._calls(instance, ret_addr))
        older = thread.newest(sp) if chained else None
        if chained and older is None:  # what is left of an old call on the stack
            _missed(point)
            return
        uprobes = any(probe.rules is Rules.UPROBE for probe in point.probes)
        if uprobes and thread.depth >= DEPTH_MAX:
            self._cut(sp)
        if uprobes and thread.depth >= DEPTH_MAX:
            _missed(point)
            return
        real = ret_addr if older is None else older.instance.ret_addr
        made = self.pool.made(point, real, sp)
        if not made or not (chained or self._replace(self.frames, sp, self.address, made)):
            for instance in made:
                drop(instance)
            return
        leads = made[0].rp.rules is Rules.UPROBE
        for instance in made:
            thread.push(HookedCall(instance, chained=chained, leads=leads))
            chained, leads = True, False
        self._replaced = real

    def _calls(self, instance: KretprobeInstance, ret_addr: int) -> bool:
        """True if a pending call has made another without moving any stack pointer.

        Its return address is in a register then. Linux does not look; where it has uprobes
        (AArch64), such a function does not survive them.
        """
        if not self.frames.keyed or instance.ret_addr == ret_addr:
            return False
        around = self._target.code_map.function(instance.rp.addr or 0)
        return around is not None and around[0] <= ret_addr < around[1]

    # -- a return -------------------------------------------------------------------------

    def _leave(self, cpu: StepCpu) -> int:
        """The guest has returned to the trampoline: the address that it goes on at.

        Without anything pending the program has made the address up (or kept it: setjmp): the
        trampoline faults, which kills it as Linux does.
        """
        left = self.frames.left_behind()
        frame = self._thread().take(left)
        if not frame:
            raise GuestFaultError(self.address, "execute")
        self.told = _of_frame(len(frame))
        try:
            self._hijack.give_back(self.address)
        except (GuestFaultError, StepStopError):
            for instance in frame:
                drop(instance)
            raise
        return self._serve(frame, left)

    def _serve(self, frame: list[KretprobeInstance], left: int) -> int:
        """Calls have returned: where the guest goes on. Handlers see the caller's frame."""
        target, thread = self._target, self._target.thread()
        real = target.regs.ip = frame[0].ret_addr
        for instance in frame:
            self.pool.finish(instance, real, thread)
        goes_on = target.regs.ip
        if self._leaves:
            self.frames.leave(left, goes_on)
        return goes_on

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """The calls of the newest frame that longjmp has not left."""
        if point is not self.point:
            return ()
        return self._thread().arriving(self.frames.left_behind())

    def missed(self, site: ReturnSite) -> None:
        """Nothing: no place of the program's is watched."""

    # -- frames ---------------------------------------------------------------------------

    def _thread(self) -> HookedCalls:
        number = self._target.thread()
        found = self.threads.get(number)
        if found is None:
            found, self._inherited = self._inherited or self._none(), None
            self.threads[number] = found
        return found

    def _none(self) -> HookedCalls:
        return KeyedCalls() if self.frames.keyed else StackedCalls(self.frames.stacked)

    def _sweep(self) -> None:
        """Find instances of calls that were left without a return."""
        self._cut(self.frames.frame()[0])

    def _cut(self, slot: int) -> None:
        """Frames below one, on the same stack, are gone."""
        stack = self._target.stack_at(self.frames.sp_of(slot))
        if stack is not None:
            self._thread().below(slot, self.frames.lowest_at(stack[0]))

    # -- what others see ------------------------------------------------------------------

    def original_pc(self, address: int) -> int:
        """The program's own address for the trampoline's, unless that is code like any other."""
        if address != self.address or self._hijack.explained:
            return address
        calls = self.arriving(self.point)
        return calls[0].ret_addr if calls else address

    def resolve(self, address: int, slot: int, met: int = 0) -> int | None:
        """The real return address of a frame, None if it was not replaced.

        Where unwinders get through the trampoline by themselves it is the trampoline's.
        """
        if address != self.address:
            return None
        found = self._thread().returns(slot)[met : met + 1]
        if not found:
            return None
        return address if self._hijack.explained else found[0]

    def holds(self, pc: int) -> bool:
        """Signals wait until the trampoline has gone back to the caller."""
        if self._hijack.explained:
            return self._inside(pc)
        return self.original_pc(pc) != pc

    def _inside(self, pc: int) -> bool:
        start, end = self.trampoline or (0, 0)
        return start <= pc < end

    def unwind_info(self, pc: int) -> tuple[int, bytes] | None:
        """The trampoline's, if unwinders get through it by that."""
        code = self._hijack.code
        found = self._hijack.explained and self._inside(pc)
        return (self.address - code.entry, code.unwind) if found else None

    def replaced(self) -> tuple[int, ...]:
        """Real return addresses of the running thread's calls, newest first."""
        return tuple(hook.instance.ret_addr for hook in self._thread() if not hook.chained)

    def opaque(self) -> list[Kretprobe]:
        """The probes whose pending calls no unwinder of the program gets past, newest first."""
        if self._hijack.explained:
            return []
        return list(dict.fromkeys(hook.instance.rp for hook in self._thread()))

    def name(self, address: int) -> str:
        """A place in the trampoline as a symbol, "" elsewhere."""
        offset = address - self.address
        return (NAME + (f"+{offset:#x}" if offset else "")) if self._inside(address) else ""

    def as_seen(self, point: ProbePoint, stop: Stop) -> Stop:
        """A return to the trampoline that nobody made is an illegal instruction."""
        if point is not self.point or stop.trap is TrapKind.SINGLE_STEP:
            return stop
        return Stop(StopKind.TRAP, TrapKind.ILLEGAL)


def _missed(point: ProbePoint) -> None:
    for probe in point.enabled():
        if isinstance(probe, Kretprobe):
            probe.hits += 1
            probe.nmissed += 1


@cache
def _of_frame(count: int) -> str:
    return f"{counted(count, 'instance')} of this frame"


_GONE: Final = Kretprobe(addr=0, name="an unregistered probe")

LINUX_TRAMPOLINE: Final = CatcherKind(
    "mainline",
    Mode.KERNEL,
    trampoline=True,
    build=lambda host, page: TrampolineReturns(host, page, AddressReplaced(host.target)),
)
