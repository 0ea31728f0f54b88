"""Machine code for code that runs often, by LLVM (`llvmlite`, an optional package).

Blocks are counted by what stands for them in the core's table; one that runs often gets a
region of machine code, which works on a copy of the registers (`jit_words`) and on guest memory
directly. It gives control back at a slot of which nothing has been executed, with all registers
as they are there, so that Python sees to everything else: faults, breaks, system instructions,
text that is written. Code for when no register is a NaT is apart from code for when some are,
which leaves where one is read, but by what asks for it or keeps it.
"""

import ctypes
from collections.abc import Callable, MutableMapping
from functools import cache
from importlib.util import find_spec
from inspect import unwrap
from types import FunctionType
from typing import Any, Final, Protocol

from engine.arch.ia64.decode import decode_at
from engine.cpu.ia64.alat import Alat
from engine.cpu.ia64.clock import Ia64Clock
from engine.cpu.ia64.jit_code import JitCode
from engine.cpu.ia64.jit_region import MOST, JitRegion, RegionRegisters, assisted
from engine.cpu.ia64.jit_runtime import FUNCTIONS, RUNTIME
from engine.cpu.ia64.jit_words import (
    APPLICATION,
    ASSIST,
    CELL_TABLE,
    CELLS,
    ENTRIES,
    FILL_READ,
    FILL_WRITE,
    HALT,
    NATS,
    PLACE_TABLE,
    PLACES,
    PR,
    READ_TABLE,
    RRB_PR_WORD,
    SOF_WORD,
    UM,
    WRITE_TABLE,
    Words,
)
from engine.cpu.ia64.memory import OFFSET, SHIFT, Ia64Memory
from engine.cpu.ia64.state import FPSR, MASK, UNAT, State
from engine.cpu.ia64.stops import Interruption, NatsGone
from engine.cpu.ia64.translate import Block
from engine.cpu.ram import READ, WRITE

AFTER: Final = 1000
"""Runs of a block after which machine code is made."""
_LONG: Final = 1 << 18
"""Transfers in machine code after which a program is a long one."""
_SOONER: Final = 4
"""Blocks of a long one need that part of the runs: what they cost comes back. Others end before
it has, as a rule."""
_WARM: Final = 4
"""The part of them that has machine code made for a block along with another's: what
a module of one short block costs is the module, for the most part."""
_LOOK: Final = 32
"""Entries into a region between two looks whether it pays."""
_PAYS: Final = 24
"""Transfers that an entry must make on average, or Python takes over for a while."""

_ARRIVALS: Final = 8
"""Times that machine code leaves at a block in Python until that is made machine code, too."""

_NOTHING: Final = (1 << 64) - 1
_RUN: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
_ASK: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)


def available() -> bool:
    """True if the library is installed."""
    return find_spec("llvmlite") is not None


class Blocks(Protocol):
    """The cache of translated code, as this module sees it."""

    def looping(self, ip: int, nats: bool, clocked: bool) -> Block:
        """A block in Python that may go round inside its function."""

    def alone(self, ip: int, nats: bool) -> Block:
        """One slot in Python."""

    def owns(self, ip: int, page: int) -> None:
        """The code of an entry has been made from a page."""


class Compiler:
    """LLVM."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        quick, best = (
            target.create_target_machine(
                cpu=llvm.get_host_cpu_name(),
                features=llvm.get_host_cpu_features().flatten(),
                opt=level,
                jit=True,
            )
            for level in (0, 3)
        )
        self._machine = best
        self._jit = llvm.create_lljit_compiler(self._machine)
        self._count = 0
        self._runtime, self.runtime = self.compile(RUNTIME, *FUNCTIONS.values())
        # Regions keep registers in memory: better code for them would be no quicker, and takes
        # four times as long to make.
        self._machine = quick

    def compile(self, text: str, *names: str) -> tuple[Any, tuple[int, ...]]:
        """A module's machine code: what keeps it alive, and the addresses of functions."""
        llvm = self._llvm
        module = llvm.parse_assembly(text)
        self._count += 1
        builder = llvm.JITLibraryBuilder().add_object_img(self._machine.emit_object(module))
        builder.add_current_process()
        for name in names:
            builder.export_symbol(name)
        library = builder.link(self._jit, f"region{self._count}")
        return library, tuple(library[name] for name in names)


