"""Symbols of separate debug files: every place they may be in, and files that are not believed."""

import lzma
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from compiled import build, tool
from guestrun import run

from engine.image import ElfImage, Lines, SymbolTable, debugfiles

SOURCE = """
#include <stdio.h>
static __attribute__((noinline)) int helper(int x) { return x * 3 + 1; }
__attribute__((noinline)) int work(int x) { return helper(x) + 2; }
int counted;
int main(int argc, char **argv) { counted = work(argc); printf("%d\\n", counted); return 0; }
"""
OWN = {"helper", "work", "main"}


@dataclass(frozen=True)
class Split:
    """A program as it was linked, the same stripped, and the debug file of both."""

    full: Path
    stripped: Path
    debug: Path

    @property
    def build_id(self) -> str:
        ident = ElfImage.open(self.full).build_id
        assert ident is not None
        return ident


def objcopy(*words: str | Path) -> None:
    subprocess.run([tool("objcopy"), *words], check=True, stderr=subprocess.DEVNULL)


@pytest.fixture
def split(tmp_path: Path) -> Split:
    built = build(tmp_path, "prog", SOURCE, "-O1", "-g", "-Wl,--build-id=sha1")
    full, debug = tmp_path / "prog.full", tmp_path / "prog.debug"
    shutil.copy(built, full)
    objcopy("--only-keep-debug", full, debug)
    objcopy("--strip-all", f"--add-gnu-debuglink={debug}", full, built)
    return Split(full, built, debug)


@pytest.fixture
def moved_away(split: Split, tmp_path: Path) -> Split:
    """The debug file is where nobody looks for it."""
    (tmp_path / "away").mkdir()
    place = tmp_path / "away" / "other.name"
    split.debug.rename(place)
    return Split(split.full, split.stripped, place)


def check(path: Path, full: Path, debug_dirs: tuple[str, ...] | None = ()) -> SymbolTable:
    """Each symbol and each address is called as in the program that was not stripped."""
    table, whole = SymbolTable(ElfImage.open(path), debug_dirs), SymbolTable(ElfImage.open(full))
    assert table.image.damage.found() == ()
    assert [(f.name, f.address, f.size) for f in table.functions()] == [
        (f.name, f.address, f.size) for f in whole.functions()
    ]
    assert {f.name for f in table.functions()} >= OWN
    image = whole.image
    for address in range(image.low, image.high, 11):
        assert table.at(address) == whole.at(address), hex(address)
    for name in (*OWN, "counted", "_start"):
        assert table.find(name) == whole.find(name)
    assert table.complete("hel", 5) == ["helper"]
    return table


def stripped_of_all(path: Path) -> SymbolTable:
    table = SymbolTable(ElfImage.open(path), ())
    assert not {f.name for f in table.functions()} & OWN
    assert table.find("helper") is None
    return table


def test_by_debuglink(split: Split) -> None:
    check(split.stripped, split.full)
    place = split.debug.parent / ".debug"
    place.mkdir()
    split.debug.rename(place / split.debug.name)
    check(split.stripped, split.full)
    top = split.debug.parent / "top"
    home = Path(f"{top}{split.debug.parent}")
    home.mkdir(parents=True)
    (place / split.debug.name).rename(home / split.debug.name)
    stripped_of_all(split.stripped)
    check(split.stripped, split.full, (str(top),))


