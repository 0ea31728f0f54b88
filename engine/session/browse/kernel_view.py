"""A kernel image as its own kernel sees it: verdicts by its rules, lines for a real machine."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.errors import KprobeTuiError
from engine.probes.kernel_places import BREAKPOINT, FTRACE, OPTIMISED, KernelVerdict
from engine.session.kernel.definition_answers import defined_rows
from engine.session.kernel.exported import exported
from engine.session.kernel.kernel_memory import rests
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.patched_rows import patched_rows
from engine.session.kernel.verdict_rows import KernelRow, row_of
from engine.trace.kprobe_events import DYNAMIC_EVENTS

_PASSED: Final = (
    ("kernel.notrace", "ftrace knows the function: events may be on it"),
    ("kernel.text", "in text that stays after boot"),
    ("kernel.blacklist", "not on kprobes/blacklist"),
    ("kernel.jump-label", "in no jump label's site"),
    ("kernel.static-call", "in no static call's site"),
    ("kernel.bug", "not the trap of a BUG or WARN"),
    ("kernel.boundary", "an instruction begins there, by decoding from the symbol on"),
    ("kernel.instruction", "the instruction can be stepped out of line"),
)
"""Rules in the order in which the kernel asks, and what it means to meet one."""
_FIRST: Final = {"kernel.init": "kernel.text", "kernel.symbol": "kernel.boundary"}
"""Ids of refusals that stand in the place of another rule's."""
_KINDS: Final = {
    FTRACE: "served by ftrace at its site, without a breakpoint",
    OPTIMISED: "a breakpoint, which becomes a jump to a detour buffer within a second",
    BREAKPOINT: "a breakpoint, which stays one",
}


class KernelCheck(Struct, frozen=True):
    """A rule of the image's kernel, and what it says of a place.

    Attributes:
        rule: its id.
        ok: the place meets it.
        detail: in words.
    """

    rule: str
    ok: bool
    detail: str


class KernelAnswer(Struct, frozen=True):
    """The image's kernel about a place.

    Attributes:
        kernel: which: "Linux 6.1.192".
        kind: "ftrace", "jump", "breakpoint"; "" where it refuses.
        errno: name of the error of a refusal.
        text: the answer in words.
        checks: rule by rule, up to the first that is not met.
        address: of the probe: behind a landing pad it is another one.
    """

    kernel: str
    kind: str
    errno: str
    text: str
    checks: tuple[KernelCheck, ...]
    address: int


class KernelBrowser:
    """One image, asked by an interface.

    Attributes:
        version: of the rules: "Linux 6.1.192".
    """

    def __init__(self, opened: OpenedKernel) -> None:
        """Nothing is asked yet."""
        self._opened = opened
        self.version = f"Linux {opened.era}"

    def rests(self, pc: int) -> bool:
        """True if a guest with this pc calls no function of the image."""
        return rests(self._opened.calls, pc)

    @property
    def first(self) -> int:
        """The address of the image's first text."""
        return self._opened.tables.text[0][0]

    def kind(self, address: int) -> str:
        """The kind of a probe at a function's entry: "ftrace", "jump", ...; "" for none."""
        try:
            return self._opened.places.event(address).kind
        except KprobeTuiError:
            return ""

    def answer(self, address: int) -> KernelAnswer | None:
        """The kernel's answer for an event at an address; None outside of the image's text."""
        opened = self._opened
        text = (*opened.tables.text, *opened.tables.gone)
        if not any(low <= address < high for low, high in text):
            return None
        verdict = opened.places.event(address)
        row = row_of(opened, address, verdict)
        words = _KINDS.get(verdict.kind, row.reason)
        return KernelAnswer(
            self.version, verdict.kind, row.errno, words, tuple(_checks(verdict)), verdict.address
        )

    def defined(self, line: str) -> KernelRow | None:
        """The answer to a line of `kprobe_events`; None where it cannot be asked."""
        return next(defined_rows(self._opened, [line], sequence=False, file=DYNAMIC_EVENTS), None)

    def exported(self, lines: Sequence[str], form: str) -> list[str]:
        """Definitions in the words of a real machine's tool.

        Args:
            lines: of `kprobe_events`.
            form: "tracefs", "perf" or "bpftrace".
        """
        return list(exported(self._opened, lines, form))

    def before_boot(self, low: int, high: int) -> dict[int, str]:
        """Bytes and instructions of the file in places of [low, high) that boot has changed."""
        near = self._opened.live.patches_in(low - self._opened.arch.insn_max, high)
        if next(near, None) is None:
            return {}
        return {
            row.address: f"{row.file.hex(' ')}  {row.before}  ({', '.join(row.kinds)})"
            for row in patched_rows(self._opened, low, high)
            if row.before
        }


def _checks(verdict: KernelVerdict) -> Iterator[KernelCheck]:
    """The rules, up to the one that refuses; then why a breakpoint stays one."""
    refusal = verdict.refusal
    failed = "" if refusal is None else _FIRST.get(refusal.rule, refusal.rule)
    known = {rule for rule, _ in _PASSED}
    for rule, passed in _PASSED:
        last = rule == "kernel.instruction"
        if refusal is not None and (rule == failed or (last and failed not in known)):
            yield KernelCheck(refusal.rule, False, refusal.detail)
            return
        yield KernelCheck(rule, True, passed)
    if verdict.kind == OPTIMISED:
        yield KernelCheck("optprobe", True, "a jump fits: no rule stands against it")
    elif verdict.stays is not None:
        yield KernelCheck(verdict.stays.rule, False, f"no jump: {verdict.stays.detail}")
