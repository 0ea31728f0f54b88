"""`live` records the machine's files and the program alone; only if the environment says so.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted.
"""

import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from guestrun import Outcome, run
from livekernel import LIVE_KERNEL

from engine.image import ElfImage, SymbolTable
from engine.session.live.tracefs import Tracefs

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"changes the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)

PLUG: Final = "__attribute__((noinline)) int work(int n) { return n * 3; }\n"

USER: Final = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    void *plug = dlopen(argv[1], RTLD_NOW);
    int (*work)(int) = (int (*)(int))dlsym(plug, "work");
    int count = argc > 2 ? atoi(argv[2]) : 1000000000;
    for (int n = 0; n < count; n++)
        work(n), usleep(argc > 2 ? 0 : 1000);
    return 0;
}
"""

THREE: Final = r"""
#include <stdlib.h>
int main(void)
{
    for (volatile int n = 0; n < 3; n++)
        free(malloc(1000 + n));
    return 0;
}
"""


MOVED: Final = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
__attribute__((noinline, section(".text.hot"), aligned(4096))) int hot(int n) { return n * 3; }
__attribute__((noinline, section(".text.hot"), aligned(4096))) int next(int n) { return n; }
int main(void)
{
    int sum = 0, (*volatile call)(int) = hot;
    for (int n = 0; n < 5; n++)
        sum += call(n);
    void *to = mmap(0, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    call = (int (*)(int))mremap(hot, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    for (int n = 0; n < 5; n++)
        sum += call(n);
    return sum + next(0) != 60;
}
"""


class Machine:
    """A program and a library in one directory, and another directory to look from."""

    def __init__(self, folder: Path) -> None:
        (folder / "far").mkdir()
        (folder / "here").mkdir()
        self.here = folder / "here"
        self.plug = build(folder / "far", "plug.so", PLUG, "-O1", "-g", "-shared", "-fPIC")
        self.user = build(folder / "far", "user", USER, "-O1", "-g")

    def live(self, *words: str) -> Outcome:
        return run("live", "--format", "jsonl", *words, cwd=self.here)

    @property
    def offset(self) -> int:
        """The offset of `work` in the library's file."""
        image = ElfImage.open(self.plug)
        symbol = SymbolTable(image).find_all("work")[0]
        return image.file_offset(symbol.address) or 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def seen(done: Outcome) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.err.splitlines() if line.startswith('{"event"')]


def numbers(done: Outcome) -> list[int]:
    found = []
    for event in seen(done):
        args = event["args"]
        assert isinstance(args, dict)
        found.append(args["n"])
    return found


