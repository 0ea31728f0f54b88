"""Rules of definitions: places, names, siblings, deletion, and that any line is answered."""

import pytest
from definitionkit import ARM, X86, defined, refused
from hypothesis import example, given, settings
from hypothesis import strategies as st
from workcount import calls

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import Base, Source
from engine.errors import ProbeError, ProbeSyntaxError
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.place_syntax import (
    Address,
    FileOffset,
    KprobeTarget,
    Lookup,
    SourceLine,
    SymbolPlace,
    Target,
)


@pytest.mark.parametrize(
    ("line", "target", "listing"),
    [
        ("p work", SymbolPlace("work"), "p:kprobes/p_work_0 work"),
        ("p work+0x10", SymbolPlace("work", 16), "p:kprobes/p_work_16 work+16"),
        ("p work+010%return", SymbolPlace("work", 8), "r:kprobes/r_work_8 work+8"),
        ("r12:g-1/ work", SymbolPlace("work"), "r12:g-1/r_work_0 work"),
        ("r0x10:e work", SymbolPlace("work"), "r16:kprobes/e work"),
        ("pretty:g.e work", SymbolPlace("work"), "p:g/e work"),
        (
            "p libc.so.6:free",
            SymbolPlace("free", 0, "libc.so.6"),
            "p:kprobes/p_libc_so_6_free_0 libc.so.6:free",
        ),
        (
            "p ld-linux-x86-64.so.2:f+4",
            SymbolPlace("f", 4, "ld-linux-x86-64.so.2"),
            "p:kprobes/p_ld_linux_x86_64_so_2_f_4 ld-linux-x86-64.so.2:f+4",
        ),
        ("p ns::f", SymbolPlace("ns::f"), "p:kprobes/p_ns__f_0 ns::f"),
        (
            "p 0x401156",
            Address(0x401156),
            "p:kprobes/p_0x0000000000401156 0x0000000000401156",
        ),
        ("p 4198742%return", Address(4198742), "r:kprobes/r_0x0000000000401156 "),
        ("p main.c:12", SourceLine("main.c", 12), "p:kprobes/p_main_c_12 main.c:12"),
        ("r main.c:12 $retval", SourceLine("main.c", 12), "r:kprobes/r_main_c_12 main.c:12 "),
        (
            "p /a/libfoo-2.so:64(0x10)",
            FileOffset("/a/libfoo-2.so", 64, 16),
            "p:uprobes/p_libfoo_0x40 /a/libfoo-2.so:0x0000000000000040(0x10)",
        ),
        (
            "p ./a:b/c:0x9%return",
            FileOffset("./a:b/c", 9),
            "r:uprobes/p_c_0x9 ./a:b/c:0x0000000000000009",
        ),
    ],
)
def test_places(line: str, target: Target, listing: str) -> None:
    definition = defined(line)
    assert definition.target == target
    assert definition.listing().startswith(listing)
    assert definition.place == line.split()[1]
    assert definition.kind == ("uprobe" if isinstance(target, FileOffset) else "kprobe")


def test_automatic_names_are_cut_where_the_kernel_cuts() -> None:
    assert defined(f"p {'s' * 80}").event == "p_" + "s" * 61
    assert defined(f"p /x/{'f' * 80}:0x10").event == "p_" + "f" * 61


@pytest.mark.parametrize("line", ["", "  ", "\n", "# all of it", "  # p work"])
def test_lines_that_say_nothing(line: str) -> None:
    assert parse(line, X86) is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x work", "begins with"),
        ("p", "needs a place"),
        ("p#:e work", "needs a place"),
        (" -:g/e", "begins with"),
        ("-:", "deletion"),
        ("-e", "deletion"),
        ("!", "in front of"),
        ("!-:e", "begins with"),
        ("p /bin/x", "PATH:OFFSET"),
        ("p /bin/x:", "PATH:OFFSET"),
        ("p work\np play", "one line"),
        ("p work\0", "one line"),
        ("p \ud800", "no text"),
        ("p work " + "a" * 4088, "4094"),
    ],
)
def test_refused_without_a_log(line: str, text: str) -> None:
    with pytest.raises(ProbeError, match=text) as caught:
        parse(line, X86)
    assert not isinstance(caught.value, ProbeSyntaxError)


