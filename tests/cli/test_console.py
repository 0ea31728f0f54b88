"""Lines and remarks of the commands."""

import io
import sys

import pytest

from engine.cli import console


def test_a_line_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    console.put("0x1 a\nforged \x1b[m")
    assert capsys.readouterr().out == "0x1 a\\nforged \\33[m\n"


def test_a_remark_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.remark("first\n", "sec\x9bond")
    assert capsys.readouterr().err == "kprobe-tui: first\\n\nkprobe-tui:   sec\\xc2\\x9bond\n"
    console.remark("x", color="always")
    assert capsys.readouterr().err == "\033[1mkprobe-tui:\033[0m x\n"


def test_text_keeps_its_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    console.text("a\n  b\r")
    assert capsys.readouterr().err == "a\n  b\\r\n"


def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    console.prepare()
    console.put("caf\u00e9")
    sys.stdout.flush()
    assert raw.getvalue() == b"caf\\xe9\n"
