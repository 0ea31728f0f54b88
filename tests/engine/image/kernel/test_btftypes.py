"""Types, functions and layouts by BTF."""

import json
import lzma

import pytest
from btfkit import VOID, BtfMaker
from kernelimages import (
    AMD64_61,
    AMD64_612,
    ARM64_61,
    DATA,
    GOLDEN,
    MODULES,
    SLOW_612,
    SLOW_ARM64,
    kernel_image,
    module_path,
    open_module,
)

from engine.arch import by_name
from engine.errors import ImageError
from engine.image.callconv import entry_locations
from engine.image.datatypes import TypeKind
from engine.image.kernel.btf import Btf, BtfKind
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btftypes import BtfType, BtfTypes


def _types(made: BtfMaker) -> BtfTypes:
    return BtfTypes(Btf(made.data(), "vmlinux"))


def test_declarations_are_cs() -> None:
    made = BtfMaker()
    number = made.integer("int", 4, 1)
    letter = made.add(10, "", made.integer("char", 1, 1))  # const
    wide = made.integer("long unsigned int", 8)
    callback = made.pointer(made.prototype(VOID, ("", made.pointer(letter)), ("", VOID)))
    table = made.array(made.array(number, wide, 3), wide, 2)
    fixed = made.add(10, "", made.pointer(number))
    tagged = made.pointer(made.add(18, "user", number))
    flexible = made.array(number, wide, 0)
    nothing = made.pointer(made.prototype(VOID))
    restricted = made.add(11, "", made.pointer(made.add(9, "", number)))
    types = _types(made)
    shown = {
        callback: "void (*f)(const char *, ...)",
        table: "int f[2][3]",
        fixed: "int * const f",
        tagged: "int *f",
        flexible: "int f[]",
        wide: "unsigned long f",
        nothing: "void (*f)(void)",
        restricted: "volatile int * restrict f",
    }
    assert {kind: types.type(kind).declared("f") for kind in shown} == shown
    assert types.type(wide).raw_text == "long unsigned int"
    assert (types.type(table).size, types.type(flexible).size) == (24, None)
    assert types.type(table).element.count == 3
    assert types.type(callback).target.parameters[1]


def test_members_bitfields_and_layouts() -> None:
    made = BtfMaker()
    half = made.integer("short unsigned int", 2)
    number = made.integer("unsigned int", 4)
    inner = made.union("", 4, ("low", half, 0), ("all", number, 0))
    made.record(
        "orc",
        12,
        ("offset", half, 0),
        ("kind", number, 3 << 24 | 16),
        ("last", number, 1 << 24 | 19),
        ("", inner, 32),
        ("rest", made.array(half, number, 2), 64),
        flag=True,
    )
    types = _types(made)
    record = types.record("orc")
    assert record is not None
    assert record.member_names() == ("offset", "kind", "last", "low", "all", "rest")
    last = record.member("last")
    assert last is not None
    assert (last.bit_offset, last.bit_size, last.offset) == (19, 1, 2)
    low = record.member("low")
    assert low is not None
    assert (low.offset, low.type.kind) == (4, TypeKind.UNSIGNED)
    assert types.layout("orc") == {
        "": (0, 12),
        "offset": (0, 2),
        "kind": (2, 1),
        "last": (2, 1),
        "low": (4, 2),
        "all": (4, 4),
        "rest": (8, 4),
    }
    assert types.layout("none") is None


def test_bitfields_by_their_types() -> None:
    """Until 1.13 pahole gave each width a type of its own."""
    made = BtfMaker()
    three = made.integer("unsigned int", 4, bits=3)
    made.record("old", 4, ("first", three, 0), ("second", three, 3))
    record = _types(made).record("old")
    assert record is not None
    assert [(m.bit_offset, m.bit_size) for m in record.members] == [(0, 3), (3, 3)]


def test_enumerations_signed_unsigned_and_wide() -> None:
    made = BtfMaker()
    made.enumeration("plain", ("A", 0), ("B", 0xFFFFFFFF))
    made.enumeration("signed", ("C", -2), ("D", 3), flag=True)
    made.wide_enumeration("wide", ("E", 1 << 40), ("F", (1 << 64) - 1))
    made.wide_enumeration("deep", ("G", -(1 << 40)), flag=True)
    types = _types(made)
    found = [types.type(number).enumerators for number in range(1, 5)]
    assert found == [
        (("A", 0), ("B", 0xFFFFFFFF)),
        (("C", -2), ("D", 3)),
        (("E", 1 << 40), ("F", (1 << 64) - 1)),
        (("G", -(1 << 40)),),
    ]
    assert [types.type(number).is_signed for number in range(1, 5)] == [False, True, False, True]
    value = types.enumerator("D")
    assert value is not None
    assert (value[0].text, value[1]) == ("enum signed", 3)
    assert types.enumerator("Z") is None