def test_a_line_of_4094_bytes_is_read() -> None:
    assert defined(("p work " + "#" * 4087) + "\n").target == SymbolPlace("work")


def test_override_of_strict_mode_is_no_part_of_the_command() -> None:
    definition = defined("! p:e  work  %di")
    assert definition.strict_override
    assert definition.command == "p:e work %di"
    assert not defined("p:e work %di").strict_override
    assert refused("!p work %zz").column == len("p work ")


def test_return_probes_by_number_are_the_kernels_oversight() -> None:
    assert defined("r 0x401156 $retval").args[0].base == Base(Source.RETVAL)
    assert defined("p 0x401156%return").is_return
    assert refused("r 0x401156 $retval", mode=Mode.KERNEL).code == "RETVAL_ON_PROBE"
    assert refused("p 0x401156%return", mode=Mode.KERNEL).code == "BAD_PROBE_ADDR"
    assert defined("r 0x401156 %di", mode=Mode.KERNEL).is_return


def test_arguments_of_functions() -> None:
    def base(line: str, arch: Arch = X86) -> Base:
        return defined(line, arch).args[0].base

    assert base("p work $arg2") == Base(Source.REGISTER, register="rsi")
    assert base("p work v=$arg7") == Base(Source.STACK, value=1)
    assert base("p work $arg1", ARM) == Base(Source.REGISTER, register="x0")
    assert base("p work $arg9", ARM) == Base(Source.STACK, value=0)
    assert base("r work v=$arg3") == Base(Source.ENTRY, value=2)
    assert refused("p 0x401156 $arg1").code == "NOFENTRY_ARGS"
    assert refused("p /x/y:1%return v=$arg1").code == "NOFENTRY_ARGS"


