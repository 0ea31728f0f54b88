"""The calls of a thread that return to a trampoline: which one a return ends, which are gone."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from engine.probes.kretprobe import KretprobeInstance


class HookedCall:
    """An instance whose frame returns to the trampoline.

    Attributes:
        instance: the return probe's instance.
        chained: it shares its frame with the one before it.
        leads: the first of a uprobe's hit: it counts against the depth.
    """

    __slots__ = ("chained", "instance", "leads")

    def __init__(self, instance: KretprobeInstance, *, chained: bool, leads: bool) -> None:
        self.instance = instance
        self.chained = chained
        self.leads = leads


class HookedCalls(Protocol):
    """Calls pending in one thread; a frame is known by `KretprobeInstance.slot`.

    Attributes:
        depth: hits of uprobes among the calls.
    """

    depth: int

    def push(self, hook: HookedCall) -> None:
        """Add the newest."""

    def begin(self, slot: int, chained: bool, calls: Callable[[KretprobeInstance], bool]) -> None:
        """A frame begins: drop those that it shows to be gone.

        Args:
            slot: of the frame.
            chained: its return address is the trampoline already.
            calls: whether a pending call has made this one, all else being as it was for it.
        """

    def below(self, slot: int, lowest: int) -> None:
        """Calls in frames newer than one, and above `lowest`, are gone where that is known."""

    def newest(self, slot: int) -> HookedCall | None:
        """The one that a frame is chained to, whose return address is the trampoline."""

    def take(self, slot: int) -> list[KretprobeInstance]:
        """Take the calls whose return has left this behind, newest first; those left go, too."""

    def arriving(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The same without a change."""

    def returns(self, slot: int) -> tuple[int, ...]:
        """Real return addresses of the frames in a place, the newest first."""

    def __iter__(self) -> Iterator[HookedCall]:
        """All of them, the newest first."""


def drop(instance: KretprobeInstance) -> None:
    """A call was left without a return."""
    instance.rp.active -= 1
    instance.gone = True


def _returns(hooks: Iterable[HookedCall], slot: int) -> tuple[int, ...]:
    """One address for each frame, of which several instances may be chained."""
    found: list[int] = []
    counted = False
    for hook in hooks:
        if hook.instance.slot == slot and not counted:
            found.append(hook.instance.ret_addr)
            counted = True
        counted = counted and hook.chained
    return tuple(found)


class StackedCalls:
    """One stack of calls, in the order of their frames, as uprobes have it."""

    def __init__(self, pushed: bool) -> None:
        """`pushed`: return addresses lie on the stack, so that no two frames share a place."""
        self.depth = 0
        self._hooks: list[HookedCall] = []
        self._pushed = pushed

    def __iter__(self) -> Iterator[HookedCall]:
        """All of them, the newest first."""
        return reversed(self._hooks)

    def push(self, hook: HookedCall) -> None:
        """Add the newest."""
        self._hooks.append(hook)
        self.depth += hook.leads

    def _pop(self) -> HookedCall:
        hook = self._hooks.pop()
        self.depth -= hook.leads
        return hook

    def begin(self, slot: int, chained: bool, calls: Callable[[KretprobeInstance], bool]) -> None:
        """Frames below the new one are gone, and that in its place if it is not chained to it."""
        while self._hooks:
            last = self._hooks[-1].instance.slot
            if slot < last or (chained and slot == last):
                break
            drop(self._pop().instance)

    def below(self, slot: int, lowest: int) -> None:
        """Nothing: `begin` and `take` find them."""

    def newest(self, slot: int) -> HookedCall | None:
        """The last one."""
        return self._hooks[-1] if self._hooks else None

    def take(self, slot: int) -> list[KretprobeInstance]:
        """The newest frame that longjmp has not left."""
        while self._hooks:
            last = self._pop()
            found = [last.instance]
            while last.chained and self._hooks:
                last = self._pop()
                found.append(last.instance)
            if self._valid(slot, len(self._hooks)):
                return found
            for instance in found:
                drop(instance)
        return []

    def arriving(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The same without a change."""
        hooks = self._hooks
        end = len(hooks)
        while end:
            begin = end - 1
            while hooks[begin].chained and begin:
                begin -= 1
            if self._valid(slot, begin):
                return tuple(hook.instance for hook in reversed(hooks[begin:end]))
            end = begin
        return ()

    def returns(self, slot: int) -> tuple[int, ...]:
        """Real return addresses of the frames in a place, the newest first."""
        return _returns(self, slot)

    def _valid(self, sp: int, older: int) -> bool:
        """True if a return with this stack pointer left the frame above so many older calls."""
        below = self._hooks[older - 1].instance.slot if older else None
        return below is None or sp < below or (self._pushed and sp == below)


class KeyedCalls:
    """Calls by their frames: where these have keys of their own, no order is needed.

    So stacks that a program switches between do not disturb each other. A call that was left is
    found out when another begins in its place.
    """

    def __init__(self) -> None:
        """Nothing is pending."""
        self.depth = 0
        self._frames: dict[int, list[HookedCall]] = {}

    def __iter__(self) -> Iterator[HookedCall]:
        """All of them, frame by frame, the newest of each first."""
        for hooks in reversed(self._frames.values()):
            yield from reversed(hooks)

    def push(self, hook: HookedCall) -> None:
        """Add the newest."""
        self._frames.setdefault(hook.instance.slot, []).append(hook)
        self.depth += hook.leads

    def begin(self, slot: int, chained: bool, calls: Callable[[KretprobeInstance], bool]) -> None:
        """Calls in the same place are gone, but for a frameless one that has made this call."""
        hooks = self._frames.get(slot)
        while hooks and not chained and not calls(hooks[-1].instance):
            self._drop(slot, hooks)

    def _drop(self, slot: int, hooks: list[HookedCall]) -> None:
        hook = hooks.pop()
        self.depth -= hook.leads
        drop(hook.instance)
        if not hooks:
            del self._frames[slot]

    def below(self, slot: int, lowest: int) -> None:
        """Calls in frames newer than one are gone, those above `lowest` on the same stack."""
        for key in [key for key in self._frames if lowest < key < slot]:
            hooks = self._frames[key]
            while hooks:
                self._drop(key, hooks)

    def newest(self, slot: int) -> HookedCall | None:
        """The last one of the frame."""
        hooks = self._frames.get(slot)
        return hooks[-1] if hooks else None

    def take(self, slot: int) -> list[KretprobeInstance]:
        """Take the calls of the frame that are chained to each other."""
        hooks = self._frames.get(slot)
        found = []
        while hooks:
            hook = hooks.pop()
            self.depth -= hook.leads
            found.append(hook.instance)
            if not hook.chained:
                break
        if hooks is not None and not hooks:
            del self._frames[slot]
        return found

    def arriving(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The same without a change."""
        found = []
        for hook in reversed(self._frames.get(slot, ())):
            found.append(hook.instance)
            if not hook.chained:
                break
        return tuple(found)

    def returns(self, slot: int) -> tuple[int, ...]:
        """Real return addresses of the frames in a place, the newest first."""
        return _returns(reversed(self._frames.get(slot, ())), slot)
