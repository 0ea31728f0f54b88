"""Finds what has last written to memory or to a register of a thread."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch, Register
from engine.arch.machine import RegisterFile
from engine.cpu.ram import PAGE
from engine.errors import CommandError
from engine.guest.watched import WatchedRange
from engine.history.journal import WORDS, Entry, EntryCause, Op
from engine.history.moment import Moment
from engine.linux import signals as sig
from engine.session.control.past.search import PastStretches
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent, call_text

_BUSY: Final = 1 << 14
"""Ticks of the widest stretch that is lived through from close by before checkpoints are looked
at: memory that is written again and again stops the program at each time."""


class MemoryWrites:
    """Finds what has written to memory, by living through stretches with it watched.

    Close by first, in ever wider stretches; farther back from checkpoint to checkpoint, but for
    those between which its pages have not changed.
    """

    def __init__(
        self, session: PastSession, stretches: PastStretches, cut: Callable[[], bool]
    ) -> None:
        """Nothing is looked for yet.

        Args:
            session: the guest of the past.
            stretches: of its run.
            cut: asked now and then: True ends a search.
        """
        self._session = session
        self._stretches = stretches
        self._timeline = stretches.timeline
        self._cut = cut

    def last(self, address: int, size: int, now: Moment) -> tuple[Moment, str] | None:
        """The last write before now: its moment, and what has written, "" for an instruction.

        The guest stands anywhere then. What is found by a search that was cut may not be the last.

        Raises:
            CommandError: there is no memory.
        """
        timeline = self._timeline
        pages = self._pages(address, size)
        taken = timeline.checkpoints.taken
        behind = now
        for start, end in self._stretches.back(now, _BUSY):
            found = self._between(address, size, end)
            if found or self._cut():
                return found[-1] if found else None
            behind = start
            if end.clock - start.clock >= _BUSY:
                break
        newest = behind
        index = bisect_left([(one.at, one.clock) for one in taken], (newest.at, newest.clock))
        for number in range(min(index, len(taken) - 1), -1, -1):
            begin = taken[number]
            if (begin.at, begin.clock) >= (behind.at, behind.clock) and number:
                continue
            last = number + 1 == len(taken) or behind == newest
            if last or pages.intersection(taken[number + 1].pages):
                timeline.checkpoints.restore(number)
                start = timeline.now()
                found = self._between(address, size, behind)
                if found or self._cut():
                    return found[-1] if found else None
                behind = start
            else:
                behind = Moment(begin.at, begin.coming, begin.pc)
            if self._cut():
                break
        return None

    def _pages(self, address: int, size: int) -> set[int]:
        """Numbers of the pages of the arena behind an address now."""
        found = set()
        for at in range(address & -PAGE, address + size, PAGE):
            mapping = self._session.seen.memory.find(at)
            if mapping is None or mapping.physical is None:
                raise CommandError(f"Cannot access memory at address {at:#x}")
            found.add((mapping.physical + at - mapping.start) // PAGE)
        return found

    def _between(self, address: int, size: int, end: Moment) -> list[tuple[Moment, str]]:
        """Run on to a moment: the instructions that write to memory meanwhile, and what did."""
        found: list[tuple[Moment, str]] = []

        def told(event: WatchEvent) -> None:
            if event.hit.written is None:
                return
            moment = self._stretches.moment_of(event)
            if moment < end:
                found.append((moment, event.by))

        watch = Watch(told, [WatchedRange(address, size)])
        self._stretches.run(watch, end, self._cut)
        return found


_WIDEST: Final = 1 << 16
"""Ticks that are lived through before the newest write in them is known."""
_LONGEST: Final = 1 << 12
"""Bytes of code that a program runs straight ahead in a tick, at the most, to be looked at."""
_FLAGS: Final = frozenset({"rflags", "eflags", "nzcv"})
_LOW_BYTE: Final = re.compile(r"r\d+l$")
"""Gdb's names of what the decoder calls r13b."""
_VECTOR: Final = re.compile(r"[xyz]mm(\d+)|[vqdshb](\d+)")
_UPPER: Final = re.compile(r"(ymm\d+)h")
"""The upper half of a register of AVX, which decoders have no name for."""


class _Suspect(Struct):
    """Instructions of which one may have written.

    Attributes:
        begin: of them.
        end: behind them.
        behind: what the thread finds in the register when it runs next; None while not known.
    """

    begin: Moment
    end: Moment
    behind: int | None = None


class _Tick(Struct):
    """A tick that is over, of which it is not known yet where its code ended.

    Attributes:
        begin: of it.
        mine: the thread that is asked for ran in it, from begin to end.
        part: it ran in a part of it, or the kernel did something.
        name: of the register; "" = it was none of the frame's.
    """

    begin: Moment
    mine: bool
    part: bool
    name: str