@cache
def compiler() -> Compiler | None:
    """The compiler of this process; made when it is needed, as that takes 0.2 s.

    A library that does not load here, or of another version, is as good as none.
    """
    try:
        return Compiler()
    except (AttributeError, ImportError, OSError, RuntimeError):
        return None


class JitEntry:
    """The stand-in of a block until it has run often."""

    __slots__ = (
        *("calls", "clocked", "function", "ip", "jit", "left", "level", "more", "plain", "spent"),
    )

    def __init__(self, jit: "Jit", ip: int, plain: Block, clocked: bool) -> None:
        self.jit, self.ip, self.plain, self.clocked = jit, ip, plain, clocked
        self.left = max(jit.after // _WARM, 1)
        self.more = jit.after - self.left
        self.level = self.calls = self.spent = 0
        self.function: Callable[[int, int], int] | None = None

    def __call__(self) -> int:
        """Run the block in Python, or make machine code."""
        self.left -= 1
        if self.left > 0:
            return self.plain()
        return self.jit.promote(self)()

    def enter(self) -> int:
        """Run machine code from here."""
        return self.jit.enter(self)


def plain(block: Block) -> FunctionType:
    """The function of a block that Python executes, whatever stands for it."""
    owner = getattr(block, "__self__", block)
    found = unwrap(owner.plain if isinstance(owner, JitEntry) else block)
    assert isinstance(found, FunctionType)
    return found


class Jit:
    """Regions of one core, for when no register is a NaT or for when one may be."""

    def __init__(
        self,
        state: State,
        memory: Ia64Memory,
        alat: Alat,
        clock: Ia64Clock,
        flags: list[None],
        blocks: Blocks,
        after: int = AFTER,
        nats: bool = False,
    ) -> None:
        self.after, self._nats = after, nats
        self._hurry = after // _ARRIVALS
        self._spent, self._long = 0, after < _SOONER
        self._state, self._memory, self._alat, self._clock = state, memory, alat, clock
        self._flags, self._cache = flags, blocks
        self._compiler: Compiler | None = None
        self._words = Words(state, clock, alat)
        self._libraries: dict[int, tuple[Any, int]] = {}  # by entry: code, and its address
        self._leaders: dict[int, frozenset[int]] = {}
        self._avoided: set[int] = set()
        self._cells: dict[int, int] = {}
        self._warm: dict[int, JitEntry] = {}
        self._assists: dict[int, tuple[RegionRegisters, Block]] = {}
        self._raised: BaseException | None = None
        self._table: MutableMapping[int, Block] = {}
        self.compiled = 0
        self._callbacks = (
            _ASK(lambda page: self._guarded(self._fill, page, False)),
            _ASK(lambda page: self._guarded(self._fill, page, True)),
            _ASK(lambda ip: self._guarded(self._assist, ip) ^ 1),
        )
        words = self._words.words
        for at, callback in zip((FILL_READ, FILL_WRITE, ASSIST), self._callbacks, strict=True):
            words[at] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        memory.on_change.append(self._forget_pages)
        self._unknown = memoryview(b"\xff" * 16 * ENTRIES).cast("Q")
        self._forget_pages()

    # -- blocks ------------------------------------------------------------------------------

    def wrap(
        self, table: MutableMapping[int, Block], ip: int, plain: Block, clocked: bool
    ) -> None:
        """Put what counts a block's runs in its place."""
        self._table = table
        if not self._outside(ip):
            table[ip] = JitEntry(self, ip, plain, clocked)

    def promote(self, entry: JitEntry) -> Block:
        """Make machine code, if the block is not only Python's and is not just warm."""
        if entry.more:
            entry.left, entry.more = entry.more, 0
            self._warm[entry.ip] = entry
            return entry.plain
        if entry.function is None:
            self._make(entry)
        if entry.function is None:
            block = self._table[entry.ip] = self._cache.looping(
                entry.ip, self._nats, entry.clocked
            )
            return block
        entry.calls = entry.spent = 0
        self._table[entry.ip] = entry.enter
        return entry.enter

    def enter(self, entry: JitEntry) -> int:
        """Run from an entry; the slot to go on at."""
        if self._state.bsp >> 3 & 63 == 63:
            return entry.plain()
        words = self._words
        words.words[HALT] = 0
        if self._flags:
            return entry.ip
        words.load()
        assert entry.function is not None
        ip = entry.function(words.address, 0)
        spent = words.store()
        if self._raised is not None:
            raised, self._raised = self._raised, None
            self._state.ip = ip
            raise raised
        self._spent += spent
        if self._spent > _LONG and not self._long:
            self._make_sooner()
        entry.calls += 1
        entry.spent += spent
        if entry.calls == _LOOK:
            self._look(entry)
        if ip == entry.ip and not spent:
            return entry.plain()
        if self._nats and not self._state.any_nat():
            raise NatsGone(ip)
        reached = self._table.get(ip)
        if type(reached) is JitEntry:
            reached.left -= self._hurry
        return ip

    def _make_sooner(self) -> None:
        """The program is a long one."""
        self._long = True
        self.after //= _SOONER
        self._hurry = self.after // _ARRIVALS
        for entry in self._table.values():
            if type(entry) is JitEntry and entry.function is None:
                entry.left, entry.more = entry.left // _SOONER, entry.more // _SOONER

    def _look(self, entry: JitEntry) -> None:
        """Decide if entering pays: if not, Python runs the block some times first."""
        if entry.spent < _PAYS * _LOOK and self.after > 1:
            entry.level += 1
            entry.left = self.after << min(entry.level, 20)
            self._table[entry.ip] = entry
        entry.calls = entry.spent = 0

    def halt(self) -> None:
        """Machine code ends soon; from any thread."""
        self._words.words[HALT] = 1

    # -- making and dropping -----------------------------------------------------------------

    def _make(self, entry: JitEntry) -> None:
        """Make machine code for a block, and for those that are warm: their `function`."""
        others = self._libraries
        warm = [ip for ip in self._warm if ip not in others and not self._outside(ip)]
        region = JitRegion(
            self._memory,
            list(dict.fromkeys((entry.ip, *warm))),
            lambda ip: ip in others or self._outside(ip),
            self._table.__contains__,
        )
        made = compiler() if entry.ip in region.entries else None
        if made is None or len(self._cells) > CELLS - 2 * MOST:
            return
        self._compiler = made  # keeps its code alive
        for at, function in zip(FUNCTIONS, made.runtime, strict=True):
            self._words.words[at] = function
        text, names = region.text(
            lambda inside: JitCode(entry.clocked, self._nats, inside, self._cell)
        )
        library, addresses = made.compile(text, *names)
        leaders = frozenset(region.leaders)
        for ip, address in zip(region.entries, addresses, strict=True):
            one = entry if ip == entry.ip else self._warm[ip]
            self._made(one, leaders, library, address)
            for page in region.pages:
                self._cache.owns(ip, page)
        self._warm.clear()

    def _made(self, entry: JitEntry, leaders: frozenset[int], library: Any, address: int) -> None:
        self.compiled += 1
        self._libraries[entry.ip] = library, address
        self._leaders[entry.ip] = leaders
        self._words.words[self._cell(entry.ip)] = address
        if not entry.ip & 15:
            at = self._place(entry.ip)
            self._words.words[at], self._words.words[at + 1] = entry.ip, address
        entry.function = _RUN(address)
        self._table[entry.ip] = entry.enter

    def _cell(self, target: int) -> int:
        if target not in self._cells:
            at = self._cells[target] = CELL_TABLE + len(self._cells)
            self._words.words[at] = self._libraries.get(target, (None, 0))[1]
        return self._cells[target]

    @staticmethod
    def _place(ip: int) -> int:
        return PLACE_TABLE + 2 * ((ip >> 4 ^ ip >> 16) % PLACES)

    def drop(self, ip: int) -> None:
        """Forget the region of an entry."""
        self._assists.clear()
        self._warm.pop(ip, None)
        if self._libraries.pop(ip, None) is None:
            return
        del self._leaders[ip]
        words, at = self._words.words, self._place(ip)
        words[self._cells[ip]] = 0
        if words[at] == ip:
            words[at] = words[at + 1] = 0

    def avoid(self, ip: int) -> None:
        """Only Python goes on at a slot from now on: there is more to do than to execute it."""
        self._avoided.add(ip)
        self._warm.pop(ip, None)
        for entry, leaders in list(self._leaders.items()):
            if ip in leaders:
                self._table.pop(entry, None)
                self.drop(entry)

    def _outside(self, ip: int) -> bool:
        return ip in self._avoided or self._clock.inside(ip)

    def clear(self) -> None:
        """Forget all regions."""
        for ip in list(self._libraries):
            self.drop(ip)
        self._assists.clear()
        self._cells.clear()
        self._warm.clear()

    def _forget_pages(self) -> None:
        words = self._words.words
        words[READ_TABLE : READ_TABLE + 2 * ENTRIES] = self._unknown
        words[WRITE_TABLE : WRITE_TABLE + 2 * ENTRIES] = self._unknown

    # -- what machine code asks for --------------------------------------------------------------

    def _guarded(self, what: Callable[..., int], *arguments: int) -> int:
        """Exceptions cannot pass through machine code: it leaves, and they are raised then."""
        try:
            return what(*arguments)
        except Interruption:
            return 0
        except BaseException as raised:
            self._raised = raised
            return 0

    def _fill(self, page: int, write: int) -> int:
        """Let machine code access a page: host minus guest address, 0 if it may not."""
        memory = self._memory
        (memory.writable if write else memory.readable)[1][page]
        offset = memory.physical(page, WRITE if write else READ, "")
        delta = memory.base + offset - (page << SHIFT) & MASK
        at = (WRITE_TABLE if write else READ_TABLE) + 2 * ((page ^ page >> 43) % ENTRIES)
        words = self._words.words
        words[at], words[at + 1] = page, delta
        return delta

    def _assist(self, ip: int) -> int:
        """Execute one instruction on the registers that it names; 1 if that was all."""
        known = self._assists.get(ip)
        if known is None:
            _, page = self._memory.fetch(ip >> SHIFT)
            insn = decode_at(page[ip & OFFSET & ~15 :], ip & 3)
            registers = assisted(insn) if insn is not None else None
            assert registers is not None
            known = self._assists[ip] = registers, self._cache.alone(ip, self._nats)
        registers, block = known
        state, buffer = self._state, self._words
        words, a = buffer.words, state.a
        for at in registers.general:
            state.g[at] = words[buffer.general(at)]
            if self._nats:
                state.n[at] = words[buffer.general(at) + NATS]
        for at in registers.floats:
            buffer.read_float(at)
        pr = words[PR]
        for at in registers.predicates:
            state.p[at] = pr >> at & 1
        a[FPSR], a[UNAT] = words[APPLICATION[FPSR]], words[APPLICATION[UNAT]]
        state.um[0], state.frame[:] = words[UM], words[SOF_WORD : RRB_PR_WORD + 1].tolist()
        buffer.store_alat()
        try:
            block()
        except Interruption:
            for at in registers.floats:
                buffer.read_float(at)
            raise
        finally:
            buffer.load_alat()
        for at in registers.general:
            words[buffer.general(at)] = state.g[at]
            if self._nats:
                words[buffer.general(at) + NATS] = state.n[at]
        for at in registers.floats:
            buffer.write_float(at)
        for at in registers.predicates:
            if at:
                pr = pr & ~(1 << at) | int(state.p[at]) << at
        words[PR] = pr
        words[APPLICATION[FPSR]], words[APPLICATION[UNAT]] = a[FPSR], a[UNAT]
        words[UM] = state.um[0]
        return 1
