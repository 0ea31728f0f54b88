"""All that a guest's tree asks of its host passes `HostAnswers`, which may answer itself."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from fskit import Process

from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.host import Answer, HostAnswers, HostQuestion
from engine.linux.fs.view import View


class _Kept(HostAnswers):
    """Asks each question once."""

    def __init__(self) -> None:
        self.known: dict[tuple[HostQuestion, bytes, bytes], object] = {}

    def ask(
        self, question: HostQuestion, path: bytes, name: bytes, call: Callable[[], Answer]
    ) -> Answer:
        key = question, path, name
        if key not in self.known:
            self.known[key] = call()
        return cast(Answer, self.known[key])


def test_nothing_is_asked_past_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree is as it was, whatever has become of the host's."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("text")
    (tmp_path / "link").symlink_to("folder/file")
    kept = _Kept()
    monkeypatch.setattr("fskit.FileSystem", lambda *a, **k: FileSystem(*a, host=kept, **k))

    def seen() -> list[object]:
        process = Process(View.make(cwd=str(tmp_path), programs=True))
        return [
            process.ls(str(tmp_path)),
            process.ls(str(tmp_path / "folder")),
            process.stat(str(tmp_path / "link")),
            process.stat(str(tmp_path)),
            process.ls("/"),
        ]

    before = seen()
    assert before[0] == [b"folder", b"link"]
    (tmp_path / "folder/file").write_text("longer")
    (tmp_path / "folder/new").touch()
    (tmp_path / "link").unlink()
    assert seen() == before
    monkeypatch.setattr("fskit.FileSystem", FileSystem)
    assert Process(View.make(cwd=str(tmp_path))).ls(str(tmp_path)) == [b"folder"]


def test_names_that_the_tree_lacks_may_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen/file").write_text("here")
    (tmp_path / "there").write_text("elsewhere")
    process = Process(View.make(cwd=str(tmp_path / "seen")))
    fs = process.fs
    granted = fs.granted(View.make(shares=[(str(tmp_path / "there"), False)]))
    fs.look_beyond(
        lambda directory, name: (
            fs.lookup(granted, b"." + directory.path_of(name)) if name == b"there" else None
        )
    )
    assert process.cat(str(tmp_path / "there")) == b"elsewhere"
    found, host = process.stat(str(tmp_path / "there")), (tmp_path / "there").stat()
    assert (found["dev"], found["ino"]) == (host.st_dev, host.st_ino)
    assert process.open(str(tmp_path / "seen/none")) == -2
    assert process.cat(str(tmp_path / "seen/file")) == b"here"
