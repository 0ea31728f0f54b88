"""Names in a frame: those of the file that the program stands in, of the program, of libraries."""

from pathlib import Path

import pytest
from compiled import build
from gdbwords import said

from engine.session.protocol.config import GuestConfig

LIBRARY = """
enum grammar { word = 5, noun = 6 };
enum grammar used;
int inner(int a) { return a + noun; }
int outer(int a) { return inner(a) + 1; }
"""
HIDDEN = 'int twice(int a) { return a + a; }\nint thrice(int) __attribute__((alias("twice")));\n'
PROGRAM = """
union { unsigned u; float f; } word = {0x40490fdb};
int outer(int), thrice(int);
int main(void) { return outer(thrice(1)); }
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> GuestConfig:
    """A program with a library, and a name that both of them have."""
    folder = tmp_path_factory.mktemp("names")
    build(folder, "libtwo.so", LIBRARY + HIDDEN, "-g", "-shared", "-fPIC")
    linked = (f"-L{folder}", "-ltwo", f"-Wl,-rpath,{folder}")
    program = build(folder, "program", PROGRAM, "-g", *linked)
    return GuestConfig(str(program), shares=((str(folder), False),))


def test_the_program_s_names_come_before_a_library_s_enumerators(config: GuestConfig) -> None:
    """As in gdb, which looks for enumerators of other units last."""
    inside = ("break main", "run", "break inner", "continue")
    out = said(config, *inside, "print word", "print noun", "up 2", "print word")
    values = [line.partition(" = ")[2] for line in out.splitlines() if line.startswith("$")]
    assert values == ["{u = 1078530011, f = 3.14159274}", "noun", *values[:1]]


def test_another_name_of_a_function_has_its_type(config: GuestConfig) -> None:
    """gdb takes the function that begins where the symbol stands (find_function_alias_target)."""
    out = said(config, "break main", "run", "print thrice", "ptype &thrice")
    assert "= {int (int)} 0x" in out
    assert "type = int (*)(int)" in out


def test_a_stub_stands_for_a_function_whose_library_is_not_there(
    config: GuestConfig, tmp_path: Path
) -> None:
    """Before the program runs; the library's own function has its type afterwards."""
    before, after = "whatis outer", "print outer"
    out = said(config, before, after, "print &outer", "break main", "run", before, after)
    lines = [line for line in out.splitlines() if "outer" in line or line.startswith("type")]
    assert lines[0] == "type = <text variable, no debug info>"
    assert lines[1].endswith("<outer@plt>")
    assert lines[2].startswith("$2 = (<text variable, no debug info> *) 0x")
    assert lines[-2] == "type = int (int)"
    assert lines[-1].startswith("$3 = {int (int)} 0x")
