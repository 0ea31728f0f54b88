"""The threads and processes of a guest as views: a tree, what each waits for, and where."""

import struct
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec.structs import replace

from engine.errors import GuestFaultError
from engine.linux import signals
from engine.linux.ending import Exit
from engine.linux.futex import TID_MASK
from engine.linux.process import Process
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.session.protocol.views import ThreadView

_LOCATED: Final = 256
"""Threads whose place is looked up, the first ones of the list."""
_MOST: Final = 4096
"""Rows of a list."""
_OWNER_AT: Final = 8
"""Offset of the owner's id in glibc's mutexes (struct __pthread_mutex_s)."""
_FUTEX_WAITS: Final = frozenset({0, 6, 9, 11, 13})
_PI: Final = frozenset({6, 13})
_OPERATION: Final = 0x7F
_CHILD_CALLS: Final = frozenset({"wait4", "waitid"})
_FILE_CALLS: Final = frozenset(
    {"read", "write", "readv", "writev", "pread64", "pwrite64", "accept", "accept4", "recvfrom"}
    | {"recvmsg", "sendto", "sendmsg", "connect", "flock", "fcntl"}
)
"""Calls whose first argument is a descriptor."""
_SELECTS: Final = frozenset({"select", "_newselect", "pselect6"})
_READY_CALLS: Final = _SELECTS | {"poll", "ppoll"}
"""Calls that wait for descriptors to be ready."""
_WATCHED: Final = 1024
"""Descriptors that are looked at."""
_NAMED: Final = 3
"""Descriptors that are named."""
_POLLIN: Final = 1


