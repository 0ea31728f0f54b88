"""A kernel as the reading of its probe definitions sees it."""

from collections.abc import Sequence
from typing import Protocol

from engine.arch.base import Arch
from engine.fetch.dentry_types import DentryOffsets
from engine.fetch.era import Era
from engine.image.kernel.btf import Btf


class ProbedKernel(Protocol):
    """The questions that `KprobeEvents` asks of a kernel and the modules that are loaded."""

    @property
    def arch(self) -> Arch:
        """The kernel's architecture."""
        ...

    @property
    def era(self) -> Era:
        """The rules of its version."""
        ...

    @property
    def types(self) -> tuple[Btf, ...]:
        """BTF of the kernel, then of its modules; none where it has none."""
        ...

    @property
    def dentry(self) -> DentryOffsets | None:
        """Members that `%pd` and `%pD` look at."""
        ...

    @property
    def instances(self) -> int:
        """Instances of a return probe that does not say: 10, or twice the CPUs if more."""
        ...

    def addresses(self, name: str, module: str | None) -> Sequence[int]:
        """Addresses of all symbols of a name.

        Args:
            name: without a module's.
            module: look only there, "" for the kernel itself; None: in the kernel and then in
                all modules.
        """
        ...

    def has_module(self, name: str) -> bool:
        """True if a module is loaded."""
        ...

    def covering(self, address: int) -> tuple[int, int] | None:
        """[start, end) of the symbol around an address; None where kallsyms knows none.

        The kernel knows none in front of `_stext` and from `_end` on (kernel/kallsyms.c,
        is_ksym_addr), nor between modules; without KALLSYMS_ALL only text counts.
        """
        ...

    def at_entry(self, start: int, offset: int) -> bool:
        """True if so many bytes behind a symbol's start count as the function's entry.

        0 always does; with a landing pad at the start also the place behind it.
        """
        ...

    def notrace(self, address: int) -> bool:
        """True if events may not probe the function around an address."""
        ...

    def register(self, address: int, *, is_return: bool) -> str:
        """Name of the error with which register_kprobe refuses a place ("EILSEQ"); "" for none.

        Asked only of places in symbols and functions that may be traced.
        """
        ...

    def traced_names(self) -> Sequence[str]:
        """Names of the functions that ftrace knows."""
        ...

    def has_event(self, group: str, name: str) -> bool:
        """True if the kernel itself has an event of that group and name."""
        ...

    def tracepoint(self, name: str) -> str | None:
        """The function that BTF describes a tracepoint's arguments by; None for no such one."""
        ...
