"""Values of expressions: against gdb, and of places that only the surroundings know."""

import shutil
import subprocess
from fractions import Fraction

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from memoryscope import MemoryScope

from engine.errors import CommandError
from engine.language.evaluation import evaluate, type_of
from engine.language.printing import Printer
from engine.language.values import extended, long_float_bytes, quad


def _text(expression: str, bench: MemoryScope | None = None) -> str:
    around = bench or MemoryScope()
    printer = Printer(around, lambda address: "")
    return printer.text(evaluate(expression, around))


_MACHINE = ("-ex", "set language c", "-ex", "set architecture i386:x86-64")
_NUMBER = st.one_of(
    st.integers(0, 300).map(str),
    st.integers(0, (1 << 64) - 1).map(hex),
    st.integers(0, (1 << 31) - 1).map(lambda n: f"{n}u"),
    st.sampled_from(["'a'", "2147483647", "2147483648", "4294967295u", "1.5", "0.25", "10L"]),
)
_WHOLE = _NUMBER.filter(lambda text: "." not in text)
_UNARY = st.sampled_from(["-", "~", "!", "+", "(char)", "(unsigned char)", "(short)", "(long)"])
_EXPRESSION = st.recursive(
    _WHOLE,
    lambda inner: st.one_of(
        st.tuples(_UNARY, inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(
            inner,
            st.sampled_from(
                ["+", "-", "*", "/", "%", "&", "|", "^", "<", ">", "<=", "==", "!=", "&&", "||"]
            ),
            inner,
        ).map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"),
        st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 31)).map(
            lambda parts: f"({parts[0]}) {parts[1]} {parts[2]}"
        ),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]}) ? ({p[1]}) : ({p[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=3, deadline=None, phases=[Phase.generate])
@given(st.lists(_EXPRESSION, min_size=120, max_size=200))
def test_arithmetic_is_gdbs(expressions: list[str]) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    words = [word for text in expressions for word in ("-ex", f"output {text}", "-ex", "echo \\n")]
    done = subprocess.run(
        ["gdb", "-q", "--batch", "-nx", *_MACHINE, *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    wanted = done.stdout.splitlines()[-len(expressions) :]  # a remark on the machine before
    assert len(wanted) == len(expressions)
    for text, want in zip(expressions, wanted, strict=True):
        try:
            got = _text(text)
        except CommandError:
            got = ""
        assert got == want, text


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("number", "117835012"),
        ("&number", "(int *) 0x4"),
        ("*&number == number", "1"),
        ("row[1]", "387323156"),
        ("*row", "319951120"),
        ("row[1] == *(row + 1)", "1"),
        ("&row[3] - &row[1]", "2"),
        ("sizeof(row)", "16"),
        ("sizeof row / sizeof row[0]", "4"),
        ("*row@2", "{319951120, 387323156}"),
        ("words[0]", "32 ' '"),
        ("{char} 33", "33 '!'"),
        ("(word_t)number", "117835012"),
        ("sizeof(word_t)", "8"),
        ("(char)$r1", "-120 '\\210'"),
        ("$r1", "1234605616436508552"),
        ("1, 2", "2"),
        ("number ? 1.5 : 2", "1.5"),
        ("7 / 2.0", "3.5"),
        ("1.0 / 0", "inf"),
        ("'\\n'", "10 '\\n'"),
        ('"ab" "c"', '"abc"'),
        ("0x10 + 010 + 0b11", "27"),
        ("(unsigned char)300", "44 ','"),
        ("(long)&row", "16"),
        ("&number == 4", "1"),
        ("!place", "0"),
        ("$nothing", "void"),
    ],
)
def test_values(expression: str, shown: str) -> None:
    assert _text(expression) == shown


def test_changes_are_stored_in_their_places() -> None:
    bench = MemoryScope()
    assert _text("number = 5", bench) == "5"
    assert bench.memory[4:8] == b"\x05\0\0\0"
    assert _text("number += 2", bench) == "7"
    assert _text("number++", bench) == "7"
    assert _text("++number", bench) == "9"
    assert _text("row[2] = row[1] = -1", bench) == "-1"
    assert bench.memory[20:28] == b"\xff" * 8
    _text("$r1 = 3", bench)
    assert bench.registers["r1"] == 3
    _text("$mine = number * 2", bench)
    assert _text("$mine + 1", bench) == "19"
    assert _text("$mine++", bench) == "18"
    assert _text("$mine", bench) == "19"
    assert _text("place = &row[1]", bench) == "(int *) 0x14"
    assert _text("*place", bench) == "-1"
    assert _text("place++", bench) == "(int *) 0x14"
    assert _text("place", bench) == "(int *) 0x18"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("nosuch", 'No symbol "nosuch" in current context.'),
        ("1 +", "A syntax error in expression, near `'."),
        ("(1", "A syntax error in expression, near `'."),
        ("5 = 6", "Left operand of assignment is not an lvalue."),
        ("&5", "Attempt to take address of value not located in memory."),
        ("*1.5", "Attempt to take contents of a non-pointer value."),
        ("number.x", "Attempt to extract a component of a value that is not a structure."),
        ("1 / 0", "Division by zero"),
        ("7 % 0", "Division by zero"),
        ("1.5 % 2", "Integer-only operation on floating point number."),
        ("row @ 0", "Invalid number 0 of repetitions."),
        ("5 @ 2", "Only values in memory can be extended with '@'."),
        ("(struct nosuch *)0", "No struct type named nosuch."),
        ("'ab", "Unmatched single quote."),
        ('"ab', "Unterminated string in expression."),
        ("0x1ffffffffffffffff", "Numeric constant too large."),
        (
            "number(1)",
            "'at 0x0x7060504' has unknown return type; cast the call to its declared return type",
        ),
        ("1.5(1)", "Invalid data type for function to be called."),
        ("nosuch + )", 'No symbol "nosuch" in current context.'),
        ("number + )", "A syntax error in expression, near `)'."),
        ("1abc", 'Invalid number "1abc".'),
        ("'ab'", "Invalid character constant."),
        ("''", "A character constant must contain at least one character."),
        ("(" * 500 + "1" + ")" * 500, "the expression is nested too deeply"),
        ("-" * 500 + "1", "the expression is nested too deeply"),
    ],
)
def test_errors(expression: str, why: str) -> None:
    with pytest.raises(CommandError) as caught:
        _text(expression)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("int", "int", True),
        ("unsigned char *", "unsigned char *", True),
        ("char (*)[3]", "char (*)[3]", True),
        ("long [2][3]", "long [2][3]", True),
        ("int (*)()", "int (*)()", True),
        ("int (*)(void)", "int (*)(void)", True),
        ("int (*)(const char *, ...)", "int (*)(const char *, ...)", True),
        ("long (*(*)(int))[2]", "long (*(*)(int))[2]", True),
        ("(const int *)&row", "const int *", False),
        ("word_t", "long", True),
        ("number", "int", False),
        ("&row", "int (*)[4]", False),
        ("row[0]", "int", False),
        ("1 + 1L", "long", False),
        ("1 + 1u", "unsigned int", False),
        ("'a'", "char", False),
        ("'a' + 1", "int", False),
        ("1.5f", "float", False),
        ("(short)1", "short", False),
        ("1 == 2", "int", False),
        ("&number - &number", "long", False),
    ],
)
def test_types(text: str, kind: str, named: bool) -> None:
    found, is_name = type_of(text, MemoryScope())
    assert (found.text, is_name) == (kind, named)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(long double)1 / 3", "0.333333333333333333342"),
        ("-(long double)2 * 3", "-6"),
        ("(long double)1 / 0", "inf"),
        ("(long double)1 == 1", "1"),
        ("(int)((long double)7 / 2)", "3"),
        ("(float)((long double)1 / 3)", "0.333333343"),
    ],
)
def test_long_numbers_keep_all_their_digits(expression: str, value: str) -> None:
    assert _text(expression) == value


@given(st.fractions(), st.booleans())
def test_a_long_number_is_the_nearest_to_what_it_is_made_from(
    number: Fraction, is_quad: bool
) -> None:
    raw = long_float_bytes(number, 16, "little", is_quad=is_quad)
    found = quad(raw, "little") if is_quad else extended(raw)
    assert isinstance(found, Fraction)
    assert abs(found - number) <= abs(number) / (1 << (113 if is_quad else 64))
    assert long_float_bytes(found, 16, "little", is_quad=is_quad) == raw


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 1e308, 5e-324])
def test_long_numbers_at_the_ends(number: float) -> None:
    raw = long_float_bytes(number, 10, "little", is_quad=False)
    found = float(extended(raw))
    assert found == number or (found != found and number != number)
