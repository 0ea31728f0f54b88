"""Lines: the guests' own, other ways to store them, separate files, and damage."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from workcount import calls

from engine.image import ElfImage, Lines, SymbolTable
from engine.image.lineprogram import LineSections, read_header, run
from engine.image.reader import DamagedError

SOURCE = """\
static int twice(int n)
{
    return 2 * n;
}

int main(int argc, char **argv)
{
    int sum = 0;

    for (int i = 0; i < argc; i++)
        sum += twice(i);
    return sum;
}
"""


@pytest.fixture(scope="module")
def compiler() -> str:
    path = shutil.which("gcc")
    if path is None:
        pytest.skip("no gcc on this machine")
    return path


def compiled(compiler: str, folder: Path, *options: str) -> Path:
    (folder / "prog.c").write_text(SOURCE)
    subprocess.run([compiler, "-O0", *options, "prog.c", "-o", "prog"], cwd=folder, check=True)
    return folder / "prog"


def check_program(path: Path, folder: Path, debug_dirs: tuple[str, ...] = ()) -> Lines:
    """Both directions of SOURCE's lines."""
    image = ElfImage.open(path)
    lines = Lines(image, debug_dirs)
    symbols = SymbolTable(image, debug_dirs)
    main = symbols.find("main")
    assert main is not None
    source = str(folder / "prog.c")
    assert lines.line_at(main.address) == (source, 7)
    assert source in lines.files()
    for wanted, found in ((8, 8), (9, 10), (10, 10), (11, 11), (12, 12)):
        (address,) = lines.addresses_of("prog.c", wanted)
        assert lines.line_at(address) == (source, found)
        assert main.address < address < main.address + main.size
    assert lines.addresses_of("rog.c", 8) == []
    assert lines.addresses_of(source, 8) == lines.addresses_of("prog.c", 8)
    assert lines.addresses_of("prog.c", 14) == []
    statements = lines.statements_of(source)
    for line in (8, 10, 11, 12):
        assert [statements[line]] == lines.addresses_of("prog.c", line)
    assert 9 not in statements
    assert lines.statements_of("prog.c") == {}
    assert lines.line_at(1) is None
    assert lines.image.damage.found() == ()
    return lines


@pytest.mark.parametrize(
    "options",
    [
        ("-g", "-gdwarf-5"),
        ("-g", "-gdwarf-4"),
        ("-g", "-gdwarf-3"),
        ("-g", "-gdwarf64"),
        ("-g", "-gz=zlib"),
        ("-g", "-gz=zlib-gnu"),
        ("-g", "-ffunction-sections", "-no-pie"),
    ],
    ids=" ".join,
)
def test_ways_to_store_lines(compiler: str, tmp_path: Path, options: tuple[str, ...]) -> None:
    check_program(compiled(compiler, tmp_path, *options), tmp_path)


def test_units_without_address_ranges_section(compiler: str, tmp_path: Path) -> None:
    path = compiled(compiler, tmp_path, "-g", "-ffunction-sections")
    objcopy = shutil.which("objcopy")
    if objcopy is None:
        pytest.skip("no objcopy on this machine")
    subprocess.run([objcopy, "--remove-section=.debug_aranges", path], check=True)
    check_program(path, tmp_path)


@pytest.fixture
def split(compiler: str, tmp_path: Path) -> tuple[Path, Path]:
    """A stripped program and its debug file, in one folder."""
    objcopy = shutil.which("objcopy")
    if objcopy is None:
        pytest.skip("no objcopy on this machine")
    path = compiled(compiler, tmp_path, "-g", "-Wl,--build-id=sha1")
    debug = tmp_path / "prog.debug"
    subprocess.run([objcopy, "--only-keep-debug", path, debug], check=True)
    link = f"--add-gnu-debuglink={debug}"
    subprocess.run([objcopy, "--strip-all", link, path], check=True)
    return path, debug


def test_debug_file_beside_the_program(split: tuple[Path, Path]) -> None:
    path, debug = split
    lines = check_program(path, path.parent)
    assert lines.debug_image is not None
    assert lines.debug_image.path == str(debug)


def test_debug_file_by_build_id(split: tuple[Path, Path], tmp_path: Path) -> None:
    path, debug = split
    ident = ElfImage.open(path).build_id
    assert ident is not None
    home = tmp_path / "debug" / ".build-id" / ident[:2]
    home.mkdir(parents=True)
    debug.rename(home / f"{ident[2:]}.debug")
    check_program(path, path.parent, (str(tmp_path / "debug"),))
    assert Lines(ElfImage.open(path), ()).debug_image is None


