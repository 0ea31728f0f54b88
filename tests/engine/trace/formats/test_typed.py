"""Values of functions with the forms of their types, as rows and as plain data."""

import struct

import pytest

from engine.arch.program import FieldType, ValueKind
from engine.trace.formats.typed import function_name, placed, typed_arguments, typed_text
from engine.trace.graph import entry_info, exit_info
from engine.trace.rows import Column, EventInfo, FormKind, ValueForm, pack_row

_COLOURS = (("RED", 0), ("GREEN", 5), ("BLUE", 6))
_BITS = (("ONE", 1), ("TWO", 2), ("FOUR", 4))
_PLACES = {0x401136: b"main", 0x40113A: b"main+4"}


@pytest.mark.parametrize(
    ("form", "names", "kind", "size", "word", "text"),
    [
        (FormKind.NUMBER, (), ValueKind.SIGNED, 4, 0xDEADBEEF_FFFFFFFD, "-3"),
        (FormKind.NUMBER, (), ValueKind.UNSIGNED, 1, 0x1FF, "255"),
        (FormKind.TRUTH, (), ValueKind.UNSIGNED, 1, 0x7701, "true"),
        (FormKind.TRUTH, (), ValueKind.UNSIGNED, 1, 2, "2"),
        (FormKind.CHARACTER, (), ValueKind.SIGNED, 1, 0x7A, "122 'z'"),
        (FormKind.CHARACTER, (), ValueKind.UNSIGNED, 1, 0xC8, "200 '\\310'"),
        (FormKind.ENUMERATION, _COLOURS, ValueKind.UNSIGNED, 4, 6, "BLUE"),
        (FormKind.ENUMERATION, _COLOURS, ValueKind.UNSIGNED, 4, 7, "7"),
        (FormKind.ENUMERATION, _BITS, ValueKind.UNSIGNED, 4, 3, "(ONE | TWO)"),
        (FormKind.ENUMERATION, _BITS, ValueKind.UNSIGNED, 4, 9, "(ONE | unknown: 0x8)"),
        (FormKind.POINTER, (), ValueKind.HEX, 8, 0, "0x0"),
        (FormKind.POINTER, (), ValueKind.HEX, 8, 0x40113A, "0x40113a <main+4>"),
        (FormKind.POINTER, (), ValueKind.HEX, 8, 0x7FFFFFFFE000, "0x7fffffffe000"),
    ],
)
def test_a_number_is_shown_as_gdb_does(
    form: FormKind,
    names: tuple[tuple[str, int], ...],
    kind: ValueKind,
    size: int,
    word: int,
    text: str,
) -> None:
    column = Column("c", FieldType(kind, size), 1, form=ValueForm(form, names))
    shown = typed_text(column, lambda address: _PLACES.get(address, b""))
    assert shown(struct.pack("<QQ", 0, word), 0).decode() == text


def test_texts_stand_behind_the_words_of_a_row() -> None:
    text = FieldType(ValueKind.STRING, 0), ValueForm(FormKind.TEXT)
    number = FieldType(ValueKind.SIGNED, 4), ValueForm(FormKind.NUMBER)
    info = entry_info(7, [("label", *text), ("count", *number), ("size", *text)])
    row = pack_row(info, 1, 2, 0x401000, (0, 0x402000, b'0x4 "box"\0', -5, b""))
    shown = typed_arguments(info.columns[2:], lambda address: b"")
    assert shown(b"\0" * 16 + row, 16) == b'(label=0x4 "box", count=-5, size=?)'


def test_forms_are_kept_in_plain_data() -> None:
    colours = ValueForm(FormKind.ENUMERATION, _COLOURS)
    infos = (
        exit_info(3, FieldType(ValueKind.SIGNED, 4), colours),
        exit_info(4),
        entry_info(5, [("c", FieldType(ValueKind.UNSIGNED, 1), ValueForm(FormKind.TRUTH))]),
    )
    for info in infos:
        assert EventInfo.from_json(info.to_json()) == info


def test_names_are_those_of_the_source() -> None:
    assert function_name("_ZN4Shop3addENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi") == (
        "Shop::add"
    )
    assert function_name("_ZN2r25greet17h0123456789abcdefE") == "r2::greet"
    assert function_name("main") == "main"
    assert placed(b"_ZN2r25greet17h0123456789abcdefE+0x4/0x10") == b"r2::greet+4"
    assert placed(b"0x7fff0000") == b""
