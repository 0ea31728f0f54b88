"""What a user types becomes an address: against readelf, gdb and the dynamic loader."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from compiled import build, tool

from engine.arch.plan import Rules
from engine.session.program.functions import function_at
from engine.session.program.libraries import Program
from engine.session.program.opening import OpenedProgram
from engine.session.program.places import PlaceError, Places
from engine.session.protocol.config import GuestConfig

CHECKOUT = Path(__file__).resolve().parents[4]
SAMPLES = CHECKOUT / "samples" / "bin"
INSNS = CHECKOUT / "tests" / "data" / "uprobes" / "kf_insns"


def opened(
    path: Path | str,
    *,
    isolated: bool = False,
    shares: tuple[tuple[str, bool], ...] = (),
    env: tuple[str, ...] = (),
) -> tuple[Program, Places]:
    config = GuestConfig(guest=str(path), isolated=isolated, shares=shares, env=env)
    found = OpenedProgram.open(config)
    files = found.inspected()
    return files, Places(found.arch, files)


def addresses(places: Places, text: str) -> list[int]:
    return [place.link for place in places.resolve(text)]


# -- symbols ------------------------------------------------------------------------------


def listed(path: Path | str) -> dict[str, set[int]]:
    """Functions that readelf names, without old versions."""
    done = subprocess.run(
        [tool("readelf"), "-sW", path], capture_output=True, text=True, check=True
    )
    found: dict[str, set[int]] = defaultdict(set)
    for line in done.stdout.splitlines():
        match = re.match(
            r"\s*\d+: ([0-9a-f]+)\s+\S+ I?FUNC\s+\S+\s+\S+\s+(\S+) ([^\s@]+)(@@?)?", line
        )
        if match and match[2] != "UND" and match[4] != "@":
            found[match[3]].add(int(match[1], 16))
    return found


@pytest.mark.parametrize(
    "path",
    [
        INSNS,
        SAMPLES / "aarch64" / "sort",
        "/bin/bash",
        pytest.param("libc", marks=pytest.mark.slow),
    ],
)
def test_symbols_stand_where_readelf_says(path: Path | str) -> None:
    if path == "libc":
        libc = opened("/bin/sh")[0].named("libc") if Path("/bin/sh").exists() else None
        if libc is None:
            pytest.skip("no program with a libc here")
        path = libc.path
    if not Path(path).exists():
        pytest.skip(f"no {path}")
    _, places = opened(path)
    expected = listed(path)
    for name, wanted in expected.items():
        if len(wanted) == 1:
            place = places.resolve(name)[0]
            assert {place.link - place.offset} == wanted, name
        else:
            with pytest.raises(PlaceError, match="not unique"):
                places.resolve(name)


def test_the_forms_of_a_place() -> None:
    files, places = opened(INSNS)
    start = places.resolve("i_start")[0]
    assert start.rules is Rules.KPROBE
    assert start.name == "i_start+0x0"
    assert addresses(places, "i_start+3") == [start.link + 3]
    assert addresses(places, "i_start+0x3") == [start.link + 3]
    assert addresses(places, "kf_insns:i_start+3") == [start.link + 3]
    assert addresses(places, f"{start.link:#x}") == [start.link]
    offset = files.main.image.file_offset(start.link)
    assert offset is not None
    for digits in (str(offset), f"{offset:#x}", f"0{offset:o}"):
        uprobe = places.resolve(f"{INSNS}:{digits}")[0]
        assert (uprobe.link, uprobe.rules, uprobe.file_offset) == (
            start.link,
            Rules.UPROBE,
            offset,
        )


def test_a_path_may_be_spelled_as_the_guest_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(INSNS.parent)
    _, places = opened("./kf_insns", isolated=True)
    assert addresses(places, "./kf_insns:0x1126") == [0x401126]


def test_a_symbol_may_be_named_with_the_path_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(INSNS.parent)
    _, places = opened("./kf_insns", isolated=True)
    found = places.resolve("./kf_insns:i_start")
    assert [place.link for place in found] == addresses(places, "i_start")
    assert found[0].rules is Rules.KPROBE
    assert next(places.matching("./kf_insns:i_sta*")).symbol == "i_start"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("i_nop", "BAD_PROBE_ADDR", "similar: .*i_nop1"),
        ("nolib:f", "BAD_PROBE_ADDR", "no library 'nolib'"),
        ("0x10", "BAD_PROBE_ADDR", "outside all segments"),
        ("0xffffffffffffffffff", "BAD_PROBE_ADDR", "outside all segments"),
        ("i_start+0x10000000", "BAD_PROBE_ADDR", "outside all segments"),
        ("none.c:3", "BAD_PROBE_ADDR", "none.c:3"),
        ("/no/file:0x10", "FILE_NOT_FOUND", "no readable file /no/file"),
        ("/no/file:main", "FILE_NOT_FOUND", "no readable file /no/file"),
        ("/no/file:", "BAD_UPROBE_OFFS", "PATH:OFFSET or PATH:SYMBOL"),
        (f"{INSNS}:nothing", "BAD_PROBE_ADDR", "no symbol 'nothing'"),
        (f"{INSNS}:0x10000000", "BAD_UPROBE_OFFS", "the file ends at"),
    ],
)
def test_errors_say_what_is_wrong(text: str, code: str, words: str) -> None:
    _, places = opened(INSNS)
    with pytest.raises(PlaceError, match=words) as caught:
        places.resolve(text)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_local_symbols_of_one_name_are_not_unique(tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text("static int twin(void) { return 2; } int b(void) { return twin(); }")
    source = (
        "int b(void); static int twin(void) { return 1; } int main(void) { return twin() + b(); }"
    )
    _, places = opened(build(tmp_path, "twins", source, "-O0", str(other)))
    with pytest.raises(PlaceError) as caught:
        places.resolve("twin")
    assert (caught.value.code, caught.value.errno) == ("NON_UNIQ_SYMBOL", "EADDRNOTAVAIL")


def test_an_entry_is_behind_its_landing_pad_for_kprobes_only(tmp_path: Path) -> None:
    source = "int f(int n) { return n + 1; } int main(int n) { return f(n); }"
    program = build(tmp_path, "pads", source, "-O0", "-fcf-protection=full")
    files, places = opened(program)
    symbol = files.main.symbols.find("f")
    assert symbol is not None
    entry = symbol.address
    if files.main.image.read_vaddr(entry, 4) != b"\xf3\x0f\x1e\xfa":
        pytest.skip("this compiler writes no endbr64")
    assert addresses(places, "f") == [entry + 4]
    assert addresses(places, "f+4") == [entry + 4]
    assert addresses(places, "f+5") == [entry + 5]
    assert places.resolve("f")[0].name == "f+0x4"
    offset = files.main.image.file_offset(entry)
    assert addresses(places, f"{program}:{offset}") == [entry]
    assert [p.link for p in places.matching("f")] == [entry + 4]
    assert [p.link for p in places.matching("f", Rules.UPROBE)] == [entry]


def test_globs_name_functions() -> None:
    _, places = opened(SAMPLES / "x86_64" / "sort")
    names = [place.symbol for place in places.matching("by_*")]
    assert names == ["by_id", "by_weight", "by_label"]
    assert [place.symbol for place in places.matching("sort:by_i?")] == ["by_id"]
    assert list(places.matching("nothing*")) == []


MANGLED = """
int thrower(int) __asm__("_Z7throweri");
int thrower(int n) { return n; }
int inner(int) __asm__("_ZN2ns7throwerIiEEvT_");
int inner(int n) { return n; }
int subscript(int) __asm__("_ZN2ns3BoxixEi");
int subscript(int n) { return n; }
int main(void) { return thrower(1) + inner(2) + subscript(3); }
"""


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("thrower", ["_Z7throweri"]),
        ("thrower(int)", ["_Z7throweri"]),
        ("_Z7thr*", ["_Z7throweri"]),
        ("throw*", ["_Z7throweri"]),
        ("ns::thrower", ["_ZN2ns7throwerIiEEvT_"]),
        ("ns::thrower<int>", ["_ZN2ns7throwerIiEEvT_"]),
        ("ns::thrower<int>(int)", ["_ZN2ns7throwerIiEEvT_"]),
        ("void ns::thrower<int>(int)", ["_ZN2ns7throwerIiEEvT_"]),
        ("ns::Box::operator[]", ["_ZN2ns3BoxixEi"]),
        ("*thrower", ["_Z7throweri", "_ZN2ns7throwerIiEEvT_"]),
        ("ns::*", ["_ZN2ns7throwerIiEEvT_", "_ZN2ns3BoxixEi"]),
    ],
)
def test_patterns_match_every_way_to_write_a_name(
    tmp_path: Path, glob: str, found: list[str]
) -> None:
    places = opened(build(tmp_path, "mangled", MANGLED, "-O0"))[1]
    assert [place.symbol for place in places.matching(glob)] == found


# -- lines --------------------------------------------------------------------------------

_LINES = """#include <stdio.h>
static inline int twice(int x)
{
    int y = x + 1;
    return y * 2;
}
int a(int n) { return twice(n) + 3; }
int b(int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += twice(i);
    return s;
}
int main(int argc, char **argv)
{
    printf("%d\\n", a(argc) + b(argc));

    return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", pytest.param("-O2", marks=pytest.mark.slow)])
def test_lines_begin_where_gdb_says(tmp_path: Path, level: str) -> None:
    program = build(tmp_path, "lines", _LINES, "-g", level)
    gdb = tool("gdb")
    _, places = opened(program)
    count = _LINES.count("\n")
    asked = [word for n in range(1, count + 1) for word in ("-ex", f"info line lines.c:{n}")]
    done = subprocess.run(
        [gdb, "-nx", "-batch", *asked, program], capture_output=True, text=True, check=True
    )
    starts = re.findall(r"address (0x[0-9a-f]+)", re.sub(r"and ends at \S+", "", done.stdout))
    found = []
    for number in range(1, count + 1):
        try:
            found.append(f"{addresses(places, f'lines.c:{number}')[0]:#x}")
        except PlaceError:
            continue
    assert len(found) >= 19
    assert found == starts[: len(found)]


# -- libraries ----------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["/bin/ls", "/usr/bin/gdb", "/usr/bin/python3"])
def test_libraries_come_in_the_loaders_order(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path(program).exists():
        pytest.skip(f"no {program}")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    done = subprocess.run([tool("ldd"), program], capture_output=True, text=True, check=True)
    names = [line.split()[0].rsplit("/", 1)[-1] for line in done.stdout.splitlines()]
    expected = [name for name in names if "vdso" not in name]
    found = [file.path.rsplit("/", 1)[-1] for file in opened(program)[0].files[1:]]
    # A program that needs its interpreter only through libraries lists it last in ldd.
    loader = [name for name in expected if name.startswith("ld-")]
    assert [n for n in found if n not in loader] == [n for n in expected if n not in loader]
    assert set(found) == set(expected)


def test_libraries_by_runpath_environment_and_names(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    low = build(
        tmp_path / "deep", "liblow.so.1.2", "int low(void){return 1;}", "-shared", "-fPIC",
        "-Wl,-soname,liblow.so.1",
    )  # fmt: skip
    low.rename(low.with_name("liblow.so.1"))
    high = build(
        tmp_path, "libhigh.so", "int low(void); int high(void){return low();}", "-shared", "-fPIC",
        str(tmp_path / "deep" / "liblow.so.1"), "-Wl,-rpath,$ORIGIN/deep",
    )  # fmt: skip
    source = "int high(void); int main(void){return high();}"
    program = build(
        tmp_path, "user", source, str(high), f"-Wl,-rpath-link,{tmp_path}/deep",
        "-Wl,--disable-new-dtags",
    )  # fmt: skip
    share = ((str(tmp_path), False),)
    files, places = opened(program, shares=share)
    names = [file.path.rsplit("/", 1)[-1] for file in files.files]
    assert names[:2] == ["user", "libhigh.so"]
    assert "liblow.so.1" in names
    for library in ("liblow", "liblow.so.1", "libhigh", "libhigh.so"):
        assert files.named(library) is not None
    assert places.resolve("low")[0].path.endswith("deep/liblow.so.1")
    assert places.resolve("liblow:low")[0].path.endswith("deep/liblow.so.1")
    (tmp_path / "deep" / "liblow.so.1").rename(tmp_path / "liblow.so.1")
    files, _ = opened(program, shares=share)
    _ = files.files
    assert files.missing == ["liblow.so.1"]
    env = (f"LD_LIBRARY_PATH={tmp_path}",)
    files, _ = opened(program, shares=share, env=env)
    assert files.named("liblow") is not None


def test_a_function_without_a_size_ends_at_the_next_name() -> None:
    files, places = opened(INSNS)
    file = files.main
    place = places.resolve("i_nop1")[0]
    following = places.resolve("i_nop2_66")[0]
    assert function_at(file, place.link) == (place.link, following.link - place.link)


def test_a_mark_behind_the_code_is_no_function(tmp_path: Path) -> None:
    """Go's linker types `runtime.etext` as a function; it stands where the segment ends."""
    source = """
        .text
        .globl _start, behind
        .type _start, @function
        .type behind, @function
    _start: nop
        ret
        .size _start, .-_start
    behind:
    """
    _, places = opened(build(tmp_path, "marked", source, "-nostdlib", "-static"))
    assert [place.symbol for place in places.matching("*")] == ["_start"]
    with pytest.raises(PlaceError, match="outside all segments"):
        places.resolve("behind")
