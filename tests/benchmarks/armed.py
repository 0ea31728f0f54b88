"""What it takes to keep very many events armed: memory and processor time of a whole trace.

`python tests/benchmarks/armed.py [--events N] [--every N] [--limit MIB] [LIBRARY]`. Every fourth
instruction of LIBRARY that a uprobe is accepted at gets an event of two registers, until there are
N (a million). `kprobe-tui trace` reads the definitions from a file; the guest is a program that
calls one function of the library, and the events that it hits are recorded. LIBRARY is the
machine's biggest LLVM without one. A trace that takes more than the limit (4 GiB) is ended, so
that the machine is not harmed. To choose the places takes a tenth of a millisecond each of CPU
time; `--definitions FILE` keeps them for the next time.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.session.headless.checks import check
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.requests import CheckRequest, Rules
from tests.benchmarks import measuring

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_ENVIRONMENT: Final = {"PYTHONPATH": str(_CHECKOUT), "PYTHONDONTWRITEBYTECODE": ""}
_LIBRARIES: Final = Path("/usr/lib/x86_64-linux-gnu")
_EVENTS: Final = 1_000_000
_MEMORY: Final = (763.0, 700.0)  # MiB: reach (0.8 GB), aim
_CALLER: Final = """\
void *LLVMContextCreate(void);
void LLVMContextDispose(void *context);
int main(void) { LLVMContextDispose(LLVMContextCreate()); return 0; }
"""


def biggest() -> Path | None:
    """The machine's biggest LLVM library, None without one."""
    found = {path.resolve() for path in _LIBRARIES.glob("libLLVM*.so*")}
    return max(found, key=lambda path: path.stat().st_size, default=None)


def accepted(library: Path) -> Iterator[int]:
    """File offsets of the instructions at which a uprobe is accepted."""
    request = CheckRequest(
        GuestConfig(str(library)), rules=Rules.UPROBE, mode=Mode.STRICT, everything=True
    )
    for placed in check(request).rest:
        if placed.judgement.ok and placed.place.file_offset is not None:
            yield placed.place.file_offset


def choose(library: Path, events: int, every: int, file: Path) -> int:
    """Write the definitions; the number of them."""
    count = 0
    with file.open("w") as out:
        for offset in islice(accepted(library), 0, events * every, every):
            out.write(f"p:armed/e{count} {library}:{offset:#x} a=%di b=%si\n")
            count += 1
    return count


def traced(words: list[str], limit: int) -> measuring.Spent:
    """A trace whose memory is looked at meanwhile.

    Args:
        words: of the command line.
        limit: MiB at which it is ended.

    Raises:
        RuntimeError: it failed, or took more.
    """
    start = time.perf_counter()
    child = subprocess.Popen(words, env={**os.environ, **_ENVIRONMENT})
    pages = Path(f"/proc/{child.pid}/statm")
    while True:
        done, status, usage = os.wait4(child.pid, os.WNOHANG)
        if done:
            break
        if int(pages.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20 > limit:
            os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.2)
    child.returncode = code = os.waitstatus_to_exitcode(status)
    if code:
        raise RuntimeError(f"the trace ended with {code} at {usage.ru_maxrss >> 10} MiB")
    wall = time.perf_counter() - start
    return measuring.Spent(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, b"")


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="Memory and time of very many armed events.")
    parser.add_argument("--events", type=int, default=_EVENTS)
    parser.add_argument("--every", type=int, default=4, help="accepted instruction (default 4)")
    parser.add_argument("--limit", type=int, default=4096, help="MiB (default 4096)")
    parser.add_argument("--definitions", type=Path, help="keep them in a file, or take them")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("library", nargs="?", type=Path)
    options = parser.parse_args()
    library = options.library or biggest()
    if library is None:
        print(f"no libLLVM in {_LIBRARIES}: name a LIBRARY", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        definitions = options.definitions or Path(folder) / "definitions"
        if definitions.exists():
            count = sum(1 for _ in definitions.open("rb"))
        else:
            count = choose(library, options.events, options.every, definitions)
        guest, trace = Path(folder) / "guest", Path(folder) / "trace"
        guest.with_suffix(".c").write_text(_CALLER)
        found_there = f"-Wl,-rpath,{library.parent}"
        source = guest.with_suffix(".c")
        subprocess.run(["gcc", "-o", guest, source, library, found_there], check=True)
        trace_words = [sys.executable, "-m", "tui", "trace", "-o", str(trace)]
        if not library.is_relative_to("/usr"):  # no guest sees it unasked
            trace_words += ["--share", str(library.parent)]
        with definitions.open() as lines:
            first = next(lines).strip()
        none = traced([*trace_words, "-e", first, str(guest)], options.limit)
        spent = traced([*trace_words, "-e", f"@{definitions}", str(guest)], options.limit)
        hits = sum(not line.startswith(b"#") for line in trace.open("rb"))
    each = (spent.peak - none.peak) / count
    found = {
        "library": str(library),
        "events": count,
        "hits": hits,
        "peak_mib": spent.peak >> 10,
        "peak_without_mib": none.peak >> 10,
        "kib_an_event": round(each, 3),
        "cpu_s": round(spent.cpu, 1),
        "cpu_without_s": round(none.cpu, 1),
        "wall_s": round(spent.wall, 1),
    }
    if options.json:
        print(json.dumps({"facts": measuring.machine(), **found}, indent=1))
        return 0
    print(measuring.heading(measuring.machine()), end="\n\n")
    for name, value in found.items():
        print(f"{name:<18}{value}")
    if count == _EVENTS:
        print(f"\nmemory: {measuring.verdict(spent.peak / 1024, *_MEMORY)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
