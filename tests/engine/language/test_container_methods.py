"""Methods and operators of C++'s containers in expressions, against gdb and its xmethods."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

SOURCE = CHECKOUT / "tests" / "data" / "language" / "holds.cc"
START = ("break look", "run")
SAME = (
    *("bt 1", "p key", "p s.shapes[1]", "p s.shapes[1].name", "p s.shapes.size()"),
    *("p s.shapes.empty()", "p s.empty.empty()", "p s.shapes.front()", "p s.shapes.back().sides"),
    *("p s.shapes.at(1)", "p s.m.size()", "p *s.ptr", "p s.ptr->name", "p s.ptr->sides"),
    *("p s.ptr.get()", "p (*s.ptr).sides", "p *s.shared", "p s.shared->name", "p s.none"),
    *("p s.d[1]", "p s.d.size()", "p s.d.front()", "p s.d.back()", "p s.l.size()"),
    *("p s.l.front()", "p s.l.back()", "p s.set.size()", "p s.um.size()", "p s.us.size()"),
    *("p s.some", "p s.text", "p s.nothing", "p s.view", "p s.tup", "p s.arr", "p s.arr[1]"),
    *("p s.arr.size()", "p s.arr.front()", "p s.bits", "p s.bits[0]", "p s.bits.size()"),
    *("p s.deep[1][1]", "p s.deep[1].size()", "p s.stack", "p s.queue", "p s.fl", "p s.pr"),
    *("p s.owners[0]", "p s.owners[0]->name", "p s.owners[0]->twice()", "p s.shapes[0].twice()"),
    *("p s.shapes[0].plus(3)", "p s.ptr->plus(1)", "p key.size()", "p key.length()"),
    *("p key.c_str()", "p key.empty()", "p sizeof(s.shapes[0])", "p &s.shapes[1]"),
    *("p s.shapes[0].sides + s.shapes[1].sides", "p s.shapes[0].sides = 9", "p s.shapes[0].sides"),
    *("p *s.ptr.get()", "p s.ptr.get()->name", "whatis s.m", "whatis s.shapes", "whatis key"),
    *("whatis s.ptr", "whatis s.um", "whatis s.tup", "whatis s.owners", "whatis s.view"),
    *("ptype s", "ptype Shape", "info args", "frame function main", "p s.numbers"),
    *("set print pretty on", "p s.shapes", "p s.m", "p s.tup", "p s.ptr"),
)
"""Lines that read as in gdb 13 with the printers of libstdc++ 12."""
pytestmark = pytest.mark.slow  # a program with all of the library's templates is compiled


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    made = tmp_path_factory.mktemp("holds") / "holds"
    command = ["g++", "-std=c++17", "-g", "-O0", "-no-pie", "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True)
    return made


def test_expressions_read_as_in_gdb(program: Path) -> None:
    if shutil.which("gdb") is None or not Path("/usr/share/gdb/auto-load").is_dir():
        pytest.skip("no gdb with the library's printers")
    lines = [*START, *(part for line in SAME for part in (f"echo >>> {line}\\n", line))]
    done = subprocess.run(
        [
            "gdb",
            "-nx",
            "-q",
            "-batch",
            *(word for line in lines for word in ("-ex", line)),
            program,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/nonexistent"},
    )
    if "std::vector of length" not in done.stdout:
        pytest.skip("gdb has not loaded the library's printers, or runs no programs here")
    ours = said(GuestConfig(str(program)), *lines).replace("! ", "")
    begin = ">>> bt 1\n"
    theirs, ours = (text[text.index(begin) :] for text in (done.stdout, ours))
    blank = [re.sub("0x[0-9a-f]+", "ADDRESS", text).splitlines() for text in (ours, theirs)]
    assert blank[0] == blank[1]


VALUES = {  # gdb says that the function is inlined, or cannot find the operator
    "s.numbers[1]": "10",
    "s.numbers.at(2)": "20",
    's.m["two"]': "std::vector of length 2, capacity 2 = {1, 2}",
    's.m["two"][1]': "2",
    "s.um.at(5)": '"five"',
    "s.numbers.count(3)": "false",
    "s.set.contains(2)": "true",
    "s.some.value()": "11",
    "*s.some": "11",
    "s.nothing.has_value()": "false",
    "s.text->size()": "3",
    "s.view.size()": "6",
    "s.view[2]": "118 'v'",
    "key[1]": "(const __gnu_cxx::__alloc_traits<std::allocator<char>, char>::value_type &)"
    " @ADDRESS: 101 'e'",
    "s.raw[0]": "114 'r'",
}
ERRORS = {
    "s.shapes.at(9)": 'Index "9" should not be >= 2.',
    "s.empty.front()": "The container is empty.",
    "s.numbers[7]": "There is no such key in the map.",
    "*s.nothing": "The optional holds no value.",
    "*s.none": "Cannot access memory at address 0x0",
    "s.shapes.size(1)": "Too many arguments in function call.",
    "s.shapes.at()": "The method takes one argument, 0 were given.",
    "s.shapes.nosuch()": (
        "Couldn't find method std::vector<Shape, std::allocator<Shape> >::nosuch"
    ),
    "s.shapes[0].twice(1)": "Cannot resolve method Shape::twice to any overloaded instance",
}


def test_values_and_errors_that_gdb_does_not_have(program: Path) -> None:
    lines = [f"p {text}" for text in (*VALUES, *ERRORS)]
    text = said(GuestConfig(str(program)), *START, *lines)
    found = re.findall(r"^\$\d+ = (.*)$", text, re.MULTILINE)
    values = [re.sub("@0x[0-9a-f]+", "@ADDRESS", value) for value in found]
    assert dict(zip(VALUES, values, strict=True)) == VALUES
    errors = re.findall(r"^! (.*)$", text, re.MULTILINE)
    assert dict(zip(ERRORS, errors, strict=True)) == ERRORS
