"""Types of C++ as gdb 13's `whatis` writes them (libstdc++ 12's type printers)."""

import pytest

from engine.language.user_types import bare_type, user_type

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
            "std::map<int, int, std::greater<int>>",
        ),
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
