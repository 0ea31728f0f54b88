"""ELF files that are read once."""

import os
import shutil
from pathlib import Path

from guestrun import run

from engine.image import SymbolTable
from engine.linux.fs.data import MmapSource
from engine.linux.fs.host import HostHandle
from engine.linux.images import ProgramImages

PROGRAM = Path("/bin/true")


def source(path: Path, *, own: bool = False) -> MmapSource:
    data, fd = path.read_bytes(), os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    keep = HostHandle(fd)
    return MmapSource(
        len(data),
        None if own else fd,
        lambda at, size: data[at : at + size],
        None,
        path,
        lambda: True,
        keep=keep,
    )


def test_a_file_is_read_once_while_it_is_the_same(tmp_path: Path) -> None:
    copied = Path(shutil.copy(PROGRAM, tmp_path))
    images = ProgramImages()
    first = images.open(source(copied), "/bin/x", "")
    assert images.open(source(copied), "/bin/x", "") is first
    other = images.open(source(copied), "/bin/y", "")
    assert other is not first
    assert (first.name, other.name) == ("/bin/x", "/bin/y")
    assert images.open(source(copied), "/bin/y", "") is other
    assert images.open(source(copied, own=True), "/bin/x", "") is not first
    copied.write_bytes(PROGRAM.read_bytes() + b"\0")
    assert images.open(source(copied), "/bin/x", "") is not first
    assert first.once(SymbolTable) is first.once(SymbolTable) is other.once(SymbolTable)


def test_a_program_that_changes_between_two_runs_of_it(tmp_path: Path) -> None:
    """What exec begins is what stands in the file then."""
    script = "./x; cp /bin/false ./x; ./x || echo changed"
    shutil.copy(PROGRAM, tmp_path / "x")
    done = run("run", "--share", f"{tmp_path}:rw", "/bin/sh", "-c", script, cwd=tmp_path)
    assert done.out == "changed\n"
