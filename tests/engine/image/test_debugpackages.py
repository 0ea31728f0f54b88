"""Debug information of programs whose .dwo files were put into a package."""

import subprocess
from pathlib import Path

import pytest
from compiled import tool

from engine.errors import ImageError
from engine.image import ElfImage, SymbolTable
from engine.image.debugpackages import unit_reader
from engine.image.reader import DamagedError
from engine.image.variables import Variables

SOURCES = {
    "first": "struct one { int a; }; int first(struct one *p) { return p->a; }",
    "second": """
        struct two { short b; char text[7]; };
        int second(int n, struct two *q) { return n + q->b; }
        int first(void *); int main(void) { return first("") + second(1, (void *)""); }
    """,
}
PACKERS = (("-gdwarf-4", "dwp"), ("-gdwarf-5", "llvm-dwp"))
"""Versions of DWARF, and what makes a package of them."""


@pytest.fixture(params=PACKERS, ids=lambda each: each[1])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A program of two units, its package beside it."""
    version, packer = request.param
    for name, text in SOURCES.items():
        (tmp_path / f"{name}.c").write_text(text)
    flags = ("-O0", version, "-gsplit-dwarf")
    names = [f"{name}.c" for name in SOURCES]
    subprocess.run([tool("gcc"), *flags, "-o", "program", *names], cwd=tmp_path, check=True)
    command = [tool(packer), "-e", "program", "-o", "program.dwp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    for path in tmp_path.glob("*.dwo"):
        path.unlink()
    return tmp_path / "program"


def parameters(program: Path, function: str) -> list[str]:
    image = ElfImage.open(program)
    symbol = SymbolTable(image).find(function)
    assert symbol is not None
    scope = Variables(image, []).scope(symbol.address)
    assert scope is not None
    members = scope.parameters[-1].type.target.members
    return [
        *[f"{one.type_text} {one.name}" for one in scope.parameters],
        *[f"{member.name} {member.offset} {member.type.text}" for member in members],
    ]


def test_each_unit_is_found_in_the_package(packed: Path) -> None:
    assert parameters(packed, "first") == ["struct one * p", "a 0 int"]
    wanted = ["int n", "struct two * q", "b 0 short", "text 2 char [7]"]
    assert parameters(packed, "second") == wanted


def test_a_package_of_another_program_or_a_damaged_one(packed: Path) -> None:
    package = packed.with_suffix(".dwp")
    whole = package.read_bytes()
    package.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImageError, match=r"nor in a package .*program\.dwp"):
        parameters(packed, "first")
    package.unlink()
    with pytest.raises(ImageError, match=r"nor in a package"):
        parameters(packed, "first")


def test_damaged_indexes() -> None:
    index = b"\5\0\0\0" + (2).to_bytes(4, "little") + (1).to_bytes(4, "little") * 2
    assert unit_reader({}, 1, "<") is None
    assert unit_reader({".debug_cu_index": index + bytes(60)}, 1, "<") is None
    for damaged in (b"\x07", b"\7\0\0\0" * 5, index, index[:4] + b"\xff" * 12 + bytes(60)):
        with pytest.raises(DamagedError):
            unit_reader({".debug_cu_index": damaged}, 1, "<")
