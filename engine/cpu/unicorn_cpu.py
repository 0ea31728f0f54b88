"""Unicorn behind the `Cpu` protocol: the only module that runs it.

How it is kept fast and right (measurements in the project's history, Unicorn 2.1.4):

- Virtual-TLB mode with a callback that searches our own page table: stores in translated
  code take the fast path, and a refused access ends the run with exact registers.
- Own ctypes prototypes for what is called often; the binding only for what is rare.
- No Python hook runs per instruction or per block. One Python callback runs per *translated*
  block, to screen it for instructions that Unicorn executes wrongly.
- System calls and exceptions leave `uc_emu_start`; nothing re-enters Unicorn from a callback.
- `until` is 0: Unicorn drops the block that ends at `until` after each run.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import unicorn.unicorn_const as uc_const
from unicorn.unicorn_py3.unicorn import UcError, uclib

from engine.arch.base import Arch, Insn, Screened, Screening, TrapKind
from engine.cpu import native
from engine.cpu.base import Decode, Stop, StopKind
from engine.cpu.ram import ACCESS_NAMES, OUT_OF_MEMORY, PAGE, PageTable, Ram, Region
from engine.cpu.unicorn_machines import MACHINES
from engine.errors import EngineError, GuestFaultError

_VOID = ctypes.c_void_p
_EXCEPTION = 21  # UC_ERR_EXCEPTION: the fill callback refused
_FOREVER: Final = 1 << 62
_WIDE = 64  # bytes of the register buffer; the widest register has 16

_emu_start = ctypes.CFUNCTYPE(
    ctypes.c_int, _VOID, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t
)(("uc_emu_start", uclib))
_emu_stop = ctypes.CFUNCTYPE(ctypes.c_int, _VOID)(("uc_emu_stop", uclib))
_reg_read = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_int, _VOID)(("uc_reg_read", uclib))
_reg_write = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_int, _VOID)(("uc_reg_write", uclib))
_reg_read_batch = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, _VOID, _VOID, ctypes.c_int)(
    ("uc_reg_read_batch", uclib)
)
_hook_add = ctypes.PYFUNCTYPE(
    ctypes.c_int,
    _VOID,
    _VOID,
    ctypes.c_int,
    _VOID,
    _VOID,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint64,
)(("uc_hook_add", uclib))
_hook_del = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_size_t)(("uc_hook_del", uclib))

_ON_INTERRUPT = ctypes.CFUNCTYPE(None, _VOID, ctypes.c_uint32, _VOID)
_ON_INVALID = ctypes.CFUNCTYPE(ctypes.c_bool, _VOID, _VOID)
_ON_INSN = ctypes.CFUNCTYPE(None, _VOID, _VOID)
_ON_IN = ctypes.CFUNCTYPE(ctypes.c_uint32, _VOID, ctypes.c_uint32, ctypes.c_int, _VOID)
_ON_OUT = ctypes.CFUNCTYPE(None, _VOID, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32, _VOID)
_ON_CODE = ctypes.CFUNCTYPE(None, _VOID, ctypes.c_uint64, ctypes.c_uint32, _VOID)
_ON_EDGE = ctypes.CFUNCTYPE(None, _VOID, _VOID, _VOID, _VOID)
_ON_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool, _VOID, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(native.TlbEntry), _VOID
)
_ON_MEMORY = ctypes.CFUNCTYPE(
    ctypes.c_bool, _VOID, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, _VOID
)


class _Block(ctypes.Structure):
    """Unicorn's uc_tb."""

    _fields_ = (("pc", ctypes.c_uint64), ("icount", ctypes.c_uint16), ("size", ctypes.c_uint16))


