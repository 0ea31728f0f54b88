"""Headers of prototypes: what is read, and that mistakes are told with line and column."""

import re
from pathlib import Path

import pytest

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import prototypes
from engine.language.prototypes import FunctionPrototype, PrototypeHeader

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "typed" / "prototypes.h"
TABLE = Path(prototypes.__file__).with_name("libc.h")


def header(text: str = "") -> PrototypeHeader:
    found = PrototypeHeader()
    found.read(TABLE.read_text(), "libc.h")
    mine = found.child()
    mine.read(text, "x.h")
    return mine


def kinds(one: FunctionPrototype) -> list[tuple[str, TypeKind, int | None]]:
    return [(each.name, each.type.kind, each.type.size) for each in one.parameters]


def test_a_header_as_they_are() -> None:
    found = header(SAMPLE.read_text()).prototypes
    assert list(found) == ["paint", "nothing", "count", "handler", "truth"]
    paint = found["paint"]
    assert paint.variadic
    assert kinds(paint) == [
        ("c", TypeKind.ENUM, 4),
        ("on", TypeKind.ENUM, 4),
        ("label", TypeKind.POINTER, 8),
        ("scale", TypeKind.FLOAT, 8),
    ]
    names = [("RED", 0), ("GREEN", 5), ("BLUE", 6), ("LAST", -1)]
    assert list(paint.parameters[0].type.enumerators) == names
    assert paint.parameters[2].type.target.kind is TypeKind.CHAR
    assert (found["nothing"].result.kind, found["nothing"].parameters) == (TypeKind.VOID, ())
    count = found["count"]
    assert (count.result.kind, count.result.size) == (TypeKind.UNSIGNED, 8)
    assert [name for name, _, _ in kinds(count)] == ["first", "most", "names"]
    assert found["handler"].result.kind is TypeKind.POINTER
    assert found["handler"].parameters[1].type.target.kind is TypeKind.FUNCTION
    assert kinds(found["truth"]) == [
        ("c", TypeKind.UNSIGNED_CHAR, 1),
        ("s", TypeKind.SIGNED, 2),
        ("f", TypeKind.FLOAT, 4),
        ("buffer", TypeKind.POINTER, 8),
    ]
    # What a function fills is no text when it is called.
    assert found["truth"].parameters[3].type.target.kind is TypeKind.VOID


def test_the_table_of_the_c_library() -> None:
    found = PrototypeHeader()
    found.read(TABLE.read_text(), "libc.h")
    assert len(found.prototypes) > 350
    assert found.prototypes["printf"].variadic
    assert [one.name for one in found.prototypes["qsort"].parameters] == [
        "base",
        "nmemb",
        "size",
        "compar",
    ]
    for one in found.prototypes.values():
        assert all(each.type.size in (1, 2, 4, 8) for each in one.parameters), one.name


BAD = (
    "int f(",
    "int f(int",
    "int f(int a",
    "int f(int a,",
    "int f(int a,)",
    "int f)",
    "int f",
    "int",
    "f();",
    "foo f();",
    "int f(foo);",
    "int f(int a, foo b);",
    "foo *f();",
    "int f(struct);",
    "int x;",
    "int *x;",
    "int (*x)(int);",
    "int x[3];",
    "int f, g;",
    "typedef int;",
    "typedef;",
    "struct s { int a; };",
    "union u { int a; };",
    "struct { int a; } f();",
    "struct;",
    "enum;",
    "int f(struct s v);",
    "struct s f();",
    "enum e f();",
    "enum e;int f(enum q);",
    "enum { A, A };",
    "enum { };",
    "enum { A = };",
    "enum { A = x };",
    "enum { 3 };",
    "enum { A",
    "enum { A = 99999999999999999999 };",
    "enum { A = 09 };",
    "enum { A = 1 + 1 };",
    "int f(void, int);",
    "int f(int, void);",
    "int f(void v);",
    "int f(void a[3]",
    "int f(...);",
    "int f(int, ..., int);",
    "int f(int ...);",
    "int f(int, ...",
    "...",
    "int f(int a, int a);",
    "int f(int a b);",
    "int f(int int);",
    "int f(int a[);",
    "int f(int a[x]);",
    "int f(int a[3);",
    "int f(int) {}",
    "int f(int) { return 1; }",
    "int f() int g();",
    "int f()",
    "unsigned double f();",
    "short double f();",
    "long long long f();",
    "short long f();",
    "signed unsigned f();",
    "void int f();",
    "float double f();",
    "long char f();",
    "unsigned void f();",
    "int unsigned float f();",
    "int int f();",
    "short short f();",
    "int f[3]();",
    "int f()[3];",
    "int f()();",
    "int ();",
    "int *();",
    "int (*)();",
    "* f();",
    "/* never",
    '"text',
    "int @f();",
    "int f(int a = 3);",
    "int f(int &a);",
    "int f(int a.b);",
    "#define x\n)",
    'extern "C" { int f();',
    'extern "C" int',
    "}",
    "int f(); }",
    "__attribute__((",
    "int 3f();",
    "template <class T> f();",
    "class c f();",
    "std::string f();",
    "int f(T...);",
    "int f(int a:3);",
    "int \x00f();",
    "int über();",
    "int f(" + "(" * 500,
    "int " + "(" * 500 + "f",
    "int f(int " + "(*" * 200,
    "int f(" + "int," * 70 + "int);",
)


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_mistake_is_told_with_its_place(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        header("int good(int);\n\n  " + text)
    words = str(caught.value)
    place = re.match(r"x\.h:(\d+):(\d+): .+", words)
    assert place is not None, words
    assert 3 <= int(place[1]) <= 4
    assert "\n" not in words
    assert len(words) < 160


def test_there_are_many_mistakes() -> None:
    assert len(BAD) >= 80


def test_the_place_is_exact() -> None:
    with pytest.raises(CommandError) as caught:
        header("int f(int a,\n      foo b);")
    assert str(caught.value) == "x.h:2:7: foo is no type that is known here"


def test_a_header_that_is_too_large() -> None:
    with pytest.raises(CommandError) as caught:
        header("/*" + " " * (1 << 20) + "*/")
    assert "more than" in str(caught.value)
