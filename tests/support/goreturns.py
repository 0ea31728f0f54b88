"""A program of Go that counts its calls, for tests of return probes; each form is built once."""

import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from builtonce import built_once
from cguest import CHECKOUT
from compiled import tool

SOURCE: Final = CHECKOUT / "tests" / "data" / "go" / "returns.go"
GOARCH: Final = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}
FUNCTIONS: Final = ("grow", "leaf", "spin", "square.area", "dispatch", "fail", "leave")
"""Of package main, which the program counts calls of; the last two never return."""


@cache
def go_program(size: int, arch: str = "x86_64", *flags: str) -> Path:
    """The program; skips the test without a compiler.

    Args:
        size: steps of each of its eight goroutines.
        arch: the architecture, by our name.
        flags: for `go build`; `-ldflags` are its own.
    """
    command = (tool("go"), "build", *flags, "-ldflags", f"-X main.size={size}")
    environment = {"GOARCH": GOARCH[arch], "CGO_ENABLED": "0", "GOFLAGS": ""}
    found = built_once("returns", command, SOURCE, environment=environment)
    if isinstance(found, str):
        pytest.skip(f"go cannot build {SOURCE.name}: {found}")
    return found


def functions_of(program: Path) -> dict[str, tuple[int, int]]:
    """(link address, size) of a program's functions, as Go's own tool tells them."""
    command = [tool("go"), "tool", "nm", "-size", str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {words[3]: (int(words[0], 16), int(words[1])) for words in fields if words[2] in "Tt"}


def counted(text: str) -> dict[str, int]:
    """The program's own counts, from what it has printed."""
    line = next(line for line in text.splitlines() if line.startswith("grow "))
    words = line.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def rows(trace: str) -> Counter[str]:
    """Rows of each event of a trace in ftrace's form."""
    lines = [line.split() for line in trace.splitlines() if not line.startswith("#")]
    return Counter(words[4].rstrip(":") for words in lines)
