"""The end of a line within the arguments of its word."""

import pytest

from engine.session.debugger.line_grammar import GRAMMAR, ArgumentKind, position


@pytest.mark.parametrize(
    ("word", "rest", "left", "kind"),
    [
        ("catch", "sig", "sig", ArgumentKind.NOTHING),
        ("catch", "signal SIG", "SIG", ArgumentKind.SIGNALS),
        ("catch", "sys op", "op", ArgumentKind.CALLS),
        ("frame", "apply all -q -s pri", "pri", ArgumentKind.LINE),
        ("frame", "apply level 1-3 bt", "bt", ArgumentKind.LINE),
        ("frame", "fu ma", "ma", ArgumentKind.FUNCTION),
        ("thread", "apply 1 2 bt f", "bt f", ArgumentKind.LINE),
        ("break", "-function ma", "ma", ArgumentKind.FUNCTION),
        ("break", "-source a.c -line 3", "3", ArgumentKind.NOTHING),
        ("break", "-q main if n", "main if n", ArgumentKind.PLACE),
        ("enable", "count 2 1", "1", ArgumentKind.STOPS),
        ("dump", "binary memory out 1", "out 1", ArgumentKind.FILE_THEN_VALUE),
        ("watch", "-l a.b", "a.b", ArgumentKind.VALUE),
        ("disassemble", "/s ma", "ma", ArgumentKind.CODE),
    ],
)
def test_positions(word: str, rest: str, left: str, kind: ArgumentKind) -> None:
    found = position(GRAMMAR[word], rest)
    assert (found.rest, found.kind) == (left, kind)


def test_own_words_come_first_only() -> None:
    assert position(GRAMMAR["delete"], "dis").first
    assert not position(GRAMMAR["enable"], "count 2 o").first
