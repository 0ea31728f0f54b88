"""How types get along: names, sizes, promotion, what fits."""

from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace.type_rules import (
    FlexibleInteger,
    arithmetic_type,
    compatible,
    fits,
    holds,
    kind_name,
    part_count,
    promoted,
    same,
    settled,
    smallest,
    type_name,
    type_size,
)
from engine.trace.bpftrace.types import (
    BOOL,
    INT64,
    UINT64,
    VOID,
    Aggregate,
    Array,
    BufferType,
    Integer,
    Pointer,
    Record,
    ShownType,
    StackType,
    SymbolType,
    TextType,
    Tuple,
    Type,
)

I8, I32, U8, U32 = (
    Integer(8, signed=True),
    Integer(32, signed=True),
    Integer(8, signed=False),
    Integer(32, signed=False),
)
FREE = FlexibleInteger(8, signed=True)
INTEGERS = st.builds(Integer, st.sampled_from((8, 16, 32, 64)), st.booleans())


def test_names_and_sizes() -> None:
    for kind, name, kind_of, size in (
        (I32, "int32", "int", 4),
        (TextType(5), "string[5]", "string", 5),
        (TextType(0), "string", "string", 0),
        (BufferType(4), "buffer[8]", "buffer", 8),
        (Pointer(VOID), "void *", "pointer", 8),
        (Array(U8, 16), "uint8[16]", "array", 16),
        (Tuple((I8, INT64, I8)), "(int8,int64,int8)", "tuple", 24),
        (Record((("a", I8), ("b", BOOL))), "record { .a = int8, .b = bool }", "record", 2),
        (StackType("user", "perf", 3), "ustack_perf_3", "ustack", 40),
        (SymbolType("kernel"), "ksym_t", "ksym_t", 8),
        (ShownType("mac"), "mac_address", "mac_address", 6),
        (Aggregate("sum", signed=False), "usum_t", "sum_t", 8),
        (Aggregate("count", signed=False), "count_t", "count_t", 8),
        (VOID, "void", "void", 0),
    ):
        assert (type_name(kind), kind_name(kind), type_size(kind)) == (name, kind_of, size)


def test_a_literal_has_the_smallest_type() -> None:
    for value, name in (
        (0, "int8"),
        (127, "int8"),
        (128, "int16"),
        (-128, "int8"),
        (-129, "int16"),
        (1 << 31, "int64"),
        ((1 << 63) - 1, "int64"),
        (1 << 63, "uint64"),
    ):
        assert type_name(smallest(value)) == name
    assert isinstance(smallest(1), FlexibleInteger)
    assert not isinstance(smallest(-1), FlexibleInteger)


def test_promotion() -> None:
    cases: tuple[tuple[Type | None, Type, str], ...] = (
        (None, I8, "int8"),
        (None, Aggregate("count", signed=False), "uint64"),
        (I8, I32, "int32"),
        (U8, I8, "int16"),
        (U32, I32, "int64"),
        (UINT64, INT64, "int64"),
        (U8, I32, "int32"),
        (FREE, U32, "uint32"),
        (U32, FREE, "uint32"),
        (FREE, I32, "int32"),
        (TextType(3), TextType(7), "string[7]"),
        (Tuple((I8, TextType(3))), Tuple((I32, TextType(2))), "(int32,string[3])"),
        (Pointer(I8), Pointer(I32), "int32 *"),
        (INT64, Aggregate("sum"), "int64"),
        (Aggregate("sum", signed=False), Aggregate("sum"), "sum_t"),
        (TextType(3), I8, "none"),
        (Tuple((I8,)), Tuple((I8, I8)), "none"),
        (Aggregate("sum"), Aggregate("count"), "none"),
        (Array(U8, 4), Array(U8, 6), "none"),
        (Record((("a", I8),)), Record((("b", I8),)), "none"),
    )
    for now, new, name in cases:
        assert type_name(promoted(now, new)) == name, (now, new)


def test_a_sign_is_lost_and_never_comes_back() -> None:
    mixed = promoted(Tuple((FREE, I8)), Tuple((I8, FREE)))
    assert mixed == Tuple((I8, I8))
    assert settled(Tuple((FREE,))) == Tuple((I8,))


def test_what_fits() -> None:
    assert fits(U8, I32)
    assert fits(FREE, U8)
    assert not fits(U32, I32)
    assert not fits(I8, UINT64)
    assert fits(TextType(3), TextType(3))
    assert not fits(TextType(4), TextType(3))
    assert holds(U8, 255)
    assert not holds(U8, -1)


def test_arithmetic() -> None:
    assert arithmetic_type("+", UINT64, UINT64) == (UINT64, "")
    assert arithmetic_type("-", UINT64, UINT64) == (INT64, "")
    assert arithmetic_type("+", UINT64, FREE) == (UINT64, "")
    assert arithmetic_type("+", UINT64, I8) == (INT64, "")
    assert arithmetic_type("==", UINT64, I8) == (BOOL, "")
    assert "undefined behavior" in arithmetic_type("/", INT64, UINT64)[1]
    assert not arithmetic_type("/", UINT64, U32)[1]


def test_whose_memory_it_is_does_not_matter() -> None:
    assert same(Pointer(I8, "user"), Pointer(I8, "kernel"))
    assert compatible(Pointer(I8, "user"), Pointer(I32, "kernel"))


def test_parts_are_counted() -> None:
    assert part_count(Tuple((I8, Tuple((I8, I8)), Record((("a", I8),))))) == 7


@given(one=INTEGERS, other=INTEGERS)
def test_promotion_holds_both_but_for_64_bits(one: Integer, other: Integer) -> None:
    whole = promoted(one, other)
    assert whole == promoted(other, one)
    assert isinstance(whole, Integer)
    for kind in (one, other):
        assert fits(kind, whole) or (whole == INT64 and kind == UINT64)
