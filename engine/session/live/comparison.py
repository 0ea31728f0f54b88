"""The events that a guest and the running kernel have recorded of one program, pair by pair.

Times are left aside, and so are the numbers of addresses: two addresses are the same if they lie
at the same place of the same file, or both in the stack, the heap, or other memory without a file.
So is the order of several events of one hit. For a difference there is a reason that is known, or
none.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import Enum
from typing import Final

from msgspec import Struct, field

from engine.arch.program import FetchArg, FieldType, Source, ValueKind
from engine.session.live.eventlog import EventLog, LoggedEvent, MemorySpot
from engine.trace.rows import Scalar, Value

_STRETCH: Final = 1000
"""Events of a thread in which both sides are looked through for what they have in common."""
_WORD: Final = (1 << 64) - 1
_LOW_FLAGS: Final = 0x14
_FEW: Final = 31
"""Bits that may well be alike by chance."""
_LEARNT: Final = 1 << 10
"""Pairs of addresses that other differences are explained by."""
_KERNELS_FLAGS: Final = 0x10300
"""RF, IF and TF of x86: the kernel's business."""
_FLAGS: Final = frozenset({"flags", "eflags", "rflags"})
_SHOWN: Final = 3
_DIRECT: Final = frozenset(
    {
        *(Source.REGISTER, Source.STACK_POINTER, Source.RETVAL),
        *(Source.IMMEDIATE, Source.TEXT, Source.COMM),
    }
)
"""Sources that read no memory of the program."""

EventKey = tuple[str, str]


class Reason(Enum):
    """The reason of a difference: its name, and why it is none of the program's."""

    ADDRESS = "addresses", "both of the same kind of memory, which the two have in other places"
    DERIVED = "numbers made of addresses", "they differ by as much as the addresses do"
    PARTS = "parts of such numbers", "as far as so few bits can tell"
    DERIVED_FLAGS = (
        "flags",
        "PF and AF tell the lowest bits of a computation, such as of addresses",
    )
    IDS = "ids", "processes and threads of the machine have others"
    TRAMPOLINE = (
        "return addresses",
        "the kernel's return probes put their trampoline's there, the guest's do not",
    )
    KERNELS_FLAGS = "flags of the kernel's", "IF, TF and RF"
    FAULT = (
        "memory that is not in",
        "the kernel's probes take no page faults; a guest's memory is always in",
    )
    STALE = (
        "numbers that may not be readable",
        "0 in the guest; where nothing is, the kernel shows what its buffer held before",
    )
    REPEATED = (
        "repetitions of a string instruction",
        "the kernel steps each of them, and its probe is hit each time",
    )
    IMPLEMENTATION = (
        "implementations of indirect functions",
        "the machine's processor has others than the guest's",
    )
    UNKNOWN = "not explained", ""


_GUESSED: Final = frozenset({Reason.UNKNOWN, Reason.STALE})
"""A guest's row does not say whether a 0 was read, so that it may as well be a difference."""


class Divergence(Struct, frozen=True):
    """A difference.

    Attributes:
        reason: of it.
        text: where it is, and what the two have.
    """

    reason: Reason
    text: str


class EventFacts(Struct, frozen=True):
    """Facts about an event that are known beforehand.

    Attributes:
        args: its arguments.
        repeated: it stands on a string instruction with a repeat prefix.
        indirect: it stands in the implementation of an indirect function, of which the two have
            different ones, which may also serve different functions.
    """

    args: tuple[FetchArg, ...] = ()
    repeated: bool = False
    indirect: bool = False


_NO_FACTS: Final = EventFacts()


