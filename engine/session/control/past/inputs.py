"""Inputs of a recorded run: which bytes of which file a system call has read, and what was there.

Descriptors are known by living through the system calls of the run again, from its start.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.guest.mapping import Mapping
from engine.history.timeline import Moment, Timeline
from engine.session.guest.past import PastSession

_STREAMS: Final = ("standard input", "standard output", "standard error")
_LONGEST: Final = 4096
_AUXV: Final = {
    3: "AT_PHDR",
    4: "AT_PHENT",
    5: "AT_PHNUM",
    6: "AT_PAGESZ",
    7: "AT_BASE",
    8: "AT_FLAGS",
    9: "AT_ENTRY",
    11: "AT_UID",
    12: "AT_EUID",
    13: "AT_GID",
    14: "AT_EGID",
    15: "AT_PLATFORM",
    16: "AT_HWCAP",
    17: "AT_CLKTCK",
    23: "AT_SECURE",
    25: "AT_RANDOM",
    26: "AT_HWCAP2",
    31: "AT_EXECFN",
    33: "AT_SYSINFO_EHDR",
    51: "AT_MINSIGSTKSZ",
}
"""Types of the auxiliary vector (uapi/linux/auxvec.h, asm/auxvec.h)."""
_READS: Final = frozenset(("read", "pread64", "recvfrom"))
_VECTORS: Final = frozenset(("readv", "preadv", "preadv2"))
_MOVES: Final = frozenset(("read", "readv", "write", "writev"))
_DUPLICATES: Final = (0, 1030)
"""F_DUPFD, F_DUPFD_CLOEXEC."""


class _ReadFile(Struct):
    """An open file, as its descriptors share it.

    Attributes:
        name: as the program has called it.
        position: in bytes; None where it has none.
    """

    name: str
    position: int | None = None


_Table = dict[int, _ReadFile]


class RunInputs:
    """Says in words where bytes came from that no instruction has written."""

    def __init__(self, session: PastSession, timeline: Timeline, cut: Callable[[], bool]) -> None:
        """Nothing is lived through yet; `cut` says whether to give up."""
        self._session = session
        self._timeline = timeline
        self._cut = cut
        self._tables: dict[int, _Table] = {}

    # -- system calls -----------------------------------------------------------------------------

    def text(self, address: int, by: str, moment: Moment) -> str:
        """Tell of a byte that a system call has written; the guest stands anywhere afterwards.

        Args:
            address: of the byte.
            by: the call in words.
            moment: in front of it.
        """
        session = self._session
        name, _, rest = by.partition("(")
        if name not in _READS | _VECTORS | {"getrandom"}:
            return by
        self._live(moment)
        if self._cut() or session.machine.exit is not None:
            return by
        arguments = [int(one, 0) for one in rest.rstrip(")").split(", ")]
        if name == "getrandom":
            return f"{by}, byte {address - arguments[0]}"
        index = self._index(name, arguments, address)
        if index is None:
            return by
        file = self._table(session.machine.current.process.pid).get(arguments[0])
        told = f"{by}, byte {index}"
        if file is None:
            return told
        position = file.position
        if name in ("pread64", "preadv", "preadv2"):
            position = arguments[3]
        at = "" if position is None else f" at {position + index:#x}"
        return f"{told}: {file.name}{at}"

    def _index(self, name: str, arguments: list[int], address: int) -> int | None:
        """The number of a byte among those that a call has read."""
        if name in _READS:
            return address - arguments[1]
        done = 0
        for number in range(min(arguments[2], _LONGEST)):
            try:
                raw = self._session.seen.memory.read(arguments[1] + 16 * number, 16)
            except GuestFaultError:
                return None
            base, size = (int.from_bytes(raw[at : at + 8], "little") for at in (0, 8))
            if base <= address < base + size:
                return done + address - base
            done += size
        return None

    def _live(self, moment: Moment) -> None:
        """Live through the run's calls up to a moment, and know its descriptors there."""
        session = self._session
        hooks, machine = session.hooks, session.machine
        before = hooks.syscall_exit

        def leave(number: int, name: str, result: int) -> None:
            before(number, name, result)
            if result >= 0 and machine.current.call.name == name:
                self._seen(machine.current.process.pid, name, result)

        self._tables.clear()
        self._timeline.start()
        hooks.syscall_exit = leave
        try:
            self._timeline.run_to_tick(moment.at, moment.clock, self._cut)
        finally:
            hooks.syscall_exit = before

    def _table(self, pid: int) -> _Table:
        """The descriptors of a process; those of a new one are its parent's."""
        found = self._tables.get(pid)
        if found is None:
            process = self._session.machine.processes.get(pid)
            parent = process.parent if process is not None else None
            if parent is not None and parent.pid != pid:
                found = dict(self._table(parent.pid))
            else:
                found = {number: _ReadFile(name, 0) for number, name in enumerate(_STREAMS)}
            self._tables[pid] = found
        return found

    def _seen(self, pid: int, name: str, result: int) -> None:
        """A call has succeeded."""
        arguments = self._session.machine.current.call.arguments
        table = self._table(pid)
        file = table.get(arguments[0]) if arguments else None
        if name in ("openat", "open", "creat", "openat2"):
            table[result] = _ReadFile(self._string(arguments[name.startswith("openat")]), 0)
        elif name == "close":
            table.pop(arguments[0], None)
        elif name in ("dup", "dup2", "dup3") or (name == "fcntl" and arguments[1] in _DUPLICATES):
            if file is not None:
                table[result] = file
        elif name == "lseek" and file is not None:
            file.position = result
        elif name in _MOVES and file is not None and file.position is not None:
            file.position += result
        elif name in ("socket", "accept", "accept4", "memfd_create", "eventfd2", "epoll_create1"):
            table[result] = _ReadFile(f"{name.rstrip('0123456789')} of descriptor {result}")

    def _string(self, address: int) -> str:
        try:
            found = self._session.seen.memory.peek(address, 1)
            while found[-1] and len(found) < _LONGEST:
                found += self._session.seen.memory.peek(address + len(found), 1)
        except GuestFaultError:
            return "?"
        return found.rstrip(b"\0").decode("utf-8", "backslashreplace")

    # -- the beginning ----------------------------------------------------------------------------

    def beginning(self, address: int, size: int) -> str:
        """Tell of a byte that nothing has written to; the guest stands anywhere afterwards."""
        session = self._session
        mapping = session.seen.memory.find(address)
        if mapping is None:
            return "it is not known"
        if mapping.backing is not None:
            offset = mapping.offset + address - mapping.start
            return f"the file {mapping.name} at {offset:#x}, as it was mapped"
        self._timeline.start()
        first = session.seen.memory.find(address)
        found = self._of_stack(address) if _is_stack(first, session) else ""
        if found:
            return f"the program's start: {found}"
        what = mapping.name or "an anonymous mapping"
        return f"fresh memory of {what}: nothing has written to it"

    def _of_stack(self, address: int) -> str:
        """Tell of a byte that the program found on its stack; "" for nothing that is known."""
        session = self._session
        arch, read = session.arch, session.seen.memory.read
        at = session.cpu.read_register(arch.roles.sp) + arch.linux.start_scratch
        try:
            (count,) = struct.unpack("<Q", read(at, 8))
            if address in range(at, at + 8):
                return "argc"
            at += 8
            for what in ("argv", "envp"):
                number = 0
                while True:
                    (pointer,) = struct.unpack("<Q", read(at, 8))
                    if address in range(at, at + 8):
                        return f"{what}[{number}]"
                    at += 8
                    if not pointer:
                        break
                    text = self._string(pointer)
                    if pointer <= address <= pointer + len(text):
                        return f"{what}[{number}], byte {address - pointer} of {text!r}"
                    number += 1
                    if what == "argv" and number > count:
                        return ""
            while True:
                kind, value = struct.unpack("<2Q", read(at, 16))
                if address in range(at, at + 16):
                    return f"auxiliary vector, {_AUXV.get(kind, f'type {kind}')}"
                if kind in (15, 25, 31) and value <= address < value + 16:
                    return f"what {_AUXV[kind]} points to, byte {address - value}"
                at += 16
                if not kind:
                    return ""
        except GuestFaultError:
            return ""


def _is_stack(mapping: Mapping | None, session: PastSession) -> bool:
    sp = session.cpu.read_register(session.arch.roles.sp)
    return mapping is not None and mapping.start <= sp < mapping.end
