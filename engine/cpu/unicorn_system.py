"""An x86-64 processor in system mode: page tables, exceptions and interrupts are the guest's own.

Unicorn never delivers an exception through the guest's tables, though its library holds all that
does; host code in `unicorn_system_code` calls it. The same code counts blocks, which is the
machine's clock, and mends what Unicorn makes of code that is written over through a second
mapping: it forgets to translate such code anew.
"""

import ctypes
import mmap
import weakref
from collections.abc import Callable
from functools import cache
from struct import pack
from typing import Any, Final, NoReturn, Protocol

from engine.cpu import native, unicorn_float
from engine.cpu import unicorn_system_code as code
from engine.cpu.host_links import HostLink, HostLinks
from engine.cpu.unicorn_api import Hooks, OnIn, OnInsn, OnOut
from engine.cpu.unicorn_guard import ABORTED, Guard
from engine.cpu.unicorn_library import Emulator, UnicornError, constants, uc_const, uclib
from engine.cpu.unicorn_linkage import (
    address_in,
    address_of,
    code_checks,
    cpu_of,
    redirect,
    slots_of,
)
from engine.cpu.unicorn_places import ToldPlaces
from engine.cpu.unicorn_planted import Callbacks, PlantedCode
from engine.cpu.unicorn_watches import DataAccess, WatchedData
from engine.errors import CommandError

PAGE: Final = 4096
NEVER: Final = 1 << 62
"""A number of blocks that no run comes to."""
NOTHING: Final = -1
STOP: Final = -2
"""Answers that are no vector."""
_GIVEN_UP: Final = "the emulator cannot carry out what the processor is to do"
GENERAL: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)
"""The general registers as their numbers go."""
SEGMENTS: Final = ("es", "cs", "ss", "ds", "fs", "gs")
"""The segment registers likewise."""

_X86: Final = constants("x86")
_TARGET: Final = "x86_64"
_ENV: Final = 0x8A50
_NO_EXIT_REQUEST: Final = 0x7F2
_NEXT_BLOCK: Final = 0x18
"""Of the CPUState: how the next block is translated, -1 for as always."""
_EIP, _EFLAGS, _HFLAGS, _HFLAGS2, _SEGMENTS, _GDT = 0x80, 0x88, 0xB0, 0xB4, 0xB8, 0x178
_CR3, _EFER, _STAR, _LSTAR, _FMASK = 0x1C0, 0x250, 0x12D8, 0x12E8, 0x12F8
_KERNEL_GS: Final = 0x1300
_TSC_AUX, _XCR0, _PAT, _OLD_EXCEPTION = 0x1320, 0x1328, 0x14A0, 0x1578
_BREAKPOINTS, _BREAKPOINTS_END = 0x1558, 0x1578  # addresses of the host's, of hardware breakpoints
_OTHER_NAMES: Final = {"fctrl": "fpcw", "fstat": "fpsw", "ftag": "fptag"}
"""Names of gdb's that the emulator calls otherwise."""
_WIDE: Final = 16  # bytes of a vector register that gdb asks for
_STATE: Final = _OLD_EXCEPTION + 4
"""Bytes of env that a reset clears: the registers of all kinds."""
_VECTORS, _VECTOR, _VECTOR_USED, _VECTOR_COUNT = 0x338, 64, 16, 33
"""Vector registers and one that helps; of each the first bytes are used, and the emulator leaves
what it likes in the rest."""
_XMM: Final = {f"xmm{number}": number for number in range(16)}
_SEGMENT: Final = 24  # bytes of a segment: selector, base, limit, flags
_CS, _SS = 1, 2
_AS_ALWAYS: Final = 0xFFFFFFFF
_CPL: Final = 3
_DOUBLE_FAULT: Final = 8
_IF, _RF, _SHADOW = 1 << 9, 1 << 16, 8
_GIF: Final = 1
_SYSCALL: Final = 2  # bytes of the instruction
_CODE, _DATA = 0xA09B00, 0xC09300  # flags of flat segments of a kernel
_FLAT: Final = 0xFFFFFFFF
_BEHIND: Final = 1 << 40
"""One past the last physical address."""
_IO, _IO_END = 0xC000_0000, 1 << 32
_TSC, _TSCP = _X86.UC_X86_INS_RDTSC, _X86.UC_X86_INS_RDTSCP
_FEATURES, _POWER = 1, 0x8000_0007
# Leaf 1: monitor, x2APIC, TSC deadline, OSXSAVE's neighbours and the hypervisor; the APIC. Nothing
# of these is there. Leaf 0x80000007: the TSC runs evenly.
_NOT_THERE: Final = 1 << 3 | 1 << 21 | 1 << 24 | 1 << 30 | 1 << 31
_APIC: Final = 1 << 9
_EVEN_TSC: Final = 1 << 8

