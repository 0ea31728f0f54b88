"""Goroutines of a Go program, read from its runtime's own structures in the guest's memory.

Words for states and for what a goroutine waits for are the runtime's: they are read from its
tables of texts, so that they are those of the program's own traceback. Nothing in that memory is
believed: lists are bounded, and an address that cannot be read ends or leaves out what stands
behind it.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError
from engine.guest.modules import Module
from engine.image.go_runtime import GoField, GoFile, GoRuntime, go_file
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.session import Session

MOST: Final = 10_000
"""Goroutines of a list."""
_THREADS: Final = 4096
"""Threads of the runtime's list that are followed."""
_SCAN: Final = 0x1000
"""The bit of a status that says that the collector scans the stack (_Gscan)."""
_TEXT: Final = 64
"""Bytes of a text of the runtime."""
_ON_THREAD: Final = frozenset({"running", "syscall"})
"""States in which a thread has the goroutine's registers."""


class Goroutine(Struct, frozen=True):
    """A goroutine.

    Attributes:
        id: its number, which Go prints.
        address: of its structure.
        state: as Go's traceback calls it: "waiting", "running", "dead" ...
        reason: what it waits for, in the same words; "" if it does not wait.
        pc: where it goes on, or where its thread has taken it up.
        sp: the same of its stack.
        fp: of its frame pointer; 0 where the runtime keeps none.
        thread: id of the system's thread that runs it or makes its call; 0 for none.
        locked: it has a thread of its own (runtime.LockOSThread).
        created: return address in the function that has started it; 0 for main's.
        start: address of its function.
        stack: the lowest and the highest address of its stack.
    """

    id: int
    address: int
    state: str
    reason: str
    pc: int
    sp: int
    fp: int
    thread: int
    locked: bool
    created: int
    start: int
    stack: tuple[int, int]

    @property
    def runs(self) -> bool:
        """True if its registers are those of its thread."""
        return self.thread != 0

    @property
    def status(self) -> str:
        """The words that Go's traceback has in brackets."""
        text = self.reason if self.state == "waiting" and self.reason else self.state
        return f"{text}, locked to thread" if self.locked else text


class GoroutineList(Struct, frozen=True):
    """The goroutines of a moment, without dead ones.

    Attributes:
        found: them, in the runtime's order.
        dead: number of those that have ended and are kept for another one.
        left_out: number of those that the runtime tells of and that are not among the others.
        why: why they are left out, in words; "" if none is.
    """

    found: tuple[Goroutine, ...] = ()
    dead: int = 0
    left_out: int = 0
    why: str = ""


class GoThread(Struct, frozen=True):
    """A thread as Go's runtime sees it.

    Attributes:
        running: address of the goroutine that it runs; 0 for none.
        scheduler_stack: the lowest and the highest address of its stack for the scheduler (g0).
        goroutine_stack: the same of the goroutine that it runs.
        pc: where that goes on once the scheduler's stack is left.
        sp: the same of its stack.
        fp: of its frame pointer.
    """

    running: int
    scheduler_stack: tuple[int, int]
    goroutine_stack: tuple[int, int]
    pc: int
    sp: int
    fp: int


