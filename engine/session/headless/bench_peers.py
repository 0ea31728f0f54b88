"""The same hit elsewhere: a kernel's uprobe, uftrace, Frida, gdb, on a program that runs natively.

All figures are CPU nanoseconds of a call, those of the tool included where it is a process of its
own, over the same program by itself; each is the minimum of some runs.
"""

import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_TRACING: Final = Path("/sys/kernel/tracing")
_KERNEL_HITS: Final = 50_000
_GDB_HITS: Final = 2_000
_UFTRACE_CALLS: Final = 500_000
_FRIDA_CALLS: Final = 1_000_000
_PATIENCE: Final = 60.0
"""Seconds after which a tool is given up."""
_GDB: Final = """
import gdb
seen = []
class Stop(gdb.Breakpoint):
    def stop(self):
        frame = gdb.selected_frame()
        seen.append([int(frame.read_register(name)) for name in {registers}])
        return False
if {probed}:
    Stop("*{address:#x}")
gdb.execute("run")
if {probed} and len(seen) != {count}:
    gdb.execute("quit 3")
"""
_FRIDA: Final = """
import sys
import threading

import frida

gone = threading.Event()
pid = frida.spawn(sys.argv[1:], stdio="inherit")
session = frida.attach(pid)
session.on("detached", lambda *why: gone.set())
script = session.create_script('''
const seen = Memory.alloc(8 * 4100);
const code = new CModule(`
#include <gum/guminterceptor.h>
extern volatile gulong seen[];
void onEnter(GumInvocationContext *context)
{
  volatile gulong *row = seen + 4 + 4 * (seen[0]++ & 1023);
  for (int n = 0; n != 3; n++)
    row[n] = (gulong) gum_invocation_context_get_nth_argument(context, n);
}
`, { seen });
Interceptor.attach(Process.mainModule.getExportByName("work"), { onEnter: code.onEnter });
''')
script.load()
frida.resume(pid)
sys.exit(not gone.wait(60))
"""
_SOURCE: Final = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) long work(long a, long b, long c) { return a + b + c; }
int main(int argc, char **argv)
{
    volatile long sum = 0;
    for (long n = atol(argv[1]); n; n--)
        sum = work(n, n + 1, sum);
    printf("%ld\\n", (long)clock());
    return 0;
}
"""

Command = list[str | Path]


class Native(Struct, frozen=True):
    """A program for the host's own processor, whose probed function is called so often.

    Attributes:
        command: number of calls to the program and its arguments.
        address: link address of the function, in a file that is loaded where it says.
        offset: of the function in the file.
        registers: three of its arguments, as the kernel calls them.
        names: the same as gdb calls them.
    """

    command: Callable[[int], Command]
    address: int
    offset: int
    registers: Sequence[str]
    names: Sequence[str]


def _spent(words: Command, folder: Path | None = None) -> float:
    """CPU seconds of a command and its children, user and system.

    Args:
        words: the command.
        folder: where it runs; here if None.

    Raises:
        CommandError: it failed, or did not end.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if code:
            said.seek(0)
            why = said.read().decode(errors="replace").strip().splitlines()
            raise CommandError(f"{words[0]}: {why[-1] if why else f'exit code {code}'}")
    if code is None:
        raise CommandError(f"{words[0]} does not end")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _least(runs: int, measure: Callable[[], float]) -> float:
    return min((measure() for _ in range(runs)), default=math.inf)


def gdb(native: Native, runs: int) -> float | None:
    """A breakpoint of gdb whose Python reads three registers; None without gdb.

    Raises:
        CommandError: it failed.
    """
    command, names = shutil.which("gdb"), tuple(native.names)
    if command is None:
        return None
    program = native.command(_GDB_HITS)
    spent = []
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        for probed in (0, 1):
            text = _GDB.format(
                probed=probed, count=_GDB_HITS, address=native.address, registers=names
            )
            script.seek(0)
            script.truncate()
            script.write(text)
            script.flush()
            words: Command = [command, "-nx", "-batch", "-x", script.name, "--args", *program]
            spent.append(_least(runs, partial(_spent, words)))
    return (spent[1] - spent[0]) / _GDB_HITS * 1e9


