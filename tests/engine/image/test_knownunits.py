"""Answers about names that are kept: the same as a search gives, and never anybody else's."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from engine.image import knownunits
from engine.image.debugfiles import find_debug_file
from engine.image.debuginfo import DebugInfo
from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions
from engine.image.knownunits import KnownUnits, cache_folder
from engine.image.names import GlobalNames

_DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"
_BUILDS = {
    "DWARF 5": ("g++", "-O0", "-gdwarf-5"),
    "DWARF 4": ("g++", "-O2", "-gdwarf-4"),
    "link-time": ("g++", "-O2", "-flto"),
    "split": ("g++", "-O1", "-gsplit-dwarf"),
}
_STATE = "1-2-3-4-5"
_SOURCES = Path(__file__).resolve().parents[2] / "benchmarks" / "src"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of answers, which is there when something is kept."""
    found = tmp_path / "answers"
    monkeypatch.setenv("KPROBE_TUI_NAME_CACHE", str(found))
    return found


def _kept(folder: Path, state: str = _STATE, build_id: str = "ab12") -> KnownUnits:
    return KnownUnits(folder, build_id, state)


def _file(folder: Path) -> Path:
    (found,) = folder.glob("*.names")
    return found


def test_an_answer_is_there_in_the_next_session(folder: Path) -> None:
    first = _kept(folder)
    assert first.units("functions", "grow") is None
    first.add("functions", "grow", [11, 1 << 33])
    first.add("functions", "nowhere", [])
    again = _kept(folder)
    assert again.units("functions", "grow") == (11, 1 << 33)
    assert again.units("functions", "nowhere") == ()
    assert again.units("names", "grow") is None
    assert again.remarks == []


@pytest.mark.parametrize(("state", "build_id"), [("1-2-3-4-6", "ab12"), (_STATE, "ab13")])
def test_an_answer_is_for_one_file_in_one_state(folder: Path, state: str, build_id: str) -> None:
    _kept(folder).add("functions", "grow", [11])
    other = _kept(folder, state, build_id)
    assert other.units("functions", "grow") is None
    os.rename(_file(folder), other._path or "")  # nor does the name of the file of answers tell
    other = _kept(folder, state, build_id)
    assert other.units("functions", "grow") is None
    assert other.remarks


def test_no_damaged_byte_makes_another_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knownunits, "_SOURCES", ())
    _kept(folder).add("functions", "grow", [11, 22])
    file = _file(folder)
    whole = file.read_bytes()
    for at in range(0, len(whole), 2):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        assert _kept(folder).units("functions", "grow") in (None, (11, 22)), at
    for end in range(0, len(whole), 9):
        file.write_bytes(whole[:end])
        assert _kept(folder).units("functions", "grow") is None, end


def test_a_damaged_file_is_made_anew(folder: Path) -> None:
    _kept(folder).add("functions", "grow", [11])
    _file(folder).write_bytes(b"KTUICOLS and no more")
    again = _kept(folder)
    again.add("functions", "grow", [12])
    assert "made anew" in again.remarks[0]
    assert _kept(folder).units("functions", "grow") == (12,)


def test_files_are_the_users_own(folder: Path) -> None:
    before = os.umask(0)
    try:
        _kept(folder).add("functions", "grow", [11])
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert _file(folder).stat().st_mode & 0o777 == 0o600


def _writable_by_others(file: Path) -> None:
    file.chmod(0o622)


def _in_an_open_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def _a_link(file: Path) -> None:
    file.rename(file.with_suffix(".other"))
    file.symlink_to(file.with_suffix(".other"))


def _a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _too_large(file: Path) -> None:
    with open(file, "r+b") as handle:
        handle.truncate(1 << 30)


@pytest.mark.parametrize(
    "changed", [_writable_by_others, _in_an_open_folder, _a_link, _a_pipe, _too_large]
)
def test_what_others_may_have_written_is_not_believed(
    folder: Path, changed: Callable[[Path], None]
) -> None:
    _kept(folder).add("functions", "grow", [11])
    changed(_file(folder))
    again = _kept(folder)
    assert again.units("functions", "grow") is None
    assert again.remarks


def test_nothing_is_kept_where_others_can_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    kept = _kept(folder)
    kept.add("functions", "grow", [11])
    assert list(folder.iterdir()) == []
    assert kept.remarks


def test_nothing_is_kept_where_no_folder_can_be() -> None:
    kept = KnownUnits(Path("/dev/null/answers"), "ab12", _STATE)
    kept.add("functions", "grow", [11])
    assert kept.remarks
    assert KnownUnits(None, "", "").units("functions", "grow") is None


def test_no_home_is_made_for_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KPROBE_TUI_NAME_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert cache_folder() is None
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "kprobe-tui" / "names"
    monkeypatch.setenv("KPROBE_TUI_NAME_CACHE", str(tmp_path / "given"))
    assert cache_folder() == tmp_path / "given"


