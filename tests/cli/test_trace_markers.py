"""Static probes (USDT) of programs: traced, checked, listed, on all architectures."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import archkit
import pytest
from compiled import build
from guestrun import Outcome, run
from markerkit import CODE, DATA, HEADERS, INNER, ZOO, Note, file_with
from runfolder import run_folder
from sysroot import locked

ARCHES = ("x86_64", "aarch64", "riscv64")
ROWS = {
    "many": [
        "many: arg1=0 arg2=0 arg3=0 arg4=250 arg5=0 arg6=* arg7=1 arg8=-2"
        " arg9=3000000000 arg10=10",
        "many: arg1=1 arg2=1000000007 arg3=-1 arg4=251 arg5=-300 arg6=* arg7=1 arg8=-2"
        " arg9=3000000000 arg10=20",
        "many: arg1=2 arg2=2000000014 arg3=-2 arg4=252 arg5=-600 arg6=* arg7=1 arg8=-2"
        " arg9=3000000000 arg10=30",
        "many: arg1=3 arg2=3000000021 arg3=-3 arg4=253 arg5=-900 arg6=* arg7=1 arg8=-2"
        " arg9=3000000000 arg10=40",
    ],
    "globals": ["globals: arg1=65533 arg2=-5 arg3=-3 arg4=0x4004000000000000"] * 4,
    "consts": ["consts: arg1=5 arg2=-7 arg3=9223372036854775807 arg4=4000000000"] * 4,
    "stack": [f"stack: arg1={n + 1} arg2={n + (n & 3)}" for n in range(4)],
    "fed": [f"fed: arg1={3 * n}" for n in range(4)],
    "twice": [f"twice: arg1={n}" for n in range(4)],
    "none": ["none:"] * 4,
}


def slow_case(*values: object) -> object:
    """Values of a test that takes its time."""
    return pytest.param(*values, marks=pytest.mark.slow)


@cache
def zoo(arch: str, optimised: str = "-O2", *flags: str) -> Path:
    """The program of tests/data/markers, once a run of the tests."""
    compiler = archkit.compiler(arch)
    key = "".join((optimised, *flags))
    program = run_folder("markers") / f"zoo{key}.{arch}"
    words: list[str | Path] = [
        compiler,
        optimised,
        "-g",
        *flags,
        "-I",
        HEADERS,
        "-o",
        program,
        ZOO,
    ]
    with locked(program):
        if not program.exists():
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{compiler} cannot compile: {done.stderr.splitlines()[-1]}")
    return program


def rows(text: str) -> list[str]:
    """The events of a trace without their heads and addresses, strings' pointers as '*'."""
    found = re.findall(r"\] \.{5} +\d+: (\w+): \(0x[0-9a-f]+\)(.*)", text)
    return [re.sub(r"arg6=\d+", "arg6=*", f"{name}:{args}") for name, args in found]


def trace(program: Path, *words: str, home: Path, args: tuple[str, ...] = ()) -> Outcome:
    return run("trace", "-o", "out", *words, str(program), *args, cwd=home)


