"""What words print is copied to a file: set logging."""

from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.errors import CommandError
from engine.session.debugger.output import OutputLog
from engine.session.debugger.settings import SettingValues
from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))


def test_it_is_copied_while_the_setting_is_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    lines = (f"set logging file {log}", "p 1", "set logging enabled on", "p 2", "pipe p 3 | cat")
    out = said(STRUCTS, *lines, "set logging off", "p 4", "show logging enabled")
    assert out == "$1 = 1\n$2 = 2\n$3 = 3\n$4 = 4\nLogging is off.\n"
    assert log.read_text() == "before\n$2 = 2\n$3 = 3\n"


def test_redirected_text_is_printed_nowhere_else_and_overwrites(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    rules = ("set logging redirect on", "set logging overwrite on", f"set logging file {log}")
    assert said(STRUCTS, *rules, "set logging on", "p 5", "set logging enabled off") == ""
    assert log.read_text() == "$1 = 5\n"


def test_a_file_that_cannot_be_written_leaves_logging_off() -> None:
    lines = ("set logging file /nonexistent/log", "set logging enabled on", "p 6")
    assert said(STRUCTS, *lines, "show logging enabled") == (
        "! set logging: No such file or directory.\n$1 = 6\nLogging is off.\n"
    )
    full = ("set logging file /dev/full", "set logging enabled on", "p 7", "p 8")
    assert said(STRUCTS, *full) == "! set logging: No space left on device.\n$2 = 8\n"


def test_a_client_of_a_server_writes_no_file(tmp_path: Path) -> None:
    settings = SettingValues(lambda: None)
    log = OutputLog(settings, remote=True)
    for text in (f"logging file {tmp_path / 'log'}", "logging enabled on"):
        found = settings.find(text)
        assert found is not None
        settings.set(*found, int)
    with pytest.raises(CommandError, match="not written from afar"):
        log.renew()
    assert not settings["logging enabled"]
    assert not log.take("text")
    assert not list(tmp_path.iterdir())
