"""Source lines: only of regular files, however the guest's file names them."""

import os
from pathlib import Path

import pytest

from tui.source_files import SourceFiles


def test_lines_by_path_or_by_name_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.c"
    file.write_bytes(b"int a;  \n\tint b;\n\xff\n")
    files = SourceFiles()
    assert files.line(str(file), 1) == "int a;"
    assert files.line(str(file), 2) == "    int b;"
    assert files.line(str(file), 3) == "\N{REPLACEMENT CHARACTER}"
    assert [files.line(str(file), number) for number in (-1, 0, 5)] == ["", "", ""]
    monkeypatch.chdir(tmp_path)
    assert files.line("/build/of/somebody/a.c", 1) == "int a;"


def test_nothing_else_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for ever
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(5 << 20)
    files = SourceFiles()
    for name in (tmp_path / "pipe", tmp_path, large, "/dev/zero", "bad\0name", tmp_path / "none"):
        assert files.line(str(name), 1) == ""