@pytest.mark.parametrize("optimised", ["-O0", "-O2"])
@pytest.mark.parametrize("arch", ARCHES)
def test_every_kind_of_operand_is_fetched(arch: str, optimised: str, tmp_path: Path) -> None:
    done = trace(zoo(arch, optimised, "-static"), "-e", "sdt_zoo:*", home=tmp_path)

    assert done.code == 0
    found = rows((tmp_path / "out").read_text())
    for name, wanted in ROWS.items():
        assert [row for row in found if row.startswith(f"{name}:")] == wanted
    assert "sdt_zoo:globals: arg4 is a floating number: its bits are recorded" in done.err
    # sum, and the counter that was up while the probe stood
    assert done.out == "6000000042 1\n"


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        ("x86_64", ("-O2", "-fPIE", "-pie")),  # 4+box(%rip)
        slow_case("x86_64", ("-O2", "-fno-pie", "-no-pie")),  # box+4(%rip)
        slow_case("x86_64", ("-O0", "-static")),
        slow_case("aarch64", ("-O2", "-static")),
        slow_case("riscv64", ("-O2", "-static")),
    ],
)
def test_operands_at_symbols(arch: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    compiler = archkit.compiler(arch)
    words: list[str | Path] = [compiler, "-g", *flags, "-I", HEADERS]
    words += ["-o", tmp_path / "inner", INNER]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{compiler} cannot compile: {done.stderr.splitlines()[-1]}")
    ran = trace(tmp_path / "inner", "-e", "sdt_inner:*", home=tmp_path)

    assert ran.out == "-4 82 -294 inner\n"
    assert sorted(rows((tmp_path / "out").read_text())) == [
        "elements: arg1=40 arg2=80",
        "elements: arg1=40 arg2=81",
        "members: arg1=1 arg2=-2 arg3=3000000000",
        "members: arg1=1 arg2=-3 arg3=3000000000",
        "own: arg1=-5 arg2=-42",
        "own: arg1=-5 arg2=-6",
    ]


def test_a_counter_is_up_in_every_process_and_down_without_a_probe(tmp_path: Path) -> None:
    program = zoo("x86_64")
    done = trace(program, "-e", "sdt_zoo:fed", home=tmp_path, args=("x",))

    assert done.out == "6000000042 1\nchild 1\n"
    assert rows((tmp_path / "out").read_text()) == [f"fed: arg1={n}" for n in (0, 3, 6, 9, 3)]
    done = trace(program, "-e", "sdt_zoo:none", home=tmp_path, args=("x",))
    assert done.out == "6000000042 0\nchild 0\n"


def test_places_of_other_types_are_an_event_of_their_own(tmp_path: Path) -> None:
    done = trace(
        zoo("x86_64"), "--list", "-e", "sdt_zoo:other", "-e", "sdt_zoo:twice", home=tmp_path
    )

    names = [line.split()[0] for line in done.out.splitlines()]
    types = {line.split()[0]: line.rpartition(":")[2] for line in done.out.splitlines()}
    assert sorted(names[:2]) == ["p:sdt_zoo/other", "p:sdt_zoo/other_1"]
    assert {types["p:sdt_zoo/other"], types["p:sdt_zoo/other_1"]} == {"s32", "s64"}
    assert names[2:] == ["p:sdt_zoo/twice"] * 2


def test_names_and_arguments_of_the_users_own(tmp_path: Path) -> None:
    line = "p:my/s %sdt_zoo:many n=$arg1 text=+0($arg6):string $arg2"
    trace(zoo("x86_64"), "-e", line, home=tmp_path)

    assert rows((tmp_path / "out").read_text())[1] == 's: n=1 text="hello" arg2=1000000007'


@pytest.mark.parametrize(
    "place",
    [
        *("%sdt_zoo:none", "%zoo:none", "%none", "sdt:zoo:none", "usdt:PATH:zoo:none"),
        *(
            "sdt:PATH:none",
            "p:x PATH:%sdt_zoo:none",
            "p sdt_zoo:no?e",
            "!p %zoo:none",
            "sdt_zoo/none",
        ),
    ],
)
def test_all_forms_of_a_place(place: str, tmp_path: Path) -> None:
    program = zoo("x86_64")
    trace(program, "-e", place.replace("PATH", str(program)), home=tmp_path)

    name = "x" if place.startswith("p:x") else "none"
    assert rows((tmp_path / "out").read_text()) == [f"{name}:"] * 4


LIBRARY = """
#include "markers.h"
void graze(int n) { MARKER("herd", "graze", "0", "-4@%0", "r"(n)); }
"""

OPENER = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*graze)(int) = (void (*)(int))dlsym(library, "graze");
    graze(7);
    return 0;
}
"""


def test_a_library_that_comes_later(tmp_path: Path) -> None:
    library = build(tmp_path, "libherd.so", LIBRARY, "-shared", "-fPIC", "-I", str(HEADERS))
    opener = build(tmp_path, "opener", OPENER)
    for place in (f"sdt:{library}:herd:graze", "libherd.so:%herd:graze", "sdt:libherd:herd:*"):
        done = trace(opener, "-e", place, home=tmp_path, args=(str(library),))
        assert done.code == 0, done.err
        assert rows((tmp_path / "out").read_text()) == ["graze: arg1=7"]
    done = trace(opener, "-e", "sdt_herd:graze", home=tmp_path, args=(str(library),))
    assert done.code == 2
    assert "sdt:PATH:PROVIDER:NAME names a file that comes later" in done.err


ERRORS = {
    "sdt_zoo:nosuch": "no such marker in the guest and the libraries that it begins with",
    "sdt_nosuch:*": "there are sdt_zoo:many, sdt_zoo:globals, ",
    "sdt:/no/such:a:b": "the guest sees no file /no/such",
    "sdt:nolib:a:b": "the guest sees no file nolib",
    "sdt:/etc/passwd:a:b": "is a text file, not an ELF program",
    "sdt:::": "a marker is sdt:PATH:PROVIDER:NAME",
    "r %sdt_zoo:fed": "nothing returns: define it with p",
    "p %sdt_zoo:fed $arg2": "$arg2: sdt_zoo:fed in ",
    "p %sdt_zoo:fed $arg0": "it has 1 argument (EINVAL)",
    "p %sdt_zoo:fed $arg*:u8": "",
    "p:9x %sdt_zoo:fed": "Event name must follow the same rules as C identifiers",
    "p:my/ %sdt_zoo:fed %nosuch": "Invalid register name",
}


@pytest.mark.parametrize("line", ERRORS)
def test_an_error_is_one_clear_line(line: str, tmp_path: Path) -> None:
    done = trace(zoo("x86_64"), "-e", line, home=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert ERRORS[line] in done.err
    assert "Traceback" not in done.err


def test_kernel_mode_knows_none(tmp_path: Path) -> None:
    done = trace(zoo("x86_64"), "--mode", "kernel", "-e", "p %sdt_zoo:fed", home=tmp_path)

    assert done.code == 2


def test_a_program_without_markers(tmp_path: Path) -> None:
    (tmp_path / "bare").write_bytes(file_with(b""))
    done = run("check", "--list", "bare", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert "no file of the program has static probes" in done.err
    done = trace(tmp_path / "bare", "-e", "sdt_zoo:fed", home=tmp_path)
    assert "there are no notes of static probes (USDT) at all" in done.err


UNUSABLE = {
    "outside the code": (Note(address=0x123), "its address 0x123 is not in the file's code"),
    "in the data": (Note(address=DATA), "is not in the file's code"),
    "beyond memory": (Note(address=2**64 - 1), "is not in the file's code"),
    "counter outside": (Note(semaphore=0x10), "its semaphore 0x10 is not in the file's data"),
    "counter in the code": (Note(semaphore=CODE), "is not in the file's data"),
    "counter in the bss": (Note(semaphore=DATA + 0x180), "is not in the file's data"),
    "half a counter": (Note(semaphore=DATA + 0xFF), "is not in the file's data"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_marker_that_nothing_can_stand_on_is_told(case: str, tmp_path: Path) -> None:
    note, why = UNUSABLE[case]
    program = tmp_path / "guest"
    program.write_bytes(file_with(note.raw + Note(name=b"good").raw))
    program.chmod(0o755)

    listed = run("check", "--list", str(program), cwd=tmp_path)
    assert re.search(f"^sdt_zoo:fed .* unusable: .*{re.escape(why)}$", listed.out, re.M)
    alone = trace(program, "-e", "sdt_zoo:fed", home=tmp_path)
    assert (alone.code, why in alone.err) == (2, True)
    both = trace(program, "-e", "sdt_zoo:*", home=tmp_path)
    assert (both.code, why in both.err) == (0, True)
    assert rows((tmp_path / "out").read_text()) == ["good: arg1=0"]


def test_an_argument_that_cannot_be_fetched_is_left_out_and_told(tmp_path: Path) -> None:
    program = tmp_path / "guest"
    text = b"-4@$5 8f@%xmm0 8@lost(%rip) 7@%rax -4@%what -4@$8"
    program.write_bytes(file_with(Note(arguments=text).raw))
    program.chmod(0o755)

    done = trace(program, "-e", "sdt_zoo:fed", home=tmp_path)
    assert rows((tmp_path / "out").read_text()) == ["fed: arg1=5 arg6=*"]
    for why in (
        "arg2 is not recorded: 8f@%xmm0: register xmm0 holds no integer",
        "arg3 is not recorded: 8@lost(%rip): lost is not in the symbol table",
        "arg4 is not recorded: 7@%rax: 7 bytes are no size of a number",
        "arg5 is not recorded: -4@%what: it is not understood",
    ):
        assert why in done.err
    asked = trace(program, "-e", "p %sdt_zoo:fed $arg3", home=tmp_path)
    assert asked.code == 2
    assert "lost is not in the symbol table" in asked.err


def test_a_list_for_programs(tmp_path: Path) -> None:
    done = run("check", "--list", "--json", str(zoo("x86_64")), cwd=tmp_path)

    found = {row["name"]: row for row in json.loads(done.out)}
    assert found["fed"]["event"] == "sdt_zoo:fed"
    assert found["fed"]["semaphore"].startswith("0x")
    assert found["none"]["arguments"] == []
    assert found["consts"]["arguments"][0] == {
        "operand": "-4@$5",
        "fetch": "\\5:s32",
        "problem": None,
    }
    wrong = run("check", "--list", "--all", str(zoo("x86_64")), cwd=tmp_path)
    assert wrong.code == 2


def test_places_are_judged(tmp_path: Path) -> None:
    done = run("check", "-e", "sdt_zoo:twice", str(zoo("x86_64")), cwd=tmp_path)

    assert done.code == 0
    assert len(re.findall(r"^0x[0-9a-f]+ feed\+", done.out, re.M)) == 2
