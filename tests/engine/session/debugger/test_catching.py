"""Exceptions of C++ are caught before their library is there, and again in another session."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cguest import CHECKOUT
from controlkit import Held, held
from gdbwords import said

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig

SOURCE = CHECKOUT / "tests" / "data" / "debugger" / "thrown.cpp"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose C++ library is mapped by the loader."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    program = tmp_path_factory.mktemp("thrown") / "thrown"
    subprocess.run(["g++", "-g", "-O0", "-o", program, SOURCE], check=True)
    return program


@pytest.fixture
def guest(program: Path) -> Iterator[Held]:
    with held(str(program)) as found:
        Console(found.control, found._tell)
        yield found


def test_a_catchpoint_waits_for_the_library(program: Path) -> None:
    lines = ("catch throw", "tcatch rethrow", "catch catch", "info breakpoints", "run", "up")
    text = said(GuestConfig(str(program)), *lines, *("continue",) * 6, "info breakpoints")
    assert text.startswith(
        "Catchpoint 1 (throw)\n"
        "Temporary catchpoint  2 (rethrow)\n"
        "Catchpoint 3 (catch)\n"
        "Num     Type           Disp Enb Address            What\n"
        "1       catchpoint     keep y                      exception throw\n"
        "2       catchpoint     del  y                      exception rethrow\n"
        "3       catchpoint     keep y                      exception catch\n"
        "\nCatchpoint 1 (exception thrown), 0x"
    )
    events = [line.split(",")[0] for line in text.splitlines() if "(exception " in line]
    assert events == [
        "Catchpoint 1 (exception thrown)",
        "Catchpoint 3 (exception caught)",
        "Catchpoint 1 (exception thrown)",
        "Catchpoint 3 (exception caught)",
        "Temporary catchpoint 2 (exception rethrown)",
        "Catchpoint 3 (exception caught)",
    ]
    assert f"in lift (n=2) at {SOURCE}:6\n" in text
    assert text.endswith(
        "1       catchpoint     keep y                      exception throw\n"
        "\tcatchpoint already hit 2 times\n"
        "3       catchpoint     keep y                      exception catch\n"
        "\tcatchpoint already hit 3 times\n"
    )


def test_a_condition_is_kept_until_the_library_comes(program: Path) -> None:
    lines = ('catch throw if $_caller_is("main", 2)', "ignore 1 1", "run", "bt 1")
    text = said(GuestConfig(str(program)), *lines)
    assert "Catchpoint 1 (exception thrown), 0x" in text


def test_an_interface_names_the_stop_and_another_session_has_it_again(
    guest: Held, program: Path
) -> None:
    guest.do(cmd.TypedLine("catch throw"), cmd.Continue())
    assert guest.view.reason == "catchpoint 1: exception thrown"
    with held(str(program)) as fresh:
        Console(fresh.control, fresh._tell)
        fresh.do(cmd.Restore((), guest.view.stops))
        fresh.do(cmd.Continue())
        assert fresh.view.reason.endswith(": exception thrown")


def test_an_exception_is_caught_by_its_type(program: Path) -> None:
    lines = (
        "catch throw nothing",
        "catch throw runtime",
        "info breakpoints",
        "run",
        "info breakpoints",
    )
    text = said(GuestConfig(str(program)), *lines)
    assert "exception throw\n\tmatching: nothing\n2 " in text
    assert "\nCatchpoint 2 (exception thrown), 0x" in text
    after = text.rpartition("Num ")[2]
    assert "\tmatching: nothing\n2 " in after
    assert "\tmatching: runtime\n\tcatchpoint already hit 1 time" in after


def test_what_is_enabled_once_is_off_behind_each_stop(program: Path) -> None:
    lines = ("break lift", "enable once 1", "run", "info breakpoints", "enable 1", "continue")
    text = said(GuestConfig(str(program)), *lines, "info breakpoints")
    assert text.count("1       breakpoint     dis  n   0x") == 2
