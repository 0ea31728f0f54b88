"""A script of bpftrace beside the events of a trace."""

import re
import signal
from pathlib import Path

import pytest
from guestrun import Outcome, run, start
from sysroot import CHECKOUT

GUEST = CHECKOUT / "samples" / "bin" / "x86_64" / "recursion"
PRINTED = "factorial(20) = 2432902008176640000\nfibonacci(15) = 610\nackermann(2, 3) = 9\n"
EVENTS = ("-f", "factorial", "-r", "factorial", "-e", "syscalls/write")
SCRIPT = """
uprobe:GUEST:factorial { @in[tid] = (int64)nsecs; printf("in %d\\n", arg0); }
uretprobe:GUEST:factorial { printf("out %d\\n", (int64)nsecs - @in[tid]); delete(@in[tid]); }
tracepoint:syscalls:sys_enter_write { @w[args.count] = count(); }
end { printf("end\\n"); }
"""
ENDED = f"in 20\nout 190\n{PRINTED}end\n\n\n@w[36]: 1\n@w[20]: 2\n"


def traced(folder: Path, script: str, *words: str, command: str = "trace") -> Outcome:
    file = folder / "script.bt"
    file.write_text(script.replace("GUEST", str(GUEST)))
    return run(command, "--bpftrace", str(file), *words, cwd=folder)


def test_both_see_one_run_and_the_same_moments(tmp_path: Path) -> None:
    alone = run("trace", *EVENTS, str(GUEST), cwd=tmp_path)
    both = traced(tmp_path, SCRIPT, *EVENTS, str(GUEST))
    assert (both.code, both.out) == (0, ENDED), both.err
    assert both.err == alone.err  # the trace's own output is what it is without the script
    times = [int(at) for at in re.findall(r"(\d+): [pr]_factorial_0:", both.err)]
    assert (times[1] - times[0]) * 10 == 190


def test_the_trace_goes_to_its_own_file(tmp_path: Path) -> None:
    words = ("-o", "events", "--format", "jsonl", "--instance", "more", "-o", "two", "-f", "ack*")
    found = traced(tmp_path, SCRIPT, *EVENTS, *words, str(GUEST))
    assert (found.code, found.out, found.err) == (0, ENDED, "")
    assert (tmp_path / "events").read_text().count("_factorial_0") == 2
    assert "ackermann" in (tmp_path / "two").read_text()


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("uprobe:GUEST:factorial { @ = 1; exit(7); }", 7, "\n\n@: 1\n"),
        ('begin { exit(9); } end { printf("end\\n"); }', 9, "end\n\n\n"),
    ],
)
def test_the_script_ends_the_run(tmp_path: Path, script: str, code: int, out: str) -> None:
    found = traced(tmp_path, script, "-r", "factorial", str(GUEST))
    assert (found.code, found.out) == (code, out), found.err
    assert "r_factorial_0" not in found.err
    assert found.err.startswith("# tracer: nop\n")


@pytest.mark.parametrize(
    ("script", "words", "text"),
    [
        ("begin {", (), "script.bt:1:8"),
        ("uprobe:GUEST:nobody { }", (), "Probe has no valid attach points"),
        ("begin { }", ("--latency", "factorial"), "--latency and --bpftrace"),
        ("begin { }", ("-e", "p nobody"), "Command: p nobody"),
        ("begin { }", ("--boot",), "--bpftrace"),
    ],
)
def test_what_is_wrong_ends_with_2(
    tmp_path: Path, script: str, words: tuple[str, ...], text: str
) -> None:
    found = traced(tmp_path, script, *words, str(GUEST))
    assert (found.code, found.out) == (2, "")
    assert text in found.err


def test_a_file_that_is_no_script(tmp_path: Path) -> None:
    found = run("trace", "--bpftrace", "no.bt", "-f", "factorial", str(GUEST), cwd=tmp_path)
    assert (found.code, found.err) == (2, "kprobe-tui: no.bt: No such file or directory\n")


def test_lists_tell_of_the_script_and_run_nothing(tmp_path: Path) -> None:
    for words in (("--list",), ("--describe",)):
        found = traced(tmp_path, SCRIPT, "-f", "factorial", *words, str(GUEST))
        assert found.code == 0
        last = found.out.splitlines()[-4:]
        assert last[0].endswith(
            f"script.bt: uprobe:{GUEST}:factorial: what it does is the script's"
        )
        assert all(line.startswith("# ") for line in last)
        assert traced(tmp_path, "begin {", *words, str(GUEST)).code == 2


def test_a_recording_has_both_again(tmp_path: Path) -> None:
    now = traced(tmp_path, SCRIPT, *EVENTS, str(GUEST))
    assert run("record", "-o", "run", str(GUEST), cwd=tmp_path).code == 0
    past = traced(tmp_path, SCRIPT, *EVENTS, "run", command="replay")
    assert (past.code, past.out, past.err) == (0, now.out, now.err)
    refused = traced(tmp_path, SCRIPT, "--buffer", "3", "run", command="replay")
    assert refused.code == 2
    assert "--bpftrace alone has no --buffer" in refused.err
    assert traced(tmp_path, "interval:ms:1 { }", *EVENTS, "run", command="replay").code == 2


def test_a_signal_to_the_tool_is_for_both(tmp_path: Path) -> None:
    (tmp_path / "s.bt").write_text(
        'begin { printf("begin\\n"); } self:signal:SIGUSR1 { printf("heard\\n"); exit(4); }'
        ' t:syscalls:sys_enter_kill { @++; if (@ == 3) { printf("many\\n"); } }'
    )
    guest = ("/bin/sh", "-c", "while :; do kill -0 1000; done")
    words = ("--bpftrace", "s.bt", "-e", "syscalls/kill", "--buffer", "2", "--overwrite")
    with start("trace", *words, "--timeout", "60", *guest, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        assert process.stdout.readline() == b"many\n"
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate()
    assert (process.returncode, out[:5]) == (4, b"heard")
    assert b"entries-in-buffer/entries-written: 2/" in err
