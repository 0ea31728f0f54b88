"""The only owner of patched bytes: what is planted in the guest's text, and what was there.

Everything that looks at code as code (decoder, code pane, rules, unwinder) asks for the
original bytes here. The guest itself sees the planted ones when it reads its own text, as
under Linux. A guest that writes its text is another matter: a page that holds patches and may
be both written and executed is only ever open for one of the two. Before the guest's own
bytes change, the patches on the page are taken out; before it executes them, they go back in,
or their owner is told that his instruction is no longer there.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory

_MANY: Final = 64
"""Patches from which on dropping all translations is cheaper than one range each."""


@dataclass(slots=True)
class Patch:
    """Bytes planted over an instruction.

    Attributes:
        value: what is planted.
        original: the whole instruction as it was, at least as long.
        planted: whether the bytes are in memory now.
    """

    value: bytes
    original: bytes
    planted: bool = False


class TextOverlay:
    """The patches of one guest.

    Attributes:
        on_lost: told (address, why) when a patch is gone for good: "unmapped" or "rewritten".
        changes: counts changes of what is planted.
    """

    def __init__(self, memory: Memory, cpu: Cpu) -> None:
        self._memory = memory
        self._cpu = cpu
        self._patches: dict[int, Patch] = {}
        self._pages: dict[int, list[int]] = {}
        self.on_lost: Callable[[int, str], None] = lambda address, why: None
        self.changes = 0

    def __contains__(self, address: int) -> bool:
        return address in self._patches

    # -- planting -------------------------------------------------------------------------

    def plant(self, patches: Mapping[int, tuple[bytes, bytes]]) -> None:
        """Plant bytes: address to (value, original instruction). None may be there already.

        Raises:
            GuestFaultError: nothing is mapped there; nothing has been planted then.
        """
        for address, (value, _) in patches.items():
            self._memory.read(address, len(value))
        for address, (value, original) in patches.items():
            self._patches[address] = Patch(value, original)
            for page in _pages(address, len(original)):
                self._pages.setdefault(page, []).append(address)
        self._put(patches)
        self._close(
            page
            for address, (_, original) in patches.items()
            for page in _pages(address, len(original))
        )

    def lift(self, addresses: Iterable[int]) -> None:
        """Take patches out for good; the original bytes come back."""
        going = [address for address in addresses if address in self._patches]
        self._take(going)
        for address in going:
            self._forget(address)
        self._close()

    def exchange(self, address: int, value: bytes, original: bytes, unit: int) -> None:
        """Plant other bytes where some are planted; later, if those are not in memory now.

        In the order in which a kernel does it while others execute there (text_poke_bp): the
        first `unit` bytes of the shorter of the two, which trap, stand there while the rest
        changes.

        Args:
            address: of the patch.
            value: what is planted from now on.
            original: all instructions that it stands over.
            unit: bytes that can change at one time.
        """
        patch = self._patches[address]
        planted = patch.planted and self._holds(address)
        size = max(len(patch.value), len(value))
        whole = original if len(original) >= size else patch.original
        data = value + whole[len(value) : size]
        grows = len(value) > len(patch.value)
        pieces = [(address, data[:unit]), (address + unit, data[unit:])]
        pages = len(self._pages)
        self._patches[address] = Patch(value, original, planted)
        for page in _pages(address, max(len(original), len(patch.original))):
            there = self._pages.setdefault(page, [])
            wanted = page in _pages(address, len(original))
            if wanted and address not in there:
                there.append(address)
            elif not wanted:
                there.remove(address)
                if not there:
                    del self._pages[page]
        for at, piece in reversed(pieces) if grows else pieces:
            if piece and planted:
                self._memory.poke(at, piece)
        self.changes += 1
        if pages != len(self._pages):
            self._close()

    def _forget(self, address: int) -> None:
        patch = self._patches.pop(address)
        for page in _pages(address, len(patch.original)):
            self._pages[page].remove(address)
            if not self._pages[page]:
                del self._pages[page]

    def _put(self, addresses: Iterable[int]) -> None:
        self._write(
            [
                (address, patch.value, patch)
                for address, patch in self._of(addresses)
                if not patch.planted
            ],
            planted=True,
        )

    def _take(self, addresses: Iterable[int]) -> None:
        self._write(
            [
                (address, patch.original[: len(patch.value)], patch)
                for address, patch in self._of(addresses)
                if patch.planted
            ],
            planted=False,
        )

    def _of(self, addresses: Iterable[int]) -> list[tuple[int, Patch]]:
        return [(address, self._patches[address]) for address in addresses]

    def _write(self, writes: list[tuple[int, bytes, Patch]], *, planted: bool) -> None:
        many = len(writes) > _MANY
        self.changes += bool(writes)
        for address, data, patch in writes:
            self._memory.poke(address, data, forget=not many)
            patch.planted = planted
        if many:
            self._cpu.invalidate_all()

    def rewrite(self, address: int, data: bytes) -> None:
        """Change the program's own bytes, as a debugger does; patches there are looked at again.

        Raises:
            GuestFaultError: not all of it is mapped; nothing has changed then.
        """
        end = address + len(data)
        self._memory.read(address, len(data))
        touched = [
            at
            for page in _pages(address - PAGE, len(data) + PAGE)
            for at in self._pages.get(page, ())
            if at < end and address < at + len(self._patches[at].original)
        ]
        touched = sorted(set(touched))
        self._take(touched)
        self._memory.poke(address, data)
        self.changes += 1
        self._check(touched)

    # -- looking --------------------------------------------------------------------------

    def planted(self) -> dict[int, bytes]:
        """Address to the bytes that stand there now in place of the original."""
        return {at: patch.value for at, patch in self._patches.items() if patch.planted}

    def original(self, address: int, size: int) -> bytes:
        """Bytes of the guest's memory without the patches; GuestFaultError where none are."""
        data = self._memory.read(address, size)
        return self.restore(address, data) if self._patches else data

    def restore(self, address: int, data: bytes) -> bytes:
        """What bytes copied from memory at `address` would be without the patches."""
        found = {
            at
            for page in _pages(address, len(data))
            for at in self._pages.get(page, ())
            if self._patches[at].planted
        }
        if not found:
            return data
        result = bytearray(data)
        for at in found:
            patch = self._patches[at]
            for index in range(len(patch.value)):
                place = at + index - address
                if 0 <= place < len(result):
                    result[place] = patch.original[index]
        return bytes(result)

    # -- a guest that changes its own text ------------------------------------------------

    def _close(self, changed: Iterable[int] | None = None) -> None:
        """Keep pages that the guest may write and execute from being open for both.

        Args:
            changed: pages that have patches now and perhaps had none; None to look at all.
        """
        memory = self._memory
        closed = {} if changed is None else dict(memory.closed)
        for page in self._pages if changed is None else changed:
            mapping = memory.find(page)
            if mapping is not None and mapping.perms & (WRITE | EXECUTE) == WRITE | EXECUTE:
                closed[page] = memory.closed.get(page, READ | EXECUTE)
        if closed != memory.closed:
            memory.close_pages(closed)

    def refused(self, address: int, access: str, pc: int) -> bool:
        """An access was refused; whether that was only because a page with patches is closed.

        The page is open for it afterwards. `pc` is the instruction that wants it.
        """
        page = address & -PAGE
        memory = self._memory
        kept = memory.closed.get(page)
        if kept is None or access == "read":
            return False
        wanted = EXECUTE if access == "execute" else WRITE
        if kept & wanted:
            return False
        if wanted == WRITE:
            self._take(self._pages.get(page, ()))
            if page in _pages(pc, 16):  # code that writes beside itself: for this once, both
                memory.close_pages({**memory.closed, page: READ | WRITE | EXECUTE})
                memory.sync()
                self._cpu.step()
                self._renew(page)
            else:
                memory.close_pages({**memory.closed, page: READ | WRITE})
        else:
            self._renew(page)
        return True

    def _renew(self, page: int) -> None:
        """The page is to be executed: its patches go back in where their code still stands."""
        memory = self._memory
        if page in memory.closed:
            memory.close_pages({**memory.closed, page: READ | EXECUTE})
        self._check(self._pages.get(page, ()))

    def written(self, address: int, size: int) -> None:
        """The guest's kernel has written there in the guest's name."""
        for page in _pages(address, size):
            if page in self._memory.closed:
                self._check(self._pages.get(page, ()))

    def before_write(self, address: int, size: int) -> None:
        """The guest's kernel is about to write there."""
        for page in _pages(address, size):
            if page in self._memory.closed:
                self._take(self._pages.get(page, ()))

    def mapped(self, start: int, size: int) -> None:
        """A range has new content or has become executable."""
        self._look_again(start, size)

    def unmapped(self, start: int, size: int) -> None:
        """A range is gone or cannot be executed any more."""
        self._look_again(start, size)

    def _look_again(self, start: int, size: int) -> None:
        end = start + size
        if not self._patches:
            return
        if size // PAGE > len(self._pages):
            inside = [page for page in self._pages if start <= page < end]
        else:
            inside = [page for page in range(start & -PAGE, end, PAGE) if page in self._pages]
        if not inside:
            return
        kept: list[int] = []
        for address in sorted({at for page in inside for at in self._pages[page]}):
            mapping = self._memory.find(address)
            if mapping is None or not mapping.perms:
                self._forget(address)
                self.on_lost(address, "unmapped")
            elif not mapping.perms & EXECUTE:
                # To be written, probably: not with our bytes in between.
                if self._holds(address):
                    self._take([address])
                self._patches[address].planted = False
            else:
                self._patches[address].planted &= self._holds(address)
                kept.append(address)
        self._close()
        self._check(kept)

    def _holds(self, address: int) -> bool:
        """Whether the planted bytes are really there."""
        value = self._patches[address].value
        try:
            return self._memory.read(address, len(value)) == value
        except GuestFaultError:
            return False

    def _check(self, addresses: Iterable[int]) -> None:
        """Plant again what stands before its own instruction, give up the rest."""
        good: list[int] = []
        for address in list(addresses):
            patch = self._patches[address]
            if patch.planted and not self._holds(address):
                patch.planted = False
            try:
                now = self._memory.read(address, len(patch.original))
            except GuestFaultError:
                now = b""
            if self.restore(address, now) == patch.original:
                good.append(address)
            else:
                self._take([address])
                self._forget(address)
                self.on_lost(address, "rewritten")
        self._put(good)


def _pages(address: int, size: int) -> range:
    return range(address & -PAGE, address + max(size, 1), PAGE)
