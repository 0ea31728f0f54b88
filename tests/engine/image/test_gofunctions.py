"""The table of Go's functions, against what Go's own tool says of a program."""

import shutil
import subprocess
from pathlib import Path

import pytest
from compiled import tool
from goreturns import functions_of, go_program

from engine.image import ElfImage
from engine.image.gofunctions import go_functions, has_go

SAMPLE = Path(__file__).parents[3] / "samples" / "bin" / "x86_64" / "recursion"
NAMES = ("runtime.copystack", "runtime.goexit0", "main.grow", "main.square.area", "gogo")


def stripped(program: Path, path: Path, *sections: str) -> Path:
    """A copy of a program without symbols."""
    remove = [word for name in sections for word in ("-R", name)]
    subprocess.run([tool("objcopy"), "-S", *remove, program, path], check=True)
    return path


@pytest.mark.parametrize("flags", [(), ("-buildmode=pie",)])
def test_functions_are_where_go_says(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = go_program(600, "x86_64", *flags)
    known = functions_of(program)
    for path in (program, stripped(program, tmp_path / "stripped")):
        image = ElfImage.open(str(path))
        table = go_functions(image)
        assert has_go(image)
        assert table is not None
        found = table.find((*NAMES, "main.nosuch"))
        assert set(found) == set(NAMES)
        for name, ((start, end),) in found.items():
            address, size = known[name]
            assert start == address
            assert size <= end - start < size + 32  # functions begin at multiples of 32
        assert table.start == known["runtime.text"][0]
        assert table.end == known["runtime.etext"][0]


def test_a_table_is_found_without_its_section_s_name(tmp_path: Path) -> None:
    program = go_program(600)
    renamed = tmp_path / "renamed"
    subprocess.run(
        [tool("objcopy"), "--rename-section", ".gopclntab=.merged", program, renamed], check=True
    )
    found, plain = (go_functions(ElfImage.open(str(path))) for path in (renamed, program))
    assert found is not None
    assert plain is not None
    assert found.find(NAMES) == plain.find(NAMES)


def test_damage_is_no_table(tmp_path: Path) -> None:
    program = go_program(600)
    offset = ElfImage.open(str(program)).section(".gopclntab")
    assert offset is not None
    broken = tmp_path / "broken"
    shutil.copy(program, broken)
    data = bytearray(broken.read_bytes())
    for at, value in ((0, 0), (7, 4), (8 + 7, 255), (24 + 7, 255), (32 + 7, 255)):
        bad = bytearray(data)
        bad[offset.offset + at] = value
        broken.write_bytes(bad)
        image = ElfImage.open(str(broken))
        assert go_functions(image) is None
        assert has_go(image)


def test_programs_of_c_have_none() -> None:
    image = ElfImage.open(str(SAMPLE))
    assert go_functions(image) is None
    assert not has_go(image)
