"""C guests say the same on the host's kernel and on ours.

What differs by nature (ids, addresses, exact times) the guests do not print. A guest's output
does not depend on the architecture unless it is listed as such, so the host's is the oracle
for AArch64 too.
"""

import difflib
import os
import re
from itertools import product
from pathlib import Path

import pytest
from archkit import COMPILED, FIRST_COMPILED
from cguest import SOURCES, compiled, emulated, natively

from engine import arch as architectures

PORTABLE = (
    *("errors", "eventfiles", "filemap", "madvise", "misc", "mmap", "processes", "signals"),
    *(
        "epollnest",
        "openat2",
        "exitsignals",
        "start",
        "stops",
        "sysv",
        "threads",
        "timers",
        "unlinked",
        "vast",
    ),
)
OWN_WAYS = ("errors", "signals", "start")
"""Of these: what each architecture has in a way of its own."""
SHARING = (
    *("cpulimit", "forkmemory", "locks", "prctl", "ptys", "sharing", "sockevents", "tcp", "udp"),
    *(
        "exefile",
        "mainstack",
        "procthreads",
        "requeue",
        "rights",
        "seals",
        "sigio",
        "stacklimit",
        "unixsockets",
        "unshare",
        "usage",
    ),
)
"""What processes have in common; it hardly depends on the architecture."""
LONG = ("cpulimit", "locks", "ptys", "sharing", "usage")
"""Those of them that take longest."""
ATTRIBUTES = ("inotify", "xattrs")
"""They need a file system that has extended attributes."""
SHARED = ("filemap", "madvise", "unlinked")
"""Those whose files are the host's, too, where they are in a writable share."""
OF_X86_64 = ("counter", "fpu", "ldt", "ptracex86", "sigfpe", "siginfo", "steps", "x86")
TRACING = ("x86_64", "aarch64")
"""They have PTRACE_SYSEMU."""
OF_AARCH64 = ("arm", "siginfo")
"""Compared with a file of what Linux does, as no AArch64 kernel is at hand."""


def _same(want: str, got: str) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0):
        # The host's answers are those of whoever has niced this test.
        want, got = (
            re.sub(r"(?m)^(getpriority\(|setpriority\(|nice\(|syscall\(SYS_sched).*\n", "", t)
            for t in (want, got)
        )
    if want != got:
        lines = difflib.unified_diff(want.splitlines(), got.splitlines(), "Linux", "ours", n=1)
        pytest.fail("\n".join(lines), pytrace=False)


def _fits(name: str, arch: str) -> bool:
    """Some print AT_PLATFORM, some map at fixed addresses of 47 bits: not everybody has them."""
    record = architectures.by_name(arch)
    if name in ("filemap", "mmap", "vast"):
        return record.plan.task_size >= (1 << 47) - 0x1000
    return name != "start" or bool(record.linux.platform)


def _host(name: str, folder: Path, *words: str) -> str:
    if os.uname().machine != "x86_64" or os.uname().sysname != "Linux":
        pytest.skip("the oracle is an x86-64 Linux host")
    return natively(compiled(name, "x86_64"), folder, *(words or ("a", "b c")))


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        pytest.param(
            *pair, marks=[] if pair[1] == COMPILED[0] or pair[0] in OWN_WAYS else pytest.mark.slow
        )
        for pair in product(PORTABLE, COMPILED)
        if _fits(*pair)
    ],
)
def test_portable(name: str, arch: str, tmp_path: Path) -> None:
    program = compiled(name, arch)
    words = ("a", "b c", *(("alone",) if arch != "x86_64" else ()))
    _same(_host(name, tmp_path, *words), emulated(program, tmp_path, *words))


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in SHARING],
)
def test_sharing(name: str, arch: str, tmp_path: Path) -> None:
    _same(_host(name, tmp_path), emulated(compiled(name, arch), tmp_path, "a", "b c"))


