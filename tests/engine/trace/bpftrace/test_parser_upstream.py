"""All scripts that bpftrace's sources hold: its tools, its library, its runtime tests.

Only if KPROBE_TUI_BPFTRACE_SOURCE names a checkout of it (0.26). How long its tools take is
printed (pytest -s).
"""

import ast
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from scripttrees import read, refusal

from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.text import ScriptText

SOURCE: Final = "KPROBE_TUI_BPFTRACE_SOURCE"

pytestmark = pytest.mark.skipif(not os.environ.get(SOURCE), reason=f"{SOURCE} is not set")

LISTINGS: Final = re.compile(r"^\^|^\(|\$\(|\{\{")
"""Runtime tests that list probes, or whose scripts a shell or the tests' runner completes."""


@pytest.fixture
def checkout() -> Path:
    return Path(os.environ[SOURCE])


def test_tools_and_library(checkout: Path) -> None:
    files = [
        *sorted(checkout.glob("tools/*.bt")),
        *sorted(checkout.glob("tools/old/*.bt")),
        *sorted(checkout.glob("src/stdlib/**/*.bt")),
        *sorted(checkout.glob("tests/runtime/scripts/*.bt")),
    ]
    assert len(files) > 50
    took: list[tuple[float, str]] = []
    for path in files:
        text = path.read_text()
        began = time.perf_counter()
        script = read(text)
        took.append((time.perf_counter() - began, path.name))
        CDefinitions.of(script.definitions, ScriptText(path.name, text))
    worst, name = max(took)
    total = sum(one for one, _ in took)
    print(
        f"\n{len(files)} scripts in {1000 * total:.1f} ms, at most {1000 * worst:.1f} ms ({name})"
    )


def test_runtime_scripts(checkout: Path) -> None:
    failed: dict[str, str] = {}
    count = 0
    for name, text, parameters in _runtime_scripts(checkout):
        count += 1
        fault = refusal(text, *parameters, program="/bin/sh")
        if fault:
            failed[name] = fault
    print(f"\n{count - len(failed)} of {count} runtime scripts are read; not:")
    for name, fault in failed.items():
        print(f"  {name}: {fault}")
    assert count > 800
    assert len(failed) < count / 100


def _runtime_scripts(checkout: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Scripts of runtime tests that are whole by themselves, and their parameters."""
    for path in sorted(checkout.glob("tests/runtime/*")):
        if not path.is_file():
            continue
        for block in re.split(r"\n\n+", path.read_text()):
            fields = _fields(block)
            text = fields.get("PROG")
            parameters: list[str] = []
            if text is None:
                command = re.search(r"-e '([^']*)'(.*)", fields.get("RUN", ""))
                if command is None:
                    continue
                text = command[1]
                parameters = [one.strip('"') for one in command[2].split()]
            if not LISTINGS.search(text):
                yield f"{path.name}: {fields.get('NAME', '')}", text, parameters


def _fields(block: str) -> dict[str, str]:
    """The fields of a test; a line that is indented continues the field before it."""
    found: dict[str, str] = {}
    last = ""
    for line in block.split("\n"):
        if line.startswith("#") or not line.strip():
            continue
        if last and line[: len(last) + 1].isspace():
            found[last] += "\n" + line[len(last) + 1 :]
            continue
        last, _, rest = line.partition(" ")
        found[last] = rest.strip()
    return found


DIFFERENT: Final = {
    "config = { blah = 5 }\n#include <stdio.h>\nbegin {}": "the line alone is marked",
    "#define M M+1\nbegin { M; }": "the use of the macro is marked, not its body",
    '#define M "a" "b"\nbegin { M; }': "the macro is shown as it is written",
    '#define M M+1\nbegin { M; }\nend { printf("': "the first error in the text counts",
}
"""Wrong scripts of tests/parser.cpp of which something else is said, and why."""


def test_wrong_scripts_are_refused_as_there(checkout: Path) -> None:
    source = (checkout / "tests" / "parser.cpp").read_text()
    count = 0
    for text, expected in _refusals(source):
        count += 1
        first = expected.lstrip("\n").split("\n", 1)[0].removeprefix("stdin:")
        if DIFFERENT.get(text, "") == "":
            assert refusal(text) == first, text
    print(
        f"\n{count} wrong scripts, {count - sum(map(bool, DIFFERENT.values()))} refused as there"
    )
    assert count > 100


_LITERAL: Final = re.compile(
    r'\s*(?:R"(?P<mark>[^()\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<plain>(?:[^"\\]|\\.)*)")', re.S
)
_CALL: Final = re.compile(r'\btest_(?:macro_)?parse_failure\(\s*(?:bpftrace,\s*)?(?=R?")')


def _refusals(source: str) -> Iterator[tuple[str, str]]:
    """Scripts and what is said about them, out of calls in C++."""
    for call in _CALL.finditer(source):
        text, at = _literals(source, call.end())
        comma = re.compile(r"\s*,").match(source, at)
        if comma is not None:
            yield text, _literals(source, comma.end())[0]


def _literals(source: str, at: int) -> tuple[str, int]:
    """Strings one behind the other, and the place behind them."""
    found = ""
    while (match := _LITERAL.match(source, at)) is not None:
        raw = match["raw"]
        found += raw if raw is not None else ast.literal_eval(f'"{match["plain"]}"')
        at = match.end()
    return found, at
