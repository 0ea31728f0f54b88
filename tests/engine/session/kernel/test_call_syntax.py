"""Calls are read as C writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CommandError
from engine.session.kernel.call_syntax import Buffer, Contents, Named, read_call


def test_every_kind_of_argument() -> None:
    read = read_call(
        r"""f(1, -1, 0x10, 010, 'a', '\n', "a\x41\0b", &buf[16], """
        "buf, &sym, NULL, (u16[]){1, -2})"
    )
    assert read.function == "f"
    assert read.arguments == (
        1,
        (1 << 64) - 1,
        16,
        8,
        97,
        10,
        Contents(b"aA\0b\0"),
        Buffer("buf", 16),
        Named("buf"),
        Named("sym"),
        0,
        Contents(b"\x01\x00\xfe\xff"),
    )
    assert read_call("f()").arguments == ()
    assert read_call(' g ( "a,b)" ) ; ').arguments == (Contents(b"a,b)\0"),)


@pytest.mark.parametrize(
    "text",
    ["", "f", "f(", "f(1", "f(,)", "f(1,)", 'f("x)', r'f("\q")', "f(&b[0])", "f(1 2)", "f(09)"],
)
def test_what_is_no_call_is_told(text: str) -> None:
    with pytest.raises(CommandError) as told:
        read_call(text)
    assert str(told.value).startswith(text)


@given(st.text(alphabet="f(){}[]&\",'\\0x19azu ", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = read_call(text)
    except CommandError:
        return
    assert read.function
