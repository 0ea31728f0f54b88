"""Filters: what they mean, against Python's own operators and fnmatch; what is refused where."""

import struct
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.errors import GuestFaultError
from engine.fetch.predicate import PredicateContext, compile_predicate
from engine.trace.filter import FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.filterterms import cpu_list
from engine.trace.rows import HEAD, EventInfo
from engine.trace.syscalls import arguments, enter_info

RAX = Base(Source.REGISTER, "rax")
TYPES = {
    "a": FieldType(ValueKind.SIGNED, 4),
    "b": FieldType(ValueKind.UNSIGNED, 8),
    "c": FieldType(ValueKind.HEX, 1),
    "s": FieldType(ValueKind.STRING, 0),
}
INFO = EventInfo.of(
    9, "g", "e", RecordLayout.of(tuple(FetchArg(n, "x", RAX, (0,), t) for n, t in TYPES.items()))
)


def row(a: int = 0, b: int = 0, c: int = 0, s: bytes | None = b"", thread: int = 77) -> bytes:
    text = b"" if s is None else s + b"\0"
    words = struct.pack("<QQ", 5, 0x401000)
    words += struct.pack("<qQQ", a, b, c) + struct.pack("<II", INFO.words * 8, len(text))
    data = words + text + bytes(-len(text) % 8)
    return HEAD.pack(9, len(data) // 8 + 1, thread) + data


def passes(text: str, data: bytes, machine: FilterMachine | None = None) -> bool:
    context = PredicateContext(lambda thread: {77: b"prog"}.get(thread))
    return compile_predicate(parse_filter(text, INFO, machine).ops, context)(data, 0)


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
    "&": lambda left, right: bool(left & right),
}


@given(
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
)
def test_numbers_compare_as_numbers(sign: str, value: int, other: int) -> None:
    assert passes(f"a {sign} {other}", row(a=value)) is COMPARISONS[sign](value, other)
    left, right = value % 2**32, other % 2**32
    assert passes(f"b{sign}{right:#x}", row(b=left)) is COMPARISONS[sign](left, right)


class Tree:
    """A condition as text for the filter and as text for Python."""

    def __init__(self, theirs: str, ours: str) -> None:
        self.filter, self.python = theirs, ours


LEAVES = st.builds(
    lambda name, value: Tree(f"{name} == {value}", f"({name} == {value})"),
    st.sampled_from("ab"),
    st.integers(0, 2),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda t: Tree(f"!({t.filter})", f"(not {t.python})"), inner),
        st.builds(lambda t: Tree(f"({t.filter})", t.python), inner),
        st.builds(
            lambda x, y: Tree(f"{x.filter} && {y.filter}", f"({x.python} and {y.python})"),
            inner.map(lambda t: Tree(f"({t.filter})", t.python)),
            inner.map(lambda t: Tree(f"({t.filter})", t.python)),
        ),
        st.builds(
            lambda x, y: Tree(f"{x.filter}||{y.filter}", f"({x.python} or {y.python})"),
            inner.map(lambda t: Tree(f"({t.filter})", t.python)),
            inner.map(lambda t: Tree(f"({t.filter})", t.python)),
        ),
    ),
    max_leaves=8,
)


@given(TREES)
def test_logic_is_pythons(tree: Tree) -> None:
    ops = parse_filter(tree.filter, INFO).ops
    test = compile_predicate(ops)
    assert all(index < op.target for index, op in enumerate(ops))
    for a in range(3):
        for b in range(3):
            expected = eval(tree.python, {"a": a, "b": b})
            assert test(row(a=a, b=b), 0) is expected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=6))
def test_and_binds_tighter_than_or(terms: list[tuple[bool, int]]) -> None:
    text = python = f"a == {terms[0][1]}"
    for is_and, value in terms[1:]:
        text += f" {'&&' if is_and else '||'} a != {value}"
        python += f" {'and' if is_and else 'or'} a != {value}"
    for a in range(3):
        assert passes(text, row(a=a)) is eval(python, {"a": a})


@given(
    st.text("ab*?[]x", min_size=1, max_size=6).filter(
        lambda t: "[]" not in t and t.count("[") == 0
    ),
    st.text("abx]", max_size=6),
)
def test_globs_are_fnmatchs(pattern: str, value: str) -> None:
    expected = fnmatchcase(value, pattern)
    assert passes(f's ~ "{pattern}"', row(s=value.encode())) is expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("x[abc]y*", b"xbyz", True),
        ("[!a-c]*", b"dog", True),
        ("[!a-c]*", b"bog", False),
        ("[]]x", b"]x", True),
        ("[a", b"[a", True),
        ("a\\*b", b"a*b", True),
        ("a\\*b", b"axb", False),
        ("?", b"", False),
        ("[a-]?", b"-x", True),
        ("!a*", b"b", True),
        ("1*", b"1*", True),
        ("1*", b"12", False),
    ],
)
def test_globs_of_the_kernel(pattern: str, value: bytes, expected: bool) -> None:
    assert passes(f's ~ "{pattern}"', row(s=value)) is expected


