"""Breakpoints that the processor fetches, and a window of slots that only it can see.

A breakpoint is planted in what the translator reads, and not in the memory: whatever the guest
loads, compares and stores there are its own bytes, and code that it writes over a planted place
is translated with the breakpoint in front again. The window is executed at ring 0 under all page
tables and stands in none of them: it cannot be read or written there.

Blocks in the window are none of the machine's, nor is the one behind a copy: with breakpoints as
without as many are counted, and interrupts come at the same ones.
"""

import ctypes
import mmap
import weakref
from collections.abc import Callable
from struct import pack
from typing import Final, Protocol

from msgspec import Struct

from engine.cpu import native
from engine.cpu import unicorn_planted_code as code
from engine.cpu.host_links import HostLink, HostLinks
from engine.cpu.unicorn_api import Hooks
from engine.cpu.unicorn_library import Emulator, uc_const
from engine.cpu.unicorn_linkage import address_in, address_of, redirect, slots_of
from engine.cpu.unicorn_places import AddressTable
from engine.errors import CommandError

SLOT: Final = 32
"""Bytes of a slot, which begins at a multiple of as many."""
WINDOW: Final = 1 << 20
"""Bytes of the window."""
_PHYSICAL: Final = 1 << 41
"""Physical address of the window, behind all that a machine has."""
_CLASS: Final = 0x81B0
"""Place in a CPUState of the address of its functions."""
_CLASS_WORDS: Final = 20
_NEXT: Final = 0x9F60
"""Place in a CPUState of the return address of a software interrupt (exception_next_eip)."""
_FETCHES: Final = (b"cpu_ldub_code_x86_64",)
_WORD: Final = ctypes.c_uint64
_Asked = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_OTHERWISE: Final = "nothing is planted: this build of Unicorn is laid out otherwise"


class PlantedRecord(ctypes.Structure):
    """The words that the host code and Python share.

    `machine`, `block`, `exception` and `invalid` are what the code goes on with; `window` begins
    the slots, of `size` bytes; the block at `resume` is not counted; `again` is a slot whose copy
    repeats itself, led back to `place` once it has begun more than `first` times; `bits`, `table`
    and `mask` are of an `AddressTable`; the rest are addresses of functions.
    """

    _fields_ = (
        ("machine", _WORD),
        ("block", _WORD),
        ("exception", _WORD),
        ("invalid", _WORD),
        ("cpu", _WORD),
        ("env", _WORD),
        ("window", _WORD),
        ("size", _WORD),
        ("resume", _WORD),
        ("again", _WORD),
        ("first", _WORD),
        ("place", _WORD),
        ("exit", _WORD),
        ("asked", _WORD),
        ("watch", _WORD),
        ("table", _WORD),
        ("mask", _WORD),
        ("fetch", _WORD),
        ("fill", _WORD),
        ("set", _WORD),
        ("physical", _WORD),
    )


PLANTED_LINKS: Final = HostLinks[PlantedRecord](("fetch",))
"""The links of machines with planted breakpoints in the library's fetches of code."""


class MachineWords(Protocol):
    """The addresses of a `MachineRecord` that are used here."""

    cpu: int
    env: int
    exit: int


class Callbacks(Struct, frozen=True):
    """A processor's callbacks, which the code here goes in front of.

    Attributes:
        record: the words of their code.
        at: address of them.
        hooks: of the emulator.
        block: the hook of blocks, and the address of its code.
        exception: of exceptions.
        invalid: of instructions that there are not.
        fail: told what the action raises: nothing may be raised through the emulator.
    """

    record: MachineWords
    at: int
    hooks: Hooks
    block: tuple[int, int]
    exception: tuple[int, int]
    invalid: tuple[int, int]
    fail: Callable[[BaseException], None]


