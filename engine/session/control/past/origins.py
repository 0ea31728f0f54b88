"""The origin of a value: the copies that brought it, back to an input or a computation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch, Register
from engine.arch.dataflow import InsnCopies, ValueCopy, ValuePart
from engine.arch.machine import Insn, RegisterFile
from engine.cpu.base import Access, StopKind
from engine.cpu.pagetable import PageTable
from engine.errors import CommandError, EngineError, GuestFaultError
from engine.history.timeline import Moment, Timeline
from engine.message_text import counted
from engine.session.control.past.inputs import RunInputs
from engine.session.control.past.writes import spellings
from engine.session.guest.past import PastSession
from engine.session.protocol.views import OriginLink

_LINKS: Final = 200
"""Links of a chain, at the most."""
_BYTES: Final = 4096
"""Bytes of a value, at the most."""
_STOPS: Final = 64
"""Times that an instruction is begun again, at the most."""
_SHOWN: Final = 16
"""Bytes of a value that are shown."""

LastWrite = Callable[[int, int, Moment], "tuple[Moment, str] | None"]
NameAt = Callable[[RegisterFile], str]
"""The name of a register at another moment, "" for none."""
LastRegisterWrite = Callable[[Register, int, Moment, NameAt], "tuple[Moment, str] | None"]


class FollowedPlace(Struct, frozen=True):
    """Bytes whose value is followed.

    Attributes:
        register: the one that they are in; "" for memory.
        first: the first of them: in the register, or an address.
        size: how many.
        thread: whose register; whose memory.
    """

    register: str
    first: int
    size: int
    thread: int

    def part(self, offset: int, size: int) -> "FollowedPlace":
        """Some of them."""
        return FollowedPlace(self.register, self.first + offset, size, self.thread)


class _WriterEffect(Struct, frozen=True):
    """An instruction's effect on the bytes that are followed.

    Attributes:
        source: where they were before; None where the value ends here.
        bytes: (offset, size) of those that it has written, which are followed from here on.
        what: that, in words.
        end: what it ends at; "" = it goes on.
        passed: it has not touched them.
    """

    source: FollowedPlace | None = None
    bytes: tuple[int, int] = (0, 0)
    what: str = ""
    end: str = ""
    passed: bool = False


class _ArenaAddresses(Mapping[int, int]):
    """Addresses of all pages of the arena that the guest can access, looked up when asked."""

    def __init__(self, table: PageTable) -> None:
        self._table = table

    def __getitem__(self, offset: int) -> int:
        found = self._table.address_of(offset)
        if found is None:
            raise KeyError(offset)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Origins:
    """Follows values of a guest of the past backwards."""

    def __init__(
        self,
        session: PastSession,
        timeline: Timeline,
        last_write: LastWrite,
        last_register_write: LastRegisterWrite,
        cut: Callable[[], bool],
    ) -> None:
        """Nothing is followed yet.

        Args:
            session: the guest.
            timeline: its moments.
            last_write: finds what has written to memory (address, size) before a moment, at which
                the guest stands, and leaves it anywhere.
            last_register_write: the same for a register of a thread, and its name elsewhere.
            cut: True to give up.
        """
        self._session = session
        self._timeline = timeline
        self._last_write = last_write
        self._last_register_write = last_register_write
        self._cut = cut
        assert session.arch.data_flow is not None, "who asks has seen to that"
        flow = session.arch.data_flow()
        self._copies, self._renamed = flow.copies, flow.renamed
        self._name_at: NameAt = lambda registers: ""

    def follow(self, place: FollowedPlace) -> list[OriginLink]:
        """The links from where the guest stands backwards; it stands anywhere afterwards.

        The last one says at what the value ends, or that the chain is longer than is told, or
        was cut.

        Raises:
            CommandError: the value cannot be read.
        """
        if place.size > _BYTES:
            raise CommandError(f"{place.size:,} bytes are no value; ask for {_BYTES} at the most")
        value = self._read(place)
        if value is None:
            raise CommandError(f"Cannot access memory at address {place.first:#x}")
        links: list[OriginLink] = []
        before = self._timeline.now()
        while not self._cut():
            found = self._writer(place, before)
            if self._cut():
                break
            if found is None:
                self._go(before)
                links.append(self._beginning(place, value))
                return links
            moment, by = found
            self._go(moment)
            if by:
                links.append(self._given(place, value, by, moment))
                return links
            if place.register and (name := self._name_at(self._session.cpu)):
                place = FollowedPlace(name, place.first, place.size, place.thread)
            step = self._step(place, value)
            if step.passed:
                before = moment
                continue
            if len(links) >= _LINKS:
                return [*links, self._link("longer", moment, place, value, self._length())]
            first, size = step.bytes
            value = value[first : first + size]
            links.append(self._link(step.end, moment, place.part(first, size), value, step.what))
            if step.source is None:
                return links
            place, before = step.source, moment
        return links

    def _length(self) -> str:
        return f"and so on: {counted(_LINKS, 'link')} at the most; ask again from there"

    def _go(self, moment: Moment) -> None:
        self._timeline.start()
        self._timeline.seek(moment)

    def _writer(self, place: FollowedPlace, before: Moment) -> tuple[Moment, str] | None:
        self._go(before)
        if not place.register:
            return self._last_write(place.first, place.size, before)
        name = place.register
        self._name_at = lambda registers: name
        if self._renamed is not None and self._session.machine.current.tid == place.thread:
            self._name_at = self._renamed(self._session.cpu, name)
        register = self._register(name)
        return self._last_register_write(register, place.thread, before, self._name_at)

    def _register(self, name: str) -> Register:
        return next(one for one in self._session.arch.registers if one.name == name)

    # -- values -----------------------------------------------------------------------------------

    def _read(self, place: FollowedPlace) -> bytes | None:
        """The bytes of a place now; None where they cannot be read."""
        session = self._session
        if not place.register:
            try:
                return session.seen.memory.read(place.first, place.size)
            except GuestFaultError:
                return None
        value: int
        if session.machine.current.tid == place.thread:
            value = session.cpu.read_register(place.register)
        elif (thread := session.machine.threads.get(place.thread)) is not None:
            with session.kernel.visit(thread):
                value = session.cpu.read_register(place.register)
        else:
            return None
        size = (self._register(place.register).bits + 7) // 8
        return value.to_bytes(size, "little")[place.first : place.first + place.size]

    # -- instructions -----------------------------------------------------------------------------

    def _step(self, place: FollowedPlace, value: bytes) -> _WriterEffect:
        """See the effect of the instruction at hand on bytes; it is carried out for that."""
        session = self._session
        cpu, pc = session.cpu, self._timeline.now().pc
        insn = next(iter(session.disassembler.decode(pc, session.code_at(pc))), None)
        if insn is None or insn.unknown:
            return _WriterEffect(
                None, (0, place.size), "an instruction that is not known", "computation"
            )
        thread = session.machine.current.tid
        copies = self._copies(insn, cpu)
        operands = self._operands(insn)
        before = {
            one.source: self._read_part(one.source, thread)
            for one in copies.copies
            if one.source.kind == "register"
        }
        reads = any("memory" in (one.source.kind, one.target.kind) for one in copies.copies)
        reached = _Accessed(self._observe() if reads or not place.register else [], self._peek)
        if copies.idle:
            return _WriterEffect(passed=True)
        touched = self._touched(place, copies, reached)
        if touched is None:  # of a register: other bytes of it
            return _WriterEffect(passed=True)
        first, size = touched
        part = place.part(first, size)
        for copy in copies.copies:
            step = self._along(part, copy, reached, thread)
            if step is None:
                continue
            kept = first + step.bytes[0], step.bytes[1]
            wanted = value[kept[0] : kept[0] + kept[1]]
            if step.source is not None and not step.end:
                got = before.get(copy.source)
                if got is not None:
                    at = step.source.first - copy.source.first
                    got = got[at : at + kept[1]]
                else:
                    got = reached.loaded(step.source.first, kept[1])
                if got is not None and got != wanted:
                    continue  # a compare has not led to it
            told = self._told(place, kept, step.what)
            return _WriterEffect(step.source, kept, told, step.end)
        told = self._told(place, (first, size), operands)
        return _WriterEffect(None, (first, size), told, "computation")

    def _told(self, place: FollowedPlace, kept: tuple[int, int], what: str) -> str:
        """The same in words, with what is followed from here on where that is less than before."""
        first, size = kept
        if size == place.size:
            return what
        which = f"byte {first}" if size == 1 else f"bytes {first} to {first + size - 1}"
        return f"{what}; {which} of the {place.size} from here on"

    def _observe(self) -> list[Access]:
        """Carry the instruction at hand, which accesses memory, out: its accesses.

        It is begun again where the kernel provides a page first, and once more from its moment
        where nothing is seen of it: a predicated one accesses nothing.
        """
        session, moment = self._session, self._timeline.now()
        places = _ArenaAddresses(session.cpu.page_table)
        for last in (False, True):
            for _ in range(_STOPS):
                session.machine.current.memory.sync()
                try:
                    stop, accesses = session.cpu.observe(places)
                except EngineError:
                    return []
                if stop is None or stop.kind is not StopKind.FAULT:
                    break
                session.kernel.handle(stop)
                if self._timeline.now() != moment:
                    return []
            if (stop is None and accesses) or last:
                break
            self._go(moment)
            session.cpu.invalidate_all()
        return accesses if stop is None else []

    def _peek(self, address: int, size: int) -> bytes | None:
        try:
            return self._session.seen.memory.read(address, size)
        except GuestFaultError:
            return None

    def _read_part(self, part: ValuePart, thread: int) -> bytes | None:
        return self._read(FollowedPlace(part.name, part.first, part.size, thread))

    def _touched(
        self, place: FollowedPlace, copies: InsnCopies, reached: "_Accessed"
    ) -> tuple[int, int] | None:
        """(offset, size) of the bytes that an instruction has written, of those at a place."""
        if not place.register:
            return reached.written(place.first, place.size)
        if not copies.keeps:
            return 0, place.size
        for copy in copies.copies:
            target = copy.target
            if target.kind != "register" or target.name != place.register:
                continue
            low = max(place.first, target.first)
            high = min(place.first + place.size, target.first + target.size + copy.wider)
            if low < high:
                return low - place.first, high - low
        named = any(copy.target.name == place.register for copy in copies.copies)
        return None if named else (0, place.size)

    def _along(
        self, place: FollowedPlace, copy: ValueCopy, reached: "_Accessed", thread: int
    ) -> _WriterEffect | None:
        """The step from a place to the source of a copy; None if that does not lead there."""
        target, source = copy.target, copy.source
        if target.kind == "register":
            if target.name != place.register:
                return None
            begin, size = target.first, target.size or reached.total(write=False)
        else:
            if place.register:
                return None
            # Bytes that are stored count through all stores.
            offset = reached.offset(place.first, write=True)
            if offset is None:
                return None
            begin, size = place.first - offset + target.first, target.size
            size = size or reached.total(write=True)
        low, high = max(place.first, begin), min(place.first + place.size, begin + size)
        if low >= high:
            return self._filled(place, copy, begin + size)
        place_to = (low - place.first, high - low)
        skip = low - begin
        note = self._widened(place, copy, begin, size)
        if source.kind == "constant":
            shown = source.value.to_bytes(max(source.size, 1), "little")
            return _WriterEffect(None, place_to, f"the constant {_value(shown)}{note}", "constant")
        if source.kind == "register":
            there = FollowedPlace(source.name, source.first + skip, high - low, thread)
            return _WriterEffect(there, place_to, f"copied from ${source.name}{note}")
        address = reached.address(source.first + skip, write=False)
        if address is None:
            return None
        there = FollowedPlace("", address, high - low, thread)
        return _WriterEffect(there, place_to, f"loaded from {address:#x}{note}")

    def _widened(self, place: FollowedPlace, copy: ValueCopy, begin: int, size: int) -> str:
        if not copy.wider or place.first + place.size <= begin + size:
            return ""
        return (
            f", widened by its sign from {size} bytes"
            if copy.filled == "sign"
            else (f", widened by zeros from {size} bytes")
        )

    def _filled(self, place: FollowedPlace, copy: ValueCopy, above: int) -> _WriterEffect | None:
        """The step for bytes above those that are copied."""
        if not (above <= place.first and place.first + place.size <= above + copy.wider):
            return None
        whole = 0, place.size
        if copy.filled == "sign":
            return _WriterEffect(None, whole, "the sign of what is copied below", "computation")
        return _WriterEffect(None, whole, "cleared above what is copied", "constant")

    def _operands(self, insn: Insn) -> str:
        """The registers that an instruction reads, with their values."""
        session = self._session
        accessed = session.disassembler.accessed(insn.address, session.code_at(insn.address))
        shown: list[str] = []
        for name in sorted(_whole(session.arch, accessed[0] if accessed else ())):
            if name == session.arch.roles.pc:
                continue
            value = session.cpu.read_register(name)
            shown.append(f"{name}={value:#x}")
        return "computed from " + ", ".join(shown) if shown else "computed"

    # -- links ------------------------------------------------------------------------------------

    def _link(
        self,
        end: str,
        moment: Moment,
        place: FollowedPlace,
        value: bytes,
        what: str,
        insn: str = "",
    ) -> OriginLink:
        """A link at a moment; of what stands at its address nothing needs be known."""
        session, pc = self._session, moment.pc
        module = session.seen.modules.at(pc)
        found = session.seen.modules.locate(pc)
        symbol = f"{found.symbol.demangled}+{found.offset}" if found.symbol else ""
        line = module.line_at(pc) if module is not None else None
        if not insn:
            decoded = next(iter(session.disassembler.decode(pc, session.code_at(pc))), None)
            insn = decoded.text if decoded is not None else ""
        where = f"${place.register}" if place.register else f"{place.first:#x}"
        return OriginLink(
            *(moment.clock, pc, session.machine.current.tid, symbol),
            *(f"{line[0]}:{line[1]}" if line is not None else "", insn, where, what),
            *(_value(value), end),
        )

    def _given(self, place: FollowedPlace, value: bytes, by: str, moment: Moment) -> OriginLink:
        """The link of what the kernel has written."""
        what = (
            RunInputs(self._session, self._timeline, self._cut).text(place.first, by, moment)
            if (not place.register)
            else by
        )
        self._go(moment)
        return self._link("input", moment, place, value, what)

    def _beginning(self, place: FollowedPlace, value: bytes) -> OriginLink:
        """The link of what nobody has written: it was there from the start."""
        inputs = RunInputs(self._session, self._timeline, self._cut)
        text = (
            inputs.beginning(place.first, place.size)
            if not place.register
            else (f"thread {place.thread} began with it")
        )
        self._timeline.start()
        moment = self._timeline.now()
        where = f"${place.register}" if place.register else f"{place.first:#x}"
        shown = _value(value)
        return OriginLink(
            moment.clock, moment.pc, place.thread, "", "", "", where, text, shown, "start"
        )


class _Accessed:
    """The bytes that an instruction has loaded and stored."""

    def __init__(self, accesses: list[Access], peek: Callable[[int, int], bytes | None]) -> None:
        self._all = accesses
        self._peek = peek

    def _of(self, *, write: bool) -> Iterator[tuple[int, Access]]:
        """Accesses, each with the number of its first byte among all."""
        at = 0
        for one in self._all:
            if one.write == write:
                yield at, one
                at += one.size

    def total(self, *, write: bool) -> int:
        """Bytes of all loads, or of all stores."""
        return sum(one.size for _, one in self._of(write=write))

    def offset(self, address: int, *, write: bool) -> int | None:
        """The number of a byte at an address; None if it was not accessed."""
        for at, one in self._of(write=write):
            if one.address <= address < one.address + one.size:
                return at + address - one.address
        return None

    def address(self, offset: int, *, write: bool) -> int | None:
        """The address of a byte by its number; None for none."""
        for at, one in self._of(write=write):
            if at <= offset < at + one.size:
                return one.address + offset - at
        return None

    def written(self, address: int, size: int) -> tuple[int, int]:
        """(offset, size) of the stretch of some bytes that was written last."""
        for one in reversed([one for _, one in self._of(write=True)]):
            low, high = max(address, one.address), min(address + size, one.address + one.size)
            if low < high:
                return low - address, high - low
        return 0, size

    def loaded(self, address: int, size: int) -> bytes | None:
        """Bytes as they were in front of the instruction."""
        now = self._peek(address, size)
        if now is None:
            return None
        then = bytearray(now)
        for one in reversed([one for _, one in self._of(write=True)]):
            for index, byte in enumerate(one.old):
                place = one.address + index - address
                if 0 <= place < size:
                    then[place] = byte
        return bytes(then)


def _whole(arch: Arch, names: "frozenset[str] | tuple[str, ...]") -> set[str]:
    """The registers that a decoder means by some names."""
    return {one.name for one in arch.registers if not spellings(arch, one).isdisjoint(names)}


def _value(data: bytes) -> str:
    """Bytes as a number, or many as text."""
    if len(data) <= 8:
        return f"{int.from_bytes(data, 'little'):#x}"
    shown = data[:_SHOWN].hex(" ")
    return shown + (" ..." if len(data) > _SHOWN else "")
