"""The rules for placing a probe: what is wrong with a place, and the verdict that follows.

A rule looks at a `Site` and returns a `Finding` or None. Errors refuse a probe in strict mode;
in kernel mode only those that Linux refuses too do: a finding says which error it gives.
A rule that cannot know is quiet.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Final, Literal

from msgspec import Struct

from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.probes.lintrules import code, state
from engine.probes.lintrules.finding import Finding, Severity
from engine.probes.site import Site

__all__ = ["CORRUPTS", "RULES", "Check", "Finding", "Judgement", "Rule", "Severity", "judge"]

CORRUPTS: Final = code.CORRUPTS
How = Literal["emulated", "xol", "boosted"]


class Rule(Struct, frozen=True):
    """A placement rule.

    Attributes:
        id: its name in reports.
        severity: "error" refuses, "warning" and "info" inform.
        check: finds what is wrong with a site; None = nothing, or it cannot be known.
        title: what holds where it finds nothing.
        around: it goes by the stretch that a site lies in: where it finds nothing at one place
            of it, it finds nothing at the others.
    """

    id: str
    severity: Severity
    check: Callable[[Site], Finding | None]
    title: str
    around: bool = False


RULES: Final[tuple[Rule, ...]] = (
    Rule("executable", "error", code.executable, "the place is in an executable segment", True),
    Rule("section", "error", code.section, "its section holds code", True),
    Rule("data", "error", code.data, "no data stands there", True),
    Rule("boundary", "error", code.boundary, "an instruction begins there"),
    Rule("instruction", "error", code.instruction, "its instruction can be probed"),
    Rule(CORRUPTS, "error", code.corrupts, "a probe there leaves the program as it is"),
    Rule("no-function", "warning", code.no_function, "it belongs to a function"),
    Rule("overlap", "warning", code.overlap, "it belongs to one function only"),
    Rule("linkage-stub", "warning", code.linkage_stub, "it is not in a linkage stub", True),
    Rule("indirect", "warning", code.indirect, "its symbol is no indirect function", True),
    Rule("alias", "info", code.alias, "its function has one name"),
    Rule("landing-pad", "info", code.landing_pad, "no landing pad stands there"),
    Rule("page-end", "info", code.page_end, "its instruction lies in one page"),
    Rule("red-zone", "info", state.red_zone, "nothing below the stack pointer is in use"),
    Rule("nop5-red-zone", "warning", state.nop_call, "a call there would damage nothing"),
    Rule(
        "x86.uprobe-int3",
        "warning",
        state.long_breakpoint,
        "its file has no breakpoint in two bytes",
    ),
    Rule("flags", "info", state.flags, "no condition flags are in use"),
    Rule("probed", "info", state.probed, "no probe stands there yet"),
)
"""All rules, in the order in which a refusal is explained."""

_ERRORS: Final = tuple(rule for rule in RULES if rule.severity == "error")
_AROUND: Final = frozenset(rule.id for rule in _ERRORS if rule.around)
_OTHERS: Final = tuple(rule for rule in RULES if rule.severity != "error")


class Check(Struct, frozen=True):
    """One line of the checklist: an error rule and whether the place passes it."""

    rule: str
    ok: bool
    detail: str


def _no_remarks() -> tuple[Finding, ...]:
    return ()


class Judgement(Struct, frozen=True, eq=False, dict=True):
    """The verdict on a place.

    Attributes:
        ok: whether a probe may stand there.
        how: how the displaced instruction would be carried out; None where refused.
        reason: the decision in words.
        errno: name of the kernel's error for a refusal, "" otherwise.
        plan: what the architecture says of the instruction.
        errors: findings of the rules that refuse.
        remark: asks the other rules.
    """

    ok: bool
    how: How | None
    reason: str
    errno: str
    plan: InsnPlan
    errors: tuple[Finding, ...]
    remark: Callable[[], tuple[Finding, ...]] = _no_remarks

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Of all rules, errors first."""
        return (*self.errors, *self.remark())

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checklist: what was asked and how it came out."""
        found = {finding.rule: finding for finding in self.errors}
        rows: list[Check] = []
        for rule in _ERRORS:
            finding = found.get(rule.id)
            detail = finding.message if finding else rule.title
            if rule.id == "instruction" and finding is None:
                detail = self.plan.reason
            rows.append(Check(rule.id, finding is None, detail))
        return tuple(rows)


def judge(site: Site) -> Judgement:
    """Ask the rules about a site; those that refuse nothing when somebody wants to know."""
    errors: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    remark: Callable[[], tuple[Finding, ...]] = partial(_remarks, site)
    for rule in _speaking(_silent(site))[0]:
        finding = rule.check(site)
        if finding is None:
            continue
        errors = (*errors, finding)
        refuses = site.mode is Mode.STRICT or bool(finding.errno)
        if refusal is None and refuses:
            refusal = finding
        if rule.id in ("executable", "section", "data"):
            remark = _no_remarks  # what stands there is no code: its bytes mean nothing
            break
    plan = site.plan
    if refusal is not None:
        errno = refusal.errno or "EINVAL"
        return Judgement(False, None, refusal.message, errno, plan, errors, remark)
    if plan.verdict is Verdict.REJECTED:  # code that is not seen as such, taken in kernel mode
        return Judgement(False, None, plan.reason, plan.errno, plan, errors, remark)
    return Judgement(True, _how(site.rules, plan), plan.reason, "", plan, errors, remark)


def _remarks(site: Site) -> tuple[Finding, ...]:
    found = (rule.check(site) for rule in _speaking(_silent(site))[1])
    return tuple(finding for finding in found if finding is not None)


def _silent(site: Site) -> frozenset[str]:
    """Rules that need not be asked: they have nothing to say of all of the stretch."""
    stretch = site.stretch
    if site.symbol is not stretch.symbol:
        return frozenset()
    if stretch.silent is None:
        quiet = (rule.id for rule in RULES if rule.around and rule.check(site) is None)
        stretch.silent = frozenset(quiet)
    return stretch.silent


def plain(site: Site) -> bool:
    """True if nothing but the instruction decides about the places of a site's stretch.

    Those of the instructions of its function, that is, which begin on the architecture's
    boundaries: what there is to say of what they lie in refuses none.
    """
    return _silent(site) >= _AROUND


def accepted(rules: Rules, plan: InsnPlan) -> How | None:
    """The way an instruction of such a place is carried out; None where the rules have to say."""
    return None if plan.verdict is Verdict.REJECTED else _how(rules, plan)


@lru_cache
def _speaking(silent: frozenset[str]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The rules that are left, errors and others."""
    errors = tuple(rule for rule in _ERRORS if rule.id not in silent)
    return errors, tuple(rule for rule in _OTHERS if rule.id not in silent)


def _how(rules: Rules, plan: InsnPlan) -> How:
    if plan.verdict is Verdict.EMULATED:
        return "emulated"
    return "boosted" if plan.boostable and rules is Rules.KPROBE else "xol"
