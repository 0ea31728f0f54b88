"""The vDSO is that of Linux by its names, and its clocks are those of the system calls.

What a processor of the host's says of the same program is compared on x86-64.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from archkit import COMPILED, COMPILERS
from compiled import tool
from guestrun import run
from sysroot import CHECKOUT

from engine.arch import by_name
from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.linux.vdso import image_of

SOURCE = CHECKOUT / "tests" / "data" / "vdso" / "walk.c"
each_arch = pytest.mark.parametrize("arch", COMPILED)
# lib/vdso and arch/*/kernel/vdso/vdso.lds.S of Linux 6.18, without getrandom.
CLOCKS = ("clock_gettime", "gettimeofday", "clock_getres")
NAMES = {
    "x86_64": {
        f"{front}{name}@LINUX_2.6 {binding}"
        for name in (*CLOCKS, "time", "getcpu")
        for front, binding in (("__vdso_", "global"), ("", "weak"))
    },
    "aarch64": {f"__kernel_{name}@LINUX_2.6.39 global" for name in (*CLOCKS, "rt_sigreturn")},
    "riscv64": {
        f"__vdso_{name}@LINUX_4.15 global"
        for name in (*CLOCKS, "getcpu", "flush_icache", "rt_sigreturn", "riscv_hwprobe")
    },
}
ALONE = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    struct timespec a, b;
    struct timeval c;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 9;
    clock_gettime(CLOCK_MONOTONIC, &b);
    gettimeofday(&c, 0);
    syscall(SYS_exit, b.tv_sec * 1000000000L + b.tv_nsec > a.tv_sec * 1000000000L + a.tv_nsec);
}
"""


def compiled(folder: Path, arch: str, source: Path, *flags: str) -> Path:
    program = folder / f"{source.stem}-{arch}"
    command = [tool(COMPILERS[arch]), "-O1", *flags, "-o", str(program), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return program


@each_arch
def test_the_image_is_what_its_source_makes(arch: str, tmp_path: Path) -> None:
    tool(COMPILERS[arch])
    subprocess.run(
        ["make", "-s", "-C", CHECKOUT / "engine" / "arch", f"OUT={tmp_path}", arch],
        check=True,
        capture_output=True,
    )
    made = ElfImage.from_bytes((tmp_path / arch / "vdso.so").read_bytes(), "made")
    abi = by_name(arch).linux.vdso
    assert abi is not None
    image = image_of(abi)
    assert image.soname == "linux-vdso.so.1"
    assert made.read_vaddr(0, made.high) == image.read_vaddr(0, image.high)


@each_arch
def test_programs_find_it_as_on_linux(arch: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, arch, SOURCE, "-static")
    done = run("run", str(program), "names", cwd=tmp_path)
    *names, last = done.out.splitlines()
    assert (set(names), len(names)) == (NAMES[arch], len(NAMES[arch]))
    assert (last, done.code) == ("0 differences", 0)


def test_the_host_finds_the_same_names(tmp_path: Path) -> None:
    program = compiled(tmp_path, "x86_64", SOURCE, "-static")
    native = subprocess.run([program, "names"], capture_output=True, text=True, check=False)
    if native.returncode == 99:
        pytest.skip("no vDSO here")
    own = {line for line in native.stdout.splitlines() if "getrandom" not in line}
    assert NAMES["x86_64"] <= own
    assert "0 differences" in own


@each_arch
def test_no_system_call_is_made_for_the_time(arch: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(ALONE)
    program = compiled(tmp_path, arch, source, "-static")
    assert run("run", str(program), cwd=tmp_path).code == 1


def test_loaders_and_other_libraries_use_it(tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(ALONE)
    dynamic = compiled(tmp_path, "x86_64", source)
    assert run("run", str(dynamic), cwd=tmp_path).code == 1
    musl = shutil.which("musl-gcc")
    if musl is not None:
        program = tmp_path / "musl"
        subprocess.run([musl, "-static", "-idirafter", "/usr/include", "-idirafter",
                        "/usr/include/x86_64-linux-gnu", "-o", program, source],
                       check=True, capture_output=True)  # fmt: skip
        assert run("run", str(program), cwd=tmp_path).code == 1


def test_maps_show_it_with_its_data(tmp_path: Path) -> None:
    done = run("run", "/bin/cat", "/proc/self/maps", cwd=tmp_path)
    found = [line.split() for line in done.out.splitlines() if "[v" in line]
    assert [(row[1], row[2], row[-1]) for row in found] == [
        ("r--p", "00000000", "[vvar]"),
        ("r--p", "00000000", "[vvar_vclock]"),
        ("r-xp", "00000000", "[vdso]"),
        ("--xp", "00000000", "[vsyscall]"),
    ]
    ranges = [[int(end, 16) for end in row[0].split("-")] for row in found[:3]]
    assert [end - start for start, end in ranges] == [0x4000, 0x2000, 0x1000]
    assert [start for start, _ in ranges[1:]] == [end for _, end in ranges[:-1]]


@each_arch
def test_handlers_return_to_its_symbol(arch: str) -> None:
    abi, code = by_name(arch).linux.vdso, by_name(arch).linux.signals.return_code
    assert abi is not None
    image = image_of(abi)
    names = [s for s in SymbolTable(image) if s.name.endswith("rt_sigreturn")]
    assert bool(names) is abi.returns
    for symbol in names:
        assert image.read_vaddr(0, image.high).index(code) == symbol.address


def test_events_and_backtraces_know_it(tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text(ALONE)
    program = compiled(tmp_path, "x86_64", source, "-fno-pie", "-no-pie", "-g")
    words = ["-e", "p:at [vdso]:__vdso_gettimeofday", "--stack", "--format", "jsonl"]
    done = run("trace", *words, str(program), cwd=tmp_path)
    rows = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    stacks = [[frame["symbol"] for frame in row["stack"]] for row in rows if "stack" in row]
    ((first, second),) = [stack[:2] for stack in stacks]
    assert first.startswith("__vdso_gettimeofday+0x0/")
    assert second.startswith("main+")


def test_linux_places_no_probe_there(tmp_path: Path) -> None:
    words = ["--mode", "kernel", "-e", "p [vdso]:__vdso_time", "/bin/true"]
    done = run("trace", *words, cwd=tmp_path)
    assert done.code == 2
    assert "Linux places no probe in the vDSO" in done.err


def test_a_recording_tells_the_same_time(tmp_path: Path) -> None:
    program = compiled(tmp_path, "x86_64", SOURCE)
    told = run("record", "-o", "run.rec", str(program), cwd=tmp_path)
    assert told.out == "0 differences\n"
    again = run("replay", "-e", "p:at [vdso]:__vdso_time", "run.rec", cwd=tmp_path)
    assert (again.code, again.err.count(": at: (__vdso_time+0x0")) == (0, 1)