@pytest.mark.parametrize(
    ("arch", "seed"),
    [
        ("x86_64", "1"),
        pytest.param("aarch64", "1", marks=pytest.mark.slow),
        *(pytest.param("x86_64", seed, marks=pytest.mark.slow) for seed in ("5", "6")),
    ],
)
def test_filters_of_system_calls(arch: str, seed: str, tmp_path: Path) -> None:
    """Fixed ones, and programs of classic BPF drawn at random: taken or refused, and answers."""
    # Answers depend on the numbers of calls: those of drawn programs are compared on one.
    rounds = "300" if arch == "x86_64" else "0"
    want = _host("seccomp", tmp_path, "x", seed, rounds)
    _same(want, emulated(compiled("seccomp", arch), tmp_path, "x", seed, rounds))


@pytest.mark.parametrize("seed", ["1", "5", "7"])
def test_arguments_of_system_v_calls_that_are_seldom_given(seed: str, tmp_path: Path) -> None:
    want = _host("sysvargs", tmp_path, seed, "1000")
    _same(want, emulated(compiled("sysvargs", "x86_64"), tmp_path, seed, "1000"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2", "3", "4"])
def test_the_first_error_of_bad_arguments(seed: str, tmp_path: Path) -> None:
    folders = tmp_path / "host", tmp_path / "guest"
    for folder in folders:
        folder.mkdir()
    want, got = (
        _host("badargs", folders[0], seed, "60"),
        emulated(compiled("badargs", "x86_64"), folders[1], seed, "60"),
    )
    assert want.count("\n") > 7000
    _same(want, got)


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_the_order_of_errors_of_linux_6_18(arch: str, tmp_path: Path) -> None:
    """Compare calls that older kernels answer in another way with the answers of 6.18.44."""
    want = (SOURCES / "laterorder.txt").read_text()
    _same(want, emulated(compiled("laterorder", arch), tmp_path, "a"))


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_io_uring(arch: str, tmp_path: Path) -> None:
    want = _host("uring", tmp_path)
    if want.startswith("no io_uring"):
        pytest.skip("the host's kernel gives nobody an io_uring")
    _same(want, emulated(compiled("uring", arch), tmp_path))


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_process_1_is_anothers(arch: str, tmp_path: Path) -> None:
    try:
        owner = Path("/proc/1/status").stat().st_uid
    except OSError as error:
        pytest.skip(f"the host does not show process 1: {error}")
    if owner != 0:
        pytest.skip("process 1 of this host is not root's")
    _same(_host("init", tmp_path), emulated(compiled("init", arch), tmp_path))


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_extended_attributes(name: str, arch: str, tmp_path: Path) -> None:
    try:
        os.setxattr(tmp_path, "user.probe", b"1")
        os.removexattr(tmp_path, "user.probe")
    except OSError as error:
        pytest.skip(f"the oracle's file system has no extended attributes: {error}")
    _same(_host(name, tmp_path), emulated(compiled(name, arch), tmp_path, "a", "b c"))


@pytest.mark.parametrize("name", SHARED)
def test_files_of_the_host(name: str, tmp_path: Path) -> None:
    program = compiled(name, "x86_64")
    expected = _host(name, tmp_path)
    shared = ("--share", f"{tmp_path}:rw", "--start", "now")
    _same(expected, emulated(program, tmp_path, "a", "b c", options=shared))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arch", [arch for arch in COMPILED if arch in TRACING])
def test_ptrace(arch: str, tmp_path: Path) -> None:
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = "0"
    if scope != "0":
        pytest.skip("this host lets only parents trace (ptrace_scope)")
    _same(_host("ptrace", tmp_path), emulated(compiled("ptrace", arch), tmp_path, "a", "b c"))


@pytest.mark.parametrize("name", OF_X86_64)
def test_x86_64(name: str, tmp_path: Path) -> None:
    program = compiled(name, "x86_64")
    _same(_host(name, tmp_path), emulated(program, tmp_path, "a", "b c"))


@pytest.mark.parametrize("name", OF_AARCH64)
def test_aarch64(name: str, tmp_path: Path) -> None:
    want = (SOURCES / f"{name}.aarch64.txt").read_text()
    _same(want, emulated(compiled(name, "aarch64"), tmp_path, "a", "b c"))
