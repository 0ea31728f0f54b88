"""What a guest saw of its host's files is seen once more, and nothing else."""

import errno
import os
from pathlib import Path

import msgspec
import pytest

from engine.history.hostfiles import HostFact, HostWitness, RecordedHost
from engine.history.journal import digest_of
from engine.linux.errno import LinuxError
from engine.linux.fs.host import DirectoryPool, HostDir, HostQuestion

_NUMBER = {kind: number for number, kind in enumerate(HostQuestion)}


class Kept:
    """A host that was asked, and what was kept of that, as if it had come from a file."""

    def __init__(self, folder: Path) -> None:
        self.witness = HostWitness()
        self.contents: dict[bytes, bytes] = {}
        self.pool = DirectoryPool(answers=self.witness)
        self.directory = HostDir(self.pool, os.fsencode(folder))

    def keep(self, data: bytes) -> bytes:
        self.contents[digest_of(data)] = data
        return digest_of(data)

    def host(self) -> tuple[RecordedHost, HostDir]:
        raw = msgspec.msgpack.encode(self.witness.facts)
        facts = msgspec.msgpack.decode(raw, type=list[HostFact])
        host = RecordedHost(facts, self.contents)
        return host, HostDir(DirectoryPool(answers=host), self.directory.path)


def test_the_first_answers_are_given_again(tmp_path: Path) -> None:
    """Of files that are changed while the guest runs, too."""
    file = tmp_path / "file"
    file.write_bytes(b"first")
    kept = Kept(tmp_path)
    before = kept.directory.lstat(b"file")
    held = kept.directory.open_file(b"file")  # before it is known where bytes go
    kept.witness.begin(kept.keep)
    file.write_bytes(b"second, longer")
    os.utime(file, (1, 1))
    assert kept.directory.lstat(b"file").st_size == 14
    assert os.pread(kept.directory.open_file(b"file").fd, 99, 0) == b"second, longer"
    with pytest.raises(FileNotFoundError):
        kept.directory.lstat(b"none")
    (tmp_path / "none").write_bytes(b"made by the guest")
    kept.directory.open_file(b"none")
    names = kept.directory.entries()
    file.unlink()

    host, directory = kept.host()
    again = directory.lstat(b"file")
    for field in ("st_mode", "st_ino", "st_dev", "st_size", "st_blocks", "st_mtime_ns"):
        assert getattr(again, field) == getattr(before, field)
    opened = directory.open_file(b"file")
    assert os.pread(opened.fd, 99, 0) == b"first"
    assert opened.leads_to(again)
    assert directory.entries() == names
    with pytest.raises(FileNotFoundError):
        directory.lstat(b"none")
    with pytest.raises(LinuxError, match="ENOENT"):
        directory.open_file(b"none")
    assert host.knows(directory.path, b"none")
    assert host.knows(directory.path, b"not listed")
    held.close()


def test_what_was_never_asked_is_missing_once_the_guest_is_live(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    kept = Kept(tmp_path)
    kept.witness.begin(kept.keep)
    kept.directory.lstat(b"file")
    host, directory = kept.host()
    missing: list[bytes] = []
    host.missing = missing.append
    with pytest.raises(FileNotFoundError):
        directory.entries()
    assert not missing
    host.live = True
    with pytest.raises(FileNotFoundError):
        directory.entries()
    with pytest.raises(LinuxError, match="ENOENT"):
        directory.open_file(b"file")
    assert missing == [directory.path, directory.path + b"/file"]
    host.names_beyond = lambda path: [(b"x", 1, 0)]
    assert directory.entries() == [(b"x", 1, 0)]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    kept = Kept(tmp_path)
    kept.witness.begin(kept.keep)
    kept.directory.lstat(b"pipe")
    for directory in (kept.directory, kept.host()[1]):
        with pytest.raises(LinuxError) as told:
            directory.open_file(b"pipe")
        assert told.value.code == errno.EACCES


@pytest.mark.parametrize(
    ("question", "answer", "why"),
    [
        (99, b"", "a question of kind 99"),
        (_NUMBER[HostQuestion.ENTRY], [1, 2], "attributes"),
        (_NUMBER[HostQuestion.ENTRY], ["a"] * 11, "attributes"),
        (_NUMBER[HostQuestion.NAMES], [[1, 2, 3]], "the names in a directory"),
        (_NUMBER[HostQuestion.FILE], b"nothing", "the bytes of /a/b lack"),
        (_NUMBER[HostQuestion.TARGET], 7, "the target of a symlink"),
        (_NUMBER[HostQuestion.OWNERS], [1], "the user, and the groups"),
    ],
)
def test_facts_that_make_no_sense(question: int, answer: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RecordedHost([HostFact(question, b"/a", b"b", 0, answer)], {})
