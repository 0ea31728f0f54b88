"""Pending calls of Go programs: their stacks move, and their calls begin twice.

A goroutine whose stack is too small has it copied to a larger place, the collector moves it to a
smaller one, and return addresses go along. `return_sites` knows a pending call by the place of its
frame: that place is changed here, with the distance from the stack's end kept, whenever the
runtime moves a stack (`copystack`, of Go 1.4 and later). While it copies, the calls have no place
at all, as another thread may get the memory before the copy is done.

What else the runtime does that no C program does, by the functions it does it in:

- `newstack`: a function whose stack is too small, or whose goroutine is to give way, is begun
  again from its first instruction. That is one call; its probe's breakpoint is hit twice.
- `gogo`: goes on where a call returns to, without a return instruction: calls of `mcall` and
  `morestack` return in this way.
- `gopanic` and `deferreturn`: a recovered panic has left the calls below the function that goes
  on, which returns as any other.
- `goexit0`: a goroutine is over, and what it has left is never going to return.

A goroutine may go on in another thread of the system: its frames stay where they are, and so calls
are known there, too. The functions are found by the runtime's own table, in stripped programs as
well (`engine.image.gofunctions`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.probes.code_map import GoCode
from engine.probes.frame_reader import FrameReader
from engine.probes.guestcalls import GuestCalls
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import KretprobeInstance, Tracker
from engine.probes.pending_calls import LiftedCall, PendingCalls, chain
from engine.probes.return_insns import ReturnInsns
from engine.probes.site import FunctionCode
from engine.probes.target import ProbeTarget

_COPIES: Final = "runtime.copystack"
_BEGINS_AGAIN: Final = "runtime.newstack"
_PANICS: Final = "runtime.gopanic"
_RECOVERED: Final = "runtime.deferreturn"
_OVER: Final = "runtime.goexit0"
_GOES_ON: Final = ("runtime.gogo", "gogo")
_MOST: Final = 1 << 12
"""Panics, and copies of stacks, that are known of at a time: a guest may begin any number."""
_WANTED: Final = (_COPIES, _BEGINS_AGAIN, _PANICS, _RECOVERED, _OVER, *_GOES_ON)


class HookHost(Protocol):
    """Plants the engine's own probes."""

    def watch(self, site: Kprobe) -> bool:
        """Plant one; False if it cannot be."""

    def unwatch(self, sites: Sequence[Kprobe]) -> None:
        """Take such probes out."""


class StackHook(Kprobe):
    """The engine's own probe on a function of Go's runtime."""

    machinery = True

    __slots__ = ()


class _Panic(Struct, frozen=True):
    """A panic that no function has recovered yet.

    Attributes:
        low: bounds of its goroutine's stack.
        high: see there.
        sp: the stack pointer at the entry of `gopanic`.
    """

    low: int
    high: int
    sp: int


class _Move(Struct, frozen=True):
    """A stack that is being copied.

    Attributes:
        descriptor: address of its goroutine's `g`.
        low: bounds of the place that it leaves.
        high: see there.
        calls: those pending on it.
        panics: those not recovered.
    """

    descriptor: int
    low: int
    high: int
    calls: list[LiftedCall]
    panics: list[_Panic]


