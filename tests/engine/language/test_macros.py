"""The expansion of macros; the answers are gdb's to `macro expand`."""

import pytest

from engine.errors import CommandError
from engine.language.macros import MacroDefinition, expanded, macro_of

_DEFINITIONS = (
    "HEADER_ONE 11",
    "CONCAT(a,b) a##b",
    "TEXT(x) #x",
    "XTEXT(x) TEXT(x)",
    "LOG(fmt,...) printf(fmt, __VA_ARGS__)",
    "LOGN(args...) printf(args)",
    "VALUE (2 + HEADER_ONE)",
    "EMPTY ",
    "SELF (SELF + 1)",
    "PAIR(a,b) {a, b}",
    "F() 42",
    "NEG -1",
)
_KNOWN: dict[str, MacroDefinition | None] = {
    text.partition("(")[0].partition(" ")[0]: macro_of(text) for text in _DEFINITIONS
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("CONCAT(x, y)", "xy"),
        ('TEXT(a  +  "b\\n")', '"a + \\"b\\\\n\\""'),
        ("XTEXT(HEADER_ONE + 1)", '"11 + 1"'),
        ("TEXT(HEADER_ONE)", '"HEADER_ONE"'),
        ('LOG("%d", 1, 2)', 'printf("%d", 1, 2)'),
        ('LOGN("x", 3)', 'printf("x", 3)'),
        ("SELF", "(SELF + 1)"),
        ("PAIR(1,(2,3))", "{1, (2,3)}"),
        ("F() + F", "42 + F"),
        ("F ()", "42"),
        ("NEG-NEG", "-1- -1"),
        ("-NEG", "- -1"),
        ("VALUE VALUE", "(2 + 11) (2 + 11)"),
        ("CONCAT(HEADER_ONE, 2)", "HEADER_ONE2"),
        ("\"VALUE\" 'V'", "\"VALUE\" 'V'"),
        ("x.VALUE", "x.(2 + 11)"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_a_text_is_expanded_as_gdb_does(text: str, want: str) -> None:
    assert expanded(text, _KNOWN.get) == want


@pytest.mark.parametrize("text", ["PAIR(1)", "PAIR(1,2", "F(1)"])
def test_arguments_that_do_not_fit_are_told_of(text: str) -> None:
    with pytest.raises(CommandError, match="macro `"):
        expanded(text, _KNOWN.get)


@pytest.mark.parametrize(
    ("definitions", "text"),
    [
        # Twice as many at each step, which leave nothing.
        (["E0() ", *(f"E{n}() E{n - 1}()E{n - 1}()" for n in range(1, 60))], "E59()"),
        (["A0 x", *(f"A{n} A{n - 1} A{n - 1}" for n in range(1, 60))], "A59"),
        ([f"D{n} D{n + 1}" for n in range(5000)], "D0"),
        (["I(x) x"], "I(" * 3000 + "1" + ")" * 3000),
    ],
    ids=["empty", "longer", "chain", "arguments"],
)
def test_an_expansion_without_an_end_in_sight_is_refused(
    definitions: list[str], text: str
) -> None:
    """A program's debug information may have any, and a client of the server defines its own."""
    known = {one.partition("(")[0].partition(" ")[0]: macro_of(one) for one in definitions}
    with pytest.raises(CommandError, match=r"The expansion (?:has|needs) more than"):
        expanded(text, known.get)
