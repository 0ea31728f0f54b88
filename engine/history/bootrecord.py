"""Recorded boots as files.

A boot follows from what the machine was given: the kernel, the initial ramdisk, the command line,
the size of its memory, what was typed and when, and what it has read of its disks. A file of
`pieces` holds all of that, each piece with the number of blocks that the machine had executed:
the machine (BOOT), its kernel (KERN) and ramdisk (INIT), then input (TYPE), blocks of disks (BLKS
and DATA), moments that were come to (TICK), and the end (ENDS).
"""

import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from io import FileIO
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Struct

from engine.errors import CommandError
from engine.history.pieces import (
    BOOT_MAGIC,
    LONGEST,
    FilePiece,
    PieceReader,
    PieceWriter,
    check_front,
    contents_of,
)
from engine.history.recordbounds import RecordingBounds, RecordingError
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import open_kernel_data
from engine.machine.consolelog import ConsoleTyped
from engine.machine.linuxboot import MOST
from engine.machine.machine import DISKS_MOST, BareMachine, BootEnd, MachineEnd
from engine.machine.rawdisk import BLOCK, DiskImage

VERSION: Final = 1
_BOOT, _KERNEL, _RAMDISK, _TYPED = b"BOOT", b"KERN", b"INIT", b"TYPE"
_BLOCKS, _DATA, _TICK, _ENDS = b"BLKS", b"DATA", b"TICK", b"ENDS"
_OFTEN: Final = 0.5
"""Seconds between two moments that are written."""
_DATA_MOST: Final = 16 << 20
"""Bytes that are read of a disk at once."""
_UNPACKED: Final = 16
"""Pieces of disks that stay unpacked."""
_REGISTERS: Final = (
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip", "eflags"),
    *(f"r{number}" for number in range(8, 16)),
)
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class RecordedDisk(Struct, frozen=True):
    """A disk of a recorded boot.

    Attributes:
        path: of its image, as it was given.
        size: bytes.
    """

    path: str
    size: Annotated[int, msgspec.Meta(gt=0, le=1 << 60, multiple_of=512)]


class RecordedMachine(Struct, frozen=True):
    """The machine of a recorded boot, and what it was told.

    Attributes:
        engine: version of the engine that has recorded it.
        kernel: path of the image, as it was given.
        line: the command line.
        memory: bytes.
        seed: what the kernel's random numbers follow from.
        disks: in the order of their slots.
        disk_memory: bytes of changed blocks that were kept at the most.
    """

    engine: str
    kernel: str
    line: str
    memory: Annotated[int, msgspec.Meta(ge=0, le=MOST)]
    seed: _Count
    disks: Annotated[tuple[RecordedDisk, ...], msgspec.Meta(max_length=DISKS_MOST)] = ()
    disk_memory: _Count = 0


class RecordedEnd(Struct, frozen=True):
    """The end of a recorded boot, and what tells whether another run was the same.

    Attributes:
        reason: a `BootEnd`, by its name.
        text: the kernel's or the emulator's own of the end, "" for none.
        pc: where the processor stood.
        nanoseconds: of the machine's time.
        blocks: that were executed.
        console: SHA-256 of what the console wrote.
        state: SHA-256 of the memory and the registers.
    """

    reason: str
    text: str
    pc: int
    nanoseconds: _Count
    blocks: _Count
    console: bytes
    state: bytes


class _BlockRun(Struct, frozen=True):
    """Blocks of a disk, whose content is the next piece."""

    disk: Annotated[int, msgspec.Meta(ge=0, lt=DISKS_MOST)]
    first: _Count


def ended_boot(machine: BareMachine, end: MachineEnd, console: bytes) -> RecordedEnd:
    """The end of a boot as it is recorded.

    Args:
        machine: which has ended.
        end: of it.
        console: SHA-256 of what its console wrote.
    """
    digest = hashlib.sha256(machine.cpu.memory)
    digest.update(b"".join(machine.cpu[name].to_bytes(8, "little") for name in _REGISTERS))
    times = end.nanoseconds, end.blocks
    return RecordedEnd(end.reason.name, end.text, end.pc, *times, console, digest.digest())


