"""Settings that change how things are shown, and where source files are looked for."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
SOURCE = "int main(void)\n{\n    return 0;\n}\n"


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> tuple[GuestConfig, Path, Path]:
    """A program, the folder that its source was compiled in, and the one that it is in now."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    tmp = tmp_path_factory.mktemp("moved")
    before, now = tmp / "before" / "src", tmp / "now" / "src"
    before.mkdir(parents=True)
    (before / "moved.c").write_text(SOURCE)
    program = tmp / "moved"
    source = before / "moved.c"
    subprocess.run(["gcc", "-g", "-static", "-no-pie", "-o", program, source], check=True)
    shutil.move(before.parent, now.parent)
    return GuestConfig(str(program)), before, now


def test_a_source_file_is_found_where_it_was_moved_to(
    moved: tuple[GuestConfig, Path, Path],
) -> None:
    config, before, now = moved
    stop = ("break main", "run")
    assert f"3\t{before}/moved.c: No such file or directory.\n" in said(config, *stop)
    assert "3\t    return 0;\n" in said(config, f"set substitute-path {before} {now}", *stop)
    assert "3\t    return 0;\n" in said(config, f"directory {now}", *stop)
    late = said(config, *stop, f"set substitute-path {before} {now}", "frame")
    assert late.endswith("3\t    return 0;\n")


def test_rules_and_folders_are_shown_and_taken_back(moved: tuple[GuestConfig, Path, Path]) -> None:
    config, before, now = moved
    lines = (
        *(f"set substitute-path {before}/ {now}", "set substitute-path /a /b"),
        *("show substitute-path", "unset substitute-path /a", "show substitute-path"),
        *("unset substitute-path", "show substitute-path", "unset substitute-path /a"),
        *(f"directory {now}:/nonexistent", "show directories", "directory", "show directories"),
        *("set substitute-path /a",),
    )
    head = "List of all source path substitution rules:\n"
    assert said(config, *lines) == (
        f"{head}  `{before}' -> `{now}'.\n  `/a' -> `/b'.\n"
        f"{head}  `{before}' -> `{now}'.\n{head}"
        "! No substitution rule defined for `/a'\n"
        "! Warning: /nonexistent: No such file or directory.\n"
        f"Source directories searched: {now}:/nonexistent:$cdir:$cwd\n"
        "Source directories searched: $cdir:$cwd\n"
        "! Incorrect usage, too few arguments in command\n"
    )


def test_settings_are_shown_and_put_back_after_with() -> None:
    lines = (
        *("set print elements 5", "show print elements", 'with print elements 2 -- p "abcdef"'),
        *('p "abcdef"', "set p elem unl", 'p "abcdefgh"', "show listsize", "show nosuch"),
    )
    assert said(STRUCTS, *lines) == (
        "Limit on string chars or array elements to print is 5.\n"
        '$1 = "ab"...\n$2 = "abcde"...\n$3 = "abcdefgh"\n'
        "Number of source lines gdb will list by default is 10.\n"
        '! Undefined show command: "nosuch".  Try "help show".\n'
    )


def test_expressions_that_look_like_settings() -> None:
    lines = ("set $width = 3", "p $width", "break transfer", "run", "set payment->amount=5")
    assert said(STRUCTS, *lines, "p payment->amount").endswith("$2 = 5\n")
