"""Programs of Rust in our words and in gdb's, with the printers that come with rustc."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from compiled import tool
from gdbwords import said
from rustkit import line_of, rust_program

from engine.session.protocol.config import GuestConfig

pytestmark = pytest.mark.slow  # programs are linked with all of Rust's library, and run twice

VALUES: Final = (
    "p/r vec;p/r text;p/r slice;"
    "p pref;p *pref;p pref.x;p point.x + 1;whatis point.x + 1;whatis byte + byte;p byte + byte;"
    "p size * 2;whatis size * 2;p &point;whatis &point;p array[1..3];p slice[1];p &vec;p tup.0;"
    "p pair.1;p nested.1[0];p boxed;p *boxed;p boxp;p *boxp;p (*boxp).x;p boxp.x;p byte as u64;"
    "whatis byte as u64;p real as i32;p 5u8;whatis 5u8;whatis 5;p 5;p 1.5;whatis 1.5;p 1.5f32;"
    "p true;p !true;p !5;p -5;p 'x';whatis 'x';p \"abc\";p b'a';p dense::LIMIT;p values::COUNTER;"
    "p COUNTER;p values::NAMES;p values::inner::FLAG;p sizeof(point);p sizeof(i32);"
    "whatis sizeof(point);p yes;p yes && false;p byte == 200;whatis byte == 200;"
    "p byte > 3 || false;p 3 % 2;p 1 << 4;p 7 / 2;p 7.0 / 2.0;p/x byte;p/x point;p/x array;"
    "p/d letter;p/c byte;p letter;p text;p esc;whatis text;whatis slice;whatis vec;whatis point;"
    "whatis array;whatis pair;whatis unit;whatis closure;whatis func;whatis boxed;whatis dynref;"
    "whatis dynbox;whatis letter;whatis some;whatis red;ptype point;ptype tup;ptype pair;"
    "ptype nothing;ptype array;ptype slice;ptype text;ptype some;ptype refopt;ptype circle;"
    "ptype red;ptype only;ptype bits;ptype boxed;ptype pref;ptype func;ptype dog;ptype unit;"
    "ptype values::main;whatis values::main;ptype values::Point;whatis values::Point;"
    "p values::main;p values::Point::sum;p values::stop;p &values::stop;p some;p none;p circle;"
    "p red;p closure;p func;p dynref;p dynbox;p list;p list.next;p range;p incl;p nz;p dur;p ostr;"
    "p tw;p tw.0;p unit;p bits;p bits.f;p big;p rc;p rcs;p arc;p weak;p cell;p refcell;"
    "p refcell.value.value;p deque;p map;p set;p tree;p btset;p emap;p ebt;p vs;p vnone;p vp;p vv;"
    "p strs[1];p &point as *const i32;p ptr;p *ptr;p ptr[1];p $_;p nosuch;p point.z;p point.0;"
    "p tup.7;p 5 +;p array[99];p slice[7];p vec.len;p owned.vec.len;p dynref.pointer;p array.len;"
    "p text.length;p *text.data_ptr;p text.data_ptr;p slice.data_ptr;p &slice[1];p &*pref;"
    "p -point.x;p point.x as f64 / 2.0;p mutable = 9;p mutable;p mutable += 1;p [1,2,3];p [7;3];"
    "p &[1u8,2][..];p values::Color::Red;p core::option::Option::None;p 0xff;p 0b11;"
    "p 0o17;p 1_000;output point;p points;p points[1].x;p grid[1];p array[0]@2;p zeros;p refopt;"
    "p *refopt;p charopt;p snow;p quote;p half;p mref;p *mref;p pp;p **pp;p nothing;p many;"
    "p oshape;p onshape;p ocolor;p boolopt;p bopt;p sopt;p nosopt;p ok;p err;p &circle;"
    "p circle.radius;p square.0;p some.0;p bopt.0;whatis slice[1];ptype vec;"
    "p owned;p blank;p empty;p bslice;p bstr;p strs;p bytes;p slice;p single;p word;"
    "x/4dw &array"
)
TASKS: Final = (
    "p rect;p round;p all;p root;p leaf;p *root.ptr.pointer;p root.ptr.pointer.value.id;p tree;"
    "p *tree.0;p words[0];p words[1].0;p wrap;p wrap.inner;p *wrap.inner;p wrap.inner.w;"
    "p wrap.tag;p low;p high;p high as u8;p plus;p plus.v;p add;p nest;p deep;p deeper;p i128s;"
    "p floats;p nan;p bits;p max;p min;p long;p rep;p sorted;p opts;p total;p future;p polled;"
    "p tasks::geo::ORIGIN;p tasks::geo::ORIGIN.h;p tasks::geo::CALLS;"
    "p tasks::geo::CALLS + 1;ptype rect;ptype wrap;ptype tree;ptype words;ptype minus;ptype low;"
    "ptype nest;ptype add;ptype polled;whatis all;whatis root;whatis future;whatis nest;"
    "whatis deep;whatis sorted;whatis floats;whatis max + 1;whatis bits as i32 + 1;"
    "whatis total > 1.0;p total > 1.0;p total * 2.0;p max + 1;p min - 1;p bits << 4;p bits & 0x0f;"
    "p bits | 256;p bits ^ 1;p !bits;p -rect.w;p rect.w + 1;p rect.w as i32;"
    "p rect.w == 2.0 && bits == 255;p (bits as i32 - 300) / 7;p &rect;p (&rect).w;"
    "p sizeof(tasks::geo::Rect);p/x bits;p/t bits;p/o bits;p/d high;p/c bits;p/x i128s;"
    "p -pretty -- rect;p -pretty -- wrap;p -elements 4 -- long;p -elements 4 -- opts;"
    "p -elements 3 -- i128s;info args"
)
BETTER: Final = {  # where gdb is wrong or has no answer: what is said here
    "p vec[1]": "20",
    "p vs[0]": '"a"',
    "p vv[1][0]": "2",
    "p nested.0.1": "2",
    "p &array[1..3]": "&[i32](size=2) = {2, 3}",
    "p &array[1..=3]": "&[i32](size=3) = {2, 3, 4}",
    "p &vec[1..]": "&[i32](size=2) = {20, 30}",
    "whatis &array[1..3]": "type = &[i32]",
    "p (1,2)": "(1, 2)",
    "p inner::FLAG": "true",
    "p closure.captured": "6",
    "p borrowed": "Ref(borrow=1) = {*value = Vec(size=2) = {1, 2}, borrow = 1}",
    "p *dynref": 'values::Dog {name: "rex", age: 3}',
    "p *dynbox": 'values::Dog {name: "fido", age: 4}',
    "p 1u128": "1",
}
BETTER_OF_TASKS: Final = {
    "p geo::ORIGIN": "tasks::geo::Rect {w: 0, h: 0.5}",
    "p words": '[tasks::Niche::Text("t"), tasks::Niche::Number(9), tasks::Niche::Nothing]',
    "p minus": "tasks::geo::Signed::Minus(7)",
    "p minus.0": "7",
    "p *all[0]": "tasks::geo::Rect {w: 2, h: 1.5}",
    "p *all[1]": "tasks::geo::Round (1)",
    "p sizeof(u128)": "16",
}
"""gdb takes the bytes of an enumeration's second variant for a text, and forgets signs."""

