"""Guests that have their kernel hold memory without end: one limit counts all of it."""

import os
import subprocess
from pathlib import Path

import pytest
from archkit import FIRST_COMPILED
from cguest import SOURCES, compiled, emulated
from guestrun import run

LIMIT = 64
BESIDE = 150
"""Mebibytes that the tool may take beside what the guest may use."""
KINDS = {
    **dict.fromkeys(("memfd", "tmpfs", "overlay", "unlinked", "reserved"), "ENOSPC"),
    **dict.fromkeys(("directories", "links", "symlinks", "fifos", "attributes"), "ENOSPC"),
    **dict.fromkeys(("shm", "pipes", "messages", "empty", "semsets"), "ENOMEM"),
    **dict.fromkeys(("undo", "processes", "descriptors", "mappings"), "ENOMEM"),
    "locks": "ENOLCK",
    "pairs": "ENOBUFS",
    "udp": "ENOBUFS",
}
"""What Linux says of each kind of memory that is not left: a file system's, the kernel's own."""
SMALL = ("directories", "links", "fifos", "empty", "semsets", "locks")
"""Those of which hundreds of thousands fit."""
FULL = (SOURCES / "fullfiles.txt").read_text()
"""What Linux says of a tmpfs of 32 MiB."""
OPT_IN = "KPROBE_TUI_LIVE_KERNEL"


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] if kind in SMALL else []) for kind in KINDS],
)
def test_what_the_kernel_holds_counts(kind: str, tmp_path: Path) -> None:
    program = compiled("holding", "x86_64")

    done = run(
        "run", "--memory", f"{LIMIT}M", "--timeout", "600", str(program), kind, cwd=tmp_path
    )

    assert done.out == f"{kind}: {KINDS[kind]}\n"
    assert done.rss < LIMIT + BESIDE
    notice = f"the guest used up its {LIMIT} MiB of memory; --memory raises the limit"
    assert done.err.count(notice) == 1


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("place", [(), ("/tmp/full",), ("/dev/shm/full",)], ids=str)
def test_a_file_that_is_mapped_shared_fills_the_memory(
    arch: str, place: tuple[str, ...], tmp_path: Path
) -> None:
    program = compiled("fullfiles", arch)

    said = emulated(program, tmp_path, *place, options=("--memory", f"{LIMIT}M"))

    assert said == FULL


def test_linux_says_the_same_of_a_full_tmpfs(tmp_path: Path) -> None:
    if not os.environ.get(OPT_IN):
        pytest.skip(f"mounts a file system: wants {OPT_IN}")
    program = compiled("fullfiles", "x86_64")
    script = 'mount -t tmpfs -o size=32M none "$1" && exec "$0" "$1/full"'

    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, program, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout + "exit code 0\n" == FULL


@pytest.mark.parametrize("option", [LIMIT, 1024])
def test_file_systems_and_the_machine_show_the_limit(option: int, tmp_path: Path) -> None:
    script = "df -k --output=size /dev/shm | tail -1; grep MemTotal /proc/meminfo"

    done = run("run", "--memory", f"{option}M", "/bin/sh", "-c", script, cwd=tmp_path)

    size, total = done.out.splitlines()
    assert int(size) == int(total.split()[1]) == option << 10


def test_a_limit_that_is_not_reached_is_not_told(tmp_path: Path) -> None:
    done = run("run", "--memory", f"{LIMIT}M", "/bin/true", cwd=tmp_path)

    assert (done.code, done.err) == (0, "")
