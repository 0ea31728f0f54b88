"""Programs under strace itself and under ours: the same text for the same calls."""

import shutil

import pytest
from cguest import compiled_from
from stracekit import Compared, StracePair
from sysroot import CHECKOUT

SOURCES = CHECKOUT / "tests" / "data" / "strace"
SYSTEM = (
    "/bin/true", "/bin/false", "/bin/echo hello world", "/bin/cat /etc/passwd", "/bin/ls -la .",
    "/usr/bin/head -n2 /etc/passwd", "/usr/bin/tail -n2 /etc/passwd", "/usr/bin/wc /etc/passwd",
    "/usr/bin/sort /etc/passwd", "/usr/bin/uniq /etc/passwd", "/usr/bin/cut -d: -f1 /etc/passwd",
    "/usr/bin/tr a b", "/usr/bin/seq 5", "/usr/bin/expr 1 + 2", "/usr/bin/stat /etc/passwd",
    "/usr/bin/touch x", "/bin/mkdir -p a/b", "/bin/rm -f nothing", "/bin/cp /etc/passwd p",
    "/bin/mv nothing else", "/bin/ln -s a b", "/usr/bin/readlink -f /bin/sh", "/usr/bin/env",
    "/usr/bin/id", "/bin/pwd", "/usr/bin/od /etc/hostname", "/usr/bin/md5sum /etc/passwd",
    "/usr/bin/tee t", "/usr/bin/nl /etc/hostname", "/usr/bin/factor 1234567", "/bin/uname -a",
    "/usr/bin/tac /etc/hostname", "/bin/sed -n 1p /etc/passwd", "/bin/grep root /etc/passwd",
    "/usr/bin/find .", "/bin/dd if=/dev/zero of=z count=2", "/usr/bin/printf %d 5",
    "/bin/chmod 600 nothing", "/usr/bin/tty", "/usr/bin/truncate -s 10 f",
)  # fmt: skip
"""Programs of Debian's essential packages."""
CALLS = ("files", "memory", "signals", "network", "netlink", "processes")
"""Programs of ours that make many different calls."""


@pytest.fixture(autouse=True)
def with_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")


def test_a_program() -> None:
    found = StracePair(["/bin/echo", "hello"]).compare()
    assert found.differing == []
    assert found.equal > 20


@pytest.mark.slow
def test_calls_of_all_kinds() -> None:
    """Of 120 different calls those whose raw numbers are equal have equal texts."""
    total = Compared()
    for name in CALLS:
        program = compiled_from(SOURCES / f"{name}.c", "x86_64")
        total.add(StracePair([str(program)]).compare())
    assert total.share >= 0.98, "\n".join(map(str, total.differing))
    assert len(total.names) >= 120


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in (*CALLS, "bpf") if name != "netlink"])
def test_structures_that_are_not_read(name: str) -> None:
    program = compiled_from(SOURCES / f"{name}.c", "x86_64")
    found = StracePair([str(program)], ["-e", "verbose=none"]).compare()
    assert found.differing == []
    assert found.equal > 40


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-v",), ("-x", "-s", "3")])
def test_commands_of_bpf(options: tuple[str, ...]) -> None:
    """All commands at all sizes; no call is made: kernels refuse differently."""
    program = compiled_from(SOURCES / "bpf.c", "x86_64")
    refused = ("-e", "trace=bpf", "-e", "inject=bpf:error=EPERM")
    found = StracePair([str(program)], [*options, *refused]).compare()
    assert found.differing == []
    assert found.equal + len(found.apart) >= 130
    assert len(found.apart) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-v",), ("-x", "-s", "3"), ("-e", "verbose=none")])
def test_messages_of_netlink(options: tuple[str, ...]) -> None:
    program = compiled_from(SOURCES / "netlink.c", "x86_64")
    found = StracePair([str(program)], [*options, "-e", "trace=%network"]).compare()
    assert found.differing == []
    assert found.equal >= 290


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files", "network"])
def test_bytes_that_are_read_and_written(name: str) -> None:
    program = compiled_from(SOURCES / f"{name}.c", "x86_64")
    options = [
        "-e",
        "read=all",
        "-e",
        "write=all",
        "-e",
        "trace=desc,network",
        "-e",
        "verbose=none",
    ]
    found = StracePair([str(program)], options).compare()
    assert found.differing == []
    assert found.equal > 60
    assert not [line for line in found.single if line[2:5] in (" | ", " * ")]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(SYSTEM), 5))
def test_programs_of_the_system(first: int) -> None:
    total = Compared()
    for line in SYSTEM[first : first + 5]:
        total.add(StracePair(line.split()).compare())
    assert total.equal > 100
    assert total.share >= 0.98, "\n".join(map(str, total.differing))
