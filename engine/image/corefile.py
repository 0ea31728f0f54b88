"""Core files of Linux processes: what the kernel and gcore leave of one (fs/binfmt_elf.c).

A core is an ELF file whose notes have the registers of each thread, the signal that ended the
process and the files that it had mapped, and whose segments have its memory, as much as was
dumped.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from engine.errors import ImageError
from engine.image import headers
from engine.image.headers import Header, Segment

ET_CORE: Final = 4
NT_PRSTATUS, NT_PRFPREG, NT_PRPSINFO, NT_AUXV = 1, 2, 3, 6
NT_SIGINFO, NT_FILE = 0x53494749, 0x46494C45
AT_PHDR, AT_ENTRY, AT_SYSINFO_EHDR = 3, 9, 33
_OWNERS: Final = (b"CORE", b"LINUX")
_HEAD: Final = struct.Struct("<HHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_IDENT: Final = b"\x7fELF\x02\x01"
_MANY: Final = 0xFFFF
"""PN_XNUM: the number of program headers stands in the first section header."""
_SEGMENTS_MOST: Final = 1 << 20
_THREADS_MOST: Final = 1 << 16
STATUS: Final = struct.Struct("<iiihxxQQiiii64x")
"""The begin of struct elf_prstatus, before its registers: signal number, code, errno, the signal
that is being handled, pending and held ones, ids of thread, parent, group and session, times."""
PROGRAM: Final = struct.Struct("<bcbb4xQIIiiii16s80s")
"""Struct elf_prpsinfo: state, its letter, whether it is a zombie, nice value, flags, user, group,
ids of process, parent, group and session, name, arguments."""


class CoreThread(Struct):
    """A thread as it stood.

    Attributes:
        tid: its id.
        signal: the signal that it was handling, 0 for none.
        registers: the general registers, as ptrace has them.
        sets: other register sets by number.
    """

    tid: int
    signal: int
    registers: bytes
    sets: dict[int, bytes] = field(default_factory=dict)


class CoreMapping(Struct, frozen=True):
    """A part of a file that was mapped.

    Attributes:
        start: address of its first byte.
        end: behind the last one.
        offset: in the file.
        path: of the file.
    """

    start: int
    end: int
    offset: int
    path: str


class CoreFile(Struct):
    """A core.

    Attributes:
        path: of the file.
        machine: e_machine.
        segments: of memory.
        threads: the one that the signal came to first.
        mappings: files that were mapped.
        auxv: the auxiliary vector.
        pid: id of the process, 0 if it is not told.
        comm: its name.
        arguments: the begin of its command line.
        siginfo: of the signal that ended it; empty if it is not told.
        data: the file.
        remarks: what is missing of it, in words.
    """

    path: str
    machine: int
    segments: tuple[Segment, ...]
    threads: tuple[CoreThread, ...]
    mappings: tuple[CoreMapping, ...]
    auxv: dict[int, int]
    pid: int
    comm: bytes
    arguments: bytes
    siginfo: bytes
    data: mmap.mmap | bytes
    remarks: tuple[str, ...] = ()

    @property
    def signal(self) -> int:
        """Number of the signal that ended the process, 0 for none (a core of gcore)."""
        if self.threads[0].signal or len(self.siginfo) < 4:
            return self.threads[0].signal
        return int(struct.unpack_from("<i", self.siginfo)[0])

    def mapped(self, address: int) -> CoreMapping | None:
        """The file that was mapped at an address."""
        return next((one for one in self.mappings if one.start <= address < one.end), None)


def is_core(path: str) -> bool:
    """True for a readable file that is an ELF core; whoever opens it hears what is wrong."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(18)
    except OSError:
        return False
    if head[:4] != b"\x7fELF" or len(head) < 18:
        return False
    return int.from_bytes(head[16:18], "little" if head[5] == 1 else "big") == ET_CORE