class UnicornCpu:
    """One Unicorn instance at user level; see `engine.cpu.base.Cpu` for the contract."""

    def __init__(
        self,
        arch: Arch,
        ram: Ram,
        decode: Decode,
        *,
        counter: Callable[[], int] = lambda: 0,
        entropy: Callable[[int], bytes] = bytes,
        pauth_keys: bytes = bytes(80),
    ) -> None:
        """Open the emulator and bring it to user level.

        Args:
            arch: what to emulate.
            ram: the guest's physical memory.
            decode: disassembler, for screening.
            counter: what the guest's cycle counter shows.
            entropy: seeded random bytes for instructions that ask for them.
            pauth_keys: seeded keys where the architecture signs pointers.

        Raises:
            EngineError: Unicorn lacks the architecture or fails.
        """
        self.arch = arch
        self.page_table = PageTable(ram)
        self._ram = ram
        self._decode = decode
        self._counter = counter
        self._entropy = entropy
        machine = MACHINES.get(arch.engines.unicorn)
        if machine is None:
            raise EngineError(f"no emulator for {arch.name}")
        self._machine = machine
        try:
            self._uc: Any = machine.open()
            self._uc.ctl_set_tlb_mode(uc_const.UC_TLB_VIRTUAL)
            self._uc.mem_map_ptr(ram.control.physical_base, ram.size, 7, _VOID(ram.base))
        except UcError as error:
            raise EngineError(f"the emulator does not start: {error}") from error
        self._handle = self._uc._uch
        self._keep: list[object] = []  # callbacks must outlive the engine
        self._ids = {name: machine.register_id(name) for name in _register_names(arch)}
        self._widths = {register.name: register.bits // 8 for register in arch.registers}
        self._buffer = ctypes.create_string_buffer(_WIDE)
        self._buffer_at = ctypes.addressof(self._buffer)
        self._batches: dict[tuple[str, ...], tuple[Any, ...]] = {}
        self._pc_id = self._ids[arch.roles.pc]
        self._halted = False
        self._stop: Stop | None = None
        self._screen_hooks: dict[int, int] = {}
        self._to_screen: list[tuple[int, int, tuple[Screened, ...]]] = []
        self._executing = False  # engine-owned code is never screened
        self._met: int | None = None  # screened instruction that was reached
        self._pass = -1  # screened instruction that may run once
        self._fault_hook = 0
        self._fault_at = 0
        self._clock = native.BlockClock(_FOREVER, ctypes.cast(_emu_stop, _VOID).value, 0)
        self._clock_hook = 0
        self._granted = 0
        self._blocks = 0
        self._code = native.build()
        self._add_fill_hook()
        machine.enter_user_mode(self._uc, ram, self.page_table, pauth_keys)
        self.flush_tlb()
        self._add_hooks()

    # -- registers and memory -------------------------------------------------------------

    def read_register(self, name: str) -> int:
        """Value of a register as an unsigned integer; KeyError for an unknown name."""
        width = self._widths[name]
        _reg_read(self._handle, self._ids[name], self._buffer_at)
        return int.from_bytes(self._buffer.raw[:width], "little")

    def read_registers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Several registers of up to 64 bits at once."""
        key = tuple(names)
        batch = self._batches.get(key)
        if batch is None:
            count = len(key)
            ids = (ctypes.c_int * count)(*(self._ids[name] for name in key))
            values = (ctypes.c_uint64 * count)()
            at = ctypes.addressof(values)
            pointers = (_VOID * count)(*(at + 8 * index for index in range(count)))
            batch = (ids, values, pointers, count)
            self._batches[key] = batch
        ids, values, pointers, count = batch
        ctypes.memset(values, 0, 8 * count)
        _reg_read_batch(self._handle, ids, pointers, count)
        return tuple(values)

    def write_register(self, name: str, value: int) -> None:
        """Set a register; KeyError for an unknown name."""
        width = self._widths[name]
        value = self._machine.mask_write(name, value)
        self._buffer.raw = (value & ((1 << (8 * width)) - 1)).to_bytes(_WIDE, "little")
        _reg_write(self._handle, self._ids[name], self._buffer_at)

    def read(self, address: int, size: int) -> bytes:
        """Guest memory, whatever its protection; GuestFaultError where nothing is mapped."""
        return b"".join(self._ram.read(at, part) for at, part in self._pieces(address, size))

    def write(self, address: int, data: bytes) -> None:
        """Write guest memory, whatever its protection; translated code is the caller's care."""
        done = 0
        for at, part in self._pieces(address, len(data), "write"):
            self._ram.write(at, data[done : done + part])
            done += part

    def _pieces(self, address: int, size: int, access: str = "read") -> list[tuple[int, int]]:
        pieces: list[tuple[int, int]] = []
        while size > 0:
            region = self.page_table.find(address)
            if region is None:
                raise GuestFaultError(address, access)
            part = min(size, region.end - address)
            pieces.append((region.physical + address - region.start, part))
            address += part
            size -= part
        return pieces

    def float_flags(self) -> int:
        """Sticky exceptions kept outside the control register; 0 where there are none."""
        return self._machine.float_flags(self._uc)

    def clear_float_flags(self) -> None:
        """Forget the sticky exceptions."""
        self._machine.clear_float_flags(self._uc)

    def counter(self) -> int:
        """The guest's cycle counter."""
        return self._counter()

    def entropy(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._entropy(count)

    def execute(self, address: int, end: int) -> None:
        """Run engine-owned code; GuestFaultError where it touches memory that is not there."""
        control = self._ram.control
        self._executing = True
        remaining, self._clock.remaining = self._clock.remaining, _FOREVER
        try:
            _emu_start(self._handle, address, end, 0, 0)
        finally:
            self._executing = False
            self._clock.remaining = remaining
            self._stop = None
        if self.read_register(self.arch.roles.pc) != end:
            raise GuestFaultError(control.fault_address, "write")

    def save(self) -> object:
        """All registers as an opaque value."""
        return self._uc.context_save()

    def restore(self, state: object) -> None:
        """Go back to a value of `save`."""
        self._uc.context_restore(state)

    # -- running --------------------------------------------------------------------------

    def run(self, quantum: int | None = None) -> Stop:
        """Run until something needs the engine; at most `quantum` guest blocks if given."""
        if quantum is not None and not self._clock_hook:
            self.count_blocks(True)
        self._granted = _FOREVER if quantum is None else quantum
        self._clock.remaining = self._granted
        try:
            while True:
                stop = self._run_once(0)
                if stop is not None:
                    return stop
        finally:
            if self._clock_hook:
                self._blocks += self._granted - self._clock.remaining
                self._granted = self._clock.remaining = 0

    def step(self) -> Stop | None:
        """Execute one instruction; None if nothing but that happened."""
        before = self.read_register(self.arch.roles.pc)
        self._granted = self._clock.remaining = _FOREVER
        stop = self._run_once(1)
        while stop is None and self._pass == before:
            stop = self._run_once(1)
        return stop

    def _run_once(self, count: int) -> Stop | None:
        """One stretch inside Unicorn; None when the engine itself wants to go on."""
        if self._halted:
            self._halted = False
            return Stop(StopKind.HALTED)
        self._stop = None
        control = self._ram.control
        control.fault_access = 0
        stops = self._clock.stops
        _reg_read(self._handle, self._pc_id, self._buffer_at)
        pc = int.from_bytes(self._buffer.raw[:8], "little")
        error = _emu_start(self._handle, pc, 0, 0, count)
        if self._to_screen:
            self._install_screens()
            return None
        if self._met is not None:
            return self._screened()
        if self._stop is not None:
            if self._stop.number >= 0:
                self._machine.settle(self._uc)
            return self._stop
        if self._halted:
            self._halted = False
            return Stop(StopKind.HALTED)
        if self._clock.stops != stops:
            return Stop(StopKind.QUANTUM)
        if error == _EXCEPTION and control.fault_access:
            return self._fault()
        if error and error != _EXCEPTION:
            raise EngineError(
                f"the emulator failed at {self.read_register(self.arch.roles.pc):#x}"
                f": error {error}"
            )
        return None

    def halt(self) -> None:
        """Make the current or next `run` stop; from any thread, to be repeated until it does.

        Unicorn forgets a stop that arrives before it starts, so the caller asks again while
        `run` has not returned.
        """
        self._halted = True
        _emu_stop(self._handle)

    # -- the clock ------------------------------------------------------------------------

    def count_blocks(self, enabled: bool) -> None:
        """Switch the block clock; translated code is dropped, as it has the call built in."""
        if enabled == bool(self._clock_hook):
            return
        if enabled:
            at = ctypes.addressof(self._clock)
            if self._code is not None:
                self._clock_hook = self._hook(uc_const.UC_HOOK_BLOCK, self._code.block, at)
            else:
                callback = _ON_CODE(self._on_block)
                self._clock_hook = self._hook(uc_const.UC_HOOK_BLOCK, callback)
        else:
            _hook_del(self._handle, self._clock_hook)
            self._clock_hook = 0
        self._uc.ctl_flush_tb()

    def blocks(self) -> int:
        """Guest blocks executed while the clock was on."""
        return self._blocks + (self._granted - self._clock.remaining if self._clock_hook else 0)

    def _on_block(self, uc: int, address: int, size: int, data: int) -> None:
        if self._clock.remaining:
            self._clock.remaining -= 1
        else:
            self._clock.stops += 1
            _emu_stop(self._handle)

    # -- translations ---------------------------------------------------------------------

    def flush_tlb(self) -> None:
        """Forget translations of addresses, after the page table has changed."""
        self._uc.ctl(uc_const.UC_CTL_TLB_FLUSH, uc_const.UC_CTL_IO_WRITE)

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a mapped range."""
        end = start + size
        while start < end:  # Unicorn looks up the first page only
            region = self.page_table.find(start)
            if region is None:
                start = (start + PAGE) & -PAGE
                continue
            stop = min(end, region.end)
            if region.perms & 4:
                self._uc.ctl_remove_cache(start, stop)
            start = stop

    # -- faults ---------------------------------------------------------------------------

    def _fault(self) -> Stop:
        control = self._ram.control
        page, access = control.fault_address, control.fault_access
        if access == OUT_OF_MEMORY:
            return Stop(StopKind.OUT_OF_MEMORY, address=page)
        if access == 18:
            pc = self.read_register(self.arch.roles.pc)
            return Stop(
                StopKind.FAULT, address=pc if pc & -PAGE == page else page, access="execute"
            )
        address = self._locate(page & -PAGE, access)
        return Stop(StopKind.FAULT, address=address, access=ACCESS_NAMES.get(access, "read"))

    def _locate(self, page: int, access: int) -> int:
        """The exact address of a refused access: the callback was told its page only.

        The instruction runs once more with the page pointing at a physical address where
        nothing is: Unicorn's own hook for that reports the whole address.
        """
        if not self._fault_hook:
            callback = _ON_MEMORY(self._on_hole)
            kinds = uc_const.UC_HOOK_MEM_READ_UNMAPPED | uc_const.UC_HOOK_MEM_WRITE_UNMAPPED
            self._fault_hook = self._hook(kinds, callback)
        state = self.save()
        regions = self.page_table.regions
        hole = Region(page, page + PAGE, self._ram.hole, 1 << (access - 16))
        before = [region for region in regions if region.end <= page]
        after = [region for region in regions if region.start >= page + PAGE]
        around: list[Region] = []
        for region in regions:
            if region.start < page + PAGE and region.end > page:
                if region.start < page:
                    before.append(Region(region.start, page, region.physical, region.perms))
                if region.end > page + PAGE:
                    skip = page + PAGE - region.start
                    around.append(
                        Region(page + PAGE, region.end, region.physical + skip, region.perms)
                    )
        self._fault_at = page
        clock, self._clock.remaining = self._clock.remaining, _FOREVER
        pc = self.read_register(self.arch.roles.pc)
        if pc in self._screen_hooks:
            self._pass = pc
        try:
            self.page_table.load([*before, hole, *around, *after])
            self.flush_tlb()
            _emu_start(self._handle, pc, 0, 0, 0)
        finally:
            self._clock.remaining = clock
            self.page_table.load(regions)
            self.flush_tlb()
            self.restore(state)
            self._stop = None
            self._met = None
        return self._fault_at

    def _on_hole(self, uc: int, kind: int, address: int, size: int, value: int, data: int) -> bool:
        self._fault_at = self._fault_at & -PAGE | address & (PAGE - 1)
        return False

    # -- screening ------------------------------------------------------------------------

    def _on_edge(self, uc: int, current: int, previous: int, data: int) -> None:
        """A block was translated and has not run yet."""
        if self._executing:
            return
        block = _Block.from_address(current)
        try:
            raw = self.read(block.pc, block.size)
        except GuestFaultError:
            return
        if not self.arch.suspicious(raw):
            return
        found = tuple(
            item
            for item in self.arch.screen(self._decode(block.pc, raw))
            if item.address not in self._screen_hooks
        )
        if found:
            self._to_screen.append((block.pc, block.size, found))
            _emu_stop(self._handle)

    def _install_screens(self) -> None:
        for pc, size, found in self._to_screen:
            for item in found:
                at = item.address
                if at not in self._screen_hooks:
                    self._screen_hooks[at] = self._hook(
                        uc_const.UC_HOOK_CODE, self._code_callback, begin=at, end=at
                    )
            self._uc.ctl_remove_cache(pc, pc + size)
        self._to_screen.clear()

    def _on_code(self, uc: int, address: int, size: int, data: int) -> None:
        if self._pass == address:
            self._pass = -1
            return
        self._met = address
        _emu_stop(self._handle)

    def _screened(self) -> Stop | None:
        """A screened instruction is next: put the state right, do its work, or refuse it."""
        address = self._met
        assert address is not None
        self._met = None
        raw = self._readable(address, self.arch.insn_max)
        insn = next(iter(self._decode(address, raw)), Insn(address, raw[:1], "(bad)", ""))
        found = self.arch.screen((insn,))
        if not found:  # the guest has rewritten its code here
            _hook_del(self._handle, self._screen_hooks.pop(address))
            return None
        if found[0].action is Screening.REFUSE:
            return Stop(StopKind.TRAP, TrapKind.ILLEGAL, detail=found[0].what)
        if found[0].action is Screening.PREPARE:
            self.arch.prepare(self, insn)
            self._pass = address
        else:
            self.write_register(self.arch.roles.pc, self.arch.emulate(self, insn))
        return None

    def _readable(self, address: int, size: int) -> bytes:
        region = self.page_table.find(address)
        if region is None:
            return b""
        try:
            return self.read(address, size)
        except GuestFaultError:
            return self.read(address, min(size, region.end - address))

    # -- hooks ----------------------------------------------------------------------------

    def _hook(
        self, kind: int, callback: Any, data: int = 0, begin: int = 1, end: int = 0, extra: int = 0
    ) -> int:
        """Register a callback (a ctypes function or a host address); begin > end: everywhere."""
        if not isinstance(callback, int):
            self._keep.append(callback)
            callback = ctypes.cast(callback, _VOID).value
        hook = ctypes.c_size_t()
        error = _hook_add(
            self._handle, ctypes.addressof(hook), kind, callback, data, begin, end, extra
        )
        if error:
            raise EngineError(f"the emulator refuses a hook: error {error}")
        return hook.value

    def _add_fill_hook(self) -> None:
        kind = uc_const.UC_HOOK_TLB_FILL
        if self._code is not None:
            self._hook(kind, self._code.fill, ctypes.addressof(self._ram.control))
            return

        def on_fill(uc: int, address: int, access: int, entry: Any, data: int) -> bool:
            return native.fill(self._ram, self.page_table, address, access, entry.contents)

        self._hook(kind, _ON_FILL(on_fill))

    def _add_hooks(self) -> None:
        stop = self._stop_with

        def on_interrupt(uc: int, number: int, data: int) -> None:
            kind = self.arch.classify_trap(number)
            if kind is TrapKind.SYSCALL:
                stop(Stop(StopKind.SYSCALL))
            else:
                stop(Stop(StopKind.TRAP, kind, number))

        def on_invalid(uc: int, data: int) -> bool:
            stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL))
            return True

        def on_syscall(uc: int, data: int) -> None:
            stop(Stop(StopKind.SYSCALL))

        self._hook(uc_const.UC_HOOK_INTR, _ON_INTERRUPT(on_interrupt))
        self._hook(uc_const.UC_HOOK_INSN_INVALID, _ON_INVALID(on_invalid))
        self._hook(uc_const.UC_HOOK_EDGE_GENERATED, _ON_EDGE(self._on_edge))
        self._code_callback = _ON_CODE(self._on_code)
        for insn, role in self._machine.instruction_hooks:
            if role == "syscall":
                callback: Any = _ON_INSN(on_syscall)
            elif role == "illegal":
                callback = _ON_INSN(lambda uc, data: stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL)))
            elif role == "in":
                callback = _ON_IN(lambda uc, port, size, data: self._port_access())
            else:
                callback = _ON_OUT(lambda uc, port, size, value, data: void(self._port_access()))
            self._hook(uc_const.UC_HOOK_INSN, callback, extra=insn)

    def _stop_with(self, stop: Stop) -> None:
        if self._stop is None:
            self._stop = stop
        _emu_stop(self._handle)

    def _port_access(self) -> int:
        """Port input or output: Unicorn would run it at any level; pc goes on past it."""
        at = self.read_register(self.arch.roles.pc)
        self._stop_with(
            Stop(StopKind.TRAP, TrapKind.PRIVILEGED, address=at, detail="port input or output")
        )
        return 0


def void(_: object) -> None:
    """Drop a value where a callback must return nothing."""


def _register_names(arch: Arch) -> list[str]:
    return [register.name for register in arch.registers]
