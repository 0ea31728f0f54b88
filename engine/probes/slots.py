"""Slots: where displaced instructions are executed.

Kprobes keep a slot for as long as they are armed, in pages near the code (`InsnSlots`, the
kernel's kprobe_insn_cache). Uprobes take one of a few slots of one page for the time of a
step (`XolArea`, the kernel's xol_area): first fit from a bitmap, slot 0 set apart for the
return trampoline.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from engine.cpu.ram import PAGE
from engine.guest.memory import Memory
from engine.probes.engine_window import EngineWindow
from engine.probes.point import ProbePoint


class SlotState(Enum):
    """As in kernel/kprobes.c."""

    CLEAN = auto()
    USED = auto()
    DIRTY = auto()
    """Given back, but boosted code may still be executing in it."""


class InsnSlots:
    """Slots of one size in one window."""

    def __init__(self, window: EngineWindow, slot_size: int) -> None:
        self.window = window
        self.slot_size = slot_size
        self._free: list[int] = []
        self._state: dict[int, SlotState] = {}
        self._dirty: dict[int, None] = {}

    def reaches(self, address: int, reach: int) -> bool:
        """True if code anywhere in the window can branch to an address and back."""
        low, high = self.window.start, self.window.end
        return abs(address - low) < reach and abs(address - high) < reach

    def get(self) -> int | None:
        """A clean slot, now used; None when all are used."""
        if not self._free and not self._grow():
            return None
        slot = self._free.pop()
        self._state[slot] = SlotState.USED
        return slot

    def _grow(self) -> bool:
        page = self.window.page()
        if page is None:
            self.collect(lambda slot: False)
            return bool(self._free)
        count = PAGE // self.slot_size
        self._free = [page + index * self.slot_size for index in reversed(range(count))]
        return True

    def free(self, slot: int, *, dirty: bool) -> None:
        """Give a slot back; a dirty one is used again only after `collect`."""
        if dirty:
            self._state[slot] = SlotState.DIRTY
            self._dirty[slot] = None
        else:
            del self._state[slot]
            self._free.append(slot)

    def collect(self, busy: Callable[[int], bool]) -> int:
        """Clean the dirty slots that nobody executes in; how many are still dirty."""
        for slot in [slot for slot in self._dirty if not busy(slot)]:
            del self._dirty[slot], self._state[slot]
            self._free.append(slot)
        return len(self._dirty)

    def state(self, slot: int) -> SlotState:
        """The state of a slot."""
        return self._state.get(slot, SlotState.CLEAN)

    @property
    def used(self) -> int:
        """Slots in use, dirty ones included."""
        return len(self._state)


XOL_RESERVED: Final = 1
"""Slots at the front of the area that are not for steps: the return trampoline's."""


class XolArea:
    """The uprobes' page of slots.

    Attributes:
        owners: slots in use, and whose step it is.
    """

    def __init__(self, memory: Memory, page: int, slot_size: int) -> None:
        self._memory = memory
        self.page = page
        self.slot_size = slot_size
        self.count = PAGE // slot_size
        self._taken = [index < XOL_RESERVED for index in range(self.count)]
        self._content: list[bytes] = [b""] * self.count
        self._holding: dict[bytes, int] = {}
        self._mapped = False
        self.owners: dict[int, ProbePoint] = {}

    def contains(self, address: int) -> bool:
        """True if an address lies in the area."""
        return self.page <= address < self.page + PAGE

    def open(self) -> None:
        """Map the page once: one that is mapped while the guest runs cannot be executed yet."""
        if not self._mapped:
            self._memory.commit(self.page, PAGE)
            self._mapped = True

    def take(self, code: bytes, *, first_fit: bool) -> int | None:
        """A slot with this code in it; None while all are taken.

        Linux takes the first free slot and writes the instruction into it at each hit. Writing
        code costs an emulator its translation, so unless `first_fit` asks for the same, a
        free slot that holds the code already, or no code yet, comes first.
        """
        index = -1 if first_fit else self._holding.get(code, -1)
        if index < 0 or self._taken[index]:
            self.open()
            free = [at for at in range(XOL_RESERVED, self.count) if not self._taken[at]]
            if not free:
                return None
            index = free[0]
            if not first_fit:
                index = next((at for at in free if not self._content[at]), index)
        self._taken[index] = True
        address = self.page + index * self.slot_size
        self._fill(index, code)
        return address

    def strand(self, address: int, code: bytes) -> None:
        """Leave a slot as Linux does, for a program that runs on in it.

        Args:
            address: of the slot.
            code: what the kernel copies there, with the bytes behind the instruction; the rest
                of a slot is zeros.
        """
        index = (address - self.page) // self.slot_size
        self._fill(index, code.ljust(self.slot_size, b"\0"))

    def _fill(self, index: int, code: bytes) -> None:
        if self._content[index] != code:
            self._holding.pop(self._content[index], None)
            self._holding[code] = index
            self._content[index] = code
            self._memory.patch(self.page + index * self.slot_size, code)

    def release(self, address: int) -> None:
        """The step is over."""
        self._taken[(address - self.page) // self.slot_size] = False

    @property
    def busy(self) -> int:
        """Slots taken at the moment."""
        return sum(self._taken) - XOL_RESERVED
