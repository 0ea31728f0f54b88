"""Indexes of names by compilers, linkers and gdb: each tells what the entries themselves tell."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.image.debuginfo import DebugInfo
from engine.image.dies import Die, Unit
from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions
from engine.image.gdbindex import read_addresses
from engine.image.nametables import NameTables
from engine.image.ranges import read_ranges
from engine.image.reader import DamagedError

_DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"
_FUNCTIONS = (0x2E, 0x1D)


def _build(folder: Path, *words: str) -> str:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    sources = [str(_DATA / name) for name in ("many.cpp", "many_second.cpp")]
    subprocess.run([*words, "-g", "-O2", "-o", "many", *sources], cwd=folder, check=True)
    return str(folder / "many")


def _indexed(path: str, *options: str) -> str:
    """A program to which gdb has added an index."""
    if shutil.which("gdb-add-index") is None or shutil.which("gdb") is None:
        pytest.skip("gdb-add-index is not installed")
    subprocess.run(["gdb-add-index", *options, path], check=True)
    return path


def _info(path: str) -> DebugInfo:
    image = ElfImage.open(path)
    image.state = ""  # nothing is kept
    return DebugInfo.within(image, ())


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program of two units whose names clang lists."""
    return _build(tmp_path_factory.mktemp("names"), "clang++", "-gdwarf-5", "-gpubnames")


def _walked(info: DebugInfo) -> dict[str, set[int]]:
    """The units of all functions and copies that have code, by their names without arguments."""
    found: dict[str, set[int]] = {}
    for unit in info.units():
        for index, tag in enumerate(unit.shape.tags):
            die = Die(unit, unit.shape.offsets[index])
            if tag in _FUNCTIONS and read_ranges(die):
                found.setdefault(str(die.name).partition("<")[0], set()).add(unit.offset)
    return found


def _offsets(units: "list[Unit]") -> set[int]:
    return {unit.offset for unit in units}


def test_each_function_and_each_copy_is_listed(listed: str) -> None:
    info, walked = _info(listed), _walked(_info(listed))
    assert {"main", "grow", "hidden"} <= walked.keys()
    for name, units in walked.items():
        assert _offsets(list(info.naming_functions(name))) == units, name
    assert list(info.naming_functions("no_such_name")) == []
    assert not any("shape" in vars(unit) for unit in info.units())


def test_llvm_lists_the_same_names(listed: str) -> None:
    dump = shutil.which("llvm-dwarfdump")
    if dump is None:
        pytest.skip("llvm-dwarfdump is not installed")
    text = subprocess.run([dump, "--debug-names", listed], capture_output=True, text=True).stdout
    names = [line.split('"')[1] for line in text.splitlines() if "String: 0x" in line]
    tables = NameTables(_info(listed).section(".debug_names"), "<")
    strings = _info(listed).section(".debug_str")
    assert len(tables.units) == text.count("CU[") == 2
    for name in names:
        places = [
            at for at in range(len(strings)) if strings.startswith(name.encode() + b"\0", at)
        ]
        assert any(list(tables._numbers(one, at)) for one in tables._tables for at in places), name


def test_what_gdb_writes_in_its_place_is_not_used(tmp_path: Path) -> None:
    path = _indexed(_build(tmp_path, "clang++", "-gdwarf-5"), "-dwarf-5")
    info, walked = _info(path), _walked(_info(path))
    data = info.section(".debug_names")
    assert data
    assert not NameTables(data, "<").is_complete
    for name, units in walked.items():
        assert units <= _offsets(list(info.naming_functions(name))), name


def test_where_a_unit_has_no_table_the_bytes_are_searched(tmp_path: Path) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("clang++ is not installed")
    for name, options in (("many", ["-gpubnames"]), ("many_second", [])):
        words = ["clang++", "-g", "-gdwarf-5", *options, "-c", str(_DATA / f"{name}.cpp")]
        subprocess.run(words, cwd=tmp_path, check=True)
    subprocess.run(["clang++", "-o", "p", "many.o", "many_second.o"], cwd=tmp_path, check=True)
    info, walked = _info(str(tmp_path / "p")), _walked(_info(str(tmp_path / "p")))
    assert len(NameTables(info.section(".debug_names"), "<").units) == 1
    for name, units in walked.items():
        assert units <= _offsets(list(info.naming_functions(name))), name


def test_damaged_tables_end_nothing(listed: str) -> None:
    data = _info(listed).section(".debug_names")
    places = list(range(0, len(_info(listed).section(".debug_str")), 7))
    for at in range(0, len(data), 3):
        damaged = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        for hurt in (damaged, data[:at]):
            try:
                NameTables(hurt, "<").functions(places)
            except DamagedError:
                continue


def test_damage_is_noted_and_the_bytes_are_searched(listed: str) -> None:
    info = _info(listed)
    data = info.section(".debug_names")
    info._sections[".debug_names"] = data[:40]
    blocks = NamedFunctions(info).find("grow")
    assert blocks == NamedFunctions(_info(listed)).find("grow")
    assert ".debug_names" in info.damage.found()[0]


def test_a_damaged_entry_is_noted_and_the_bytes_are_searched(listed: str) -> None:
    info = _info(listed)
    data = bytearray(info.section(".debug_names"))
    for table in NameTables(bytes(data), "<")._tables:
        data[table.pool : table.end] = b"\x7f" * (table.end - table.pool)
    info._sections[".debug_names"] = bytes(data)
    assert NamedFunctions(info).find("grow") == NamedFunctions(_info(listed)).find("grow")
    assert "kind 0x7f" in info.damage.found()[0]


# -- .gdb_index ------------------------------------------------------------------------------


def _of_gold(folder: Path) -> str:
    if shutil.which("ld.gold") is None:
        pytest.skip("gold is not installed")
    return _build(
        folder, "clang++", "-gdwarf-4", "-ggnu-pubnames", "-fuse-ld=gold", "-Wl,--gdb-index"
    )


def _of_gdb(folder: Path) -> str:
    return _indexed(_build(folder, "clang++", "-gdwarf-5"))


@pytest.mark.parametrize("make", [_of_gdb, _of_gold])
def test_the_index_tells_the_unit_of_an_address(
    make: Callable[[Path], str], tmp_path: Path
) -> None:
    info, plain = _info(make(tmp_path)), _info(str(tmp_path / "many"))
    assert not info.section(".debug_aranges")
    plain._sections[".gdb_index"] = b""
    asked = 0
    for unit in plain.units():
        for low, high in read_ranges(unit.root):
            for address in (low, (low + high) // 2, high - 1):
                found = [one.offset for one in info.containing(address)]
                assert found == [one.offset for one in plain.containing(address)] == [unit.offset]
                asked += 1
    assert asked >= 6
    assert "_top_ranges" not in vars(info)
    assert "_top_ranges" in vars(plain)


def test_an_index_of_another_file_is_not_believed(tmp_path: Path) -> None:
    info = _info(_of_gdb(tmp_path))
    data, units = info.section(".gdb_index"), [unit.offset for unit in info.units()]
    assert read_addresses(data, units)
    with pytest.raises(DamagedError, match="another file"):
        read_addresses(data, units[:1])
    assert read_addresses(b"\5" + data[1:], units) == []
    with pytest.raises(DamagedError, match="ends after"):
        read_addresses(data[:20], units)
    for at in range(0, len(data), 5):
        try:
            read_addresses(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :], units)
        except DamagedError:
            continue
