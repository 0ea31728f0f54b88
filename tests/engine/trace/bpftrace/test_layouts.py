"""Members of structures read from their bytes, against what a compiled program says of them."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from compiled import build
from scriptkit import checked

from engine.image.datatypes import MAX_DEPTH, DataType, Member, TypeKind
from engine.image.debuginfo import DebugInfo
from engine.image.elf import ElfImage
from engine.image.names import GlobalNames
from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.c_types import structure, value_type
from engine.trace.bpftrace.checked import CheckedMap
from engine.trace.bpftrace.json_lines import emitter
from engine.trace.bpftrace.layouts import (
    StructurePart,
    part_named,
    part_value,
    parts_of,
    value_at,
    value_of,
)
from engine.trace.bpftrace.limits import MOST_VALUE, maps_error, value_error
from engine.trace.bpftrace.showing import shower
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.value_names import ValueNames

SOURCE = r"""
#include <stdbool.h>
#include <stdio.h>
enum colour { RED, GREEN = 5, BLUE = -1 };
union word { int number; char letters[4]; float real; };
struct point { short x, y; };
struct all {
    signed char tiny; unsigned short small; int plain; unsigned long large;
    unsigned low : 3; int middle : 5; unsigned high : 24;
    char name[8]; char full[3]; unsigned char raw[2];
    struct point points[2]; int grid[2][2];
    union { int one; char other; };
    struct { int inner; struct { short deepest : 4; }; };
    union word word; enum colour colour; bool yes; float real; void *nowhere; struct all *self;
};
struct all it = {
    -5, 65535, -70000, 18446744073709551615ul, 5, -7, 0xabcdef, "hello", {'a', 'b', 'c'},
    {1, 255}, {{1, -2}, {3, -4}}, {{1, 2}, {3, 4}}, {-9}, {77, {-3}}, {0x00434241}, GREEN, true,
    1.5f, (void *)0x1234, &it,
};
int main(void) {
    fwrite(&it, sizeof it, 1, stdout);
    fprintf(stderr, "%p", (void *)&it);
    return 0;
}
"""
SHOWN = (
    "{ .tiny = -5, .small = 65535, .plain = -70000, .large = 18446744073709551615, .low = 5, "
    ".middle = 25, .high = 11259375, .name = hello, .full = abc, .raw = [1,255], "
    ".points = [{ .x = 1, .y = -2 },{ .x = 3, .y = -4 }], .grid = [[1,2],[3,4]], .one = -9, "
    ".other = -9, .inner = 77, .deepest = 13, "
    ".word = { .number = 4407873, .letters = ABC, .real = null }, .colour = GREEN, .yes = true, "
    ".real = null, .nowhere = 0x1234, .self = SELF }"
)


@dataclass
class Recorded:
    """A type as damaged debug information may describe it."""

    kind: TypeKind
    size: int = 8
    members: "list[Member]" = field(default_factory=list)
    text: str = "struct s"
    is_signed: bool = True

    @property
    def resolved(self) -> "Recorded":
        return self


def test_a_structure_is_shown_as_its_program_has_it(tmp_path: Path) -> None:
    program = build(tmp_path, "all", SOURCE, "-g")
    done = subprocess.run([program], capture_output=True, check=True)
    info = DebugInfo.of(ElfImage.open(str(program)), None)
    assert info is not None
    found = GlobalNames(info).type("all", "struct")
    assert found is not None
    kind = structure(found)
    assert type_size(kind) == len(done.stdout)
    wanted = SHOWN.replace("SELF", done.stderr.decode())
    assert shower(kind, ValueNames())(done.stdout).decode() == wanted
    as_json = emitter(kind, ValueNames())(done.stdout)
    assert '"word": {"number": 4407873, "letters": "ABC", "real": null}' in as_json
    deepest = part_named(kind, "deepest")
    assert deepest is not None
    assert part_value(deepest, done.stdout) == 13
    start = deepest.offset
    moved = done.stdout[start : start + deepest.size]
    assert value_at(deepest, moved, 0) == 13
    assert part_named(kind, "nothing") is None


def test_values_from_bytes() -> None:
    four = kinds.Integer(32, signed=True)
    assert value_of(four, b"\xfe\xff\xff\xff") == -2
    assert value_of(four, b"\0\0\0\2", little=False) == 2
    assert value_of(four, b"\1") == 1  # what is missing is zero
    assert value_of(kinds.TextType(4), b"ab\0c") == b"ab"
    assert value_of(kinds.BufferType(2), b"a\0bc") == b"a\0"
    assert value_of(kinds.Array(four, 2), bytes(range(8))) == (0x03020100, 0x07060504)
    assert value_of(kinds.Array(four, 2), b"\1") == (1, 0)
    assert value_of(kinds.BOOL, b"\2") is True
    assert value_of(kinds.VOID, b"\2") is None
    pointer = kinds.Pointer(kinds.VOID)
    assert value_of(kinds.Array(pointer, 2), b"\1\0\0\0\2\0\0\0") == (1, 2)  # of 32 bits
    assert value_of(kinds.Array(pointer, 1), b"\1" + bytes(7)) == (1,)
    color = kinds.Enumeration("e", kinds.Integer(8, signed=True), ((-1, "LOW"),))
    assert value_of(color, b"\xff") == -1


def test_bitfields_of_both_orders_of_bytes() -> None:
    part = StructurePart("f", kinds.Integer(32, signed=False), 0, 1, bits=3, shift=0)
    assert part_value(part, b"\xa1") == 1
    assert part_value(part, b"\xa1", little=False) == 5  # the highest bits are the first
    small = StructurePart("f", kinds.Integer(8, signed=True), 0, 1, bits=3, shift=0)
    assert part_value(small, b"\xa7") == 7  # bpftrace 0.26 gives C's -1 no sign
    full = StructurePart("f", kinds.Integer(8, signed=True), 0, 1, bits=8, shift=0)
    assert part_value(full, b"\xa7") == -89
    flag = StructurePart("f", kinds.BOOL, 0, 1, bits=1, shift=7)
    assert part_value(flag, b"\x80") is True


def test_structures_that_contain_themselves_end() -> None:
    looped = Recorded(TypeKind.RECORD)
    layout: Any = looped
    looped.members = [Member("a", layout, 0), Member("b", layout, 0)]
    kind = kinds.Structure("struct s", 8, layout)
    text = shower(kind, ValueNames())(bytes(8))
    assert text.startswith(b"{ .a = { .a = ")
    assert b"null" in text
    assert len(text) < 1 << 20
    assert "null" in emitter(kind, ValueNames())(bytes(8))
    looped.members = [Member(None, layout, 0), Member(None, layout, 0)]
    assert parts_of(kind) == ()
    deep: Any = Recorded(TypeKind.RECORD)
    for _ in range(3 * MAX_DEPTH):
        deep = Recorded(TypeKind.RECORD, members=[Member("a", deep, 0)])
    assert shower(kinds.Structure("struct s", 8, deep), ValueNames())(bytes(8)).endswith(b"}")


def test_structures_of_more_parts_than_are_shown() -> None:
    number: DataType = Recorded(TypeKind.SIGNED, 4)  # type: ignore[assignment]
    assert value_type(number) == kinds.Integer(32, signed=True)
    layout: Any = Recorded(TypeKind.RECORD, 4 * 10_000)
    layout.members = [Member(f"m{at}", number, 4 * at) for at in range(10_000)]
    assert len(parts_of(kinds.Structure("struct s", layout.size, layout))) == 4096


def test_values_and_maps_that_would_fill_the_host_are_refused() -> None:
    assert value_error(kinds.TextType(64)) is None
    assert value_error(kinds.Array(kinds.INT64, 1 << 40)) == (
        f"A value of type int64[{1 << 40}] is too large: {1 << 43} bytes of {MOST_VALUE} at most"
    )
    plain = CheckedMap(kinds.INT64, kinds.INT64, "hash", 4096)
    assert maps_error({}) is maps_error({"a": plain}) is None
    large = CheckedMap(kinds.INT64, kinds.TextType(1024), "hash", 100_000_000)
    found = maps_error({"a": plain, "b": large})
    assert found is not None
    assert found[1] == "b"
    assert "@b takes most of it: make max_map_keys, its declared size" in found[0]
    assert maps_error({f"m{at}": plain for at in range(1025)}) == (
        "Too many maps: 1025 of 1024 at most",
        "m0",
    )
    assert maps_error({"c": CheckedMap(None, kinds.INT64, "hash", 1 << 40)}) is None


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("struct s { int a[10000000]; } begin { let $x: struct s; print($x) }", "1:"),
        ("struct s { int a[10000000]; } begin { @x = *(struct s*)0 }", "1:"),
        ("let @a = hash(2000000000); begin { @a[1] = 1 }", "1:36-38: ERROR: Maps can take"),
    ],
)
def test_scripts_that_would_fill_the_host_are_refused(script: str, problem: str) -> None:
    with pytest.raises(WrongScriptError, match=r"too large|Maps can take") as caught:
        checked(script)
    assert f"stdin:{problem}" in str(caught.value)