SEPARATOR: Final = "\t"
Stops = tuple[tuple[str, str], ...]
"""Marks of lines, and what is asked there."""
CAPTURES: Final[Stops] = (
    ("// in by_ref", "info locals;info args;p copied;p here;p a + copied;p &copied"),
    ("// in inner", "info locals;info args;p second;p all;p pair;p copied"),
    ("// all closures", "p by_ref;p by_move;p part;p none;p boxed;ptype by_ref;whatis boxed"),
    ("// suspended", "p whole;p block;p idle;ptype idle;p idle.name;p idle.start"),
    ("// work's second", "info locals;p first;p got;p name"),
    (
        "// library",
        "p deque;p owned;p path;p duration;p nz;p nonz;p guard;p order;p bad;"
        "p captures::shop::Point{x: 1, y: 2};p captures::shop::Point{x: 9, ..point};"
        "p captures::shop::Point{z: 9};p captures::shop::Kind::Both{left: 1, right: 2};"
        'p &rest[1..2];p &rest[..];p b"bytes";p r"raw";p r#"ra"w"#;p br#"a"b"#;p 1..3;p ..;p 2..;'
        "p ..4;p 1..=3;p kind.0;p kind.left;p both.left;p both.0;p both.foo;p none.0;p point.0;"
        "p point.sum(1);p self::shop::TOTAL",
    ),
)
BY_SOURCE: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("// in by_ref", {"p point.x": "3", "p point.x + 1": "4"}),
    ("// in inner", {"p pair.1": '"two"', "p pair.1.len()": "3"}),
    ("// all closures", {"p by_ref.copied": "6"}),
    (
        "// library",
        {
            "p Point{x: 1, y: 2}.y": "2",
            "p Pair(1, 2)": "captures::shop::Pair (1, 2)",
            "p (1, 2u8)": "(1, 2)",
            "whatis (1, 2u8)": "type = (i32, u8)",
            "p &array[..2]": "&[i32](size=2) = {10, 20}",
            "p &array[4..]": "&[i32](size=0)",
            "p tree.len()": "20",
            "p deque": 'VecDeque(size=2) = {"a", "b"}',
            "p array.len()": "4",
            "p slice": '"/usr/lib"',
            "p cstr": '"c text"',
            "p heap.data": "Vec(size=3) = {9, 3, 1}",
            "p nz": "9",
            "p order": "core::cmp::Ordering::Less",
            "p *guard": "5",
            "p *pinned": "core::num::wrapping::Wrapping<u8> (250)",
            "p Point{x 1}": "Syntax error near '1}'",
            "p Point{1": "unexpected token",
            "p ..=": "inclusive range with no end",
            "p 1..2u8": "Range expression with different types",
        },
    ),
)
"""What the source says and gdb has no answer for, or what only newer printers show."""