def test_declarations_lead_to_their_definitions() -> None:
    made = BtfMaker()
    made.add(7, "node")
    made.add(7, "elsewhere", flag=True)
    number = made.integer("int", 4, 1)
    made.record("node", 4, ("value", number, 0))
    types = _types(made)
    known = types.type(1)
    assert (known.is_declared_only, known.size, known.text) == (False, 4, "struct node")
    unknown = types.type(2)
    assert (unknown.is_declared_only, unknown.size) == (True, None)
    assert (unknown.text, unknown.keyword) == ("union elsewhere", "union")


def test_a_typedef_of_itself_is_an_error() -> None:
    made = BtfMaker()
    made.add(8, "loop", 1)
    kind = _types(made).type(1)
    with pytest.raises(ImageError, match="type 1 is made of itself"):
        _ = kind.kind


def test_a_function_without_a_prototype_is_an_error() -> None:
    made = BtfMaker()
    made.function("odd", made.integer("int", 4, 1))
    types = _types(made)
    with pytest.raises(ImageError, match="has no prototype"):
        types.function("odd")


def test_types_that_multiply_end() -> None:
    """Forty functions, each of which takes the next one twice; structures likewise."""
    made = BtfMaker()
    for number in range(1, 81, 2):
        made.pointer(number + 1)
        made.prototype(VOID, ("a", number + 2), ("b", number + 2))
    made.pointer(VOID)
    for number in range(82, 122):
        made.record("", 8, ("", number + 1, 0), ("", number + 1, 32))
    made.record("", 8)
    types = _types(made)
    assert len(types.type(1).text) < 100_000
    assert types.type(82).member("nothing") is None
    assert types.type(82).member_names() == ()
    calls = by_name("x86_64").abi.calls
    assert calls is not None
    assert entry_locations(calls, [types.type(82)], types.type(0), 12)


def _golden_spelling(kind: BtfType) -> str:
    """The golden files spell qualifiers in front, and pointers to functions their own way."""
    btf, entry = kind.btf, kind.named
    if entry.kind is BtfKind.PTR:
        return f"{_golden_spelling(BtfType(btf, entry.word))} *"
    if entry.kind is BtfKind.CONST:
        return f"const {_golden_spelling(BtfType(btf, entry.word))}"
    if entry.kind is BtfKind.FUNC_PROTO:
        given, more = kind.parameters
        shown = [_golden_spelling(each) for each in given] + ["void"] * more
        return f"func({','.join(shown)})->{_golden_spelling(kind.target)}"
    return kind.raw_text


@pytest.mark.parametrize(
    "name",
    [AMD64_61, SLOW_612, SLOW_ARM64],
)
def test_prototypes_are_what_bpftool_says(name: str) -> None:
    image = kernel_image(name)
    types = btf_of(image.elf)
    assert types is not None
    rows = 0
    with lzma.open(DATA / GOLDEN[name] / "btf_prototypes.given.jsonl.xz", "rt") as lines:
        for line in lines:
            row, rows = json.loads(line), rows + 1
            function = types.function(row["func"])
            assert function is not None
            if function.id != row["id"]:  # the kernel takes the first of a name, bpftool all
                assert function.id < row["id"]
                function = types._function(row["id"])
            arguments = [[p.name, _golden_spelling(p.type)] for p in function.parameters]
            arguments += [["...", ""]] * function.variadic
            assert (function.name, _golden_spelling(function.returns), arguments) == (
                row["func"],
                row["ret"],
                row["args"],
            )
    assert rows == 900


@pytest.mark.parametrize(
    ("name", "last"),
    [
        (AMD64_61, "end"),
        pytest.param(AMD64_612, "signal", marks=pytest.mark.slow),
        pytest.param(ARM64_61, None, marks=pytest.mark.slow),
    ],
)
def test_layouts_tell_versions_apart(name: str, last: str | None) -> None:
    image = kernel_image(name)
    entry = image.layout("orc_entry")
    if last is None:
        assert entry is None
        return
    assert entry is not None
    assert entry[""] == (0, 6)
    assert entry["type"] == entry[last] == (5, 1)


@pytest.mark.parametrize("title", MODULES)
def test_modules_go_on_where_their_kernel_ends(title: str) -> None:
    path = module_path(title)
    kernel = kernel_image(AMD64_61)
    module = open_module(path, kernel)
    assert module is not None
    types, base = btf_of(module.elf), btf_of(kernel.elf)
    assert types is not None
    assert base is not None
    assert types.btf.base is base.btf
    own = [types.function(name) for name in types.btf.names(BtfKind.FUNC)]
    assert own
    assert all(function is not None and function.id >= base.btf.end for function in own)
    for number in range(types.btf.first, types.btf.end):
        kind = types.type(number)
        assert kind.text
        _ = kind.size, kind.members, kind.enumerators
    assert module.layout("orc_entry") == kernel.layout("orc_entry")


@pytest.mark.slow
@pytest.mark.parametrize("title", MODULES)
def test_modules_for_another_kernel_are_told(title: str) -> None:
    path = module_path(title)
    module = open_module(path, kernel_image(AMD64_61))
    assert module is not None
    section = module.elf.section(".BTF")
    other = btf_of(kernel_image(AMD64_612).elf)
    assert section is not None
    assert other is not None
    with pytest.raises(ImageError, match="made for another kernel"):
        Btf(module.elf.section_data(section), path.name, other.btf)
