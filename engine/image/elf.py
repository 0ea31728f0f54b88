"""One ELF program or library as a file in memory: headers, segments, sections, addresses.

The rules for what may run stand in `checks`. Sections are for people:
a running program never needs them, so damage there costs names and lines, not the run.
"""

import mmap
import os
import stat
import struct
import time
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from engine.errors import ImageError, NotElfError
from engine.image import checks, headers
from engine.image.damage import Damage
from engine.image.headers import Buffer, Header, Section, Segment

if TYPE_CHECKING:
    from engine.image.kernel.imagecache import KeptKernel

_MAX_SECTIONS = 1 << 18  # a linked file has dozens; bounds what a damaged count can cost
_KERNEL_BIT = 63
_READ_MAX = 64 << 20
"""Bytes of a file that are read; a larger one is mapped."""
_CLOCK_STEP = 50_000_000
"""Nanoseconds in which a file may be changed twice without another time of change."""
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_SONAME = 1, 5, 10, 14


Made = TypeVar("Made")


class ElfImage:
    """An ELF file that Linux would accept as a program, interpreter or library.

    Nothing is read that was not asked for: opening costs the header and the program
    headers. The file is mapped; whoever truncates it during the session takes the mapped
    pages away, as with any debugger.

    Attributes:
        path: of the file on the host, None for bytes that are in none.
        root: the host's directory that is "/" to it, "" for the host's own.
        name: the path or the given name, for messages.
        bits: 32 or 64.
        byteorder: "little" or "big".
        kind: "exec" (fixed addresses) or "dyn" (PIE, interpreter, library).
        machine: e_machine.
        machine_name: its name in elf.h, "EM_0x..." when unknown.
        flags: e_flags.
        entry: e_entry, a link address.
        phoff: file offset of the program headers.
        phentsize: bytes a program header.
        phnum: number of program headers.
        segments: all program headers in the order of the file.
        load_segments: the PT_LOAD ones with p_memsz > 0 or p_filesz > 0, same order.
        interpreter: path in PT_INTERP, None for static programs.
        stack_executable: PF_X of PT_GNU_STACK; None without that header.
        size: bytes of the file. Pages of a segment behind it fault (SIGBUS on Linux).
        layout: struct formats of this class and byte order.
        damage: what does not keep the program from running and was left out.
        kernel: of a kernel module that was laid out: the kernel's file, if that is known.
        kept: of a kernel: where what is derived of it is kept; None = nowhere.
        debug_file: the separate debug file, where it was given; it is not looked for then.
        debug_places: paths where one is looked for, too, and believed by its build-id.
        state: of the file on disk as it was opened, which changes whenever the file does; ""
            if it is in memory only, or so new that another change might not show.
    """

    def __init__(
        self,
        data: Buffer,
        name: str,
        path: str | None = None,
        *,
        runnable: bool = True,
        root: str = "",
        damage: Damage | None = None,
    ) -> None:
        """Parse and check the headers of `data`.

        Args:
            data: the whole file.
            name: for messages.
            path: where it was opened.
            runnable: False for a separate debug file: its program headers describe the
                program it was taken from and not what it stores, so they are not checked.
            root: the host's directory that is "/" to it.
            damage: where to tell what cannot be read, if that is shared with other files.

        Raises:
            ImageError: not ELF, damaged, or nothing that can be loaded.
        """
        self.damage = Damage() if damage is None else damage
        self._once: dict[object, object] = {}
        self.kernel: ElfImage | None = None
        self.kept: KeptKernel | None = None
        self.debug_file: ElfImage | None = None
        self.debug_places: tuple[str, ...] = ()
        self.state = ""
        self.path = path
        self.root = root.rstrip("/")
        self.name = name
        self.size = len(data)
        self._data = data
        ident = data[:16]
        if len(data) == 0:
            raise NotElfError(f"{self.name}: the file is empty")
        if ident[:4] != b"\x7fELF":
            raise NotElfError(f"{self.name}: {headers.foreign(data)}")
        if len(ident) < 16:
            raise self._error(f"ELF header: the file ends after {len(ident)} bytes")
        if ident[4] not in (1, 2):
            raise self._error(f"ELF header: class is {ident[4]}, must be 1 (32) or 2 (64 bits)")
        if ident[5] not in (1, 2):
            raise self._error(f"ELF header: byte order is {ident[5]}, must be 1 or 2")
        self.bits = 32 * ident[4]
        self.byteorder = "little" if ident[5] == 1 else "big"
        self.layout = headers.layout(self.bits, self.byteorder)
        end = 16 + self.layout.header.size
        if len(data) < end:
            raise self._error(f"ELF header: the file ends after {len(data)} of {end} bytes")
        self._header = head = Header(*self.layout.header.unpack(data[16:end]))
        self.machine = head.machine
        self.machine_name = headers.MACHINES.get(head.machine, f"EM_{head.machine:#x}")
        self.flags = head.flags
        self.entry = head.entry
        self.phoff = head.phoff
        self.phentsize = head.phentsize
        self.phnum = head.phnum
        if reason := checks.check_header(head, self.layout, self.size):
            raise self._error(reason)
        self.kind = "exec" if head.type == headers.ET_EXEC else "dyn"
        self.segments = self._parse_segments()
        self.load_segments = tuple(
            s for s in self.segments if s.type == headers.PT_LOAD and (s.memsz or s.filesz)
        )
        if runnable and (reason := checks.check_loads(self.segments, self.bits)):
            raise self._error(reason)
        self.interpreter = self._parse_interpreter() if runnable else None
        self.stack_executable: bool | None = None
        for segment in self.segments:
            if segment.type == headers.PT_GNU_STACK:  # the last one counts, as in Linux
                self.stack_executable = bool(segment.flags & headers.PF_X)

    def once(self, make: "Callable[[ElfImage], Made]") -> Made:
        """The thing that is made of this file: the same one for all who ask, made at first use."""
        found = self._once.get(make)
        if found is None:
            found = self._once.setdefault(make, make(self))  # threads share it
        return cast(Made, found)

    def named(self, name: str) -> "ElfImage":
        """The same file under another name, with all that was made of it, and will be."""
        other = copy(self)
        other.name = name
        return other

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        runnable: bool = True,
        root: str = "",
        damage: Damage | None = None,
    ) -> "ElfImage":
        """Read the regular file `path` and parse its headers.

        Args:
            path: of the file.
            runnable: False to open a separate debug file.
            root: the host's directory that is "/" to it.
            damage: where to tell what cannot be read, if that is shared with other files.

        Raises:
            ImageError: it cannot be read, is no regular file, or no loadable ELF file.
        """
        name = os.fspath(path)
        shown = headers.text(os.fsencode(name))
        try:
            # O_NONBLOCK: opening a FIFO that nobody writes to must not wait.
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise NotElfError(f"{shown}: {reason}") from error
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                what = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
                raise NotElfError(f"{shown}: is {what}; an ELF program is needed")
            data = _load(handle, status.st_size)
        except OSError as error:
            raise NotElfError(f"{shown}: {error.strerror}") from error
        finally:
            os.close(handle)
        image = cls(data, shown, name, runnable=runnable, root=root, damage=damage)
        image.state = disk_state(status)
        return image

    @classmethod
    def from_bytes(
        cls,
        data: Buffer,
        name: str,
        path: str | None = None,
        *,
        runnable: bool = True,
        root: str = "",
        damage: Damage | None = None,
    ) -> "ElfImage":
        """Parse a file that is in memory.

        Args:
            data: the whole file.
            name: for messages.
            path: of the file on the host, if it is in one.
            runnable: False for a separate debug file.
            root: the host's directory that is "/" to it.
            damage: as for `open`.

        Raises:
            ImageError: as `open`.
        """
        return cls(data, name, path, runnable=runnable, root=root, damage=damage)

    def __repr__(self) -> str:
        return f"<ElfImage {self.name} {self.machine_name} {self.kind}>"

    # -- checks ------------------------------------------------------------------

    def _error(self, reason: str) -> ImageError:
        return ImageError(f"{self.name}: {reason}")

    def _parse_segments(self) -> tuple[Segment, ...]:
        step = self.layout.segment.size
        table = self._data[self.phoff : self.phoff + self.phnum * step]
        return tuple(
            self.layout.parse_segment(table[at : at + step]) for at in range(0, len(table), step)
        )

    def _parse_interpreter(self) -> str | None:
        # Linux takes the first one and ignores the others.
        for number, segment in enumerate(self.segments):
            if segment.type == headers.PT_INTERP:
                raw = self.data(segment.offset, min(segment.filesz, checks.PATH_MAX))
                if reason := checks.check_interpreter(segment.filesz, raw):
                    raise self._error(f"program header {number} (PT_INTERP): {reason}")
                return os.fsdecode(raw[: raw.index(0)])
        return None

    def validate_for_task(self, task_size: int, base: int = 0) -> None:
        """Check that every PT_LOAD fits below `task_size` when loaded with bias `base`.

        Args:
            task_size: first address that user space does not have (TASK_SIZE).
            base: what is added to link addresses; 0 for kind "exec".

        Raises:
            ImageError: a segment reaches `task_size` or beyond.
        """
        for number, segment in enumerate(self.segments):
            end = base + segment.vaddr + segment.memsz
            if segment.type == headers.PT_LOAD and end > task_size:
                raise self._error(
                    f"program header {number}: {segment.memsz:#x} bytes at"
                    f" {base + segment.vaddr:#x} end beyond user space ({task_size:#x})"
                )

    # -- bytes and addresses -----------------------------------------------------

    @property
    def file_size(self) -> int:
        """Bytes of the file; the same as `size`, named for comparison with segments."""
        return self.size

    @property
    def buffer(self) -> Buffer:
        """The whole file, for struct and searching; never write, never close."""
        return self._data

    @cached_property
    def low(self) -> int:
        """Lowest link address of a PT_LOAD, not rounded to a page.

        Per-CPU data of kernels, linked at 0 and never there, does not count.
        """
        starts = [segment.vaddr for segment in self.load_segments]
        kernel = any(start >> _KERNEL_BIT for start in starts)
        return min((at for at in starts if at >> _KERNEL_BIT or not kernel), default=0)

    @cached_property
    def high(self) -> int:
        """First link address behind all PT_LOADs, not rounded to a page."""
        return max((s.vaddr + s.memsz for s in self.load_segments), default=0)

    def data(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes of the file at `offset`; fewer where the file ends."""
        if offset < 0 or size <= 0 or offset >= self.size:
            return b""
        return self._data[offset : min(offset + size, self.size)]

    def let_go(self) -> None:
        """Give the pages of a file that was read as a whole back to the host."""
        if isinstance(self._data, mmap.mmap):
            self._data.madvise(mmap.MADV_DONTNEED)

    def read_vaddr(self, vaddr: int, size: int) -> bytes:
        """Read as the program would right after loading, before relocation.

        Like os.pread this returns fewer bytes than asked for where the segment, or the
        file below it, ends: zeros appear only for p_memsz beyond p_filesz. The caller
        bounds `size`; a damaged file may claim terabytes of bss.
        """
        segment = self._segment_at(vaddr)
        if segment is None:
            return b""
        skip = vaddr - segment.vaddr
        size = min(size, segment.memsz - skip)
        stored = max(0, min(size, segment.filesz - skip))
        found = self.data(segment.offset + skip, stored)
        return found if len(found) < stored else found + bytes(size - stored)

    def file_offset(self, vaddr: int) -> int | None:
        """The file offset of the byte at a link address; None for bss and unmapped ones."""
        segment = self._segment_at(vaddr)
        if segment is None or vaddr - segment.vaddr >= segment.filesz:
            return None
        return segment.offset + vaddr - segment.vaddr

    def vaddr_of(self, offset: int) -> int | None:
        """Link address of a stored byte; an executable segment is preferred.

        That is how a uprobe's file offset becomes an address: some linkers map one page
        of the file twice.
        """
        found: int | None = None
        for segment in self.load_segments:
            if segment.offset <= offset < segment.offset + segment.filesz:
                vaddr = segment.vaddr + offset - segment.offset
                if segment.flags & headers.PF_X:
                    return vaddr
                found = vaddr if found is None else found
        return found

    def _segment_at(self, vaddr: int) -> Segment | None:
        # A later segment is mapped over an earlier one.
        for segment in reversed(self.load_segments):
            if segment.vaddr <= vaddr < segment.vaddr + segment.memsz:
                return segment
        return None

    # -- sections ----------------------------------------------------------------

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All section headers, index 0 included; empty when absent or damaged."""
        head = self._header
        if head.shoff == 0:
            return ()
        form = self.layout.section
        if head.shentsize != form.size:
            return self._no_sections(f"e_shentsize is {head.shentsize}, must be {form.size}")
        first = self.data(head.shoff, form.size)
        if len(first) < form.size:
            return self._no_sections(f"e_shoff {head.shoff:#x} is outside the file")
        # Section 0 holds what does not fit the header's 16 bits (gABI, chapter 4).
        zero = form.unpack(first)
        count = head.shnum or zero[5]
        names_at = zero[6] if head.shstrndx == 0xFFFF else head.shstrndx
        if count > _MAX_SECTIONS or head.shoff + count * form.size > self.size:
            return self._no_sections(f"{count} headers at {head.shoff:#x} are outside the file")
        rows = list(form.iter_unpack(self.data(head.shoff, count * form.size)))
        start = end = 0
        if 0 < names_at < count:
            start, end = rows[names_at][4], rows[names_at][4] + rows[names_at][5]
        if not 0 < end <= self.size:
            self.damage.note(f"{self.name}: sections have no names: no usable .shstrtab")
            start = end = 0
        return tuple(Section(self._section_name(start, end, r[0]), *r[1:]) for r in rows)

    def _section_name(self, start: int, end: int, offset: int) -> str:
        return headers.text(headers.cstring(self._data, start + offset, end) or b"")

    def _no_sections(self, reason: str) -> tuple[Section, ...]:
        self.damage.note(f"{self.name}: section headers: {reason}")
        return ()

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def section_data(self, section: Section) -> bytes:
        """The stored bytes of a section (compressed ones as they are); b"" for NOBITS."""
        if section.type == headers.SHT_NOBITS:
            return b""
        return self.data(section.offset, section.size)

    # -- notes and the dynamic section -------------------------------------------

    @cached_property
    def build_id(self) -> str | None:
        """The GNU build-id in lower-case hex, from PT_NOTE or .note.gnu.build-id."""
        areas = [(s.offset, s.filesz) for s in self.segments if s.type == headers.PT_NOTE]
        if section := self.section(".note.gnu.build-id"):
            areas.append((section.offset, section.size))
        for offset, size in areas:
            found = headers.gnu_build_id(self.data(offset, size), self.layout.order)
            if found is not None:
                return found
        return None

    @cached_property
    def identity(self) -> str:
        """The build-id; a hash of the file, in hex as well, where it has none."""
        if self.build_id is not None:
            return self.build_id
        import hashlib  # with it comes OpenSSL: 4 MB

        return hashlib.sha1(self.data(0, self.size), usedforsecurity=False).hexdigest()

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int], ...]:
        """The (tag, value) pairs of PT_DYNAMIC up to DT_NULL; empty for static files."""
        word = self.layout.word
        for segment in self.segments:
            if segment.type == headers.PT_DYNAMIC:
                raw = self.data(segment.offset, min(segment.filesz, 1 << 20))
                raw = raw[: len(raw) // (2 * word.size) * 2 * word.size]
                pairs = list(struct.iter_unpack(self.layout.order + 2 * word.format[-1], raw))
                stop = next((i for i, pair in enumerate(pairs) if pair[0] == 0), len(pairs))
                return tuple((tag, value) for tag, value in pairs[:stop])
        return ()

    def dynamic_value(self, tag: int) -> int | None:
        """The value of the first dynamic entry with that DT_* tag."""
        return next((value for key, value in self.dynamic if key == tag), None)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Names of the libraries that the dynamic loader shall load (DT_NEEDED)."""
        names = (self._dynamic_string(value) for tag, value in self.dynamic if tag == _DT_NEEDED)
        return tuple(name for name in names if name)

    @cached_property
    def soname(self) -> str | None:
        """The library's own name (DT_SONAME)."""
        value = self.dynamic_value(_DT_SONAME)
        return None if value is None else self._dynamic_string(value)

    def _dynamic_string(self, index: int) -> str | None:
        table = self.file_offset(self.dynamic_value(_DT_STRTAB) or 0)
        if table is None:
            return None
        end = min(table + (self.dynamic_value(_DT_STRSZ) or 0), table + index + checks.PATH_MAX)
        raw = headers.cstring(self._data, table + index, min(end, self.size))
        return None if raw is None else os.fsdecode(raw)


def large_content(handle: int, size: int) -> Buffer:
    """The content of an open file that is too large to be read; nothing for any other."""
    return mmap.mmap(handle, size, access=mmap.ACCESS_READ) if size > _READ_MAX else b""


def _load(handle: int, size: int) -> Buffer:
    """The content of an open file.

    A mapped file that is cut short under us (`cp new guest` does it) would kill the process, so
    that only what is too large to be read at once is mapped.
    """
    if found := large_content(handle, size):
        return found
    pieces, left = [], size
    while left and (piece := os.read(handle, left)):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def disk_state(status: os.stat_result) -> str:
    """A file's state on disk; "" if the clock of its times may not tell a change from now on."""
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - changed < _CLOCK_STEP:
        return ""
    found = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return "-".join(map(str, found))
