"""Places of a machine's code whose execution is told: nothing of the guest's memory changes.

A place that begins a block of code is found by host code, which looks each block up in a table:
a few instructions, whatever the number of places. Any other place has a hook of the emulator's,
which becomes a part of the code that is translated there.
"""

import ctypes
from collections.abc import Callable
from typing import Final, Protocol

from engine.cpu.unicorn_api import Hooks, OnCode
from engine.cpu.unicorn_library import uc_const
from engine.cpu.unicorn_linkage import address_in

LOWEST: Final = 1 << 12
"""The first address that a place may have."""
_BITS: Final = 1 << 19
"""Bits of the first look, one for each address modulo this number."""
_HASH: Final = 0x9E37_79B9_7F4A_7C15
"""Multiplies an address; the upper half of the product's 64 bits says where its search begins."""
_MASK: Final = (1 << 64) - 1
_FIRST: Final = 1 << 8
_EMPTY, _GONE = 0, 1
_HOOK_BOUNDS: Final = 24
"""Offset in a hook of its addresses; one whose addresses are not there stays as it is."""
_NOWHERE: Final = 1 << 63
"""An address that no code has."""


class TableWords(Protocol):
    """The words by which host code looks addresses up.

    Attributes:
        watch: address of the bits of the first look; 0 while there is no address.
        table: address of the table, whose words are addresses.
        mask: number of its words, less one.
    """

    watch: int
    table: int
    mask: int


class PlaceWords(TableWords, Protocol):
    """The words that the host code reads; the addresses are those of blocks.

    Attributes:
        watched: address of a function that is called with the address of a block.
    """

    watched: int


