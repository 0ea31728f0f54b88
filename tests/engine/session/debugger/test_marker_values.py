"""Static probes (USDT) in gdb's words: `break -probe-stap`, `$_probe_arg0`, counters."""

import re
from pathlib import Path

import pytest
from compiled import build
from gdbwords import of_gdb, said
from markerkit import HEADERS, ZOO

from engine.session.protocol.config import GuestConfig

ARGUMENTS = tuple(f"p $_probe_arg{number}" for number in range(12))
PLACING = (
    *("p $_probe_argc", "break -probe-stap zoo:many", "break -probe zoo:twice", "break -p none"),
    *("tbreak -probe-stap zoo:zoo:consts", "break -pstap zoo:stack", "break -probe-stap zoo:no"),
    *("break -probe-stap", "break -probe-dtrace zoo:many", "break -probe-stap libc.so:zoo:many"),
    *("break -probe-stap a:b:c:d", "break -probe-stap a::c", "break -probe-stap ::many"),
    *("break -probe-stap zoo:", "break -probe-stap many", "info breakpoints"),
)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("markers")
    flags = ("-O0", "-g", "-static", "-no-pie", "-fno-pie", "-I", str(HEADERS))
    return build(folder, "zoo", ZOO.read_text(), *flags)


def same(ours: str, theirs: str) -> None:
    def plain(text: str) -> str:
        text = re.sub(r"^.*libthread_db.*\n|^! ", "", text, flags=re.M)
        return re.sub(r"argv=0x\w+", "argv=*", text)

    assert plain(ours) == plain(theirs)


@pytest.mark.slow
def test_placing_reads_as_in_gdb(zoo: Path) -> None:
    same(said(GuestConfig(str(zoo)), *PLACING), of_gdb(zoo, *PLACING))


@pytest.mark.slow
def test_arguments_read_as_in_gdb(zoo: Path) -> None:
    lines = [
        *("break -probe-stap zoo:many", "break -probe-stap zoo:consts", "break -p stack"),
        *("break -probe-stap zoo:twice", "run", "p $_probe_argc"),
        *(line for line in ARGUMENTS if "arg5" not in line),  # a pointer
        *("whatis $_probe_arg0", "whatis $_probe_arg1", "whatis $_probe_arg2"),
        *("whatis $_probe_arg3", "whatis $_probe_arg4", "p $_probe_arg12", "p $_probe_arg0 + 1"),
        *("continue", "p $_probe_argc", *ARGUMENTS, "whatis $_probe_arg3"),
        *("continue", "p $_probe_arg0", "p $_probe_arg1", "continue", "p $_probe_arg0"),
        *("up", "p $_probe_argc", "stepi", "p $_probe_arg0", "info breakpoints"),
    ]
    same(said(GuestConfig(str(zoo)), *lines), of_gdb(zoo, *lines))


def test_arguments_that_gdb_cannot_read(zoo: Path) -> None:
    """It knows no floating number, and counts no argument of such a marker."""
    lines = ("break -probe-stap zoo:globals", "run", "p $_probe_argc", *ARGUMENTS[:5])
    told = said(GuestConfig(str(zoo)), *lines, "whatis $_probe_arg3")

    assert re.findall(r"^\$\d+ = (.*)", told, re.M) == ["4", "65533", "-5", "-3", "2.5"]
    assert "Invalid probe argument 4 -- probe has 4 arguments available" in told
    assert "type = double\n" in told


def test_conditions_may_name_arguments(zoo: Path) -> None:
    lines = ("break -probe-stap zoo:none if argc", "break -p zoo:many if $_probe_arg0 == 2", "run")
    told = said(GuestConfig(str(zoo)), *lines, "p $_probe_arg9", "p argc")

    assert "$1 = 30\n" in told


def test_a_counter_is_up_while_a_breakpoint_stands(zoo: Path) -> None:
    words = ("break feed", "run", "p fed_semaphore", "tbreak -probe-stap zoo:fed")
    after = ("p fed_semaphore", "continue", "p $_probe_arg0", "p fed_semaphore")
    told = said(GuestConfig(str(zoo)), *words, *after)

    assert re.findall(r"^\$\d+ = (.*)", told, re.M) == ["0", "1", "0", "0"]
    assert "Temporary breakpoint 2, " in told
    assert told.endswith("$4 = 0\n")


def test_values_are_printed_at_a_marker(zoo: Path) -> None:
    told = said(GuestConfig(str(zoo)), 'dprintf -p zoo:twice,"at %d\\n",$_probe_arg0', "run")

    assert "at 0\nat 1\nat 2\nat 3\n" in told


def test_a_damaged_argument_is_an_error(tmp_path: Path) -> None:
    source = """
    #include "markers.h"
    int main(void) { MARKER("zoo", "odd", "0", "8@%what 8@lost(%%rip) 7@%%rax", "r"(0)); }
    """.replace("%what", "%%what")
    program = build(tmp_path, "odd", source, "-I", str(HEADERS))
    told = said(GuestConfig(str(program)), "break -p zoo:odd", "run", *ARGUMENTS[:3])

    assert "Probe argument 0 is `8@%what': it is not understood." in told
    assert "lost is not in the symbol table." in told
    assert "Probe argument 2 is `7@%rax': 7 bytes are no size of a number." in told
