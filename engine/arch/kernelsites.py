"""Places in a kernel's text that its own tables name, and the patches made there at boot."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from engine.arch.kernel import KernelView


class JumpLabel(NamedTuple):
    """A branch or nop that follows a static key.

    Attributes:
        code: address of the instruction.
        target: where the branch leads.
        key: address of the static key.
        likely: true where the code in line is that of a true key.
        init: true where the file marks it as being in init text.
    """

    code: int
    target: int
    key: int
    likely: bool
    init: bool


class StaticCall(NamedTuple):
    """A call or jump that follows a static call's key.

    Attributes:
        address: of the instruction.
        key: address of the key.
        tail: true where it is a jump instead of a call.
        init: true where the file marks it as being in init text.
    """

    address: int
    key: int
    tail: bool
    init: bool


class ExceptionEntry(NamedTuple):
    """An instruction that may fault, and where it goes on then.

    Attributes:
        insn: its address.
        fixup: where it goes on.
        data: the handler's type and data as they stand in the table; 0 where it has none.
    """

    insn: int
    fixup: int
    data: int


class BugSite(NamedTuple):
    """The trap of a BUG or a WARN.

    Attributes:
        address: of the trap.
        file: address of the source file's name; 0 without CONFIG_DEBUG_BUGVERBOSE.
        line: in that file.
        flags: BUGFLAG_*.
    """

    address: int
    file: int
    line: int
    flags: int


class Alternative(NamedTuple):
    """Instructions that are exchanged where the CPU has, or lacks, a feature.

    Attributes:
        address: of the instructions.
        replacement: address of those to put there.
        feature: number of the feature, flags included, as it stands in the table.
        size: bytes of the instructions.
        replacement_size: bytes of those to put there.
    """

    address: int
    replacement: int
    feature: int
    size: int
    replacement_size: int


class ParavirtSite(NamedTuple):
    """A call through the table of paravirtual operations.

    Attributes:
        address: of the instruction.
        kind: number of the operation.
        size: bytes that may be patched.
    """

    address: int
    kind: int
    size: int


class TextPatch(NamedTuple):
    """A place that the kernel patches at boot.

    Attributes:
        address: of its first byte.
        before: bytes in the file.
        after: bytes in memory, as many.
        cause: name of the table that says so: "alternatives", "ftrace", "jump_labels" ...
    """

    address: int
    before: bytes
    after: bytes
    cause: str


class KernelSites(Protocol):
    """The tables of an image or a module; each is read when it is asked for, and in its order."""

    @property
    def ftrace(self) -> Sequence[int]:
        """Addresses of the instructions that ftrace patches, sorted."""
        ...

    @property
    def jump_labels(self) -> Sequence[JumpLabel]:
        """Branches that follow static keys, sorted."""
        ...

    @property
    def static_calls(self) -> Sequence[StaticCall]:
        """Calls that follow a key, sorted."""
        ...

    @property
    def exceptions(self) -> Sequence[ExceptionEntry]:
        """Instructions that may fault, sorted."""
        ...

    @property
    def bugs(self) -> Sequence[BugSite]:
        """Traps of BUG and WARN, sorted."""
        ...

    @property
    def alternatives(self) -> Sequence[Alternative]:
        """Instructions to be exchanged, in the table's order, which is that of the patching."""
        ...

    @property
    def retpoline_sites(self) -> Sequence[int]:
        """Calls and jumps to the thunks of indirect branches."""
        ...

    @property
    def return_sites(self) -> Sequence[int]:
        """Jumps to the thunk of returns."""
        ...

    @property
    def endbr_seal(self) -> Sequence[int]:
        """Marks of indirect branch targets that nobody branches to."""
        ...

    @property
    def paravirt(self) -> Sequence[ParavirtSite]:
        """Calls through the table of paravirtual operations, in the table's order."""
        ...

    @property
    def smp_locks(self) -> Sequence[int]:
        """Lock prefixes that a machine with one CPU can do without."""
        ...

    def bounds(self, address: int) -> tuple[int, int] | None:
        """Start and end of the symbol that an address belongs to; None beyond the last one."""
        ...


class TableShapes(Protocol):
    """Finds tables in an image that has neither sections nor symbols for them."""

    def tables(self, starts: Sequence[int]) -> Mapping[str, tuple[int, int]]:
        """Name of a table to its address and size in bytes.

        Args:
            starts: addresses of all symbols, sorted.
        """
        ...

    def ftrace_sites(self, addresses: Sequence[int]) -> Sequence[int]:
        """The instructions that ftrace patches, by the addresses of the table."""
        ...


class TableAddress(Struct, frozen=True):
    """Names under which a table can be found.

    Attributes:
        sections: in a module, or where the image has kept its sections.
        start: of the symbol at its start.
        end: of the symbol behind it.
    """

    sections: tuple[str, ...]
    start: str
    end: str


class BootedKernel(Protocol):
    """A kernel that has booted on one CPU, as its text shows it."""

    def patches(self) -> tuple[TextPatch, ...]:
        """The places of the kernel's own text that differ from the file, in order."""
        ...

    def module_patches(
        self, view: KernelView, sites: KernelSites, start: int, end: int
    ) -> tuple[TextPatch, ...]:
        """The places of a module's text that differ from the file, in order.

        Args:
            view: the module.
            sites: its tables.
            start: of its text.
            end: of its text.
        """
        ...
