"""A guest that is a core file: the memory, threads and registers of a process that is no more.

Nothing of it moves. What was not dumped is read from the file that was mapped there, if the
guest's tree has it; the program itself is the GUEST that was given, wherever the process had it.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.ptrace import NT_PRFPREG, ORIGINAL, PtraceAbi
from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import ImageError
from engine.guest.memory import MappingError, Memory, page_up
from engine.guest.modules import Module, Modules
from engine.image import ElfImage
from engine.image.corefile import (
    AT_ENTRY,
    AT_PHDR,
    AT_SYSINFO_EHDR,
    CoreFile,
    CoreMapping,
    CoreThread,
)
from engine.linux import loader
from engine.linux.process import Process
from engine.linux.thread import Thread

_PF_X, _PF_W, _PF_R = 1, 2, 4
_VDSO: Final = "[vdso]"
_VDSO_MOST: Final = 16 * PAGE


class _Bytes:
    """A stretch of bytes that a mapping shows, at the offsets that the mapping has."""

    writable = False

    def __init__(self, read: Callable[[int, int], bytes], first: int, size: int) -> None:
        """`read` reads from a place on; `first` is the mapping's offset of the first byte."""
        self._read = read
        self._first = first
        self.size = first + size
        self.identity = self

    def read_at(self, offset: int, size: int) -> bytes:
        """Some of them."""
        at = offset - self._first
        skipped = max(-at, 0)
        size = min(size, self.size - offset)
        if size <= skipped:
            return b""
        return bytes(skipped) + self._read(at + skipped, size - skipped)

    def write_back(self, offset: int, data: bytes) -> None:
        """Nothing reaches a core."""

    def host_descriptor(self) -> int | None:
        """The offsets are not the file's."""
        return None

    def contents(self) -> None:
        """Return None: pages hold copies of the content only."""


