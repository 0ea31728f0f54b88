"""The machine's files, and those of a process, without a kernel that is asked."""

import os
import shutil
from pathlib import Path

import pytest
from livekit import PROGRAM

from engine.errors import CommandError, ImageError
from engine.image.damage import Damage
from engine.session.live.machine_files import (
    MachineTree,
    MappedFiles,
    ProcessRoot,
    machine_program,
    process_root,
)
from engine.session.protocol.config import GuestConfig


def test_a_tree_below_a_directory_is_not_left_by_symlinks(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    shutil.copy(PROGRAM, tmp_path / "opt" / "real")
    (tmp_path / "opt" / "link").symlink_to("/opt/real")
    (tmp_path / "out").symlink_to("/../../../../etc/passwd")
    tree = MachineTree(str(tmp_path), Damage())
    found = tree.open("/opt/link")
    assert found is not None
    assert found.paths == {"/opt/link", "/opt/real"}
    status = os.stat(tmp_path / "opt" / "real")
    assert found.inode == tree.inode("/opt/link") == (status.st_dev, status.st_ino)
    assert tree.problem("/out") == "FILE_NOT_FOUND"
    assert tree.problem("/opt") == "NO_REGULAR_FILE"
    assert tree.content("/out") is None
    (tmp_path / "text").write_bytes(b"text")
    assert tree.content("/text") == b"text"
    with pytest.raises(ImageError, match="ELF"):
        tree.open("/text")


def test_the_files_of_a_process_are_those_that_it_has_mapped() -> None:
    mapped = MappedFiles(os.getpid(), MachineTree("", Damage()))
    libc = mapped.named("libc.so.6")
    assert libc is not None
    assert libc is mapped.named("libc")
    assert libc is mapped.files[libc.path]
    assert mapped.named("libnothing") is None
    with pytest.raises(CommandError, match="No such file"):
        MappedFiles(0, MachineTree("", Damage()))


def test_our_own_root_is_no_other() -> None:
    assert process_root(os.getpid()) == ""
    root = ProcessRoot(os.getpid())
    assert (root.inside("/a/b"), root.host("/a/b")) == ("/a/b", "/a/b")


def test_a_program_is_given_to_the_kernel_by_the_machines_path() -> None:
    opened = machine_program(GuestConfig("nothing"), os.getpid())
    assert opened.host_path(opened.paths.guest) == os.readlink("/proc/self/exe")
    assert opened.host_path(f"/proc/{os.getpid()}/exe") == f"/proc/{os.getpid()}/exe"
