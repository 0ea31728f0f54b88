"""Names of the running kernel's own addresses, from /proc/kallsyms."""

from bisect import bisect_right
from contextlib import suppress
from pathlib import Path
from typing import Final

from engine.trace.formats.base import no_symbol

KALLSYMS: Final = Path("/proc/kallsyms")
FIRST: Final = 1 << 63
"""The lowest address that is the kernel's."""
_TRAMPOLINES: Final = frozenset(
    ("arch_rethook_trampoline", "__kretprobe_trampoline", "kretprobe_trampoline")
)
"""The code that a function with a return probe returns to, in Linux 6.0, 5.15 and before."""


class RunningSymbols:
    """The symbols, which are read when the first name is asked for."""

    def __init__(self, path: Path = KALLSYMS) -> None:
        """Take a list of symbols."""
        self._path = path
        self._starts: list[int] | None = None
        self._names: list[str] = []

    def symbol(self, address: int) -> str:
        """An address as the kernel prints it in a trace (trace_output.c, trace_seq_print_sym).

        A number for one below all symbols, or without a list.
        """
        starts = self._read()
        index = bisect_right(starts, address) - 1
        if index < 0:
            return no_symbol(address)
        start = starts[index]
        end = starts[index + 1] if index + 1 < len(starts) else start
        name, _, module = self._names[index].partition("\t")
        if address == start and name in _TRAMPOLINES:  # the caller is known to another probe only
            return "[unknown/kretprobe'd]"
        return f"{name}+{address - start:#x}/{end - start:#x}" + (f" {module}" if module else "")

    def _read(self) -> list[int]:
        """Addresses of the symbols; of several at one address the first one counts."""
        if self._starts is None:
            found: dict[int, str] = {}
            with suppress(OSError), self._path.open(encoding="ascii", errors="replace") as file:
                for line in file:
                    number, _, name = line.rstrip("\n").split(" ", 2)
                    start = int(number, 16)
                    if start >= FIRST:  # else it is hidden (kptr_restrict), or a CPU's own data
                        found.setdefault(start, name)
            self._starts = sorted(found)
            self._names = [found[start] for start in self._starts]
        return self._starts