class RegisterWrites:
    """Finds what has written to registers, by going through the past tick by tick.

    A write is an instruction whose encoding says so, be it that the register had that value
    before, and whatever the thread finds another value in the register behind. A tick is code that
    runs straight ahead: only where that code writes to the register, where the value has changed,
    or where the kernel has done something, it is gone through instruction by instruction.
    """

    def __init__(self, session: PastSession, stretches: PastStretches) -> None:
        """Nothing is looked for yet."""
        self._session = session
        self._stretches = stretches
        self._flow = session.arch.data_flow() if session.arch.data_flow is not None else None
        self._known: dict[tuple[int, bytes], frozenset[str] | None] = {}
        self._runs: dict[tuple[int, int], frozenset[str] | None] = {}
        self._layout: object = None
        self._spelled: dict[str, frozenset[str]] = {"": frozenset()}

    def last(
        self,
        register: Register,
        tid: int,
        before: Moment,
        cut: Callable[[], bool],
        place: Callable[[RegisterFile], str] | None = None,
    ) -> tuple[Moment, str] | None:
        """The last write of a thread's register in front of a moment, at which the guest stands.

        Args:
            register: the register that was written.
            tid: the thread.
            before: the moment.
            cut: True to give up.
            place: its name at other moments, "" for none; None = that stays.

        Returns:
            The moment in front of the write, and the call or the like that has written, in
            words, "" for an instruction; None if there is none, or it was cut.
        """
        session, timeline = self._session, self._stretches.timeline
        value: int | None
        if session.machine.current.tid == tid:  # even where it has ended
            value = session.cpu.read_register(register.name)
        elif (thread := session.machine.threads.get(tid)) is not None:
            with session.kernel.visit(thread):
                value = session.cpu.read_register(register.name)
        else:
            return None
        name_at = place or (lambda registers: register.name)
        for _, end in self._stretches.back(before, _WIDEST):
            suspects, value = self._suspects(name_at, tid, end, value, cut)
            for one in reversed(suspects):
                if cut():
                    return None
                timeline.seek(one.begin)
                found = self._within(name_at, tid, one.end, one.behind, cut)
                if found is not None and not cut():
                    return found
            if cut():
                return None
        return None

    # -- ticks ------------------------------------------------------------------------------------

    def _suspects(
        self,
        name_at: Callable[[RegisterFile], str],
        tid: int,
        end: Moment,
        behind: int | None,
        cut: Callable[[], bool],
    ) -> tuple[list[_Suspect], int | None]:
        """Find where a register may have been written up to a moment, and what it holds here.

        Args:
            name_at: name of the register.
            tid: the thread.
            end: the moment.
            behind: what the thread finds in the register when it runs next from the moment on.
            cut: True to give up.
        """
        session, timeline = self._session, self._stretches.timeline
        cpu, machine, kernel = session.cpu, session.machine, session.kernel
        found: list[_Suspect] = []
        unseen = 0  # of them, those of which it is known what comes behind
        first: int | None = None
        held: int | None = None
        over: _Tick | None = None  # where it ended is not known yet
        cpu.keep_branches()
        begin, mine, at = timeline.now(), machine.current.tid == tid, kernel.at
        name = name_at(cpu) if mine else ""
        if name:
            first = held = cpu.read_register(name)
        for _ in self._stretches.ticks(end.clock, cut):
            now, mine_now = timeline.now(), machine.current.tid == tid
            same = kernel.at == at
            if over is not None:
                ended = cpu.last_branches[0] if same and mine else 0
                self._look(over, begin, ended, found)
            over = _Tick(begin, mine and mine_now and same, mine or mine_now, name)
            begin, mine, at = now, mine_now, kernel.at
            name = name_at(cpu) if mine else ""
            if not name:
                continue
            value = cpu.read_register(name)
            if held is not None and value != held:
                over.part, over.mine = True, False  # it has
            first = value if first is None else first
            held = value
            while unseen < len(found):
                found[unseen].behind = value
                unseen += 1
        if over is not None:
            self._look(over, begin, 0, found)
        now = timeline.now()
        if now < end:
            found.append(_Suspect(now, end))
        for one in found[unseen:]:
            one.behind = behind
        return found, behind if first is None else first

    def _look(self, over: _Tick, end: Moment, ended: int, found: list[_Suspect]) -> None:
        """See whether a register may have been written in a tick.

        Args:
            over: the tick.
            end: where the next begins.
            ended: address behind its last instruction; 0 where that is not known.
            found: where to add it.
        """
        if not over.part:
            return
        if over.mine:
            written = self._run(over.begin.pc, ended)
            if written is not None and over.name and written.isdisjoint(self._names(over.name)):
                return
        found.append(_Suspect(over.begin, end))

    def _run(self, begin: int, end: int) -> frozenset[str] | None:
        """The registers that straight code writes to; None where that is not known."""
        if not begin < end <= begin + _LONGEST:
            return None
        layout = self._session.seen.memory.table.layout
        if layout is not self._layout:
            self._layout = layout
            self._runs.clear()
        key = begin, end
        if key not in self._runs:
            self._runs[key] = self._written_in(begin, end)
        return self._runs[key]

    def _written_in(self, begin: int, end: int) -> frozenset[str] | None:
        session = self._session
        mapping = session.seen.memory.find(begin)
        if mapping is None or mapping.perms & 2 or mapping.end < end:
            return None  # code that may be written over
        written: set[str] = set()
        at = begin
        while at < end:
            code = session.code_at(at)
            insn = next(iter(session.disassembler.decode(at, code)), None)
            one = session.disassembler.accessed(at, code)
            if insn is None or insn.unknown or one is None:
                return None
            if self._flow is not None and insn.mnemonic.startswith(self._flow.renames):
                return None
            written |= one[1]
            at += insn.size
        return frozenset(written)

    def _names(self, name: str) -> frozenset[str]:
        found = self._spelled.get(name)
        if found is None:
            arch = self._session.arch
            register = next(one for one in arch.registers if one.name == name)
            found = self._spelled[name] = spellings(arch, register)
        return found

    # -- instructions -----------------------------------------------------------------------------

    def _within(
        self,
        name_at: Callable[[RegisterFile], str],
        tid: int,
        end: Moment,
        behind: int | None,
        cut: Callable[[], bool],
    ) -> tuple[Moment, str] | None:
        """The last write from here to a moment; arguments are those of `_suspects`."""
        session, kernel = self._session, self._session.kernel
        cpu, machine = session.cpu, session.machine
        result = session.arch.linux.result
        found: tuple[Moment, str] | None = None
        last: Moment | None = None  # of the thread
        held, writes, by = 0, False, ""
        now, at = self._stretches.timeline.now(), kernel.at
        steps = self._stretches.steps(end, cut)
        while True:
            if machine.current.tid == tid and machine.exit is None and (name := name_at(cpu)):
                value = cpu.read_register(name)
                if last is not None and (writes or value != held):
                    found = last, by
                last, held, by = now, value, ""
                if now >= end:
                    return found
                writes = self._writes(now.pc, self._names(name))
            before, at = now, kernel.at
            following = next(steps, None)
            if following is None:
                break
            now = following
            if kernel.at > at and last == before:
                entry = kernel.journal[at]
                writes = entry.cause == EntryCause.SYSCALL and name == result
                by = self._text(entry)
        if last is not None and behind is not None and (held != behind or (writes and by)):
            found = last, by
        return found

    def _writes(self, pc: int, names: Iterable[str]) -> bool:
        """True if the instruction at an address says that it writes to a register, and does."""
        session = self._session
        code = session.code_at(pc)
        key = pc, bytes(code)
        if key not in self._known:
            accessed = session.disassembler.accessed(pc, code)
            self._known[key] = None if accessed is None else accessed[1]
        written = self._known[key]
        if written is None or written.isdisjoint(names):
            return False
        if self._flow is None:
            return True
        insn = session.disassembler.decode(pc, code)[0]
        return not self._flow.copies(insn, session.cpu).idle

    def _text(self, entry: Entry) -> str:
        """The origin of an entry of the journal's, in words."""
        thread = self._session.machine.threads.get(entry.thread)
        if entry.cause == EntryCause.SYSCALL and thread is not None:
            return call_text(thread)
        signals = [op[1] for op in entry.ops if op[0] == Op.SIGNAL]
        if signals:
            return f"delivery of {sig.name(signals[0])}"
        return WORDS[EntryCause(entry.cause)]


def spellings(arch: Arch, register: Register) -> frozenset[str]:
    """The names by which a decoder may mean a register, or a part of it."""
    names = {register.name, *register.aliases}
    names.update(part for part, (whole, _, _) in arch.slices.items() if whole == register.name)
    names.update(f"{part[:-1]}b" for part in tuple(names) if _LOW_BYTE.match(part))
    if register.name == arch.roles.flags:
        names |= _FLAGS
    vector = _VECTOR.fullmatch(register.name)
    if vector is not None and register.group in ("vector", "float"):
        number = vector[1] or vector[2]
        names.update(f"{kind}{number}" for kind in ("xmm", "ymm", "zmm", *"vqdshb"))
    upper = _UPPER.fullmatch(register.name)
    if upper is not None:
        names.add(upper[1])
    return frozenset(names)