class _Answers(Lookup):
    """A program with one function behind a landing pad, and one variable."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def place(self, place: KprobeTarget, text: str, is_return: bool) -> str:
        return self.problem

    def entry(self, place: Target, text: str) -> bool:
        return isinstance(place, SymbolPlace) and place.offset in (0, 4)

    def symbol(self, name: str, target: Target, text: str) -> Base | None:
        return Base(Source.ADDRESS, value=0x4040B8) if name == "counter" else None


def test_a_program_answers_in_the_kernels_order() -> None:
    program = _Answers("BAD_RETPROBE")
    with pytest.raises(ProbeSyntaxError) as caught:
        parse("r:1/e work+9 %zz", X86, lookup=program)
    assert (caught.value.code, caught.value.column) == ("BAD_RETPROBE", len("r:1/e "))
    program = _Answers("")
    definition = parse("p work+4 $arg1 @counter-8:u16 +4(@counter)", X86, lookup=program)
    assert isinstance(definition, Definition)
    assert definition.args[0].base == Base(Source.REGISTER, register="rdi")
    assert definition.args[1].base == Base(Source.ADDRESS, value=0x4040B0)
    assert definition.args[2].derefs == (4,)


def test_what_is_wrong_later_is_said_at_its_word() -> None:
    definition = defined("p:e  work+3 %di")
    error = definition.error("BAD_INSN_BNDRY")
    assert (error.column, error.command) == (4, "p:e work+3 %di")
    assert definition.error("BAD_ARG_NUM", 2).column == 11
    assert definition.error("DIFF_ARG_TYPE", 3).column == len(definition.command) + 1


def _clash(first: str, second: str) -> str:
    with pytest.raises(ProbeError) as caught:
        compatible(defined(first), defined(second))
    error = caught.value
    return error.code if isinstance(error, ProbeSyntaxError) else "unlogged"


def test_siblings() -> None:
    assert _clash("p:g/e work", "p:g/e /x/y:1") == "EVENT_EXIST"
    assert _clash("p:g/e work", "r:g/e play") == "DIFF_PROBE_TYPE"
    assert _clash("p:g/e work %di", "p:g/e play %di:u64") == "DIFF_ARG_TYPE"
    assert _clash("p:g/e work @8:u8[2]", "p:g/e play @8:u8[3]") == "DIFF_ARG_TYPE"
    assert _clash("p:g/e work %di", "p:g/e work+0 %di") == "SAME_PROBE"
    assert _clash("p:a /x/y:1(2)", "p:b /x/y:1(3)") == "unlogged"
    compatible(defined("p:g/e work @8:u8"), defined("p:g/e play @9:b2@0/8"))
    compatible(defined("p:g/e work %di"), defined("p:g/e work arg1=%si"))
    compatible(defined("p:g/e work"), defined("r:g/f work"))
    compatible(defined("p:a /x/y:1(2)"), defined("p:b /x/y:2(3)"))


def test_a_symbol_of_a_path_is_an_extension() -> None:
    found = parse("p /bin/x:a::f+0x10%return", X86)
    assert isinstance(found, Definition)
    assert found.target == SymbolPlace("a::f", 16, "/bin/x")
    assert (found.kind, found.is_return, found.event) == ("kprobe", True, "r_x_a__f_16")
    with pytest.raises(ProbeError, match="PATH:SYMBOL is not the kernel's"):
        parse("p /bin/x:f", X86, mode=Mode.KERNEL)


@pytest.mark.parametrize(
    ("line", "goes"),
    [
        ("-:e", True),
        ("-:g/e", True),
        ("-:g/", True),
        ("-:h/", False),
        ("-:h/e", False),
        ("-:/e", False),
        ("-:f", False),
        ("-:e work+8", True),
        ("-:e work+0x8", False),
        ("-:e work+8 arg1=%di", True),
        ("-:e work+8 arg1=%di b=%si:u8", True),
        ("-:e work+8 %di", False),
        ("-:e work+8 b=%si:u8", False),
        ("-:e work+8 arg1=%di b=%si:u8 c=%dx", False),
    ],
)
def test_deletion(line: str, goes: bool) -> None:
    deletion = parse(line, X86)
    assert isinstance(deletion, Deletion)
    assert matches(deletion, defined("p:g/e work+0x8 %di b=%si:u8")) is goes


def test_a_listing_deletes_what_it_lists() -> None:
    for line in ("p 0x1000", "p /x/y:0x12%return(8)", "p main.c:3", "r3 libc.so.6:free+4"):
        definition = defined(line)
        deletion = Deletion(definition.group, definition.event, definition.listing().split()[1])
        assert matches(deletion, definition)


# fmt: off
_PIECES = [
    "p", "r", "p:", "r9:", "p:g/e", "-:", "!", "#", "/", ".", ":", "=", "%di", "%return",
    "$retval", "$stack", "$stack1", "$comm", "$arg1", "$arg*", "@", "@4", "@+4", "@s", "+", "-",
    "+0(", "-u8(", "(", ")", "[", "]", "[4]", "\\", "\\\"", "\"", "abc", ":u8", ":x64",
    ":string", ":symstr", ":symbol", ":b4@2/8", ":char", "work", "work+4", "/a/b:4", "main.c:7",
    "0x40", "0", "-1", "99999999999999999999", "\u00e9", ",", "\t", "\x0b",
]
# fmt: on
_LINES = st.lists(st.sampled_from([*_PIECES, " ", " "]), max_size=40).map("".join)
_SHAPED = st.tuples(
    st.sampled_from(["p", "r", "p:g/e", "r3:g/", "!p"]),
    st.sampled_from(["work", "work+4", "/a/b:0x10", "lib:f%return", "0x40", "m.c:3"]),
    st.lists(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), max_size=5),
).map(lambda parts: " ".join([parts[0], parts[1], *parts[2]]))


@given(st.one_of(_SHAPED, _LINES, st.text(max_size=80)), st.sampled_from([X86, ARM]))
@settings(max_examples=500, deadline=None)
@example("p a " + "9" * 4090, X86)
@example("p a " + "+0(" * 21, X86)
@example("p a " + "0" * 4090 + ":u8", X86)
def test_any_line_is_read_orrefused(line: str, arch: Arch) -> None:
    parsed: object
    try:
        parsed = parse(line, arch)
    except ProbeError as error:
        parsed = error
    if isinstance(parsed, ProbeSyntaxError):
        assert 0 <= parsed.column <= len(parsed.command) + 1
    if isinstance(parsed, Definition):
        again = parse(parsed.listing(), arch)
        assert isinstance(again, Definition)
        assert again.listing() == parsed.listing()


def test_a_definition_is_read_with_few_calls() -> None:
    line = "p:g/e work+4 a=%di:s32 b=+8(%si):string c=+0(+16(%dx)):x64"
    calls(lambda: parse(line, X86), at_most=300)