def answers(text: str) -> dict[str, str]:
    """Each question's answer, without numbers of the history and addresses of a run."""
    found: dict[str, str] = {}
    for part in text[text.find("@@ ") :].split("@@ ")[1:]:
        question, _, answer = part.partition("\n")
        answer = re.sub(r"warning: \([^\n]*\n?", "", answer).strip().removeprefix("! ")
        answer = re.sub(r"0x[57][0-9a-f]{11}", "ADDRESS", answer)
        found[question] = re.sub(r"^\$\d+ = ", "", answer).replace("ADDRESS\n}", "ADDRESS}")
    return found


def asked(stops: Stops, run: str) -> list[str]:
    """The words that ask at each place."""
    lines: list[str] = []
    for number, (place, questions) in enumerate(stops):
        lines += ["echo \\n@@ -\\n", f"tbreak {place}", "continue" if number else run]
        for question in questions.split(SEPARATOR):
            shown = question.replace("\\", "\\\\")
            lines += [f"echo \\n@@ {number}|{shown}\\n", question]
    return lines


def ours(program: Path, place: str, questions: list[str]) -> dict[str, str]:
    found = at_stops(program, ((place, SEPARATOR.join(questions)),))
    return {question.removeprefix("0|"): answer for question, answer in found.items()}


def at_stops(program: Path, stops: Stops) -> dict[str, str]:
    found = answers(said(GuestConfig(str(program)), *asked(stops, "run")))
    return {question: answer for question, answer in found.items() if question != "-"}


def theirs(program: Path, place: str, questions: list[str]) -> dict[str, str]:
    found = gdb_at_stops(program, ((place, SEPARATOR.join(questions)),))
    return {question.removeprefix("0|"): answer for question, answer in found.items()}


def gdb_at_stops(program: Path, stops: Stops) -> dict[str, str]:
    root = subprocess.run(
        [tool("rustc"), "--print", "sysroot"], capture_output=True, text=True, check=True
    )
    folder = Path(root.stdout.strip()) / "lib" / "rustlib" / "etc"
    if not (folder / "gdb_lookup.py").exists():
        pytest.skip("no printers for gdb with rustc")
    command = [tool("gdb"), "-batch", "-nx"]
    command += ["-iex", f"python import sys; sys.path.insert(0, {str(folder)!r})"]
    command += ["-iex", f"source {folder}/gdb_load_rust_pretty_printers.py"]
    for line in ("set width 0", *asked(stops, "run > /dev/null")):
        command += ["-ex", line]
    command.append(str(program))
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    found = answers(done.stdout)
    return {question: answer for question, answer in found.items() if question != "-"}


