"""The environment tells whether the terminal has letters beyond ASCII, and how it is lit."""

import pytest

from tui.surroundings import has_light_background, has_only_ascii, moves_cursor


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "C.UTF-8"}, False),
        ({"LANG": "de_DE.utf8@euro"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "de_DE"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_ALL": ""}, True),
    ],
)
def test_letters(environment: dict[str, str], plain: bool) -> None:
    assert has_only_ascii(environment) is plain


def test_background_and_terminals_that_only_print() -> None:
    lit = {"0;15": True, "0;default;15": True, "15;0": False, "": False, "7": False}
    assert {text: has_light_background({"COLORFGBG": text}) for text in lit} == lit
    assert [moves_cursor({"TERM": name}) for name in ("dumb", "xterm", "linux")] == [
        False,
        True,
        True,
    ]
