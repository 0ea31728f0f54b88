"""A guest's process as a core file, as gcore writes one: gdb and other debuggers open it.

Code is written as the program has it, without what probes have planted; memory that was never
touched is a hole in the file.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from engine.arch.ptrace import NT_PRSTATUS, PtraceAbi
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import CommandError, GuestFaultError
from engine.guest.mapping import Mapping
from engine.image.corefile import (
    ET_CORE,
    NT_AUXV,
    NT_FILE,
    NT_PRFPREG,
    NT_PRPSINFO,
    NT_SIGINFO,
    PROGRAM,
    STATUS,
)
from engine.linux.thread import Thread
from engine.session.guest.session import Session

_PT_LOAD, _PT_NOTE = 1, 4
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SEGMENTS_MOST: Final = 0xFFFE
_PIECE: Final = 1 << 20
_SIGINFO: Final = 128


def write_core(session: Session, path: str, signal: int, siginfo: bytes = b"") -> None:
    """Write the process of the thread that runs, as it stands.

    Args:
        session: the guest, which stands.
        path: of the file.
        signal: that has stopped it, told as the one that ended it.
        siginfo: of that signal; made up if empty.

    Raises:
        CommandError: the file cannot be written, or the architecture has no cores.
    """
    ptrace = session.arch.linux.ptrace
    abi = None if ptrace is None else ptrace()
    if abi is None:
        raise CommandError(f"cores of {session.arch.name} cannot be written")
    mappings = [one for one in session.seen.memory.mappings if _is_dumped(one)]
    if len(mappings) > _SEGMENTS_MOST:
        raise CommandError(f"{path}: {len(mappings)} mappings are more than a core file can have")
    if os.path.exists(path) and not os.path.isfile(path):  # which a file would take the place of
        raise CommandError(f"{path}: not a regular file")
    notes = b"".join(_notes(session, abi, signal, siginfo, mappings))
    temporary = f"{path}.new"
    try:
        with open(temporary, "wb") as file:
            _write(session, file, notes, mappings)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise CommandError(f"{path}: {error.strerror}") from error


def _is_dumped(mapping: Mapping) -> bool:
    """True for memory of the program's, and for the code that signals return by."""
    return not mapping.reserved or bool(mapping.perms & EXECUTE)


