"""The same as `test_recovery` for formats of files of their own: read by their tools."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from foreign import tool
from sysroot import CHECKOUT

STEPS = '''
import os, shutil, signal, sys
from pathlib import Path

import engine.session.tracing.output as output
from engine.errors import CommandError
from engine.session.guest.outputs import OutputTree
from engine.session.headless.recovery import recovered_text
from engine.trace.formats import format_named
from engine.trace.ring_file import describe
from engine.trace.staging import Staging
from eventkit import INFOS, NAMES, SYMBOLS, THREAD, fact, opened, ret
from foreign import babeltrace, trace_cmd
from msgspec.structs import replace

name, every = sys.argv[1], int(sys.argv[2])
make = format_named(name)
make.batch = 120  # several pieces a drain
read = {"trace.dat": trace_cmd, "ctf": babeltrace}[name]
TABLE = {info.id: info for info in INFOS}
WATCHED = ("ring_file.py", "output.py", "staging.py", "placed_files.py")
OUT = Path("out")
names = replace(NAMES, arch="x86_64")


def trace():
    state = lambda: {"comms": {THREAD: "guest"}, "modules": []}
    form = make(TABLE, names)
    target = OutputTree("-o", "out", lambda: form.is_directory, form.owns)
    out = output.TraceOutput(form, target, None, backed=True, state=state)
    file = out.ring_file
    staging = Staging(out.rows, file=file)
    out.begin()
    about = {"format": name, "options": []}
    file.describe(describe(TABLE.values(), "x86_64", about, SYMBOLS.items()))
    out.header()
    for part in range(3):
        for row in [fact(part, 1), opened(part, b"name", 3), ret(part, 7), fact(part, 2)] * 2:
            staging.buffer[staging.position : staging.position + len(row)] = row
            staging.position += len(row)
        staging.drain()
    staging.close()
    out.end()
    out.close()


def clear():
    for path in (OUT, Path("out.ring"), Path("copy")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def killed_at(step):
    """Run the trace in a child that dies in front of a line; whether it came so far."""
    clear()
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


def said(found):
    """Names of threads come with a trace.dat's end."""
    return [(each.thread, each.time, each.name, each.text) for each in found]


trace()
want = read(OUT)
assert len(want) == 24
step = kills = recovered = 0
while killed_at(step := step + every):
    kills += 1
    ring = Path("out.ring")
    if not ring.exists():
        continue
    from engine.trace.recovery import recover
    stage = recover(ring).progress.stage
    if stage:  # what was written is whole
        got = read(OUT)
        assert said(got) == said(want)[: len(got)], (step, got)
    more = recovered_text("out.ring")
    if not more.completed or not OUT.exists():
        continue
    got = read(OUT)
    assert got == want[: len(got)], (step, got)
    assert not more.notes, (step, more.notes)
    again = recovered_text("out.ring")  # nothing is said twice
    assert read(OUT) == got
    recovered += bool(more.count)
assert recovered
print(kills, "kills")
'''


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("trace.dat", 301),
        pytest.param("trace.dat", 11, marks=pytest.mark.slow),
        pytest.param("ctf", 11, marks=pytest.mark.slow),
    ],
)
def test_a_kill_at_any_step_of_a_trace(tmp_path: Path, name: str, every: int) -> None:
    for needed in ("trace-cmd", "babeltrace2"):
        tool(needed)
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