class _CoreRegisters:
    """The processor's registers as a register set's writer wants them."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self.original = -1

    def read_register(self, name: str) -> int:
        """One of them."""
        return self._cpu.read_register(name)

    def write_register(self, name: str, value: int) -> None:
        """Set one."""
        self._cpu.write_register(name, value)


class CorePlace(Struct, frozen=True):
    """The objects that a core is loaded into.

    Attributes:
        arch: of the program.
        cpu: the processor.
        memory: its memory, empty.
        modules: the files in it.
        image: GUEST.
        path: its guest path.
        open_image: a file of the guest's tree; None for none.
    """

    arch: Arch
    cpu: Cpu
    memory: Memory
    modules: Modules
    image: ElfImage
    path: str
    open_image: Callable[[str], ElfImage | None]


class LoadedCore:
    """A core in a guest.

    Attributes:
        remarks: what is missing or does not fit, in words.
        start: of the program, as far as it is known.
    """

    def __init__(self, core: CoreFile, place: CorePlace) -> None:
        """Map the memory of a core.

        Raises:
            ImageError: it is of another architecture, or its memory cannot be mapped.
        """
        self._core, self._place = core, place
        self.remarks = list(core.remarks)
        self._abi = self._checked()
        self._images: dict[str, ElfImage | None] = {}
        self._main = self._main_path()
        self._bias = self._program_bias()
        self._map_all()
        place.modules.add(Module(place.path, place.image, self._bias))
        self._check_build()
        self._add_vdso()
        reserve_free_windows(place.arch, place.memory)
        text = [one for one in place.image.load_segments if one.flags & _PF_X]
        first = text[0] if text else place.image.load_segments[0]
        low = self._bias + first.vaddr
        heap = page_up(self._bias + place.image.high)
        auxv = b"".join(struct.pack("<QQ", *pair) for pair in core.auxv.items())
        self.start = loader.Start(0, 0, heap, auxv, (low, low + first.filesz))

    def _checked(self) -> PtraceAbi:
        core, arch, image = self._core, self._place.arch, self._place.image
        if core.machine != image.machine:
            raise ImageError(
                f"{core.path}: a core for another machine than {image.name} ({image.machine_name})"
            )
        ptrace = arch.linux.ptrace
        abi = None if ptrace is None else ptrace()
        if abi is None:
            raise ImageError(f"{core.path}: cores of {arch.name} cannot be opened")
        return abi

    # -- memory ------------------------------------------------------------------------------

    def _main_path(self) -> str:
        """The path that the process had its program at, "" if that is not told."""
        core = self._core
        found = core.mapped(core.auxv.get(AT_PHDR, 0)) or core.mapped(core.auxv.get(AT_ENTRY, 0))
        return found.path if found is not None else ""

    def _program_bias(self) -> int:
        """The distance of the program from its link addresses."""
        image, core = self._place.image, self._core
        if image.kind == "exec":
            return 0
        entry = core.auxv.get(AT_ENTRY)
        if entry is not None:
            return entry - image.entry
        first = next((one for one in core.mappings if one.path == self._main), None)
        if first is None:
            raise ImageError(f"{core.path}: it does not tell where {image.name} was loaded")
        return first.start - (image.vaddr_of(first.offset) or 0)

    def _map_all(self) -> None:
        plan, core = self._place.arch.plan, self._core
        try:
            for segment in core.segments:
                if not segment.memsz or segment.vaddr + segment.memsz > plan.task_size:
                    continue  # the vsyscall page, which is the kernel's
                if segment.vaddr % PAGE:
                    raise ImageError(
                        f"{core.path}: a segment at {segment.vaddr:#x} begins in a page"
                    )
                dumped = min(segment.filesz, max(len(core.data) - segment.offset, 0))
                self._map(segment.vaddr, segment.memsz, segment.flags, segment.offset, dumped)
            # gdb leaves segments out of which nothing was dumped.
            for file in core.mappings:
                if file.end <= plan.task_size and not file.start % PAGE and not file.end % PAGE:
                    for start, end in self._gaps(file.start, file.end):
                        self._map_file(file, start, end, self._perms(file, start))
        except MappingError as error:
            raise ImageError(
                f"{core.path}: its memory cannot be mapped as a whole; --memory N allows more"
            ) from error

    def _gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Ranges of an area in which nothing is mapped."""
        for mapping in list(self._place.memory.overlapping(start, end)):
            if mapping.start > start:
                yield start, mapping.start
            start = max(start, mapping.end)
        if start < end:
            yield start, end

    def _perms(self, file: CoreMapping, address: int) -> int:
        """Protection of a part of a file by what the file says."""
        image = self._image(file.path)
        at = file.offset + address - file.start
        for segment in image.load_segments if image is not None else ():
            if segment.offset & -PAGE <= at < segment.offset + segment.filesz:
                return READ | EXECUTE * bool(segment.flags & _PF_X)
        return READ

    def _map(self, start: int, size: int, flags: int, offset: int, dumped: int) -> None:
        """Map a segment: what was dumped, then what its file has."""
        perms = READ * bool(flags & _PF_R) | WRITE * bool(flags & _PF_W)
        perms |= EXECUTE * bool(flags & _PF_X)
        data, end = self._core.data, start + size
        behind = min(page_up(start + dumped), end) if dumped else start
        file = self._core.mapped(start)
        name, at = self._named(file, start)
        if dumped:
            # Pages without any permission are read all the same.
            backing = _Bytes(
                lambda skip, count: data[offset + skip : offset + skip + count], at, dumped
            )
            readable = perms or READ
            self._place.memory.map(
                start, behind - start, readable, name=name, backing=backing, offset=at
            )
        if behind < end and file is not None:
            self._map_file(file, behind, end, perms)

    def _map_file(self, file: CoreMapping, start: int, end: int, perms: int) -> None:
        """Map what was not dumped from the file that was mapped there."""
        image = self._image(file.path)
        if image is None:
            return
        name, at = self._named(file, start)
        backing = _Bytes(lambda skip, count: image.data(at + skip, count), at, image.size - at)
        self._place.memory.map(start, end - start, perms, name=name, backing=backing, offset=at)

    def _named(self, file: CoreMapping | None, address: int) -> tuple[str, int]:
        """Name and offset of a mapping of a file."""
        if file is None:
            return "", 0
        path = self._place.path if file.path == self._main else file.path
        return path, file.offset + address - file.start

    def _image(self, path: str) -> ElfImage | None:
        if path == self._main:
            return self._place.image
        if path not in self._images:
            try:
                self._images[path] = found = self._place.open_image(path)
            except ImageError:
                self._images[path] = found = None
            if found is None and path.startswith("/") and not path.startswith("/dev/"):
                self.remarks.append(f"{path} is not there: what was not dumped of it is missing")
        return self._images[path]

    def _check_build(self) -> None:
        """Tell of a program that is not the one that the process ran."""
        place = self._place
        ident, note = place.image.build_id, place.image.section(".note.gnu.build-id")
        if ident is None or note is None:
            return
        at = self._bias + note.addr
        if not place.memory.accessible(at, note.size, False):
            self.remarks.append(f"{self._core.path} may not be of {place.image.name}")
            return
        if bytes.fromhex(ident) not in place.memory.read(at, note.size):
            self.remarks.append(f"{self._core.path} is not of {place.image.name}, but of another"
                                " build of it")  # fmt: skip

    def _add_vdso(self) -> None:
        """Code that the kernel has mapped has names and unwind tables of its own."""
        base = self._core.auxv.get(AT_SYSINFO_EHDR)
        mapping = None if base is None else self._place.memory.find(base)
        if base is None or mapping is None:
            return
        data = self._place.memory.read(base, min(mapping.end - base, _VDSO_MOST))
        try:
            image = ElfImage.from_bytes(data, _VDSO)
        except ImageError:
            return
        self._place.modules.add(Module(_VDSO, image, base - (image.low & -PAGE)))

    # -- threads -----------------------------------------------------------------------------

    def give_threads(self, process: Process, first: Thread) -> None:
        """Make the threads, and give each its registers; the processor has the first one's."""
        cpu, core = self._place.cpu, self._core
        for found in core.threads[1:]:
            if found.tid in process.threads:
                continue
            thread = Thread(process, found.tid, core.comm)
            self._write(found)
            thread.registers, thread.position = cpu.save(), cpu.position()
        self._write(core.threads[0])
        first.set_comm(core.comm)

    def _write(self, thread: CoreThread) -> None:
        """Put a thread's registers into the processor."""
        registers = _CoreRegisters(self._place.cpu)
        names, data = self._abi.general, thread.registers
        words = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) & -8])
        if len(words) < len(names):
            raise ImageError(f"{self._core.path}: registers of thread {thread.tid} are cut off")
        for name, value in zip(names, words, strict=False):
            if name != ORIGINAL:
                self._abi.put(registers, name, value)
        for number, desc in thread.sets.items():
            known = self._abi.sets.get(number)
            if known is None or len(desc) != known.size:
                continue
            if known.whole and number != NT_PRFPREG:
                continue  # of the extended state the plain part is in a set of its own
            known.write(registers, desc)


def reserve_free_windows(arch: Arch, memory: Memory) -> None:
    """The engine's windows as far as nothing of a process is there."""
    plan = arch.plan
    start, size = plan.trampoline
    windows = (
        (start, PAGE, READ | EXECUTE, "[kprobe-tui:trampoline]"),
        (start + PAGE, size - PAGE, 0, "[kprobe-tui:trampoline]"),
        (*plan.xol, 0, "[kprobe-tui:xol]"),
        (*plan.detour, 0, "[kprobe-tui:detour]"),
    )
    for at, length, perms, name in windows:
        if not memory.overlapping(at, at + length):
            memory.map(at, length, perms, name=name, reserved=True)
