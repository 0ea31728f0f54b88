"""The only owner of patched bytes: what is planted in the guest's text, and what was there.

Everything that looks at code as code (decoder, code pane, rules, unwinder) asks for the
original bytes here. The guest itself sees the planted ones when it reads its own text, as
under Linux. A guest that writes its text is another matter: a page that holds patches and may
be both written and executed is only ever open for one of the two. Before the guest's own
bytes change, the patches on the page are taken out; before it executes them, they go back in,
or their owner is told that his instruction is no longer there.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory

_LONGEST: Final = 32
"""More bytes than any patch stands over, on either side of its address."""
_MANY: Final = 64
"""Patches from which on dropping all translations is cheaper than one range each."""
_SHARED: Final = 1 << 12
"""Patches that may be those of other places, too."""


class Patch(Struct, frozen=True, gc=False):
    """Bytes planted over an instruction.

    Attributes:
        value: what is planted.
        original: the whole instruction as it was, at least as long.
        mask: bits of `value` that count, where several instructions share a bundle; `original`
            is then the whole bundle around the address. Empty = all, at the address.
    """

    value: bytes
    original: bytes
    mask: bytes = b""

    def base(self, address: int) -> int:
        """The address of the bytes, for a patch of an address."""
        return address - address % len(self.original) if self.mask else address

    def shows(self, data: bytes) -> bool:
        """True if memory at `base` holds the planted bytes and else the original."""
        size = len(self.value)
        value = self.mixed(self.original, self.value) if self.mask else self.value
        return data == value + self.original[size:]

    def mixed(self, data: bytes, other: bytes) -> bytes:
        """Bytes of a bundle with this patch's bits taken from others."""
        return bytes(
            had & ~bits | new & bits for had, new, bits in zip(data, other, self.mask, strict=True)
        )


@lru_cache(maxsize=_SHARED)
def _patch(value: bytes, original: bytes, mask: bytes) -> Patch:
    """A patch; the same instruction at many places has the same."""
    return Patch(value, original, mask)


def no_own_page(page: int) -> bool:
    """Show no page of the guest's own in place of a shared one."""
    return False


