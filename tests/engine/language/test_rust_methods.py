"""Methods of Rust's types and traits in expressions, by both ways of mangling names.

gdb 13 calls those of a type's own alone, and passes and returns structures as C does.
"""

from pathlib import Path

import pytest
from gdbwords import said
from rustkit import line_of, rust_program

from engine.session.protocol.config import GuestConfig

pytestmark = pytest.mark.slow  # programs are linked with all of Rust's library
MANGLINGS = {"legacy": ("-g",), "v0": ("-g", "-C", "symbol-mangling-version=v0")}
CALLS = {  # what the source says
    "p square.area()": "49",
    "p square.doubled()": "98",
    "p id.area()": "7",
    "p id.doubled()": "14",
    "p square.bigger(&other)": "true",
    "p square.bigger(other)": "true",
    'p square.label("ab")': "9",
    "p square.label(&text)": "12",
    "p square.label(view)": "10",
    "p *square.grow(1.0)": "guild::Square {side: 8}",
    "p square.scale(2.0)": "14",
    "p square.scale(2u8)": "2",
    "p other.into_side()": "1.5",
    "p Square::area(&square)": "49",
    "p Area::area(&square)": "49",
    "p <Square as Area>::area(&square)": "49",
    "p <guild::Square as guild::Area>::area(&square)": "49",
    "p guild::Area::doubled(&id)": "14",
    "p pairs.swapped()": "guild::inner::Pair<f32, u8> {first: 2.5, second: 1}",
    "p pairs.first()": "1",
    "p swapped.first()": "2.5",
    "p id + summed": "guild::Id (15)",
    "p id == summed": "false",
    "p id != summed": "true",
    "p id.add(summed)": "guild::Id (15)",
    "p shelf[1]": "20",
    "p wrap.side": "9",
    "p *wrap": "guild::Square {side: 9}",
    "p wrap.area()": "81",
    "p area.area2()": "53",
    "p areas[0].area2()": "4",
    "p areas[1].area2()": "6.25",
    "p function(&array)": "26",
    "p closure(2)": "9",
    "p adder(1)": "5",
    "p guild::total(&array)": "26",
    "p guild::divided(7, 2)": "core::result::Result<i32, alloc::string::String>::Ok(3)",
    "p guild::divided(7, 0)": 'core::result::Result<i32, alloc::string::String>::Err("zero")',
    "p guild::maybe(3)": "core::option::Option<i32>::Some(3)",
    "p guild::maybe(-3)": "core::option::Option<i32>::None",
    "p guild::pair(3)": "(3, 112 'p')",
    "p guild::dynamic(&id)": '"Id(7)"',
    "p Square { side: 2.5 }.area()": "6.25",
    "p Id(3).area()": "3",
    "p TABLE[2].area()": "3",
    "p reference.area()": "7",
    "p double_reference.area()": "7",
    "p double_reference.0": "7",
    "p messages[1].clone()": "guild::Message::Move{x: 1, y: -2}",
    "whatis square.area()": "type = f64",
}
REFUSED = {
    "p square.area(1)": "Too many arguments in function call.",
    "p square.label()": "Too few arguments in function call.",
    "p square.nosuch()": "Could not find function named 'guild::Square::nosuch'",
    "p total(1)": "mismatched types: expected `&[u32]`, found `i32`",
    'p guild::pair("x")': "mismatched types: expected `u8`, found `[char; 2]`",
    "p guild::generic::<i32, 3>(&array[0])": "mismatched types: expected `*mut i32`,"
    " found `*mut u32`",
    "p guild::dynamic(&unit)": "The program has no table of () as core::fmt::Debug:"
    " no `&dyn core::fmt::Debug` is made.",
    "p guild::keep(&id)": "The function's type is not known.",
    "p square - other": "Argument to arithmetic operation not a number or boolean.",
    "p <guild::Id as guild::Area>::SIDES": "No symbol '<guild::Id as guild::Area>::SIDES' in"
    " current context",
}


def guild(mangling: str) -> tuple[Path, str]:
    """The program, and the place where all of its variables are set."""
    return rust_program("guild", *MANGLINGS[mangling]), f"guild.rs:{line_of('guild', '// look')}"


@pytest.mark.parametrize("mangling", MANGLINGS)
def test_methods_of_types_and_traits(mangling: str) -> None:
    program, place = guild(mangling)
    lines = {**CALLS, **REFUSED}
    asked = [part for line in lines for part in (f"echo \\n@@ {line}\\n", line)]
    start = (f"break {place}", "run", "set calls-on-copy on")
    text = said(GuestConfig(str(program)), *start, *asked)
    parts = (part.partition("\n") for part in text[text.index("@@ ") :].split("@@ ")[1:])
    found = {
        line: answer.strip().removeprefix("! ").split(" = ", 1)[-1]
        if answer.startswith("$")
        else answer.strip().removeprefix("! ")
        for line, _, answer in parts
    }
    assert found == lines


@pytest.mark.parametrize("mangling", MANGLINGS)
def test_names_have_no_hashes(mangling: str) -> None:
    """Breakpoints by a function's path; frames and results without hashes of mangled names."""
    program, _ = guild(mangling)
    text = said(
        GuestConfig(str(program)), "break guild::maybe", "run", "bt 2", "finish", "info symbol $pc"
    )
    assert "guild::maybe (n=1)" in text
    assert "in guild::main ()" in text
    assert "= core::option::Option<i32>::Some(1)" in text
    assert "17h" not in text
    assert "_R" not in text
    assert "_ZN" not in text
