"""Filters and triggers on a running guest, and its system calls as events."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import archkit
import pytest
from compiled import build
from guestrun import run
from sessionkit import SAMPLES, Guest, events, loaded

from engine.arch.plan import Mode
from engine.errors import CommandError, ProbeError
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from engine.session.tracing.triggers import split_option
from engine.trace.syscalls import arguments, event_name
from engine.trace.tracepoints import selection

RECURSION = SAMPLES / "x86_64" / "recursion"
CALLS = 987


@pytest.fixture(params=archkit.COMPILED)
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    with loaded(SAMPLES / request.param / "recursion") as found:
        yield found


def numbers(guest: Guest) -> list[int]:
    return [int(n) for n in re.findall(r"x: \(fibonacci\+.* n=(\d+)", guest.text)]


def argument(guest: Guest) -> str:
    return archkit.argument(guest.session.arch.name)


def traced(guest: Guest, options: TraceOptions | None = None) -> Tracing:
    tracing = guest.tracing(options)
    tracing.definitions.define(f"p:g/x fibonacci n={argument(guest)}:u32")
    tracing.definitions.define(f"p:g/ack ackermann m={argument(guest)}:u32")
    return tracing


def test_a_filter_holds_for_all_probes_of_an_event(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.definitions.define(f"p:g/x factorial n={argument(guest)}:u32")
    tracing.set_filter("g", "x", "n > 13")
    guest.run(tracing)
    found = [int(n) for n in re.findall(r"x: .* n=(\d+)", guest.text)]
    assert found == [20, 15, 14]  # factorial(20) comes first


def test_return_events_are_filtered_by_what_they_return(guest: Guest) -> None:
    tracing = guest.tracing()
    tracing.definitions.define("r:g/r fibonacci v=$retval:u64")
    tracing.set_filter("g", "r", "v >= 200")
    guest.run(tracing)
    assert [int(v, 0) for v in re.findall(r" v=(\w+)", guest.text)] == [233, 377, 610]


def test_filters_change_neither_hits_nor_the_guest(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.set_filter("g", "x", "n == 1000")
    guest.run(tracing)
    assert sum(probe.hits for probe in tracing.events["g", "x"].probes) == CALLS
    assert numbers(guest) == []
    assert "fibonacci(15) = 610" in guest.out


def test_functions_in_filters(guest: Guest) -> None:
    tracing = guest.tracing()
    tracing.definitions.define("p:g/e fibonacci")
    tracing.definitions.define("p:g/e ackermann")
    tracing.set_filter("g", "e", "__probe_ip.function == ackermann")
    guest.run(tracing)
    assert len(guest.events) == 20
    assert all("ackermann" in event for event in guest.events)
    with pytest.raises(ProbeError, match="Function not found"):
        tracing.set_filter("g", "e", "__probe_ip.function == nosuch")


def test_a_filter_may_come_and_go_while_the_guest_stands(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.start()
    tracing.set_filter("g", "x", "n == 1000")
    tracing.set_filter("g", "x", "0")
    tracing.add_trigger("g", "ack", "traceoff")
    tracing.add_trigger("g", "ack", "!traceoff")
    guest.session.run()
    tracing.finish()
    assert len(numbers(guest)) == CALLS
    assert len(guest.events) == CALLS + 20


def test_traceoff_stops_all_events_and_counts_what_it_changes(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.add_trigger("g", "x", "traceoff:3 if n == 2")
    tracing.definitions.define(f"p:g/z fibonacci n={argument(guest)}:u32")
    tracing.add_trigger("g", "z", "traceon if n == 4")
    guest.run(tracing)
    expected, on, left = [], True, 3
    for n in calls(15):
        on = on or n == 4  # the newer event comes first
        expected += [n] if on else []
        if n == 2 and on and left:  # behind the event, which is recorded
            on, left = False, left - 1
    assert numbers(guest) == expected
    assert 0 < len(expected) < CALLS
    (traceoff,) = [
        armed
        for armed in tracing.controls.of(tracing.info("g", "x")).triggers
        if armed.trigger.kind.name == "traceoff"
    ]
    assert traceoff.left == left == 0
    assert traceoff.listing() == "traceoff:count=0 if n == 2", "as a live kernel shows it"


@pytest.mark.parametrize("count", ["", ":2"])
def test_the_event_that_ends_tracing_is_recorded(guest: Guest, count: str) -> None:
    tracing = traced(guest)
    tracing.definitions.define(f"p:g/z fibonacci n={argument(guest)}:u32")
    tracing.add_trigger("g", "x", f"traceoff{count}")
    guest.run(tracing)
    assert numbers(guest) == [15]
    assert [event[0] for event in guest.events] == ["z", "x"]  # the newer event comes first


def calls(n: int) -> Iterator[int]:
    """Arguments of all calls of fibonacci(n); the second of its recursions became a loop."""
    yield n
    while n >= 2:
        yield from calls(n - 1)
        n -= 2


def test_an_event_that_is_switched_on_starts_off(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.add_trigger("g", "x", "enable_event:g:ack if n == 1000")
    guest.run(tracing)
    assert len(guest.events) == CALLS
    assert tracing.controls.of(tracing.info("g", "ack")).off


def test_one_of_a_kind(guest: Guest) -> None:
    tracing = traced(guest)
    tracing.add_trigger("g", "x", "traceoff:3")
    with pytest.raises(ProbeError, match="EEXIST"):
        tracing.add_trigger("g", "x", "traceoff:4 if n == 1")
    with pytest.raises(ProbeError, match="EEXIST"):  # what switches on and off is of one type
        tracing.add_trigger("g", "x", "traceon")
    tracing.add_trigger("g", "x", "enable_event:g:ack")
    for other in ("enable_event:g:ack:5", "disable_event:g:ack"):
        with pytest.raises(ProbeError, match="EEXIST"):
            tracing.add_trigger("g", "x", other)
    tracing.add_trigger("g", "x", "hist:keys=n")
    tracing.add_trigger("g", "x", "hist:keys=n if n > 3")
    with pytest.raises(ProbeError, match="already exists"):
        tracing.add_trigger("g", "x", "hist:keys=n")
    tracing.add_trigger("g", "x", "!hist:keys=n")
    with pytest.raises(ProbeError, match="no such trigger"):
        tracing.add_trigger("g", "x", "!hist:keys=n")
    lines = list(tracing.controls.of(tracing.info("g", "x")).trigger_lines())
    assert [line.partition(":")[0] for line in lines] == ["enable_event", "traceoff", "hist"]


def test_histograms_pause_continue_and_clear(guest: Guest) -> None:
    tracing = traced(guest)
    for text in ("hist:keys=n:pause", "hist:keys=n:cont", "hist:keys=n:clear"):
        tracing.add_trigger("g", "x", text)
    tracing.add_trigger("g", "ack", "hist:keys=m:pause")
    with pytest.raises(ProbeError, match="Can't clear or continue"):
        tracing.add_trigger("g", "ack", "hist:keys=m:vals=m:clear")
    guest.run(tracing)
    assert f"    Hits: {CALLS}\n" in guest.text
    assert "[paused]" in guest.text
    assert "    Hits: 0\n" in guest.text


def test_a_named_histogram_is_shared(guest: Guest) -> None:
    tracing = guest.tracing()
    tracing.definitions.define(f"p:g/x fibonacci n={argument(guest)}:u32")
    tracing.definitions.define(f"p:g/y ackermann n={argument(guest)}:u32")
    for name in "xy":
        tracing.add_trigger("g", name, "hist:keys=n:name=both")
    with pytest.raises(ProbeError, match="doesn't match existing named trigger"):
        tracing.add_trigger("g", "y", "hist:keys=n.hex:name=both")
    guest.run(tracing)
    assert guest.text.count(f"    Hits: {CALLS + 20}\n") == 2


def test_stacks_stand_behind_their_events(guest: Guest) -> None:
    tracing = traced(guest, TraceOptions(stack=True))
    tracing.set_filter("g", "x", "n == 15")
    tracing.set_filter("g", "ack", "m == 2")
    guest.run(tracing)
    blocks = re.findall(r": (x|ack): .*\n.*<user stack trace>\n((?: => .*\n)+)", guest.text)
    assert [name for name, _ in blocks] == ["x", *["ack"] * 4]
    for name, block in blocks:
        frames = block.splitlines()
        function = {"x": "fibonacci", "ack": "ackermann"}[name]
        assert frames[0].startswith(f" => {function}+0x0/0x")
        assert any(frame.startswith(" => main+0x") for frame in frames)
    assert guest.text.count("<user stack trace>") == 5


def test_folded_stacks_count_every_event(guest: Guest) -> None:
    tracing = traced(guest, TraceOptions(format="folded"))
    guest.run(tracing)
    lines = [line.rpartition(" ") for line in guest.text.splitlines()]
    assert sum(int(count) for _, _, count in lines) == CALLS + 20
    assert all(stack.startswith("recursion;") and ";main;" in stack for stack, _, _ in lines)
    assert any(stack.endswith(";main;fibonacci;x") for stack, _, _ in lines)


def test_system_calls_are_events_of_the_same_trace(guest: Guest) -> None:
    tracing = traced(guest, TraceOptions(format="jsonl"))
    assert tracing.definitions.define("syscalls/*") is None
    tracing.definitions.define("syscalls/sys_exit_write")  # it is there already
    tracing.set_filter("syscalls", "sys_exit_write", "ret > 20")
    tracing.add_trigger("syscalls", "sys_enter_write", "hist:keys=__syscall_nr.syscall,fd")
    guest.run(tracing)
    lines: list[dict[str, Any]] = [json.loads(line) for line in guest.text.splitlines()]
    calls = [line for line in lines if line["event"].startswith("syscalls/")]
    writes = [line for line in calls if line["event"].endswith("enter_write")]
    assert "".join(line["args"]["__buf_val"] for line in writes) == guest.out
    assert [line["args"]["count"] for line in writes] == [
        len(w["args"]["__buf_val"]) for w in writes
    ]
    results = [line["args"]["ret"] for line in calls if line["event"].endswith("exit_write")]
    assert results == [line["args"]["count"] for line in writes if line["args"]["count"] > 20]
    assert calls[-1]["event"] == "syscalls/sys_enter_exit_group"
    times = [line["time"] for line in lines]
    assert times == sorted(times)


def test_system_calls_by_name(guest: Guest) -> None:
    tracing = guest.tracing()
    tracing.definitions.define("syscalls:write")
    assert list(tracing.infos) == [("syscalls", "sys_enter_write"), ("syscalls", "sys_exit_write")]
    with pytest.raises(ProbeError, match="no system call matches"):
        tracing.definitions.define("syscalls/nosuch")
    guest.run(tracing)
    assert re.fullmatch(
        r"sys_write\(fd: 1, buf: \"fact.*\\n\", count: 36\)", events(guest.text)[0]
    )


def test_names_of_system_calls() -> None:
    assert event_name("fstat") == "newfstat"
    assert [one.name for one in arguments("clone", False) or ()][3:] == ["child_tidptr", "tls"]
    assert [one.name for one in arguments("clone", True) or ()][3:] == ["tls", "child_tidptr"]
    assert arguments("nosuch", False) is None
    assert arguments("getpid", False) == ()
    assert selection("syscalls/sys_*") == ("syscalls", "sys_*")
    assert selection("sched:sched_switch") == ("sched", "sched_switch")
    assert selection("schedule/x") is None
    assert selection("p:syscalls/x main") is None


def test_kernel_mode_goes_on_without_what_is_refused() -> None:
    with loaded(RECURSION) as guest:
        tracing = traced(guest, TraceOptions(mode=Mode.KERNEL))
        assert "Field not found" in tracing.set_filter("g", "x", "m == 1")
        assert "explode" in tracing.add_trigger("g", "x", "explode")
        assert tracing.set_filter("g", "x", "n == 15") == ""
        guest.run(tracing)
        assert numbers(guest) == [15]


def test_a_snapshot_needs_a_ring() -> None:
    with loaded(RECURSION) as guest:
        tracing = traced(guest)
        with pytest.raises(CommandError, match="--buffer N"):
            tracing.add_trigger("g", "x", "snapshot")


@pytest.mark.parametrize("text", ["", "g", "g/x", "g/x:", "/x:n", "g/:n", "g:x"])
def test_the_form_of_options(text: str) -> None:
    with pytest.raises(CommandError, match="GROUP/NAME:TEXT"):
        split_option("--filter", text)


def test_profiles_and_files(tmp_path: Path) -> None:
    with loaded(RECURSION) as guest:
        path = tmp_path / "out"
        options = TraceOptions(output=str(path), profile=True)
        tracing = traced(guest, options)
        guest.run(tracing)
        assert path.read_text().endswith(
            f"\n# profile\n  {'x':<44} {CALLS:>15} {0:>15}\n  {'ack':<44} {20:>15} {0:>15}\n"
        )


@pytest.mark.parametrize(
    ("pattern", "passes"), [('~ "*"', False), ('== ""', False), ('!= ""', True)]
)
def test_a_string_that_cannot_be_read_has_no_end(pattern: str, passes: bool) -> None:
    """Linux (live, 6.18) finds no end in it, not even that of the pattern "*"."""
    with loaded(SAMPLES / "x86_64" / "recursion") as guest:
        tracing = guest.tracing(TraceOptions(mode=Mode.KERNEL))
        tracing.definitions.define("p:g/x factorial s=+0(\\1):string")
        assert not tracing.set_filter("g", "x", f"s {pattern}")
        guest.run(tracing)
    assert bool(guest.events) is passes


def test_addresses_in_a_histogram_are_of_the_program_that_was_hit(tmp_path: Path) -> None:
    """When it is printed, /bin/true was there last."""
    source = r"""
    #include <unistd.h>
    __attribute__((noinline)) int work(int n) { volatile int kept = n; return kept + 1; }
    int main(void) { if (work(1)) execl("/bin/true", "true", (char *)0); return 9; }
    """
    program = str(build(tmp_path, "goes", source))
    both = ("-e", "p:g/w work at=%ip", "-e", "p:g/x libc.so.6:_exit", "-o", "out")
    for key in ("common_stacktrace", "at.sym-offset"):
        done = run("trace", *both, "--trigger", f"g/w:hist:keys={key}", program, cwd=tmp_path)
        assert done.code == 0, done.err
        table = (tmp_path / "out").read_text().partition("# event histogram")[2]
        assert " work+0x0/0x" in table
        assert ("main+0x" in table) == (key == "common_stacktrace")
