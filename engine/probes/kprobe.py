"""Logical probes: what a user registers. Any number of them may share a `ProbePoint`."""

import copy
from collections.abc import Callable
from enum import Flag, auto
from typing import ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from engine.arch.plan import Mode, Rules
from engine.arch.recording import Recording
from engine.probes.regs import PtRegs


class ProbeFlags(Flag):
    """State of a probe (KPROBE_FLAG_* of include/linux/kprobes.h)."""

    NONE = 0
    GONE = auto()
    """The probe's code is not there any more; the probe can never be enabled again."""
    DISABLED = auto()
    """Registered, but not armed; the only flag that may be given at registration."""


PreHandler = Callable[["Kprobe", PtRegs], int | None]
"""Runs before the displaced instruction. Non-zero: the handler has set ip itself; the
instruction is not executed, no later pre-handler and no post-handler runs."""

PostHandler = Callable[["Kprobe", PtRegs, int], None]
"""Runs after the displaced instruction; the flags argument is always 0."""


class _HitRecorders:
    """The recorders of a probe.

    Attributes:
        record: see `Kprobe`.
        compiles: makes `record` when that is asked for; None once it has.
        recording: see `Kprobe`.
        passes: likewise.
    """

    __slots__ = ("compiles", "passes", "record", "recording")

    def __init__(self, record: Callable[[int], None] | None = None) -> None:
        self.record = record
        self.compiles: Callable[[], Callable[[int], None]] | None = None
        self.recording: Recording | None = None
        self.passes: Callable[..., bool] | None = None


class _ProbeTerms:
    """Attributes that hardly any of a million probes has: most share one of these.

    Attributes: see `Kprobe` and `Uprobe`.
    """

    __slots__ = (
        "always",
        "handler",
        "offset",
        "post_handler",
        "pre_handler",
        "reference",
        "stops",
        "symbol_name",
    )

    def __init__(self) -> None:
        self.symbol_name: str | None = None
        self.offset = 0
        self.pre_handler: PreHandler | None = None
        self.post_handler: PostHandler | None = None
        self.handler: Callable[[Uprobe, PtRegs], int | None] | None = None
        self.stops = False
        self.always = False
        self.reference = 0


_PLAIN: Final = _ProbeTerms()
"""Of all probes that only record; never changed."""
_T = TypeVar("_T")


class _SharedTerm(Generic[_T]):
    """An attribute that is in a probe's terms: they are its own once one of them is set."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, probe: "Kprobe", owner: type | None = None) -> _T:
        found: _T = getattr(probe.terms, self._name)
        return found

    def __set__(self, probe: "Kprobe", value: _T) -> None:
        if probe.terms is _PLAIN:
            if value is getattr(_PLAIN, self._name):
                return
            probe.terms = _ProbeTerms()
        setattr(probe.terms, self._name, value)


RowOfAny: TypeAlias = tuple[Callable[[int, int, int], None], int, int]
"""Records a hit of any of many probes: a function of the thread's id with the second number here
added, of the third, and of the probe's address."""


class Preparation(Protocol):
    """Prepares a probe when it is hit."""

    def __call__(self, probe: "Kprobe") -> None:
        """Set its `record`, `recording` and `passes`."""

    def once(self, probe: "Kprobe") -> RowOfAny | None:
        """Find something that records a hit of it without; None where it has to be."""


