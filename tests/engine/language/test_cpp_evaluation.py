"""Expressions over classes of C++ and its library, against what gdb 13 has answered.

The files `*.gdb` beside the programs have gdb's answers, addresses blanked, those lines that both
read alike; the programs were built with g++ 12, and gdb had the printers of libstdc++ 12.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

DATA = CHECKOUT / "tests" / "data" / "language"
COMMAND = ("x86_64-linux-gnu-g++", "-std=c++20", "-g", "-O0", "-no-pie")
LLVM = ("-nostdinc++", "-isystem", "/usr/include/c++/v1", "-nodefaultlibs")
LLVM_LIBRARIES = ("-lc++", "-lc++abi", "-lc", "-lm", "-lgcc_s", "-lgcc")
pytestmark = pytest.mark.slow  # programs with many templates are compiled


def built(name: str, folder: Path, before: Sequence[str] = (), behind: Sequence[str] = ()) -> str:
    """A program of the test's."""
    if shutil.which(COMMAND[0]) is None:
        pytest.skip("no compiler for C++")
    made = folder / name
    source = DATA / f"{name}.cc"
    subprocess.run([*COMMAND, *before, "-o", made, source, *behind], check=True)
    return str(made)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built("classes", tmp_path_factory.mktemp("classes"))


def blank(text: str) -> str:
    """An answer without what differs from run to run."""
    return re.sub("0x[0-9a-f]+", "ADDRESS", re.sub(r"^\$\d+ = ", "", text.strip(), flags=re.M))


def golden(name: str) -> dict[str, str]:
    """Lines and gdb's answers."""
    parts = (DATA / f"{name}.gdb").read_text().split(">>> ")[1:]
    return {line: text.strip() for line, _, text in (part.partition("\n") for part in parts)}


def answers(
    program: str, start: Sequence[str], lines: Sequence[str], printers: str | None = None
) -> dict[str, str]:
    """What is answered to lines, behind others."""
    asked = [part for line in lines for part in (f"echo >>> {line}\\n", line)]
    text = said(GuestConfig(program, printers=printers), *start, *asked).replace("! ", "")
    parts = text.split(">>> ")[1:]
    return {line: blank(rest) for line, _, rest in (part.partition("\n") for part in parts)}


def test_classes_read_as_in_gdb(classes: str) -> None:
    wanted = golden("classes")
    assert answers(classes, ("break look", "run", "up"), list(wanted)) == wanted


SQUARE = (
    "{<geo::Shape> = {_vptr.Shape = ADDRESS <vtable for geo::Square+16>, id = 10,"
    " static count = 4, static limit = 9, kind = geo::Shape::large}, <geo::Colored> ="
    " {_vptr.Colored = ADDRESS <vtable for geo::Square+64>, color = geo::Color::blue}, side = 4}"
)
OBJECTS = {  # gdb 13's answers
    "p *sp": f"(geo::Square) {SQUARE}",
    "p sp": "(geo::Square *) ADDRESS",
    "p sr": f"(geo::Square &) @ADDRESS: {SQUARE}",
    "p sq": f"(geo::Square) {SQUARE}",
    "p cp": "(geo::Square *) ADDRESS",
    "p vbp": "(VBoth *) ADDRESS",
    "whatis sp": "type = /* real type = geo::Square * */\ngeo::Shape *",
    "whatis *sp": "type = geo::Shape",
    "whatis sr": "type = /* real type = geo::Square & */\ngeo::Shape &",
    "whatis sq": "type = /* real type = geo::Square */\ngeo::Square",
}


def test_objects_in_their_own_class(classes: str) -> None:
    start = ("break look", "run", "up", "set print object on")
    assert answers(classes, start, list(OBJECTS)) == OBJECTS


OWN = {  # gdb has errors for these, or sees the parts of objects that it has overwritten itself
    "p a(2)": "14",
    "p 2 * a": "{x = 8, y = 12}",
    "p lambda(1)": "34",
    "p generic(2)": "3",
    "p largest(1, 2)": "2",
    "p bi.plus(1)": "8",
    "p sq.Shape::area()": "0",
    "p (sp->*pmv)()": "16",
    "p dynamic_cast<void *>(cp) == (void *)&sq": "true",
    "p dynamic_cast<Square &>(sr).side": "4",
    "p dynamic_cast<Square *>(&plain)": "(geo::Square *) ADDRESS",
    "p greet(str).size()": "11",
    "p greet(str)[1]": "101 'e'",
    "p nullptr": "(void *) ADDRESS",
    "p over(color)": "Cannot resolve function over to any overloaded instance",
    "ptype geo::Latest": "type = struct geo::newest::Latest {\n    int n;\n}",
    "p sizeof(geo::Latest)": "4",
    "p sq.scaled(1)": "Too few arguments in function call.",
}


def test_what_gdb_does_not_answer(classes: str) -> None:
    assert answers(classes, ("break look", "run", "up"), list(OWN)) == OWN


def test_methods_lambdas_and_coroutines_show_what_they_see(classes: str) -> None:
    start = ("break look", "run", "continue", "up")
    lines = ("p n", "p *this", "p add(1)", "p shared_count", "p Counter::shared_count")
    assert answers(classes, start, lines) == {
        "p n": "9",
        "p *this": "{n = 9, static shared_count = 8}",
        "p add(1)": "9",
        "p shared_count": "8",
        "p Counter::shared_count": "8",
    }
    inside = ("break look", "run", "continue", "continue", "continue", "up")
    found = answers(classes, inside, ("p local", "p i + to", "p frame_ptr->_Coro_promise"))
    assert found == {
        "p local": "101",
        "p i + to": "4",
        "p frame_ptr->_Coro_promise": "{current = 0}",
    }


PRINTERS = """
def vec(v):
    return f"<{float(v['x'])}, {float(v['y'])}>"

def square(v):
    return ("square", {"side": v["side"], "area": int(v["side"]) ** 2, "name": "four"})

printers = {"Vec": vec, "geo::Square": square, "Box<*>": lambda v: [v["value"], 7],
            "Small": lambda v: 1 / 0}
"""


def test_printers_of_the_users(classes: str, tmp_path: Path) -> None:
    file = tmp_path / "printers.py"
    file.write_text(PRINTERS)
    wanted = {
        "p a": "<4.0, 6.0>",
        "p sq": 'square = {side = 4, area = 16, name = "four"}',
        "p bs": '{"boxed", 7}',
        "p sm": "<printer of Small: ZeroDivisionError: division by zero>",
        "p a.x": "4",
        "p/r a": "{x = 4, y = 6}",
        "p *ptr.p": "<4.0, 6.0>",
    }
    start = ("break look", "run", "up")
    assert answers(classes, start, list(wanted), printers=str(file)) == wanted


@pytest.mark.parametrize("library", ["libstdc++", "libc++"])
def test_containers_of_both_libraries(library: str, tmp_path: Path) -> None:
    if library == "libc++":
        if not Path("/usr/include/c++/v1").is_dir():
            pytest.skip("libc++ is not installed")
        program = built("library", tmp_path, LLVM, LLVM_LIBRARIES)
    else:
        program = built("library", tmp_path)
    wanted = golden("library")
    start = ("break look", "run", "continue", "up")
    # gdb does not know the type by the name that its user writes.
    wanted["whatis (std::vector<int> *)0"] = "type = std::vector<int> *"
    wanted["p *(std::vector<int>*)&three"] = "std::vector of length 3, capacity 4 = {1, 2, 3}"
    found = answers(program, start, list(wanted))
    assert {line: text.replace("__cxx11::", "") for line, text in found.items()} == wanted
