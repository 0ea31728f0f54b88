"""Pieces of C++'s expressions: names of templates, texts, conversions, virtual bases, printers."""

from pathlib import Path

import pytest
from memoryscope import MemoryScope

from engine.errors import CommandError
from engine.image.datatypes import TypeKind, shorter_arguments
from engine.image.reader import DamagedError
from engine.image.virtualbases import offset_place
from engine.language import value_types as ct
from engine.language.conversions import CONVERTED, EXACT, PROMOTED, rank
from engine.language.further_containers import path_names
from engine.language.quoting import quoted_wide, wide_character
from engine.language.tokens import split
from engine.language.user_printers import UserPrinters
from engine.language.user_types import same_spelling, template_arguments
from engine.language.values import made


def test_names_of_templates_are_one_word() -> None:
    known = {"Box<int>", "std::vector<int>"}

    def words(text: str) -> list[str]:
        return [token.text for token in split(text, known.__contains__)][:-1]

    assert words("sizeof(Box<int>)") == ["sizeof", "(", "Box<int>", ")"]
    assert words("Box<int>::made + 1") == ["Box<int>::made", "+", "1"]
    assert words("a<b && c>d") == ["a", "<", "b", "&&", "c", ">", "d"]
    assert words("a.operator+(b)") == ["a", ".", "operator+", "(", "b", ")"]
    assert words("x->*p") == ["x", "->*", "p"]


def test_types_are_equal_in_all_spellings() -> None:
    spelled = "std::vector<int, std::allocator<int> >"
    assert same_spelling(spelled) == same_spelling("std::vector<int>")
    assert same_spelling("std::__1::vector<int, std::__1::allocator<int> >") == "std::vector<int>"
    assert same_spelling("Fixed<int, 3>") == same_spelling("Fixed<int,3>")
    assert same_spelling("Tp<long unsigned int>") == same_spelling("Tp<unsigned long>")
    assert shorter_arguments("Tp<long int const*>") == "Tp<long const*>"
    assert shorter_arguments("Tp<unsigned char, long double>") == "Tp<unsigned char, long double>"
    assert same_spelling("unsigned  long") != same_spelling("long")
    assert template_arguments("std::pair<int const, A<b, c> >") == ["int const", "A<b, c>"]
    assert template_arguments("int") == []


def test_texts_of_wider_characters() -> None:
    raw = "wide".encode("utf-32-le")
    assert quoted_wide(raw, 4, "little", "L") == 'L"wide"'
    assert quoted_wide("é\n".encode("utf-16-be"), 2, "big", "u") == 'u"é\\n"'
    assert quoted_wide(bytes(80), 4, "little", "U") == "U'\\000' <repeats 20 times>"
    raw = "begin".encode("utf-32-le") + bytes(48)
    assert quoted_wide(raw, 4, "little", "L") == "L\"begin\", '\\000' <repeats 12 times>"
    assert wide_character(0xD800, 4, "little", "U") == "U'\\000\\330\\000\\000'"


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/usr/lib/x.so", ["/", "usr", "lib", "x.so"]),
        ("a//b/", ["a", "b", ""]),
        ("/", ["/"]),
        ("", []),
    ],
)
def test_names_in_a_path(path: str, names: list[str]) -> None:
    assert path_names(path) == names


def test_conversions_of_numbers() -> None:
    number, letter = made(ct.INT, 1, "little"), made(ct.CHAR, 1, "little")
    assert rank(number, ct.INT) == EXACT
    assert rank(letter, ct.INT) == PROMOTED
    assert rank(number, ct.DOUBLE) == CONVERTED
    assert rank(number, ct.pointer_to(ct.INT)) is None
    assert rank(made(ct.INT, 0, "little"), ct.pointer_to(ct.INT)) is not None
    assert rank(number, ct.reference_to(ct.LONG)) is None


def test_places_of_virtual_bases() -> None:
    assert offset_place(bytes((0x12, 0x06, 0x48, 0x1C, 0x06, 0x22)), "<") == 24
    assert offset_place(bytes((0x12, 0x06, 0x10, 0x80, 0x01, 0x1C, 0x06, 0x22)), "<") == 128
    for wrong in (b"\x23\x08", b"\x12\x06", bytes((0x12, 0x06, 0x48, 0x22, 0x06, 0x22))):
        with pytest.raises(DamagedError):
            offset_place(wrong, "<")


def test_a_file_of_printers_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "printers.py"
    for text, why in (
        ("x = 1", "it defines no dictionary 'printers'"),
        ("printers = {1: str}", "a type's name and a function are wanted"),
        ("import nosuchmodule", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
    ):
        file.write_text(text)
        with pytest.raises(CommandError, match=why) as caught:
            UserPrinters(str(file))
        assert "\n" not in str(caught.value)
    with pytest.raises(CommandError, match="No such file"):
        UserPrinters(str(tmp_path / "none.py"))


def test_what_a_printer_gives(tmp_path: Path) -> None:
    file = tmp_path / "printers.py"
    file.write_text("printers = {'lo*': lambda v: (str(int(v)), {'twice': 2 * int(v), 'b': b''})}")
    printers, value = UserPrinters(str(file)), made(ct.LONG, 4, "little")
    function = printers.find(ct.LONG)
    assert function is not None
    assert printers.find(ct.INT) is None
    held = printers.held(value, function, MemoryScope())
    assert held.title == "<printer of long: TypeError: bytes is no value that is printed>"
    file.write_text("printers = {'long': lambda v: (str(int(v)), {'twice': 2 * int(v)})}")
    printers = UserPrinters(str(file))
    function = printers.find(ct.LONG)
    assert function is not None
    held = printers.held(value, function, MemoryScope())
    assert held.children is not None
    ((name, part),) = held.children()
    assert (held.title, name, part.number, part.type.kind) == ("4", "twice", 8, TypeKind.SIGNED)
