"""Expressions over classes of C++ and its library, against what gdb 13 has answered.

The files `*.gdb` beside the programs have gdb's answers, addresses blanked, those lines that both
read alike; the programs were built with g++ 12, and gdb had the printers of libstdc++ 12.
"""

from pathlib import Path

import pytest
from controlkit import Held
from cppkit import answers, built, built_for, golden
from dapkit import front_end

from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig

pytestmark = pytest.mark.slow  # programs with many templates are compiled


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built("classes", tmp_path_factory.mktemp("classes"))


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
    "p greet(str)[1]": "(__gnu_cxx::__alloc_traits<std::allocator<char>, char>::value_type &)"
    " @ADDRESS: 101 'e'",
    "p nullptr": "(void *) ADDRESS",
    "p over(color)": "Cannot resolve function over to any overloaded instance",
    "ptype geo::Latest": "type = struct geo::newest::Latest {\n    int n;\n}",
    "p sizeof(geo::Latest)": "4",
    "p sq.scaled(1)": "Too few arguments in function call.",
    "p typeid(*sp).name()": 'ADDRESS <typeinfo name for geo::Square> "N3geo6SquareE"',
    "p typeid(*sp) == typeid(sq)": "true",
    "p typeid(plain) != typeid(sq)": "true",
    "whatis decltype(sq.side)": "type = int",
    "whatis decltype(sp) *": "type = geo::Shape **",
    "p sizeof(decltype(sq)) + sizeof(typeof(num))": "40",
    "p (decltype(fl))3": "3",
    "p alignof(sq)": "8",
    "p &Shape::area": "&virtual geo::Shape::area() const",
    "p (sq.*(&Shape::area))()": "16",
    "p Vec(1, 2)": "{x = 1, y = 2}",
    "p Vec{1}": "{x = 1, y = 0}",
    "p Vec{1, 2} + a": "{x = 5, y = 8}",
    "p take(Mixed{1, 2.5})": "3.5",
    "p Box<int>{5}.get()": "5",
    "p Vec(1, 2, 3)": "Vec has 2 parts, 3 values were given.",
    "p geo::Square(3).side": "3",
    "p geo::Square(3).area()": "9",
    "p int{5}": "5",
    "p (bool)a": "true",
    "p a ? 1 : 2": "1",
    "p a && true": "true",
    "p over(a)": "Cannot resolve function over to any overloaded instance",  # bool is explicit
}


def test_what_gdb_does_not_answer(classes: str) -> None:
    assert answers(classes, ("break look", "run", "up"), list(OWN)) == OWN


LINES = {  # the lines on which gdb's breakpoints are, too; None where it finds no function
    "over(const char*)": 72,
    "over(char const *)": 72,
    "over(unsigned long int)": 74,
    "over(const geo::Shape &)": 76,
    "over(nosuch)": None,
    "operator*(double, const Vec &)": 57,
    "greet(const std::string &)": 65,
    "Box<int>::get": 80,
    "Vec::operator()(double) const": 50,
}


def test_a_breakpoint_is_on_the_overload_that_is_named(classes: str) -> None:
    found = answers(classes, (), [f"break {name}" for name in LINES])
    for name, line in LINES.items():
        text = found[f"break {name}"]
        assert text.endswith(f"line {line}.") if line else "not defined" in text, name
    assert "(9 locations)" in answers(classes, (), ["break over"])["break over"]


def test_methods_lambdas_and_coroutines_show_what_they_see(classes: str) -> None:
    start = ("break look", "run", "continue", "delete", "up")
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
    guest = Held.of(GuestConfig(classes, printers=str(file)))
    try:
        guest.do(cmd.ToggleBreak("look()"), cmd.Continue())
        frame = guest.view.frames[1].variables
        assert next(one.value for one in frame if one.name == "a") == wanted["p a"]
    finally:
        guest.control.close()
        guest.terminal.close()
    with front_end("--printers", str(file)) as editor:
        editor.launch(classes)
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "look()"}])
        frames = editor.frames(editor.go()["threadId"])
        assert editor.scope(frames[1], "Locals")["a"]["value"] == wanted["p a"]


HELD = {  # gdb 13 shows most of these as they are made, and does not find the operators
    "p fn": "std::function<int(int)> = {target = ADDRESS <twice(int)>}",
    "p no_fn": "std::function<int(int)> [no target]",
    "p lam(2)": "3",
    "p ms": "std::chrono::duration = { 1500ms }",
    "p hours": "std::chrono::duration = { 2h }",
    "p dsec": "std::chrono::duration = { 0.5s }",
    "p tp": "std::chrono::sys_time = { 1000s [1970-01-01 00:16:40] }",
    "p steady": "std::chrono::steady_clock time_point = { 0ns }",
    "p ms.count() > 1000": "true",
    "p z": "{_M_value = 1 + -2i}",
    "p z.imag()": "-2",
    "p ec.value()": "0",
    "p arr": "{_M_elems = {1, 2, 3}}",
    "p vi + 1": "2",
    "p *(vi + 2)": "(int &) @ADDRESS: 3",
    "p vi < ve": "true",
    "p (vi + 3) == ve": "true",
    "p si2 + 1": "98 'b'",
}


@pytest.mark.parametrize("library", ["libstdc++", "libc++"])
def test_containers_of_both_libraries(library: str, tmp_path: Path) -> None:
    program = built_for(library, "library", tmp_path)
    wanted = golden("library")
    start = ("break look", "run", "continue", "up")
    # gdb does not know the type by the name that its user writes.
    wanted["whatis (std::vector<int> *)0"] = "type = std::vector<int> *"
    wanted["p *(std::vector<int>*)&three"] = "std::vector of length 3, capacity 4 = {1, 2, 3}"
    wanted |= HELD
    found = answers(program, start, list(wanted))
    assert {line: text.replace("__cxx11::", "") for line, text in found.items()} == wanted
