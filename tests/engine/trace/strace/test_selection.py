"""Sets of calls and signals, and the table of counts."""

import pytest

from engine.arch import by_name
from engine.errors import CommandError
from engine.trace.strace.counts import CallCounts
from engine.trace.strace.dumps import descriptors_of
from engine.trace.strace.selection import calls_of, signals_of

CALLS = tuple(by_name("x86_64").linux.syscalls.values())


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("open,close", {"open", "close"}, {"openat", "read"}),
        ("%file", {"open", "execve", "stat"}, {"read", "mmap"}),
        ("file", {"open"}, {"read"}),
        ("%desc,%memory", {"read", "brk", "mmap"}, {"getpid"}),
        ("!%process", {"read"}, {"execve", "clone"}),
        ("/^rt_sig", {"rt_sigaction"}, {"kill"}),
        ("%%stat", {"stat", "fstat", "lstat", "statx"}, {"statfs"}),
        ("%pure", {"getpid"}, {"kill"}),
        ("?nothing_like_it,read", {"read"}, {"write"}),
        ("all", {"read"}, set()),
        ("none", set(), {"read"}),
        ("!none", {"read"}, set()),
    ],
)
def test_sets_of_calls(text: str, inside: set[str], outside: set[str]) -> None:
    chosen = calls_of("-e", text, CALLS)
    assert {name for name in inside | outside if chosen(name)} == inside


@pytest.mark.parametrize("text", ["bogus", "%bogus", "/(", "open,", "open,bogus"])
def test_a_bad_set_is_named(text: str) -> None:
    with pytest.raises(CommandError, match="-e"):
        calls_of("-e", text, CALLS)


def test_sets_of_signals() -> None:
    chosen = signals_of("-e", "SIGINT,segv,10")
    assert [number for number in range(1, 65) if chosen(number)] == [2, 10, 11]
    assert not signals_of("-e", "none")(2)
    assert signals_of("-e", "!chld")(2)
    with pytest.raises(CommandError, match="SIGFOO"):
        signals_of("-e", "SIGFOO")


def test_a_table_is_sorted_and_summed() -> None:
    counts = CallCounts("calls")
    for name, ticks, failed in (("read", 5, False), ("open", 30, True), ("read", 7, False)):
        counts.add(name, ticks, failed=failed)
    lines = list(counts.lines())
    assert lines[0].split() == ["%", "time", "ticks", "ticks/call", "calls", "errors", "syscall"]
    assert lines[2].split() == ["28.57", "12", "6", "2", "read"]
    assert lines[3].split() == ["71.43", "30", "30", "1", "1", "open"]
    assert lines[-1].split() == ["100.00", "42", "14", "3", "1", "total"]
    with pytest.raises(CommandError, match="-S"):
        CallCounts("bogus")


def test_columns_of_a_table() -> None:
    counts = CallCounts("longest", "name,calls,errors,min-time,max-time")
    for name, ticks, failed in (("read", 5, False), ("open", 30, True), ("read", 7, False)):
        counts.add(name, ticks, failed=failed)
    assert list(counts.lines()) == [
        "syscall              calls    errors shortest  longest",
        "---------------- --------- --------- -------- --------",
        "open                     1         1       30       30",
        "read                     2                  5        7",
        "---------------- --------- --------- -------- --------",
        "total                    3         1        5       30",
    ]
    assert next(iter(CallCounts("name", "calls").lines())) == "    calls syscall"
    for columns, why in (("calls,foo", "'foo'"), ("calls,count", "twice"), ("", "''")):
        with pytest.raises(CommandError, match=why):
            CallCounts("name", columns)


def test_sets_of_descriptors() -> None:
    chosen = descriptors_of("-e", "3,77")
    assert [number for number in range(100) if chosen(number)] == [3, 77]
    assert not descriptors_of("-e", "none")(0)
    assert descriptors_of("-e", "all")(5)
    assert [number for number in range(4) if descriptors_of("-e", "!1,2")(number)] == [0, 3]
    for text in ("x", "-1", "3,", "9999999999"):
        with pytest.raises(CommandError, match="descriptor"):
            descriptors_of("-e", text)