@pytest.mark.parametrize(
    ("text", "alone", "before"),
    [
        # A string at 16, alone and with "hello" recorded behind it: Linux 6.18.
        ('s == ""', False, False),
        ('s != ""', True, True),
        ('s ~ ""', False, False),
        ('s == "*"', False, False),
        ('s ~ "*"', False, False),
        ('s ~ "**"', True, True),
        ('s == "x"', False, False),
        ('s != "x"', True, True),
        ('s ~ "x"', False, False),
        ('s == "(fault)"', False, False),
        ('s ~ "(*"', False, False),
        ('s == "hello"', False, True),
        ('s != "hello"', True, False),
        ('s ~ "hello"', False, True),
        ('s ~ "h*"', False, True),
        ('s ~ "*ell*"', False, True),
        ('s ~ "*llo"', False, False),
        ('s ~ "h?llo"', False, False),
        ('s ~ "[h]ello"', False, False),
        ('s ~ "?*"', False, False),
        ('s ~ "h*o"', False, False),
        ('!(s == "")', True, True),
    ],
)
def test_strings_that_could_not_be_read(text: str, alone: bool, before: bool) -> None:
    assert passes(text, row(s=None)) is alone
    lacking = row(s=None)
    number, words, thread = HEAD.unpack_from(lacking)
    followed = HEAD.pack(number, words + 1, thread) + lacking[HEAD.size :] + b"hello\0\0\0"
    assert passes(text, followed) is before


def test_strings() -> None:
    assert passes('s == "a b"', row(s=b"a b"))
    assert not passes('s == "a"', row(s=b"ab"))
    assert passes("s != 'a'", row(s=b"ab"))
    assert not passes('s == "(fault)"', row(s=None))
    assert passes('comm == "prog"', row())
    assert passes('COMM ~ "p*g"', row())
    assert not passes('COMM ~ "*og"', row())  # 16 bytes with their NULs, as in the kernel
    assert passes('COMM != "prog"', row(thread=1))


def test_fields_of_all_events() -> None:
    assert passes("common_pid == 77 && common_type == 9", row())
    assert passes("common_flags == 0 && common_preempt_count < 1", row())
    assert passes("cpu == 0 && CPU < 1 && common_cpu >= 0", row())
    assert not passes("CPU & 1 || cpu == -1", row())
    assert passes("__probe_ip == 0x401000", row())


def test_sets_of_cpus() -> None:
    two = FilterMachine(cpus=2)
    assert passes("CPU & CPUS{0-1}", row(), two)
    assert passes("a == CPUS{1}", row(a=1), two)
    assert not passes("a == CPUS{0-1}", row(a=1), two)
    assert passes("a != CPUS{0-1}", row(a=1), two)
    assert not passes("a != CPUS{0-1}", row(a=2), two)
    assert passes("b & CPUS{0-1}", row(b=1 << 32), two)


@given(st.sets(st.integers(0, 40)))
def test_lists_of_cpus(cpus: set[int]) -> None:
    text = ",".join(map(str, sorted(cpus)))
    assert cpu_list(text, 64) == sum(1 << cpu for cpu in cpus)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-3", 0b1111),
        ("0-7:2/4", 0b00110011),
        ("all", 0b11),
        ("N", 0b10),
        ("1-N", 0b10),
        ("3-1", None),
        ("x", None),
        ("0-3:5/4", None),
        ("0-3:0/4", None),
    ],
)
def test_lists_of_cpus_in_all_forms(text: str, expected: int | None) -> None:
    assert cpu_list(text, 2) == expected


def test_functions_of_the_guest() -> None:
    machine = FilterMachine(functions={"f": (0x400FF0, 0x401010), 5: (0, 8)}.get)
    assert passes("__probe_ip.function == f", row(), machine)
    assert not passes("__probe_ip.function != f", row(), machine)
    assert not passes("b.function == 5", row(b=8), machine)
    for text in ("__probe_ip.function == g", "b.function < f", "a.function == f"):
        with pytest.raises(FilterSyntaxError):
            parse_filter(text, INFO, machine)


def test_pointers_to_strings() -> None:
    fields = arguments("openat", False)
    assert fields is not None
    info = enter_info(4, "openat", fields)
    data = HEAD.pack(4, info.words, 7) + bytes(16) + struct.pack("<5Q", 257, 0, 0x5000, 0, 0)
    data += bytes(8)

    def read(address: int, limit: int) -> bytes:
        if address != 0x5000:
            raise GuestFaultError(address, "read")
        return b"/etc/passwd"

    def test(text: str, machine: FilterMachine | None = None) -> bool:
        ops = parse_filter(text, info, machine).ops
        return compile_predicate(ops, PredicateContext(read_cstring=read))(data, 0)

    assert test('filename ~ "/etc/*"')
    assert test('filename.ustring == "/etc/passwd"')
    assert not test('filename != "/etc/passwd"')
    kernel = FilterMachine(kernel_pointers=True)
    assert not test('filename ~ "/etc/*"', kernel)
    assert test('filename.ustring ~ "/etc/*"', kernel)
    assert test("dfd == 0 && __syscall_nr == 257")


@given(st.text("ab() &|!=<>~\"'019xCPUS{}-.", max_size=24))
def test_no_text_breaks_the_parser(text: str) -> None:
    column = 0
    try:
        found = parse_filter(text, INFO)
        compile_predicate(found.ops)(row(), 0)
    except FilterSyntaxError as error:
        column = error.column
    assert 0 <= column <= len(text) + 1


def test_zero_clears() -> None:
    cleared = parse_filter("  0 \n", INFO)
    assert (cleared.text, cleared.ops) == ("none", ())
    assert compile_predicate(cleared.ops)(row(), 0)


def test_a_filter_may_be_long() -> None:
    text = " && ".join(f"a != {n}" for n in range(1000))
    assert passes(text, row(a=-1))
    assert not passes(text, row(a=999))
