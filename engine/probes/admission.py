"""Admission of probes: places that may have one, and plans for the instructions there.

The order of checks and the names of the errors are kernel/kprobes.c's.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import product

from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.cpu.ram import EXECUTE, PAGE
from engine.errors import GuestFaultError, ProbeRejectedError
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import DATA_MAX, Kretprobe
from engine.probes.plain_insns import PlainInsn, PlainInsns, PlainRun
from engine.probes.site import FunctionCode
from engine.probes.target import ProbeTarget


class Blacklist:
    """Named ranges of guest addresses that no probe may touch; they do not overlap.

    A kernel shows its own as /sys/kernel/debug/kprobes/blacklist.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, int, str]] = []

    def add(self, start: int, end: int, name: str) -> None:
        """Forbid [start, end)."""
        index = bisect_right(self._starts, start)
        self._starts.insert(index, start)
        self._ranges.insert(index, (start, end, name))

    def find(self, address: int) -> str | None:
        """The name of the range around an address, None if it may be probed."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start, end, name = self._ranges[index]
        return name if start <= address < end else None

    def touches(self, start: int, end: int) -> bool:
        """True if something in [start, end) is forbidden."""
        index = bisect_right(self._starts, end - 1) - 1
        return index >= 0 and self._ranges[index][1] > start

    def listing(self) -> list[str]:
        """Lines as debugfs shows them."""
        return [f"0x{start:016x}-0x{end:016x}\t{name}" for start, end, name in self._ranges]


class Admission:
    """The checks of one guest's probes.

    Attributes:
        blacklist: where nothing may be probed.
    """

    def __init__(self, target: ProbeTarget) -> None:
        """Nothing is forbidden yet."""
        self.blacklist = Blacklist()
        self._arch, self._memory = target.arch, target.memory
        self._overlay, self._code_map = target.overlay, target.code_map
        self._mode = target.mode
        self._planners = {
            (rules, mode): partial(self._analyzed, rules=rules, mode=mode)
            for rules, mode in product(Rules, Mode)
        }
        # Plans of places that were checked and are not probed yet.
        self._checked: dict[tuple[int, Rules, Mode], InsnPlan] = {}
        self._insns: dict[Mode, PlainInsns] = {}

    def mode_of(self, probe: Kprobe) -> Mode:
        """The strictness for a probe."""
        return probe.mode or self._mode

    def address(self, probe: Kprobe) -> int:
        """Guest address of a probe (kprobe_addr).

        Raises:
            ProbeRejectedError: it does not say, or there is no such symbol.
        """
        if (probe.symbol_name is None) == (not probe.addr):
            where = probe.addr or 0
            raise ProbeRejectedError(where, "exactly one of symbol and address", "EINVAL")
        if probe.symbol_name is None:
            assert probe.addr is not None
            return probe.addr
        address = self._code_map.symbol(probe.symbol_name)
        if address is None:
            raise ProbeRejectedError(0, f"no symbol {probe.symbol_name}", "ENOENT")
        address += probe.offset
        return address if probe.rules is Rules.UPROBE else self.behind_pad(address)

    def behind_pad(self, address: int) -> int:
        """Address of a kprobe on a function's entry (arch_adjust_kprobe_addr)."""
        probes = self._arch.probes
        function = self._code_map.function(address)
        if not probes.skips_landing_pad or function is None:
            return address
        pad = probes.landing_pad(self.original(function[0], self._arch.insn_max))
        return function[0] + pad if address - function[0] in (0, pad) else address

    def check(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """The plan of a probe that could be registered at an address.

        Raises:
            ProbeRejectedError: it could not.
        """
        self.allow(address)
        plan = self._checked[address, rules, mode] = self.plan(address, rules, mode)
        return plan

    def allow(self, address: int) -> None:
        """Refuse an address that cannot have a breakpoint.

        Raises:
            ProbeRejectedError: it cannot.
        """
        mapping = self._memory.find(address)
        if mapping is None or not mapping.perms & EXECUTE:
            what = "nothing is mapped there" if mapping is None else "it is not executable"
            raise ProbeRejectedError(address, what, "EINVAL", "executable")
        if mapping.extent is not None and not self._overlay.own_page(address & -PAGE):
            raise ProbeRejectedError(
                address, "the page is shared with others (MAP_SHARED)", "EINVAL", "shared"
            )
        name = self.blacklist.find(address)
        if name is not None:
            raise ProbeRejectedError(address, f"it is blacklisted: {name}", "EINVAL", "blacklist")

    def plan(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """The plan for the instruction at a guest address.

        Raises:
            ProbeRejectedError: it cannot be probed.
        """
        if (rules is Rules.KPROBE or mode is Mode.STRICT) and not self._code_map.boundary(address):
            raise ProbeRejectedError(
                address, "it is in the middle of an instruction", "EILSEQ", "boundary"
            )
        plan = self._analyzed(address, rules, mode)
        if plan.verdict is Verdict.REJECTED:
            raise ProbeRejectedError(address, plan.reason, plan.errno or "EINVAL", plan.rule)
        return plan

    def _analyzed(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """The plan for the instruction at an address where one begins."""
        before, back = b"", self._arch.probes.looks_back
        function = self._code_map.function(address) if back else None
        if function is not None and function[0] < address:
            start = max(function[0], address - back)
            before = self._overlay.original(start, address - start)
        raw = self.original(address - address % self._arch.code_unit, self._arch.insn_max)
        return self._arch.probes.analyze(raw, address, rules, mode, before)

    def run(self, function: FunctionCode | None, low: int, high: int, mode: Mode) -> PlainRun:
        """The instructions of a function as many uprobes are admitted to them.

        Args:
            function: the function, which memory has as its file has it; None where it may not.
            low: guest address of its first byte, or of the only one that is asked about.
            high: that behind its last one.
            mode: strictness.
        """
        mapping = self._memory.find(low)
        insns = self._insns.get(mode)
        if insns is None:
            insns = self._insns[mode] = PlainInsns(self._arch, mode)
        private = mapping is not None and mapping.perms & EXECUTE and mapping.extent is None
        whole = mapping is not None and high <= mapping.end
        if not (private and whole and insns.have(self._arch)) or self.blacklist.touches(low, high):
            function = None
        return PlainRun(low, high, function, insns, self._arch.insn_max)

    def plain(self, raw: bytes, address: int, mode: Mode) -> PlainInsn:
        """The instruction at an address that was found there before (`PlainRun.insn`)."""
        return self._insns[mode].again(raw, address)

    def planner(self, rules: Rules, mode: Mode) -> Callable[[int], InsnPlan]:
        """Makes the plan for an address again that was admitted; the same one for all of them."""
        return self._planners[rules, mode]

    def planned(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """The same, as it was found when it was last checked.

        Raises:
            ProbeRejectedError: it cannot be probed.
        """
        known = self._checked.pop((address, rules, mode), None)
        return known or self.plan(address, rules, mode)

    def settled(self) -> None:
        """Probes are registered: what was checked before need not hold any more."""
        self._checked.clear()

    def allow_return(self, probe: Kretprobe, address: int) -> None:
        """Refuse a return probe for what register_kretprobe asks more than register_kprobe.

        Raises:
            ProbeRejectedError: it cannot be placed.
        """
        function = None if probe.rules is Rules.UPROBE else self._code_map.function(address)
        if function is not None and address not in (function[0], self.behind_pad(function[0])):
            raise ProbeRejectedError(
                address, "a return probe goes on a function's entry", "EINVAL", "entry"
            )
        if not 0 <= probe.data_size <= DATA_MAX:  # a size_t in C: a negative one is huge
            raise ProbeRejectedError(address, f"a pouch has at most {DATA_MAX} bytes", "E2BIG")

    def plan_of_return(self, address: int) -> InsnPlan:
        """The plan for the instruction that a call returns to.

        Any instruction that either kind of probe may displace will do.

        Raises:
            ProbeRejectedError: neither kind of probe could displace it.
        """
        raw = self.original(address - address % self._arch.code_unit, self._arch.insn_max)
        for mode, rules in product((Mode.STRICT, Mode.KERNEL), Rules):
            plan = self._arch.probes.analyze(raw, address, rules, mode, b"")
            if plan.verdict is not Verdict.REJECTED:
                return self.unconditional(plan)
        raise ProbeRejectedError(address, plan.reason, plan.errno or "EINVAL", plan.rule)

    def unconditional(self, plan: InsnPlan) -> InsnPlan:
        """A plan whose breakpoint traps even where the instruction would do nothing."""
        returns = self._arch.returns
        return plan if returns is None else returns.unconditional(plan)

    def original(self, address: int, size: int) -> bytes:
        """Original bytes; fewer where the memory ends."""
        while size:
            try:
                return self._overlay.original(address, size)
            except GuestFaultError:
                size -= 1
        return b""
