"""Places of a kernel's own AArch64 text where it lets kprobes stand.

Sources: arch/arm64/kernel/probes/kprobes.c and decode-insn.c of Linux 6.1 to 6.12. There are
neither optimised probes nor (in these versions) probes served by ftrace: everything is a BRK.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

from engine.arch.aarch64.analyze import analyze
from engine.arch.aarch64.exclusive import EARLIER_EXCLUSIVES, EXCLUSIVES, linux_scan, may_pair
from engine.arch.kernel import KernelView
from engine.arch.kernelprobes import KernelFunction, KernelOutcome, KernelRefusal
from engine.arch.plan import Mode, Rules, Verdict

_WORD = 4
_SCAN = 128
_EXACT = (6, 15, 0)
_KEPT = 1 << 14
_PAIR = "arm64.exclusive-pair"
_STAYS = KernelOutcome(refused=False, rule="optprobe.none")


@cache
def _rejected(rule: str) -> KernelOutcome:
    return KernelOutcome(refused=True, rule=rule)


@lru_cache(maxsize=_KEPT)
def _refused(raw: bytes) -> str:
    """The rule by which an instruction is refused wherever it stands; "" for none."""
    plan = analyze(raw, 0, Rules.KPROBE, Mode.KERNEL, b"")
    return plan.rule if plan.verdict is Verdict.REJECTED else ""


class Arm64KernelRules:
    """The rules of one kernel."""

    ftrace_based = False
    static_call_size = _WORD
    site_size = _WORD
    reach = _WORD
    return_refused: frozenset[str] = frozenset()

    def __init__(self, view: KernelView) -> None:
        """Take the version from an image.

        Args:
            view: the image, with its symbols and tables.
        """
        self._mask = EXCLUSIVES if view.version >= _EXACT else EARLIER_EXCLUSIVES

    def label_size(self, code: bytes) -> int:
        """A whole instruction."""
        return _WORD

    def entry_offset(self, code: bytes) -> int:
        """0: a landing pad may be probed itself."""
        return 0

    def refusal(self, function: KernelFunction, address: int) -> KernelRefusal | None:
        """The reason for which the architecture does not prepare a probe."""
        at = address - function.start
        before = function.code[max(0, at - _SCAN) : at]
        raw = function.code[at : at + _WORD]
        plan = analyze(raw, address, Rules.KPROBE, Mode.KERNEL, b"")
        if plan.verdict is Verdict.REJECTED:
            return KernelRefusal(plan.rule, plan.reason, plan.errno, address)
        if linux_scan(before, self._mask):
            detail = "between what the kernel takes for a load-exclusive and its store-exclusive"
            return KernelRefusal(_PAIR, detail, "EINVAL", address)
        return None

    def instructions(self, function: KernelFunction) -> Iterator[tuple[int, int]]:
        """Every word."""
        for address in range(-(-function.start // _WORD) * _WORD, function.end, _WORD):
            yield address, _WORD

    def ordinary(
        self, function: KernelFunction, stop: int
    ) -> tuple[Sequence[int], Sequence[KernelOutcome]]:
        """The outcome at each word; only few functions have exclusives, which are looked for."""
        places = [address for address, _ in self.instructions(function) if address < stop]
        paired = may_pair(function.code)
        found: list[KernelOutcome] = []
        for address in places:
            at = address - function.start
            rule = _refused(function.code[at : at + _WORD])
            if not rule and paired:
                before = function.code[max(0, at - _SCAN) : at]
                rule = _PAIR if linux_scan(before, self._mask) else ""
            found.append(_rejected(rule) if rule else _STAYS)
        return places, found

    def unoptimised(
        self,
        function: KernelFunction,
        address: int,
        reserved: Callable[[int, int], KernelRefusal | None],
    ) -> KernelRefusal | None:
        """Always: the architecture has no optimised probes."""
        return KernelRefusal(
            _STAYS.rule, "this architecture's kernels have no optimised probes", "", address
        )

    def window(self, function: KernelFunction, address: int) -> tuple[int, int]:
        """Nothing but the instruction itself."""
        return address + _WORD, address + _WORD
