"""Structures, enumerations and macros of scripts: layouts against a compiler's, and errors."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from scripttrees import read, refusal, shape

from engine.image.datatypes import DataType, TypeKind
from engine.language.value_types import INT
from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.text import ScriptText, WrongScriptError

RECORDS: Final = """
struct plain { char a; int b; short c; long d; unsigned char e[3]; double f; };
struct packed { char a; int b; short c; } __attribute__((packed));
struct __attribute__((packed, aligned(4))) both { char a; long b; short c; };
struct bits { unsigned a : 4, b : 8, c : 3, d : 1, e : 16; char f; };
struct mixed { short a : 4, b : 8; int c : 9, d : 15, e : 1; long f : 40; char g : 2; char h; };
struct zero { char a : 3; int : 0; char b : 3; short : 5; char c; };
struct packed_bits { char a : 3; int b : 31; long c : 60; char d; } __attribute__((packed));
struct aligned { char a; int b __attribute__((aligned(32))); char c; };
union choice { char a[5]; int b; struct { short x; long y; } c; };
struct nested { int a; struct { char b; union { int c; long d; }; }; struct plain e[2]; };
struct pointers { char *a; void (*b)(int, char *); int *(*c[3])[2]; struct unknown *d; };
struct node { struct node *next; enum color { RED, GREEN = 7, BLUE } color; int open[]; };
struct named { uint8_t a; __u16 b; u32 c; size_t d; int64_t e; pid_t f; bool g; };
enum big { SMALL = -1, LARGE = 1 << 20 }; struct big_user { char a; enum big b; };
typedef struct { char a; int b; } pair_t; struct paired { char a; pair_t b; pair_t *c; };
#define COUNT (2 * 3)
struct counted { char a[COUNT]; int b[sizeof(int) + 1][2]; char c[sizeof(struct plain)]; };
"""
"""Structures and unions that gcc takes, too."""
PATHS: Final = {
    "struct plain": ["a", "b", "c", "d", "e", "f"],
    "struct packed": ["a", "b", "c"],
    "struct both": ["a", "b", "c"],
    "struct bits": ["f"],
    "struct mixed": ["h"],
    "struct zero": ["c"],
    "struct packed_bits": ["d"],
    "struct aligned": ["a", "b", "c"],
    "union choice": ["a", "b", "c", "c.y"],
    "struct nested": ["a", "b", "c", "d", "e"],
    "struct pointers": ["a", "b", "c", "d"],
    "struct node": ["next", "color", "open"],
    "struct named": ["a", "b", "c", "d", "e", "f", "g"],
    "struct big_user": ["a", "b"],
    "struct paired": ["a", "b", "b.b", "c"],
    "struct counted": ["a", "b", "c"],
}
BITFIELDS: Final = {
    "struct bits": "abcde",
    "struct mixed": "abcdefg",
    "struct zero": "ab",
    "struct packed_bits": "abc",
}
FAULTS: Final = {
    "struct a { int b; char b; };": "1:24-25: ERROR: syntax: duplicate member 'b'",
    "struct a { foo b; };": "1:12-15: ERROR: syntax: unknown type name 'foo'",
    "struct a { struct b c; };": "1:21-22: ERROR: syntax: field has incomplete type 'struct b'",
    "struct a { void b; };": "1:17-18: ERROR: syntax: field has incomplete type 'void'",
    "struct a { int b(void); };": "1:16-23: ERROR: syntax: a member cannot be a function",
    "struct a { int b[-1]; };": "1:17-20: ERROR: syntax: the array has a negative size, or is too"
    " large",
    "struct a { int b[x]; };": "1:18-19: ERROR: expression is not an integer constant expression",
    "struct a { int b : 33; };": "1:16-17: ERROR: syntax: width of bit-field 'b' does not fit its"
    " type",
    "struct a { float b : 3; };": "1:18-19: ERROR: syntax: bit-field 'b' has a type that is no"
    " integer",
    "struct a { int b; }; struct a { int c; };": "1:22-41: ERROR: syntax: redefinition of"
    " 'struct a'",
    "enum a { B, B };": "1:13-14: ERROR: syntax: redefinition of enumerator 'B'",
    "enum a { B = 1 / 0 };": "1:14-19: ERROR: division by zero",
    "struct a { short double b; };": "1:12-24: ERROR: syntax: 'short double' is no type of C",
    "struct a { int b __attribute__((aligned(3))); };": "1:41-42: ERROR: syntax: requested"
    " alignment is not a power of 2",
    "#if 1\nstruct a { int b; };": "1:1-6: ERROR: unterminated conditional directive",
    "#endif": "1:1-7: ERROR: #endif without #if",
    "#error no": "1:1-10: ERROR: no",
    '#include "mine.h"': (
        '1:1-18: ERROR: #include: "mine.h" is not read: write what it declares here, or import a'
        " .bt file"
    ),
    "#nonsense": "1:1-10: ERROR: invalid preprocessing directive #nonsense",
    "#define": "1:1-8: ERROR: macro name missing",
}


def _definitions(text: str, **options: object) -> CDefinitions:
    script = read(text + "\nbegin { }")
    return CDefinitions.of(script.definitions, ScriptText("stdin", text), **options)  # type: ignore[arg-type]


def _offset(kind: DataType, path: str) -> int:
    offset = 0
    for name in path.split("."):
        member = kind.resolved.member(name)
        assert member is not None, name
        offset, kind = offset + member.offset, member.type
    return offset


def test_layouts_are_those_of_gcc(tmp_path: Path) -> None:
    prints: list[str] = []
    for record, paths in PATHS.items():
        prints.append(f'printf("%zu ", sizeof({record}));')
        prints += [f'printf("%zu ", offsetof({record}, {path}));' for path in paths]
    for record, names in BITFIELDS.items():
        for name in names:
            # The bits that are set tell where a bitfield is.
            prints.append(
                f"{{ {record} v; memset(&v, 0, sizeof v); v.{name} = -1;"
                " int first = -1, count = 0;"
                " for (int i = 0; i < 8 * sizeof v; i++)"
                " if (((char *)&v)[i / 8] >> i % 8 & 1) first = first < 0 ? i : first, count++;"
                ' printf("%d:%d ", first, count); }'
            )
    headers = "#include <stdio.h>\n#include <string.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    headers += "#include <stdbool.h>\n#include <sys/types.h>\n#include <linux/types.h>\n"
    source = f"{headers}typedef uint32_t u32;{RECORDS}int main(void) {{ {' '.join(prints)} }}"
    program = build(tmp_path, "layouts", source, "-w")
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    assert list(_described(_definitions(RECORDS))) == output


def _described(definitions: CDefinitions) -> Iterator[str]:
    for record, paths in PATHS.items():
        kind = definitions.struct(record)
        assert kind is not None
        yield str(kind.size)
        for path in paths:
            yield str(_offset(kind, path))
    for record, names in BITFIELDS.items():
        kind = definitions.struct(record)
        assert kind is not None
        for name in names:
            member = kind.member(name)
            assert member is not None
            yield f"{member.bit_offset}:{member.bit_size}"


def test_types_of_members() -> None:
    definitions = _definitions(RECORDS)
    node = definitions.struct("node")
    assert node is not None
    assert (node.text, node.keyword) == ("struct node", "struct")
    following = node.member("next")
    assert following is not None
    assert following.type.target.resolved is node
    assert following.type.text == "struct node *"
    pointers = definitions.struct("struct pointers")
    assert pointers is not None
    texts = [member.type.declared(member.name or "") for member in pointers.members]
    assert texts == ["char *a", "void (*b)()", "int *(*c[3])[2]", "struct unknown *d"]
    unknown = pointers.members[3].type.target
    assert unknown.resolved.is_declared_only
    pair = definitions.typedef("pair_t")
    assert pair is not None
    assert pair.resolved.member_names() == ("a", "b")
    assert definitions.struct("nothing") is None
    assert definitions.typedef("nothing") is None
    size = definitions.typedef("size_t")
    assert size is not None
    assert (size.size, size.resolved.kind) == (8, TypeKind.UNSIGNED)


def test_enumerations() -> None:
    definitions = _definitions(RECORDS)
    found = definitions.enumerator("BLUE")
    assert found is not None
    assert (found[0], found[1].text) == (8, "enum color")
    big = definitions.struct("enum big")
    assert big is not None
    assert (big.is_signed, big.size) == (True, 4)
    assert big.enumerators == (("SMALL", -1), ("LARGE", 1 << 20))
    assert definitions.enumerator("nothing") is None


def test_other_machines() -> None:
    text = "struct a { char b; long c; char *d; }; struct e { short : 11; char f; };"
    small = _definitions(text, pointer_size=4).struct("a")
    assert small is not None
    assert (small.size, _offset(small, "d")) == (12, 8)
    for unnamed_align, size in ((False, 3), (True, 4)):  # gcc's on x86-64 and on AArch64
        made = _definitions(text, unnamed_align=unnamed_align).struct("e")
        assert made is not None
        assert made.size == size


def test_types_of_the_guest() -> None:
    def outside(name: str) -> DataType | None:
        return INT if name in ("struct file", "kuid_t") else None  # type: ignore[return-value]

    found = _definitions("struct a { struct file b; kuid_t c; };", outside=outside).struct("a")
    assert found is not None
    assert (found.size, _offset(found, "c")) == (8, 4)


def test_wrong_definitions_have_their_place() -> None:
    for text, fault in FAULTS.items():
        script = ScriptText("stdin", f"{text}\nbegin {{ }}")
        with pytest.raises(WrongScriptError) as caught:
            CDefinitions.of(read(script.text).definitions, script)
        first = str(caught.value).split("\n", 1)[0]
        assert first == f"stdin:{fault}", text


def test_conditions_choose_definitions() -> None:
    text = (
        "#ifndef BPFTRACE_HAVE_BTF\n#include <linux/sched.h>\n#else\n#define A 2\n#endif\n"
        "#if defined(A) && A == 2 && !defined B\nstruct a { int x; };\n#elif 1\n"
        "struct a { char x; };\n#else\nstruct a { char x; };\n#endif\n"
        "#if 0\n#if 1\nstruct nothing { unknown y; };\n#else\n#error no\n#endif\n#endif\n"
        "#undef A\n#ifdef A\n#include <a.h>\n#endif\n#include <b.h> // last\n"
    )
    definitions = _definitions(text)
    found = definitions.struct("a")
    assert found is not None
    assert found.size == 4
    assert list(definitions.includes) == ["<b.h>"]
    assert definitions.macro("A") is None


def test_macros_in_expressions() -> None:
    text = (
        '#define ONE 1\n#define SUM ONE + 2 // a comment\n#define TEXT "a" /* b */\n'
        "#define ADD(x, y) ((x) + (y))\n#define NAME(x) #x\n#define PASTE(a, b) a##b\n"
        "#define EMPTY() 7\r\n#define LONG 1 \\\r\n + 1\r\nbegin { f(%s) }"
    )
    for use, shaped in {
        "SUM * 3": "(* (+ 1 2) 3)",
        "(ONE) - 1": "(- 1 1)",
        "TEXT": "'a'",
        "ADD(ONE, ADD(2, 3))": "(+ 1 (+ 2 3))",
        "ADD(f(1, 2), (3, 4))": "(+ (f() 1 2) (tuple 3 4))",
        'NAME(a + "b")': "'a + \"b\"'",
        "PASTE(O, NE)": "1",
        "EMPTY()": "7",
        "LONG": "(+ 1 1)",
        "ADD": "ADD",
        "$ONE": "$ONE",
    }.items():
        shown = shape(read(text % use).probes[0].body)
        assert shown == f"{{(f() {shaped})}}", use


def test_macros_that_cannot_be_used() -> None:
    for text, fault in {
        "#define A B\n#define B A\nend { A }": "3:7-8: ERROR: Macro recursion: A->B",
        "#define A {\nend { A }": "2:7-8: ERROR: unable to expand macro as an expression: {",
        "#define A 1, 2\nend { f(A) }": "2:9-10: ERROR: unable to expand macro as an expression:"
        " 1, 2",
        "#define A(x) x\nend { A(1, 2) }": "2:7-14: ERROR: macro A takes 1 arguments, 2 given",
        "#define A(1) x\nend { A(1) }": "1:1-15: ERROR: parameters of macro A are not names",
    }.items():
        assert refusal(text) == fault, text
