"""Functions of gdb's own in expressions, over a stretch of memory."""

import pytest
from memoryscope import MemoryScope

from engine.errors import CommandError
from engine.language.evaluation import evaluate
from engine.language.printing import Printer

TEXTS = b"four\0" + b"fourth\0" + b"x" * 52


def value(text: str) -> str:
    scope = MemoryScope(TEXTS, 0x1000)
    return Printer(scope, lambda address: "").text(evaluate(text, scope))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$_strlen((char *)0x1000)", "4"),
        ('$_strlen("")', "0"),
        ('$_streq((char *)0x1000, "four")', "1"),
        ("$_streq((char *)0x1000, (char *)0x1005)", "0"),
        ('$_regex((char *)0x1005, "f.*h$")', "1"),
        ('$_regex((char *)0x1005, "our")', "0"),
        ("$_memeq((char *)0x1000, (char *)0x1005, 4)", "1"),
        ("$_memeq((char *)0x1000, (char *)0x1005, 5)", "0"),
        ("$_memeq((char *)0x1000, (char *)0x1005, 0)", "1"),
        ("$_isvoid($none)", "1"),
        ("$_isvoid(0)", "0"),
        ("$_as_string(-3)", '"-3"'),
    ],
)
def test_values(text: str, shown: str) -> None:
    assert value(text) == shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$_strlen(3)", "Trying to read string with inappropriate type `int'."),
        ("$_strlen()", "$_strlen takes 1 arguments, 0 were given."),
        ('$_regex("a", "(")', "Invalid regexp: missing ), unterminated subpattern at position 0"),
        ('$_memeq("a", "b", -1)', "length must be non-negative"),
        ('$_memeq("a", "b", 1000000000)', "1000000000 bytes are too many to compare"),
        ("$_nosuch(1)", "Invalid data type for function to be called."),
    ],
)
def test_errors(text: str, why: str) -> None:
    with pytest.raises(CommandError) as error:
        value(text)
    assert str(error.value) == why
