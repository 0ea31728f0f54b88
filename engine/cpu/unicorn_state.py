"""Registers and memory of one Unicorn engine, without running it."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from engine.arch.base import Arch
from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.pagetable import MappedMemory, PageTable
from engine.cpu.ram import Ram
from engine.cpu.unicorn_library import Emulator
from engine.cpu.unicorn_live import LiveBank, LivePlace, LiveRegisters
from engine.cpu.unicorn_machines import UnicornMachine

if TYPE_CHECKING:
    from engine.cpu.unicorn_copies import RegisterCopy

_WORD: Final = (1 << 64) - 1
WIDE: Final = 64
"""Bytes of the register buffer; the widest register of ours has 16, of Unicorn's 32."""

_Saved = tuple[Any, list[tuple[str, int]]]


class UnicornState(MappedMemory):
    """Registers and memory of an engine that stands still."""

    def __init__(
        self, arch: Arch, machine: UnicornMachine, uc: Emulator, ram: Ram, page_table: PageTable
    ) -> None:
        self.arch = arch
        self.page_table = page_table
        self._machine = machine
        self._uc = uc
        self._handle = uc.handle
        self._ram = ram
        self._ids = {item.name: machine.register_id(item.name) for item in arch.registers}
        self._widths = {register.name: register.bits // 8 for register in arch.registers}
        self._pairs = {name: halves for name, *halves in machine.names.pairs}
        self._widths |= {name: 2 * self._widths[low] for name, (low, _) in self._pairs.items()}
        # Of registers that a word holds: Unicorn's number, and the bits that there are.
        self._narrow = {
            register.name: (self._ids[register.name], (1 << register.bits) - 1)
            for register in arch.registers
            if register.bits <= 64
        }
        self._buffer = ctypes.create_string_buffer(WIDE)
        self._buffer_at = ctypes.addressof(self._buffer)
        self._first_word = memoryview(self._buffer).cast("B").cast("Q")
        self._batches: dict[tuple[str, ...], tuple[Any, ...]] = {}
        self._copies: dict[tuple[tuple[str, ...], int], RegisterCopy | None] = {}
        self._left_out = machine.names.unsaved
        self._pc_id = self._ids[arch.roles.pc]
        self._live_at: Mapping[str, int] = {}
        self._live_words = memoryview(b"")
        self._live: LiveRegisters | None = None
        self._places: dict[str, LivePlace] = {}

    def use_live(self, live: LiveRegisters, banks: Sequence[LiveBank]) -> None:
        """From now on registers are read and written in place.

        Args:
            live: those of one word that are.
            banks: others, of which many are copied at once.
        """
        self._live, self._live_words, self._live_at = live, live.words, live.index
        self._places = {name: LivePlace(live.words, at, 1) for name, at in live.index.items()}
        for bank in banks:
            for name, at in bank.index.items():
                self._places[name] = LivePlace(bank.words, at, bank.wide)
        self._copies.clear()

    @property
    def engine_address(self) -> int:
        """The address of Unicorn's engine."""
        return self._handle.value or 0

    def width(self, name: str) -> int:
        """Bytes of a register."""
        return self._widths[name]

    def read_register(self, name: str) -> int:
        """Value of a register as an unsigned integer; KeyError for an unknown name."""
        place = self._live_at.get(name)
        if place is not None:
            return self._live_words[place]
        narrow = self._narrow.get(name)
        if narrow is not None:
            number, bits = narrow
            api.reg_read(self._handle, number, self._buffer_at)
            return self._first_word[0] & bits
        pair = self._pairs.get(name)
        if pair is not None:
            low, high = pair
            return self.read_register(low) | self.read_register(high) << 8 * self._widths[low]
        api.reg_read(self._handle, self._ids[name], self._buffer_at)
        return int.from_bytes(self._buffer.raw[: self._widths[name]], "little")

    def reader(self, name: str) -> Callable[[], tuple[int]]:
        """`read_registers` of one, for whoever asks again and again."""
        if name in self._live_at or name not in self._narrow:
            return lambda: (self.read_register(name),)
        number, bits = self._narrow[name]
        words = (self._handle.value or 0, number, self._buffer_at)
        bound = native.bound(linkage.address_in(api.reg_read), *words)
        ask, word = bound or partial(api.reg_read, *words), self._first_word

        def read() -> tuple[int]:
            ask()
            return (word[0] & bits,)

        return read

    def read_registers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Several registers of up to 64 bits at once."""
        key = tuple(names)
        batch = self._batches.get(key)
        if batch is None:
            count = len(key)
            ids = (ctypes.c_int * count)(*(self._ids[name] for name in key))
            values = (ctypes.c_uint64 * count)()
            at = ctypes.addressof(values)
            pointers = (api.VOID * count)(*(at + 8 * index for index in range(count)))
            batch = (ids, values, pointers, count)
            self._batches[key] = batch
        ids, values, pointers, count = batch
        ctypes.memset(values, 0, 8 * count)
        api.reg_read_batch(self._handle, ids, pointers, count)
        return tuple(values)

    def read_block(self, names: Sequence[str], size: int) -> bytes:
        """Registers one after another, little endian, each in so many bytes."""
        key = tuple(names), size
        copy = self._copies[key] if key in self._copies else self._copy(*key)
        if copy is not None:
            return copy.read()
        return b"".join(self.read_register(name).to_bytes(size, "little") for name in names)

    def write_block(self, names: Sequence[str], size: int, data: bytes) -> None:
        """Set registers from such bytes."""
        key = tuple(names), size
        copy = self._copies[key] if key in self._copies else self._copy(*key)
        if copy is not None:
            copy.write(data)
            return
        for at, name in enumerate(names):
            value = int.from_bytes(data[size * at : size * at + size], "little")
            self.write_register(name, value)

    def _copy(self, names: tuple[str, ...], size: int) -> "RegisterCopy | None":
        """A copy of registers, remembered; None for pairs, each of which goes by itself."""
        copy = None
        if self._pairs.keys().isdisjoint(names):
            from engine.cpu.unicorn_copies import RegisterCopy  # few programs handle signals

            copy = RegisterCopy(self._handle, self._ids, names, size, self._places)
        self._copies[names, size] = copy
        return copy

    def write_register(self, name: str, value: int) -> None:
        """Set a register; KeyError for an unknown name."""
        place = self._live_at.get(name)
        if place is not None:
            self._live_words[place] = value & _WORD
            return
        pair = self._pairs.get(name)
        if pair is not None:
            low, high = pair
            self.write_register(low, value)
            self.write_register(high, value >> 8 * self._widths[low])
            return
        value = self._machine.mask_write(name, value)
        narrow = self._narrow.get(name)
        if narrow is not None:
            self._first_word[0] = value & narrow[1]
        else:
            value &= (1 << (8 * self._widths[name])) - 1
            self._buffer.raw = value.to_bytes(WIDE, "little")
        api.reg_write(self._handle, self._ids[name], self._buffer_at)

    def float_flags(self) -> int:
        """Sticky exceptions kept outside the control register; 0 where there are none."""
        return self._machine.float_flags(self._uc)

    def clear_float_flags(self) -> None:
        """Forget the sticky exceptions."""
        self._machine.clear_float_flags(self._uc)

    def save(self, into: object = None) -> object:
        """All registers as an opaque value.

        Args:
            into: a value of before that nobody needs any more; it may be written over.
        """
        context = self._uc.save() if into is None else cast(_Saved, into)[0]
        if into is not None:
            api.context_save(self._handle, context.context)
        return context, [(name, self.read_register(name)) for name in self._left_out]

    def restore(self, state: object) -> None:
        """Go back to a value of `save`."""
        context, left_out = cast(_Saved, state)
        api.context_restore(self._handle, context.context)
        for name, value in left_out:
            self.write_register(name, value)

    def open_saved(self, state: object) -> "SavedRegisters":
        """The registers of a value of `save`; they are changed in it."""
        context, left_out = cast(_Saved, state)
        return SavedRegisters(self._machine, self._ids, self._widths, context.context, left_out)


class SavedRegisters:
    """Registers of a value of `UnicornState.save`, by name."""

    def __init__(
        self,
        machine: UnicornMachine,
        ids: Mapping[str, int],
        widths: Mapping[str, int],
        context: object,
        left_out: list[tuple[str, int]],
    ) -> None:
        self._machine = machine
        self._ids, self._widths = ids, widths
        self._context = context
        self._left_out = left_out
        self._buffer = ctypes.create_string_buffer(WIDE)

    def read_register(self, name: str) -> int:
        """Value of a register as an unsigned integer; KeyError for an unknown name."""
        for known, value in self._left_out:
            if known == name:
                return value
        api.context_reg_read(self._context, self._ids[name], self._buffer)
        return int.from_bytes(self._buffer.raw[: self._widths[name]], "little")

    def write_register(self, name: str, value: int) -> None:
        """Set a register; KeyError for an unknown name."""
        value = self._machine.mask_write(name, value) & ((1 << (8 * self._widths[name])) - 1)
        for index, (known, _) in enumerate(self._left_out):
            if known == name:
                self._left_out[index] = name, value
                return
        self._buffer.raw = value.to_bytes(WIDE, "little")
        api.context_reg_write(self._context, self._ids[name], self._buffer)