def uftrace(runs: int) -> float | None:
    """Record a function with uftrace, compiled with -pg; None without it or a compiler.

    $UFTRACE names another command than `uftrace`.

    Raises:
        CommandError: it failed.
    """
    command, compiler = os.environ.get("UFTRACE", "uftrace"), shutil.which("cc")
    if shutil.which(command) is None or compiler is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, program = folder / "work.c", folder / "work"
        source.write_text(_SOURCE)
        subprocess.run([compiler, "-O1", "-pg", "-o", program, source], check=True)
        calls: Command = [program, str(_UFTRACE_CALLS)]
        record: Command = [command, "record", "--no-libcall", "-F", "work", "-d", folder / "data"]
        traced = _least(runs, partial(_spent, [*record, *calls], folder))  # -pg leaves gmon.out
        return (traced - _least(runs, partial(_spent, calls, folder))) / _UFTRACE_CALLS * 1e9


def frida(runs: int) -> float | None:
    """A handler of Frida's in C that keeps three registers; None without Frida or a compiler.

    It is the program's own CPU time: what Frida takes to get there is not in it. $FRIDA_PYTHON
    names a Python that has it, if this one has not.

    Raises:
        CommandError: it failed.
    """
    compiler, python = shutil.which("cc"), os.environ.get("FRIDA_PYTHON", sys.executable)
    asked: Command = [python, "-c", "import frida"]
    if compiler is None or shutil.which(python) is None:
        return None
    if subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode:
        return None
    with tempfile.TemporaryDirectory() as name:
        source, program = Path(name) / "work.c", Path(name) / "work"
        source.write_text(_SOURCE)
        subprocess.run([compiler, "-O1", "-rdynamic", "-o", program, source], check=True)

        def spent(calls: int, *, attached: bool) -> float:
            words: Command = [program, str(calls)]
            if attached:
                words = [python, "-c", _FRIDA, *words]
            try:
                done = subprocess.run(
                    words,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=_PATIENCE,
                )
                return int(done.stdout) / 1e6
            except subprocess.TimeoutExpired:
                raise CommandError("Frida does not end") from None
            except ValueError:
                raise CommandError(f"Frida: {done.stderr.strip() or done.returncode}") from None

        traced, few, plain = (
            _least(runs, partial(spent, calls, attached=attached))
            for calls, attached in ((_FRIDA_CALLS, True), (1, True), (_FRIDA_CALLS, False))
        )
        return (traced - few - plain) / _FRIDA_CALLS * 1e9


def kernel_uprobe(native: Native, runs: int) -> float:
    """A uprobe event of the running kernel, with a trace buffer of its own.

    Raises:
        CommandError: not root, no tracefs, or the probe was not hit at every call.
    """
    if os.geteuid() != 0:
        raise CommandError("a probe in the running kernel takes root")
    words = native.command(_KERNEL_HITS)
    plain = _least(runs, partial(_spent, words))
    try:
        with _tracefs(), _event(Path(words[0]), native) as event:
            probed = _least(runs, partial(_spent, words))
            hits = _hits(event)
    except OSError as error:
        raise CommandError(f"no uprobe in the running kernel: {error}") from error
    if hits != runs * _KERNEL_HITS:
        raise CommandError(f"kernel uprobe: {hits} hits of {runs * _KERNEL_HITS}")
    return (probed - plain) / _KERNEL_HITS * 1e9


@contextmanager
def _tracefs() -> Iterator[None]:
    """The tracing file system, mounted for the time if it is not."""
    if (_TRACING / "uprobe_events").exists():
        yield
        return
    words = ["mount", "-t", "tracefs", "tracefs", str(_TRACING)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip() or "tracefs cannot be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", str(_TRACING)], check=True)


@contextmanager
def _event(program: Path, native: Native) -> Iterator[str]:
    """An enabled uprobe with a group and a trace instance of its own; gone afterwards."""
    group = f"kprobe_tui_{os.getpid()}"
    event = f"hit_{os.getpid()}"  # uprobe_profile does not show groups
    fields = " ".join(f"a{number}={name}" for number, name in enumerate(native.registers))
    instance = _TRACING / "instances" / group
    enable = instance / "events" / group / event / "enable"
    _append(f"p:{group}/{event} {program}:{native.offset:#x} {fields}")
    try:
        instance.mkdir()
        try:
            enable.write_text("1")
            try:
                yield event
            finally:
                enable.write_text("0")
        finally:
            instance.rmdir()
    finally:
        _append(f"-:{group}/{event}")


def _append(line: str) -> None:
    # Plain calls: the file refuses the seek of `open`. Without O_APPEND all events would go.
    events = os.open(_TRACING / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(events, f"{line}\n".encode())
    finally:
        os.close(events)


def _hits(event: str) -> int:
    """The hits that the kernel has counted for an event (uprobe_profile)."""
    rows = (line.split() for line in (_TRACING / "uprobe_profile").read_text().splitlines())
    return sum(int(row[-1]) for row in rows if len(row) >= 2 and row[-2] == event)
