"""Unicorn without the engine: a static program, the plain binding and ten system calls.

The yardstick for the engine's own cost. `best=False` is what a newcomer writes: the default TLB
and memory mapped with the default permissions. `best=True` is the fastest set-up known for
Unicorn 2.1.4: virtual TLB, each page with its real permissions, the TLB filled by host code,
4 KiB pages. Both stay at the level the emulator opens at (ring 0, EL1) and share nothing with the
engine but the AT_HWCAP value, so that glibc chooses the same functions in all of them.
"""

import ctypes
import mmap
import platform
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import unicorn.arm64_const as arm
import unicorn.unicorn_const as uc_const
import unicorn.x86_const as x86
from keystone import KS_ARCH_X86, KS_MODE_64, Ks
from unicorn.unicorn_py3.unicorn import Uc, UcError, uclib

_PAGE: Final = 4096
_STACK: Final = (0x7FFF_0000_0000, 1 << 20)
_HEAP_SIZE: Final = 16 << 20
_MAPPINGS_AT: Final = 0x7000_0000_0000
_RWX, _RW = 7, 3
_ENOSYS: Final = -38
_ARCH_SET_FS: Final = 0x1002

# bool fill(uc, vaddr, type, uc_tlb_entry *result, table): the first entry that holds vaddr.
# An access that is not allowed is granted all the same: the benchmark's programs have none.
_FILL = """
    mov r9, [r8]
next:
    test r9, r9
    jz fail
    cmp rsi, [r8+8]
    jb other
    cmp rsi, [r8+16]
    jb hit
other:
    add r8, 24
    dec r9
    jmp next
hit:
    mov rax, [r8+24]
    mov [rcx], rsi
    mov [rcx+8], eax
    mov eax, 1
    ret
fail:
    xor eax, eax
    ret
"""


class _TlbEntry(ctypes.Structure):
    _fields_ = (("paddr", ctypes.c_uint64), ("perms", ctypes.c_uint32))


_ON_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.POINTER(_TlbEntry),
    ctypes.c_void_p,
)


@dataclass(frozen=True, slots=True)
class _Machine:
    """One architecture as the binding and the kernel number things."""

    open: Callable[[], Any]
    pc: int
    sp: int
    number: int
    result: int
    arguments: tuple[int, ...]
    calls: dict[int, str]
    prepare: Callable[[Any], object]


def _open_arm() -> Any:
    uc = Uc(uc_const.UC_ARCH_ARM64, uc_const.UC_MODE_ARM)
    uc.ctl_set_cpu_model(arm.UC_CPU_ARM64_MAX)
    return uc


def _numbers(**names: list[int]) -> dict[int, str]:
    """System calls by number; `fine` are those that may succeed without doing anything."""
    return {number: name for name, numbers in names.items() for number in numbers}


_X = arm.UC_ARM64_REG_X0
_MACHINES = {
    "x86_64": _Machine(
        open=lambda: Uc(uc_const.UC_ARCH_X86, uc_const.UC_MODE_64),
        pc=x86.UC_X86_REG_RIP,
        sp=x86.UC_X86_REG_RSP,
        number=x86.UC_X86_REG_RAX,
        result=x86.UC_X86_REG_RAX,
        arguments=(x86.UC_X86_REG_RDI, x86.UC_X86_REG_RSI, x86.UC_X86_REG_RDX),
        calls=_numbers(
            write=[1],
            mmap=[9],
            brk=[12],
            arch_prctl=[158],
            exit=[231],
            fstat=[262],
            getrandom=[318],
            fine=[10, 11, 218, 273],
        ),
        prepare=lambda uc: None,
    ),
    "aarch64": _Machine(
        open=_open_arm,
        pc=arm.UC_ARM64_REG_PC,
        sp=arm.UC_ARM64_REG_SP,
        number=_X + 8,
        result=_X,
        arguments=(_X, _X + 1, _X + 2),
        calls=_numbers(
            write=[64],
            fstat=[79, 80],
            exit=[94],
            brk=[214],
            mmap=[222],
            getrandom=[278],
            fine=[96, 99, 215, 226],
        ),
        prepare=lambda uc: uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20),
    ),
}


def host_code_works() -> bool:
    """Whether the fill callback of the best set-up can be host code here."""
    return platform.machine() == "x86_64"


