"""Definitions against what a kernel answered, and its rules where no kernel was asked."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.arch import by_name
from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import Base, Source
from engine.errors import ProbeError, ProbeSyntaxError
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.place import (
    Address,
    FileOffset,
    KprobeTarget,
    Lookup,
    SourceLine,
    Symbol,
    Target,
)

_RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "uprobes" / "definitions.json").read_text()
)["tests"]
_ELF = "/kf_n"  # as long as "{ELF}", so that recorded carets hold, with a name that begins "kf"
_NAMES = "ax bx cx dx si di bp sp ip flags cs ss orig_ax r8 r9 r10 r11 r12 r13 r14 r15"

EXCLUDED = {
    "head/file-relative": "a place without a '/' is a kprobe's here, whatever file it is",
}
"""Recorded tests that the parser alone does not answer as the kernel does, and why."""


def _arch(name: str = "x86_64") -> Arch:
    """An architecture with the kernel's register names, which are data of their own."""
    arch = by_name(name)
    names = {name: name for name in _NAMES.split()}
    return replace(arch, probes=replace(arch.probes, fetch_registers=names))


X86 = _arch()
ARM = _arch("aarch64")


class _Files(Lookup):
    """The files of the recording machine."""

    def file(self, path: str) -> str:
        if path in ("/tmp", "/dev/null"):
            return "NO_REGULAR_FILE"
        return "" if path in (_ELF, "/etc/passwd") else "FILE_NOT_FOUND"


def _define(line: str, arch: Arch = X86, mode: Mode = Mode.STRICT) -> Definition:
    definition = parse(line, arch, mode=mode)
    assert isinstance(definition, Definition)
    return definition


def _refused(line: str, arch: Arch = X86, mode: Mode = Mode.STRICT) -> ProbeSyntaxError:
    with pytest.raises(ProbeSyntaxError) as caught:
        parse(line, arch, mode=mode)
    return caught.value


class _Tracefs:
    """What the kernel does with lines, as far as the parser's rules go."""

    def __init__(self) -> None:
        self.events: list[Definition] = []

    def write(self, line: str) -> None:
        parsed = parse(line, X86, mode=Mode.KERNEL, lookup=_Files())
        if isinstance(parsed, Definition):
            for earlier in self.events:
                compatible(earlier, parsed)
            self.events.append(parsed)
        elif isinstance(parsed, Deletion):
            kept = [event for event in self.events if not matches(parsed, event)]
            if len(kept) == len(self.events):
                raise ProbeError("ENOENT")
            self.events = kept


@pytest.mark.parametrize(
    "recorded",
    [entry for entry in _RECORDED if entry["id"] not in EXCLUDED],
    ids=lambda entry: str(entry["id"]),
)
def test_the_parser_answers_as_the_kernel_did(recorded: dict[str, Any]) -> None:
    tracefs = _Tracefs()
    for step in recorded["steps"]:
        line = step["definition"].replace("{ELF}", _ELF)
        if "errno" not in step:
            tracefs.write(line)
        elif "error" not in step:
            with pytest.raises(ProbeError, match=step["errno"]) as silent:
                tracefs.write(line)
            assert not isinstance(silent.value, ProbeSyntaxError)
        else:
            with pytest.raises(ProbeSyntaxError) as caught:
                tracefs.write(line)
            error = caught.value
            command = step.get("command", step["definition"]).replace("{ELF}", _ELF)
            assert (error.text, error.column) == (step["error"], step["caret"])
            assert (error.command, error.subsystem) == (command, "trace_uprobe")
    listed = [line.replace("{ELF}", _ELF) for line in recorded["listed"]]
    assert [event.listing() for event in tracefs.events] == listed


def test_what_is_excluded_was_recorded_and_still_differs() -> None:
    recorded = {entry["id"]: entry for entry in _RECORDED}
    for name in EXCLUDED:
        (step,) = recorded[name]["steps"]
        assert step["errno"] == "EINVAL"
        assert _define(step["definition"]).kind == "kprobe"


