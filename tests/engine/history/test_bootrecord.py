"""Recorded boots as files: whole, cut off, damaged, and the disks in them."""

import io
import os
import random
from pathlib import Path

import msgspec
import pytest

from engine.errors import CommandError, KprobeTuiError
from engine.history.bootrecord import (
    BootRecorder,
    RecordedDisk,
    RecordedEnd,
    RecordedMachine,
    WitnessedImage,
    read_boot,
)
from engine.history.pieces import BOOT_MAGIC, PieceWriter, is_boot_record
from engine.history.recordbounds import RecordingError
from engine.machine.consolelog import ConsoleTyped
from engine.machine.rawdisk import BLOCK, SECTOR, HostImage

SIZE = 40 * BLOCK + 3 * SECTOR
MACHINE = RecordedMachine(
    "1", "vmlinuz", "quiet", 64 << 20, 7, (RecordedDisk("a", SIZE), RecordedDisk("b", SIZE)), 1
)
TYPED = [
    ConsoleTyped(5, True, b"ls\n"),
    ConsoleTyped(9, False, b"x"),
    ConsoleTyped(9, True, b""),
    ConsoleTyped(12, True, b""),
]
END = RecordedEnd("OFF", "", 0xFFFF, 100, 12, b"c" * 32, b"s" * 32)


def written(path: Path, *, whole: bool = True) -> bytes:
    """A recorded boot; the machine comes to another block with each piece."""
    blocks = iter(range(1000))
    recorder = BootRecorder()
    with io.FileIO(path, "w") as file:
        recorder.begin(file, MACHINE, b"kernel" * 100, b"ramdisk", lambda: next(blocks))
        for typed in TYPED:
            recorder.typed(typed)
        recorder.read(1, 3, b"q" * 2 * BLOCK)
        if whole:
            recorder.end(END)
        assert recorder.failure is None
    return path.read_bytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written(tmp_path / "r")
    boot = read_boot(str(tmp_path / "r"))
    assert (boot.machine, boot.kernel, boot.initrd) == (MACHINE, b"kernel" * 100, b"ramdisk")
    assert (boot.typed, boot.end, boot.damage, boot.until) == (TYPED, END, "", 13)
    assert boot.disks[1].read(3 * BLOCK + SECTOR, BLOCK) == b"q" * BLOCK
    for disk, start in ((1, 2 * BLOCK), (1, 4 * BLOCK + SECTOR), (0, 3 * BLOCK)):
        with pytest.raises(CommandError, match=r"^[ab]: block \d of disk \d was not read when"):
            boot.disks[disk].read(start, BLOCK)


def test_a_file_that_is_cut_is_good_up_to_there(tmp_path: Path) -> None:
    whole, path = written(tmp_path / "r"), tmp_path / "cut"
    reached, first = -1, 0
    for size in (*range(0, len(whole), 3), len(whole) - 1):
        path.write_bytes(whole[:size])
        try:
            boot = read_boot(str(path))
        except RecordingError:
            first = size
            continue
        assert boot.reached >= reached
        reached = boot.reached
        assert boot.damage.startswith(f"{path}: cut off at byte ")
        assert (boot.end, boot.until) == (None, reached)
        assert boot.typed == TYPED[: len(boot.typed)]
    assert reached == 8
    assert first < whole.index(b"TYPE")


