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
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.probes.point import ProbePoint
from engine.probes.returns import Owner, Returns

DEPTH_MAX: Final = 64
"""Pending uretprobes of a thread (MAX_URETPROBE_DEPTH)."""

NAME: Final = "kretprobe_trampoline"

_ACCESS: Final = WRITE | EXECUTE


class Hook:
    """An instance whose frame returns to the trampoline.

    Attributes:
        instance: it.
        chained: it shares its frame with the one before it.
        leads: the first of a uprobe's hit: it counts against the depth.
    """

    __slots__ = ("chained", "instance", "leads")

    def __init__(self, instance: KretprobeInstance, *, chained: bool, leads: bool) -> None:
        self.instance = instance
        self.chained = chained
        self.leads = leads


class Hijacked(Returns):
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
        self.threads: dict[int, _Thread] = {}
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
        stack = thread.hooks
        self._replaced = None
        chained = ret_addr == self.address
        while stack:
            last = stack[-1].instance.slot
            if sp < last or (
                sp == last and (chained or self._calls(stack[-1].instance, ret_addr))
            ):
                break
            _leave(thread.pop().instance)
        if chained and not stack:
            return
        if thread.depth >= DEPTH_MAX and any(p.rules is Rules.UPROBE for p in point.probes):
            for probe in point.enabled():
                if isinstance(probe, Kretprobe):
                    probe.hits += 1
                    probe.nmissed += 1
            return
        real = stack[-1].instance.ret_addr if chained else ret_addr
        made = self.made(point, real, sp)
        if not made or not (chained or self._replace(sp, made)):
            for instance in made:
                _leave(instance)
            return
        leads = made[0].rp.rules is Rules.UPROBE
        for instance in made:
            thread.push(Hook(instance, chained=chained, leads=leads))
            chained, leads = True, False
        self._replaced = real

    def _calls(self, instance: KretprobeInstance, ret_addr: int) -> bool:
        """Whether a pending call has made another without moving any stack pointer.

        Its return address is in a register then. Linux does not look; where it has uprobes
        (AArch64), such a function does not survive them.
        """
        if self._keys is None:
            return False
        around = self.owner.placement.function(instance.rp.addr or 0)
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
        thread = self._thread()
        stack, sp = thread.hooks, self.left_behind()
        while stack:
            frame = self._frame(thread)
            below = stack[-1].instance.slot if stack else None
            if self._is_left(frame[0].slot, below, sp):
                self.told = _of_frame(len(frame))
                return self._serve(frame)
            for instance in frame:  # longjmp has left this frame
                _leave(instance)
        raise GuestFaultError(self.address, "execute")

    def _is_left(self, slot: int, below: int | None, sp: int) -> bool:
        """Whether a return that leaves this stack pointer behind is that of the frame `slot`.

        `below` is the next older one. Where the stack pointer is not all that tells frames
        apart, what does is as it was at the entry.
        """
        if self._keys is not None:
            return slot >= sp
        return below is None or sp < below or (self._stacked and sp == below)

    def _serve(self, frame: list[KretprobeInstance]) -> int:
        """Calls have returned: where the guest goes on."""
        regs, thread = self.owner.regs, self.owner.thread()
        real = regs.ip = frame[0].ret_addr
        for instance in frame:
            self.finish(instance, real, thread)
        return regs.ip

    def _frame(self, thread: "_Thread") -> list[KretprobeInstance]:
        """Take the newest frame's instances, the newest first."""
        last = thread.pop()
        found = [last.instance]
        while last.chained and thread.hooks:
            last = thread.pop()
            found.append(last.instance)
        return found

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """Those of the newest frame that longjmp has not left."""
        if point is not self.point:
            return ()
        hooks, sp = self._thread().hooks, self.left_behind()
        end = len(hooks)
        while end:
            begin = end - 1
            while hooks[begin].chained and begin:
                begin -= 1
            below = hooks[begin - 1].instance.slot if begin else None
            if self._is_left(hooks[begin].instance.slot, below, sp):
                return tuple(hook.instance for hook in reversed(hooks[begin:end]))
            end = begin
        return ()

    # -- what others ask ------------------------------------------------------------------

    def _thread(self) -> "_Thread":
        number = self.owner.thread()
        found = self.threads.get(number)
        if found is None:
            found = self.threads[number] = _Thread()
        return found

    def _purge(self, gone: set[Kretprobe]) -> None:
        """Instances stay, as their frames hold the trampoline's address, but serve nobody."""
        for thread in self.threads.values():
            for hook in thread.hooks:
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
        for hook in reversed(self._thread().hooks):
            if hook.instance.slot == slot:
                return hook.instance.ret_addr
        return None

    def pending(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The calls pending in a frame, newest first."""
        found = (hook.instance for hook in reversed(self._thread().hooks))
        return tuple(instance for instance in found if instance.slot == slot)


def _leave(instance: KretprobeInstance) -> None:
    """A call was left without a return."""
    instance.rp.active -= 1
    instance.gone = True


class _Thread:
    """What is pending in one thread.

    Attributes:
        hooks: the newest last.
        depth: hits of uprobes among them.
    """

    __slots__ = ("depth", "hooks")

    def __init__(self) -> None:
        self.hooks: list[Hook] = []
        self.depth = 0

    def push(self, hook: Hook) -> None:
        """Add one."""
        self.hooks.append(hook)
        self.depth += hook.leads

    def pop(self) -> Hook:
        """Take the newest."""
        hook = self.hooks.pop()
        self.depth -= hook.leads
        return hook


@cache
def _of_frame(count: int) -> str:
    return f"{count} instance(s) of this frame"


_GONE: Final = Kretprobe(addr=0, name="an unregistered probe")
