"""Screening: instructions that Unicorn would execute wrongly never run unseen.

Each translated block is looked at once, before it runs first. A screened instruction gets a
code hook of its own address; when it is reached, the architecture prepares the state for it,
carries it out, or it is refused with an illegal-instruction trap that says what was met.

In the same way the screen sees blocks that begin where somebody waits for one (`Entries`).
"""

import ctypes
import mmap
import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from engine.arch.base import Arch, Screened, Screening, TrapKind
from engine.arch.machine import UNKNOWN, Insn, MemoryAccess, TrapError
from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu.base import Access, Cpu, Decode, EntryAction, Stop, StopKind
from engine.cpu.pagetable import PageTable
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram
from engine.cpu.unicorn_library import Emulator, uc_const
from engine.errors import GuestFaultError

if TYPE_CHECKING:
    from engine.cpu.host_vectors import HostVectors
    from engine.cpu.unicorn_lent import LentTranslations

_LENT: Final = frozenset({Screening.BORROW, Screening.EXTEND})


class Entries:
    """Addresses at which no block is to begin unnoticed.

    That a block begins there is noticed when it is translated, before it runs: at addresses that
    were executed before they were watched, nothing may be translated yet (as where code has
    just been written). Blocks that begin elsewhere are not slowed down.

    Attributes:
        bits: host address of a bit for each remainder of an address, for host code.
    """

    def __init__(self, page_table: PageTable) -> None:
        """Watch nothing; what will be watched is of the address space that is shown now."""
        self._table = page_table
        self._home = page_table.shown
        self._actions: dict[int, EntryAction] = {}
        self._map = mmap.mmap(-1, native.ENTRY_BITS // 8)
        self.bits = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def __contains__(self, address: int) -> bool:
        return address in self._actions and self._table.shown is self._home

    def watch(self, addresses: Iterable[int], action: EntryAction) -> None:
        """Have an action called, with the address, before a block runs that begins there."""
        for address in addresses:
            self._actions[address] = action
            bit = address % native.ENTRY_BITS
            self._map[bit >> 3] |= 1 << (bit & 7)

    def forget(self, addresses: Iterable[int]) -> None:
        """Watch addresses no longer; a bit stays, which only costs a question."""
        for address in addresses:
            self._actions.pop(address, None)

    def reached(self, address: int) -> None:
        """A block that begins there is next."""
        action = self._actions.get(address)
        if action is not None:
            action(address)


class Screen:
    """The screen of one engine.

    Attributes:
        entries: where a block is waited for.
        off: engine-owned code is running, which is never screened.
        waiting: a block is to be translated again, with hooks in it.
        met: the screened instruction that was reached, None if none.
        behind: the address behind the last one that was carried out.
        seen: where accesses of those that are carried out here are put; None for nowhere.
    """

    def __init__(
        self,
        arch: Arch,
        decode: Decode,
        uc: Emulator,
        hooks: api.Hooks,
        stop: Callable[[], None],
        page_table: PageTable,
        *,
        host_float: bool = False,
        lends: bool = False,
        lend: "Callable[[], LentTranslations]",
    ) -> None:
        """Nothing is screened before `watch`.

        Args:
            arch: of the guest.
            decode: disassembler.
            uc: the emulator.
            hooks: of it.
            stop: makes it return.
            page_table: of the emulator.
            host_float: floating point is computed by the host.
            lends: the host lends its vectors, and the emulator executes what goes with them.
            lend: has translations call lent instructions from now on, if they can.
        """
        self._arch = arch
        self._decode = decode
        self._uc = uc
        self._hooks = hooks
        self._stop = stop
        self._table = page_table
        self.entries = Entries(page_table)
        self._entered: list[int] = []
        self._pairs = {**arch.suspects, **({} if host_float else arch.float_suspects)}
        self._host_float = host_float
        self._lends = lends
        self._lend = lend
        self._lent: LentTranslations | None = None
        self._borrowed = 0
        self._vectors: HostVectors | None = None
        self._attunes = bool(arch.float_suspects) and not host_float
        self._unusual = False
        self._at: dict[int, int] = {}
        self._blocks: list[tuple[int, int, tuple[int, ...]]] = []
        self._served: dict[int, tuple[bytes, Insn, Screened | None]] = {}
        self._pass = -1
        self.off = False
        self.met: int | None = None
        self.behind = 0
        self.seen: list[Access] | None = None
        self._callback = api.OnCode(self._on_code)

    def watch(
        self, ram: Ram, code: native.HostCode | None, read: Callable[[int, int], bytes]
    ) -> None:
        """Look at blocks as they are translated: at all of them, or at what host code sieves.

        Args:
            ram: the guest's physical memory.
            code: host code, None where there is none.
            read: the guest's memory by address.
        """

        def on_edge(uc: int, current: int, previous: int, data: int) -> None:
            """A block was translated and has not run yet."""
            if self.off:
                return
            block = api.Block.from_address(current)
            if block.pc in self.entries:
                self.enter(block.pc)
                return
            try:
                raw = read(block.pc, block.size)
            except GuestFaultError:
                return
            self.look(block.pc, raw)

        kind, callback = uc_const.UC_HOOK_EDGE_GENERATED, api.OnEdge(on_edge)
        if code is None:
            self._hooks.add(kind, callback)
            return
        arch = self._arch
        ask = ctypes.cast(callback, api.VOID).value or 0
        bits = self.entries.bits
        sieve, pairs = native.sieve(
            ram, self._pairs, ask, bits, arch.suspect_ends, arch.suspect_lasts
        )
        self._hooks.add(kind, code.edge, ctypes.addressof(sieve))
        self._kept = (callback, sieve, pairs)

    @cached_property
    def _suspects(self) -> re.Pattern[bytes]:
        """Bytes that give a block away; made late, as host code looks for them first."""
        arch = self._arch
        return _pattern(tuple(self._pairs.items()), arch.suspect_ends, arch.suspect_lasts)

    @property
    def waiting(self) -> bool:
        """True if blocks wait for their hooks, or where one was waited for."""
        return bool(self._blocks or self._entered)

    @property
    def attunes(self) -> bool:
        """True if `attune` may change anything."""
        return self._attunes

    @property
    def hooked(self) -> bool:
        """True if any instruction has a hook."""
        return bool(self._at)

    def covers(self, address: int) -> bool:
        """True if an instruction has a hook."""
        return address in self._at

    def let_pass(self, address: int) -> None:
        """The instruction there runs once without being stopped at."""
        self._pass = address

    def enter(self, address: int) -> None:
        """A block begins at an entry, and has not run yet."""
        self._entered.append(address)
        self._stop()

    def look(self, pc: int, raw: bytes) -> None:
        """A block was translated and has not run yet."""
        if self._suspects.search(raw) is None or self._arch.clears(raw):
            return
        insns = self._decode(pc, raw)
        known = sum(insn.size for insn in insns)
        if known < len(raw):  # Unicorn has decoded what Capstone does not know
            insns = (*insns, Insn(pc + known, raw[known:], UNKNOWN, ""))
        screened = self._screened(insns)
        if self._begins_to_lend(screened):
            self._blocks.append((pc, len(raw), ()))  # it was translated without
            self._stop()
            return
        found = tuple(item.address for item in screened if item.address not in self._at)
        if found:
            self._blocks.append((pc, len(raw), found))
            self._stop()

    @property
    def lent(self) -> int:
        """Number of instructions that the host has lent so far, in translations and outside."""
        return self._borrowed + (0 if self._lent is None else self._lent.count)

    def _begins_to_lend(self, screened: tuple[Screened, ...]) -> bool:
        """True if one of these is the first to lend, and translations call such from now on."""
        if self._lent is not None or not self._lends:
            return False
        if all(item.action is not Screening.BORROW for item in screened):
            return False
        self._lent = self._lend()
        return self._lent.active

    def _screened(self, insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
        """The instructions that must not run as they stand."""
        found = self._arch.screen(insns)
        if self._lends:
            found = tuple(item for item in found if item.action is not Screening.EXTEND)
        if self._lent is not None and found:
            first, raw = insns[0].address, b"".join(insn.raw for insn in insns)
            found = tuple(item for item in found if not self._runs(item, raw, first))
        if self._host_float:
            return tuple(item for item in found if not item.computes)
        if self._unusual:
            return found
        return tuple(item for item in found if not item.unusual)

    def _runs(self, item: Screened, raw: bytes, first: int) -> bool:
        """True if translations call the host's code for one; the bytes begin at `first`."""
        if item.action is not Screening.BORROW or self._lent is None:
            return False
        at = item.address - first
        return self._lent.runs(item.address, raw[at : at + item.size])

    def attune(self, cpu: Cpu) -> None:
        """Before a run: what is screened may depend on how the program controls its floats."""
        if not self._attunes or self._arch.unusual_float(cpu) == self._unusual:
            return
        self._unusual = not self._unusual
        self._served.clear()
        if self._unusual:  # else hooks without a reason are removed when they are met
            self._uc.flush_code()

    def install(self) -> None:
        """Hook what was found and have those blocks translated again; tell of entries."""
        entered, self._entered = self._entered, []
        for address in entered:
            self.entries.reached(address)
        fresh = not self._at
        for pc, size, found in self._blocks:
            for at in found:
                if at not in self._at:
                    self._at[at] = self._hooks.add(
                        uc_const.UC_HOOK_CODE, self._callback, begin=at, end=at
                    )
            self._uc.remove_code(pc, pc + size)
        if fresh and self._at:  # a hook may stop in the middle of a block: see `unicorn_checks`
            self._uc.flush_code()
        self._blocks.clear()

    def _on_code(self, uc: int, address: int, size: int, data: int) -> None:
        if self._pass == address:
            self._pass = -1
            return
        self.met = address
        self._stop()

    def handle(self, cpu: Cpu) -> tuple[Stop | None, bool]:
        """A screened instruction is next.

        Returns:
            A stop if it is refused, and whether the instruction has been carried out.
        """
        address = self.met
        assert address is not None
        self.met = None
        raw = readable(cpu, address, self._arch.insn_max)
        known = self._served.get(address)
        if known is None or known[0] != raw:
            known = raw, *self._decoded(address, raw)
            self._served[address] = known
        _, insn, found = known
        if found is None and self._table.several:  # another program's code has a hook here
            self._pass = address
            return None, False
        if found is not None and self._begins_to_lend((found,)):
            # Unicorn has seen less of it than there is, or `look` would have begun.
            self._served.clear()
            self._uc.flush_code()
            found = None
        if found is None:  # the guest has rewritten its code here
            self._served.pop(address, None)
            hook = self._at.pop(address, None)  # a removed one may be called once more
            if hook is not None:
                self._hooks.remove(hook)
            return None, False
        if found.action is Screening.REFUSE or (found.action in _LENT and not self._lends):
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL, detail=found.what), False
        if found.action is Screening.PREPARE:
            self._arch.prepare(cpu, insn)
            self._pass = address
            return None, False
        try:
            after = self._arch.emulate(_OwnRights(cpu, self.seen, self._host_vectors), insn)
        except TrapError as trap:
            kind = self._arch.classify_trap(trap.number)
            return Stop(StopKind.TRAP, kind, trap.number), False
        except GuestFaultError as fault:
            return Stop(StopKind.FAULT, address=fault.address, access=fault.access), False
        except _NoMemoryError as error:
            return Stop(StopKind.OUT_OF_MEMORY, address=error.page), False
        self.behind = address + found.size
        self._borrowed += found.action is Screening.BORROW
        cpu.write_register(self._arch.roles.pc, after)
        return None, True

    def _host_vectors(self) -> "HostVectors":
        """The host's, of this engine alone: others may run in other threads."""
        if self._vectors is None:
            from engine.cpu.host_vectors import HostVectors  # few programs use them

            self._vectors = HostVectors()
        return self._vectors

    def _decoded(self, address: int, raw: bytes) -> tuple[Insn, Screened | None]:
        """The instruction at the front of some bytes, and what is to be done about it."""
        insn = next(iter(self._decode(address, raw)), Insn(address, raw, UNKNOWN, ""))
        found = next((item for item in self._screened((insn,)) if item.address == address), None)
        if found is not None and insn.unknown:
            insn = Insn(address, raw[: found.size], insn.mnemonic, insn.operands)
        return insn, found


class _NoMemoryError(Exception):
    """The budget of touched pages is used up."""

    def __init__(self, page: int) -> None:
        super().__init__(f"no memory for the page at {page:#x}")
        self.page = page


class _OwnRights:
    """The CPU with the program's own rights to memory, for an instruction of the program."""

    def __init__(
        self, cpu: Cpu, seen: list[Access] | None, vectors: "Callable[[], HostVectors]"
    ) -> None:
        self._cpu = cpu
        self._vectors = vectors
        self._seen = seen
        self.read_register = cpu.read_register
        self.read_registers = cpu.read_registers
        self.write_register = cpu.write_register
        self.read_block, self.write_block = cpu.read_block, cpu.write_block
        self.float_flags = cpu.float_flags
        self.clear_float_flags = cpu.clear_float_flags
        self.execute = cpu.execute
        self.counter = cpu.counter
        self.entropy = cpu.entropy

    def on_host(self, code: bytes, block: bytes) -> bytes:
        """Have the host run an instruction."""
        return self._vectors().run(code, block)

    def read(self, address: int, size: int) -> bytes:
        """Load; GuestFaultError where the program may not."""
        self._allowed(address, size, READ, "read")
        if self._seen is not None:
            self._seen.append(Access(False, address, size))
        return self._cpu.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store; GuestFaultError where the program may not. It may be code."""
        perms = self._allowed(address, len(data), WRITE, "write")
        if self._seen is not None:
            old = self._cpu.read(address, len(data))
            self._seen.append(Access(True, address, len(data), old))
        self._cpu.write(address, data)
        if perms & EXECUTE:
            self._cpu.invalidate(address, len(data))

    def _allowed(self, address: int, size: int, wanted: int, access: str) -> int:
        """Permissions of the pages; nothing happens unless all allow it."""
        table = self._cpu.page_table
        perms = 0
        at = address
        while at < address + size:
            region = table.find(at)
            if region is None or not region.perms & wanted:
                raise GuestFaultError(at, access)
            if wanted == WRITE and not table.ram.touch(at - region.start + region.physical, 1):
                raise _NoMemoryError(at & -PAGE)
            perms |= region.perms
            at = (at + PAGE) & -PAGE
        return perms


def readable(cpu: MemoryAccess, address: int, size: int) -> bytes:
    """Up to `size` bytes, fewer where the memory ends."""
    while size:
        try:
            return cpu.read(address, size)
        except GuestFaultError:
            size -= 1
    return b""


@cache
def _pattern(
    suspects: tuple[tuple[int, frozenset[int]], ...], ends: frozenset[int], lasts: frozenset[int]
) -> re.Pattern[bytes]:
    """A pattern of one of these byte pairs, the beginning of one at the very end, or an end."""
    pairs = [
        rb"\x%02x(?:[%b]|\Z)" % (first, _class(seconds)) if seconds else rb"\x%02x\Z" % first
        for first, seconds in suspects
    ]
    if ends:
        pairs.append(rb"[%b][\x00-\xff][\x80-\xff]\Z" % _class(ends))
    if lasts:
        pairs.append(rb"[%b][\x00-\xff]\Z" % _class(lasts))
    return re.compile(b"|".join(pairs))


def _class(values: frozenset[int]) -> bytes:
    return b"".join(rb"\x%02x" % byte for byte in sorted(values))
