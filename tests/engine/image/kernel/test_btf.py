"""The index of a BTF section: numbers, names, bases, damage."""

import struct

import pytest
from btfkit import BtfMaker
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ImageError
from engine.image.kernel.btf import Btf, BtfKind
from engine.image.kernel.btftypes import BtfTypes


def _small(order: str = "<") -> BtfMaker:
    made = BtfMaker(order)
    number = made.integer("int", 4, 1)
    made.record("point", 8, ("x", number, 0), ("y", number, 32))
    made.function("measure", made.prototype(number, ("from", made.pointer(2))))
    return made


@pytest.mark.parametrize("order", ["<", ">"])
def test_entries_have_numbers_kinds_and_names(order: str) -> None:
    btf = Btf(_small(order).data(), "vmlinux")
    assert btf.end == 6
    assert [btf.kind(number).name for number in range(6)] == [
        "VOID",
        "INT",
        "STRUCT",
        "PTR",
        "FUNC_PROTO",
        "FUNC",
    ]
    assert btf.entry(2).name == "point"
    assert list(btf.entry(2).extra[1::3]) == [1, 1]
    assert btf.find(BtfKind.FUNC, "measure") == 5
    assert btf.find(BtfKind.STRUCT, "measure") is None
    assert list(btf.of_kind(BtfKind.PTR)) == [3]


def test_a_module_goes_on_where_its_kernel_ends() -> None:
    kernel = _small()
    module = BtfMaker(base=kernel)
    module.record("segment", 16, ("begin", 2, 0), ("x", 2, 64))
    module.function("shift", module.prototype(1, ("point", module.pointer(6))))
    base = Btf(kernel.data(), "vmlinux")
    own = Btf(module.data(), "mod.ko", base)
    assert (own.first, own.end) == (6, 10)
    assert own.entry(6).name == "segment"
    assert own.entry(2).name == "point"
    assert own.find(BtfKind.STRUCT, "point") == 2
    assert base.find(BtfKind.STRUCT, "segment") is None
    assert list(own.of_kind(BtfKind.FUNC)) == [5, 9]
    shift = BtfTypes(own).function("shift")
    assert shift is not None
    assert shift.type.declared("shift") == "int shift(struct segment *)"
    assert [member.name for member in BtfTypes(own).type(6).members] == ["begin", "x"]


def test_a_module_for_another_kernel_is_told() -> None:
    kernel = _small()
    module = BtfMaker(base=kernel)
    module.record("segment", 16, ("begin", 2, 0))
    module.pointer(40)
    other = BtfMaker()
    other.integer("unsigned int", 4)
    with pytest.raises(ImageError, match=r"mod\.ko: \.BTF: type 3 .* made for another kernel"):
        Btf(module.data(), "mod.ko", Btf(other.data(), "vmlinux"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:10], "10 bytes are no header"),
        (lambda data: b"\0" + data[1:], "magic number"),
        (lambda data: data[:2] + b"\2" + data[3:], "version 2"),
        (lambda data: data[:-8], "is it cut short"),
        (lambda data: data[:12] + struct.pack("<I", 2) + data[16:], "not aligned"),
        (lambda data: data[:24] + data[24:31] + b"\x1f" + data[32:], "type 1 has the kind 31"),
        (lambda data: data[:-1] + b"x", "no end"),
        (lambda data: data[:12] + struct.pack("<I", 8) + data[16:], "ends behind the types"),
    ],
)
def test_damage_is_one_clear_error(change: "object", message: str) -> None:
    assert callable(change)
    with pytest.raises(ImageError, match=message) as caught:
        Btf(change(_small().data()), "vmlinux")
    assert str(caught.value).startswith("vmlinux: .BTF: ")


def test_a_reference_to_nothing_is_told_when_it_is_followed() -> None:
    made = BtfMaker()
    made.pointer(77)
    kind = BtfTypes(Btf(made.data(), "vmlinux")).type(1)
    with pytest.raises(ImageError, match=r"reference to type 77 of 2"):
        _ = kind.text


@given(st.data())
def test_any_bytes_give_types_or_an_error(data: st.DataObject) -> None:
    raw = bytearray(_small().data())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        types = BtfTypes(Btf(bytes(raw), "vmlinux"))
        for number in range(types.btf.end):
            kind = types.type(number)
            _ = kind.text, kind.size, kind.members, kind.enumerators, kind.key, kind.parameters
        _ = [function.type.declared(function.name) for function in types.functions()]
        _ = types.layout("point"), types.enumerator("x")
    except ImageError:
        pass
