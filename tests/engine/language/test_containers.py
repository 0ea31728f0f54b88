"""Containers of libstdc++ as gdb's printers show them, and such as were overwritten."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlkit import Held, held
from sysroot import CHECKOUT

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

SOURCE = CHECKOUT / "tests" / "data" / "language" / "boxes.cc"
NAMES = (
    *("empty", "small", "large", "odd", "none", "three", "words", "bits", "points", "nested"),
    *("long_one", "names", "counts", "no_map", "set", "multi", "hashed", "list", "no_list"),
    *("deque", "owner", "nobody", "shared", "second", "gone", "pair", "o", "*po"),
    *("three._M_impl", "/r three"),
)
pytestmark = pytest.mark.slow  # a program with all of the library's templates is compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the program is, with the library in it and without."""
    compiler = shutil.which("x86_64-linux-gnu-g++")
    if compiler is None:
        pytest.skip("no compiler for C++")
    made = tmp_path_factory.mktemp("boxes")
    for name, more in (("alone", ["-static"]), ("shared", [])):
        subprocess.run([compiler, "-g", "-O0", *more, "-o", made / name, SOURCE], check=True)
    return made


@pytest.fixture
def guest(folder: Path) -> Iterator[Held]:
    """The program where all containers are made, main's frame looked at."""
    with held(str(folder / "alone")) as found:
        Console(found.control, found._tell)
        found.do(cmd.ToggleBreak("stop"), cmd.Continue(), cmd.TypedLine("up"))
        yield found


def shown(guest: Held, name: str) -> str:
    """What `print` says, without the number."""
    line = f"print{name}" if name.startswith("/") else f"print {name}"
    guest.do(cmd.TypedLine(line))
    return guest.all(ev.Done)[-1].text.partition(" = ")[2]


def test_as_gdb_shows_them(folder: Path, guest: Held) -> None:
    if shutil.which("gdb") is None or not Path("/usr/share/gdb/auto-load").is_dir():
        pytest.skip("no gdb with the library's printers")
    script = ["break stop", "run", "up"]
    script += [f"print{name}" if name.startswith("/") else f"print {name}" for name in NAMES]
    commands = [word for line in script for word in ("-ex", line)]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", *commands, str(folder / "shared")],
        capture_output=True,
        text=True,
        check=False,
    )
    theirs = [line.partition(" = ")[2] for line in done.stdout.split("\n") if line[:1] == "$"]
    if not any("std::vector of length" in line for line in theirs):
        pytest.skip("gdb has not loaded the library's printers")
    ours = [shown(guest, name) for name in NAMES]
    blank = [[re.sub("0x[0-9a-f]+", "ADDRESS", line) for line in each] for each in (ours, theirs)]
    assert blank[0] == blank[1]


def test_what_was_overwritten_ends_somewhere(guest: Held) -> None:
    def spoil(name: str, word: int, value: int | str) -> None:
        guest.do(cmd.TypedLine(f"set var ((unsigned long *) &{name})[{word}] = {value}"))

    spoil("three", 1, 8)  # it ends before it begins
    assert shown(guest, "three").startswith("{<std::_Vector_base")
    # Nothing is mapped there; the number of strings is huge, and whole.
    spoil("words", 0, "(unsigned long) words._M_impl._M_finish % 32 + 32")
    assert "Cannot access memory at address" in shown(guest, "words")
    spoil("small", 1, 1 << 40)
    assert shown(guest, "small").startswith('"abc')
    assert len(shown(guest, "small")) < 2000
    spoil("large", 0, 0x10)
    assert shown(guest, "large") == "<error: Cannot access memory at address 0x10>"
    header = int(shown(guest, "&names._M_t._M_impl._M_header").split()[-1], 16)
    root = int.from_bytes(guest.control.session.seen.memory.read(header + 8, 8), "little")
    guest.do(cmd.WriteMemory(root + 24, root.to_bytes(8, "little")))  # a tree in itself
    assert shown(guest, "names").startswith("std::map with 3 elements = {")
    spoil("counts", 5, 1 << 47)
    assert shown(guest, "counts").startswith("std::map with 140737488355328 elements = {")
    spoil("list", 0, 0x10)
    assert "Cannot access memory at address 0x20" in shown(guest, "list")
    spoil("deque", 2, 3)
    assert shown(guest, "deque")
    spoil("shared", 1, 0x10)
    assert shown(guest, "shared") == "<error: Cannot access memory at address 0x18>"
    assert shown(guest, "o").startswith('{name = "first"'), "the others are as they were"


def test_containers_open_to_what_they_hold(guest: Held) -> None:
    """The pane asks for parts: those of gdb's printers, one by one."""
    view = guest.view
    names = [variable.name for variable in view.frames[1].variables]

    def opened(name: str, *steps: int, count: int = 9) -> list[tuple[str, str]]:
        branch = cmd.Branch(1, names.index(name), steps, count)
        guest.do(cmd.ReadParts(view.moment, (branch,)))
        (found,) = guest.all(ev.PartsRead)[-1].found
        assert found is not None
        return [(part.name, part.value) for part in found.parts]

    for name in ("three", "words", "bits", "points", "nested", "counts", "set", "list", "deque"):
        line = shown(guest, name)
        for key, value in opened(name):
            if key[1:-1].isdigit() and not value.startswith("{"):
                assert value in line, name
            elif not value.startswith("{"):
                assert f"{key} = {value}" in line, name
    assert opened("nested", 0)
    assert len(opened("three", count=2)) == 2
    assert not next(v for v in view.frames[1].variables if v.name == "empty").opens
    assert opened("owner")[0][0] == "get()"
    assert opened("owner", 0)
