"""The parts of paths, which completions begin at."""

import pytest

from engine.session.debugger.completing_names import path_starts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("main", []),
        ("park::List::push", ["List::push", "push"]),
        ("a::b<c::d>::e", ["b<c::d>::e", "e"]),
        ("std::map<k, v>::operator<", ["map<k, v>::operator<", "operator<"]),
        ("ns::operator<<", ["operator<<"]),
        ("ns::S::operator->::x", ["S::operator->::x", "operator->::x", "x"]),
        ("ns::S::operator()", ["S::operator()", "operator()"]),
        ("(anonymous namespace)::f", ["f"]),
        (
            "f(a::b, int)::{lambda(int)#1}::operator()",
            ["{lambda(int)#1}::operator()", "operator()"],
        ),
        ("<a::B as c::D>::fmt", ["fmt"]),
        ("fmt.(*pp).printArg", []),
    ],
)
def test_parts_of_paths(name: str, parts: list[str]) -> None:
    assert [name[at:] for at in path_starts(name)] == parts
