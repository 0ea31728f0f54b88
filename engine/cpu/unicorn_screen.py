"""Screening: instructions that Unicorn would execute wrongly never run unseen.

Each translated block is looked at once, before it runs first. A screened instruction gets a
code hook of its own address; when it is reached, the architecture prepares the state for it,
carries it out, or it is refused with an illegal-instruction trap that says what was met.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import unicorn.unicorn_const as uc_const

from engine.arch.base import Arch, ArchCpu, Insn, Screening, TrapKind
from engine.cpu import unicorn_api as api
from engine.cpu.base import Decode, Stop, StopKind
from engine.errors import GuestFaultError


class Screen:
    """The screen of one engine.

    Attributes:
        off: engine-owned code is running, which is never screened.
        waiting: a block is to be translated again, with hooks in it.
        met: the screened instruction that was reached, None if none.
    """

    def __init__(
        self, arch: Arch, decode: Decode, uc: Any, hooks: api.Hooks, stop: Callable[[], None]
    ) -> None:
        self._arch = arch
        self._decode = decode
        self._uc = uc
        self._hooks = hooks
        self._stop = stop
        self._suspects = _pattern(arch.suspects)
        self._at: dict[int, int] = {}
        self._blocks: list[tuple[int, int, tuple[int, ...]]] = []
        self._pass = -1
        self.off = False
        self.met: int | None = None
        self._callback = api.OnCode(self._on_code)

    @property
    def waiting(self) -> bool:
        """Whether blocks wait for their hooks."""
        return bool(self._blocks)

    def covers(self, address: int) -> bool:
        """Whether an instruction has a hook."""
        return address in self._at

    def let_pass(self, address: int) -> None:
        """The instruction there runs once without being stopped at."""
        self._pass = address

    def look(self, pc: int, raw: bytes) -> None:
        """A block was translated and has not run yet."""
        if self._suspects.search(raw) is None:
            return
        insns = self._decode(pc, raw)
        known = sum(insn.size for insn in insns)
        if known < len(raw):  # Unicorn has decoded what Capstone does not know
            insns = (*insns, Insn(pc + known, raw[known:], "(unknown)", ""))
        found = tuple(
            item.address for item in self._arch.screen(insns) if item.address not in self._at
        )
        if found:
            self._blocks.append((pc, len(raw), found))
            self._stop()

    def install(self) -> None:
        """Hook what was found and have those blocks translated again."""
        for pc, size, found in self._blocks:
            for at in found:
                if at not in self._at:
                    self._at[at] = self._hooks.add(
                        uc_const.UC_HOOK_CODE, self._callback, begin=at, end=at
                    )
            self._uc.ctl_remove_cache(pc, pc + size)
        self._blocks.clear()

    def _on_code(self, uc: int, address: int, size: int, data: int) -> None:
        if self._pass == address:
            self._pass = -1
            return
        self.met = address
        self._stop()

    def handle(self, cpu: ArchCpu) -> tuple[Stop | None, bool]:
        """A screened instruction is next.

        Returns:
            A stop if it is refused, and whether the instruction has been carried out.
        """
        address = self.met
        assert address is not None
        self.met = None
        raw = _readable(cpu, address, self._arch.insn_max)
        insn = next(iter(self._decode(address, raw)), Insn(address, raw, "(unknown)", ""))
        found = self._arch.screen((insn,))
        if not found:  # the guest has rewritten its code here
            self._hooks.remove(self._at.pop(address))
            return None, False
        if found[0].action is Screening.REFUSE:
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL, detail=found[0].what), False
        if found[0].action is Screening.PREPARE:
            self._arch.prepare(cpu, insn)
            self._pass = address
            return None, False
        cpu.write_register(self._arch.roles.pc, self._arch.emulate(cpu, insn))
        return None, True


def _readable(cpu: ArchCpu, address: int, size: int) -> bytes:
    """Up to `size` bytes, fewer where the memory ends."""
    while size:
        try:
            return cpu.read(address, size)
        except GuestFaultError:
            size -= 1
    return b""


def _pattern(suspects: Mapping[int, frozenset[int]]) -> re.Pattern[bytes]:
    """What finds one of these byte pairs, or the beginning of one at the very end."""
    pairs = (
        rb"\x%02x(?:[%b]|\Z)" % (first, b"".join(rb"\x%02x" % byte for byte in sorted(seconds)))
        for first, seconds in suspects.items()
    )
    return re.compile(b"|".join(pairs))