class TextOverlay:
    """The patches of one guest.

    Attributes:
        on_lost: told (address, why) when a patch is gone for good: "unmapped" or "rewritten".
        own_page: shows this guest a page of its own in place of one that it shares with others;
            False where it cannot.
        changes: counts changes of what is planted.
    """

    def __init__(
        self, memory: Memory, cpu: Cpu, own_page: Callable[[int], bool] = no_own_page
    ) -> None:
        self._memory = memory
        self._cpu = cpu
        self._patches: dict[int, Patch] = {}
        self._lifted: set[int] = set()  # of these the ones whose bytes are not in memory now
        self._pages: dict[int, list[int]] = {}
        self.on_lost: Callable[[int, str], None] = lambda address, why: None
        self.own_page = own_page
        self.changes = 0
        memory.bytes.before_write = self._before_write
        memory.bytes.after_write = self._written

    def __contains__(self, address: int) -> bool:
        return address in self._patches

    # -- planting -------------------------------------------------------------------------

    def plant(
        self, patches: Mapping[int, tuple[bytes, bytes]], masks: Mapping[int, bytes] | None = None
    ) -> None:
        """Plant bytes: address to (value, original instruction). None may be there already.

        Args:
            patches: what is planted.
            masks: of those that stand in bundles: see `Patch.mask`.

        Raises:
            GuestFaultError: nothing is mapped there; nothing has been planted then.
        """
        if len(patches) > _MANY and not masks:
            self._plant_many(patches)
            return
        fresh: dict[int, Patch] = {}
        for address, (value, original) in patches.items():
            mask = masks.get(address, b"") if masks else b""
            fresh[address] = patch = _patch(value, original, mask)
            self._memory.read(patch.base(address), len(value))  # or nothing is planted
        self._patches |= fresh
        self._lifted.update(fresh)
        covered: dict[int, None] = {}
        for address, patch in fresh.items():
            for page in _pages(patch.base(address), len(patch.original)):
                self._pages.setdefault(page, []).append(address)
                covered[page] = None
        self._write(list(fresh.items()), planted=True)
        self._close(covered)

    def _plant_many(self, patches: Mapping[int, tuple[bytes, bytes]]) -> None:
        """The same page by page: what stands between the patches is written as it is."""
        runs: dict[int, list[int]] = {}
        for address, (value, _) in patches.items():
            inside = address % PAGE + len(value) <= PAGE
            runs.setdefault(address & -PAGE if inside else address, []).append(address)
        writes: list[tuple[int, bytearray]] = []
        for run in runs.values():
            low, high = min(run), max(at + len(patches[at][0]) for at in run)
            data = bytearray(self._memory.read(low, high - low))
            for at in run:
                value = patches[at][0]
                data[at - low : at - low + len(value)] = value
            writes.append((low, data))
        covered: set[int] = set()
        for address, (value, original) in patches.items():
            self._patches[address] = _patch(value, original, b"")
            page, last = address & -PAGE, (address + len(original) - 1) & -PAGE
            for each in (page,) if page == last else (page, last):
                covered.add(each)
                self._pages.setdefault(each, []).append(address)
        self.changes += 1
        for low, data in writes:
            for page in _pages(low, len(data)):
                self.own_page(page)
            self._memory.patch(low, bytes(data), forget=False)
        self._memory.invalidate_all()
        self._close(covered)

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
        patch = self._patches.get(address)
        if patch is None:
            return  # its code has just gone, with what stood there
        planted = address not in self._lifted and self._holds(address)
        size = max(len(patch.value), len(value))
        whole = original if len(original) >= size else patch.original
        data = value + whole[len(value) : size]
        grows = len(value) > len(patch.value)
        pieces = [(address, data[:unit]), (address + unit, data[unit:])]
        pages = len(self._pages)
        self._patches[address] = _patch(value, original, b"")
        self._mark(address, planted=planted)
        wanted, known = _pages(address, len(original)), _pages(address, len(patch.original))
        for page in wanted:
            if page not in known:
                self._pages.setdefault(page, []).append(address)
        for page in known:
            if page not in wanted:
                self._pages[page].remove(address)
                if not self._pages[page]:
                    del self._pages[page]
        for at, piece in reversed(pieces) if grows else pieces:
            if piece and planted:
                self._memory.patch(at, piece)
        self.changes += 1
        if pages != len(self._pages):
            self._close()

    def _mark(self, address: int, *, planted: bool) -> None:
        """Note whether the bytes of a patch are in memory."""
        if planted:
            self._lifted.discard(address)
        else:
            self._lifted.add(address)

    def _forget(self, address: int) -> None:
        patch = self._patches.pop(address)
        self._lifted.discard(address)
        for page in _pages(patch.base(address), len(patch.original)):
            self._pages[page].remove(address)
            if not self._pages[page]:
                del self._pages[page]

    def _put(self, addresses: Iterable[int]) -> None:
        gone = [item for item in self._of(addresses) if item[0] in self._lifted]
        self._write(gone, planted=True)

    def _take(self, addresses: Iterable[int]) -> None:
        there = [item for item in self._of(addresses) if item[0] not in self._lifted]
        self._write(there, planted=False)

    def _of(self, addresses: Iterable[int]) -> list[tuple[int, Patch]]:
        return [(address, self._patches[address]) for address in addresses]

    def _write(self, writes: list[tuple[int, Patch]], *, planted: bool) -> None:
        many = len(writes) > _MANY
        self.changes += bool(writes)
        for address, patch in writes:
            base = patch.base(address)
            if planted:
                for page in _pages(base, len(patch.value)):
                    self.own_page(page)
            data = patch.value if planted else patch.original[: len(patch.value)]
            if patch.mask:
                data = patch.mixed(self._memory.peek(base, len(data)), data)
            self._memory.patch(base, data, forget=not many)
            self._mark(address, planted=planted)
        if many:
            self._memory.invalidate_all()

    def lift_in(self, memory: Memory) -> None:
        """Put the program's own bytes into a copy of the memory."""
        for address, patch in self._patches.items():
            if address not in self._lifted:
                base = patch.base(address)
                mapping = memory.find(base)  # a copy may lack some (MADV_DONTFORK)
                if mapping is not None and not mapping.reserved:  # windows are empty there
                    memory.patch(base, self.original(base, len(patch.value)))

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
            if (base := self._patches[at].base(at)) < end
            and address < base + len(self._patches[at].original)
        ]
        touched = sorted(set(touched))
        self._take(touched)
        self._memory.poke(address, data)
        self.changes += 1
        self._check(touched)

    # -- looking --------------------------------------------------------------------------

    def planted(self) -> dict[int, bytes]:
        """Address to the bytes that stand there now in place of the original."""
        return {
            at: patch.mixed(patch.original, patch.value) if patch.mask else patch.value
            for at, patch in self._patches.items()
            if at not in self._lifted
        }

    def original(self, address: int, size: int) -> bytes:
        """Bytes of the guest's memory without the patches; GuestFaultError where none are."""
        data = self._memory.read(address, size)
        return self.restore(address, data) if self._patches else data

    def restore(self, address: int, data: bytes) -> bytes:
        """Bytes copied from memory at `address`, as they would be without the patches."""
        result, size = None, len(data)
        for at in self._near(address, size):
            patch = self._patches[at]
            first = (patch.base(at) if patch.mask else at) - address
            if first >= size or first + len(patch.value) <= 0 or at in self._lifted:
                continue
            if result is None:
                result = bytearray(data)
            if not patch.mask:
                low, high = max(first, 0), min(first + len(patch.value), size)
                result[low:high] = patch.original[low - first : high - first]
                continue
            for index in range(len(patch.value)):
                place = first + index
                if 0 <= place < len(result):
                    bits = patch.mask[index]
                    result[place] = result[place] & ~bits | patch.original[index] & bits
        return data if result is None else bytes(result)

    def _near(self, address: int, size: int) -> Iterable[int]:
        """Addresses of the patches that may share bytes with a range, and perhaps of more."""
        on_pages = [self._pages.get(page, ()) for page in _pages(address, size)]
        around = range(address - _LONGEST, address + size + _LONGEST)
        if sum(map(len, on_pages)) > len(around):
            return filter(self._patches.__contains__, around)
        return {at for page in on_pages for at in page}

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
                self._cpu.step(rewrites=True)
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

    def _written(self, address: int, size: int) -> None:
        """The guest's kernel has written there in the guest's name."""
        for page in _pages(address, size):
            if page in self._memory.closed:
                self._check(self._pages.get(page, ()))

    def _before_write(self, address: int, size: int) -> None:
        """The guest's kernel is about to write there."""
        for page in _pages(address, size):
            if page in self._memory.closed:
                self._take(self._pages.get(page, ()))

    def before_move(self, start: int, size: int) -> None:
        """Pages are about to go elsewhere: with the program's own bytes alone."""
        self._take(sorted({at for page in self._held(start, size) for at in self._pages[page]}))

    def mapped(self, start: int, size: int) -> None:
        """A range has new content or has become executable."""
        self._look_again(start, size)

    def unmapped(self, start: int, size: int) -> None:
        """A range is gone or cannot be executed any more."""
        self._look_again(start, size)

    def _held(self, start: int, size: int) -> list[int]:
        """The pages of a range with patches."""
        end = start + size
        if size // PAGE > len(self._pages):
            return [page for page in self._pages if start <= page < end]
        return [page for page in range(start & -PAGE, end, PAGE) if page in self._pages]

    def _look_again(self, start: int, size: int) -> None:
        inside = self._held(start, size) if self._patches else []
        if not inside:
            return
        kept: list[int] = []
        gone: list[int] = []
        for address in sorted({at for page in inside for at in self._pages[page]}):
            mapping = self._memory.find(address)
            if mapping is None:
                gone.append(address)
            elif not mapping.perms & EXECUTE:
                # To be written, probably: not with our bytes in between.
                if self._holds(address):
                    self._take([address])
                self._lifted.add(address)
            else:
                if not self._holds(address):
                    self._lifted.add(address)
                kept.append(address)
        # All of them first: who is told of one may want to take out others.
        for address in gone:
            self._forget(address)
        self._close()
        for address in gone:
            self.on_lost(address, "unmapped")
        self._check(kept)

    def _holds(self, address: int) -> bool:
        """True if the planted bytes are really there."""
        patch = self._patches[address]
        try:
            now = self._memory.peek(patch.base(address), len(patch.value))
        except GuestFaultError:
            return False
        return (patch.mixed(now, patch.value) if patch.mask else patch.value) == now

    def _check(self, addresses: Iterable[int]) -> None:
        """Plant again what stands before its own instruction, give up the rest."""
        good: list[int] = []
        lost: list[int] = []
        wanted = [address for address in addresses if address in self._patches]
        self._lifted.update(address for address in wanted if not self._holds(address))
        for address in wanted:
            patch = self._patches[address]
            base = patch.base(address)
            try:
                now = self._memory.read(base, len(patch.original))
            except GuestFaultError:
                now = b""
            if address in self._lifted and patch.shows(now):
                # Read before it was taken out, and written back.
                self._memory.patch(base, patch.original)
                now = patch.original
            (good if self.restore(base, now) == patch.original else lost).append(address)
        self._take(lost)
        for address in lost:
            self._forget(address)
        self._put(good)
        # Who is told of one may want to take out others, or to plant some.
        for address in lost:
            self.on_lost(address, "rewritten")


def _pages(address: int, size: int) -> range:
    return range(address & -PAGE, address + max(size, 1), PAGE)
