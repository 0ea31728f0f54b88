"""Indirect functions (IFUNC) and symbol versions mean the code that a call comes to.

Counts of calls are known from the programs; gdb's breakpoints stand at the same functions.
"""

import re
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from compiled import build, tool
from debugged import trace
from guestrun import run

from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.session.guest.session import Session
from engine.session.headless.backtraces import backtrace_at
from engine.session.program.places import PlaceError
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import BacktraceRequest

SOURCE = """
#include <stdio.h>
static int one(int x) { return x + 1; }
static int two(int x) { return x + 2; }
int wanted = 2;
static int (*resolver(void))(int) { return wanted == 2 ? two : one; }
int chosen(int) __attribute__((ifunc("resolver")));
static int (*other(void))(int) { return one; }
int unused(int) __attribute__((ifunc("other")));
int main(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++) sum += chosen(i);
    printf("%d\\n", sum);
    return 0;
}
"""

VERSIONED = """
int old(void) { return 1; }
int new(void) { return 2; }
int middle(void) { return 3; }
__asm__(".symver old, step@V1");
__asm__(".symver middle, step@V2");
__asm__(".symver new, step@@V3");
"""
SCRIPT = "V1 { global: step; local: *; }; V2 { global: step; } V1; V3 { global: step; } V2;"
FORMS = pytest.mark.parametrize("flags", [(), ("-no-pie",), ("-static",), ("-static-pie",)])


def hits(text: str, event: str) -> list[str]:
    """The places in the lines of an event."""
    return re.findall(rf" {event}: \((\S+)", text)


@FORMS
def test_an_indirect_function_is_probed_where_the_calls_come_to(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    program = build(tmp_path, "ifn", SOURCE, "-O1", *flags)
    found = trace(program, "-e", "p chosen", "-e", "p unused", "-f", "chosen")
    places = hits(found, "p_chosen_0")
    assert len(places) == 5
    assert {place.partition("/")[0] for place in places} == {"two+0x0"}
    assert len(hits(found, "p_two_0")) == 5
    assert not hits(found, "p_unused_0")


def test_the_resolver_has_a_name_of_its_own(tmp_path: Path) -> None:
    program = build(tmp_path, "ifn", SOURCE, "-O1")
    found = trace(program, "-e", "p chosen@resolver")
    assert len(hits(found, "p_chosen_resolver_0")) >= 1
    assert "two+" not in found
    with pytest.raises(PlaceError, match="main is no indirect function"):
        Session(GuestConfig(guest=str(program))).probes().verdicts.places.resolve("main@resolver")


def test_the_choice_is_told_once_in_words(tmp_path: Path) -> None:
    program = build(tmp_path, "ifn", SOURCE, "-O1")
    session = Session(GuestConfig(guest=str(program)))
    try:
        places = session.probes().verdicts.places
        assert [place.symbol for place in (*places.resolve("chosen"), *places.matching("chosen"))]
        assert session.probes().indirect == [
            "chosen is an indirect function: its implementation in this run is two of ifn"
        ]
    finally:
        session.close()


def test_a_pattern_finds_implementations_once(tmp_path: Path) -> None:
    program = build(tmp_path, "ifn", SOURCE, "-O1")
    session = Session(GuestConfig(guest=str(program)))
    try:
        places = session.probes().verdicts.places
        links = [place.link for place in places.matching("*")]
        assert len(links) == len(set(links))
        assert [place.symbol for place in places.matching("chos*")] == ["two"]
    finally:
        session.close()


def test_a_backtrace_is_taken_in_the_implementation(tmp_path: Path) -> None:
    program = build(tmp_path, "ifn", SOURCE, "-O1")
    config = GuestConfig(guest=str(program))
    stopped = backtrace_at(
        BacktraceRequest(config, place="chosen", hit=5), lambda session: nullcontext()
    )
    assert stopped.backtrace is not None
    assert [frame.function for frame in stopped.backtrace.frames[:2]] == ["two", "main"]
    assert stopped.indirect == (
        "chosen is an indirect function: its implementation in this run is two of ifn",
    )


def nm_versions(library: Path) -> dict[str, int]:
    done = subprocess.run(
        [tool("nm"), "-D", "--defined-only", "--with-symbol-versions", library],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split() for line in done.stdout.splitlines())
    return {name: int(value, 16) for value, kind, name in rows if kind in "TtiW"}


@pytest.mark.parametrize("strip", [(), ("-s",)])
def test_a_version_is_chosen_as_nm_writes_it(tmp_path: Path, strip: tuple[str, ...]) -> None:
    script = tmp_path / "map"
    script.write_text(SCRIPT)
    library = build(
        tmp_path,
        "libv.so",
        VERSIONED,
        "-shared",
        "-fPIC",
        f"-Wl,--version-script={script}",
        *strip,
    )
    table = SymbolTable(ElfImage.open(str(library), runnable=False))
    listed = nm_versions(library)
    assert set(listed) == {"step@V1", "step@V2", "step@@V3"}
    for name, address in listed.items():
        assert {symbol.address for symbol in table.find_all(name)} == {address}
    assert {s.address for s in table.find_all("step@V3")} == {listed["step@@V3"]}
    assert table.find_all("step")[0].address == listed["step@@V3"]
    assert not table.find_all("step@@V1")
    assert not table.find_all("step@V9")


CONSTRUCTOR = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void begin(void)
{
    FILE *log = fopen("log", "a");
    if (log) { fputs("begun\\n", log); fclose(log); }
    while (getenv("SPIN")) ;
}
int used(void) { return 3; }
"""


@pytest.fixture
def constructed(tmp_path: Path) -> Path:
    """A program whose library has a constructor that leaves something behind."""
    folder = tmp_path
    build(folder, "libown.so", CONSTRUCTOR, "-shared", "-fPIC")
    source = """
    #include <string.h>
    int used(void);
    int main(int count, char **words) { return strlen(words[0]) + used() > 1000; }
    """
    flags = ("-O0", "-fno-builtin", f"-L{folder}", "-lown", "-Wl,-rpath,$ORIGIN")
    return build(folder, "constructed", source, *flags)


def test_the_second_guest_changes_nothing_of_the_hosts(constructed: Path, tmp_path: Path) -> None:
    share = ("--share", f"{tmp_path}:rw", "--cwd", str(tmp_path))
    words = ("trace", *share, "-e", "p:i/s libc.so.6:strlen", str(constructed))
    done = run(*words, cwd=tmp_path)
    assert done.code == 0, done.err
    assert len(hits(done.out + done.err, "s")) >= 1
    assert (tmp_path / "log").read_text() == "begun\n"  # by the guest that is traced, once


def test_a_second_guest_that_never_begins_is_told(constructed: Path, tmp_path: Path) -> None:
    words = ("trace", "--env", "SPIN=1", "-e", "p:i/s libc.so.6:strlen", str(constructed))
    done = run(*words, cwd=tmp_path)
    assert done.code == 2
    assert "the program takes too long to begin" in done.err
