"""Trees of modules, with files made here; what kernels do with them is tried by booting."""

from pathlib import Path

import pytest
from modulekit import RELEASE, module, tree

from engine.errors import ImageError
from engine.machine.moduletree import ModuleTree


def test_chosen_modules_bring_what_they_need(tmp_path: Path) -> None:
    entries = ModuleTree(str(tree(tmp_path)), RELEASE).entries(["disk"], b"usr/lib/modules")
    base = f"usr/lib/modules/{RELEASE}/"
    data = {each.path.decode().removeprefix(base): each.data for each in entries}
    assert [name for name in data if ".ko" in name] == [
        *("kernel/fs/disk.ko", "kernel/lib/low-level.ko"),
        *("kernel/lib/mid.ko.xz", "kernel/lib/sums_generic.ko"),
    ]
    assert data["modules.dep"].decode().splitlines() == [
        "kernel/fs/disk.ko: kernel/lib/mid.ko.xz kernel/lib/low-level.ko",
        "kernel/lib/low-level.ko:",
        "kernel/lib/mid.ko.xz: kernel/lib/low-level.ko",
        "kernel/lib/sums_generic.ko:",
    ]
    again = ModuleTree(str(tmp_path), RELEASE).entries(["built", "disk"], b"usr/lib/modules")
    assert again == entries  # what is built in needs no file
    assert data["modules.alias"] == b"alias sums sums_generic\nalias crypto-sums sums_generic\n"
    assert "build" not in data
    paths = [each.path for each in entries]
    assert paths[:4] == [b"usr", b"usr/lib", b"usr/lib/modules", base[:-1].encode()]


def test_without_a_choice_all_modules_are_put_in(tmp_path: Path) -> None:
    for place in (tmp_path / "a", tmp_path / "b"):
        tree(place, below="lib/modules" if place.name == "a" else "usr/lib/modules")
        entries = ModuleTree(str(place), RELEASE).entries((), b"lib/modules")
        assert sum(b".ko" in each.path for each in entries) == 5
    given = tmp_path / "a" / "lib" / "modules" / RELEASE
    (given / "modules.dep").write_bytes(b"as depmod made it\n")
    entries = ModuleTree(str(given), RELEASE).entries((), b"lib/modules")
    assert b"as depmod made it\n" in [each.data for each in entries]
    assert b"".join(each.path for each in entries).count(b"modules.dep") == 1


def test_what_is_no_tree_is_refused(tmp_path: Path) -> None:
    root = tree(tmp_path / "root")
    folder = root / "lib" / "modules" / RELEASE
    for path, release, said in (
        (tmp_path / "none", RELEASE, "none: No such file or directory"),
        (folder / "kernel/fs/disk.ko", RELEASE, "no folder"),
        (root, "5.10.0-1-amd64", "no modules of 5.10.0-1-amd64"),
        (folder, "5.10.0-1-amd64", f"modules of {RELEASE}, and the kernel is 5.10.0-1-amd64"),
    ):
        with pytest.raises(ImageError, match=said):
            ModuleTree(str(path), release)
    with pytest.raises(ImageError, match="there is no module nope"):
        ModuleTree(str(root), RELEASE).entries(["nope"], b"lib/modules")
    (folder / "kernel/lib/low-level.ko").write_bytes(b"text")
    with pytest.raises(ImageError, match=r"low-level.ko: no module"):
        ModuleTree(str(root), RELEASE).entries(["disk"], b"lib/modules")


def test_modules_that_need_each_other_are_no_endless_list(tmp_path: Path) -> None:
    folder = tree(tmp_path) / "lib" / "modules" / RELEASE
    (folder / "kernel/lib/low-level.ko").write_bytes(module(depends="mid"))
    entries = ModuleTree(str(tmp_path), RELEASE).entries(["disk"], b"lib/modules")
    (rows,) = (each.data for each in entries if each.path.endswith(b"modules.dep"))
    assert rows.splitlines()[2] == b"kernel/lib/mid.ko.xz: kernel/lib/low-level.ko"