class StackMoves:
    """Keeps pending calls in line with what Go's runtime does.

    Attributes:
        code: Go's code that is mapped; empty of programs without.
    """

    def __init__(
        self,
        target: ProbeTarget,
        host: HookHost,
        pending: PendingCalls,
        calls: GuestCalls,
        frames: FrameReader,
        insns: ReturnInsns,
    ) -> None:
        """Nothing is hooked.

        Args:
            target: the guest.
            host: plants the hooks.
            pending: the calls.
            calls: those that code in the guest records.
            frames: reads frames of calls.
            insns: tells returns.
        """
        self.code: Sequence[GoCode] = ()
        self._target = target
        self._host = host
        self._pending = pending
        self._calls = calls
        self._behind = frames.word if frames.stacked else 0
        self._insns = insns
        self._hooks: dict[int, StackHook] = {}
        self._moves: dict[int, _Move] = {}
        self._panics: list[_Panic] = []
        self._read_sp = target.cpu.traps.reader((target.arch.roles.sp,))

    # -- hooks ----------------------------------------------------------------------------

    def watch(self) -> None:
        """Hook the runtimes that are mapped and not hooked yet."""
        target = self._target
        found = target.code_map.go_code(_WANTED)
        if found == self.code:
            return
        self.code = found
        target.goroutines.present = bool(found)
        self._insns.resumed = tuple(
            bounds for one in found for name in _GOES_ON for bounds in one.functions.get(name, ())
        )
        for one in found:
            for name, record in (
                (_COPIES, self._moving),
                (_BEGINS_AGAIN, self._begins_again),
                (_PANICS, self._panicking),
                (_RECOVERED, self._recovered),
                (_OVER, self._over),
            ):
                for start, end in one.functions.get(name, ()):
                    self._hook(start, record, name)
                    if name == _COPIES:
                        for address in self._returns(start, end):
                            self._hook(address, self._moved, f"return of {name}")

    def close(self) -> None:
        """Take the hooks out."""
        self._host.unwatch(list(self._hooks.values()))
        self._hooks.clear()
        self.code = ()
        self._moves.clear()
        self._panics.clear()

    def forget(self, address: int) -> None:
        """The code at an address is gone."""
        if self._hooks.pop(address, None) is not None:
            self.code = ()  # to be looked for again

    def _hook(self, address: int, record: Callable[[int], None], name: str) -> None:
        if address in self._hooks:
            return
        hook = StackHook(addr=address, record=record, name=f"go: {name}")
        if self._host.watch(hook):
            self._hooks[address] = hook

    def _returns(self, start: int, end: int) -> Iterable[int]:
        """Addresses of a function's return instructions."""
        target = self._target
        try:
            data = target.overlay.original(start, end - start)
        except GuestFaultError:
            return []
        code = FunctionCode(target.arch, start, data)
        pairs = zip(code.starts, code.raws, strict=True)
        return [at for at, raw in pairs if len(raw) in target.arch.probes.returns(raw)]

    # -- what is asked --------------------------------------------------------------------

    def holds(self, address: int) -> bool:
        """True for code of Go's."""
        return any(one.start <= address < one.end for one in self.code)

    def begins_again(self, waiting: KretprobeInstance | None, address: int, to: int) -> bool:
        """True if a function that is entered has begun before, in the same call.

        Args:
            waiting: the newest call that is pending in its frame and returns to the same place.
            address: of its entry.
            to: where the call returns to.
        """
        if not self.code or not self.holds(address):
            return False
        if any(one.rp.addr == address for one in chain(waiting)):
            return True
        # No instance has been free at the beginning. Nothing else of Go's jumps to a beginning
        # from inside of the function than what follows the call of `morestack`.
        came = self._pending.came_from
        function = self._target.code_map.function(address)
        if function is None or self._pending.called(to):
            return False
        return address < came <= function[1]

    # -- what the runtime does ------------------------------------------------------------

    def _moving(self, thread: int) -> None:
        """A stack is about to be copied."""
        found = self._target.goroutines.argument()
        self._target.goroutines.forget()
        if found is None:
            return
        descriptor, low, high = found
        self._calls.sync()
        lifted = self._pending.lift(low, high)
        for tracker in self._trackers():
            tracker.lift(low, high)
        panics = [one for one in self._panics if one.low == low]
        self._panics = [one for one in self._panics if one.low != low]
        if len(self._moves) >= _MOST:
            del self._moves[next(iter(self._moves))]
        self._moves[self._read_sp()[0]] = _Move(descriptor, low, high, lifted, panics)
        self._calls.reset()

    def _moved(self, thread: int) -> None:
        """The copy is done: the stack pointer is that at the entry again."""
        move = self._moves.pop(self._read_sp()[0], None)
        if move is None:
            return
        goroutines = self._target.goroutines
        goroutines.forget()
        low, high = goroutines.bounds(move.descriptor) or (move.low, move.high)
        distance = high - move.high
        self._calls.sync()
        self._pending.put(move.calls, distance)
        for tracker in self._trackers():
            tracker.put((move.low, move.high), (low, high))
        self._panics += [_Panic(low, high, one.sp + distance) for one in move.panics]
        self._calls.reset()

    def _begins_again(self, thread: int) -> None:
        """A function is about to begin again: code in the guest must not take it for a call."""
        self._calls.leave_stack()

    def _panicking(self, thread: int) -> None:
        """A panic begins."""
        sp = self._read_sp()[0]
        stack = self._target.goroutines.stack_at(sp)
        if stack is not None:
            self._panics.append(_Panic(stack.low, stack.high, sp))
            del self._panics[:-_MOST]

    def _recovered(self, thread: int) -> None:
        """A function runs what it has deferred, perhaps as it has recovered a panic."""
        if not self._panics:
            return
        sp = self._read_sp()[0] + self._behind  # the caller's
        over = [one for one in self._panics if one.low <= one.sp < sp <= one.high]
        if over:
            self._panics = [one for one in self._panics if one not in over]
            self._calls.sync()
            self._pending.drop(over[0].low, sp)
            self._calls.reset()

    def _over(self, thread: int) -> None:
        """A goroutine has ended."""
        found = self._target.goroutines.argument()
        self._target.goroutines.forget()
        if found is None:
            return
        _, low, high = found
        self._calls.sync()
        self._panics = [one for one in self._panics if one.low != low]
        dropped = self._pending.drop(low, high)
        for tracker in self._trackers():
            tracker.abandoned(low, high)
        if dropped:
            self._calls.reset()

    def _trackers(self) -> Collection[Tracker]:
        """Trackers of calls."""
        tracker = self._calls.numbers.tracker
        return () if tracker is None else (tracker,)