class PlantedCode:
    """The planted breakpoints and the window of one machine.

    Attributes:
        window: address that the window begins at.
        trapped: called with the number of an exception: of a breakpoint, or of what was raised in
            the window. It tells whether rip says where the processor goes on; else the exception
            is delivered to the guest, at rip.
        original: tells the guest's address of one in the window.
    """

    def __init__(self, emulator: Emulator, callbacks: Callbacks, window: int) -> None:
        """Go in front of a processor's callbacks; before it runs.

        Args:
            emulator: of the processor.
            callbacks: of the processor.
            window: where it begins, a multiple of its size.

        Raises:
            CommandError: this build of Unicorn, or this host, does not allow it.
        """
        self.window = window
        self.trapped: Callable[[int], bool] = lambda number: False
        self.original: Callable[[int], int] = lambda address: address
        self._emulator, self._fail = emulator, callbacks.fail
        machine = callbacks.record
        self._memory = mmap.mmap(-1, WINDOW)
        host = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        emulator.map_memory(_PHYSICAL, WINDOW, uc_const.UC_PROT_ALL, host)
        called = _Asked(self._asked)
        callbacks.hooks.keep(called)
        fill = address_of("x86_cpu_tlb_fill_x86_64")
        link = _link(
            {
                "machine": callbacks.at,
                "block": callbacks.block[1],
                "exception": callbacks.exception[1],
                "invalid": callbacks.invalid[1],
                "cpu": machine.cpu,
                "env": machine.env,
                "window": window,
                "size": WINDOW,
                "exit": machine.exit,
                "asked": address_in(called),
                "fill": fill,
                "set": address_of("tlb_set_page_x86_64"),
                "physical": _PHYSICAL,
            }
        )
        self.record = record = link.record
        self._forgetting = weakref.finalize(self, PLANTED_LINKS.give_back, link, ("cpu", "env"))
        self._forgetting.atexit = False
        self._places = AddressTable(record)
        self._lead(callbacks, link, fill)
        self._next = _WORD.from_address(machine.cpu + _NEXT)

    def _lead(self, callbacks: Callbacks, link: HostLink[PlantedRecord], fill: int) -> None:
        """Have the code called."""
        record = link.record
        functions = (_WORD * _CLASS_WORDS).from_address(
            _WORD.from_address(record.cpu + _CLASS).value
        )
        filled = [at for at, word in enumerate(functions) if word == fill]
        if len(filled) != 2 or not (fill and record.set):
            raise CommandError(_OTHERWISE)
        block, exception, invalid, _fetch, fills = link.addresses
        for at in filled:  # the function that is called, and the one it is of without other tables
            functions[at] = fills
        hooks, data = callbacks.hooks, ctypes.addressof(record)
        for kind, (hook, _), address in (
            (uc_const.UC_HOOK_BLOCK, callbacks.block, block),
            (uc_const.UC_HOOK_INTR, callbacks.exception, exception),
            (uc_const.UC_HOOK_INSN_INVALID, callbacks.invalid, invalid),
        ):
            hooks.remove(hook)
            hooks.add(kind, address, data)

    def close(self) -> None:
        """Have the code serve the processor no longer: another one may come to its addresses."""
        self._forgetting()

    def plant(self, address: int) -> None:
        """Have a breakpoint fetched at an address.

        What was translated there is to be forgotten (`SystemCpu.translate_again`).
        """
        self._places.add(address)

    def lift(self, address: int) -> None:
        """Have the instruction itself fetched again, likewise."""
        self._places.discard(address)

    def fill(self, slot: int, content: bytes) -> None:
        """Write a slot that nothing was translated of; see `forget`."""
        at = slot - self.window
        self._memory[at : at + SLOT] = content.ljust(SLOT, b"\0")

    def forget(self) -> None:
        """Forget all translated code, so that slots may be written again."""
        self._emulator.flush_code()

    def lead_to(self, resume: int) -> None:
        """A copy is about to be executed, in the slot where rip leads.

        Args:
            resume: where its block goes on behind it; 0 where it goes elsewhere by itself.
        """
        self.record.resume, self.record.again = resume, 0

    def lead_back(self, slot: int, place: int) -> None:
        """A copy that repeats itself is about to be executed, for one turn."""
        record = self.record
        record.resume, record.again, record.first, record.place = 0, slot, 1, place

    def leave(self) -> None:
        """Forget the copy in a slot that was about to be executed: the guest goes elsewhere."""
        self.record.resume = self.record.again = 0

    def settled(self, address: int) -> int:
        """The guest's address of where the processor has stopped: a copy may have halted it."""
        if not 0 <= address - self.window < WINDOW:
            return address
        self.leave()
        return self.original(address)

    @property
    def returns_to(self) -> int:
        """The return address that a software interrupt, which is raised now, will push."""
        return self._next.value

    @returns_to.setter
    def returns_to(self, address: int) -> None:
        self._next.value = address

    def _asked(self, number: int) -> int:
        try:
            return self.trapped(number)
        except BaseException as error:
            self._fail(error)
            return 0


def _link(words: dict[str, int]) -> HostLink[PlantedRecord]:
    """Have a machine's fetches of code led through its window.

    Args:
        words: of the machine's record.

    Raises:
        CommandError: this build of Unicorn, or this host, does not allow it.
    """
    link = PLANTED_LINKS.taken(words)
    if link is not None:
        return link
    slots = slots_of(_FETCHES)
    if slots is None:
        raise CommandError(_OTHERWISE)
    record = PlantedRecord(**words)
    record.fetch = _WORD.from_address(slots[0]).value
    move = b"\x48\xb8" + pack("=Q", ctypes.addressof(record))  # mov rax, record
    pieces = code.BLOCK, code.EXCEPTION, code.INVALID, move + code.FETCH, move + code.FILL
    placed = native.place(pieces)
    if placed is None:
        raise CommandError("nothing is planted: the host refuses executable memory")
    if not redirect(slots, placed[0][3:4]):
        raise CommandError("nothing is planted: the host refuses to change Unicorn's calls")
    return PLANTED_LINKS.add(record, *placed)