def test_the_latest_names_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knownunits, "_MOST_NAMES", 10)
    kept = _kept(folder)
    for number in range(30):
        kept.add("functions", f"f{number}", [number])
    again = _kept(folder)
    assert again.units("functions", "f3") is None
    assert again.units("functions", "f28") == (28,)


def test_few_files_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knownunits, "_MOST_FILES", 3)
    for number in range(6):
        _kept(folder, f"{number}").add("functions", "grow", [number])
        os.utime(max(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns), (number,) * 2)
    assert len(list(folder.iterdir())) == 3
    assert _kept(folder, "5").units("functions", "grow") == (5,)
    assert _kept(folder, "0").units("functions", "grow") is None


# -- the same answers ------------------------------------------------------------------------


@pytest.fixture(scope="module", params=list(_BUILDS))
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler, *options = _BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    home = tmp_path_factory.mktemp("known")
    sources = [str(_DATA / name) for name in ("many.cpp", "many_second.cpp")]
    subprocess.run([compiler, "-g", *options, "-o", "many", *sources], cwd=home, check=True)
    return str(home / "many")


def _opened(path: str, *, kept: bool) -> DebugInfo:
    image = ElfImage.open(path)
    image.state = "as it is" if kept else ""
    info = DebugInfo.of(image, ())
    assert info is not None
    return info


def _answers(info: DebugInfo, wanted: list[str]) -> list[object]:
    functions, names = NamedFunctions(info), GlobalNames(info)
    found: list[object] = []
    for name in wanted:
        kind, variable = names.type(name), names.variable(name)
        found.append(
            (
                name,
                functions.find(name),
                sorted(low for _, low, _ in names.functions(name)),
                None if kind is None else kind.text,
                None if variable is None else variable.type_text,
                names.enumerator(name) is not None,
            )
        )
    return found


def _all_names(info: DebugInfo) -> Iterator[str]:
    names = GlobalNames(info)
    for kind in ("function", "variable", "type"):
        for entry in names.listed(kind):
            yield entry.name
            yield entry.name.rpartition("::")[2]
            yield entry.name.partition("<")[0]


def test_answers_are_those_of_a_search(program: str, folder: Path) -> None:
    wanted = [*dict.fromkeys(filter(None, _all_names(_opened(program, kept=False))))]
    wanted += ["no_such_name", "grow(int)", "Shape::grow", "operator+"]
    assert len(wanted) > 10
    plain = _answers(_opened(program, kept=False), wanted)
    assert not folder.exists()
    assert _answers(_opened(program, kept=True), wanted) == plain
    assert _file(folder).stat().st_size > 0
    assert _answers(_opened(program, kept=True), wanted) == plain


def test_a_name_that_is_known_to_be_nowhere_costs_no_look_at_the_file(
    program: str, folder: Path
) -> None:
    info = _opened(program, kept=True)
    assert NamedFunctions(info).find("no_such_name") == ()
    again = _opened(program, kept=True)
    skeletons = again.known.units("functions", "no_such_name")
    assert NamedFunctions(again).find("no_such_name") == ()
    assert skeletons or not again._sections


def test_of_a_file_that_was_just_written_nothing_is_kept(tmp_path: Path, folder: Path) -> None:
    source = Path(_DATA.parent / "guests" / "amd64" / "unw-O2").read_bytes()
    (tmp_path / "fresh").write_bytes(source)
    fresh = ElfImage.open(str(tmp_path / "fresh"))
    assert fresh.state == ""
    os.utime(tmp_path / "fresh", (1, 1))
    assert ElfImage.open(str(tmp_path / "fresh")).state == ""  # ctime tells
    info = DebugInfo.of(fresh, ())
    assert info is not None
    NamedFunctions(info).find("main")
    assert not folder.exists()


_REAL = {
    "C++": ("g++", "-g", "-O2", "shop.cpp"),
    "Rust": ("rustc", "-g", "shop.rs"),
    "C library": (),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _REAL)
def test_answers_of_whole_programs_are_those_of_a_search(
    name: str, folder: Path, tmp_path: Path
) -> None:
    path = "/lib/x86_64-linux-gnu/libc.so.6"
    if words := _REAL[name]:
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not installed")
        path = str(tmp_path / "program")
        source = str(_SOURCES / words[-1])
        subprocess.run([*words[:-1], "-o", path, source], check=True)
    elif not Path(path).is_file() or DebugInfo.of(ElfImage.open(path), None) is None:
        pytest.skip("no C library with debug information on this machine")

    def opened(state: str) -> DebugInfo:
        image = ElfImage.open(path)
        if (debug := find_debug_file(image)) is not None:
            debug.state = state
        image.state = state
        info = DebugInfo.of(image, None)
        assert info is not None
        return info

    some = islice(filter(None, _all_names(opened(""))), 6000)
    every = [*dict.fromkeys(some)]
    wanted = ["no_such_name", "put", *every[:: max(1, len(every) // 4)]]
    assert len(wanted) > 5
    plain = _answers(opened(""), wanted)
    assert not folder.exists()
    assert _answers(opened("a"), wanted) == plain
    assert _answers(opened("a"), wanted) == plain
    assert _file(folder).stat().st_size > 1000