def test_any_changed_byte_is_seen(tmp_path: Path) -> None:
    whole, path = written(tmp_path / "r"), tmp_path / "changed"
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 0x21,)) + whole[at + 1 :])
        try:
            boot = read_boot(str(path))
        except RecordingError:
            continue
        # Bytes behind the version have no meaning, and those of a piece have its checksum.
        assert boot.damage or at in range(len(BOOT_MAGIC) + 2, len(BOOT_MAGIC) + 6)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a recorded boot"),
        (b"\x7fELF" * 10, "not a recorded boot"),
        (BOOT_MAGIC + b"\2\0" + bytes(4), "format 2; .*: a newer kprobe-tui reads it"),
        (BOOT_MAGIC + b"\0\0" + bytes(4), "format 0; .*: record it again"),
        (BOOT_MAGIC + b"\1\0" + bytes(4), "cut off at byte 16"),
    ],
)
def test_what_is_no_recorded_boot(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(data or b"\0")
    with pytest.raises(RecordingError, match=rf"^{path}: .*{said}"):
        read_boot(str(path))


def test_values_that_make_no_sense_are_damage(tmp_path: Path) -> None:
    """Each is in a file with right checksums, behind a good beginning."""
    encode = msgspec.msgpack.encode
    machine = encode(MACHINE)
    for kind, raw in (
        (b"TYPE", encode([1])),
        (b"TYPE", encode(["x", True, b""])),
        (b"BLKS", encode([77, 0])),
        (b"BLKS", encode([0, -1])),
        (b"DATA", bytes(BLOCK)),
        (b"ENDS", encode(["OFF", "", 1, -1, 1, b"", b""])),
        (b"BOOT", encode(["", "", "", 1 << 60, 0])),
        (b"WHAT", b""),
        (b"TYPE", b"\xc1"),
        (b"TYPE", b"\xdd\xff\xff\xff\xff"),
    ):
        with io.FileIO(tmp_path / "r", "w") as file:
            pieces = PieceWriter(file, BOOT_MAGIC, 1)
            for each in ((b"BOOT", machine), (b"KERN", b"k"), (kind, raw), (b"TICK", b"")):
                pieces.put(*each, 3)
        boot = read_boot(str(tmp_path / "r"))
        assert "damaged at byte" in boot.damage, (kind, raw)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    with io.FileIO(tmp_path / "r", "w") as file:
        pieces = PieceWriter(file, BOOT_MAGIC, 1)
        for _ in range(6):
            pieces.put(b"KERN", bytes(64 << 20), 0)
    with pytest.raises(KprobeTuiError, match="KPROBE_TUI_UNPACK_MAX"):
        read_boot(str(tmp_path / "r"))


def test_a_disk_is_recorded_as_far_as_it_is_read(tmp_path: Path) -> None:
    source = random.Random(5)
    data = source.randbytes(SIZE)
    (tmp_path / "disk").write_bytes(data)
    recorder = BootRecorder()
    with io.FileIO(tmp_path / "r", "w") as file:
        recorder.begin(file, MACHINE, b"k", b"", lambda: 0)
        told: list[tuple[int, int]] = []

        def tell(first: int, blocks: bytes) -> None:
            told.append((first, len(blocks)))
            recorder.read(0, first, blocks)

        image = WitnessedImage(HostImage(str(tmp_path / "disk")), tell)
        reads = []
        for _ in range(60):
            start = source.randrange(SIZE // SECTOR) * SECTOR
            size = min(source.choice((SECTOR, BLOCK, 5 * BLOCK)), SIZE - start)
            assert image.read(start, size) == data[start : start + size]
            reads.append((start, size))
        recorder.end(END)
    numbers = [first + n for first, size in told for n in range(size // BLOCK)]
    assert len(numbers) == len(set(numbers))
    boot = read_boot(str(tmp_path / "r"))
    assert boot.damage == ""
    for start, size in reads:
        assert boot.disks[0].read(start, size) == data[start : start + size]


def test_a_pipe_is_not_read_to_see_what_it_is(tmp_path: Path) -> None:
    """It would wait for somebody, or take the first bytes away from whoever reads on."""
    os.mkfifo(tmp_path / "pipe")
    assert not is_boot_record(str(tmp_path / "pipe"))
    out, into = os.pipe()
    os.write(into, BOOT_MAGIC * 2)
    assert not is_boot_record(f"/dev/fd/{out}")
    assert os.read(out, 100) == BOOT_MAGIC * 2
    written(tmp_path / "r")
    assert is_boot_record(str(tmp_path / "r"))
    assert not is_boot_record(str(tmp_path / "none"))
