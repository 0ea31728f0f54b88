"""Folders of the host's as entries of an archive."""

import os
import socket
import stat
from pathlib import Path

import pytest

from engine.errors import ImageError
from engine.machine import hosttree
from engine.machine.cpioarchive import archive
from engine.machine.hosttree import contents, parents, tree_entries


def tree(folder: Path) -> Path:
    """A folder with a file, one more name of it, a link, a pipe and a folder."""
    folder.mkdir()
    (folder / "a").mkdir(mode=0o755)
    (folder / "a" / "file").write_bytes(b"content")
    (folder / "a" / "file").chmod(0o4711)
    (folder / "again").hardlink_to(folder / "a" / "file")
    (folder / "a-b").symlink_to("/nowhere")
    os.mkfifo(folder / "pipe", 0o600)
    return folder


def test_a_tree_is_sorted_with_links_and_modes(tmp_path: Path) -> None:
    entries = tree_entries(str(tree(tmp_path / "tree")), b"lib/x")
    assert [each.path.decode() for each in entries] == [
        *("lib", "lib/x", "lib/x/a", "lib/x/a/file", "lib/x/a-b", "lib/x/again", "lib/x/pipe")
    ]
    by_path = {each.path: each for each in entries}
    file, again = by_path[b"lib/x/a/file"], by_path[b"lib/x/again"]
    assert (file.mode, file.data, file.links) == (stat.S_IFREG | 0o4711, b"content", 2)
    assert (again.data, again.identity) == (b"", file.identity)
    assert by_path[b"lib/x/a-b"].data == b"/nowhere"


def test_the_same_tree_makes_the_same_bytes(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    os.utime(two / "a" / "file", (5, 5))
    assert archive(tree_entries(str(one))) == archive(tree_entries(str(two)))


def test_what_has_no_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path / "tree")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # the name of a socket is short
        listener.bind("socket")
    with pytest.raises(ImageError, match=r"tree/socket: a socket"):
        tree_entries(str(folder))


def test_a_folder_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImageError, match="none: No such file"):
        tree_entries(str(tmp_path / "none"))
    with pytest.raises(ImageError, match="no regular file"):
        contents("/dev/zero")
    folder = tree(tmp_path / "tree")
    if os.geteuid():
        (folder / "a" / "file").chmod(0)
        with pytest.raises(ImageError, match="file: Permission denied"):
            tree_entries(str(folder))
    monkeypatch.setattr(hosttree, "MOST", 500)
    with pytest.raises(ImageError, match="are no initramfs"):
        tree_entries(str(folder))


def test_folders_of_a_path_come_from_the_root_on() -> None:
    assert [each.path for each in parents(b"a/b/c")] == [b"a", b"a/b", b"a/b/c"]
    assert list(parents(b"")) == []
