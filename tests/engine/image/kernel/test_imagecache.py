"""What is kept of images: found again, bounded, made anew where it is damaged."""

import os
import subprocess
import sys
from pathlib import Path

from kernelimages import UML_61, image_path

from engine.image.kernel.imagecache import ImageCache, KeptKernel
from engine.image.kernel.opening import open_kernel

IMAGE = bytes(range(256)) * 40


def entry(folder: Path, name: bytes = b"packed") -> KeptKernel:
    return ImageCache(folder).entry(name, "")


def test_an_image_and_its_columns_are_found_again(tmp_path: Path) -> None:
    kept = entry(tmp_path)
    assert kept.image() is None
    made = kept.keep_image([IMAGE[:100], memoryview(IMAGE)[100:]])
    assert made[: len(IMAGE)] == IMAGE
    kept.keep_columns("tables", {"x": b"1"})
    again = entry(tmp_path)
    found, columns = again.image(), again.columns("tables")
    assert found is not None
    assert found[: len(IMAGE)] == IMAGE
    assert columns is not None
    assert columns.bytes("x") == b"1"
    assert again.remarks == []
    assert entry(tmp_path, b"other").image() is None
    private = again.private_image()
    assert private is not None
    private[0] = 7
    assert found[0] == 0


def test_a_changed_file_is_looked_at_and_a_damaged_one_not_taken(tmp_path: Path) -> None:
    entry(tmp_path).keep_image([IMAGE])
    (path,) = tmp_path.iterdir()
    os.utime(path)  # copied, say: nothing is wrong with it
    kept = entry(tmp_path)
    assert kept.image() is not None
    assert kept.remarks == []
    for damaged in (
        bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:],
        path.read_bytes()[:-1],
        path.read_bytes()[:20],
        path.read_bytes() + b"more",
    ):
        path.write_bytes(damaged)
        kept = entry(tmp_path)
        assert kept.image() is None
        assert len(kept.remarks) == 1
        kept.keep_image([IMAGE])
        assert entry(tmp_path).image() is not None
    path.write_bytes(b"")
    assert entry(tmp_path).image() is None


def test_damaged_columns_are_not_taken(tmp_path: Path) -> None:
    kept = entry(tmp_path)
    kept.keep_image([IMAGE])
    kept.keep_columns("tables", {"x": bytes(1000)})
    path = next(p for p in tmp_path.iterdir() if "tables" in p.name)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    again = entry(tmp_path)
    assert again.columns("tables") is None
    assert "column x is damaged" in again.remarks[0]


def test_the_last_eight_stay_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    for number in range(11):
        kept = entry(tmp_path, b"%d" % number)
        kept.keep_image([IMAGE, b"%d" % number])
        kept.keep_columns("tables", {"x": b"1"})
        for path in tmp_path.iterdir():
            status = path.stat()  # time goes on
            os.utime(path, ns=(status.st_atime_ns - 10**9, status.st_mtime_ns))
    found = [number for number in range(11) if entry(tmp_path, b"%d" % number).image()]
    assert found == list(range(3, 11))
    assert len(list(tmp_path.iterdir())) == 16


def test_of_cpus_the_last_four_stay(tmp_path: Path) -> None:
    kept = entry(tmp_path)
    kept.keep_image([IMAGE])
    for number in range(7):
        kept.keep_columns(f"live-{number}", {"x": b"1"})
    assert len(list(tmp_path.iterdir())) == 5


def test_where_nothing_can_be_written_images_are_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = entry(tmp_path / "file")
    made = kept.keep_image([IMAGE, bytes(2 << 20)])
    assert made[: len(IMAGE)] == IMAGE
    assert len(kept.remarks) == 1
    kept.keep_columns("tables", {"x": b"1"})
    assert kept.columns("tables") is None


def test_several_processes_make_one_entry(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from engine.image.kernel.imagecache import ImageCache\n"
        "for turn in range(30):\n"
        "    kept = ImageCache(Path(sys.argv[1])).entry(b'packed', '')\n"
        "    found = kept.image() or kept.keep_image([bytes(300_000), b'end'])\n"
        "    assert found[300_000:300_003] == b'end', len(found)\n"
        "    kept.keep_columns('tables', {'x': bytes(5000)})\n"
        "    columns = kept.columns('tables')\n"
        "    assert columns is None or columns.bytes('x') == bytes(5000)\n"
        "    assert kept.remarks == [], kept.remarks\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, tmp_path]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".kernel"] * 2


def test_an_image_is_the_same_from_the_cache(tmp_path: Path) -> None:
    first = open_kernel(image_path(UML_61), cache=ImageCache(tmp_path))
    again = open_kernel(image_path(UML_61), cache=ImageCache(tmp_path))
    assert first.names.names == again.names.names
    assert first.elf.buffer[:] == again.elf.buffer[:]
    assert again.kept is not None
    assert again.kept.remarks == []