class Goroutines:
    """Reads the goroutines of one session's guest, anew each time."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._session = session

    def program(self, space: AddressSpace) -> tuple[Module, GoFile] | None:
        """The Go program in an address space, and what its file tells; None for no such one."""
        main = None if self._session.user_programs is not None else space.modules.main
        if main is None:
            return None
        told = main.image.once(go_file)
        return (main, told) if told.is_go else None

    def listed(self, space: AddressSpace) -> GoroutineList:
        """The goroutines of the program in an address space.

        Raises:
            CommandError: it is no Go program, or its file does not tell where they are.
        """
        return _RuntimeReader(*self._needed(space), space, self._session).listed()

    def one(self, space: AddressSpace, number: int) -> Goroutine:
        """A goroutine by its number.

        Raises:
            CommandError: there is none, or they cannot be read.
        """
        listed = self.listed(space)
        for one in listed.found:
            if one.id == number:
                return one
        more = f" among those that can be read: {listed.why}" if listed.why else ""
        raise CommandError(f"No goroutine {number}{more}.")

    def thread(self, thread: Thread) -> GoThread | None:
        """A thread as the runtime sees it; None where it does not, or cannot be read."""
        program = self.program(thread.space)
        if program is None or program[1].runtime is None:
            return None
        module, told = program
        assert told.runtime is not None, "it has been looked at"
        return _RuntimeReader(module, told.runtime, thread.space, self._session).thread(thread.tid)

    def _needed(self, space: AddressSpace) -> tuple[Module, GoRuntime]:
        program = self.program(space)
        if program is None:
            raise CommandError("There are no goroutines: the program is not one of Go.")
        module, told = program
        if told.runtime is None:
            raise CommandError(
                "Goroutines are not known: the program's debug information does not describe Go's"
                " runtime (a build with -ldflags=-w or -s has none)."
            )
        return module, told.runtime


class _RuntimeReader:
    """Reads the runtime's structures in one address space."""

    def __init__(
        self, module: Module, runtime: GoRuntime, space: AddressSpace, session: Session
    ) -> None:
        self._bias, self._runtime = module.bias, runtime
        self._memory, self._threads = space.memory, session.machine.threads
        self._order = ">" if session.arch.byteorder == "big" else "<"
        self._word = session.arch.bits // 8
        self._texts: dict[tuple[str, int], str] = {}

    # -- memory -----------------------------------------------------------------------------

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        data = self._memory.read(address, count * self._word)
        letter = "Q" if self._word == 8 else "I"
        return struct.unpack(f"{self._order}{count}{letter}", data)

    def _number(self, data: bytes, field: GoField) -> int:
        raw = data[field.offset : field.offset + field.size]
        return int.from_bytes(raw, "big" if self._order == ">" else "little")

    def _text(self, table: str, index: int) -> str:
        """An entry of a table of strings; the number itself where it has none."""
        known = self._texts.get((table, index))
        if known is None:
            known = self._texts[table, index] = self._read_text(table, index)
        return known

    def _read_text(self, table: str, index: int) -> str:
        start, count = self._runtime.texts[table]
        try:
            if index < count:
                at = start + self._bias + index * 2 * self._word
                address, size = self._words(at, 2)
                if 0 < size <= _TEXT:
                    return self._memory.read(address, size).decode(errors="replace")
        except GuestFaultError:
            pass
        return f"unknown({index})"

    # -- goroutines -------------------------------------------------------------------------

    def listed(self) -> GoroutineList:
        """Goroutines that can be read."""
        start = self._runtime.addresses["runtime.allgs"] + self._bias
        try:
            array, count = self._words(start, 2)
        except GuestFaultError:
            return GoroutineList(why="the runtime's list cannot be read")
        found: list[Goroutine] = []
        dead = unread = 0
        seen = min(count, MOST)
        try:
            pointers = self._words(array, seen) if seen else ()
        except GuestFaultError:
            why = f"the runtime's list of {count} at {array:#x} cannot be read"
            return GoroutineList((), 0, count, why)
        for address in dict.fromkeys(pointers):
            one = self._goroutine(address)
            if one is None:
                unread += 1
            elif one.state == "dead":
                dead += 1
            else:
                found.append(one)
        left_out = count - seen + unread
        whys = [f"{unread} cannot be read"] if unread else []
        if count > seen:
            whys.append(f"the first {MOST} of {count} are looked at")
        return GoroutineList(tuple(found), dead, left_out, ", ".join(whys))

    def _goroutine(self, address: int) -> Goroutine | None:
        runtime = self._runtime
        try:
            data = self._memory.read(address, runtime.g_size)
        except GuestFaultError:
            return None
        value = {name: self._number(data, field) for name, field in runtime.g.items()}
        state = self._text("runtime.gStatusStrings", value["atomicstatus"] & ~_SCAN)
        reason = ""
        if state == "waiting":
            reason = self._text("runtime.waitReasonStrings", value["waitreason"])
        thread = self._thread_of(address, value["m"]) if state in _ON_THREAD else 0
        return Goroutine(
            value["goid"],
            address,
            state,
            reason,
            value["sched.pc"],
            value["sched.sp"],
            value.get("sched.bp", 0),
            thread,
            value["lockedm"] != 0,
            value["gopc"],
            value["startpc"],
            (value["stack.lo"], value["stack.hi"]),
        )

    def _thread_of(self, goroutine: int, address: int) -> int:
        """The id of the thread that has a goroutine's registers; 0 where that is not so."""
        found = self._m(address) if address else None
        if found is None or found["curg"] != goroutine or found["procid"] not in self._threads:
            return 0
        return found["procid"]

    # -- threads ----------------------------------------------------------------------------

    def _m(self, address: int) -> dict[str, int] | None:
        try:
            data = self._memory.read(address, self._runtime.m_size)
        except GuestFaultError:
            return None
        return {name: self._number(data, field) for name, field in self._runtime.m.items()}

    def _all_m(self) -> Iterator[Mapping[str, int]]:
        try:
            (address,) = self._words(self._runtime.addresses["runtime.allm"] + self._bias, 1)
        except GuestFaultError:
            return
        seen = set[int]()
        while address and address not in seen and len(seen) < _THREADS:
            seen.add(address)
            found = self._m(address)
            if found is None:
                return
            yield found
            address = found["alllink"]

    def thread(self, tid: int) -> GoThread | None:
        """The thread of an id."""
        for m in self._all_m():
            if m["procid"] != tid:
                continue
            scheduler, running = self._stack(m["g0"]), self._stack(m["curg"])
            if scheduler is None:
                return None
            if running is None:
                return GoThread(0, scheduler[0], (0, 0), 0, 0, 0)
            return GoThread(m["curg"], scheduler[0], *running)
        return None

    def _stack(self, address: int) -> tuple[tuple[int, int], int, int, int] | None:
        """The ends of a goroutine's stack, and where it goes on."""
        try:
            data = self._memory.read(address, self._runtime.g_size) if address else b""
        except GuestFaultError:
            return None
        if not data:
            return None
        value = {name: self._number(data, field) for name, field in self._runtime.g.items()}
        ends = value["stack.lo"], value["stack.hi"]
        return ends, value["sched.pc"], value["sched.sp"], value.get("sched.bp", 0)