@pytest.mark.parametrize(
    ("marked", "code"),
    [
        # Rules of the kernel's own caret tests for kprobes, on lines of ours ('|': the caret).
        ("p|7 work", "BAD_MAXACT_TYPE"),
        ("r|7q work", "BAD_MAXACT"),
        ("r|0:g/e work", "BAD_MAXACT"),
        ("r|4097 work", "MAXACT_TOO_BIG"),
        ("p |work-out", "BAD_PROBE_ADDR"),
        ("p |work-4", "BAD_PROBE_ADDR"),
        ("p |work+4-4", "BAD_PROBE_ADDR"),
        ("p |work+0x100000000", "BAD_PROBE_ADDR"),
        ("p |0x40zz", "BAD_PROBE_ADDR"),
        ("p work|%exit", "BAD_ADDR_SUFFIX"),
        ("p lib.so.6:work|%returns", "BAD_ADDR_SUFFIX"),
        ("p:|/e work", "NO_GROUP_NAME"),
        (f"p:|{'g' * 64}/e work", "GROUP_TOO_LONG"),
        ("p:|g.1/e work", "BAD_GROUP_NAME"),
        ("p:|1g/e work", "BAD_GROUP_NAME"),
        ("p:| work", "NO_EVENT_NAME"),
        (f"p:g/|{'e' * 64} work", "EVENT_TOO_LONG"),
        ("p:g/|e.1 work", "BAD_EVENT_NAME"),
        ("p work |$retval", "RETVAL_ON_PROBE"),
        ("p work |$stack2049", "BAD_STACK_NUM"),
        ("p work v=|$arg2049", "BAD_ARG_NUM"),
        ("p work |$argh", "BAD_VAR"),
        ("p work+4 |$arg1", "NOFENTRY_ARGS"),
        ("p work+4 v=|$arg1", "NOFENTRY_ARGS"),
        ("p work $arg* |$arg*", "DOUBLE_ARGS"),
        ("p work |$arg*", "NOSUP_BTFARG"),
        ("p work |$nothing", "BAD_VAR"),
        ("p work |%nothing", "BAD_REG_NAME"),
        ("p work |@123abc", "BAD_MEM_ADDR"),
        ("p work |@+16", "FILE_ON_KPROBE"),
        ("p |work @missing", "BAD_PROBE_ADDR"),
        ("p |work @missing+x", "FAIL_REG_PROBE"),
        ("p work |+0@0)", "DEREF_NEED_BRACE"),
        ("p work |+0x(@0)", "BAD_DEREF_OFFS"),
        ("p work +0(+0(@0|)", "DEREF_OPEN_BRACE"),
        ("p work -8(|$comm)", "COMM_CANT_DEREF"),
        ('p work +0(|\\"abc")', "COMM_CANT_DEREF"),
        ("p work |&1", "BAD_FETCH_ARG"),
        (f"p work +0(|{'+0(' * 13}@0{')' * 14}", "TOO_MANY_OPS"),
        ("p work +0(@8):u8[9|", "ARRAY_NO_CLOSE"),
        ("p work +0(@8):u8[9]|b", "BAD_ARRAY_SUFFIX"),
        ("p work +0(@8):u8[|9b]", "BAD_ARRAY_NUM"),
        ("p work +0(@8):u8[|0]", "BAD_ARRAY_NUM"),
        ("p work +0(@8):u8[|65]", "ARRAY_TOO_BIG"),
        ("p work @8:|u9", "BAD_TYPE"),
        ("p work @8:|%pd", "BAD_TYPE"),
        ("p work $stack0:|string", "BAD_STRING"),
        ("p work @8:|b9@q/16", "BAD_BITFIELD"),
        ("p work @8:|b9@8/16", "BAD_BITFIELD"),
        ("p work $stack:|symstr", "BAD_SYMSTRING"),
        ('p work \\"abc":|u8', "NEED_STRING_TYPE"),
        ('p work \\"abc|', "IMMSTR_NO_CLOSE"),
        ('p work \\"|', "IMMSTR_NO_CLOSE"),
        (f"p work |{'n' * 33}=@8", "ARG_NAME_TOO_LONG"),
        ("p work |=@8", "NO_ARG_NAME"),
        ("p work |a.b=@8", "BAD_ARG_NAME"),
        ("p work a=@8 |a=@9", "USED_ARG_NAME"),
        ("p work arg2=@8 |@9", "USED_ARG_NAME"),
        ("p work |__probe_func=@8", "USED_ARG_NAME"),
        (f"p work |@{'1' * 63}", "ARG_TOO_LONG"),
        ("p work a=|", "NO_ARG_BODY"),
        ("r work |$retvalue", "NOSUP_BTFARG"),
        ("p work a=|b->c", "NOSUP_BTFARG"),
    ],
)
def test_carets_of_kprobes(marked: str, code: str) -> None:
    error = _refused(marked.replace("|", ""))
    assert (error.code, error.column) == (code, marked.index("|"))
    assert error.subsystem == "trace_kprobe"


