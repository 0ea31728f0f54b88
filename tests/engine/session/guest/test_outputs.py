"""Files that a run writes: nothing happens to them before it begins."""

import os
from pathlib import Path

import pytest

from engine.errors import CommandError
from engine.session.guest.outputs import OutputFile, OutputFiles


def test_a_file_is_untouched_until_the_run_begins(tmp_path: Path) -> None:
    path, new = tmp_path / "out", tmp_path / "new"
    path.write_text("yesterday")
    files = OutputFiles()
    out, other = files.add("-o", str(path)), files.add("-o", str(new))
    assert out.is_own
    assert other.is_own
    assert (path.read_text(), new.exists()) == ("yesterday", False)
    files.create()
    assert (path.read_text(), new.read_text()) == ("yesterday", "")
    assert out.begin().write(b"to") == 2
    files.close()
    assert path.read_text() == "to"


def test_one_that_cannot_be_created_spares_the_others(tmp_path: Path) -> None:
    path, folder = tmp_path / "out", tmp_path / "folder"
    path.write_text("yesterday")
    folder.mkdir()
    files = OutputFiles()
    files.add("-o", str(path))
    files.add("-o", str(folder / "new"))
    folder.rmdir()
    with pytest.raises(CommandError, match=r"-o .*/new: No such file or directory"):
        files.create()
    files.close()
    assert path.read_text() == "yesterday"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("none/out", "No such file or directory"),
        ("file/out", "Not a directory"),
        ("folder", "Is a directory"),
        ("new/", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("/dev/fd/999", "Bad file descriptor"),
    ],
)
def test_what_cannot_be_written_is_told_before(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    where = path if path.startswith("/") else f"{tmp_path}/{path}"
    with pytest.raises(CommandError, match=f"^--x .*: {why}$"):
        OutputFile("--x", where)


def test_a_link_to_nothing_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("new")
    file = OutputFile("-o", str(tmp_path / "link"))
    file.begin().write(b"text")
    file.close()
    assert (tmp_path / "new").read_bytes() == b"text"


def test_a_descriptor_keeps_its_position_and_what_was_there(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"before ")
    files = OutputFiles()
    both = [files.add("-o", f"/dev/fd/{descriptor}") for _ in range(2)]
    assert not both[0].is_own
    for number, file in enumerate(both):
        file.begin().write(b"%d" % number)
    files.close()
    os.close(descriptor)
    assert (tmp_path / "log").read_bytes() == b"before 01"


def test_devices_may_be_named_twice() -> None:
    files = OutputFiles()
    for _ in range(2):
        assert not files.add("-o", "/dev/full").is_own
    files.close()
