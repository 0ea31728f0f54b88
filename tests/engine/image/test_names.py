"""Names at the top of debug information: types, variables, functions, enumerators."""

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.image.elf import ElfImage
from engine.image.names import GlobalNames
from engine.image.variables import Variables

_DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names")


def _names(folder: Path, source: str) -> tuple[GlobalNames, ElfImage]:
    compiler = "gcc" if source.endswith(".c") else "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    program = folder / source.replace(".", "-")
    command = [compiler, "-g", "-O0", "-o", str(program), str(_DATA / source)]
    subprocess.run(command, check=True)
    image = ElfImage.open(str(program))
    info = Variables(image).info
    assert info is not None
    return GlobalNames(info), image


def test_c(folder: Path) -> None:
    names, image = _names(folder, "lists.c")
    node = names.type("node", "struct")
    assert node is not None
    assert node.text == "struct node"
    assert [member.name for member in node.members][:2] == ["id", "next"]
    assert names.type("node") is None  # C wants the keyword
    assert names.type("node", "union") is None
    alias = names.type("node_t")
    assert alias is not None
    assert alias.resolved.text == "struct node"
    variable = names.variable("table")
    assert variable is not None
    assert variable.type.text == "long [20]"
    assert names.variable("list") is None  # a local one
    function = names.function("twice")
    assert function is not None
    assert function[0].text == "int (int)"
    assert (
        "twice"
        in subprocess.run(
            ["nm", image.path or ""], capture_output=True, text=True, check=False
        ).stdout
    )
    green = names.enumerator("GREEN")
    assert green is not None
    assert (green[0].text, green[1]) == ("enum color", 5)
    assert names.type("nowhere") is None
    listed = [entry.name for entry in names.listed("enumerator")]
    assert listed == ["RED", "GREEN", "BLUE", "F_A", "F_B", "F_C"]


def test_cplusplus(folder: Path) -> None:
    names, _ = _names(folder, "shapes.cpp")
    for name in ("geo::Circle", "Circle", "::geo::Circle"):
        found = names.type(name)
        assert found is not None
        assert found.text == "geo::Circle"
    total = names.variable("geo::total")
    assert total is not None
    assert total.type.text == "int"
    count = names.variable("geo::Shape::count")
    assert count is not None
    listed = [entry.name for entry in names.listed("enumerator")]
    assert [name for name in listed if name.startswith("geo")] == [
        "geo::Kind::Circle",
        "geo::Kind::Square",
    ]
    types = [entry.name for entry in names.listed("type")]
    assert "geo::Circle" in types
    assert "Circle" not in types  # nor the last part of any other
    area = names.function("geo::Circle::area")
    assert area is not None
    assert area[0].text.startswith("double (")
    square = names.enumerator("geo::Kind::Square")
    assert square is not None
    assert square[1] == 4
    assert names.enumerator("Square") is None  # of an enum class
    shape = names.type("geo::Shape")
    assert shape is not None
    assert [name for _, name in shape.statics] == ["geo::Shape::count"]
