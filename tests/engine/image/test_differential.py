"""The same questions to us and to binutils, on real binaries of this machine."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from engine.image import ElfImage, Lines, SymbolTable, find_fde, function_ranges

_KINDS = {"FUNC": "func", "OBJECT": "object", "NOTYPE": "notype", "IFUNC": "ifunc", "TLS": "tls"}


def output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_segments_as_readelf(binary: Path, readelf: str) -> None:
    image = ElfImage.open(binary)
    expected = [
        tuple(int(number, 16) for number in match[:5])
        for match in re.findall(
            r"^  LOAD +(0x\w+) (0x\w+) (0x\w+) (0x\w+) (0x\w+)",
            output(readelf, "-lW", binary),
            re.MULTILINE,
        )
    ]
    found = [(s.offset, s.vaddr, s.paddr, s.filesz, s.memsz) for s in image.load_segments]
    assert found == expected


def test_sections_and_facts_as_readelf(binary: Path, readelf: str) -> None:
    image = ElfImage.open(binary)
    lines = output(readelf, "-SW", binary)
    rows = re.findall(r"^  \[ *(\d+)\] (\S*) +\w+ +([0-9a-f]{8,16}) (\w+) (\w+)", lines, re.M)
    for number, name, address, offset, size in rows:
        section = image.sections[int(number)]
        assert section.name.startswith(name.split("[", 1)[0])
        stored = (section.addr, section.offset, section.size)
        assert stored == tuple(int(text, 16) for text in (address, offset, size))
    facts = output(readelf, "-hldnW", binary)
    needed = re.findall(r"\(NEEDED\) +Shared library: \[(.*)\]", facts)
    soname = re.findall(r"\(SONAME\) +Library soname: \[(.*)\]", facts)
    build_id = re.findall(r"Build ID: (\w+)", facts)
    interpreter = re.findall(r"Requesting program interpreter: (.*)\]", facts)
    assert list(image.needed) == needed
    assert image.soname == (soname[0] if soname else None)
    assert image.build_id == (build_id[0] if build_id else None)
    assert image.interpreter == (interpreter[0] if interpreter else None)


def readelf_symbols(readelf: str, binary: Path) -> set[tuple[str, int, int, str]]:
    rows: set[tuple[str, int, int, str]] = set()
    for line in output(readelf, "-sW", binary).splitlines():
        words = line.split()
        if len(words) < 8 or not words[0][:-1].isdigit() or words[6] == "UND":
            continue
        if words[3] in _KINDS:
            name = words[7].split("@")[0]
            rows.add((name, int(words[1], 16), int(words[2], 0), _KINDS[words[3]]))
    return rows


def test_symbols_as_readelf(binary: Path, readelf: str) -> None:
    table = SymbolTable(ElfImage.open(binary), ())
    expected = readelf_symbols(readelf, binary)
    stored = {(s.name, s.address, s.size, s.kind) for s in table if s.section}
    assert stored == expected
    for name, address, size, kind in sorted(expected)[::37]:
        assert (address, size, kind) in [(s.address, s.size, s.kind) for s in table.find_all(name)]
        if kind in ("func", "ifunc") and size:
            for place in (address, address + size - 1):
                symbol = table.at(place)
                assert symbol is not None
                assert symbol.address <= place < symbol.address + symbol.size


def test_dynamic_symbols_without_section_headers(binary: Path) -> None:
    whole = ElfImage.open(binary)
    dynamic = whole.section(".dynsym")
    if dynamic is None or whole.bits == 32:
        pytest.skip(f"{binary} has no dynamic symbols")
    data = bytearray(whole.data(0, whole.size))
    data[40:48] = bytes(8)  # e_shoff
    bare = SymbolTable(ElfImage.from_bytes(bytes(data), "no sections"), ())
    table = SymbolTable(whole, ())
    for name in table.complete("", 100_000)[::97]:
        expected = {s.address for s in table.find_all(name) if s.section and s.binding != "local"}
        assert expected <= {s.address for s in bare.find_all(name)}, name


def test_addresses_as_nm(binary: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm on this machine")
    table = SymbolTable(ElfImage.open(binary), ())
    rows = output(nm, "-D", "--defined-only", binary).splitlines()
    for row in rows[::29]:
        address, kind, name = row.split()[:3]
        if kind in "TtWiDBR":
            found = table.find_all(name.split("@")[0])
            assert int(address, 16) in [symbol.address for symbol in found]


def test_unwind_ranges_as_readelf(binary: Path, readelf: str) -> None:
    image = ElfImage.open(binary)
    text = output(readelf, "-wN", "--debug-dump=frames", binary)
    rows = re.findall(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)
    expected = {(int(low, 16), int(high, 16) - int(low, 16)) for low, high in rows if low != high}
    assert set(function_ranges(image)) == expected
    for start, size in sorted(expected)[::19]:
        fde = find_fde(image, start + size - 1)
        assert fde is not None
        assert (fde.start, fde.size) == (start, size)


def test_stubs_as_objdump(binary: Path) -> None:
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("no objdump on this machine")
    image = ElfImage.open(binary)
    if image.machine_name not in ("EM_X86_64", "EM_AARCH64"):
        pytest.skip(f"{image.machine_name} has no named stubs")
    table = SymbolTable(image, ())
    names = ["-j.plt", "-j.plt.sec", "-j.plt.got"]
    done = subprocess.run(
        [objdump, "-d", *names, binary], capture_output=True, text=True, check=False
    )
    rows = re.findall(r"^([0-9a-f]+) <(.+)@plt>:", done.stdout, re.MULTILINE)
    for address, name in rows:
        if name.startswith("*"):  # an IRELATIVE slot: we name the resolver, objdump a number
            continue
        found = table.at(int(address, 16))
        assert found is not None
        assert found.name == name.split("@")[0] + "@plt"


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
@pytest.mark.parametrize("guest", ["unw-O0", "unw-O2", "unw-Os"])
def test_lines_as_readelf(guests: Path, arch: str, guest: str, readelf: str) -> None:
    path = guests / arch / guest
    image = ElfImage.open(path)
    lines = Lines(image, ())
    text = output(readelf, "-W", "--debug-dump=decodedline", path)
    found = re.findall(r"^\S+ +(\d+|-) +(0x[0-9a-f]+)(?: +\d+)? *(x?)$", text, re.MULTILINE)
    rows = [(int(address, 16), line, mark) for line, address, mark in found]
    checked, begun = 0, ""
    for (address, line, mark), (follower, _, _) in pairwise(rows):
        begun = line if mark and line != "-" else begun
        if address < follower and line != "-":
            place = lines.line_at(address)
            # Where a statement begins, it counts, and not what stands behind it, as in gdb.
            assert (place[1] if place else 0) == int(begun or line)
            checked += 1
        begun = "" if address != follower else begun
    assert checked > 20
    assert lines.image.damage.found() == ()
