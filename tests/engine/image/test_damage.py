"""What is damaged in a program's files is left out, and told once, by every command."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from guestrun import run
from sysroot import CHECKOUT

from engine.image import ElfImage
from engine.image.damage import Damage
from engine.session.browse.browser import Browser
from engine.session.control.control import Control
from engine.session.guest.terminal import GuestTerminal
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig

RECURSION = CHECKOUT / "samples" / "bin" / "x86_64" / "recursion"
NAME = "ev\x1b[31mil\nkprobe-tui: no effect"
SHOWN = "ev\\33[31mil\\nkprobe-tui: no effect"


def damaged(folder: Path, change: Callable[[bytearray], None], name: str = NAME) -> str:
    data = bytearray(RECURSION.read_bytes())
    change(data)
    path = folder / name
    path.write_bytes(data)
    path.chmod(0o755)
    return str(path)


def headers(data: bytearray) -> None:
    struct.pack_into("<H", data, 58, 33)  # e_shentsize


def section(name: str) -> Callable[[bytearray], None]:
    """Ones in place of a section's content."""
    found = ElfImage.open(RECURSION).section(name)
    assert found is not None

    def change(data: bytearray) -> None:
        data[found.offset : found.offset + found.size] = b"\xff" * found.size

    return change


def test_each_piece_is_kept_once() -> None:
    damage = Damage()
    for text in ("a", "b", "a", "x" * 1000):
        damage.note(text)
    assert damage.found() == ("a", "b", "x" * 300 + "...")
    assert damage.untold() == damage.found()
    damage.note("c")
    damage.note("b")
    assert damage.untold() == ("c",)
    assert damage.untold() == ()
    for number in range(5000):
        damage.note(f"{number}")
    assert len(damage.found()) == 1000


TOLD = [
    ("trace", "-e", "p 0x4001c0"),
    ("trace", "--list", "-e", "p 0x4001c0"),
    ("graph", "-f", "*"),
    ("check",),
    ("check", "--json", "-f", "main"),
    ("check", "-e", "p main"),
    ("diff", "-e", "p main"),
    ("disasm",),
    ("bt", "--at", "main"),
]


@pytest.mark.parametrize("words", TOLD, ids=lambda words: "-".join(words[:2]))
def test_every_command_tells_it_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Before what may come of it, and no name gets through to the terminal."""
    done = run(*words, damaged(tmp_path, headers), cwd=tmp_path)
    what = "section headers: e_shentsize is 33, must be 64"
    lines = [
        "kprobe-tui: damaged, and left out:",
        f"kprobe-tui:   {tmp_path}/{SHOWN}: {what}",
    ]
    err = [line for line in done.err.splitlines() if line.startswith(("kprobe-tui:", "trace_"))]
    assert err[:2] == lines
    assert done.err.count(what) == 1
    assert "\x1b" not in done.err
    if words[:2] == ("check", "--json"):
        assert done.out == ""


def test_the_report_of_a_crash_begins_with_it(tmp_path: Path) -> None:
    """Lines of the place are asked for at the very end."""
    guest = damaged(tmp_path, section(".debug_abbrev"))
    done = run("run", "--max-blocks", "100", guest, cwd=tmp_path)
    assert done.code == 124
    lines = done.err.splitlines()
    assert lines[0] == "kprobe-tui: damaged, and left out:"
    assert lines[1].startswith(f"kprobe-tui:   {tmp_path}/{SHOWN}: debug information, unit 0x0: ")
    assert lines[-2].endswith("the block limit (--max-blocks) ran out")
    plain = run("run", guest, cwd=tmp_path)
    assert (plain.code, plain.err) == (0, "")  # nobody asked


def test_json_stays_json(tmp_path: Path) -> None:
    guest = damaged(tmp_path, section(".debug_abbrev"))
    done = run("check", "--json", "-f", "main", guest, cwd=tmp_path)
    assert [row["symbol"] for row in json.loads(done.out)] == ["main"]


def test_a_debug_file_that_is_none(tmp_path: Path) -> None:
    """It is found by its name, and is none, or another's."""
    link = b"other.debug\0" + b"\1\2\3\4"

    def linked(data: bytearray) -> None:
        found = ElfImage.open(RECURSION).section(".debug_aranges")
        names = ElfImage.open(RECURSION).section(".shstrtab")
        assert found is not None
        assert names is not None
        for old, new in ((b".debug_aranges\0", b".gnu_debuglink\0"), (b".debug_info\0", b".x\0")):
            at = data.index(old, names.offset, names.offset + names.size)
            data[at : at + len(new)] = new
        data[found.offset : found.offset + found.size] = link.rjust(found.size, b"\0")
        data[found.offset : found.offset + len(link)] = link
        data[found.offset + found.size - 4 : found.offset + found.size] = link[-4:]

    guest = damaged(tmp_path, linked, "prog")
    for content, why in ((b"text", "is a text file"), (RECURSION.read_bytes(), "its checksum")):
        (tmp_path / "other.debug").write_bytes(content)
        done = run("check", "-f", "main", guest, cwd=tmp_path)
        assert done.code == 0
        assert f"kprobe-tui:   {tmp_path}/other.debug: " in done.err
        assert why in done.err


def test_the_interface_tells_it(tmp_path: Path) -> None:
    """What the guest's side finds, and what those who show its code find."""
    guest = damaged(tmp_path, section(".debug_abbrev"), "prog")
    config = GuestConfig(guest)
    opened = Browser(config).opened
    said: list[ev.SessionEvent] = []
    terminal = GuestTerminal()
    control = Control(config, said.append, terminal=terminal, opened=opened)
    try:
        control.loop.execute(cmd.Define("p main", stops=True))
        control.loop.execute(cmd.Continue())
        control.loop.execute(cmd.Restart())
        opened.image.damage.note("seen while it was shown")
        control.loop.execute(cmd.Continue())
        control.loop.execute(cmd.Continue())
    finally:
        control.close()
        terminal.close()
    told = [event.text for event in said if isinstance(event, ev.Notice)]
    found = [text for text in told if text.startswith("damaged, and left out:")]
    assert len(found) == len(set(found)) >= 2
    assert "damaged, and left out: seen while it was shown" in found
    assert any("debug information, unit 0x0" in text for text in found)