_WORD, _LONG, _VOID = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
_Ask = ctypes.CFUNCTYPE(ctypes.c_int)
_Told = ctypes.CFUNCTYPE(ctypes.c_int, _VOID, _WORD, _LONG, _VOID)
_Serves = ctypes.CFUNCTYPE(ctypes.c_int, _VOID, _VOID)
_Read = ctypes.CFUNCTYPE(_WORD, _VOID, _WORD, ctypes.c_uint, _VOID)
_Write = ctypes.CFUNCTYPE(None, _VOID, _WORD, ctypes.c_uint, _WORD, _VOID)
_map_io = ctypes.CFUNCTYPE(
    ctypes.c_int, _VOID, _WORD, ctypes.c_size_t, _VOID, _VOID, _VOID, _VOID
)(("uc_mmio_map", uclib))

_KNOWN: Final = (
    *(("tlb_set_dirty", 0x1F8), ("tlb_reset_dirty", 0x21D), ("tlb_protect_code", 0x12)),
    *(("tlb_unprotect_code", 1), ("do_interrupt_x86_hardirq", 0x16), ("cpu_loop_exit", 0x53)),
    *(("x86_cpu_do_interrupt", 0x51), ("cpu_x86_update_cr0", 0xFE), ("cpu_x86_update_cr4", 0xB1)),
    *(("helper_syscall", 0xF7), ("helper_sysret", 0x2D7), ("cpu_x86_update_cr3", 0x24)),
    ("cpu_exec", 0x1B5),
)
"""Functions of the pinned build whose code has the offsets that stand here, and their bytes."""
_CHECKS: Final = (
    "ed17f2f76d68b6be44fdbc1dd06f7c8779eb78d0b0424dc74eabc7e726f72b528d9b758c3332d6feca01979a"
    "3fdc0d4fc994c601"
)
"""CRC-32 of each."""
_SLOTS: Final = (b"tlb_protect_code_x86_64", b"tlb_unprotect_code_x86_64", b"tlb_set_dirty_x86_64")


class MachineRecord(ctypes.Structure):
    """The words that the host code and Python share; `watch` to `watched` are of `ToldPlaces`.

    `blocks` have begun; at `limit` the code asks, and at `until`, which is no less, even while an
    interrupt waits that the guest does not take. `waits` is not 0 while an interrupt does; `ask`
    and what follows are addresses of functions; `bits` has one for each page with translations, of
    `pages` from the host address `host` on. The last block had `size` bytes from `begin` on;
    `told` is called where the machine may have to stop.
    """

    _fields_ = (
        ("blocks", _WORD),
        ("limit", _WORD),
        ("waits", _WORD),
        ("env", _WORD),
        ("cpu", _WORD),
        ("ask", _WORD),
        ("hard", _WORD),
        ("exit", _WORD),
        ("deliver", _WORD),
        ("uc", _WORD),
        ("stop", _WORD),
        ("bits", _WORD),
        ("host", _WORD),
        ("pages", _WORD),
        ("reset", _WORD),
        ("protect", _WORD),
        ("unprotect", _WORD),
        ("dirty", _WORD),
        ("watch", _WORD),
        ("table", _WORD),
        ("mask", _WORD),
        ("watched", _WORD),
        ("begin", _WORD),
        ("size", _WORD),
        ("until", _WORD),
        ("told", _WORD),
    )


MACHINE_LINKS: Final = HostLinks[MachineRecord](("protect", "unprotect", "dirty"))
"""The links of machines in the library's calls that mend what is written over."""


