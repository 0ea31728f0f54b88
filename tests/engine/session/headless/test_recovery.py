"""A trace killed at any step: FILE and what is recovered are the begin of the whole trace."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import build
from guestrun import run
from sysroot import CHECKOUT

from engine.session.headless.recovery import recovered_text

STEPS = '''
import os, signal, struct, sys
from pathlib import Path

import engine.session.tracing.output as output
from engine.session.guest.outputs import OutputFile
from engine.session.headless.recovery import recovered_text
from engine.trace.formats import format_named
from engine.trace.graph import EXIT_ROW, entry_info, exit_info
from engine.trace.ring_file import describe
from engine.trace.staging import Staging
from eventkit import INFOS, NAMES, SYMBOLS, THREAD, fact, opened, ret
from msgspec.structs import replace

NAMES = replace(NAMES, arch="x86_64")
output.PIECE = 120  # several pieces a drain
name, every = sys.argv[1], int(sys.argv[2])
make = format_named(name)
TABLE = {info.id: info for info in (*INFOS, entry_info(11), exit_info(12))}
WATCHED = ("ring_file.py", "output.py", "staging.py")
OUT = Path("out")


def enter(time, function, depth):
    return struct.pack("<IIQQQQ", 11 | 5 << 16, THREAD, time, function, depth, 0)


def leave(time, function, depth):
    return EXIT_ROW.pack(12 | 8 << 16, THREAD, time, function, 0, depth, 0, 0, 0)


def rows(part):
    if name == "function_graph":
        a, b = 0x401130, 0x401155
        one = [enter(part, a, 0), enter(part, b, 1), leave(part, b, 1), enter(part, b, 1),
               leave(part, b, 1), leave(part, a, 0)]
        # A call is open from the first drain to the second.
        return one + [enter(part, a, 0)] if part == 0 else [leave(part, a, 0)] + one
    return [fact(part, 1), opened(part, b"name", 3), ret(part, 7), fact(part, 2), fact(part, 3)]


def trace():
    state = lambda: {"comms": {THREAD: "guest"}, "modules": []}
    target = OutputFile("-o", "out")
    out = output.TraceOutput(make(TABLE, NAMES), target, None, backed=True, state=state)
    file = out.ring_file
    staging = Staging(out.rows, file=file)
    description = {"format": name, "options": []}
    out.begin()
    file.describe(describe(TABLE.values(), "x86_64", description, SYMBOLS.items()))
    out.header()
    for part in range(3):
        for row in rows(part):
            staging.buffer[staging.position : staging.position + len(row)] = row
            staging.position += len(row)
        staging.drain()
    staging.close()
    out.end()
    out.close()


def killed_at(step):
    """Run the trace in a child that dies in front of a line; whether it came so far."""
    for path in (OUT, Path("out.ring")):
        path.unlink(missing_ok=True)
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = step

    def line(frame, event, argument):
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    ours = lambda frame, *_: line if frame.f_code.co_filename.endswith(WATCHED) else None
    sys.settrace(ours)
    trace()
    os._exit(0)


trace()
want = OUT.read_bytes()
step = kills = 0
while killed_at(step := step + every):
    kills += 1
    ring = Path("out.ring")
    if not ring.exists():
        assert not OUT.exists() or OUT.read_bytes() in (b"", want), step
        continue
    had = OUT.read_bytes() if OUT.exists() else b""
    more = recovered_text("out.ring")
    got = had + more.text
    # The last call of a graph is open, as it was.
    whole = got[: got.rstrip(b"\\n").rfind(b"\\n") + 1] if name == "function_graph" else got
    assert want.startswith(whole), (step, got, want)
    assert not more.notes, (step, more.notes)
    # The kill may as well have come in the middle of a write.
    from engine.trace.recovery import recover
    least = recover(ring).progress.written
    for size in ((least + len(had)) // 2, least):
        if OUT.exists() and least <= size <= len(had):
            os.truncate(OUT, size)
            assert had[:size] + recovered_text("out.ring").text == got, (step, size)
print(kills, "kills")
'''


@pytest.mark.parametrize(
    ("name", "every"),
    [
        pytest.param("ftrace", 2, marks=pytest.mark.slow),
        pytest.param("function_graph", 3, marks=pytest.mark.slow),
        ("ftrace", 61),
        pytest.param("jsonl", 7, marks=pytest.mark.slow),
        pytest.param("perfetto", 7, marks=pytest.mark.slow),
        pytest.param("perf.data", 7, marks=pytest.mark.slow),
        pytest.param("function", 11, marks=pytest.mark.slow),
    ],
)
def test_a_kill_at_any_step_of_a_trace(tmp_path: Path, name: str, every: int) -> None:
    paths = os.pathsep.join((str(CHECKOUT / "tests" / "support"), str(CHECKOUT)))
    done = subprocess.run(
        [sys.executable, "-c", STEPS, name, str(every)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 500 // every


CALLS = """
#include <sys/prctl.h>
__attribute__((noinline)) int leaf(int n, const char *s) { asm volatile(""); return n + s[0]; }
__attribute__((noinline)) int outer(int n) { return leaf(n, "some text") + 1; }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 20000; i++) {
        sum += outer(i);
        if (i == 5000)
            prctl(PR_SET_NAME, "renamed");
    }
    return sum & 1;
}
"""
DEFINITIONS = ("p:g/leaf leaf n=%di:u32 s=+0(%si):string", "r:g/outer outer r=$retval:u32")


# Ends the tool at a hit, not at a time: a kill in mid-run on any machine, however loaded.
KILLER = """
import os, signal
left = int(os.environ.get("KILL_AT_HIT", 0))
def before(probe, regs):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
probes = [Kprobe(symbol_name="outer", pre_handler=before)]
"""


def _check_prefix(out: Path, want: bytes) -> bool:
    """Compare FILE and what is recovered with the whole trace; true if the kill cut it short."""
    if not Path(f"{out}.ring").exists():
        assert out.read_bytes() == want
        return False
    found = recovered_text(f"{out}.ring")
    got = (out.read_bytes() if out.exists() else b"") + found.text
    assert want.startswith(got)
    # A row that was being written when the kill came is told.
    assert all("bytes behind them are damaged" in note for note in found.notes)
    return len(got) < len(want)


@pytest.mark.slow
def test_kills_at_random_moments(tmp_path: Path) -> None:
    guest = build(tmp_path, "calls", CALLS, "-O1")
    (tmp_path / "killer.py").write_text(KILLER)
    words = [word for line in DEFINITIONS for word in ("-e", line)]
    words += ["--handlers", "killer.py"]
    run("trace", "-o", "whole", *words, str(guest), cwd=tmp_path)
    want = (tmp_path / "whole").read_bytes()
    assert b" calls-1000" in want
    assert b" renamed-1000" in want
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tui", "trace", "-o", str(out), *words, str(guest)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    for seed in range(3):
        hit = random.Random(seed).randrange(2, 20000)
        killed = {**environment, "KILL_AT_HIT": str(hit)}
        child = subprocess.Popen(command, cwd=tmp_path, env=killed)
        assert child.wait() == -signal.SIGKILL
        assert _check_prefix(out, want)
        out.unlink(missing_ok=True)
    for seed in range(3):
        # It is the trace that says when: once FILE has grown so far. A machine that is busy may
        # see it late: then the whole trace is there.
        enough = random.Random(seed).randrange(len(want))
        child = subprocess.Popen(command, cwd=tmp_path, env=environment)
        while child.poll() is None and (not out.exists() or out.stat().st_size < enough):
            os.sched_yield()
        child.send_signal(signal.SIGKILL)
        child.wait()
        _check_prefix(out, want)
        out.unlink(missing_ok=True)


@pytest.mark.slow
def test_a_file_that_was_changed_is_told(tmp_path: Path) -> None:
    guest = build(tmp_path, "calls", CALLS, "-O1")
    kill = (
        "import os, signal\nseen = 0\n"
        "def before(probe, regs):\n    global seen\n    seen += 1\n"
        "    if seen == 19000:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "probes = [Kprobe(symbol_name='outer', pre_handler=before)]\n"
    )
    (tmp_path / "handlers.py").write_text(kill)
    words = ("-o", "out", "--handlers", "handlers.py", "-e", "r:g/leaf leaf", str(guest))
    subprocess.run(
        [sys.executable, "-m", "tui", "trace", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        check=False,
    )
    whole = recovered_text(str(tmp_path / "out.ring"))
    assert whole.count
    assert not whole.notes
    (tmp_path / "out").write_bytes(b"something else")
    changed = recovered_text(str(tmp_path / "out.ring"))
    assert "was changed" in changed.notes[0]
    assert changed.text.endswith(whole.text)
    (tmp_path / "out").unlink()
    assert "cannot be read" in recovered_text(str(tmp_path / "out.ring")).notes[0]
    (tmp_path / "calls").write_bytes(b"")
    assert any("is not what it was" in note for note in _notes_of_symbols(tmp_path))


def _notes_of_symbols(folder: Path) -> tuple[str, ...]:
    done = run("recover", "out.ring", cwd=folder)
    return tuple(done.err.splitlines())


@pytest.mark.slow
def test_rows_of_other_programs_have_their_names(tmp_path: Path) -> None:
    """A library lies elsewhere in each program that exec begins."""
    (tmp_path / "killer.py").write_text(
        "import os, signal\nseen = 0\n"
        "def before(probe, regs):\n    global seen\n    seen += 1\n"
        "    if str(seen) == os.environ.get('KILL_AT_HIT'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "probes = [Kprobe(symbol_name='write', pre_handler=before)]\n"
    )
    events = ("-e", "p:g/malloc libc.so.6:malloc n=%di", "--handlers", "killer.py")
    guest = ("/bin/bash", "-c", "echo one | cat; /bin/echo two")
    run("trace", "-o", "whole", *events, *guest, cwd=tmp_path)
    whole = (tmp_path / "whole").read_bytes()
    assert b" cat-1002 " in whole
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    for hit in ("2", "3"):
        killed = subprocess.run(
            [sys.executable, "-m", "tui", "trace", "-o", "out", *events, *guest],
            cwd=tmp_path,
            env={**environment, "KILL_AT_HIT": hit},
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        text = recovered_text(str(tmp_path / "out.ring")).text
        who = b" cat-1002 " if hit == "2" else b" echo-1000 "
        assert who in text
        assert b"malloc+0x" in text
        assert _check_prefix(tmp_path / "out", whole) == (hit == "2")
