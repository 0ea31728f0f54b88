"""CodeMap rules: what is wrong with a place, and the verdict that follows.

A rule looks at a `Site` and returns a `Finding` or None. Errors refuse a probe in strict mode;
in kernel mode only those that Linux refuses too do: a finding says which error it gives.
A rule that cannot know is quiet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.probes.lintrules import code, state
from engine.probes.lintrules.finding import Finding, Severity
from engine.probes.site import Site

__all__ = ["RULES", "Check", "Finding", "Judgement", "Rule", "Severity", "judge"]

How = Literal["emulated", "xol", "boosted"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A placement rule.

    Attributes:
        id: its name in reports.
        severity: "error" refuses, "warning" and "info" inform.
        check: finds what is wrong with a site; None = nothing, or it cannot be known.
        title: what holds where it finds nothing.
    """

    id: str
    severity: Severity
    check: Callable[[Site], Finding | None]
    title: str


RULES: Final[tuple[Rule, ...]] = (
    Rule("executable", "error", code.executable, "the place is in an executable segment"),
    Rule("section", "error", code.section, "its section holds code"),
    Rule("data", "error", code.data, "no data stands there"),
    Rule("boundary", "error", code.boundary, "an instruction begins there"),
    Rule("instruction", "error", code.instruction, "its instruction can be probed"),
    Rule("corrupts", "error", code.corrupts, "a probe there leaves the program as it is"),
    Rule("no-function", "warning", code.no_function, "it belongs to a function"),
    Rule("overlap", "warning", code.overlap, "it belongs to one function only"),
    Rule("linkage-stub", "warning", code.linkage_stub, "it is not in a linkage stub"),
    Rule("indirect", "warning", code.indirect, "its symbol is no indirect function"),
    Rule("alias", "info", code.alias, "its function has one name"),
    Rule("landing-pad", "info", code.landing_pad, "no landing pad stands there"),
    Rule("page-end", "info", code.page_end, "its instruction lies in one page"),
    Rule("red-zone", "info", state.red_zone, "nothing below the stack pointer is in use"),
    Rule("flags", "info", state.flags, "no condition flags are in use"),
    Rule("probed", "info", state.probed, "no probe stands there yet"),
)
"""All rules, in the order in which a refusal is explained."""

_ERRORS: Final = tuple(rule for rule in RULES if rule.severity == "error")
_OTHERS: Final = tuple(rule for rule in RULES if rule.severity != "error")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist: an error rule and whether the place passes it."""

    rule: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a place.

    Attributes:
        ok: whether a probe may stand there.
        how: how the displaced instruction would be carried out; None where refused.
        reason: the decision in words.
        errno: name of the kernel's error for a refusal, "" otherwise.
        plan: what the architecture says of the instruction.
        findings: of all rules, errors first.
    """

    ok: bool
    how: How | None
    reason: str
    errno: str
    plan: InsnPlan
    findings: tuple[Finding, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checklist: what was asked and how it came out."""
        found = {finding.rule: finding for finding in self.findings}
        rows: list[Check] = []
        for rule in _ERRORS:
            finding = found.get(rule.id)
            detail = finding.message if finding else rule.title
            if rule.id == "instruction" and finding is None:
                detail = self.plan.reason
            rows.append(Check(rule.id, finding is None, detail))
        return tuple(rows)


def judge(site: Site) -> Judgement:
    """Ask all rules about a site."""
    findings: list[Finding] = []
    refusal: Finding | None = None
    for rule in _ERRORS:
        finding = rule.check(site)
        if finding is None:
            continue
        findings.append(finding)
        refuses = site.mode is Mode.STRICT or bool(finding.errno)
        if refusal is None and refuses:
            refusal = finding
        if rule.id in ("executable", "section", "data"):
            break  # what stands there is no code: its bytes mean nothing
    else:
        findings += [finding for rule in _OTHERS if (finding := rule.check(site)) is not None]
    plan = site.plan
    if refusal is not None:
        errno = refusal.errno or "EINVAL"
        return Judgement(False, None, refusal.message, errno, plan, tuple(findings))
    if plan.verdict is Verdict.REJECTED:  # code that is not seen as such, taken in kernel mode
        return Judgement(False, None, plan.reason, plan.errno, plan, tuple(findings))
    return Judgement(True, _how(site.rules, plan), plan.reason, "", plan, tuple(findings))


def _how(rules: Rules, plan: InsnPlan) -> How:
    if plan.verdict is Verdict.EMULATED:
        return "emulated"
    return "boosted" if plan.boostable and rules is Rules.KPROBE else "xol"