class LiveComparison(Struct):
    """The outcome.

    Attributes:
        pairs: events that both have.
        same: pairs without any difference.
        counts: differences by reason.
        examples: the first of each.
    """

    pairs: int = 0
    same: int = 0
    counts: dict[Reason, int] = field(default_factory=dict)
    examples: dict[Reason, list[str]] = field(default_factory=dict)

    def note(self, found: Divergence) -> None:
        """Take a difference."""
        self.counts[found.reason] = self.counts.get(found.reason, 0) + 1
        examples = self.examples.setdefault(found.reason, [])
        if len(examples) < _SHOWN and found.text not in examples:
            examples.append(found.text)

    @property
    def explained(self) -> bool:
        """True if there is a reason for every difference."""
        return _GUESSED.isdisjoint(self.counts)

    def lines(self) -> Iterator[str]:
        """The outcome in words."""
        yield f"{self.pairs} events of both compared, {self.same} are the same"
        for reason in Reason:
            count = self.counts.get(reason, 0)
            if count:
                name, why = reason.value
                yield f"{name} ({count}{': ' if why else ''}{why})"
                for text in self.examples[reason]:
                    yield f"  {text}"


def compare_logs(
    guest: EventLog, machine: EventLog, facts: Mapping[EventKey, EventFacts]
) -> LiveComparison:
    """Compare what two runs have recorded.

    Args:
        guest: the emulated one.
        machine: the running kernel's.
        facts: about the events of both.
    """
    return _Comparer(facts).compare(guest, machine)


class _Unexplained(Struct, frozen=True, gc=False):
    """Two numbers that differ for no reason that the two tell; `flags`: those of the processor."""

    guest: int
    machine: int
    type: FieldType
    flags: bool
    text: str