def _write(session: Session, file: BinaryIO, notes: bytes, mappings: list[Mapping]) -> None:
    memory = session.seen.memory
    sizes = [one.size if one.perms and memory.resident_of(one) else 0 for one in mappings]
    front = _HEADER.size + _SEGMENT.size * (1 + len(mappings))
    at = -(-(front + len(notes)) // PAGE) * PAGE
    table = [_SEGMENT.pack(_PT_NOTE, 0, front, 0, 0, len(notes), 0, 4)]
    places: list[int] = []
    for mapping, size in zip(mappings, sizes, strict=True):
        flags = 4 * bool(mapping.perms & READ) | 2 * bool(mapping.perms & WRITE)
        flags |= bool(mapping.perms & EXECUTE)
        table.append(
            _SEGMENT.pack(_PT_LOAD, flags, at, mapping.start, 0, size, mapping.size, PAGE)
        )
        places.append(at)
        at += size
    image = session.image
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    file.write(
        _HEADER.pack(
            *(ident, ET_CORE, image.machine, 1, 0, _HEADER.size, 0, image.flags),
            *(_HEADER.size, _SEGMENT.size, len(table), 0, 0, 0),
        )
    )
    file.write(b"".join(table) + notes)
    for mapping, size, place in zip(mappings, sizes, places, strict=True):
        for skip in range(0, size, _PIECE):
            data = _content(session, mapping.start + skip, min(_PIECE, size - skip))
            for page in range(0, len(data), PAGE):
                piece = data[page : page + PAGE]
                if piece.count(0) < len(piece):
                    file.seek(place + skip + page)
                    file.write(piece)
    file.truncate(at)


def _content(session: Session, address: int, size: int) -> bytes:
    """Memory as the program has it; what cannot be read is zero."""
    memory, hooks = session.seen.memory, session.seen.hooks
    try:
        return hooks.original(address, memory.peek(address, size))
    except GuestFaultError:
        pass
    pages: list[bytes] = []
    for at in range(address, address + size, PAGE):
        try:
            pages.append(hooks.original(at, memory.peek(at, PAGE)))
        except GuestFaultError:
            pages.append(bytes(PAGE))
    return b"".join(pages)


def _note(owner: bytes, kind: int, desc: bytes) -> bytes:
    name = owner + b"\0"
    head = struct.pack("<III", len(name), len(desc), kind)
    return head + name + bytes(-len(name) & 3) + desc + bytes(-len(desc) & 3)


def _notes(
    session: Session, abi: PtraceAbi, signal: int, siginfo: bytes, mappings: list[Mapping]
) -> Iterator[bytes]:
    machine = session.machine
    current = machine.current
    process = current.process
    others = [one for one in process.threads.values() if one is not current]
    yield _thread(session, abi, current, signal)[0]
    comm, arguments = current.comm[:15], b" ".join(session.seen.argv)[:79]
    ids = (process.uid, process.gid, process.pid, process.ppid, process.group, process.session)
    program = PROGRAM.pack(0, b"R", 0, current.nice, 0, *ids, comm, arguments)
    yield _note(b"CORE", NT_PRPSINFO, program)
    told = siginfo or struct.pack("<i", signal)
    yield _note(b"CORE", NT_SIGINFO, told.ljust(_SIGINFO, b"\0")[:_SIGINFO])
    start = session.seen.start
    yield _note(b"CORE", NT_AUXV, start.auxv if start is not None else b"")
    yield _note(b"CORE", NT_FILE, _files(mappings))
    yield _thread(session, abi, current, signal)[1]
    for thread in others:
        with session.kernel.visit(thread):
            yield from _thread(session, abi, thread, signal)


def _thread(session: Session, abi: PtraceAbi, thread: Thread, signal: int) -> tuple[bytes, bytes]:
    """The notes of a thread whose registers the processor holds: its status, other sets."""
    registers = _DumpedRegisters(session, thread)
    process = thread.process
    abi.show(session.cpu)
    ids = (thread.tid, process.ppid, process.group, process.session)
    status = STATUS.pack(signal, 0, 0, signal, 0, 0, *ids)
    general = abi.sets[NT_PRSTATUS].read(registers)
    head = _note(b"CORE", NT_PRSTATUS, status + general + struct.pack("<ii", 1, 0))
    rest = [
        _note(b"CORE" if number == NT_PRFPREG else b"LINUX", number, found.read(registers))
        for number, found in abi.sets.items()
        if number != NT_PRSTATUS
    ]
    return head, b"".join(rest)


class _DumpedRegisters:
    """Registers of a thread that the processor holds, by the program's own addresses."""

    def __init__(self, session: Session, thread: Thread) -> None:
        self._session = session
        self.original = thread.call.number if thread.wait is not None else -1

    def read_register(self, name: str) -> int:
        """One of them."""
        session = self._session
        value = session.cpu.read_register(name)
        return session.seen.hooks.original_pc(value) if name == session.arch.roles.pc else value

    def write_register(self, name: str, value: int) -> None:
        """Set one."""
        self._session.cpu.write_register(name, value)


def _files(mappings: list[Mapping]) -> bytes:
    """The list of mapped files."""
    files = [one for one in mappings if one.name.startswith("/")]
    table = b"".join(struct.pack("<QQQ", one.start, one.end, one.offset // PAGE) for one in files)
    names = b"".join(one.name.encode(errors="surrogateescape") + b"\0" for one in files)
    return struct.pack("<QQ", len(files), PAGE) + table + names