class ThreadViews:
    """Makes the views of all threads of one session."""

    def __init__(self, session: Session) -> None:
        """Nothing is looked at yet."""
        self._session = session

    def listed(
        self, shown: Thread | None, places: Mapping[int, tuple[int, str]]
    ) -> tuple[ThreadView, ...]:
        """All threads: processes by their parents, below each its threads, then its children.

        Args:
            shown: the thread that panes show.
            places: of threads, see `places`.
        """
        found: list[ThreadView] = []
        machine = self._session.machine
        known = machine.processes.values()
        roots = [p for p in known if p.parent is None or p.parent.pid not in machine.processes]
        for process in sorted(roots, key=lambda one: one.pid):
            for view in self._tree(process, 0, shown):
                pc, location = places.get(view.tid, (0, ""))
                found.append(replace(view, pc=pc, location=location) if pc else view)
                if len(found) >= _MOST:
                    return tuple(found)
        return tuple(found)

    def _tree(self, process: Process, depth: int, shown: Thread | None) -> Iterator[ThreadView]:
        threads = sorted(process.threads.values(), key=lambda one: one.tid)
        if process.pid not in process.threads:
            yield self._ended(process, depth)
        for thread in threads:
            yield self._view(thread, depth + (thread.tid != process.pid), shown)
        for child in sorted(process.children.values(), key=lambda one: one.pid):
            yield from self._tree(child, depth + 1, shown)

    def _ended(self, process: Process, depth: int) -> ThreadView:
        """A process whose first thread has ended: a zombie, or others of it run on."""
        comm = self._session.machine.comms.get(process.pid, b"").decode(errors="replace")
        waits = _ended(process.exit) if process.exit is not None else "others of it run on"
        ticks = process.last.ticks()
        ids = process.pid, process.pid, process.ppid
        return ThreadView(*ids, depth, comm, "Z", waits=waits, ticks=ticks)

    def _view(self, thread: Thread, depth: int, shown: Thread | None) -> ThreadView:
        process, machine = thread.process, self._session.machine
        call, waits, holder = "", "", 0
        if thread.wait is not None:
            call = thread.call.name
            waits, holder = self.waits(thread)
        return ThreadView(
            thread.tid,
            process.pid,
            process.ppid,
            depth,
            thread.comm.decode(errors="replace"),
            _state(thread),
            call,
            waits,
            holder,
            ticks=thread.ticks(),
            runs=thread is machine.current,
            shown=thread is shown,
        )

    # -- what they wait for ---------------------------------------------------------------

    def waits(self, thread: Thread) -> tuple[str, int]:
        """The object of a thread's wait, in words, and the id of the thread that has it; 0: none.

        The thread waits.
        """
        call = thread.call
        if call.name == "futex" and call.arguments[1] & _OPERATION in _FUTEX_WAITS:
            return self._futex(thread, call.arguments[0], call.arguments[1] & _OPERATION)
        if call.name in _CHILD_CALLS:
            return self._child(call.name, call.arguments), 0
        if call.name in _FILE_CALLS:
            return _file(thread, call.arguments[0] & 0xFFFFFFFF), 0
        if call.name in _READY_CALLS:
            files = self._watched(thread, call.name in _SELECTS, call.arguments)
            if files:
                return ", ".join(_file(thread, fd) for fd in files), 0
        if thread.wait is not None and thread.wait.uninterruptible:
            return "its child to end or to begin a program", 0
        if thread.wait is not None and thread.wait.deadline is not None:
            left = max(thread.wait.deadline - thread.clock.peek(), 0)
            return f"{left / 1e9:g} s", 0
        return "", 0

    def _watched(self, thread: Thread, select: bool, arguments: tuple[int, ...]) -> list[int]:
        """The descriptors that poll(2) or select(2) waits for input on, the first few."""
        arch = self._session.arch
        order: Literal["little", "big"] = "big" if arch.byteorder == "big" else "little"
        word = arch.bits // 8
        found: list[int] = []
        try:
            if select:
                count, address = arguments[0] & 0xFFFFFFFF, arguments[1]
                if not address:
                    return []
                for number in range(0, min(count, _WATCHED), 8 * word):
                    data = thread.memory.read(address + number // 8, word)
                    bits = int.from_bytes(data, order)
                    found += [number + bit for bit in range(8 * word) if bits >> bit & 1]
                return found[:_NAMED]
            for number in range(min(arguments[1], _WATCHED)):
                entry = thread.memory.read(arguments[0] + 8 * number, 8)
                fd = int.from_bytes(entry[:4], order, signed=True)
                if fd >= 0 and int.from_bytes(entry[4:6], order) & _POLLIN:
                    found.append(fd)
        except GuestFaultError:
            return []
        return found[:_NAMED]

    @staticmethod
    def _child(name: str, arguments: tuple[int, ...]) -> str:
        pid = arguments[0] if name == "wait4" else arguments[1]
        pid = (pid & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
        named = pid > 0 and (name == "wait4" or arguments[0] == 1)
        return f"child {pid}" if named else "a child"

    def _futex(self, thread: Thread, address: int, operation: int) -> tuple[str, int]:
        """The word that a thread waits for, by its symbol, and the holder where that is known."""
        location = str(thread.space.modules.locate(address))
        text = f"{address:#x}" if location == "?" else location.removesuffix("+0x0")
        for other in thread.process.threads.values():
            if other.clear_child_tid == address:
                return f"the end of {other.tid}", 0
        return text, self._holder(thread, address, operation)

    def _holder(self, thread: Thread, address: int, operation: int) -> int:
        """The id of the thread that holds a lock; 0 where the word does not tell.

        Locks with priority inheritance and robust ones have it in the word itself (futex(2)),
        glibc's mutexes two words behind a word that is 2.
        """
        threads, word = self._session.machine.threads, _word(thread, address)
        owner = word & TID_MASK
        if owner in threads or operation in _PI:
            return owner if owner != thread.tid else 0
        if word == 2:
            owner = _word(thread, address + _OWNER_AT)
            if owner in thread.process.threads and owner != thread.tid:
                return owner
        return 0

    # -- where they are -------------------------------------------------------------------

    def places(self, threads: list[Thread]) -> dict[int, tuple[int, str]]:
        """The program counter of threads and its text, by their ids, of a guest that stands."""
        session, found = self._session, {}
        pc = session.arch.roles.pc
        for thread in threads[:_LOCATED]:
            with session.kernel.visit(thread):
                at = thread.hooks.original_pc(session.cpu.read_register(pc))
            found[thread.tid] = at, str(thread.space.modules.locate(at))
        return found


def _word(thread: Thread, address: int) -> int:
    try:
        return int(struct.unpack("<I", thread.memory.read(address, 4))[0])
    except GuestFaultError:
        return 0


def _state(thread: Thread) -> str:
    """The letter for what a thread does, as in /proc/PID/stat."""
    if thread.stopped:
        return "t" if thread.tracee is not None and thread.tracee.stopped else "T"
    if thread.wait is None:
        return "R"
    return "D" if thread.wait.uninterruptible else "S"


def _ended(end: Exit) -> str:
    """The end of a process in words."""
    if end.signal:
        return f"killed by {signals.name(end.signal)}"
    return f"exited with {end.code or 0}"


def _file(thread: Thread, fd: int) -> str:
    """A descriptor and the file behind it, as /proc/PID/fd names it."""
    file = thread.files.peek(fd)
    return f"fd {fd}" if file is None else f"fd {fd} {file.describe().decode(errors='replace')}"
