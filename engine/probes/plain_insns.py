"""Probed instructions of which the bytes say all that arming a uprobe has to know.

Most of many uprobes stand on instructions that others have, too, and most are never hit. Such an
instruction is admitted by its bytes once; its plan is made at each place only when it is hit.
"""

from bisect import bisect_left
from functools import lru_cache

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.probes.point_state import NO_COPY, InsnCopy
from engine.probes.site import FunctionCode

_KEPT = 1 << 14


class PlainInsn(Struct, frozen=True, gc=False):
    """An instruction that may be probed by uprobes' rules.

    Attributes:
        raw: its bytes.
        copy: how it is carried out of line.
    """

    raw: bytes
    copy: InsnCopy


@lru_cache(maxsize=4096)
def _shared_copy(code: bytes, scratch: bool) -> InsnCopy:
    """The copy for the XOL area; of the same instruction at many places one will do."""
    return InsnCopy(None, code, scratch=scratch)


def copy_in_area(arch: Arch, plan: InsnPlan) -> InsnCopy | None:
    """The copy of an instruction that is stepped in the XOL area; None without one."""
    if not plan.copy:
        return None
    code = (plan.scratch_copy or plan.copy) + arch.probes.after
    return _shared_copy(code, bool(plan.scratch_copy))


class PlainInsns:
    """Instructions by their bytes, under uprobes' rules of one mode."""

    def __init__(self, arch: Arch, mode: Mode) -> None:
        """None is known yet."""
        self._arch, self._mode = arch, mode
        self._known: dict[bytes, PlainInsn | None] = {}

    @staticmethod
    def have(arch: Arch) -> bool:
        """True if an architecture has such: what stands before one never matters."""
        probes = arch.probes
        return arch.code_unit == 1 and not probes.looks_back and bool(probes.after)

    def at(self, raw: bytes, address: int, behind: bytes) -> PlainInsn | None:
        """The instruction at an address; None where it is refused, or needs more than its bytes.

        Args:
            raw: its bytes.
            address: where it stands.
            behind: the bytes from there on, as many as an instruction has; fewer where the
                function ends, as what follows is not known then.
        """
        if raw in self._known:
            known = self._known[raw]
        else:
            plan = self._arch.probes.anywhere(raw, Rules.UPROBE, self._mode)
            known = None if plan is None else self._of(plan, raw)
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[raw] = known
        if known is not None or len(behind) < self._arch.insn_max:
            return known
        return self._of(
            self._arch.probes.analyze(behind, address, Rules.UPROBE, self._mode, b""), raw
        )

    def again(self, raw: bytes, address: int) -> PlainInsn:
        """The instruction at an address where it was found before (`at`)."""
        found = self._known.get(raw)
        if found is None:
            plan = self._arch.probes.analyze(raw, address, Rules.UPROBE, self._mode, b"")
            found = self._of(plan, raw)
        assert found is not None, "it was found before"
        return found

    def _of(self, plan: InsnPlan, raw: bytes) -> PlainInsn | None:
        if plan.verdict is Verdict.REJECTED or plan.raw != raw or plan.bits is not None:
            return None
        if plan.operation is not None:
            return PlainInsn(raw, NO_COPY)
        copy = copy_in_area(self._arch, plan)
        return None if copy is None else PlainInsn(raw, copy)


class PlainRun:
    """The instructions of a function that a guest has as its file has it.

    Attributes:
        low: guest address of the first byte.
        high: that behind the last one.
    """

    def __init__(
        self, low: int, high: int, function: FunctionCode | None, insns: PlainInsns, longest: int
    ) -> None:
        """Look at the instructions when they are asked for.

        Args:
            low: guest address of the first byte.
            high: that behind the last one.
            function: the function in its file; None where nothing of it is plain.
            insns: by their bytes.
            longest: bytes of an instruction, at most.
        """
        self.low, self.high = low, high
        self._function, self._insns, self._longest = function, insns, longest
        self._bias = 0 if function is None else low - function.start

    def insn(self, address: int) -> PlainInsn | None:
        """The instruction at a guest address of the function; None if it needs a closer look."""
        function = self._function
        if function is None:
            return None
        starts, link = function.starts, address - self._bias
        number = bisect_left(starts, link)
        if number == len(starts) or starts[number] != link:
            return None
        end = starts[number + 1] if number + 1 < len(starts) else function.end
        at = link - function.start
        behind = function.data[at : at + self._longest]
        raw = behind[: end - link]
        return self._insns.at(raw, address, behind)
