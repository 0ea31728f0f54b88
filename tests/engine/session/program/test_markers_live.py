"""Static probes in the kernel that runs here, against ours and perf's; only if asked for.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted.
"""

import os
import platform
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from compiled import build
from guestrun import run
from livekernel import LIVE_KERNEL
from livekit import left
from markerkit import HEADERS, INNER, ZOO

from engine.session.live.tracefs import Tracefs

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"changes the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)
PYTHON = Path("/usr/bin/python3.11")
SCRIPT = "import gc\ndef f(n): return n + 1\nfor i in range(3): f(i)\ngc.collect()\n"


def rows(path: Path) -> list[str]:
    """The events of a trace without their heads, stacks' and libraries' addresses as '*'."""
    found = re.findall(r"\d: (\w+: \(0x[0-9a-f]+\).*)", path.read_text())
    return [re.sub(r"0x7f[0-9a-f]{10}|\b140\d{12}\b|\b9382\d{10}\b", "*", row) for row in found]


def both(home: Path, *words: str) -> tuple[list[str], list[str]]:
    """The events that the kernel has recorded, and ours."""
    made = outputs(home)
    for name in ("live", "trace"):
        done = run(name, "--clean-env", "-o", str(made / name), *words, cwd=home)
        assert done.code == 0, done.err
    assert left(Tracefs.found()) == []
    return rows(made / "live"), rows(made / "trace")


def outputs(home: Path) -> Path:
    """A folder for outputs.

    Where a file comes into being beside Python's script, the folder's time changes, and the next
    import reads the folder again: one call more of `_fill_cache`.
    """
    made = home / "outputs"
    made.mkdir(exist_ok=True)
    return made


@pytest.mark.parametrize("optimised", ["-O0", "-O1", "-O2"])
def test_the_kernel_records_the_same(optimised: str, tmp_path: Path) -> None:
    flags = (optimised, "-g", "-I", str(HEADERS))
    zoo = build(tmp_path, "zoo", ZOO.read_text(), *flags)
    for name in ("globals", "consts", "fed", "twice", "other", "none"):
        theirs, ours = both(tmp_path, "-e", f"sdt_zoo:{name}", str(zoo))
        assert ours == theirs
        assert len(ours) == 4
    line = "p %sdt_zoo:many $arg1 $arg2 $arg3 $arg4 $arg5 t=+0($arg6):string $arg7 $arg8 $arg9"
    theirs, ours = both(tmp_path, "-e", line, str(zoo))
    assert ours == theirs
    assert 't="hello"' in ours[3]


@pytest.mark.parametrize("flags", [("-O2", "-fPIE", "-pie"), ("-O2", "-fno-pie", "-no-pie")])
def test_operands_at_symbols_are_recorded_the_same(flags: tuple[str, ...], tmp_path: Path) -> None:
    inner = build(tmp_path, "inner", INNER.read_text(), *flags, "-I", str(HEADERS))
    theirs, ours = both(tmp_path, "-e", "sdt_inner:*", str(inner))
    assert ours == theirs
    assert len(ours) == 6


def test_python_is_recorded_the_same(tmp_path: Path) -> None:
    if not PYTHON.exists() or b"stapsdt" not in PYTHON.read_bytes():
        pytest.skip("no python3.11 with static probes")
    (tmp_path / "t.py").write_text(SCRIPT)
    entry = "p:py/entry %sdt_python:function__entry $arg1 n=+0($arg2):string $arg3"
    entry = entry.replace("$arg1", "f=+0($arg1):string")
    words = ("-e", entry, "-e", "p:py/line %sdt_python:line $arg3", "-e", "sdt_python:gc__start")
    theirs, ours = both(tmp_path, *words, str(PYTHON), "-S", "-E", "t.py")

    assert ours == theirs
    assert len([row for row in ours if 'f="' in row and 't.py" n="f"' in row]) == 3


def test_perf_defines_the_same(tmp_path: Path) -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("perf is not installed")
    zoo = build(tmp_path, "zoo", ZOO.read_text(), "-O2", "-g", "-I", str(HEADERS))
    listed = run("trace", "--list", "-e", "sdt_zoo:*", str(zoo), cwd=tmp_path)
    ours = {tuple(line.split()[:2]): line.split()[2:] for line in listed.out.splitlines()}
    compared: Counter[bool] = Counter()
    for name in ("many", "globals", "consts", "stack", "fed", "twice", "other", "none"):
        command = [perf, "probe", "-x", str(zoo), "--definition", f"sdt_zoo:{name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            _, place, *args = line.split()
            words = next(w for (_, at), w in ours.items() if _same_place(at, place))
            known = dict(word.split("=", 1) for word in words)
            for word in args:
                argument, body = word.split("=", 1)
                compared[known[argument] == body] += 1
    assert compared[False] == 0, compared
    assert compared[True] > 10


def test_bpftrace_counts_the_same(tmp_path: Path) -> None:
    """Each static probe of a program, with its native bpftrace; all of them in one run."""
    bpftrace = shutil.which("bpftrace")
    if bpftrace is None:
        pytest.skip("bpftrace is not installed")
    zoo = build(tmp_path, "zoo", ZOO.read_text(), "-O1", "-g", "-I", str(HEADERS))
    names = "many globals consts stack fed twice other none"
    counted(tmp_path, bpftrace, "zoo", names.split(), [str(zoo)])
    if PYTHON.exists() and b"stapsdt" in PYTHON.read_bytes():
        (tmp_path / "t.py").write_text(SCRIPT)
        names = (
            "function__entry function__return line gc__start gc__done import__find__load__start"
        )
        words = [str(PYTHON), "-S", "-E", "-B", "t.py"]
        found = counted(tmp_path, bpftrace, "python", names.split(), words)
        assert found["gc__start"] == found["gc__done"] > 1


def counted(
    home: Path, bpftrace: str, provider: str, names: list[str], words: list[str]
) -> Counter[str]:
    """Hits of static probes that bpftrace has counted; ours have to be the same."""
    script = "".join(
        f'usdt:{words[0]}:{provider}:{each} {{ @["{each}"] = count(); }}' for each in names
    )
    command = [bpftrace, "-e", script, "-c", " ".join(words)]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=100)
    theirs = {name: int(count) for name, count in re.findall(r"@\[(\w+)\]: (\d+)", done.stdout)}
    options = [word for each in names for word in ("-e", f"sdt_{provider}:{each}")]
    out = outputs(home) / "counted"
    ran = run("trace", "--clean-env", "-o", str(out), *options, *words, cwd=home)
    assert ran.code == 0, ran.err
    ours = Counter(re.findall(r"\d: (\w+?)(?:_\d)?: \(", out.read_text()))
    assert theirs == ours, done.stderr
    assert len(theirs) > 2
    return ours


def _same_place(one: str, other: str) -> bool:
    return re.sub(r":0x0*", ":0x", one) == re.sub(r":0x0*", ":0x", other)