@pytest.mark.parametrize(
    ("line", "code", "behind"),
    [
        # Found when the body is read: from behind the outermost prefix (without its u).
        ("p work v=+8(+8(%di)):b0@0/32", "BAD_BITFIELD", 3),
        ("p work v=+u8(%di):b0@0/32", "BAD_BITFIELD", 3),
        ("p work v=-8(%di):b0@0/32", "BAD_BITFIELD", 3),
        ("p work v=+-8(%di):b0@0/32", "BAD_BITFIELD", 3),
        ("p work v=+u8(%di):u8[4]", "BAD_STRING", 3),
        ("p work v=+u8(%di):symstr", "BAD_SYMSTRING", 3),
    ],
)
def test_carets_behind_a_dereference_are_as_far_off_as_the_kernels(
    line: str, code: str, behind: int
) -> None:
    error = _refused(line)
    assert (error.code, error.column) == (code, line.index(":") + 1 + behind)


def test_the_message_shows_the_caret_under_the_column() -> None:
    first, command, caret = str(_refused("p:a  work   %zz")).splitlines()
    assert first == "trace_kprobe: error: Invalid register name"
    assert command == "  Command: p:a work %zz"
    assert command[caret.index("^") :] == "%zz"


@pytest.mark.parametrize(
    ("line", "target", "listing"),
    [
        ("p work", Symbol("work"), "p:kprobes/p_work_0 work"),
        ("p work+0x10", Symbol("work", 16), "p:kprobes/p_work_16 work+16"),
        ("p work+010%return", Symbol("work", 8), "r:kprobes/r_work_8 work+8"),
        ("r12:g-1/ work", Symbol("work"), "r12:g-1/r_work_0 work"),
        ("r0x10:e work", Symbol("work"), "r16:kprobes/e work"),
        ("pretty:g.e work", Symbol("work"), "p:g/e work"),
        (
            "p libc.so.6:free",
            Symbol("free", 0, "libc.so.6"),
            "p:kprobes/p_libc_so_6_free_0 libc.so.6:free",
        ),
        (
            "p ld-linux-x86-64.so.2:f+4",
            Symbol("f", 4, "ld-linux-x86-64.so.2"),
            "p:kprobes/p_ld_linux_x86_64_so_2_f_4 ld-linux-x86-64.so.2:f+4",
        ),
        ("p ns::f", Symbol("ns::f"), "p:kprobes/p_ns__f_0 ns::f"),
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
    definition = _define(line)
    assert definition.target == target
    assert definition.listing().startswith(listing)
    assert definition.place == line.split()[1]
    assert definition.kind == ("uprobe" if isinstance(target, FileOffset) else "kprobe")


def test_automatic_names_are_cut_where_the_kernel_cuts() -> None:
    assert _define(f"p {'s' * 80}").event == "p_" + "s" * 61
    assert _define(f"p /x/{'f' * 80}:0x10").event == "p_" + "f" * 61


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
        ("p /bin/x:main", "PATH:OFFSET"),
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
    assert _define(("p work " + "#" * 4087) + "\n").target == Symbol("work")


def test_override_of_strict_mode_is_no_part_of_the_command() -> None:
    definition = _define("! p:e  work  %di")
    assert definition.strict_override
    assert definition.command == "p:e work %di"
    assert not _define("p:e work %di").strict_override
    assert _refused("!p work %zz").column == len("p work ")


def test_return_probes_by_number_are_the_kernels_oversight() -> None:
    assert _define("r 0x401156 $retval").args[0].base == Base(Source.RETVAL)
    assert _define("p 0x401156%return").is_return
    assert _refused("r 0x401156 $retval", mode=Mode.KERNEL).code == "RETVAL_ON_PROBE"
    assert _refused("p 0x401156%return", mode=Mode.KERNEL).code == "BAD_PROBE_ADDR"
    assert _define("r 0x401156 %di", mode=Mode.KERNEL).is_return


def test_arguments_of_functions() -> None:
    def base(line: str, arch: Arch = X86) -> Base:
        return _define(line, arch).args[0].base

    assert base("p work $arg2") == Base(Source.REGISTER, register="rsi")
    assert base("p work v=$arg7") == Base(Source.STACK, value=1)
    assert base("p work $arg1", ARM) == Base(Source.REGISTER, register="x0")
    assert base("p work $arg9", ARM) == Base(Source.STACK, value=0)
    assert base("r work v=$arg3") == Base(Source.ENTRY, value=2)
    assert _refused("p 0x401156 $arg1").code == "NOFENTRY_ARGS"
    assert _refused("p /x/y:1%return v=$arg1").code == "NOFENTRY_ARGS"


class _Answers(Lookup):
    """A program with one function behind a landing pad, and one variable."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def place(self, place: KprobeTarget, text: str, is_return: bool) -> str:
        return self.problem

    def entry(self, place: KprobeTarget, text: str) -> bool:
        return isinstance(place, Symbol) and place.offset in (0, 4)

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
    definition = _define("p:e  work+3 %di")
    error = definition.error("BAD_INSN_BNDRY")
    assert (error.column, error.command) == (4, "p:e work+3 %di")
    assert definition.error("BAD_ARG_NUM", 2).column == 11
    assert definition.error("DIFF_ARG_TYPE", 3).column == len(definition.command) + 1


def _clash(first: str, second: str) -> str:
    with pytest.raises(ProbeError) as caught:
        compatible(_define(first), _define(second))
    error = caught.value
    return error.code if isinstance(error, ProbeSyntaxError) else "unlogged"


def test_siblings() -> None:
    assert _clash("p:g/e work", "p:g/e /x/y:1") == "EVENT_EXIST"
    assert _clash("p:g/e work", "r:g/e play") == "DIFF_PROBE_TYPE"
    assert _clash("p:g/e work %di", "p:g/e play %di:u64") == "DIFF_ARG_TYPE"
    assert _clash("p:g/e work @8:u8[2]", "p:g/e play @8:u8[3]") == "DIFF_ARG_TYPE"
    assert _clash("p:g/e work %di", "p:g/e work+0 %di") == "SAME_PROBE"
    assert _clash("p:a /x/y:1(2)", "p:b /x/y:1(3)") == "unlogged"
    compatible(_define("p:g/e work @8:u8"), _define("p:g/e play @9:b2@0/8"))
    compatible(_define("p:g/e work %di"), _define("p:g/e work arg1=%si"))
    compatible(_define("p:g/e work"), _define("r:g/f work"))
    compatible(_define("p:a /x/y:1(2)"), _define("p:b /x/y:2(3)"))


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
    assert matches(deletion, _define("p:g/e work+0x8 %di b=%si:u8")) is goes


def test_a_listing_deletes_what_it_lists() -> None:
    for line in ("p 0x1000", "p /x/y:0x12%return(8)", "p main.c:3", "r3 libc.so.6:free+4"):
        definition = _define(line)
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
@settings(max_examples=1500, deadline=None)
@example("p a " + "9" * 4090, X86)
@example("p a " + "+0(" * 21, X86)
@example("p a " + "0" * 4090 + ":u8", X86)
def test_any_line_is_read_or_refused(line: str, arch: Arch) -> None:
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


def test_a_definition_is_read_in_a_tenth_of_a_millisecond() -> None:
    line = "p:g/e work+4 a=%di:s32 b=+8(%si):string c=+0(+16(%dx)):x64"
    best = min(_seconds(line) for _ in range(5))
    assert best < 1e-4


def _seconds(line: str) -> float:
    start = time.process_time()
    for _ in range(200):
        parse(line, X86)
    return (time.process_time() - start) / 200
