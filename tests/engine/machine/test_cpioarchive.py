"""Archives as cpio reads them."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from engine.image.kernel.initramfs import initramfs_entries
from engine.machine.cpioarchive import ArchiveEntry, archive, entry_size

ENTRIES = [
    ArchiveEntry(b"bin", stat.S_IFDIR | 0o755),
    ArchiveEntry(b"bin/one", stat.S_IFREG | 0o4750, b"one", links=2, identity=(1, 2)),
    ArchiveEntry(b"bin/same", stat.S_IFREG | 0o4750, links=2, identity=(1, 2)),
    ArchiveEntry(b"empty", stat.S_IFREG | 0o600),
    ArchiveEntry(b"init", stat.S_IFLNK | 0o777, b"bin/one"),
    ArchiveEntry(b"name with a \xff", stat.S_IFREG | 0o644, bytes(5001)),
]


def test_cpio_unpacks_what_was_packed(tmp_path: Path) -> None:
    command = ["cpio"] if shutil.which("cpio") else ["busybox", "cpio"]
    if shutil.which(command[0]) is None:
        pytest.skip("there is no cpio")
    subprocess.run(
        [*command, "-i"], input=archive(ENTRIES), cwd=tmp_path, check=True, capture_output=True
    )
    one, same = tmp_path / "bin" / "one", tmp_path / "bin" / "same"
    assert one.read_bytes() == same.read_bytes() == b"one"
    assert one.stat().st_ino == same.stat().st_ino
    assert stat.S_IMODE(one.stat().st_mode) & 0o777 == 0o750
    assert (tmp_path / "init").readlink() == Path("bin/one")
    assert (tmp_path / "empty").read_bytes() == b""
    assert sorted(tmp_path.iterdir())[-1].read_bytes() == bytes(5001)


def test_the_reader_finds_what_the_writer_wrote() -> None:
    found = list(initramfs_entries(archive(ENTRIES), "made"))
    assert [(each.path, each.mode, bytes(each.data)) for each in found] == [
        ("/" + each.path.decode(errors="surrogateescape"), each.mode, each.data)
        for each in ENTRIES
    ]


def test_the_size_is_known_before() -> None:
    sizes = sum(entry_size(each.path, len(each.data)) for each in ENTRIES)
    assert len(archive(ENTRIES)) == sizes + len(archive([]))


def test_devices_keep_their_numbers() -> None:
    made = archive([ArchiveEntry(b"null", stat.S_IFCHR | 0o666, device=(1, 3))])
    assert made[78:94] == b"0000000100000003"
