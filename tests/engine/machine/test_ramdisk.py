"""Initial ramdisks that are put together of several parts."""

import gzip
import stat
from pathlib import Path

import pytest
from controlkit import sample
from modulekit import RELEASE, tree

from engine.errors import ImageError
from engine.image.kernel.initramfs import initramfs_entries
from engine.machine.cpioarchive import ArchiveEntry, archive
from engine.machine.ramdisk import Ramdisk, assembled

DIRECTORY, FILE, LINK = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777
PACKED = gzip.compress(
    archive(
        [
            ArchiveEntry(b"usr", DIRECTORY),
            ArchiveEntry(b"usr/bin", DIRECTORY),
            ArchiveEntry(b"usr/lib", DIRECTORY),
            ArchiveEntry(b"bin", LINK, b"usr/bin"),
            ArchiveEntry(b"lib", LINK, b"/usr/lib"),
            ArchiveEntry(b"usr/bin/busybox", FILE, Path(sample("x86_64", "loop")).read_bytes()),
            ArchiveEntry(b"usr/bin/sh", LINK, b"busybox"),
            ArchiveEntry(b"init", FILE, b"#!/bin/sh\n"),
        ]
    )
)


def entries(data: bytes) -> dict[str, bytes]:
    return {each.path: bytes(each.data) for each in initramfs_entries(data, "made")}


def test_a_program_becomes_the_first_one() -> None:
    program = sample("x86_64", "loop")
    made = assembled(Ramdisk(init=program), "")
    assert entries(made)["/init"] == Path(program).read_bytes()
    assert made == assembled(Ramdisk(init=program), "")
    assert {"/dev", "/proc", "/sys", "/tmp"} < entries(made).keys()


def test_parts_stand_one_behind_the_other(tmp_path: Path) -> None:
    """A folder that is a link in the ramdisk stays one: modules go to where it leads."""
    packed, script = tmp_path / "initrd.gz", tmp_path / "script"
    packed.write_bytes(PACKED)
    script.write_text("#!/bin/sh -e\necho mine\n")
    modules = str(tree(tmp_path / "modules"))
    made = assembled(Ramdisk(str(packed), str(script), modules, ("other",)), RELEASE)
    assert made.startswith(PACKED)
    behind = made.index(b"070701", len(PACKED))
    assert behind % 4 == 0
    found = entries(made[behind:])
    assert found["/init"] == script.read_bytes()
    assert f"/usr/lib/modules/{RELEASE}/kernel/lib/other.ko" in found
    assert "/lib" not in found
    assert assembled(Ramdisk(str(packed)), "") == PACKED


def test_what_no_kernel_could_start_is_told(tmp_path: Path) -> None:
    script, folder, packed = tmp_path / "script", tmp_path / "root", tmp_path / "packed"
    packed.write_bytes(PACKED)
    folder.mkdir()
    for text, said in (
        ("#!/bin/sh\n", "script: the first program is a script and needs /bin/sh"),
        ("#!\n", "its first line #! names no program"),
        ("echo\n", "neither an ELF program nor a script"),
    ):
        script.write_text(text)
        with pytest.raises(ImageError, match=said):
            assembled(Ramdisk(init=str(script)), "")
    script.write_text("#!/bin/sh\n")
    assembled(Ramdisk(str(packed), str(script)), "")
    with pytest.raises(ImageError, match="another architecture"):
        assembled(Ramdisk(init=sample("aarch64", "loop")), "")
    with pytest.raises(ImageError, match="there is no init in it"):
        assembled(Ramdisk(init=str(folder)), "")
    assert assembled(Ramdisk(init=str(folder), looks_for_init=False), "")
    (folder / "init").write_bytes(Path(sample("x86_64", "loop")).read_bytes())
    (folder / "init").chmod(0o644)
    with pytest.raises(ImageError, match=r"no file that may be executed: chmod \+x"):
        assembled(Ramdisk(init=str(folder)), "")
    (folder / "init").unlink()
    (folder / "init").symlink_to("init")
    with pytest.raises(ImageError, match=r"no file that may be executed"):
        assembled(Ramdisk(init=str(folder)), "")


def test_scripts_for_scripts_end(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "init").write_text("#!/init\n")
    (folder / "init").chmod(0o755)
    with pytest.raises(ImageError, match="more than 5 scripts"):
        assembled(Ramdisk(init=str(folder)), "")
