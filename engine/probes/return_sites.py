"""Returns caught where they return to.

Linux writes the address of a trampoline over the return address. A kernel that unwinds itself
knows of that; a program does not: C++ exceptions, Go's runtime, `setjmp`, everything that looks
at a return address or keeps one is broken by it. That is what `trampoline` does, for
`Mode.KERNEL`. In strict mode (here) nothing of the program's is changed: a breakpoint stands
where the call returns to, and a pending call is known by that address together with the stack
pointer that a return to it leaves behind. So pending calls need no order among themselves, and
stacks of signal handlers, coroutines and goroutines do not disturb each other.

Left to decide is what has come to the breakpoint, and the clock knows from where control went
last (`Cpu.last_branches`). A call that was left by an exception or by longjmp is never reported:

- Control came by something else than a return instruction: the frame was left some other way.
  (Where a call depends on a predicate, what is behind it may be reached without it.)
- A frame begins whose return address has the same place and value as a pending one's: it is a
  tail call, unless the call instruction in front of the return address has just been executed
  (directly, or by way of one jump, as through a PLT), or the kernel has just entered a signal
  handler: then the older one is gone.
- On a stack architecture a frame that begins in the same place with another return address
  ends the older one too.

What can go wrong: a call site that calls through a pointer, first a probed function that is
left by an exception, then, from the same frame, one that is not probed, whose return is then taken
for the first one's. A function that drops its arguments with its return (`ret N`, no C compiler's
habit on 64 bits) is not recognised when it returns. A program that moves its stacks takes the
returns of the frames on them along: `stack_moves` follows Go's runtime, others' are not seen; the
program is not harmed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.cpu.base import LEAVE, Stop, TrapAction
from engine.errors import GuestFaultError
from engine.message_text import counted
from engine.probes.frame_reader import FrameReader
from engine.probes.guestcalls import GuestCalls, Newest
from engine.probes.instance_pool import InstancePool
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import CallWork, Kretprobe, KretprobeInstance
from engine.probes.pending_calls import (
    NOWHERE,
    PendingCalls,
    ReturnSite,
    SiteCalls,
    chain,
    drop,
)
from engine.probes.point import ProbePoint
from engine.probes.regs import PtRegs
from engine.probes.return_catcher import (
    CatcherKind,
    Noted,
    ReturnCatcher,
    ReturnChanges,
)
from engine.probes.return_insns import ReturnInsns
from engine.probes.stack_moves import StackMoves

if TYPE_CHECKING:
    from engine.probes.return_probes import ReturnProbes

_TO: Final = 2
"""Index in `Cpu.last_branches` of the address that the last of its instructions led to."""


class ReturnSites:
    """Catches returns where they return to; the program's own data stay as they are.

    Attributes:
        told: see `ReturnCatcher`, as for what follows.
        trampoline: none.
        changes: nothing.
        frames: reads the frames of calls.
        pool: gives instances to calls.
        pending_calls: the calls that are pending, and where they return to.
        calls: what code in the guest does about calls and returns.
        moves: what Go's runtime does about them.
    """

    def __init__(self, host: "ReturnProbes") -> None:
        """No call is pending."""
        self._host = host
        self._target = target = host.target
        self.told = ""
        self.trampoline: tuple[int, int] | None = None
        self.changes = ReturnChanges()
        self.frames = frames = FrameReader(target)
        self.pool = InstancePool(target, self._sweep)
        self._left = target.cpu.last_branches
        self._insns = ReturnInsns(target)
        self._behind = frames.word if frames.stacked else 0
        unit, stacked = target.arch.code_unit, frames.stacked
        self.pending_calls = PendingCalls(self._left, unit, self._behind, stacked=stacked)
        self.calls = GuestCalls(target.stack_at, self.pending_calls)
        self.moves = StackMoves(target, host, self.pending_calls, self.calls, frames, self._insns)

    @property
    def in_guest(self) -> "ReturnSites | None":
        """Code in the guest may record calls, and end them where they return to."""
        return self

    @property
    def damaged(self) -> int:
        """Calls lost, at least, as the program has written to what such code records."""
        return self.calls.damaged

    # -- registration ---------------------------------------------------------------------

    def admit(self, probe: Kretprobe) -> None:
        """A return probe is registered: the clock runs, and notes where control comes from."""
        self.pool.admit(probe)
        self.attend(self.pool.handled([probe]))
        self._target.cpu.count_blocks(True)
        self._target.cpu.keep_branches()

    def armed(self) -> None:
        """Return probes are armed: a runtime that moves stacks is followed."""
        self.moves.watch()

    def dismiss(self, probes: Iterable[Kretprobe]) -> None:
        """Return probes are gone; what is pending of them returns unseen, but by a tracker."""
        gone = set(probes)
        self.pool.serves -= self.pool.handled(gone)
        self.calls.sync()
        self.pending_calls.purge({probe for probe in gone if probe.tracker is None})
        self.calls.reset()
        self.calls.drop(gone)

    def attend(self, more: int) -> None:
        """Somebody wants the watched places to come to the engine, or nobody does any more."""
        before = bool(self.pool.serves)
        self.pool.serves += more
        if bool(self.pool.serves) != before:
            for address, site in self.pending_calls.sites.items():
                self._serve(site)
                self._host.reconsider(address)

    def replace_call(self, probe: Kretprobe, call: CallWork | None) -> None:
        """Code in the guest is to do something else about a probe's calls; None: nothing."""
        self.calls.sync()
        before, probe.call = probe.call, call
        if before is None:
            return
        for address, site in self.pending_calls.sites.items():
            if site.known is not None and site.last is probe:
                self._host.reconsider(address)
        self.calls.reset()

    def forget(self, address: int) -> None:
        """The code at an address is gone, which may be a watched place."""
        self.calls.sync()
        self.calls.forget(address)
        self.pending_calls.forget(address)
        self.moves.forget(address)
        self._insns.known.clear()
        self.calls.reset()

    def close(self) -> None:
        """No return probe is left: no place is watched but those that trackers wait for."""
        self.calls.sync()
        self.calls.forget()
        self._host.unwatch(self.pending_calls.keep_pending())
        if not self.pending_calls.sites:
            self.moves.close()
        for address in self.pending_calls.sites:
            self.calls.watch(address)

    def follow(self, other: ReturnCatcher, twins: Mapping[Kprobe, Kprobe]) -> None:
        """Watch for the calls that are pending in the memory that this one's is a copy of.

        Those that a tracker follows are left: a new process's graph begins empty, as the kernel's.
        """
        if not isinstance(other, ReturnSites):
            return
        other.calls.sync()
        for address, pending in other.pending_calls.places().items():
            for key, newest in pending.items():
                made = [
                    one.twin(rp)
                    for one in chain(newest)
                    if isinstance(rp := twins.get(one.rp), Kretprobe) and rp.tracker is None
                ]
                if made:
                    self._take_over(address, key, made[::-1])

    def _take_over(self, address: int, key: int, made: Sequence[KretprobeInstance]) -> None:
        """Calls of one frame are pending here, the oldest first."""
        known = self.pending_calls
        mine = known.by_return.get(address)
        if mine is None:
            mine = self._watch(address)
        if mine is NOWHERE:
            for one in made:
                one.rp.unwatched += 1
            return
        known.link(mine, key, made)
        if self.frames.stacked:
            known.frames[key] = mine
        for one in made:
            one.rp.active += 1

    def lend(self, thread: int, child: int) -> None:
        """Nothing: whose a call is tells its frame."""

    def over(self, thread: int, low: int, high: int) -> None:
        """All calls on the stack are gone."""
        self.calls.sync()
        self.pending_calls.sweep(self.frames.lowest_at(low), self.frames.lowest_at(high))
        self.calls.reset()

    def note(self, noted: Noted) -> None:
        """Nothing is ever changed."""

    # -- a call ---------------------------------------------------------------------------

    def action(self, point: ProbePoint, go: TrapAction) -> TrapAction:
        """Record the call; places not watched yet are the engine's business."""
        enabled = point.enabled()
        plain = [probe for probe in enabled if not isinstance(probe, Kretprobe)]
        probes = [probe for probe in enabled if isinstance(probe, Kretprobe)]
        frame, find, behind = self.frames.frame, self.pending_calls.by_return.get, self._behind
        thread, clear, begin = self._target.thread, self.pending_calls.clear, self._begin
        calls, made, again = self.calls, self.pool.made, self.moves.begins_again

        def action() -> int:
            try:
                sp, ret_addr = frame()
            except GuestFaultError:
                return LEAVE
            pending = find(ret_addr)
            if pending is None:
                return LEAVE
            calls.sync()
            for other in plain:
                other.hits += 1
                if other.record is not None:
                    other.record(thread())
            if pending is NOWHERE:
                self._unwatched(probes, sp, ret_addr)
            elif not again(pending.get(sp + behind), point.address, ret_addr):
                clear(pending, sp + behind, ret_addr)
                begin(pending, sp + behind, made(point, ret_addr, sp))
            followed = pending is NOWHERE and self._tracked(probes)
            calls.entered(sp, pending.get(sp + behind), followed=followed)
            return go()

        if len(probes) > 1 or plain:
            return action
        return self.single(point, probes[0], go, detoured=point.replacement is not None)

    def single(
        self, point: ProbePoint, probe: Kretprobe, go: TrapAction, *, detoured: bool
    ) -> TrapAction:
        """The usual case, one probe that is a return probe, with as few calls as can be."""
        frame, find, behind = self.frames.frame, self.pending_calls.by_return.get, self._behind
        clear, frames = self.pending_calls.clear, self.pending_calls.frames
        make, left = self.pool.make, self._left
        stacked, capture, limited = self.frames.stacked, probe.capture, probe.limit is not None
        track = probe.tracker.entered if probe.tracker is not None else None
        guest, again, at = self.calls, self.moves.begins_again, point.address
        slot = point.copy.slot if not point.copy.scratch and not detoured else None
        found, now = guest.numbers.entry(probe), self._target.cpu.blocks
        entry = None if isinstance(found, str) else found
        recorded = probe.tracker.recorded if probe.tracker is not None else None

        def single() -> int:
            try:
                sp, ret_addr = frame()
            except GuestFaultError:
                return LEAVE
            pending = find(ret_addr)
            if pending is None:
                return LEAVE
            if detoured and pending is not NOWHERE:
                guest.watch(ret_addr)  # another may have taken its word of the table
            if guest.live:
                if entry is not None and pending is not NOWHERE:
                    args, time = () if capture is None else capture(), now()
                    kept = args if recorded is None else ()
                    depth = guest.record(entry, sp, ret_addr, time, kept)
                    if depth is not None:
                        probe.hits += 1
                        if recorded is not None:
                            recorded(probe, time, depth, ret_addr, args)
                        left[0] = left[1] = 0
                        return slot or go()
                guest.sync()
            if pending is NOWHERE:
                probe.hits += 1
                probe.unwatched += 1
                if track is not None:
                    guest.entered(sp, followed=track(KretprobeInstance(probe, ret_addr, sp)))
                return slot or go()
            probe.hits += 1
            key = sp + behind
            if key in pending or (stacked and frames.get(key) is not pending):
                if again(pending.get(key), at, ret_addr):
                    probe.hits -= 1
                    guest.entered(sp, pending.get(key))
                    return slot or go()
                clear(pending, key, ret_addr)
            if limited:
                if again(None, at, ret_addr):
                    probe.hits -= 1
                    return slot or go()
                made = make(probe, ret_addr, sp)
                if made is None:
                    guest.entered(sp, pending.get(key))
                    return slot or go()
            else:
                made = KretprobeInstance(probe, ret_addr, sp)
                if capture is not None:
                    made.entry = capture()
                if track is not None and not track(made):
                    guest.entered(sp, pending.get(key))
                    return slot or go()
                probe.active += 1
            if key in pending:
                made.next = pending[key]
            pending[key] = made
            left[0] = left[1] = 0
            if guest.live:
                guest.entered(sp, made)
            return slot or go()

        return single

    def enter(self, point: ProbePoint) -> None:
        """The same outside of the emulator; a place seen for the first time is planted."""
        try:
            sp, ret_addr = self.frames.frame()
        except GuestFaultError:
            sp, ret_addr = 0, 0
        self.calls.sync()
        pending = self.pending_calls.by_return.get(ret_addr)
        if pending is None:
            pending = self._watch(ret_addr)
        if pending is NOWHERE:
            probes = [probe for probe in point.enabled() if isinstance(probe, Kretprobe)]
            self._unwatched(probes, sp, ret_addr)
            self.calls.entered(sp, followed=self._tracked(probes))
            self.told = f"the return to {ret_addr:#x} cannot be watched"
            return
        key = sp + self._behind
        if self.moves.begins_again(pending.get(key), point.address, ret_addr):
            self.calls.entered(sp, pending.get(key))
            self.told = "the call begins again, as its stack has moved or its goroutine gave way"
            return
        self.pending_calls.clear(pending, key, ret_addr)
        made = self.pool.made(point, ret_addr, sp)
        self._begin(pending, key, made)
        self.calls.entered(sp, pending.get(key))
        self.told = (
            f"{len(made)} instance(s) wait for the return to {ret_addr:#x} with "
            f"{self._target.arch.roles.sp} {self.frames.sp_of(key):#x}"
        )

    def _begin(self, pending: SiteCalls, key: int, made: Sequence[KretprobeInstance]) -> None:
        self.pending_calls.link(pending, key, made)
        self._left[0] = self._left[1] = 0

    @staticmethod
    def _tracked(probes: Iterable[Kretprobe]) -> bool:
        return any(probe.tracker is not None for probe in probes)

    def _unwatched(self, probes: Iterable[Kretprobe], sp: int, ret_addr: int) -> None:
        for probe in probes:
            probe.hits += 1
            probe.unwatched += 1
            if probe.tracker is not None:
                probe.tracker.entered(KretprobeInstance(probe, ret_addr, sp))

    def _sweep(self) -> None:
        """Frames below the stack pointer, on the same stack, are gone."""
        self.calls.sync()
        stack = self._target.stack_at(self._target.regs.sp)
        if stack is None:
            return
        self.pending_calls.sweep(self.frames.lowest_at(stack[0]), self.frames.frame()[0])
        self.calls.reset()

    # -- places ---------------------------------------------------------------------------

    def _watch(self, ret_addr: int) -> SiteCalls:
        site = ReturnSite(ret_addr)
        self._serve(site)
        if self._insns.never_returns(ret_addr) or not self._host.watch(site):
            return self.pending_calls.add_nowhere(ret_addr)
        self.calls.watch(ret_addr)
        return self.pending_calls.add(site)

    # -- a return -------------------------------------------------------------------------

    def _serve(self, site: ReturnSite) -> None:
        """Give a place its action: inside the emulator unless a handler wants more."""
        assert site.addr is not None
        address, pending, left, known = site.addr, site.pending, self._left, self._insns.known
        read, key_of = self._target.cpu.traps.reader(self.frames.exit), self.frames.exit_key
        finish, came, take = self.pool.finish, self._insns.came_by_return, pending.pop
        # The code that handlers of signals return to may lie where the clock stands still.
        plan = self._target.arch.plan
        unseen = plan.trampoline[0] <= address < sum(plan.detour)
        optional = self._insns.may_be_passed(address)
        calls, behind = self.calls, self._behind

        def over(newest: Newest, thread: int) -> None:
            """Finish a call without an instance."""
            kept, probe = calls.take(newest), newest.probe
            site.last = probe
            if site.known is not None and site.known[0] != left[0]:
                site.known[0], site.known[1] = left[0], site.known[0]
            if probe.tracker is not None:
                probe.tracker.over(probe, address, newest.time, newest.depth)
            elif probe.record_return is not None and kept:
                probe.record_return(thread, address, kept)
            elif probe.record_return is not None:
                probe.record_return(thread, address)

        def returned(thread: int) -> None:
            key = key_of(read())
            if calls.live:
                newest = calls.newest(key - behind, address)
                if newest is not None and (left[0] in known or unseen or came(left[0])):
                    while newest is not None:
                        over(newest, thread)
                        if not newest.chained:
                            return
                        newest = calls.newest(key - behind, address)
                calls.sync()
            instance = take(key, None)
            if instance is None:
                return
            slot = instance.slot
            fell = optional and left[_TO] != address
            if fell or (left[0] not in known and not unseen and not came(left[0])):
                drop(instance)
                calls.returned(slot)
                return
            site.last = instance.rp
            if site.known is not None and site.known[0] != left[0]:
                site.known[0], site.known[1] = left[0], site.known[0]
            while instance is not None:
                probe = instance.rp
                if probe.handler is not None or instance.entry is not None:
                    finish(instance, address, thread)
                else:  # `finish` without the call: the usual case
                    probe.active -= 1
                    if probe.tracker is not None:
                        probe.tracker.returned(instance)
                    if probe.record_return is not None:
                        probe.record_return(thread, address)
                instance = instance.next
            if calls.live:
                calls.returned(slot)

        def handled(site: Kprobe, regs: PtRegs) -> int:
            calls.sync()
            waiting = pending.get(self.frames.left_behind())
            returned(self._target.thread())
            count = len(list(chain(waiting)))
            self.told = f"{counted(count, 'instance')} waited for this return" if count else ""
            return 0

        site.record = None if self.pool.serves else returned
        site.pre_handler = handled if self.pool.serves else None

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """The calls that wait at the point with this stack pointer, if a return has led there."""
        self.calls.sync()
        plan = self._target.arch.plan
        unseen = plan.trampoline[0] <= point.address < sum(plan.detour)
        for probe in point.probes:
            if isinstance(probe, ReturnSite):
                waiting = probe.pending.get(self.frames.left_behind())
                fell = (
                    self._insns.may_be_passed(point.address) and self._left[_TO] != point.address
                )
                came = not fell and (unseen or self._insns.came_by_return(self._left[0]))
                if waiting is not None and came:
                    return tuple(chain(waiting))
        return ()

    def missed(self, site: ReturnSite) -> None:
        """A return came while another probe's handlers ran."""
        self.calls.sync()
        instance = site.pending.pop(self.frames.left_behind(), None)
        for one in chain(instance):
            one.rp.nmissed += 1
        drop(instance)
        if instance is not None:
            self.calls.returned(instance.slot)

    # -- what others see ------------------------------------------------------------------

    def resolve(self, address: int, slot: int, met: int = 0) -> int | None:
        """Return addresses are the program's own: the address, if the frame's call is pending."""
        self.calls.sync()
        return address if self.pending_calls.waits(address, slot) else None

    def original_pc(self, address: int) -> int:
        """So is all code."""
        return address

    def holds(self, pc: int) -> bool:
        """No code of the machinery's takes part in a return."""
        return False

    def unwind_info(self, pc: int) -> tuple[int, bytes] | None:
        """None: there is no trampoline."""
        return None

    def replaced(self) -> tuple[int, ...]:
        """None: the program's own return addresses are left alone."""
        return ()

    def opaque(self) -> list[Kretprobe]:
        """None: the program's return addresses are its own."""
        return []

    def name(self, address: int) -> str:
        """No name: there is no trampoline."""
        return ""

    def as_seen(self, point: ProbePoint, stop: Stop) -> Stop:
        """The stop itself."""
        return stop


RETURN_SITES: Final = CatcherKind(
    "watched", Mode.STRICT, trampoline=False, build=lambda host, page: ReturnSites(host)
)