def test_by_build_id(moved_away: Split, tmp_path: Path) -> None:
    stripped_of_all(moved_away.stripped)
    ident = moved_away.build_id
    place = tmp_path / "top" / ".build-id" / ident[:2] / f"{ident[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(moved_away.debug, place)
    check(moved_away.stripped, moved_away.full, (str(tmp_path / "top"),))


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("DEBUGINFOD_CACHE_PATH", "."),
        ("XDG_CACHE_HOME", "debuginfod_client"),
        ("HOME", ".cache/debuginfod_client"),
        ("HOME", ".debuginfod_client_cache"),
    ],
)
def test_in_the_cache_of_debuginfod(
    moved_away: Split,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    folder: str,
) -> None:
    for name in ("DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv(variable, str(tmp_path / "own"))
    place = tmp_path / "own" / folder / moved_away.build_id / "debuginfo"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")  # a client remembers in an empty file that no server has it
    assert SymbolTable(ElfImage.open(moved_away.stripped)).find("helper") is None
    shutil.copy(moved_away.debug, place)
    check(moved_away.stripped, moved_away.full, None)
    assert Lines(ElfImage.open(moved_away.stripped)).files()


def test_in_the_root_of_the_guest(moved_away: Split, tmp_path: Path) -> None:
    root = tmp_path / "root"
    program = root / "usr" / "bin" / "prog"
    program.parent.mkdir(parents=True)
    shutil.copy(moved_away.stripped, program)
    debug = root / "usr" / "lib" / "debug" / "usr" / "bin" / "prog.debug"
    debug.parent.mkdir(parents=True)
    shutil.copy(moved_away.debug, debug)
    assert SymbolTable(ElfImage.open(program)).find("helper") is None
    assert SymbolTable(ElfImage.open(program, root=str(root))).find("helper")


def embed(split: Split, content: bytes) -> None:
    packed = split.stripped.parent / "packed"
    packed.write_bytes(content)
    objcopy("--remove-section=.gnu_debuglink", split.stripped)
    objcopy(f"--add-section=.gnu_debugdata={packed}", split.stripped)


def small_debug_file(split: Split) -> bytes:
    """As find-debuginfo makes it: the symbols of functions, no other sections."""
    small = split.stripped.parent / "small"
    objcopy("--strip-debug", "--remove-section=.comment", split.debug, small)
    return small.read_bytes()


def test_embedded(moved_away: Split) -> None:
    embed(moved_away, lzma.compress(small_debug_file(moved_away)))
    check(moved_away.stripped, moved_away.full)


def test_what_is_damaged_is_told(moved_away: Split) -> None:
    good = lzma.compress(small_debug_file(moved_away))
    bare = {f.name for f in stripped_of_all(moved_away.stripped).functions()}
    other = bytearray(small_debug_file(moved_away))
    struct.pack_into("<H", other, 18, 183)  # e_machine
    for content, reason in (
        (b"no xz at all", "format"),
        (good[:-40], "does not end"),
        (good[:100] + bytes(40) + good[140:], "[Cc]orrupt"),
        (lzma.compress(b"no ELF file"), "text file"),
        (lzma.compress(bytes(other)), "another machine"),
    ):
        embed(moved_away, content)
        table = SymbolTable(ElfImage.open(moved_away.stripped), ())
        assert {f.name for f in table.functions()} == bare
        assert len(table.image.damage.found()) == 1
        assert re.search(f"section .gnu_debugdata.*{reason}", table.image.damage.found()[0])
        objcopy("--remove-section=.gnu_debugdata", moved_away.stripped)


def test_an_embedded_bomb_is_not_unpacked(
    moved_away: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debugfiles, "_MAX_EMBEDDED", 1 << 16)
    embed(moved_away, lzma.compress(bytes(1 << 20)))
    table = SymbolTable(ElfImage.open(moved_away.stripped), ())
    assert table.find("helper") is None
    assert "it unpacks to more than" in table.image.damage.found()[0]


def test_a_part_of_the_symbols_was_left_in_the_program(split: Split) -> None:
    kept = split.stripped.parent / "kept"
    objcopy("--strip-all", "--keep-symbol=work", split.full, kept)
    objcopy(f"--add-gnu-debuglink={split.debug}", kept)
    assert SymbolTable(ElfImage.open(kept), ()).find("helper")
    names = [f.name for f in SymbolTable(ElfImage.open(kept), ()).functions()]
    assert sorted(names) == sorted(
        f.name for f in SymbolTable(ElfImage.open(split.full)).functions()
    )


def test_the_program_has_no_section_headers(split: Split, tmp_path: Path) -> None:
    data = bytearray(split.stripped.read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HH", data, 60, 0, 0)  # e_shnum, e_shstrndx
    split.stripped.write_bytes(data)
    place = tmp_path / "top" / split.build_id / "debuginfo"
    place.parent.mkdir(parents=True)
    shutil.copy(split.debug, place)
    table = SymbolTable(ElfImage.open(split.stripped), (str(tmp_path / "top"),))
    whole = SymbolTable(ElfImage.open(split.full))
    for name in OWN:
        ours, theirs = table.find(name), whole.find(name)
        assert ours is not None
        assert theirs is not None
        assert (ours.address, ours.size) == (theirs.address, theirs.size)


def test_a_program_that_was_moved_after_the_split(split: Split) -> None:
    # Not the program but its debug file is moved, which is the same and simpler.
    objcopy("--change-addresses", "0x10000", split.debug)
    objcopy("--remove-section=.gnu_debuglink", split.stripped)
    objcopy(f"--add-gnu-debuglink={split.debug}", split.stripped)
    image = ElfImage.open(split.stripped)
    debug = debugfiles.find_debug_file(image, ())
    assert debug is not None
    assert debugfiles.is_moved(image, debug)
    check(split.stripped, split.full)
    lines = Lines(image, ())
    assert lines.files() == (), "those addresses are not this program's"
    assert "prelinked" in lines.image.damage.found()[0]


def test_a_foreign_debug_file_is_not_believed(split: Split, tmp_path: Path) -> None:
    split.debug.write_bytes(split.debug.read_bytes() + b"\0")
    stripped_of_all(split.stripped)
    other = build(tmp_path, "other", SOURCE + "int more;", "-g", "-Wl,--build-id=sha1")
    ident = split.build_id
    place = tmp_path / "top" / ".build-id" / ident[:2] / f"{ident[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(other, place)
    assert (
        SymbolTable(ElfImage.open(split.stripped), (str(tmp_path / "top"),)).find("main") is None
    )


def test_nothing_is_looked_for_before_a_question(
    split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = ElfImage.open

    def counting(path: str | os.PathLike[str], **how: bool) -> ElfImage:
        opened.append(os.fspath(path))
        return real(path, runnable=how.get("runnable", True))

    monkeypatch.setattr(ElfImage, "open", counting)
    image = ElfImage.open(split.stripped)
    table, lines = SymbolTable(image, ()), Lines(image, ())
    assert opened == [str(split.stripped)]
    assert table.find("helper")
    assert lines.files()
    assert table.at(image.entry)
    assert opened == [str(split.stripped), str(split.debug)], "one search serves all"


def test_every_way_to_ask_for_a_name(split: Split, tmp_path: Path) -> None:
    program = str(split.stripped)
    done = run("trace", "-f", "help*", "--stack", program, cwd=tmp_path)
    assert re.search(r": p_helper_0: \(helper\+0x0/0x\w+\)", done.err), done.err
    stack = re.findall(r"=> (\w+)\+", done.err)
    assert stack[:3] == ["helper", "work", "main"]
    done = run("trace", "--list", "-e", "p helper", program, cwd=tmp_path)
    assert done.out == "p:kprobes/p_helper_0 helper\n"
    done = run("bt", "--at", "helper", program, cwd=tmp_path)
    assert re.findall(r"in (\w+)\+", done.out)[:3] == ["helper", "work", "main"]
    done = run("disasm", program, "helper", cwd=tmp_path)
    assert "<helper+0x0>" in done.out
    done = run("check", "-f", "work", program, cwd=tmp_path)
    assert "work+0x0" in done.out


def test_a_library_beside_its_debug_file(tmp_path: Path) -> None:
    library = build(
        tmp_path,
        "libinner.so",
        "static __attribute__((noinline)) int inner(int x) { return x * 3; }\n"
        "int outer(int x) { return inner(x) + 1; }\n",
        *("-shared", "-fPIC", "-O1", "-g", "-Wl,--build-id=none"),
    )
    source = "int outer(int); int main(int argc, char **argv) { return outer(argc) - 4; }"
    program = build(tmp_path, "user", source, str(library), f"-Wl,-rpath,{tmp_path}")
    debug = tmp_path / "libinner.debug"
    objcopy("--only-keep-debug", library, debug)
    objcopy("--strip-all", f"--add-gnu-debuglink={debug}", library)
    done = run("bt", "--at", "libinner:inner", str(program), cwd=tmp_path)
    assert re.findall(r"in (\w+)\+", done.out)[:3] == ["inner", "outer", "main"], done.err
    assert "libinner.so.c:1" in done.out


def test_names_as_gdb_gives_them(split: Split, tmp_path: Path) -> None:
    gdb = tool("gdb")
    image = ElfImage.open(split.stripped)
    table = SymbolTable(image, ())
    text = image.section(".text")
    assert text is not None
    addresses = range(text.addr, text.addr + text.size, 5)
    script = tmp_path / "script"
    script.write_text("".join(f"info symbol {at:#x}\n" for at in addresses))
    done = subprocess.run(
        [gdb, "-nx", "-batch", "-x", script, split.stripped], capture_output=True, text=True
    )
    found = [
        line for line in done.stdout.splitlines() if line.startswith("No sym") or " in sec" in line
    ]
    for address, line in zip(addresses, found, strict=True):
        symbol = table.at(address)
        if line.startswith("No symbol"):
            assert symbol is None
            continue
        match = re.match(r"(\w+)(?:\.\w+)*(?: \+ (\d+))? in section", line)
        assert match is not None, line
        assert symbol is not None, line
        assert address - symbol.address == int(match[2] or 0), line
