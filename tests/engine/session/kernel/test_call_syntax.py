"""Calls are read as C writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CommandError
from engine.session.kernel.call_syntax import (
    Braces,
    Buffer,
    Initial,
    Named,
    Number,
    Object,
    Text,
    read_call,
)


def test_every_kind_of_argument() -> None:
    read = read_call(
        r"""f(1, -1, 0x10, 010, 'a', '\n', "a\x41" "\0b", &buf[16], """
        "buf, &sym, NULL, (u16[]){1, [3] = -2}, ~0, __user &in[4], GFP_KERNEL, f.part.0)"
    )
    assert read.function == "f"
    assert read.arguments == (
        Number(1),
        Number(-1),
        Number(16),
        Number(8),
        Number(97),
        Number(10),
        Text(b"aA\0b\0"),
        Buffer("buf", 16),
        Named("buf"),
        Buffer("sym", None),
        Number(0),
        Object(
            ("u16",),
            True,
            True,
            Braces((Initial((), Number(1)), Initial((3,), Number(-2)))),
        ),
        Number(-1),
        Buffer("in", 4, user=True),
        Number(0xCC0),
        Named("f.part.0"),
    )
    assert read_call("f()").arguments == ()
    assert read_call(' g ( "a,b)" ) ; ').arguments == (Text(b"a,b)\0"),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("-~1", 2), ("~-1", 0), ("~~5", 5), ("- -5", 5), ("-+-~0", -1), ("~0x7f", -0x80)),
        *(
            ("~0xffffffffffffffff", 0),
            ("~0xfffffffffffffffe", 1),
            ("-~0x7fffffffffffffff", 1 << 63),
        ),
        *(("-0x8000000000000000", -(1 << 63)), ("~0x8000000000000000", (1 << 63) - 1)),
    ],
)
def test_operators_in_front_of_a_number_are_applied_from_the_inside(text: str, value: int) -> None:
    assert read_call(f"f({text})").arguments == (Number(value),)


def test_objects_have_members_by_name_and_in_their_order() -> None:
    read = read_call(
        'f(&(struct qstr){.len = 3, .name = "abc"}, (struct a){{1, 2}, .b.c[1] = 3,})'
    )
    assert read.arguments == (
        Object(
            ("struct", "qstr"),
            False,
            True,
            Braces((Initial(("len",), Number(3)), Initial(("name",), Text(b"abc\0")))),
        ),
        Object(
            ("struct", "a"),
            False,
            False,
            Braces(
                (
                    Initial((), Braces((Initial((), Number(1)), Initial((), Number(2))))),
                    Initial(("b", "c", 1), Number(3)),
                )
            ),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "f", "f(", "f(1", "f(,)", "f(1,)", 'f("x)', "f(&b[0])", "f(1 2)", "f(09)"),
        *("f('ab')", "f((u8[])1)", "f(&(struct a))", "f((struct a){.})", "f((struct a){1 2})"),
        *(
            "f(1) 2",
            "f(1 << 70)",
            "f(99999999999999999999)",
            "f(~99999999999999999999)",
            "f(1.5)",
            "f(-0x8000000000000001)",
            "f(" + "(u8)" * 50 + "1)",
        ),
    ],
)
def test_what_is_no_call_is_told(text: str) -> None:
    with pytest.raises(CommandError) as told:
        read_call(text)
    assert str(told.value).startswith(text)


@given(st.text(alphabet="f(){}[]&\",'\\0x19azu .=-", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = read_call(text)
    except CommandError:
        return
    assert read.function