class Kprobe:
    """A probe on an instruction.

    Attributes:
        symbol_name: where it is, by name; exclusive with `addr`.
        offset: from the symbol.
        addr: guest address; set by registration where a name was given.
        pre_handler: see `PreHandler`; it may do anything with the guest.
        post_handler: see `PostHandler`.
        record: records the hit, given the thread id; runs inside the emulator's callback.
        recording: the same for code in the guest; None if only `record` can do it.
        passes: tells, given what `record` or `record_return` is given, whether the hit passes the
            filter of its event; None if it has none.
        flags: its state.
        hits: times it was hit while enabled, misses included.
        nmissed: hits whose handlers did not run, because another probe's were running.
        rules: whose rules decide whether it may be placed.
        mode: strictness for this probe; None = the manager's.
        name: for messages: a text, or something whose text it is.
        stops: it stands for a stop of a debugger: at its hit nothing runs that the detour of a
            jump could not replace.
        always: it is hit even where the predicate of its instruction is false, as no probe of
            Linux is: a debugger's motion that ends there.
        origin: the user's probe that this one stands for in another address space; None for one
            of the user's.
        reference: of a uprobe: offset in its file of a counter of users, 0 for none
            (`engine.probes.refcount`).
        terms: what hardly any probe has, which is shared by those that have nothing of it.
        prepare: sets `record`, `recording` and `passes` when one of them is first asked for: most
            of a million probes are never hit, and most others a few times. None once it has, or
            where nobody has to.
    """

    machinery: ClassVar[bool] = False
    """True for kinds that nobody has asked for: the machinery's own."""

    __slots__ = (
        "_name",
        "_recorders",
        "addr",
        "flags",
        "hits",
        "mode",
        "nmissed",
        "origin",
        "prepare",
        "rules",
        "terms",
    )

    symbol_name = _SharedTerm[str | None]()
    offset = _SharedTerm[int]()
    pre_handler = _SharedTerm[PreHandler | None]()
    post_handler = _SharedTerm[PostHandler | None]()
    stops = _SharedTerm[bool]()
    always = _SharedTerm[bool]()
    reference = _SharedTerm[int]()

    def __init__(
        self,
        *,
        symbol_name: str | None = None,
        offset: int = 0,
        addr: int | None = None,
        pre_handler: PreHandler | None = None,
        post_handler: PostHandler | None = None,
        record: Callable[[int], None] | None = None,
        flags: ProbeFlags = ProbeFlags.NONE,
        rules: Rules = Rules.KPROBE,
        mode: Mode | None = None,
        name: object = "",
    ) -> None:
        self.terms = _PLAIN
        if symbol_name is not None or offset:
            self.symbol_name, self.offset = symbol_name, offset
        if pre_handler is not None or post_handler is not None:
            self.pre_handler, self.post_handler = pre_handler, post_handler
        self.addr = addr
        self._recorders = None if record is None else _HitRecorders(record)
        self.prepare: Preparation | None = None
        self.flags = flags
        self.rules = rules
        self.mode = mode
        self._name = name
        self.hits = 0
        self.nmissed = 0
        self.origin: Kprobe | None = None

    def _prepared(self) -> _HitRecorders:
        """The probe's recorders, ready to be asked or changed."""
        if self.prepare is not None:
            prepare, self.prepare = self.prepare, None
            prepare(self)
        if self._recorders is None:
            self._recorders = _HitRecorders()
        return self._recorders

    def part_from_twin(self) -> None:
        """Give a copied probe recorders of its own."""
        self._recorders = copy.copy(self._recorders)
        if self.terms is not _PLAIN:
            self.terms = copy.copy(self.terms)

    @property
    def record(self) -> Callable[[int], None] | None:
        """See the class."""
        if self._recorders is None and self.prepare is None:
            return None
        found = self._prepared()
        if found.compiles is not None:
            compiles, found.compiles = found.compiles, None
            found.record = compiles()
        return found.record

    @record.setter
    def record(self, record: Callable[[int], None] | None) -> None:
        found = self._prepared()
        found.record, found.compiles = record, None

    def record_by(self, compiles: Callable[[], Callable[[int], None]]) -> None:
        """Have `record` made when it is first asked for: where code records nobody asks."""
        self._prepared().compiles = compiles

    @property
    def recording(self) -> Recording | None:
        """See the class."""
        if self._recorders is None and self.prepare is None:
            return None
        return self._prepared().recording

    @recording.setter
    def recording(self, recording: Recording | None) -> None:
        self._prepared().recording = recording

    @property
    def passes(self) -> Callable[..., bool] | None:
        """See the class."""
        if self._recorders is None and self.prepare is None:
            return None
        return self._prepared().passes

    @passes.setter
    def passes(self, passes: Callable[..., bool] | None) -> None:
        self._prepared().passes = passes

    @property
    def plain(self) -> bool:
        """True if it has nothing that hardly any probe has: it records, at the most."""
        return self.terms is _PLAIN

    @property
    def enabled(self) -> bool:
        """True if its handlers run when it is hit."""
        return self.flags is ProbeFlags.NONE

    @property
    def name(self) -> str:
        """The probe's name for messages, "" without one."""
        return str(self._name)

    @name.setter
    def name(self, name: object) -> None:
        self._name = name

    def __str__(self) -> str:
        if self.name:
            return self.name
        if self.symbol_name is not None:
            return f"{self.symbol_name}+{self.offset:#x}"
        return "?" if self.addr is None else f"{self.addr:#x}"


class Uprobe(Kprobe):
    """A probe on an instruction of a file, by uprobe rules: the manager's `Uprobe` consumer.

    `handler` may return `REMOVE` to be taken out of this process for good
    (UPROBE_HANDLER_REMOVE); it cannot skip the instruction, but may change ip.
    """

    REMOVE = 1

    __slots__ = ("path", "place")

    handler = _SharedTerm[Callable[["Uprobe", PtRegs], int | None] | None]()

    def __init__(
        self,
        path: str,
        place: int,
        *,
        handler: Callable[["Uprobe", PtRegs], int | None] | None = None,
        record: Callable[[int], None] | None = None,
        mode: Mode | None = None,
        name: object = "",
    ) -> None:
        """`place` is the file offset in the guest's file `path`."""
        super().__init__(record=record, rules=Rules.UPROBE, mode=mode, name=name)
        self.path = path
        self.place = place
        if handler is not None:
            self.handler = handler