@pytest.fixture(scope="module")
def captures() -> tuple[Path, dict[str, str]]:
    """The third program and all that is said of it here, in one run."""
    program = rust_program("captures")
    stops = {mark: questions.split(";") for mark, questions in CAPTURES}
    for mark, more in BY_SOURCE:
        stops[mark] = [*stops[mark], *more]
    lines = {mark: f"captures.rs:{line_of('captures', mark)}" for mark in stops}
    both = tuple((lines[mark], SEPARATOR.join(more)) for mark, more in stops.items())
    found = at_stops(program, both)
    names = list(stops)
    named = {}
    for question, answer in found.items():
        number, _, rest = question.partition("|")
        named[f"{names[int(number)]}: {rest}"] = answer
    return program, named


def test_captures_as_the_source_says(captures: tuple[Path, dict[str, str]]) -> None:
    """Fields and lengths that gdb does not find, by an older compiler, too."""
    _, found = captures
    wanted = {f"{mark}: {key}": text for mark, more in BY_SOURCE for key, text in more.items()}
    assert {key: found[key] for key in wanted} == wanted


def test_captures_as_gdb_says(captures: tuple[Path, dict[str, str]]) -> None:
    """Closures and futures inside and outside, values that an expression makes, the library."""
    program, found = captures
    stops = tuple(
        (f"captures.rs:{line_of('captures', mark)}", questions.replace(";", SEPARATOR))
        for mark, questions in CAPTURES
    )
    there = gdb_at_stops(program, stops)
    keys = {
        f"{number}|{question}": f"{mark}: {question}"
        for number, (mark, questions) in enumerate(CAPTURES)
        for question in questions.split(";")
    }
    assert there.keys() == keys.keys()
    differ = {key: (found[name], there[key]) for key, name in keys.items()}
    assert {key: both for key, both in differ.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize(
    ("name", "mark", "questions", "better"),
    [
        ("values", "look(&(byte", VALUES, BETTER),
        ("tasks", "keep(&(&i128s", TASKS, BETTER_OF_TASKS),
    ],
    ids=["values", "tasks"],
)
def test_as_gdb_says(name: str, mark: str, questions: str, better: dict[str, str]) -> None:
    program, place = rust_program(name), f"{name}.rs:{line_of(name, mark)}"
    wanted = questions.split(";") if name != "values" else _values(questions)
    said_here = ours(program, place, [*wanted, *better])
    assert {each: said_here[each] for each in better} == better
    said_there = theirs(program, place, wanted)
    assert said_there.keys() == set(wanted)
    differ = {each: (said_here[each], there) for each, there in said_there.items()}
    assert {each: both for each, both in differ.items() if both[0] != both[1]} == {}


def _values(questions: str) -> list[str]:
    """The questions; one has a semicolon in it."""
    return [*questions.replace("p [7;3]", "p [7,7,7]").split(";"), "p [7;3]"]


def test_arguments_behind_the_prologue_and_the_frame() -> None:
    program = rust_program("values")
    text = said(
        GuestConfig(str(program)), "break values::greet", "run", "info args", "bt", "finish"
    )
    assert 'name = "apple pie"\nn = 7\no = core::option::Option<i32>::Some(4)\n' in text
    assert " in values::main () at " in text
    assert "#2" not in text
    assert "Value returned is $1 = 16" in text


def test_optimized_code() -> None:
    program = rust_program("tasks", "-g", "-O")
    measured = ["p tasks::geo::ORIGIN", "p times", "p label"]
    here, there = (each(program, "tasks::measure", measured) for each in (ours, theirs))
    assert here == there


def test_damaged_entries_are_one_complaint(tmp_path: Path) -> None:
    """Bytes of the entries are overwritten, a thousand at a time: every answer is a line."""
    program = rust_program("tasks")
    listed = subprocess.run(
        [tool("readelf"), "-SW", program], capture_output=True, text=True, check=True
    ).stdout
    match = re.search(r"\.debug_abbrev\s+\S+\s+\S+\s+(\S+)\s+(\S+)", listed)
    assert match is not None
    start, size = int(match[1], 16), int(match[2], 16)
    whole = program.read_bytes()
    for at in range(0, size, max(size // 4, 1)):
        damaged = tmp_path / f"damaged{at}"
        raw = bytearray(whole)
        raw[start + at : start + at + 60] = bytes(range(60))
        damaged.write_bytes(raw)
        damaged.chmod(0o755)
        text = said(GuestConfig(str(damaged)), "break tasks::measure", "run", "info args", "bt 1")
        assert "Traceback" not in text