class AddressTable:
    """A set of addresses that host code looks up."""

    def __init__(self, words: TableWords) -> None:
        """None yet; the words are set as addresses come."""
        self._words = words
        self._addresses: set[int] = set()
        self._bits = (ctypes.c_uint32 * (_BITS // 32))()
        self._size = self._used = 0
        self._table = (ctypes.c_uint64 * 1)()
        words.watch, words.table = ctypes.addressof(self._bits), ctypes.addressof(self._table)

    def add(self, address: int) -> None:
        """Add an address from `LOWEST` on."""
        assert address >= LOWEST, "smaller numbers have meanings of their own"
        if address in self._addresses:
            return
        self._addresses.add(address)
        if 2 * (self._used + 1) > self._size:
            self._make_room()
        else:
            self._put(address)

    def discard(self, address: int) -> None:
        """Take an address out, if it is there."""
        if address not in self._addresses:
            return
        self._addresses.discard(address)
        at = self._start(address)
        while self._table[at] != address:
            at = at + 1 & self._size - 1
        self._table[at] = _GONE

    def _start(self, address: int) -> int:
        return (address * _HASH & _MASK) >> 32 & self._size - 1

    def _put(self, address: int) -> None:
        at = self._start(address)
        while self._table[at] > _GONE:
            at = at + 1 & self._size - 1
        self._used += self._table[at] == _EMPTY
        self._table[at] = address
        self._bits[address % _BITS // 32] |= 1 << address % 32

    def _make_room(self) -> None:
        """Make the table anew, four times as large as it has to be."""
        size = _FIRST
        while size < 4 * len(self._addresses):
            size *= 2
        self._size, self._used = size, 0
        self._table = (ctypes.c_uint64 * size)()
        ctypes.memset(self._bits, 0, ctypes.sizeof(self._bits))
        for address in self._addresses:
            self._put(address)
        words = self._words
        words.table, words.mask = ctypes.addressof(self._table), size - 1


class ToldInstructions:
    """Instructions that come and go, in front of which one action is called with their address.

    The emulator takes no hook out while it runs: it would look the code up through page tables
    that may not have it any more. A hook that is free gets the next instruction instead.
    """

    def __init__(
        self, hooks: Hooks, action: Callable[[int], None], fail: Callable[[BaseException], None]
    ) -> None:
        """None yet; `ToldPlaces.tell_instructions` makes it."""

        def called(uc: int, address: int, size: int, data: int) -> None:
            if address not in self._told:
                return
            try:
                action(address)
            except BaseException as error:
                fail(error)

        told = OnCode(called)
        hooks.keep(told)
        self._code, self._hooks = address_in(told), hooks
        self._told: dict[int, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, address: int) -> bool:
        return address in self._told

    def add(self, address: int) -> None:
        """Tell of an instruction; no code of the place may have been translated yet."""
        if address in self._told:
            return
        if self._free:
            hook = self._free.pop()
            _bounds_of(hook)[:] = [address, address]
        else:
            kind = uc_const.UC_HOOK_CODE
            hook = self._hooks.add(kind, self._code, begin=address, end=address)
        self._told[address] = hook

    def discard(self, address: int) -> None:
        """Tell of an instruction no longer."""
        hook = self._told.get(address)
        if hook is not None and tuple(_bounds_of(hook)) == (address, address):
            del self._told[address]
            _bounds_of(hook)[:] = [_NOWHERE, _NOWHERE]
            self._free.append(hook)


def _bounds_of(hook: int) -> ctypes.Array[ctypes.c_uint64]:
    """The first and the last address of a hook (struct hook of Unicorn's uc_priv.h)."""
    return (ctypes.c_uint64 * 2).from_address(hook + _HOOK_BOUNDS)


class ToldPlaces:
    """The places of one machine.

    Attributes:
        was_told: called with the address of a place and with what tells apart those that are told
            of it; True for an execution that was told before, as the machine runs again. None for
            a machine that does not.
    """

    def __init__(
        self, words: PlaceWords, hooks: Hooks, fail: Callable[[BaseException], None]
    ) -> None:
        """None yet.

        Args:
            words: of the host code.
            hooks: of the emulator.
            fail: told what an action raises: nothing may be raised through the emulator.
        """
        self.was_told: Callable[[int, object], bool] | None = None
        self._words = words
        self._hooks = hooks
        self._fail = fail
        self._blocks: dict[int, Callable[[], None]] = {}
        self._table: AddressTable | None = None
        called = OnCode(self._begins)
        hooks.keep(called)
        words.watched = address_in(called)

    def tell_block(self, address: int, action: Callable[[], None]) -> None:
        """Have an action called whenever a block of code is about to begin at an address.

        Args:
            address: from `LOWEST` on.
            action: replaces the one that the address has.
        """
        self._blocks[address] = action
        if self._table is None:
            self._table = AddressTable(self._words)
        self._table.add(address)

    def forget_block(self, address: int) -> None:
        """Have nothing called there any more."""
        if self._blocks.pop(address, None) is not None and self._table is not None:
            self._table.discard(address)

    def tell_instruction(self, address: int, action: Callable[[], None]) -> None:
        """Have an action called in front of each execution of an instruction.

        Each iteration of a repeated one is an execution. Code of the place that was translated
        before is to be forgotten: see `SystemCpu.forget_code`.
        """

        def called(uc: int, address: int, size: int, data: int) -> None:
            if self.was_told is None or not self.was_told(address, called):
                self._act(action)

        self._hooks.add(uc_const.UC_HOOK_CODE, OnCode(called), begin=address, end=address)

    def tell_instructions(self, action: Callable[[int], None]) -> ToldInstructions:
        """Have an action called in front of instructions that are given later."""

        def first(address: int) -> None:
            if self.was_told is None or not self.was_told(address, first):
                action(address)

        return ToldInstructions(self._hooks, first, self._fail)

    def _begins(self, uc: int, address: int, size: int, data: int) -> None:
        action = self._blocks.get(address)
        if action is None or (self.was_told is not None and self.was_told(address, self)):
            return
        self._act(action)

    def _act(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            self._fail(error)
