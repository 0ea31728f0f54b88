"""Code of real programs as objdump reads it: lengths and instructions to compare with."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = {
    "libc": Path("/usr/lib/x86_64-linux-gnu/libc.so.6"),
    "libcrypto": Path("/usr/lib/x86_64-linux-gnu/libcrypto.so.3"),
    "busybox": Path("/usr/bin/busybox"),
    "python": Path("/usr/bin/python3.11"),
}
_TEXT = re.compile(r" \.text +(\w+) +(\w+)")


def lines_of(program: str, size: int, start: int = 0) -> list[tuple[int, bytes, str]]:
    """(address, bytes, text) of each line of a stretch of .text, Intel's reading of branches."""
    path = PROGRAMS[program]
    if not shutil.which("objdump"):
        pytest.skip("objdump is not installed")
    if not path.exists():
        pytest.skip(f"{path} is not installed")
    sections = _run("-h", path)
    found = _TEXT.search(sections)
    if found is None:
        pytest.skip(f"{path} is no x86-64 ELF file with code")
    first = int(found[2], 16) + start
    last = min(first + size, int(found[2], 16) + int(found[1], 16))
    bounds = (f"--start-address={first:#x}", f"--stop-address={last:#x}")
    listing = _run("-d", "-w", "-z", "--insn-width=16", "-M", "intel64", *bounds, path)
    rows = []
    for line in listing.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            raw = bytes.fromhex(fields[1].replace(" ", ""))
            rows.append((int(fields[0].rstrip(": "), 16), raw, fields[2].strip()))
    return rows


def _run(*words: str | Path) -> str:
    done = subprocess.run(
        ["objdump", "-j", ".text", *words], capture_output=True, text=True, check=True
    )
    return done.stdout