def open_core(path: str) -> CoreFile:
    """Read a core.

    Raises:
        ImageError: it cannot be read, is none, or is damaged.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ImageError(f"{path}: {reason}") from error

    def wrong(what: str) -> ImageError:
        return ImageError(f"{path}: {what}")

    if data[:6] != _IDENT:
        if data[:4] == _IDENT[:4]:
            raise wrong("a core of a program that is not 64-bit little-endian")
        raise wrong("no core file")
    if len(data) < 16 + _HEAD.size:
        raise wrong(f"ELF header: the file ends after {len(data)} bytes")
    head = Header(*_HEAD.unpack_from(data, 16))
    if head.type != ET_CORE:
        raise wrong("no core file: an ELF file of another type")
    segments = tuple(_segments(data, head, wrong))
    notes = [each for each in segments if each.type == headers.PT_NOTE]
    loads = tuple(each for each in segments if each.type == headers.PT_LOAD)
    remarks: list[str] = []
    found = _Notes()
    for segment in notes:
        area = data[segment.offset : segment.offset + segment.filesz]
        if len(area) < segment.filesz:
            remarks.append(f"{path}: notes are cut off: the file ends in them")
        found.read(area)
    if not found.threads:
        raise wrong("no thread's registers are in it: it is damaged, or cut off")
    missing = sum(
        max(each.offset + each.filesz - max(len(data), each.offset), 0) for each in loads
    )
    if missing:
        remarks.append(f"{path}: cut off: {missing} bytes of memory are missing")
    remarks += [f"{path}: {text}" for text in found.remarks]
    pid = found.pid or found.threads[0].tid
    return CoreFile(
        path,
        head.machine,
        loads,
        tuple(found.threads),
        tuple(found.mappings),
        found.auxv,
        pid,
        found.comm,
        found.arguments,
        found.siginfo,
        data,
        tuple(remarks),
    )


def _segments(data: mmap.mmap | bytes, head: Header, wrong: object) -> Iterator[Segment]:
    assert callable(wrong)
    count = head.phnum
    if count == _MANY:
        if head.shoff + 48 > len(data):
            raise wrong("section header: it lies outside of the file")
        (count,) = struct.unpack_from("<I", data, head.shoff + 44)
    if not count:
        raise wrong("it has no program headers")
    if head.phentsize != _SEGMENT.size or count > _SEGMENTS_MOST:
        raise wrong(f"program headers: {count} of {head.phentsize} bytes cannot be")
    if head.phoff + count * _SEGMENT.size > len(data):
        raise wrong("program headers: the file ends in them")
    for at in range(count):
        segment = Segment(*_SEGMENT.unpack_from(data, head.phoff + at * _SEGMENT.size))
        if segment.filesz > segment.memsz and segment.type == headers.PT_LOAD:
            raise wrong(f"segment {at}: more bytes in the file than in memory")
        if segment.vaddr + segment.memsz > 1 << 64:
            raise wrong(f"segment {at}: it ends behind the last address")
        yield segment


class _Notes:
    """The notes of a core, read one after another."""

    def __init__(self) -> None:
        self.threads: list[CoreThread] = []
        self.mappings: list[CoreMapping] = []
        self.auxv: dict[int, int] = {}
        self.pid = 0
        self.comm = self.arguments = self.siginfo = b""
        self.remarks: list[str] = []

    def read(self, area: bytes) -> None:
        """Read a segment of notes."""
        for owner, kind, desc in headers.notes(area, "<"):
            if owner not in _OWNERS:
                continue
            if kind == NT_PRSTATUS and owner == b"CORE":
                self._status(desc)
            elif kind == NT_PRPSINFO:
                self._program(desc)
            elif kind == NT_SIGINFO:
                self.siginfo = self.siginfo or desc  # gdb writes one for each thread
            elif kind == NT_AUXV:
                words = struct.unpack(f"<{len(desc) // 8}Q", desc[: len(desc) & -8])
                self.auxv = dict(zip(words[::2], words[1::2], strict=False))
            elif kind == NT_FILE:
                self._files(desc)
            elif self.threads:
                self.threads[-1].sets[kind] = desc

    def _status(self, desc: bytes) -> None:
        if len(desc) < STATUS.size + 8:
            self.remarks.append("a thread's registers are cut off and left out")
            return
        if len(self.threads) >= _THREADS_MOST:
            return
        fields = STATUS.unpack_from(desc)
        # Behind the registers a word says whether there are floating-point ones.
        self.threads.append(CoreThread(fields[6], fields[3], desc[STATUS.size : -8]))

    def _program(self, desc: bytes) -> None:
        if len(desc) >= PROGRAM.size:
            fields = PROGRAM.unpack_from(desc)
            self.pid = fields[7]
            self.comm = fields[11].split(b"\0")[0]
            self.arguments = fields[12].split(b"\0")[0].rstrip(b" ")

    def _files(self, desc: bytes) -> None:
        if len(desc) < 16:
            return
        count, page = struct.unpack_from("<QQ", desc)
        names_at = 16 + 24 * count
        if names_at > len(desc):
            self.remarks.append("the list of mapped files is damaged")
            return
        names = desc[names_at:].split(b"\0")
        for at in range(min(count, len(names))):
            start, end, offset = struct.unpack_from("<QQQ", desc, 16 + 24 * at)
            name = names[at].decode(errors="surrogateescape")
            if start < end:
                self.mappings.append(CoreMapping(start, end, offset * page, name))
