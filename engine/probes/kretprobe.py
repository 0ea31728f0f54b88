"""Return probes as a user registers them: struct kretprobe, and the return side of a uprobe.

The contract is the one the kernel's developers settled in 2007: an entry handler gets the
instance and the real registers before anything is changed, and may decline; an instance
carries a pouch of data from the entry to the return; a call that finds no instance free is
counted and goes unseen (include/linux/kprobes.h, kernel/kprobes.c, kernel/events/uprobes.c).
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import Struct

from engine.arch.plan import Mode, Rules
from engine.arch.program import FetchArg
from engine.arch.recording import Recording
from engine.probes.kprobe import Kprobe, ProbeFlags
from engine.probes.regs import PtRegs

DATA_MAX: Final = 4096
"""Most bytes of a pouch (KRETPROBE_MAX_DATA_SIZE)."""

_CPUS: Final = 1


def default_maxactive(cpus: int = _CPUS) -> int:
    """Instances that the kernel gives a return probe that does not say how many."""
    return max(10, 2 * cpus)


class KretprobeInstance:
    """One call of a probed function, from its entry to its return.

    Attributes:
        rp: the probe.
        ret_addr: where the call returns to.
        slot: identity of its frame: the address of the return address on the stack; where
            calls link, the stack pointer at the entry; where that is not enough, what
            `engine.arch.returns.FrameKeys` says.
        data: the pouch: a bytearray of the probe's `data_size`, or whatever a handler puts there.
        entry: values captured at the entry, for the return event.
        next: the next older one of the same frame.
        gone: the call was left without a return.
        copied: it was made in the process that this one is a copy of.
    """

    __slots__ = ("copied", "data", "entry", "gone", "next", "ret_addr", "rp", "slot")

    def __init__(self, rp: "Kretprobe", ret_addr: int, slot: int) -> None:
        self.rp = rp
        self.ret_addr = ret_addr
        self.slot = slot
        self.data: Any = bytearray(rp.data_size) if rp.data_size else None
        self.entry: tuple[int, ...] | None = None
        self.next: KretprobeInstance | None = None
        self.gone = self.copied = False

    def twin(self, rp: "Kretprobe") -> "KretprobeInstance":
        """The same call in a copy of the process, of the probe that stands for its there.

        The pouch is copied; what a handler has put there in its place is shared.
        """
        made = KretprobeInstance(rp, self.ret_addr, self.slot)
        made.data = bytearray(self.data) if isinstance(self.data, bytearray) else self.data
        made.entry = self.entry
        made.copied = True
        return made


class CallEnd(Struct, eq=False):
    """A row that code in the guest records for the return of a call.

    Attributes:
        row: it; where the row's `Source.CALL` begins is the call's record.
        of_call: whether the row's address is the one in the record: many probes share this.
    """

    row: Recording
    of_call: bool = False


class CallWork(Struct, frozen=True):
    """Work of code in the guest for a return probe's calls.

    Attributes:
        function: address as rows show it.
        image_base: what `@+OFF` is relative to.
        pc: what the program counter is to a fetch.
        kept: what is captured at the entry, the time for None.
        row: what is recorded there, None for nothing.
        end: what is recorded at the return.
    """

    function: int
    image_base: int
    pc: int
    kept: tuple[FetchArg | None, ...]
    row: Recording | None
    end: CallEnd


class Tracker(Protocol):
    """Follows the calls of many functions, inside the emulator's callbacks."""

    def entered(self, instance: KretprobeInstance) -> bool:
        """A call begins; False if it is not wanted. Its `slot` and `ret_addr` are known."""

    def returned(self, instance: KretprobeInstance) -> None:
        """A call has returned; calls that were left in between are not told of."""

    def bounds(self, slot: int) -> tuple[int, int, int] | None:
        """(start, end, depth) of the stack that a frame lies on, if it is the current one.

        None where code in the guest must not follow calls.
        """

    def recorded(
        self, probe: "Kretprobe", time: int, depth: int, ret_addr: int, args: tuple[int, ...]
    ) -> None:
        """A call of `bounds` begins that needs no instance; `args` are what was captured."""

    def over(self, probe: "Kretprobe", ret_addr: int, time: int, depth: int) -> None:
        """Such a call has returned that began at a time."""

    def brought(self, instance: KretprobeInstance) -> None:
        """A call gets an instance that had none; its `data` are time and depth."""

    def ended(self, instance: KretprobeInstance) -> None:
        """The return of the newest call, which had got an instance, is recorded."""

    def lift(self, low: int, high: int) -> None:
        """The calls on a stack have no place, until they are `put`: it is being moved."""

    def put(self, before: tuple[int, int], now: tuple[int, int]) -> None:
        """The bounds of such a stack are others now; its instances have their new places."""

    def abandoned(self, low: int, high: int) -> None:
        """The calls on a stack will never return."""

    def counted(self, calls: int) -> None:
        """Code has recorded so many calls, and the returns of those without an instance."""


