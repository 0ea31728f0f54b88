"""Rules of an architecture for probes on a kernel's own text, as that kernel applies them."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class KernelFunction(Struct, frozen=True, eq=False):
    """The live text of one symbol, up to the next one.

    Attributes:
        name: the first name of its address.
        start: of the symbol.
        end: of the next one.
        code: bytes as a running kernel has them, without probes.
        exceptions: addresses in it that the exception table names, sorted.
    """

    name: str
    start: int
    end: int
    code: bytes
    exceptions: tuple[int, ...]

    def at(self, address: int) -> bytes:
        """The bytes from an address on."""
        return self.code[address - self.start :]


class KernelRefusal(Struct, frozen=True):
    """A rule that a place does not meet.

    Attributes:
        rule: its id.
        detail: in words, with the instruction or the table at fault.
        errno: name of the error with which the kernel refuses; "" where it only falls back.
        address: of what is at fault, the place itself where that is nothing else.
    """

    rule: str
    detail: str
    errno: str
    address: int


class KernelOutcome(NamedTuple):
    """The outcome of a probe at a place, without the words of the reason.

    Attributes:
        refused: no probe may stand there.
        rule: id of the rule that refuses it, or by which a breakpoint stays one; "" where it
            becomes a jump.
    """

    refused: bool
    rule: str


class KernelPlaceRules(Protocol):
    """Rules for places in the text of one kernel."""

    @property
    def ftrace_based(self) -> bool:
        """True where a probe on ftrace's site is served by ftrace (KPROBES_ON_FTRACE)."""
        ...

    @property
    def static_call_size(self) -> int:
        """Bytes of a static call's site."""
        ...

    @property
    def site_size(self) -> int:
        """Bytes of ftrace's site."""
        ...

    @property
    def return_refused(self) -> frozenset[str]:
        """Functions that no return probe may be on (kretprobe_blacklist)."""
        ...

    def label_size(self, code: bytes) -> int:
        """Bytes of a jump label's site, by its live code."""
        ...

    def entry_offset(self, code: bytes) -> int:
        """Bytes of the landing pad in front of a function, behind which its entry probe goes."""
        ...

    def refusal(self, function: KernelFunction, address: int) -> KernelRefusal | None:
        """The reason for which the architecture does not prepare a probe (arch_prepare_kprobe)."""
        ...

    def instructions(self, function: KernelFunction) -> Iterator[tuple[int, int]]:
        """Address and bytes of each instruction, decoded from the symbol on."""
        ...

    def ordinary(
        self, function: KernelFunction, stop: int
    ) -> tuple[Sequence[int], Sequence[KernelOutcome]]:
        """Address of each instruction, and the outcome there where no table has a say.

        `refusal` and `unoptimised` tell of one place at a time, and why; here all of a function
        are told of at once, for counting.

        Args:
            function: the function.
            stop: instructions from there on are left out.
        """
        ...

    @property
    def reach(self) -> int:
        """Bytes from an address on that a jump takes; whole instructions are asked about."""
        ...

    def unoptimised(
        self,
        function: KernelFunction,
        address: int,
        reserved: Callable[[int, int], KernelRefusal | None],
    ) -> KernelRefusal | None:
        """The reason for which a breakpoint there stays one; None if it becomes a jump.

        Args:
            function: around it.
            address: an instruction that a breakpoint may be on.
            reserved: tells of a table's site in [low, high).
        """
        ...

    def window(self, function: KernelFunction, address: int) -> tuple[int, int]:
        """The [low, high) that a jump's whole instructions take, behind the first byte."""
        ...
