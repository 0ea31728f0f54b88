"""Attach points: what they mean, short names, and what is said about wrong ones."""

from typing import Any, Final

from scripttrees import read, refusal

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.attach_points import attach_point, attach_points, full_name
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span

MEANINGS: Final[dict[str, dict[str, Any]]] = {
    "BEGIN": {"text": "begin", "provider": "begin", "parts": ()},
    "end:*": {"text": "end"},
    "self:signal:SIGUSR1": {"target": "signal", "function": "SIGUSR1"},
    "k:vfs_read": {"text": "kprobe:vfs_read", "function": "vfs_read", "target": ""},
    "kprobe:mod:f+0x10": {"text": "kprobe:mod:f+16", "target": "mod", "offset": 16},
    "kr:vfs_*": {"text": "kretprobe:vfs_*", "provider": "kretprobe"},
    "KPROBE:f": {"provider": "kprobe"},
    "kprobe:0xffff0000": {"address": 0xFFFF0000, "function": ""},
    "u:/bin/sh:main": {"text": "uprobe:/bin/sh:main", "target": "/bin/sh", "function": "main"},
    "ur:libc:malloc": {"provider": "uretprobe", "target": "libc", "function": "malloc"},
    "uprobe:/bin/sh:0x1234": {"text": "uprobe:/bin/sh:4660", "address": 0x1234},
    "uprobe:/bin/sh:0": {"address": 0},
    "uprobe:/bin/sh:main+10": {"function": "main", "offset": 10},
    'uprobe:./a:cpp:"n::f(int, char)"': {
        "text": "uprobe:./a:cpp:n::f(int, char)",
        "language": "cpp",
        "function": "n::f(int, char)",
    },
    "uprobe:./a@b.c:12": {"target": "./a", "file": "b.c", "line": 12, "column": 0},
    "uprobe:./a@b.c:12:3": {"line": 12, "column": 3, "parts": ("./a", "@", "b.c", "12", "3")},
    'uprobe:"/a b\\"c":f': {"target": '/a b"c'},
    "U:./a:m": {"provider": "usdt", "target": "./a", "function": "m", "namespace": ""},
    "usdt:./a:ns:m": {"text": "usdt:./a:ns:m", "namespace": "ns"},
    "t:sched:sched_switch": {"text": "tracepoint:sched:sched_switch", "target": "sched"},
    "tracepoint:*open*": {"target": "*", "function": "*open*"},
    "rt:sched_switch": {"text": "rawtracepoint:*:sched_switch", "target": "*"},
    "rawtracepoint:mod:x": {"target": "mod", "function": "x"},
    "i:s:1": {"text": "interval:s:1", "target": "s", "rate": 1},
    "i:500ms": {"text": "interval:us:500000", "target": "us", "rate": 500_000},
    "p:hz:99": {"provider": "profile", "target": "hz", "rate": 99},
    "profile:1e9": {"target": "us", "rate": 1_000_000},
    "s:page-faults:100": {"provider": "software", "target": "page-faults", "rate": 100},
    "software:faults": {"target": "faults", "rate": 0},
    "hardware:cycles:*": {"target": "cycles", "rate": 0},
    "w:0x1000:8:wr": {
        "text": "watchpoint:4096:8:rw",
        "address": 0x1000,
        "length": 8,
        "mode": "rw",
    },
    "watchpoint:f+arg1:4:w": {"function": "f", "argument": 1, "address": None, "length": 4},
    "aw:f+arg0:4:w": {"provider": "asyncwatchpoint"},
    "kfunc:f": {"text": "fentry:f", "provider": "fentry", "target": ""},
    "kretfunc:mod:f": {"text": "fexit:mod:f", "provider": "fexit", "target": "mod"},
    "fentry:f*": {"target": "*", "function": "f*"},
    "fentry:bpf:12:prog": {"target": "bpf", "function": "prog"},
    "it:task": {"provider": "iter", "function": "task"},
    "bench:a": {"target": "a"},
    "mine=i:s:1": {"text": "mine", "given": "mine", "provider": "interval"},
}
FAULTS: Final = {
    "asdf:x": "Invalid probe type: asdf",
    "begin:f": "begin probe type requires 0 arguments, found 1",
    "end:a:b": "end probe type requires 0 arguments, found 2",
    "self:signal": "self probe type requires 2 arguments, found 1",
    "self:other:SIGUSR1": "other is not a supported trigger",
    "self:signal:SIGKILL": "SIGKILL is not a supported signal",
    "kprobe": "kprobe probe type requires 1 or 2 arguments, found 0",
    "k:a:b:c": "kprobe probe type requires 1 or 2 arguments, found 3",
    "kprobe:": "kprobes should be attached to a function or an address",
    "kr:f+1": "Offset not allowed",
    "kprobe:f+1+2": "Cannot take more than one offset",
    "kprobe:f+": "Invalid offset",
    "kprobe:f+1x": "Invalid offset: invalid trailing bytes: 1x",
    "uprobe": "uprobe probe type requires 2 or 3 arguments, found 0",
    "uprobe:f": "uprobe probe type requires 2 or 3 arguments, found 1",
    "uprobe::f": "uprobe should have a target",
    "usdt:m": "usdt probe type requires 2 or 3 arguments, found 1",
    "usdt::m": "usdt probe must specify at least path or pid to probe. To target all paths/pids"
    " set the path to '*'.",
    "uprobe:a:b:c:d": "uprobe probe type requires 2 or 3 arguments, found 4",
    "uprobe:/a:rust:f": "unsupported language type: rust",
    "uprobe:/a*:0x12": "Cannot use wildcards with absolute address",
    "uprobe:/a:": "uprobe should be attached to a function, address, or source file and line"
    " (using DWARF)",
    "uretprobe:/a@b.c:1": "Source code location not allowed",
    "uprobe:/a*@b.c:1": "Cannot use wildcards with source code location",
    "uprobe:/a@b.c": "Invalid uprobe arguments, expected format: uprobe:TARGET@FILE:LINE[:COL]",
    "uprobe:/a@b.c:x": "Invalid line number: invalid integer: x",
    "uprobe:/a@b.c:1:x": "Invalid column number: invalid integer: x",
    "usdt": "usdt probe type requires 2 or 3 arguments, found 0",
    "usdt:/a:": "usdt probe must have a target function or wildcard",
    "tracepoint:f": "tracepoint probe type requires 2 arguments, found 1",
    "tracepoint::f": "tracepoint probe must have a target",
    "rawtracepoint": "rawtracepoint probe type requires 2 or 1 arguments, found 0",
    "interval:1b": "Invalid rate of interval probe: invalid trailing bytes: 1b",
    "interval:5": "Invalid rate of interval probe. Minimum is 1000 or 1us. Found: 5 nanoseconds",
    "profile:days:1": "days is not an accepted unit of time",
    "profile:hz:0": "profile frequency should be a positive integer",
    "software:x": "x is not a software probe",
    "software:*": "wildcards are not allowed for software probe type",
    "hardware:cycles:x": "Invalid count for hardware probe: invalid integer: x",
    "watchpoint:0x1000:8": "watchpoint probe type requires 3 arguments, found 2",
    "watchpoint:x:8:w": "Invalid function/address argument: invalid integer: x",
    "watchpoint:0:8:w": "watchpoint must be attached to a non-zero address",
    "watchpoint:1:3:w": "watchpoint length must be one of (1,2,4,8)",
    "watchpoint:1:8:q": "watchpoint mode must be combination of (r,w,x)",
    "watchpoint:1:8:ww": "watchpoint modes may not be duplicated",
    "fentry": "fentry probe type requires 1 or 3 arguments, found 0",
    "fentry:bpf": "the 'bpf' variant of this probe requires a bpf program name and optional bpf"
    " program id",
    "fentry:bpf:x:f": "bpf program id must be a number or '*'",
    "fentry:a:b:c": "Only the 'bpf' variant of this probe supports 4 arguments",
    "iter:*": "iter probe type does not support wildcards",
    "xyz*:f": "No probe type matched for xyz*",
    "uprobe:/a:$x": "invalid trailing character for positional param: x. Try quoting this entire"
    ' part if this is intentional e.g. "$x".',
    "uprobe:/a:$0": "invalid trailing character for positional param: 0. Try quoting this entire"
    ' part if this is intentional e.g. "$0".',
    ":f": "No attach points for probe",
}


