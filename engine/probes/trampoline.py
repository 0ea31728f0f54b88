"""Returns caught as Linux catches them: a trampoline's address in place of the return address.

The rules are those of uprobes (kernel/events/uprobes.c), whose instances live on a user stack
that longjmp may cut: at each call and return the instances whose frame is gone are dropped, a
call that finds the trampoline as its return address is chained to the one before it, and a
thread has at most 64 pending. Kretprobes share the list but for that limit: they have their
pools. The trampoline is a breakpoint whose emulation is the return to the real address.
"""

from functools import cache
from typing import Final

from engine.arch.plan import InsnPlan, Operation, Rules, StepCpu, Verdict
from engine.arch.returns import Trampoline
from engine.cpu.base import LEAVE, TrapAction
from engine.cpu.ram import EXECUTE, WRITE
from engine.errors import GuestFaultError
from engine.probes.hooked_calls import HookedCall, HookedCalls, KeyedCalls, StackedCalls, drop
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import Owner, Returns

DEPTH_MAX: Final = 64
"""SiteCalls uretprobes of a thread (MAX_URETPROBE_DEPTH)."""

NAME: Final = "kretprobe_trampoline"

_ACCESS: Final = WRITE | EXECUTE


class LinuxTrampoline(Returns):
    """Return addresses are replaced.

    Attributes:
        address: where calls return to: a breakpoint.
        kind: the trampoline that it is in.
        point: the trampoline as a probed place.
        threads: what is pending, by thread id.
    """

    def __init__(
        self,
        owner: Owner,
        start: int,
        kind: Trampoline | None = None,
        text: str = "goes on where the call was made",
    ) -> None:
        """Nothing is written yet.

        Args:
            owner: the manager of probes.
            start: where the trampoline goes.
            kind: what stands there; None for the architecture's usual.
            text: what comes of a return to it.
        """
        super().__init__(owner)
        if kind is None:
            usual = owner.arch.returns
            kind = usual.trampoline if usual is not None else Trampoline(owner.arch.breakpoint)
        self.kind = kind
        self.address = address = start + kind.entry
        self.threads: dict[int, HookedCalls] = {}
        plan = InsnPlan(
            address,
            kind.code[kind.entry : kind.entry + owner.arch.insn_max],
            Verdict.EMULATED,
            f"the return trampoline: {text}",
            operation=Operation("return through the trampoline", self._leave),
            step=kind.step,
        )
        self._replaced: int | None = None  # the return address that the last call had
        self.point = ProbePoint(address, plan)
        self._probe = Kprobe(addr=address, name=NAME)
        self.point.probes.append(self._probe)
        self.trampoline = address, start + len(kind.code)

    def attend(self, more: int) -> None:
        """Somebody wants the trampoline to come to the engine."""
        super().attend(more)
        if self._serves and self._probe.pre_handler is None:
            self._probe.pre_handler = lambda probe, regs: 0
            self.owner.replant(self.address)

    # -- a call ---------------------------------------------------------------------------

    def action(self, point: ProbePoint, go: TrapAction) -> TrapAction:
        """Replace the return address, whatever else is on the point."""
        plain = [probe for probe in point.enabled() if probe.record is not None]
        thread, frame, hook = self.owner.thread, self.frame, self._hook

        def action() -> int:
            try:
                sp, ret_addr = frame()
            except GuestFaultError:
                return LEAVE
            for probe in plain:
                probe.hits += 1
                probe.record(thread())  # type: ignore[misc]
            hook(point, sp, ret_addr)
            return go()

        return action

    def enter(self, point: ProbePoint) -> None:
        """The same outside of the emulator."""
        try:
            self._hook(point, *self.frame())
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
        if chained and older is None:
            return
        uprobes = any(probe.rules is Rules.UPROBE for probe in point.probes)
        if uprobes and thread.depth >= DEPTH_MAX:
            self._cut(sp)
        if uprobes and thread.depth >= DEPTH_MAX:
            for probe in point.enabled():
                if isinstance(probe, Kretprobe):
                    probe.hits += 1
                    probe.nmissed += 1
            return
        real = ret_addr if older is None else older.instance.ret_addr
        made = self.made(point, real, sp)
        if not made or not (chained or self._replace(sp, made)):
            for instance in made:
                drop(instance)
            return
        leads = made[0].rp.rules is Rules.UPROBE
        for instance in made:
            thread.push(HookedCall(instance, chained=chained, leads=leads))
            chained, leads = True, False
        self._replaced = real

    def _calls(self, instance: KretprobeInstance, ret_addr: int) -> bool:
        """Whether a pending call has made another without moving any stack pointer.

        Its return address is in a register then. Linux does not look; where it has uprobes
        (AArch64), such a function does not survive them.
        """
        if self._keys is None or instance.ret_addr == ret_addr:
            return False
        around = self.owner.code_map.function(instance.rp.addr or 0)
        return around is not None and around[0] <= ret_addr < around[1]

    def _replace(self, sp: int, made: list[KretprobeInstance]) -> bool:
        """Let a call return to the trampoline."""
        owner = self.owner
        link = owner.arch.roles.link
        if link is not None:
            owner.cpu.write_register(link, self.address)
            return True
        stack = self._stack
        plain = stack is not None and stack.perms & _ACCESS == WRITE and not owner.memory.closed
        if stack is not None and plain and not sp & self._word - 1:
            self._words[sp - stack.start >> 3] = self.address  # what `frame` has just read
            return True
        try:
            owner.step.store(sp, self.address.to_bytes(self._word, "little"))
        except GuestFaultError:
            return False
        return True

    # -- a return -------------------------------------------------------------------------

    def _leave(self, cpu: StepCpu) -> int:
        """The guest has returned to the trampoline: the address that it goes on at.

        Without anything pending the program has made the address up (or kept it: setjmp): the
        trampoline faults, which kills it as Linux does.
        """
        frame = self._thread().take(self.left_behind())
        if not frame:
            raise GuestFaultError(self.address, "execute")
        self.told = _of_frame(len(frame))
        return self._serve(frame)

    def _serve(self, frame: list[KretprobeInstance]) -> int:
        """Calls have returned: where the guest goes on."""
        regs, thread = self.owner.regs, self.owner.thread()
        real = regs.ip = frame[0].ret_addr
        for instance in frame:
            self.finish(instance, real, thread)
        return regs.ip

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """Those of the newest frame that longjmp has not left."""
        if point is not self.point:
            return ()
        return self._thread().arriving(self.left_behind())

    # -- what others ask ------------------------------------------------------------------

    def _thread(self) -> HookedCalls:
        number = self.owner.thread()
        found = self.threads.get(number)
        if found is None:
            found = StackedCalls(self._stacked) if self._keys is None else KeyedCalls()
            self.threads[number] = found
        return found

    def _sweep(self, probe: Kretprobe) -> None:
        """Find instances of calls that were left without a return."""
        self._cut(self.frame()[0])

    def _cut(self, slot: int) -> None:
        """Frames below one, on the same stack, are gone."""
        thread, stack = self._thread(), self.owner.memory.find(self.sp_of(slot))
        if isinstance(thread, KeyedCalls) and stack is not None:
            thread.below(slot, self.lowest_at(stack.start))

    def _purge(self, gone: set[Kretprobe]) -> None:
        """Instances stay, as their frames hold the trampoline's address, but serve nobody."""
        for thread in self.threads.values():
            for hook in thread:
                if hook.instance.rp in gone:
                    hook.instance.rp = _GONE

    def close(self) -> None:
        """No return probe is left; the trampoline stays for the calls that are pending."""

    def original_pc(self, address: int) -> int:
        """The program's own address for the trampoline's; others stay as they are."""
        if address != self.address:
            return address
        calls = self.arriving(self.point)
        return calls[0].ret_addr if calls else address

    def resolve(self, address: int, slot: int) -> int | None:
        """The real return address of a frame; None if it was not replaced."""
        if address != self.address:
            return None
        calls = self.pending(slot)
        return calls[0].ret_addr if calls else None

    def pending(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The calls pending in a frame, newest first."""
        return self._thread().at(slot)


@cache
def _of_frame(count: int) -> str:
    return f"{count} instance(s) of this frame"


_GONE: Final = Kretprobe(addr=0, name="an unregistered probe")