def _host_code() -> mmap.mmap:
    code = bytes(Ks(KS_ARCH_X86, KS_MODE_64).asm(_FILL)[0])
    memory = mmap.mmap(-1, _PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory[: len(code)] = code
    return memory


class RawGuest:
    """A static program in a bare emulator; `run` may be called once."""

    def __init__(self, path: Path, args: list[str], arch: str, hwcap: int, *, best: bool) -> None:
        self.output = b""
        self.exit_code: int | None = None
        self._best = best
        self._machine = _MACHINES[arch]
        self._uc = self._machine.open()
        self._table = (ctypes.c_uint64 * 256)()
        self._keep: list[object] = []
        self._mappings_end = _MAPPINGS_AT
        if best:
            if arch == "aarch64":
                self._uc.ctl_set_page_size(_PAGE)  # else 1 KiB; must come first
            self._uc.ctl_set_tlb_mode(uc_const.UC_TLB_VIRTUAL)
            self._add_fill()
        image = path.read_bytes()
        headers = self._load(image)
        self._map(*_STACK, _RW)
        self._map(self._heap, _HEAP_SIZE, _RW)
        self._machine.prepare(self._uc)
        self._make_stack([str(path), *args], arch, hwcap, headers)
        if arch == "x86_64":
            self._uc.hook_add(
                uc_const.UC_HOOK_INSN,
                lambda uc, data: self._syscall(),
                None,
                1,
                0,
                x86.UC_X86_INS_SYSCALL,
            )
        else:
            self._uc.hook_add(uc_const.UC_HOOK_INTR, lambda uc, number, data: self._syscall())

    def run(self) -> float:
        """CPU seconds of the whole emulation.

        Raises:
            RuntimeError: the program did not end with 0.
        """
        start = time.process_time()
        try:
            self._uc.emu_start(self._entry, 0)
        except UcError as error:
            at = self._uc.reg_read(self._machine.pc)
            raise RuntimeError(f"bare Unicorn failed at {at:#x}: {error}") from error
        spent = time.process_time() - start
        if self.exit_code != 0:
            raise RuntimeError(f"the program ended with {self.exit_code}: {self.output!r}")
        return spent

    # -- memory -------------------------------------------------------------------------------

    def _map(self, start: int, size: int, perms: int) -> None:
        size = -(-size // _PAGE) * _PAGE
        if not self._best:
            self._uc.mem_map(start, size)
            return
        self._uc.mem_map(start, size, perms)
        count = self._table[0]
        self._table[1 + 3 * count : 4 + 3 * count] = [start, start + size, perms]
        self._table[0] = count + 1

    def _add_fill(self) -> None:
        callback: object
        if host_code_works():
            memory = _host_code()
            self._keep.append(memory)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        else:
            callback = _ON_FILL(self._fill)
            self._keep.append(callback)
            address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        hook = ctypes.c_size_t()
        words = [ctypes.c_uint64(value) for value in (ctypes.addressof(self._table), 1, 0)]
        error = uclib.uc_hook_add(
            self._uc._uch,
            ctypes.byref(hook),
            uc_const.UC_HOOK_TLB_FILL,
            ctypes.c_void_p(address),
            ctypes.c_void_p(words[0].value),
            words[1],
            words[2],
        )
        if error:
            raise RuntimeError(f"the emulator refuses the fill callback: error {error}")

    def _fill(self, uc: int, address: int, access: int, entry: Any, data: int) -> bool:
        for index in range(self._table[0]):
            start, end, perms = self._table[1 + 3 * index : 4 + 3 * index]
            if start <= address < end:
                entry.contents.paddr = address
                entry.contents.perms = perms
                return True
        return False

    # -- the program --------------------------------------------------------------------------

    def _load(self, image: bytes) -> tuple[int, int, int]:
        self._entry, offset = struct.unpack_from("<QQ", image, 24)
        size, count = struct.unpack_from("<HH", image, 54)
        at, end = 0, 0
        for index in range(count):
            kind, flags, file_at, virtual, _, in_file, in_memory, _ = struct.unpack_from(
                "<IIQQQQQQ", image, offset + index * size
            )
            if kind != 1:
                continue
            first = virtual & -_PAGE
            perms = (flags & 4) >> 2 | flags & 2 | (flags & 1) << 2
            self._map(first, virtual + in_memory - first, perms)
            self._uc.mem_write(virtual, image[file_at : file_at + in_file])
            if file_at <= offset < file_at + in_file:
                at = virtual + offset - file_at
            end = max(end, virtual + in_memory)
        self._heap = self._heap_end = -(-end // _PAGE) * _PAGE + (1 << 20)
        return at, size, count

    def _make_stack(
        self, argv: list[str], arch: str, hwcap: int, headers: tuple[int, int, int]
    ) -> None:
        at = sum(_STACK) - 64

        def push(data: bytes) -> int:
            nonlocal at
            at -= len(data)
            self._uc.mem_write(at, data)
            return at

        words = [push(word.encode() + b"\0") for word in argv]
        name, seed = push(arch.encode() + b"\0"), push(bytes(range(16)))
        keys = (3, 4, 5, 6, 9, 15, 16, 25, 31, 11, 12, 13, 14, 23, 0)
        known = (*headers, _PAGE, self._entry, name, hwcap, seed, words[0])
        values = known + (0,) * (len(keys) - len(known))
        vector = [len(words), *words, 0, 0]
        vector += [value for pair in zip(keys, values, strict=True) for value in pair]
        at = (at - 8 * len(vector)) & -16
        self._uc.mem_write(at, struct.pack(f"<{len(vector)}Q", *vector))
        self._uc.reg_write(self._machine.sp, at)

    def _syscall(self) -> None:
        machine, uc = self._machine, self._uc
        number = uc.reg_read(machine.number)
        first, second, third = (uc.reg_read(register) for register in machine.arguments)
        name = machine.calls.get(number)
        result = 0
        if name == "write":
            self.output += bytes(uc.mem_read(second, third))
            result = third
        elif name == "exit":
            self.exit_code = first & 0xFF
            uc.emu_stop()
        elif name == "brk":
            if self._heap <= first <= self._heap + _HEAP_SIZE:
                self._heap_end = first
            result = self._heap_end
        elif name == "mmap":
            result = self._mappings_end
            self._map(result, second, _RW)
            self._mappings_end += -(-second // _PAGE) * _PAGE + _PAGE
        elif name == "arch_prctl":
            if first == _ARCH_SET_FS:
                uc.reg_write(x86.UC_X86_REG_FS_BASE, second)
            else:
                result = -22
        elif name == "getrandom":
            uc.mem_write(first, b"\x42" * second)
            result = second
        elif name == "fstat":
            uc.mem_write(second if number == 80 else third, bytes(128))
        elif name is None:
            result = _ENOSYS
        uc.reg_write(machine.result, result & 0xFFFF_FFFF_FFFF_FFFF)
