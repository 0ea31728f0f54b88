"""Whether a probe may stand somewhere, and what would be done with the instruction there.

The order of checks and the names of the errors are kernel/kprobes.c's.
"""

from engine.arch.base import Arch
from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.cpu.ram import EXECUTE
from engine.errors import GuestFaultError, ProbeRejectedError
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.blacklist import Blacklist
from engine.probes.code_map import CodeMap
from engine.probes.kprobe import Kprobe


class Admission:
    """The checks of one guest's probes."""

    arch: Arch
    memory: Memory
    overlay: TextOverlay
    code_map: CodeMap
    blacklist: Blacklist
    _checked: dict[tuple[int, Rules, Mode], InsnPlan]
    """Plans of places that were checked and are not probed yet."""

    def _address(self, probe: Kprobe) -> int:
        if (probe.symbol_name is None) == (probe.addr is None):
            where = probe.addr or 0
            raise ProbeRejectedError(where, "exactly one of symbol and address", "EINVAL")
        if probe.addr is not None:
            return probe.addr
        assert probe.symbol_name is not None
        address = self.code_map.symbol(probe.symbol_name)
        if address is None:
            raise ProbeRejectedError(0, f"no symbol {probe.symbol_name}", "ENOENT")
        address += probe.offset
        return address if probe.rules is Rules.UPROBE else self.behind_pad(address)

    def behind_pad(self, address: int) -> int:
        """Where a kprobe on a function's entry goes (arch_adjust_kprobe_addr)."""
        probes = self.arch.probes
        function = self.code_map.function(address)
        if not probes.skips_landing_pad or function is None:
            return address
        pad = probes.landing_pad(self.original(function[0], self.arch.insn_max))
        return function[0] + pad if address - function[0] in (0, pad) else address

    def check(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """Whether a probe could be registered at an address, and its plan if so.

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
        mapping = self.memory.find(address)
        if mapping is None or not mapping.perms & EXECUTE:
            what = "nothing is mapped there" if mapping is None else "it is not executable"
            raise ProbeRejectedError(address, what, "EINVAL", "executable")
        if mapping.extent is not None:
            raise ProbeRejectedError(
                address, "the page is shared with others (MAP_SHARED)", "EINVAL", "shared"
            )
        name = self.blacklist.find(address)
        if name is not None:
            raise ProbeRejectedError(address, f"it is blacklisted: {name}", "EINVAL", "blacklist")

    def plan(self, address: int, rules: Rules, mode: Mode) -> InsnPlan:
        """What would be done with the instruction at a guest address.

        Raises:
            ProbeRejectedError: it cannot be probed.
        """
        before = b""
        function = self.code_map.function(address)
        if (rules is Rules.KPROBE or mode is Mode.STRICT) and not self.code_map.boundary(address):
            raise ProbeRejectedError(
                address, "it is in the middle of an instruction", "EILSEQ", "boundary"
            )
        if function is not None and function[0] < address:
            start = max(function[0], address - 512)
            before = self.overlay.original(start, address - start)
        raw = self.original(address - address % self.arch.code_unit, self.arch.insn_max)
        plan = self.arch.probes.analyze(raw, address, rules, mode, before)
        if plan.verdict is Verdict.REJECTED:
            raise ProbeRejectedError(address, plan.reason, plan.errno or "EINVAL", plan.rule)
        return plan

    def original(self, address: int, size: int) -> bytes:
        """Original bytes; fewer where the memory ends."""
        while size:
            try:
                return self.overlay.original(address, size)
            except GuestFaultError:
                size -= 1
        return b""
