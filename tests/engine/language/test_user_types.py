"""Types of C++ as gdb 13's `whatis` writes them (libstdc++ 12's type printers)."""

import time

import pytest

from engine.image.datatypes import constants_behind, shorter_arguments
from engine.image.functions import WantedFunction
from engine.language.user_types import (
    bare_type,
    is_known_by_name,
    printer_type,
    same_spelling,
    template_arguments,
    user_type,
    with_names,
)

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
INTS = "std::vector<int, std::allocator<int> >"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("int", "int"),
        (STRING, "std::string"),
        (f"const {STRING} &", "const std::string &"),
        (INTS, "std::vector<int>"),
        (
            f"std::map<{STRING}, {INTS}, std::less<{STRING} >,"
            f" std::allocator<std::pair<{STRING} const, {INTS} > > >",
            "std::map<std::string, std::vector<int>>",
        ),
        (
            "std::map<int, int, std::greater<int>, std::allocator<std::pair<int const, int> > >",
            "std::map<int, int, std::greater<int>, std::allocator<std::pair<int const, int> > >",
        ),
        (
            f"std::vector<Box<{INTS} >, std::allocator<Box<{INTS} > > >",
            f"std::vector<Box<{INTS} >>",
        ),
        ("std::vector<int const*, std::allocator<int const*> >", "std::vector<const int*>"),
        (
            f"std::vector<{INTS} const*, std::allocator<{INTS} const*> >",
            "std::vector<std::vector<int>*>",
        ),
        (f"std::function<void(const {STRING}&)>", f"std::function<void(const {STRING}&)>"),
        (f"std::equal_to<{STRING} >", "std::equal_to<std::string>"),
        (
            "std::stack<int, std::deque<int, std::allocator<int> > >",
            "std::stack<int, std::deque<int> >",
        ),
        ("std::vector<int, mine::Allocator<int> >", "std::vector<int, mine::Allocator<int> >"),
        (f"Box<{INTS} >", "Box<std::vector<int> >"),
        ("std::unique_ptr<Shape, std::default_delete<Shape> >", "std::unique_ptr<Shape>"),
        ("std::unique_ptr<Shape, Closer>", "std::unique_ptr<Shape, Closer>"),
        (f"    {INTS} numbers;", "    std::vector<int> numbers;"),
        ("std::array<int, 3>", "std::array<int, 3>"),
        ("bool operator<(const Shape &) const;", "bool operator<(const Shape &) const;"),
        ("std::vector<int", "std::vector<int"),
    ],
)
def test_as_users_write_them(written: str, shown: str) -> None:
    assert user_type(written) == shown


def test_brackets_without_an_end_are_left() -> None:
    text = "std::vector<" * 5000
    assert user_type(text) == text
    deep = "std::vector<" * 500 + "int" + ">" * 500
    assert user_type(deep).startswith("std::vector<std::vector<")


def test_keywords_are_left_out() -> None:
    assert bare_type("struct point") == "point"
    assert bare_type("structure") == "structure"


def test_printers_of_values_shorten_nothing_inside_of_other_templates() -> None:
    held = f"std::shared_ptr<{INTS} >"
    assert printer_type(held) == held
    assert printer_type(INTS) == "std::vector<int>"
    assert printer_type("int") == "int"


def test_a_class_has_names_of_its_own_for_what_its_template_is_given() -> None:
    names: dict[object, str] = {STRING: "Key", "int": "T"}
    assert with_names(f"Map<{STRING}, Box<int const> >", names) == "Map<Key, Box<T const> >"
    assert with_names("int", names) == "int"


def test_compilers_put_const_in_front_and_gdb_behind() -> None:
    assert shorter_arguments("Pair<const Box<const char*>, long int>") == (
        "Pair<Box<char const*> const, long>"
    )
    assert shorter_arguments("Box<const unsigned char*>") == "Box<unsigned char const*>"
    for kept in ("Box<void(const long int&)>", "fold<main()::<lambda(long int)>, long int>"):
        assert shorter_arguments(kept) == kept
    assert shorter_arguments("Box<long int (*)(int)>") == "Box<long (*)(int)>"


_MANY = 3_000
_HOSTILE = {
    "nested": "A<" * _MANY + "int" + ">" * _MANY,
    "constants": "A<const B<" * _MANY + "int" + "> >" * _MANY,
    "unclosed": "A<" * _MANY,
    "side by side": "A<int>" * _MANY,
    "a long name": "a" * _MANY + "(<x>",
    "marks": "A<int " + "* " * _MANY + "!>",
    "words in front": "const " * _MANY + "(<int>",
    "words behind": "A<B" + " const" * _MANY + "x>",
    "vectors": "std::vector<" * _MANY + "int" + ", std::allocator<int> >" * _MANY,
    "very long": "A<const int>" * 100_000,
}


@pytest.mark.parametrize("text", _HOSTILE.values(), ids=_HOSTILE)
def test_a_hostile_name_harms_nobody(text: str) -> None:
    """A damaged file's names nest as deep as they like; none ends a question, or makes it long."""
    began = time.process_time()
    spelled = shorter_arguments(text)
    assert spelled.count("const") == text.count("const")
    assert user_type(text).count("A") == text.count("A")
    assert printer_type(text).count("int") == text.count("int")
    assert with_names(text, {"Z": "Y"}).count("A") == text.count("A")
    assert "".join(same_spelling(text).split()).count("A") == text.count("A")
    is_known_by_name(text)
    template_arguments(text)
    WantedFunction(text)
    assert time.process_time() - began < 20  # minutes, or without an end, where it is not linear


def test_constants_in_templates_in_templates() -> None:
    assert constants_behind("A<const B<const char*>, const int>") == (
        "A<B<char const*> const, int const>"
    )
    assert constants_behind("A<const B<const C<const D> >&>") == "A<B<C<D const> const > const&>"
    assert constants_behind("A<const >") == "A<const >"
