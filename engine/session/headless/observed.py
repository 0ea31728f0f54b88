"""Records of a run that is compared with another one."""

from collections.abc import Callable

from msgspec import Struct, field

from engine.session.headless.declared import DeclaredChanges
from engine.session.protocol.report import Reports


class Call(Struct, frozen=True):
    """A system call as it was made.

    Attributes:
        name: of the call.
        arguments: its registers.
        result: what it returned; None for one that did not return.
        time: of the guest's clock when it was made.
        registers: the general registers and flags when it was made; `Observed.names` are theirs.
        pc: the program's own address behind it.
    """

    name: str
    arguments: tuple[int, ...]
    time: int
    registers: tuple[int, ...]
    pc: int
    result: int | None = None

    def __str__(self) -> str:
        shown = ", ".join(f"{value:#x}" for value in self.arguments)
        result = "?" if self.result is None else f"{self.result}"
        return f"{self.name}({shown}) = {result}"


class Observed(Struct):
    """Everything observed of one run.

    Attributes:
        names: of the registers of calls.
        calls: its system calls.
        reports: how it ended.
        time: the guest's clock at the end.
        memory: (start, end, name) of a mapping to the digests of its pieces.
        hits: probe hits.
        points: probed places, those among them whose code is gone at the end.
        unseen: addresses of words of signals' frames that are not compared.
        declared: the values that catching returns has replaced.
        notices: what happened to probes without the user's doing.
        refused: remarks about places that take no probe.
        read: (address, size) to memory at the end, as the program knows it, while it is kept.
    """

    names: tuple[str, ...] = ()
    calls: list[Call] = field(default_factory=list)
    reports: Reports | None = None
    time: int = 0
    memory: dict[tuple[int, int, str], list[bytes]] = field(default_factory=dict)
    hits: int = 0
    points: int = 0
    unseen: set[int] = field(default_factory=set)
    declared: DeclaredChanges = field(default_factory=DeclaredChanges)
    notices: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    read: Callable[[int, int], bytes] | None = None

    @property
    def timed_out(self) -> bool:
        """True if the host's limit of time has ended the run, at a place that means nothing."""
        return self.reports is not None and self.reports.limit == "timeout"


class ObservedElsewhere(Struct, frozen=True):
    """A run that another process has made, as plain data.

    Attributes:
        run: what was observed; its memory cannot be read.
        taken: answers of the host's that it got.
        difference: of what it did with the host, in words; "" if none.
        waited: seconds in which it has waited for answers.
    """

    run: Observed
    taken: int
    difference: str
    waited: float
