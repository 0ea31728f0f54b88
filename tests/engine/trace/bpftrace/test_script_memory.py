"""Addresses of a script's own variables: what is read there is what the variables are."""

import pytest
from scriptkit import checked
from scriptruns import outputs

from engine.trace.bpftrace.script_memory import BytesOf, ScriptMemory, has_address
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.types import (
    BOOL,
    Array,
    Integer,
    Pointer,
    ShownType,
    TextType,
    Tuple,
)

INT = Integer(32, signed=True)
WORK = "uprobe:/bin/app:work "


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("$a = 1; $b = &$a; print(*$b); $a = -2; print(*$b)", ["1", "-2"]),
        ('$a = "hello"; $b = (int8 *)&$a; printf("%c%c\\n", *$b, *(++$b)); print(str($b))',
         ["he", "ello"]),
        ("$a = (uint64)0x1e; print(*(struct bits *)(&$a))", ["{ .low = 0, .flag = 1, .two = 3 }"]),
        ("for ($i : 5..7) { $a = $i; $b = &$a; print(*$b) }", ["5", "6"]),
        ("$a = arg0; $b = &$a; print(*(uint16 *)$b); print(*(int8 *)arg0)", ["256", "7"]),
    ],
)  # fmt: skip
def test_what_is_read_there_is_the_variable(body: str, lines: list[str]) -> None:
    bits = "struct bits { unsigned long low : 1; unsigned long flag : 1; unsigned long two : 2; } "
    text = f"{bits}{WORK}{{ {body} }}"
    assert outputs(text, [{"arg0": 0x100}], memory={0x100: b"\7" + bytes(15)}) == lines


def test_the_guests_memory_is_behind_it() -> None:
    memory = ScriptMemory(lambda address, size: b"g" * size, lambda address, size: b"guest")
    first, second = memory.taken(0, lambda: b"ab"), memory.taken(1, lambda: b"cd\0e")
    assert memory.memory(first, 4) == b"ab\0\0"
    assert memory.memory(second + 1, 1) == b"d"
    assert (memory.string(second, 64), memory.string(second, 2)) == (b"cd", b"c")
    assert (memory.memory(0x1000, 2), memory.string(0x1000, 8)) == (b"gg", b"guest")
    assert memory.memory((1 << 64) - 8, 2) == b"gg"
    other = memory.taken(0, lambda: b"xy")
    assert (other, memory.memory(first, 2)) == (first, b"xy")


def test_bytes_of_values() -> None:
    assert BytesOf(INT)(-2) == b"\xfe\xff\xff\xff"
    assert BytesOf(BOOL)(True) == b"\1"
    assert BytesOf(Pointer(INT))(0x1234) == b"\x34\x12" + bytes(6)
    assert BytesOf(TextType(6))(b"abc") == b"abc\0\0\0"
    assert BytesOf(Array(INT, 2))((1, -1)) == b"\1\0\0\0\xff\xff\xff\xff"
    assert has_address(Array(INT, 2))
    assert not has_address(Tuple((INT,)))
    assert not has_address(ShownType("username"))


def test_what_has_no_bytes_has_no_address() -> None:
    for script in ("begin { $a = (1, 2); $b = &$a; }", "begin { $a = ustack; $b = &$a; }"):
        with pytest.raises(WrongScriptError, match=r"The address of \$a is refused"):
            checked(script)