@contextmanager
def running(*words: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(words)
    time.sleep(0.5)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_no_hit_of_whatever_starts_the_program_is_shown(tmp_path: Path, tracefs: Tracefs) -> None:
    program = str(build(tmp_path, "three", THREE, "-O0"))
    done = run(
        "live", "-e", "p:m libc.so.6:malloc n=%di:u64", "--format", "jsonl", program, cwd=tmp_path
    )
    assert numbers(done) == [1000, 1001, 1002]
    nothing = str(build(tmp_path, "nothing", "int main(void) { return 0; }", "-O0"))
    words = ("-f", "libc.so.6:malloc", "-f", "libc.so.6:exec*", "--profile")
    assert seen(run("live", *words, "--format", "jsonl", nothing, cwd=tmp_path)) == []
    compared = run("diff", "--live", "-f", "libc.so.6:malloc", nothing, cwd=tmp_path)
    assert (compared.code, "0 events of the guest, 0 of the running" in compared.err) == (0, True)
    once = run(
        *("live", "-e", "p:m libc.so.6:malloc n=%di:u64", "--format", "jsonl"),
        *("--trigger", "kprobes/m:traceoff:1 if n == 1001", program),
        cwd=tmp_path,
    )
    assert numbers(once) == [1000, 1001]


def test_files_that_no_guest_sees(machine: Machine, tracefs: Tracefs) -> None:
    line = f"p:far/w {machine.plug}:{machine.offset:#x} n=%di:s32"
    done = machine.live("-e", line, str(machine.user), str(machine.plug), "100")
    assert numbers(done) == list(range(100))


def test_a_library_that_a_process_has_mapped(machine: Machine, tracefs: Tracefs) -> None:
    with running(machine.user, machine.plug) as process:
        words = ("-e", "p:far/w plug:work n=%di:s32", "--duration", "0.3")
        first = machine.live(*words, "--pid", str(process.pid))
        machine.plug.unlink()  # its name is gone, and then another file's
        machine.user.unlink()
        second = machine.live(*words, "--pid", str(process.pid))
        machine.plug.write_bytes(b"no library")
        third = machine.live(*words, "--pid", str(process.pid))
    for done in (first, second, third):
        found = numbers(done)
        assert len(found) > 50
        assert found == list(range(found[0], found[0] + len(found)))
        assert {str(event["symbol"]).partition("+")[0] for event in seen(done)} == {"work"}


def test_a_process_in_another_namespace(machine: Machine, tracefs: Tracefs) -> None:
    folder = machine.here / "root"
    folder.mkdir()
    script = machine.here / "enter"
    loader = ElfImage.open(machine.user).interpreter or ""
    libc = next(
        line.split()[2]
        for line in subprocess.check_output(["ldd", machine.user], text=True).splitlines()
        if "libc.so" in line
    )
    script.write_text(
        f"set -e; mount -t tmpfs none {folder}; cd {folder}; mkdir -p .{os.path.dirname(loader)}"
        f" .{os.path.dirname(libc)} opt proc; cp {loader} .{loader}; cp {libc} .{libc}\n"
        f"cp {machine.user} opt/user; cp {machine.plug} opt/real.so; ln -s /opt/real.so opt/a.so\n"
        "exec chroot . /opt/user /opt/a.so\n"
    )
    assert shutil.which("unshare") is not None
    with running("unshare", "-m", "sh", script) as process:
        for place in ("real:work", "/opt/real.so:{}", "/opt/a.so:{}", "libc.so.6:usleep"):
            line = f"p:far/w {place.format(hex(machine.offset))} n=%di:s32"
            done = machine.live("-e", line, "--duration", "0.3", "--pid", str(process.pid))
            assert len(seen(done)) > 50, done.err
            name = "usleep" if "usleep" in place else "work"
            assert {str(event["symbol"]).partition("+")[0] for event in seen(done)} == {name}


REFUSED: Final = r"""
__attribute__((noinline)) int fine(int n) { return n + 1; }
int counter;
__attribute__((naked)) void fixed(void) { __asm__ volatile("lock incl counter(%rip); ret"); }
int main(void) { fixed(); return fine(0) != 1; }
"""


def test_places_of_a_pattern_that_the_kernel_refuses_are_left_out(
    tmp_path: Path, tracefs: Tracefs
) -> None:
    program = str(build(tmp_path, "refused", REFUSED, "-O1"))
    told = (
        "1 places take no probe, the first: p:kprobes/p_fixed_0 fixed: the running kernel places"
    )
    done = run("live", "-f", "fi[nx]*", "--format", "jsonl", program, cwd=tmp_path)
    assert [event["symbol"] for event in seen(done)] == ["fine+0x0/0x4"]
    assert told in done.err
    compared = run("diff", "--live", "-f", "fi[nx]*", program, cwd=tmp_path)
    assert "1 events of the guest, 1 of the running kernel" in compared.err
    assert compared.code == 0
    named = run("live", "-e", "p fixed", program, cwd=tmp_path)
    assert (named.code, "lock prefix" in named.err) == (2, True)


@pytest.mark.parametrize("line", ["p:m/w hot", "r:m/w hot"])
def test_code_that_the_program_moves_is_followed(
    line: str, tmp_path: Path, tracefs: Tracefs
) -> None:
    program = str(build(tmp_path, "moved", MOVED, "-O1"))
    done = run("live", "-e", line, "--format", "jsonl", program, cwd=tmp_path)
    symbols = [str(event["symbol"]).partition("+")[0] for event in seen(done)]
    assert (done.code, symbols) == (0, ["hot"] * 10)
    compared = run("diff", "--live", "-e", line, program, cwd=tmp_path)
    assert "10 events of both compared, 10 are the same" in compared.err
    assert compared.code == 0


LENGTHS: Final = r"""
#include <string.h>
int main(int argc, char **argv)
{
    int sum = 0;
    for (volatile int n = 1; n < argc; n++)
        sum += strlen(argv[n]);
    return sum != 1 + 22 + 333;
}
"""


def test_an_indirect_function_is_recorded_where_this_processor_calls_it(
    tmp_path: Path, tracefs: Tracefs
) -> None:
    program = str(build(tmp_path, "lengths", LENGTHS, "-O0", "-fno-builtin"))
    words = (program, "1" * 1, "2" * 22, "3" * 333)
    probe = "p:m libc.so.6:strlen n=+0(%di):u8"
    done = run("live", "-e", probe, "--format", "jsonl", *words, cwd=tmp_path)
    assert numbers(done)[-3:] == [ord("1"), ord("2"), ord("3")]
    assert "strlen is an indirect function: its implementation on this machine is" in done.err
    compared = run("diff", "--live", "-e", probe, "-f", "libc.so.6:malloc", *words, cwd=tmp_path)
    assert compared.code == 0, compared.err