class BootRecorder:
    """Writes a recorded boot while the machine runs.

    What the machine was given is in the file at once: a kill loses what was executed since the
    last moment that was written.
    """

    _pieces: PieceWriter
    _blocks: Callable[[], int]

    def __init__(self) -> None:
        """Wait for the boot to begin."""
        self._encode = msgspec.msgpack.Encoder().encode
        self._written = time.monotonic()

    @property
    def failure(self) -> OSError | None:
        """Why no more is written, None if all is well."""
        return self._pieces.failure

    def begin(
        self,
        file: FileIO,
        machine: RecordedMachine,
        kernel: bytes | memoryview,
        initrd: bytes,
        blocks: Callable[[], int],
    ) -> None:
        """Begin the file, before the machine's first instruction.

        Args:
            file: it, empty.
            machine: the machine.
            kernel: bytes of the image's file.
            initrd: the initial ramdisk, as it is packed.
            blocks: tells how many blocks the machine has executed.
        """
        self._pieces, self._blocks = PieceWriter(file, BOOT_MAGIC, VERSION), blocks
        self._put(_BOOT, self._encode(machine))
        for kind, data in ((_KERNEL, kernel), (_RAMDISK, initrd)):
            for at in range(0, len(data), LONGEST):
                self._put(kind, bytes(data[at : at + LONGEST]))

    def typed(self, typed: ConsoleTyped) -> None:
        """Write down what was typed."""
        self._put(_TYPED, self._encode(typed))

    def read(self, disk: int, first: int, data: bytes) -> None:
        """Write down blocks of a disk that were read for the first time.

        Args:
            disk: number of its slot.
            first: number of the first block.
            data: whole blocks.
        """
        for at in range(0, len(data), _DATA_MOST):
            self._put(_BLOCKS, self._encode(_BlockRun(disk, first + at // BLOCK)))
            self._put(_DATA, data[at : at + _DATA_MOST])

    def passed(self) -> None:
        """Write down how far the machine has come, if that is due."""
        if time.monotonic() - self._written > _OFTEN:
            self._put(_TICK, b"")

    def end(self, end: RecordedEnd) -> None:
        """Write down the end."""
        self._put(_ENDS, self._encode(end))

    def _put(self, kind: bytes, raw: bytes) -> None:
        self._written = time.monotonic()
        self._pieces.put(kind, raw, self._blocks())


class WitnessedImage:
    """A disk's content whose blocks are told of when they are read first; a `DiskImage`."""

    def __init__(self, image: DiskImage, tell: Callable[[int, bytes], object]) -> None:
        """Stand in front of an image.

        Args:
            image: what is read.
            tell: takes the number of the first block and the content of whole blocks.
        """
        self.path, self.size = image.path, image.size
        self._image, self._tell = image, tell
        self._seen: set[int] = set()

    def read(self, start: int, size: int) -> bytes:
        """See `DiskImage`."""
        first, last = start // BLOCK, (start + size - 1) // BLOCK
        whole = self._image.read(first * BLOCK, (last + 1 - first) * BLOCK)
        number = first
        while number <= last:
            begin = number
            while number <= last and number not in self._seen:
                self._seen.add(number)
                number += 1
            if number > begin:
                self._tell(begin, whole[(begin - first) * BLOCK : (number - first) * BLOCK])
            else:
                number += 1
        return whole[start - first * BLOCK :][:size]


class RecordedImage:
    """The content of a recorded boot's disk, as far as the boot has read it; a `DiskImage`."""

    def __init__(
        self, disk: RecordedDisk, number: int, unpack: Callable[[FilePiece], bytes]
    ) -> None:
        """Begin without blocks.

        Args:
            disk: its path and size.
            number: of its slot.
            unpack: gives the content of a piece.
        """
        self.path, self.size = disk.path, disk.size
        self._number = number
        self._pieces: list[FilePiece] = []
        self._places: dict[int, tuple[int, int]] = {}
        self._piece = lru_cache(maxsize=_UNPACKED)(lambda at: unpack(self._pieces[at]))

    def add(self, first: int, piece: FilePiece) -> None:
        """Add blocks.

        Args:
            first: number of the first one.
            piece: holds their content.

        Raises:
            ValueError: it does not, or more than is read at once.
        """
        if piece.size > _DATA_MOST or piece.size % BLOCK:
            raise ValueError(f"{piece.size} bytes of blocks")
        for number in range(piece.size // BLOCK):
            self._places.setdefault(first + number, (len(self._pieces), number * BLOCK))
        self._pieces.append(piece)

    def read(self, start: int, size: int) -> bytes:
        """See `DiskImage`.

        Raises:
            CommandError: the boot has not read there when it was recorded.
        """
        first, last = start // BLOCK, (start + size - 1) // BLOCK
        found = bytearray()
        for number in range(first, last + 1):
            place = self._places.get(number)
            if place is None:
                raise CommandError(
                    f"{self.path}: block {number} of disk {self._number} was not read when this "
                    "boot was recorded, and the recording does not hold it: the machine does "
                    "something else now"
                )
            piece, at = place
            found += self._piece(piece)[at : at + BLOCK]
        return bytes(found[start - first * BLOCK :][:size])


class RecordedBoot(Struct):
    """A recorded boot that was read.

    Attributes:
        machine: and what it was told.
        kernel: bytes of the image's file.
        initrd: the initial ramdisk.
        typed: what was typed, in its order.
        disks: in the order of their slots.
        end: of the boot; None where it is not known.
        reached: blocks that the machine is known to have executed.
        damage: the file's name and why it is not whole, "" if it is.
    """

    machine: RecordedMachine
    kernel: bytes
    initrd: bytes
    typed: list[ConsoleTyped]
    disks: list[RecordedImage]
    end: RecordedEnd | None
    reached: int
    damage: str

    def image(self, path: str) -> KernelImage:
        """Open its kernel.

        Args:
            path: of the recording.

        Raises:
            ImageError: it cannot be read.
        """
        return open_kernel_data(self.kernel, self.machine.kernel, path)

    @property
    def until(self) -> int:
        """Blocks behind which nothing of the boot is known: where it was stopped, or ended itself.

        One that ends itself does so in front of this block, unless it is another boot.
        """
        if self.end is None:
            return self.reached
        return self.end.blocks + (self.end.reason != BootEnd.HALTED.name)


def read_boot(path: str) -> RecordedBoot:
    """Read a recorded boot as far as it goes.

    Raises:
        CommandError: the file cannot be read.
        RecordingError: it is none, of another version, bad before the machine's first
            instruction, or unpacks to more than a file of its size may.
    """
    data = contents_of(path, BOOT_MAGIC)
    check_front(data, path, BOOT_MAGIC, VERSION, "a recorded boot", "kprobe-tui record --boot")
    return _BootReader(data, path).read()


class _BootReader:
    """Goes through the pieces of a recorded boot."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._name = name
        self._file = PieceReader(data)
        self._bounds = RecordingBounds(name, len(data))
        self._machine: RecordedMachine | None = None
        self._kernel, self._initrd = bytearray(), bytearray()
        self._typed: list[ConsoleTyped] = []
        self._disks: list[RecordedImage] = []
        self._run: _BlockRun | None = None
        self._end: RecordedEnd | None = None

    def read(self) -> RecordedBoot:
        """Read all pieces, up to the first bad one; see `read_boot`."""
        pieces = list(self._file.pieces())
        self._bounds.total(sum(piece.size for piece in pieces if piece.kind != _DATA))
        damage, reached = "", 0
        for piece in pieces:
            try:
                self._piece(piece)
            except RecordingError:
                raise
            except Exception as error:  # whatever decoders raise when bytes make no sense
                damage = self._damaged(piece.at, error, reached)
                break
            reached = max(reached, piece.moment)
        else:
            if self._file.bad is not None:
                damage = self._damaged(*self._file.bad, reached)
            elif self._file.is_cut or self._end is None:
                damage = f"cut off at byte {self._file.end}, block {reached}"
        if self._machine is None or not self._kernel:
            why = damage or "it ends before the machine's first instruction"
            raise RecordingError(f"{self._name}: {why}")
        end, damage = (None, f"{self._name}: {damage}") if damage else (self._end, "")
        return RecordedBoot(
            *(self._machine, bytes(self._kernel), bytes(self._initrd), self._typed, self._disks),
            *(end, reached, damage),
        )

    @staticmethod
    def _damaged(at: int, error: Exception, reached: int) -> str:
        why = str(error) or type(error).__name__
        return f"damaged at byte {at} ({why}); what is before it goes up to block {reached}"

    def _piece(self, piece: FilePiece) -> None:
        if piece.kind == _DATA:
            run, self._run = self._run, None
            if run is None:
                raise ValueError("blocks of no disk")
            self._disks[run.disk].add(run.first, piece)
            return
        raw = self._file.unpacked(piece)
        if piece.kind in (_KERNEL, _RAMDISK):
            (self._kernel if piece.kind == _KERNEL else self._initrd).extend(raw)
            return
        self._bounds.values(raw)
        decode = msgspec.msgpack.decode
        if piece.kind == _BOOT:
            self._machine = machine = decode(raw, type=RecordedMachine)
            self._disks = [
                RecordedImage(disk, number, self._file.unpacked)
                for number, disk in enumerate(machine.disks)
            ]
        elif piece.kind == _TYPED:
            self._typed.append(decode(raw, type=ConsoleTyped))
        elif piece.kind == _BLOCKS:
            self._run = decode(raw, type=_BlockRun)
        elif piece.kind == _ENDS:
            self._end = decode(raw, type=RecordedEnd)
        elif piece.kind != _TICK:
            raise ValueError(f"a piece of kind {piece.kind!r}")