def _point(text: str, *parameters: str) -> tree.AttachPoint:
    (point,) = read(f"{text} {{ }}", *parameters).probes[0].points
    return point


def test_meanings_and_whole_names() -> None:
    for text, meaning in MEANINGS.items():
        point = _point(text)
        assert point.written == text
        assert full_name(point) == point.text
        for name, value in meaning.items():
            assert getattr(point, name) == value, (text, name)


def test_wrong_ones_have_one_error_that_marks_them() -> None:
    for text, fault in FAULTS.items():
        assert refusal(f"{text} {{ }}") == f"1:1-{len(text) + 1}: ERROR: {fault}", text


def test_parameters() -> None:
    point = _point("uprobe:$1:a$2b", "/bin/sh", "_x_")
    assert (point.target, point.function) == ("/bin/sh", "a_x_b")
    assert _point('uprobe:"$1":f', "/bin/sh").target == "$1"
    assert _point("$1:f", "uprobe:/bin/sh").target == "/bin/sh", "its colons cut, too"
    assert _point("i:ms:$1", "25").rate == 25
    assert refusal("i:ms:$1 { }").endswith("Invalid rate of interval probe: invalid integer: ")
    assert "overflow error" in refusal("uprobe:/a:$99999999999999999999 { }")


def test_functions_of_the_guests_own_program() -> None:
    for text, name in {
        "u:main": "uprobe:/bin/x:main",
        "uretprobe:cpp:f": "uretprobe:/bin/x:cpp:f",
        "U:m": "usdt:/bin/x:m",
        "usdt::ns:*": "usdt:/bin/x:ns:*",
        "uprobe:/bin/y:main": "uprobe:/bin/y:main",
        "kprobe:main": "kprobe:main",
    }.items():
        (point,) = read(f"{text} {{ }}", program="/bin/x").probes[0].points
        assert point.text == name


def test_globs_for_providers() -> None:
    def providers(text: str) -> list[str]:
        return [one.provider for one in read(f"{text} {{ }}").probes[0].points]

    assert providers("*:vfs_read") == ["fentry", "iter", "kprobe", "rawtracepoint"]
    kernel = ["fentry", "iter", "kprobe", "rawtracepoint", "tracepoint"]
    assert providers("*:sched:x") == kernel
    assert providers("*:/bin/sh:f") == ["uprobe", "usdt"]
    assert providers("u*:/bin/sh:f") == ["uprobe", "usdt"]
    assert providers("kp*:f") == ["kprobe"]


def test_points_of_other_sources() -> None:
    remarks = ScriptRemarks(ScriptText("-l", "u:/bin/sh:f"))
    span = Span(0, 11)
    point = attach_point("u:/bin/sh:f", span, remarks)
    assert point is not None
    assert point.function == "f"
    assert attach_point("nothing", span, remarks) is None
    assert [one.text for one in remarks.found] == ["Invalid probe type: nothing"]
    assert attach_points("", span, remarks) == ()