EntryHandler = Callable[[KretprobeInstance, PtRegs], int | None]
"""Runs at the entry, before the return is hooked. Non-zero: this call is not wanted."""

ReturnHandler = Callable[[KretprobeInstance, PtRegs], object]
"""Runs when the call has returned; `regs.ip` is the address returned to."""


class Kretprobe(Kprobe):
    """A probe on the return of a function, placed on its entry.

    Attributes:
        handler: see `ReturnHandler`.
        entry_handler: see `EntryHandler`.
        data_size: bytes of an instance's pouch, up to `DATA_MAX`.
        maxactive: calls that may be pending at a time; 0 = as many as there are, in kernel
            mode the kernel's default.
        limit: what that came to at registration; None without a limit.
        active: instances in use.
        left: calls that were left without a return, as far as that was seen.
        unwatched: calls whose return could not be caught where they return to.
        capture: reads the values that a return event wants from the entry.
        record_return: records the return: (thread id, address returned to[, captured values]).
        tracker: follows the calls; it hears of those pending even once the probe is gone.
        call: what code in the guest may do instead of all this; None: nothing.
    """

    __slots__ = (
        "active",
        "call",
        "capture",
        "data_size",
        "entry_handler",
        "handler",
        "left",
        "limit",
        "maxactive",
        "record_return",
        "tracker",
        "unwatched",
    )

    def __init__(
        self,
        *,
        handler: ReturnHandler | None = None,
        entry_handler: EntryHandler | None = None,
        data_size: int = 0,
        maxactive: int = 0,
        symbol_name: str | None = None,
        offset: int = 0,
        addr: int | None = None,
        flags: ProbeFlags = ProbeFlags.NONE,
        rules: Rules = Rules.KPROBE,
        mode: Mode | None = None,
        name: object = "",
    ) -> None:
        super().__init__(
            symbol_name=symbol_name,
            offset=offset,
            addr=addr,
            flags=flags,
            rules=rules,
            mode=mode,
            name=name,
        )
        self.handler = handler
        self.entry_handler = entry_handler
        self.data_size = data_size
        self.maxactive = maxactive
        self.limit: int | None = None
        self.active = 0
        self.left = 0
        self.unwatched = 0
        self.capture: Callable[[], tuple[int, ...]] | None = None
        self.record_return: Callable[..., None] | None = None
        self.tracker: Tracker | None = None
        self.call: CallWork | None = None


class Uretprobe(Kretprobe):
    """A return probe by uprobe rules, on a place of a file.

    Any place where the stack pointer (or the link register) shows a return address will do.
    """

    __slots__ = ("path", "place")

    def __init__(
        self,
        path: str,
        place: int,
        *,
        handler: ReturnHandler | None = None,
        entry_handler: EntryHandler | None = None,
        data_size: int = 0,
        maxactive: int = 0,
        mode: Mode | None = None,
        name: object = "",
    ) -> None:
        """`place` is the file offset in the guest's file `path`."""
        super().__init__(
            handler=handler,
            entry_handler=entry_handler,
            data_size=data_size,
            maxactive=maxactive,
            rules=Rules.UPROBE,
            mode=mode,
            name=name,
        )
        self.path = path
        self.place = place
