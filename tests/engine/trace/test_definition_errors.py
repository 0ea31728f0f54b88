"""Definitions against what a kernel answered: texts, columns, listings."""

import json
from pathlib import Path
from typing import Any

import pytest
from definitionkit import X86, defined, refused

from engine.arch.plan import Mode
from engine.errors import ProbeError, ProbeSyntaxError
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.place_syntax import Lookup

_RECORDED = json.loads(
    (Path(__file__).parents[2] / "data" / "uprobes" / "definitions.json").read_text()
)["tests"]
_ELF = "/kf_n"  # as long as "{ELF}", so that recorded carets hold, with a name that begins "kf"

EXCLUDED = {
    "head/file-relative": "a place without a '/' is a kprobe's here, whatever file it is",
}
"""Recorded tests that the parser alone does not answer as the kernel does, and why."""


class _Files(Lookup):
    """The files of the recording machine."""

    def file(self, path: str) -> str:
        if path in ("/tmp", "/dev/null"):
            return "NO_REGULAR_FILE"
        return "" if path in (_ELF, "/etc/passwd") else "FILE_NOT_FOUND"


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
        assert defined(step["definition"]).kind == "kprobe"


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
    error = refused(marked.replace("|", ""))
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
    error = refused(line)
    assert (error.code, error.column) == (code, line.index(":") + 1 + behind)


def test_the_message_shows_the_caret_under_the_column() -> None:
    first, command, caret = str(refused("p:a  work   %zz")).splitlines()
    assert first == "trace_kprobe: error: Invalid register name"
    assert command == "  Command: p:a work %zz"
    assert command[caret.index("^") :] == "%zz"