class _Comparer:
    """One comparison."""

    def __init__(self, facts: Mapping[EventKey, EventFacts]) -> None:
        self._facts = facts
        self._ids: dict[int, int] = {}
        self._known: dict[tuple[int, int], Reason] = {}
        self._parts: dict[tuple[int, int], dict[tuple[int, int], Reason]] = {}
        self._pending: list[_Unexplained] = []
        self._found = LiveComparison()

    def compare(self, guest: EventLog, machine: EventLog) -> LiveComparison:
        paired = list(_threads(guest, machine))
        for left, right in paired:
            if left is not None and right is not None:
                self._ids[left] = right
                self._ids[guest.processes[left]] = machine.processes[right]
        for left, right in paired:
            self._thread(
                [] if left is None else _by_hit(guest.threads[left]),
                [] if right is None else _by_hit(machine.threads[right]),
            )
        distances = {a - b for (a, b), reason in self._known.items() if reason is Reason.ADDRESS}
        for one in self._pending:
            self._found.note(Divergence(self._later(one, distances), one.text))
        return self._found

    def _later(self, one: "_Unexplained", distances: Collection[int]) -> Reason:
        """The reason of a difference by all that have one."""
        kind = one.type
        is_bits = kind.kind is ValueKind.BITFIELD
        mask = (1 << (kind.width if is_bits else kind.size * 8)) - 1
        a, b = one.guest & mask, one.machine & mask
        parts = self._parts.get((mask, kind.offset))
        if parts is None:
            parts = self._parts[mask, kind.offset] = {
                (left >> shift & mask, right >> shift & mask): reason
                for (left, right), reason in self._known.items()
                for shift in ((kind.offset,) if is_bits else range(0, 64, 8))
            }
        found = parts.get((a, b))
        if found is not None:
            return found if mask >> _FEW else Reason.PARTS
        if not is_bits and any(distance & mask == (a - b) & mask for distance in distances):
            return Reason.DERIVED if mask >> _FEW else Reason.PARTS
        if one.flags and distances and not (a ^ b) & ~_LOW_FLAGS:
            return Reason.DERIVED_FLAGS
        return Reason.UNKNOWN

    def _thread(self, left: Sequence[LoggedEvent], right: Sequence[LoggedEvent]) -> None:
        """Compare a thread's events, stretch by stretch where one side has some that are alone."""
        left, right = self._shared(left, "the guest"), self._shared(right, "the kernel")
        here = there = 0
        while here < len(left) and there < len(right):
            if left[here].key == right[there].key and len(left) == len(right):
                self._pair(left[here], right[there])
                here, there = here + 1, there + 1
                continue
            mine, theirs = left[here : here + _STRETCH], right[there : there + _STRETCH]
            last = len(mine) == len(left) - here and len(theirs) == len(right) - there
            used = self._stretch(mine, theirs, last=last)
            here, there = here + used[0], there + used[1]
        self._alone(left[here:], "the guest")
        self._alone(right[there:], "the kernel")

    def _shared(self, events: Sequence[LoggedEvent], whose: str) -> list[LoggedEvent]:
        """The events that the other side has as well; the others are told."""
        alone = [one for one in events if self._of(one).indirect]
        self._alone(alone, whose)
        return [one for one in events if not self._of(one).indirect] if alone else [*events]

    def _of(self, event: LoggedEvent) -> EventFacts:
        return self._facts.get(event.key, _NO_FACTS)

    def _stretch(
        self, left: Sequence[LoggedEvent], right: Sequence[LoggedEvent], *, last: bool
    ) -> tuple[int, int]:
        """Compare stretches as far as they go together; how far that is on each side."""
        codes = _codes(left, right, lambda one: (one.key, one.event.values))
        if not last and len(codes) > 1 and codes[-1][0] != "equal":
            codes.pop()  # what is behind may belong to it
        for kind, a, b, c, d in codes:
            if kind == "equal":
                for one, other in zip(left[a:b], right[c:d], strict=True):
                    self._pair(one, other)
            else:
                self._named(left[a:b], right[c:d])
        return codes[-1][2], codes[-1][4]

    def _named(self, left: Sequence[LoggedEvent], right: Sequence[LoggedEvent]) -> None:
        """Compare events that differ in values, at least, with one another by their names."""
        for kind, a, b, c, d in _codes(left, right, _key):
            if kind == "equal":
                for one, other in zip(left[a:b], right[c:d], strict=True):
                    self._pair(one, other)
                continue
            self._alone(left[a:b], "the guest")
            self._alone(right[c:d], "the kernel")

    def _alone(self, events: Sequence[LoggedEvent], whose: str) -> None:
        for one in events:
            facts = self._of(one)
            reason = Reason.REPEATED if facts.repeated else Reason.UNKNOWN
            if facts.indirect:
                reason = Reason.IMPLEMENTATION
            event = one.event
            text = f"{event.group}/{event.name} at {_shown(event.address, one)}"
            self._found.note(
                Divergence(reason, f"{text} of thread {event.thread_id}: in {whose} only")
            )

    def _pair(self, left: LoggedEvent, right: LoggedEvent) -> None:
        pending = len(self._pending)
        found = [*self._differences(left, right)]
        self._found.pairs += 1
        self._found.same += not found and len(self._pending) == pending
        for one in found:
            self._found.note(one)

    def _differences(self, left: LoggedEvent, right: LoggedEvent) -> Iterator[Divergence]:
        mine, theirs = left.event, right.event
        name = f"{mine.group}/{mine.name}"
        places = [("its place", mine.address, theirs.address)]
        if mine.returned_to is not None and theirs.returned_to is not None:
            places.append(("where it returns to", mine.returned_to, theirs.returned_to))
        for what, here, there in places:
            if here != there and not _same_spot(left.spot(here), right.spot(there)):
                text = f"{name}: {what}: {_shown(here, left)} in the guest, {_shown(there, right)}"
                yield Divergence(Reason.UNKNOWN, text)
        for arg, value, other in zip(
            self._of(left).args, mine.values, theirs.values, strict=False
        ):
            for a, b in _elements(arg, value, other):
                if a != b:
                    reason = self._reason(arg, a, b, left, right)
                    if reason is None:
                        continue
                    shown = f"{_shown(a, left)} in the guest, {_shown(b, right)}"
                    text = f"{name}: {arg.name}={arg.text}: {shown}"
                    if reason is Reason.UNKNOWN and isinstance(a, int) and isinstance(b, int):
                        flags = arg.base.register in _FLAGS and not arg.derefs
                        self._pending.append(_Unexplained(a, b, arg.type, flags, text))
                    else:
                        yield Divergence(reason, text)

    def _learnt(self, a: int, b: int, reason: Reason) -> Reason:
        if len(self._known) < _LEARNT:
            self._known[a & _WORD, b & _WORD] = reason
        return reason

    def _reason(
        self, arg: FetchArg, a: Value, b: Value, left: LoggedEvent, right: LoggedEvent
    ) -> Reason | None:
        """The reason why two values differ; None if they mean the same place of a file."""
        reads = bool(arg.derefs) or arg.base.source not in _DIRECT
        if b is None and a is not None:
            return Reason.FAULT if reads else Reason.UNKNOWN
        if isinstance(a, bytes) and isinstance(b, bytes):  # an address that was read as a string
            a, b = (int.from_bytes(text[:8], "little") for text in (a, b))
        if not isinstance(a, int) or not isinstance(b, int):
            return Reason.UNKNOWN
        if self._ids.get(a) == b:
            return Reason.IDS
        spots = left.spot(a & _WORD), right.spot(b & _WORD)
        if spots[1] is not None and spots[1].owner == "[uprobes]":
            return self._learnt(a, b, Reason.TRAMPOLINE)
        if spots[0] is not None and _same_spot(*spots):
            if spots[0].offset is not None:
                return None
            return self._learnt(a, b, Reason.ADDRESS)
        if arg.base.register in _FLAGS and not arg.derefs and not (a ^ b) & ~_KERNELS_FLAGS:
            return Reason.KERNELS_FLAGS
        if reads and a == 0:
            return Reason.STALE
        return Reason.UNKNOWN