@cache
def _callbacks() -> tuple[list[int], object] | None:
    """The host code of all machines' hooks, which are given their records, and their way out."""
    leave = code.LEAVE + pack("=Q", _function("cpu_loop_exit"))
    return native.place((code.BLOCK, code.EXCEPTION, code.INVALID, code.PLACE, leave))


class Board(Protocol):
    """The hardware around a processor."""

    def ask(self) -> int:
        """Answer with a vector, `NOTHING` or `STOP`: at the limit, or while an interrupt waits."""

    def read_port(self, port: int, size: int) -> int:
        """Serve an IN of so many bytes."""

    def write_port(self, port: int, size: int, value: int) -> None:
        """Serve an OUT of so many bytes."""

    def counter(self) -> int:
        """Serve an RDTSC."""


class SystemCpu:
    """An x86-64 processor and its physical memory.

    Attributes:
        memory: physical, from address 0 on.
        record: of the host code.
        places: of code whose execution is told.
    """

    def __init__(self, size: int, board: Board) -> None:
        """Make the processor, its memory all zeros.

        Args:
            size: bytes of memory, whole pages.
            board: serves ports, the time-stamp counter and interrupts.

        Raises:
            CommandError: this host, or this build of Unicorn, has no machine.
        """
        if not native.possible():
            _refuse("only hosts of x86-64 do, without KPROBE_TUI_PORTABLE=1")
        self._board = board
        self._failure: BaseException | None = None
        # A user-mode guest leads these functions elsewhere for the whole process: a boot is the
        # same behind one and without.
        unicorn_float.install(_TARGET)
        self._emulator = Emulator(uc_const.UC_ARCH_X86, uc_const.UC_MODE_64)
        self._emulator.set_translations(size)
        self._emulator.read_register(_X86.UC_X86_REG_RIP)  # the processor is made at this
        self._uc = self._emulator.handle.value or 0
        self._cpu = cpu_of(self._uc)
        if not self._cpu or code_checks(_KNOWN, _TARGET) != _CHECKS:
            _refuse("this build of Unicorn is laid out otherwise")
        self._env = self._cpu + _ENV
        self._registers = (_WORD * len(GENERAL)).from_address(self._env)
        self._readers = self._registers_by_name()
        ctypes.c_uint8.from_address(self._uc + _NO_EXIT_REQUEST).value = 1
        self.memory = mmap.mmap(-1, size)
        host = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._emulator.map_memory(0, size, uc_const.UC_PROT_ALL, host)
        self._bits = ctypes.create_string_buffer(size // PAGE // 8 + 8)
        self._hooks = Hooks(self._emulator.handle)
        ask = _Ask(self._asked)
        self._hooks.keep(ask)
        link = _link(
            {
                "limit": NEVER,
                "until": NEVER,
                "env": self._env,
                "cpu": self._cpu,
                "ask": address_in(ask),
                "hard": _function("do_interrupt_x86_hardirq"),
                "exit": _function("cpu_loop_exit"),
                "deliver": _function("x86_cpu_do_interrupt"),
                "uc": self._uc,
                "stop": address_of("uc_emu_stop"),
                "bits": ctypes.addressof(self._bits),
                "host": host,
                "pages": size // PAGE,
                "reset": _function("tlb_reset_dirty"),
            }
        )
        self.record = link.record
        self._forgetting = weakref.finalize(self, MACHINE_LINKS.give_back, link, ("uc", "cpu"))
        self._forgetting.atexit = False
        self._invalidate = _call("tb_invalidate_phys_range", _VOID, _WORD, _WORD)
        self._install()
        self._map_nothing(size)
        self.places = ToldPlaces(self.record, self._hooks, self._fail)
        self._planted: PlantedCode | None = None

    def _install(self) -> None:
        """Have the host code called, and the callbacks of Python's."""
        record = ctypes.addressof(self.record)
        placed = _callbacks()
        if placed is None:
            _refuse("the host refuses executable memory")
        block, exception, invalid, self._place, leave = placed[0]
        self._guard = Guard(self._emulator.handle, self._uc, _TARGET, leave)
        hooks = self._hooks
        self._callbacks = Callbacks(
            self.record,
            record,
            hooks,
            (hooks.add(uc_const.UC_HOOK_BLOCK, block, record), block),
            (hooks.add(uc_const.UC_HOOK_INTR, exception, record), exception),
            (hooks.add(uc_const.UC_HOOK_INSN_INVALID, invalid, record), invalid),
            self._fail,
        )
        insn = uc_const.UC_HOOK_INSN
        hooks.add(insn, OnIn(self._in), extra=_X86.UC_X86_INS_IN)
        hooks.add(insn, OnOut(self._out), extra=_X86.UC_X86_INS_OUT)
        hooks.add(insn, OnInsn(self._syscall), extra=_X86.UC_X86_INS_SYSCALL)
        hooks.add(insn, _Serves(self._cpuid), extra=_X86.UC_X86_INS_CPUID)
        hooks.add(insn, _Serves(self._rdtsc), extra=_TSC)
        hooks.add(insn, _Serves(self._rdtscp), extra=_TSCP)

    def _map_nothing(self, size: int) -> None:
        """Have reads give ones, and writes lost, at addresses without memory."""
        read, write = _Read(self._absent), _Write(self._lost)
        self._hooks.keep(read)
        self._hooks.keep(write)
        for start, end in ((size, _IO_END), (_IO_END, _BEHIND)):
            if _map_io(
                self._emulator.handle, start, end - start, address_in(read), 0,
                address_in(write), 0,
            ):  # fmt: skip
                _refuse(f"the emulator refuses memory at {start:#x}")

    def plant_at(self, window: int) -> PlantedCode:
        """Have breakpoints planted, with their slots in a window; once, before it runs.

        Args:
            window: where it begins; see `PlantedCode`.

        Raises:
            CommandError: this build of Unicorn, or this host, does not allow it.
        """
        self._planted = PlantedCode(self._emulator, self._callbacks, window)
        return self._planted

    def translate_again(self, at: int) -> None:
        """Forget what was translated of the page of a physical address."""
        page = at & -PAGE
        self._invalidate(self._uc, page, page + PAGE)

    def close(self) -> None:
        """Give the emulator's memory back now; the processor must not be used again."""
        self._forgetting()
        if self._planted is not None:
            self._planted.close()
        self._emulator.close()

    def store(self, address: int, data: bytes) -> None:
        """Write to the memory as a device does: code that was translated there is forgotten."""
        end = address + len(data)
        self.memory[address:end] = data
        for page in range(address // PAGE, -(-end // PAGE)):
            if self._bits[page // 8][0] >> page % 8 & 1:
                self._invalidate(self._uc, page * PAGE, (page + 1) * PAGE)

    # -- registers ----------------------------------------------------------------------

    def __getitem__(self, name: str) -> int:
        """A general register, "rip", "eflags", a segment's selector or base ("gs", "gs_base").

        "kernel_gs_base" is the base that SWAPGS puts into gs.

        Raises:
            KeyError: it is none of these.
        """
        return self._readers[name]()

    def _registers_by_name(self) -> dict[str, Callable[[], int]]:
        """The functions that read each register."""

        def general(number: int) -> Callable[[], int]:
            return lambda: self._registers[number]

        def selector(number: int) -> Callable[[], int]:
            at = self._env + _SEGMENTS + number * _SEGMENT
            return lambda: _LONG.from_address(at).value

        def base(number: int) -> Callable[[], int]:
            at = self._env + _SEGMENTS + number * _SEGMENT + 8
            return lambda: _WORD.from_address(at).value

        found = {name: general(number) for number, name in enumerate(GENERAL)}
        found |= {name: selector(number) for number, name in enumerate(SEGMENTS)}
        found |= {f"{name}_base": base(SEGMENTS.index(name)) for name in ("fs", "gs")}
        found["kernel_gs_base"] = lambda: self._word(_KERNEL_GS).value
        found["rip"] = lambda: self._word(_EIP).value
        found["eflags"] = lambda: self._emulator.read_register(_X86.UC_X86_REG_EFLAGS)
        return found

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """A function that reads registers at once: of "xmm0" to "xmm15" the lowest 64 bits.

        Raises:
            KeyError: one is none of these, nor of `__getitem__`.
        """
        if all(name in GENERAL for name in names):
            values, numbers = self._registers, tuple(GENERAL.index(name) for name in names)
            return lambda: tuple([values[number] for number in numbers])
        reads = tuple(self._readers.get(name) or self._vector_reader(name) for name in names)
        return lambda: tuple([read() for read in reads])

    def _vector_reader(self, name: str) -> Callable[[], int]:
        number = _XMM[name]
        at = self._env + _VECTORS + number * _VECTOR
        return lambda: _WORD.from_address(at).value

    def register(self, name: str) -> int:
        """Any register that gdb has a name for, but for the places of the last x87 operation.

        Raises:
            KeyError: it is none.
        """
        if name in self._readers:
            return self._readers[name]()
        if name == "efer":
            return self._word(_EFER).value
        number = getattr(_X86, f"UC_X86_REG_{_OTHER_NAMES.get(name, name).upper()}", None)
        if number is None:
            raise KeyError(name)
        return self._emulator.read_register(number, size=_WIDE)

    def set_register(self, name: str, value: int) -> None:
        """Write a register while the processor stands.

        Raises:
            KeyError: it is none of the general ones, "rip", "eflags", "fs_base" and "gs_base".
        """
        if name == "eflags":
            self._emulator.write_register(_X86.UC_X86_REG_EFLAGS, value)
        elif name in ("fs_base", "gs_base"):
            at = self._env + _SEGMENTS + SEGMENTS.index(name[:2]) * _SEGMENT + 8
            _WORD.from_address(at).value = value
        elif name in GENERAL or name == "rip":
            self[name] = value
        else:
            raise KeyError(name)

    @property
    def tables(self) -> int:
        """Physical address of the page tables (CR3), with its flags."""
        return self._word(_CR3).value

    def __setitem__(self, name: str, value: int) -> None:
        """Write a general register, or "rip"."""
        if name == "rip":
            self._word(_EIP).value = value
        else:
            self._registers[GENERAL.index(name)] = value

    def _word(self, offset: int) -> ctypes.c_uint64:
        return _WORD.from_address(self._env + offset)

    def _long(self, offset: int) -> ctypes.c_uint32:
        return _LONG.from_address(self._env + offset)

    def _segment(self, number: int, selector: int, flags: int) -> None:
        at = self._env + _SEGMENTS + number * _SEGMENT
        _LONG.from_address(at).value = selector
        _WORD.from_address(at + 8).value = 0
        _LONG.from_address(at + 16).value = _FLAT
        _LONG.from_address(at + 20).value = flags

    @property
    def privilege(self) -> int:
        """The current privilege level: 0 in the kernel, 3 in its programs."""
        return self._long(_HFLAGS).value & _CPL

    @property
    def interrupts(self) -> bool:
        """True if an interrupt is taken now."""
        return bool(self._long(_EFLAGS).value & _IF) and not self._long(_HFLAGS).value & _SHADOW

    @property
    def enabled(self) -> bool:
        """True if interrupts are enabled: a processor that is halted without never goes on."""
        return bool(self._long(_EFLAGS).value & _IF)

    @property
    def is_down(self) -> bool:
        """True after a triple fault: a double fault could not be delivered."""
        return ctypes.c_int32.from_address(self._env + _OLD_EXCEPTION).value == _DOUBLE_FAULT

    def enter_long_mode(self, tables: int, gdt: int, code_at: int, data_at: int) -> None:
        """Set the processor up as a kernel finds it.

        Args:
            tables: physical address of the page tables.
            gdt: physical address of the descriptors.
            code_at: selector of the code's.
            data_at: selector of the data's.
        """
        self._word(_GDT + 8).value = gdt
        self._long(_GDT + 16).value = max(code_at, data_at) + 7
        for number in range(6):
            self._segment(number, data_at, _DATA)
        self._segment(_CS, code_at, _CODE)
        for register, value in ((4, 0x20), (3, tables)):
            _call(f"cpu_x86_update_cr{register}", _VOID, _WORD)(self._env, value)
        self._word(_EFER).value = 0xD00  # LME, LMA and NXE
        _call("cpu_x86_update_cr0", _VOID, _LONG)(self._env, 0x80010033)
        self._long(_HFLAGS2).value |= _GIF
        ctypes.c_int32.from_address(self._env + _OLD_EXCEPTION).value = -1
        self._word(_XCR0).value = 1
        self._word(_PAT).value = 0x0007_0406_0007_0406

    def state(self) -> bytes:
        """The registers of all kinds; the processor must not run.

        Raises:
            ValueError: the guest has hardware breakpoints, which are not part of it.
        """
        raw = bytearray(ctypes.string_at(self._env, _STATE))
        if any(raw[_BREAKPOINTS:_BREAKPOINTS_END]):
            raise ValueError("hardware breakpoints are set")
        for number in range(_VECTOR_COUNT):
            start = _VECTORS + number * _VECTOR
            raw[start + _VECTOR_USED : start + _VECTOR] = bytes(_VECTOR - _VECTOR_USED)
        return bytes(raw)

    def restore(self, state: bytes) -> None:
        """Go back to a state; the memory is put back first.

        Raises:
            ValueError: the state is none of such a processor.
        """
        if len(state) != _STATE or any(state[_BREAKPOINTS:_BREAKPOINTS_END]):
            raise ValueError("no state of such a processor")
        ctypes.memmove(self._env, state, _STATE)
        self.forget_code()
        self._emulator.flush_translations()

    # -- running ------------------------------------------------------------------------

    def stop_places(self, told: Callable[[int], bool]) -> Callable[[int], None]:
        """Have a machine stop at places.

        Args:
            told: called with the address of an instruction that is about to be executed; True if
                the processor stops in front of it. A block that it stands within has begun.

        Returns:
            What adds a place, for ever, while the processor does not run.
        """

        def called(uc: int, address: int, size: int, data: int) -> int:
            try:
                return STOP if told(address) else 0
            except BaseException as error:
                self._fail(error)
                return STOP

        asked = _Told(called)
        self._hooks.keep(asked)
        self.record.told = address_in(asked)
        record = ctypes.addressof(self.record)

        def add(address: int) -> None:
            self._hooks.add(uc_const.UC_HOOK_CODE, self._place, record, address, address)
            self.forget_code()

        return add

    def watch_data(self, told: Callable[[DataAccess], bool]) -> WatchedData:
        """Have loads and stores of watched data told before they are made.

        Args:
            told: called with each; True if the processor stops in front of the instruction.

        Raises:
            CommandError: this build of Unicorn, or this host, does not allow it.
        """

        def called(access: DataAccess) -> bool:
            try:
                return told(access)
            except BaseException as error:
                self._fail(error)
                return True

        try:
            return WatchedData(self._emulator, self._uc, self._cpu, called)
        except ValueError as error:
            raise CommandError(f"no data of a machine is watched here: {error}") from None

    def forget_code(self) -> None:
        """Translate all code anew, with the hooks that there are now; it must not run."""
        self._emulator.flush_code()
        ctypes.memset(self._bits, 0, len(self._bits))

    def run(self, *, one: bool = False) -> str:
        """Run until the processor is halted, or the board has said `STOP`.

        Args:
            one: the first block is a single instruction.

        Returns:
            Why the processor cannot go on, in the emulator's words; "" where it is halted.

        Raises:
            BaseException: whatever the board has raised.
        """
        why = ""
        _LONG.from_address(self._cpu + _NEXT_BLOCK).value = 1 if one else _AS_ALWAYS
        error = self._guard.start(self["rip"], 0, 0)
        if error:
            why = _GIVEN_UP if error == ABORTED else str(UnicornError(error))
        if self._planted is not None:
            self["rip"] = self._planted.settled(self["rip"])
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return why

    # -- callbacks: nothing may be raised through the emulator ----------------------------

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self.record.limit = self.record.waits = 0

    def _asked(self) -> int:
        if self._failure is not None:
            return STOP
        try:
            return self._board.ask()
        except BaseException as error:
            self._fail(error)
            return STOP

    def _in(self, uc: int, port: int, size: int, data: int) -> int:
        try:
            return self._board.read_port(port, size)
        except BaseException as error:
            self._fail(error)
            return 0

    def _out(self, uc: int, port: int, size: int, value: int, data: int) -> None:
        try:
            self._board.write_port(port, size, value)
        except BaseException as error:
            self._fail(error)

    def _absent(self, uc: int, offset: int, size: int, data: int) -> int:
        return (1 << 8 * size) - 1

    def _lost(self, uc: int, offset: int, size: int, value: int, data: int) -> None:
        pass

    def _syscall(self, uc: int, data: int) -> None:
        """SYSCALL in 64-bit mode (Intel's manual); the emulator adds its length to rip."""
        flags = self["eflags"]
        registers = self._registers
        registers[1], registers[11] = self._word(_EIP).value + _SYSCALL, flags & ~_RF
        masked = flags & ~(self._word(_FMASK).value | _RF)
        self._emulator.write_register(_X86.UC_X86_REG_EFLAGS, masked)
        selector = self._word(_STAR).value >> 32 & 0xFFFF
        self._segment(_CS, selector & 0xFFFC, _CODE)
        self._segment(_SS, selector + 8 & 0xFFFC, _DATA)
        self._long(_HFLAGS).value &= ~_CPL
        self._word(_EIP).value = self._word(_LSTAR).value - _SYSCALL

    def _cpuid(self, uc: int, data: int) -> int:
        registers = self._registers
        words = (_LONG * 4)()
        leaf = registers[0] & 0xFFFFFFFF
        at = ctypes.addressof(words)
        _call("cpu_x86_cpuid", _VOID, _LONG, _LONG, _VOID, _VOID, _VOID, _VOID)(
            self._env, leaf, registers[1] & 0xFFFFFFFF, at, at + 4, at + 8, at + 12
        )
        if leaf == _FEATURES:
            words[2] &= ~_NOT_THERE
            words[3] &= ~_APIC
        elif leaf == _POWER:
            words[3] |= _EVEN_TSC
        registers[0], registers[3], registers[1], registers[2] = words
        return 1

    def _rdtsc(self, uc: int, data: int) -> int:
        try:
            now = self._board.counter()
        except BaseException as error:
            self._fail(error)
            return 1
        self._registers[0], self._registers[2] = now & 0xFFFFFFFF, now >> 32 & 0xFFFFFFFF
        return 1

    def _rdtscp(self, uc: int, data: int) -> int:
        self._registers[1] = self._word(_TSC_AUX).value & 0xFFFFFFFF
        return self._rdtsc(uc, data)


def _link(words: dict[str, int]) -> HostLink[MachineRecord]:
    """Have code that is written over noticed, through whichever mapping.

    The library's calls lead to the machine's code, which leads to what they led to before for
    every other engine.

    Args:
        words: of the machine's record.

    Raises:
        CommandError: this build of Unicorn, or this host, does not allow it.
    """
    link = MACHINE_LINKS.taken(words)
    if link is not None:
        return link
    slots = slots_of(_SLOTS)
    if slots is None:
        _refuse("this build of Unicorn is laid out otherwise")
    record = MachineRecord(**words)
    record.protect, record.unprotect, record.dirty = (
        _WORD.from_address(slot).value for slot in slots
    )
    move = b"\x48\xb8" + pack("=Q", ctypes.addressof(record))  # mov rax, record
    placed = native.place(
        tuple(move + piece for piece in (code.PROTECT, code.UNPROTECT, code.SET_DIRTY))
    )
    if placed is None or not redirect(slots, placed[0]):
        _refuse("the host refuses to change the emulator's calls")
    return MACHINE_LINKS.add(record, *placed)


def _refuse(why: str) -> NoReturn:
    raise CommandError(f"this host boots no machine: {why}")


def _function(name: str) -> int:
    found = address_of(f"{name}_{_TARGET}")
    if not found:
        _refuse(f"this build of Unicorn has no {name}")
    return found


def _call(name: str, *arguments: Any) -> Callable[..., None]:
    """A function of the library as Python calls it."""
    return ctypes.PYFUNCTYPE(None, *arguments)(_function(name))