def test_a_foreign_debug_file_is_not_believed(split: tuple[Path, Path]) -> None:
    path, debug = split
    debug.write_bytes(debug.read_bytes() + b"\0")
    lines = Lines(ElfImage.open(path), ())
    assert lines.debug_image is None
    assert lines.files() == ()
    assert lines.line_at(ElfImage.open(path).entry) is None


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_lines_of_the_guests(guests: Path, arch: str) -> None:
    image = ElfImage.open(guests / arch / "unw-O2")
    lines = Lines(image, ())
    assert [name.rsplit("/", 1)[-1] for name in lines.files()] == ["unw.c"]
    for symbol in SymbolTable(image).functions():
        if symbol.name in ("_start", "cmain"):
            continue
        found = lines.line_at(symbol.address)
        if found is not None:
            assert found[0].endswith("/unw.c")
            assert any(
                symbol.address <= at < symbol.address + symbol.size
                for at in lines.addresses_of("unw.c", found[1])
            )
    assert lines.image.damage.found() == ()


def test_code_of_line_0_counts_to_the_line_before(compiler: str, tmp_path: Path) -> None:
    """rustc writes line 0 amid the code of a line, and gdb does not keep such rows."""
    (tmp_path / "prog.c").write_text(SOURCE)
    subprocess.run([compiler, "-O0", "-g", "-S", "prog.c"], cwd=tmp_path, check=True)
    code = (tmp_path / "prog.s").read_text()
    call = "\tcall\ttwice\n"
    if call not in code:
        pytest.skip("not the assembly of x86-64")
    (tmp_path / "prog.s").write_text(code.replace(call, f"\t.loc 1 0 0\nzero:\n{call}"))
    subprocess.run([compiler, "prog.s", "-o", "prog"], cwd=tmp_path, check=True)
    image = ElfImage.open(tmp_path / "prog")
    zero = SymbolTable(image).find("zero")
    assert zero is not None
    lines = Lines(image)
    assert lines.line_at(zero.address) == (str(tmp_path / "prog.c"), 11)
    assert not lines.begins_statement(zero.address)


def test_no_debug_information_is_no_answer(tiny: bytes) -> None:
    lines = Lines(ElfImage.from_bytes(tiny, "tiny"), ())
    assert lines.line_at(0x401000) is None
    assert lines.addresses_of("tiny.c", 1) == []
    assert (lines.files(), lines.image.damage.found()) == ((), ())


def test_problems_are_told(unwinding: bytes) -> None:
    image = ElfImage.from_bytes(unwinding, "x")
    abbrev = image.section(".debug_abbrev")
    assert abbrev is not None
    data = bytearray(unwinding)
    data[abbrev.offset : abbrev.offset + abbrev.size] = b"\xff" * abbrev.size
    lines = Lines(ElfImage.from_bytes(bytes(data), "damaged"), ())
    assert lines.line_at(0x401000) is None
    assert lines.image.damage.found()
    assert lines.image.damage.found()[0].startswith("damaged: debug information, unit 0x0")


def line_sections(body: bytes) -> LineSections:
    return LineSections(struct.pack("<I", len(body)) + body, b"", b"", "<", 64)


def test_counts_are_not_believed() -> None:
    """2**60 names without a format: pyelftools would not come back from this header."""
    counts = bytes([0]) + bytes([0xFF] * 8 + [0x0F])
    fields = bytes([1, 1, 1, 0xFB, 14, 13]) + bytes(12) + counts
    body = struct.pack("<HBBI", 5, 8, 0, len(fields)) + fields
    with pytest.raises(DamagedError, match="names in"):
        calls(lambda: read_header(line_sections(body), 0, ""), at_most=1000)


def test_damaged_program_keeps_the_rows_before_it() -> None:
    tables = b"\0" + b"a.c\0\0\0\0" + b"\0"
    fields = bytes([1, 1, 0xFB, 14, 10]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1]) + tables
    program = b"\0\x09\x02" + struct.pack("<Q", 0x1000) + b"\x01\x4b" + b"\0\x01\x01"
    damage = b"\0\x09\x02\x00"
    body = struct.pack("<HI", 2, len(fields)) + fields + program + damage
    sections = line_sections(body)
    header = read_header(sections, 0, "/src")
    assert header.files == ("", "/src/a.c")
    table = run(sections, header, 1, 1 << 47)
    assert table.at(0x1000) == ("/src/a.c", 1)
    assert table.at(0xFFF) is None
    assert run(sections, header, 0x2000, 1 << 47).at(0x1000) is None
