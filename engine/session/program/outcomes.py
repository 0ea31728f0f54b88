"""Outcomes of verdicts on all instructions of a function at once.

A verdict on a whole program asks about each of its instructions, and most of them differ from
others by their address alone: the same bytes have the same plan, and nothing about a place is
made that its line does not say. What is out of the ordinary is judged as any other place is.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules
from engine.probes.breakpoint import BREAKPOINT
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import Check, accepted, plain
from engine.probes.site import FunctionCode, ImageCode, Site, plan_at
from engine.probes.technique_kind import TechniqueKind
from engine.session.program.verdicts import accepted_text

_KEPT: Final = 1 << 14


class Surveyor:
    """Tells outcomes of functions, under the same rules for all of them."""

    def __init__(
        self, arch: Arch, rules: Rules, mode: Mode, kind: TechniqueKind, refused: Check | None
    ) -> None:
        """Nothing is known yet.

        Args:
            arch: of the code.
            rules: whose rules decide.
            mode: how strictly.
            kind: of the technique that is wanted.
            refused: why none is asked for at all; None if one is.
        """
        self._arch, self._rules, self._mode = arch, rules, mode
        self._kind, self._refused = kind, refused
        self._names = (kind.stands, BREAKPOINT.stands)
        # By the bytes of an instruction: with the technique that is wanted, and without.
        self._known: dict[bytes, tuple[str, str]] = {}

    def lacks(self, code: ImageCode, function: FunctionCode) -> Sequence[str]:
        """Id of the condition that each instruction does not meet first, "" where it meets all."""
        if self._refused is not None:
            return [self._refused.rule] * len(function.starts)
        conditions = self._kind.conditions
        assert conditions is not None, "it replaces breakpoints"
        return conditions.failing_in(
            JumpPlace(self._arch, function.start, self._rules, self._mode, code, function)
        )

    def outcomes(
        self,
        code: ImageCode,
        function: FunctionCode,
        first: int,
        site: Callable[[int], Site],
        judge: Callable[[int], str],
    ) -> list[tuple[int, str]]:
        """(address, outcome) of the instructions of a function.

        Args:
            code: its file.
            function: the function whose instructions are judged.
            first: the address to begin with.
            site: an instruction as the rules see it.
            judge: the outcome of one for which the bytes do not say enough.
        """
        arch, known, unknown = self._arch, self._known, self._kept
        align, rules, mode = arch.insn_align, self._rules, self._mode
        alike = arch.code_unit == 1 and not arch.probes.ties(function.data)
        starts, raws, lacks = function.starts, function.raws, self.lacks(code, function)
        ordinary, stretch_end = False, 0
        found: list[tuple[int, str]] = []
        for number in range(bisect_left(starts, first), len(starts)):
            address = starts[number]
            if address >= stretch_end:
                here = site(address)
                ordinary, stretch_end = plain(here), here.stretch.end
            if not ordinary or address % align:
                found.append((address, judge(address)))
                continue
            if alike:
                raw = raws[number]
                both = known[raw] if raw in known else unknown(raw)
                if both is not None:
                    found.append((address, both[bool(lacks[number])]))
                    continue
            plan = plan_at(code, function, address, rules, mode)
            how = accepted(rules, plan)
            if how is None:
                found.append((address, judge(address)))
            else:
                name = self._names[bool(lacks[number])]
                found.append((address, accepted_text(name, how, plan.reason)))
        return found

    def _kept(self, raw: bytes) -> tuple[str, str] | None:
        """The outcomes by the bytes of an instruction; None where they do not say enough."""
        plan = self._arch.probes.anywhere(raw, self._rules, self._mode)
        how = None if plan is None else accepted(self._rules, plan)
        if plan is None or how is None:
            return None
        if len(self._known) >= _KEPT:
            self._known.clear()
        wanted, other = (accepted_text(name, how, plan.reason) for name in self._names)
        self._known[raw] = wanted, other
        return wanted, other
