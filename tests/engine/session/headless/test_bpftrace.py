"""Scripts that cannot be attached to a guest: one error at its place, and nothing runs."""

from collections.abc import Sequence

import pytest
from compiled import build

from engine.errors import KprobeTuiError
from engine.image.dies import Unit
from engine.image.names import GlobalNames
from engine.session.headless.bpftrace import list_probes, opened_script, script_text
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.scripts import ScriptRequest
from engine.trace.bpftrace.text import WrongScriptError

PROGRAM = """
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { return fib(3); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("script"), "program", PROGRAM, "-g"))


def attached(program: str, script: str) -> list[bytes]:
    """Attach a script to the program; what it warned of."""
    told: list[bytes] = []
    text = script.replace("PROGRAM", program)
    request = ScriptRequest(GuestConfig(program), "stdin", text)
    with opened_script(request, told.append, told.append):
        return told


WRONG: Sequence[tuple[str, str, str]] = (
    ("BEGIN { print(fooo); }", "Unknown identifier: 'fooo'", "fooo"),
    (
        "uprobe:PROGRAM:nosuch { }",
        "No matches for uprobe PROGRAM:nosuch.",
        "uprobe:PROGRAM:nosuch",
    ),
    ("uprobe:/no/such:f { }", "uprobe target file '/no/such' does not exist", "uprobe:/no/such:f"),
    (
        "uprobe:PROGRAM:fib+4096 { }",
        "Offset outside the function bounds ('fib' size is ",
        "uprobe:PROGRAM:fib+4096",
    ),
    ("uprobe:PROGRAM:0x1 { }", "Could not resolve address: PROGRAM:0x1", "uprobe:PROGRAM:0x1"),
    ("usdt:PROGRAM:a:b { }", "No matches for usdt PROGRAM:b.", "usdt:PROGRAM:a:b"),
    ("kprobe:vfs_read { }", "the guest is a program", "kprobe:vfs_read"),
    ("hardware:cycles:1 { }", "no counters of its hardware", "hardware:cycles:1"),
    ("watchpoint:0x1000:8:rw { }", "stores are watched here: w", "watchpoint:0x1000:8:rw"),
    ("tracepoint:no:no { }", "No matches for tracepoint no:no.", "tracepoint:no:no"),
    ("uprobe:PROGRAM:fib { print(args.x); }", "x", "args.x"),
)


def test_what_is_wrong_has_a_place(program: str) -> None:
    for script, text, place in WRONG:
        with pytest.raises(WrongScriptError) as caught:
            attached(program, script)
        remark = caught.value.remarks[0]
        assert text.replace("PROGRAM", program) in remark.text, remark.text
        marked = remark.script.text[remark.span.start : remark.span.end]
        assert place.replace("PROGRAM", program) in marked, script


def test_missing_probes_may_be_left_out(program: str) -> None:
    script = "uprobe:PROGRAM:nosuch { @ = args.x; } uprobe:PROGRAM:fib { @w = count(); }"
    told = attached(program, "config = { missing_probes = warn } " + script)
    assert b"WARNING: No matches for uprobe" in told[0]
    assert any(b"Probe has no valid attach points" in each for each in told)
    assert attached(program, "config = { missing_probes = ignore } " + script) == []


def test_a_text_that_is_none(program: str) -> None:
    with pytest.raises(KprobeTuiError, match="not UTF-8 at byte 1"):
        script_text("x.bt", b"a\xff")
    with pytest.raises(KprobeTuiError, match="at most 4 MiB"):
        script_text("x.bt", bytes(5 << 20))
    with pytest.raises(KprobeTuiError, match="Invalid provider: 'foo'"):
        list(list_probes(GuestConfig(program), ("foo:x",), verbose=False))


@pytest.mark.slow
def test_types_are_looked_for_once_and_only_where_a_script_asks_for_arguments(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, str]] = []
    kept = GlobalNames.type

    def type_of(self: GlobalNames, name: str, word: str = "", near: Unit | None = None) -> object:
        asked.append((self.info.name, name, word))
        return kept(self, name, word, near)

    monkeypatch.setattr(GlobalNames, "type", type_of)
    attached(program, "tracepoint:syscalls:sys_enter_* { @[probe] = count(); }")
    assert asked == []
    attached(program, "tracepoint:syscalls:sys_enter_* { if (0) { print(args); } }")
    assert (program, "iovec", "struct") in asked
    assert len(asked) == len(set(asked))
