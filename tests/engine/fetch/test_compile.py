"""What fetch arguments are compiled to; texts and carets are tested with the definitions."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.errors import ProbeSyntaxError
from engine.fetch.compile import ArgContext, compile_args
from engine.fetch.numbers import decimal, leading, signed, unsigned
from engine.fetch.types import bitfield, find_type


def _fail(code: str, index: int, offset: int) -> ProbeSyntaxError:
    return ProbeSyntaxError(code, code, "", index * 1000 + offset, "test")


def _context(
    *,
    uprobe: bool = True,
    is_return: bool = False,
    at_entry: bool = False,
    extended: bool = True,
) -> ArgContext:
    arch = by_name("x86_64")
    registers = {"di": "rdi", "ax": "rax"}
    return ArgContext(
        arch=replace(arch, bench=None, probes=replace(arch.probes, fetch_registers=registers)),
        uprobe=uprobe,
        is_return=is_return,
        at_entry=at_entry,
        fail=_fail,
        extended=extended,
        symbol={"table": Base(Source.ADDRESS, value=0x5000)}.get,
    )


def _one(word: str, context: ArgContext | None = None) -> FetchArg:
    (arg,) = compile_args([word], context or _context())
    return arg


def _code(word: str, context: ArgContext | None = None) -> str:
    with pytest.raises(ProbeSyntaxError) as caught:
        compile_args([word], context or _context())
    return caught.value.code


_DI = Base(Source.REGISTER, register="rdi")
_X64 = FieldType(ValueKind.HEX, 8)
_STRING = FieldType(ValueKind.STRING, 0)


@pytest.mark.parametrize(
    ("word", "base", "derefs", "kind"),
    [
        ("%di", _DI, (), _X64),
        ("%di:s16", _DI, (), FieldType(ValueKind.SIGNED, 2)),
        ("%di:char", _DI, (), FieldType(ValueKind.CHAR, 1)),
        (
            "%orig_ax:u8",
            Base(Source.IMMEDIATE, value=2**64 - 1),
            (),
            FieldType(ValueKind.UNSIGNED, 1),
        ),
        ("%di:b3@5/16", _DI, (), FieldType(ValueKind.BITFIELD, 2, width=3, offset=5)),
        ("$stack", Base(Source.STACK_POINTER), (), _X64),
        ("$stack12", Base(Source.STACK, value=12), (), _X64),
        ("$comm", Base(Source.COMM), (), _STRING),
        ("$COMM:string", Base(Source.COMM), (), _STRING),
        ('\\"a=b"', Base(Source.TEXT, text=b"a=b"), (), _STRING),
        ('\\"\u00e9\udcff"', Base(Source.TEXT, text=b"\xc3\xa9\xff"), (), _STRING),
        ("\\017", Base(Source.IMMEDIATE, value=15), (), _X64),
        ("\\-2:s8", Base(Source.IMMEDIATE, value=2**64 - 2), (), FieldType(ValueKind.SIGNED, 1)),
        ("\\++3", Base(Source.IMMEDIATE, value=3), (), _X64),
        ("\\0x4000:string", Base(Source.IMMEDIATE, value=0x4000), (0,), _STRING),
        ("@0x4000", Base(Source.ADDRESS, value=0x4000), (), _X64),
        ("@+0x10:u32[4]", Base(Source.IMAGE, value=16), (), FieldType(ValueKind.UNSIGNED, 4, 4)),
        ("@+-16", Base(Source.IMAGE, value=-16), (), _X64),
        ("+8(%di)", _DI, (8,), _X64),
        ("-0x8(%di)", _DI, (-8,), _X64),
        ("+u8(-u010(%di))", _DI, (-8, 8), _X64),
        ("+-8(%di)", _DI, (-8,), _X64),
        ("+1(+2(+3(%di))):u8", _DI, (3, 2, 1), FieldType(ValueKind.UNSIGNED, 1)),
        ("+0(@0x4000):string", Base(Source.ADDRESS, value=0x4000), (0,), _STRING),
        ("+0(%di):string[3]", _DI, (0,), FieldType(ValueKind.STRING, 0, 3)),
        ("+0(%di):ustring", _DI, (0,), FieldType(ValueKind.USTRING, 0)),
        ("+u0(%di):string[2]", _DI, (0,), FieldType(ValueKind.STRING, 0, 2)),
        ("+0(%di):b1@0/8[2]", _DI, (0,), FieldType(ValueKind.BITFIELD, 1, 2, width=1)),
        ("+8(%di)ignored:u8", _DI, (8,), FieldType(ValueKind.UNSIGNED, 1)),
    ],
)
def test_what_is_fetched(word: str, base: Base, derefs: tuple[int, ...], kind: FieldType) -> None:
    assert _one(f"v={word}") == FetchArg("v", word, base, derefs, kind)


@pytest.mark.parametrize(
    ("words", "code", "column"),
    [
        # Found by asking a kernel: what begins like a name, and what a name without BTF is.
        (["v=\u00e9"], "NOSUP_BTFARG", 2002),
        (["v=\u05d0"], "BAD_FETCH_ARG", 2002),
        (["v=+0((%di))"], "NOSUP_BTFARG", 2005),
        (["common_pid"], "NOSUP_BTFARG", 2000),
        (["arg2=%di", "b"], "USED_ARG_NAME", 3000),
    ],
)
def test_names_without_variables(words: list[str], code: str, column: int) -> None:
    with pytest.raises(ProbeSyntaxError) as caught:
        compile_args(words, _context(extended=False))
    assert (caught.value.code, caught.value.column) == (code, column)


def test_text_of_a_uprobe_is_out_of_the_kernels_reach() -> None:
    arg = _one('v=\\"text"', _context(extended=False))
    assert (arg.base.source, arg.derefs, arg.type) == (Source.IMMEDIATE, (0,), _STRING)
    assert arg.base.value >> 47 == 0x1FFFF
    in_kernel = _one('v=\\"text"', _context(uprobe=False, extended=False))
    assert in_kernel.base == Base(Source.TEXT, text=b"text")


def test_kprobes_have_symbols_and_arguments() -> None:
    entry = _context(uprobe=False, at_entry=True)
    assert _one("v=@table+8", entry).base == Base(Source.ADDRESS, value=0x5008)
    assert _one("v=@table-8:symbol", entry).type == FieldType(ValueKind.SYMBOL, 8)
    assert _one("$arg1:symstr", entry).type == FieldType(ValueKind.SYMSTR, 8)
    assert _one("+0(%di):symstr", entry).derefs == (0,)
    assert _code("v=@nothing", entry) == "BAD_PROBE_ADDR"
    assert _code("v=%di:symbol") == "BAD_TYPE"
    leaving = _context(uprobe=False, is_return=True)
    assert _one("$retval", leaving).base == Base(Source.RETVAL)
    assert _code("$arg1:symstr", leaving) == "BAD_SYMSTRING"
    assert _one("$retvalx", _context(is_return=True)).base == Base(Source.RETVAL)


def test_names() -> None:
    words = ["%di", "%ax:u8", "n=%di", "$comm"]
    assert [arg.name for arg in compile_args(words, _context())] == ["arg1", "arg2", "n", "arg4"]


def test_a_dereference_less_fits_where_a_symbol_or_an_array_takes_an_instruction() -> None:
    def nested(count: int, inner: str) -> str:
        return "v=" + "+0(" * count + inner + ")" * count

    kprobe = _context(uprobe=False)
    assert len(_one(nested(14, "%di")).derefs) == 14
    assert _code(nested(15, "%di")) == "TOO_MANY_OPS"
    assert len(_one(nested(13, "@1")).derefs) == 13
    assert _code(nested(14, "@1")) == "TOO_MANY_OPS"
    assert len(_one(nested(12, "@table"), kprobe).derefs) == 12
    assert _code(nested(13, "@table"), kprobe) == "TOO_MANY_OPS"
    assert _one(nested(13, "@1") + ":u8").type.size == 1
    assert _code(nested(13, "@1") + ":u8[1]") == "TOO_MANY_OPS"
    assert _code(nested(13, "@1") + ":b1@0/8") == "BAD_BITFIELD"
    assert _one(nested(13, "%di") + ":b1@0/8").type.width == 1
    assert _code(nested(13, "@1")[:-13]) == "DEREF_OPEN_BRACE"


def test_how_much_fits_into_an_event() -> None:
    strings = [f"s{index}=+0(%di):string[64]" for index in range(12)]
    assert len(compile_args(strings, _context())) == 12
    with pytest.raises(ProbeSyntaxError) as caught:
        compile_args([*strings, "one=%di:u8"], _context())
    assert caught.value.code == "EVENT_TOO_BIG"
    assert len(compile_args(["%di:u8"] * 128, _context())) == 128
    with pytest.raises(ProbeSyntaxError) as caught:
        compile_args(["%di:u8"] * 129, _context())
    assert (caught.value.code, caught.value.column) == ("TOO_MANY_ARGS", 2000)


def test_limits_count_bytes() -> None:
    assert _one('v=\\"' + "a" * 60 + '"').base.text == b"a" * 60
    assert _one('v=\\"' + "\u00e9" * 30 + '"').base.text == "\u00e9".encode() * 30
    assert _code('v=\\"' + "\u00e9" * 31 + '"') == "ARG_TOO_LONG"


_BOUNDS = st.one_of(
    st.integers(-(2**65), 2**65),
    st.sampled_from([2**63, 2**63 - 1, 2**64, 2**64 - 1, -(2**63), -(2**63) - 1]),
)


@given(_BOUNDS, st.sampled_from(["{:d}", "{:#x}", "{:#X}", "0{:o}"]), st.booleans())
def test_numbers_are_those_that_fit(value: int, spelling: str, plus: bool) -> None:
    text = spelling.format(abs(value))
    sign = "-" if value < 0 else "+" if plus else ""
    assert unsigned(sign + text, 64) == (value if _fits(value, "Q") else None)
    assert signed(sign + text, 64) == (value if _fits(value, "q") else None)


def _fits(value: int, code: str) -> bool:
    try:
        struct.pack(code, value)
    except struct.error:
        return False
    return True


@pytest.mark.parametrize(
    "text", ["", "+", "-", "0x", "0xg", "08", "1 ", " 1", "++1", "\u0661", "1_0"]
)
@pytest.mark.parametrize("read", [unsigned, signed, decimal])
def test_what_is_no_number(read: Callable[[str, int], int | None], text: str) -> None:
    assert read(text, 64) is None or (read is decimal and text == "08")


def test_a_number_may_have_a_rest_in_a_bitfield_only() -> None:
    assert leading("0x1g") == (1, "g")
    assert leading("0xg") == (0, "xg")
    assert leading("q") == (0, "q")
    byte = find_type("b1@0/8", 64, uprobe=True)
    assert byte == FieldType(ValueKind.UNSIGNED, 1)
    assert find_type("b1@0/0x10", 64, uprobe=True) == FieldType(ValueKind.UNSIGNED, 2)
    assert find_type("b1@0/24", 64, uprobe=True) is None
    assert find_type(None, 32, uprobe=True) == FieldType(ValueKind.HEX, 4)
    assert bitfield("b8@0/8", byte) == FieldType(ValueKind.BITFIELD, 1, width=8)
    assert bitfield("b8@1/8", byte) is None
    assert bitfield(f"b{2**64 + 1}@0/8", byte) is None
