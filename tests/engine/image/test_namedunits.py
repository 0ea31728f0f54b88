"""Units by a name: the bytes tell what walking all entries tells, and few units are walked."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.image import dies
from engine.image.debuginfo import DebugInfo
from engine.image.dies import Die, Unit
from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions
from engine.image.namedunits import endings
from engine.image.variables import Variables

_DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"
_BUILDS = {
    "DWARF 5": ("g++", "-O0", "-gdwarf-5"),
    "DWARF 4": ("g++", "-O2", "-gdwarf-4"),
    "link-time": ("g++", "-O2", "-flto"),
    "split": ("g++", "-O1", "-gsplit-dwarf"),
    "type units": ("g++", "-O1", "-fdebug-types-section"),
    "indexed strings": ("clang++", "-O1", "-gdwarf-5"),
    "64 bits": ("g++", "-O1", "-gdwarf-5", "-gdwarf64"),
}


@pytest.fixture(scope="module", params=list(_BUILDS))
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ElfImage:
    compiler, *options = _BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder = tmp_path_factory.mktemp("units")
    sources = [str(_DATA / name) for name in ("many.cpp", "many_second.cpp")]
    subprocess.run([compiler, "-g", *options, "-o", "many", *sources], cwd=folder, check=True)
    return ElfImage.open(str(folder / "many"))


def _info(image: ElfImage) -> DebugInfo:
    image.state = ""  # nothing is kept
    info = Variables(image, []).info
    assert info is not None
    return info


def _named(info: DebugInfo) -> Iterator[tuple[str, Unit]]:
    """(name, unit) of all entries, their own names and those of their origins, by walking."""
    for unit in info.units():
        whole = info.whole(unit)
        for index, tag in enumerate(whole.shape.tags):
            if tag in (0x2E, 0x1D, 0x34, 0x13, 0x02, 0x04, 0x28, 0x16, 0x24):
                die = Die(whole, whole.shape.offsets[index])
                for name in {die.name, die.linkage_name} - {None}:
                    yield str(name), unit


def test_each_unit_that_has_a_name_is_found(program: ElfImage) -> None:
    info = _info(program)
    walked: dict[str, set[int]] = {}
    for name, unit in _named(info):
        walked.setdefault(name, set()).add(unit.offset)
    assert {"grow", "Shape", "main"} <= walked.keys()
    for name, units in walked.items():
        found = [unit.offset for unit in info.naming((name,))]
        assert units <= set(found), name
        assert found == sorted(set(found))
        bare = name.partition("<")[0]
        if bare and not bare.startswith("operator"):
            assert units <= {unit.offset for unit in info.naming((bare,), instances=True)}, name


def test_a_name_that_no_unit_has_walks_none(program: ElfImage) -> None:
    info = DebugInfo.within(ElfImage.open(str(program.path)), [])
    units = list(info.units())
    skeletons = [unit for unit in units if unit.root_attributes & dies.SPLIT_NAMES]
    assert list(info.naming(("no_such_name",))) == skeletons
    if not skeletons:
        assert NamedFunctions(info).find("no_such_name") == ()
        assert not any("shape" in vars(unit) for unit in units)


def test_a_break_in_a_program_of_many_units_walks_those_of_the_name(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    for number in range(40):
        other = "shared" if number == 7 else f"other_{number}"
        text = f"int {other}(int held) {{ return held; }}\n"
        (tmp_path / f"{number}.c").write_text(text)
    (tmp_path / "main.c").write_text(
        "int shared(int held);\nint main(void) { return shared(0); }\n"
    )
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    subprocess.run(["gcc", "-g", "-O0", "-o", "p", *sources], cwd=tmp_path, check=True)
    image = ElfImage.open(str(tmp_path / "p"))
    info = _info(image)
    assert [block.name for block in NamedFunctions(info).find("shared")] == ["shared"]
    walked = [unit for unit in info.units() if "shape" in vars(unit)]
    # main.c calls it, so its unit may hold the name, too.
    assert 1 <= len(walked) <= 2
    assert len(list(info.units())) == 41
    assert len(list(info.naming(("other_9",)))) == 1


def test_all_who_ask_share_the_information_of_a_file(program: ElfImage) -> None:
    assert Variables(program, []).info is Variables(program, []).info


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("grow", ("grow",)),
        ("a::b", ("a::b", "b")),
        ("a::b<c::d>", ("a::b<c::d>", "b<c::d>", "d>")),
        ("a::", ("a::",)),
    ],
)
def test_what_may_be_the_last_word_of_a_path(name: str, found: tuple[str, ...]) -> None:
    assert endings(name) == found
