"""Definitions against the kernel that runs here; only if the environment says so.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted. `KPROBE_TUI_LIVE_LINES` asks
about more definitions than usual, `KPROBE_TUI_LIVE_SEED` about other ones. Kernels older than
6.13 have some other texts.
"""

import os
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from livekernel import LIVE_KERNEL, Answer, Lines, LiveUprobes, live_uprobes

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.errors import ProbeError, ProbeSyntaxError
from engine.trace.definition import Definition, compatible, parse
from engine.trace.place_syntax import Lookup

PROGRAM: Final = Path(__file__).parents[2] / "data" / "uprobes" / "kf_nopie"
COUNT: Final = int(os.environ.get("KPROBE_TUI_LIVE_LINES", "500"))
SEED: Final = int(os.environ.get("KPROBE_TUI_LIVE_SEED", "618"))
_RELEASE: Final = tuple(int(part) for part in platform.release().split(".")[:2])

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"asks the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)


class _Files(Lookup):
    """The files of this machine."""

    def file(self, path: str) -> str:
        if not os.path.exists(path):
            return "FILE_NOT_FOUND"
        return "" if os.path.isfile(path) else "NO_REGULAR_FILE"


def _expected(line: str, base: Definition) -> Answer:
    """What the kernel should say with one definition there already."""
    before = (base.listing(),)
    try:
        parsed = parse(line, by_name("x86_64"), mode=Mode.KERNEL, lookup=_Files())
        if not isinstance(parsed, Definition):
            return Answer(listed=before)
        compatible(base, parsed)
    except ProbeSyntaxError as error:
        # The kernel counts bytes.
        column = len(error.command[: error.column].encode()) + max(
            error.column - len(error.command), 0
        )
        return Answer("", error.text, column, error.command, error.subsystem, before)
    except ProbeError:
        return Answer(listed=before)
    return Answer(listed=(*before, parsed.listing()))


def test_made_up_definitions(tmp_path: Path) -> None:
    program = tmp_path / "kf_nopie"
    shutil.copy(PROGRAM, program)
    group = f"kprobe_tui_{os.getpid()}"
    lines = Lines(str(program), group, SEED)
    first = f"p:{group}/base {program}:0x1156 v=%di:s32 w=+0(%si):u8"
    base = parse(first, by_name("x86_64"), mode=Mode.KERNEL)
    assert isinstance(base, Definition)
    try:
        with live_uprobes(program) as kernel:
            wrong, taken, errors = _compare(kernel, lines, base)
    except OSError as error:
        pytest.skip(f"no kernel to ask: {error}")
    assert not kernel.listed()
    print(f"{COUNT} definitions: {taken} taken, {len(errors)} different errors")
    assert COUNT < 200 or (taken > COUNT // 10 and len(errors) > 25)
    assert wrong == [], "\n".join(f"{line}\n  {said}\n  {ours}" for line, said, ours in wrong[:5])


def _compare(
    kernel: LiveUprobes, lines: Lines, base: Definition
) -> tuple[list[tuple[str, Answer, Answer]], int, set[str]]:
    wrong, taken, errors = [], 0, set()
    assert not kernel.ask(base.command).errno
    for _ in range(COUNT):
        line = lines.line()
        said = kernel.ask(line)
        taken += not said.errno
        errors.add(said.text)
        expected = _expected(line, base)
        # Which errno goes with a text is the parser's own business.
        if replace(said, errno="") != expected or bool(said.errno) == (len(expected.listed) > 1):
            wrong.append((line, said, expected))
        if said.listed != (base.listing(),):
            kernel.clear()
            assert not kernel.ask(base.command).errno
    return wrong, taken, errors