def _threads(guest: EventLog, machine: EventLog) -> Iterator[tuple[int | None, int | None]]:
    """Threads of both: in the order of their first events, those first that begin alike."""
    left = list(machine.threads)
    alone: list[int] = []
    for thread, events in guest.threads.items():
        first = events[0].key
        found = next((one for one in left if machine.threads[one][0].key == first), None)
        if found is None:
            alone.append(thread)
        else:
            left.remove(found)
            yield thread, found
    for index in range(max(len(alone), len(left))):
        yield (
            alone[index] if index < len(alone) else None,
            left[index] if index < len(left) else None,
        )


def _codes(
    left: Sequence[LoggedEvent],
    right: Sequence[LoggedEvent],
    key: Callable[[LoggedEvent], Hashable],
) -> list[tuple[str, int, int, int, int]]:
    """The steps from the one to the other, as `SequenceMatcher` tells it."""
    return [*SequenceMatcher(None, [*map(key, left)], [*map(key, right)], False).get_opcodes()]


def _by_hit(events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The events of a thread, those of each hit by their names."""
    found: list[LoggedEvent] = []
    hit: list[LoggedEvent] = []
    keys: set[EventKey] = set()
    where: tuple[int, int | None] | None = None
    for one in events:
        here = one.event.address, one.event.returned_to
        if here != where or one.key in keys:
            found += sorted(hit, key=_key)
            hit.clear()
            keys.clear()
            where = here
        hit.append(one)
        keys.add(one.key)
    return found + sorted(hit, key=_key)


def _key(event: LoggedEvent) -> EventKey:
    return event.key


def _elements(arg: FetchArg, value: Value, other: Value) -> Iterator[tuple[Value, Value]]:
    """The elements of two values: whole words of arrays of parts of them."""
    if not isinstance(value, tuple) or not isinstance(other, tuple):
        yield value, other
        return
    size = arg.type.size
    if arg.type.is_string or size in (0, 8) or len(value) * size % 8:
        yield from zip(value, other, strict=True)
        return
    yield from zip(_words(value, size), _words(other, size), strict=True)


def _words(values: Sequence[Scalar], size: int) -> Iterator[int]:
    mask = (1 << size * 8) - 1
    each = [value & mask for value in values if isinstance(value, int)]
    for start in range(0, len(each), 8 // size):
        word = 0
        for value in reversed(each[start : start + 8 // size]):
            word = word << size * 8 | value
        yield word


def _same_spot(left: MemorySpot | None, right: MemorySpot | None) -> bool:
    return left is not None and left == right


def _shown(value: Value, where: LoggedEvent) -> str:
    if value is None:
        return "(fault)"
    if not isinstance(value, int):
        return repr(value)[1:] if isinstance(value, bytes) else repr(value)
    spot = where.spot(value & _WORD)
    return f"{value:#x}" if spot is None else f"{value:#x} ({spot})"
