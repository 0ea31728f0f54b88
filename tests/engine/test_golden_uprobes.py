"""Everything that a real kernel showed of uprobe events: accepted, listed, described, recorded.

The oracle is `uprobe_events` of Linux 6.18: `definitions.json` has the lines and what became of
them, `shown.json` what the events then were. What Linux does is met in kernel mode, without
exception; strict mode differs where `STRICT` says why.
"""

import json
import re
import shutil
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.arch.plan import Mode
from engine.errors import ImageError, ProbeError, ProbeSyntaxError
from engine.linux.fs.stdio import HostIO, host_stdio
from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace.fields import own_fields, print_format

DATA: Final = CHECKOUT / "tests" / "data" / "uprobes"
_OF_DEFINITIONS: Final = ("head", "arg", "refctr", "multi", "del", "xol", "ret")
DEFINED: Final[dict[str, dict[str, Any]]] = {
    test["id"]: test for test in json.loads((DATA / "definitions.json").read_text())["tests"]
}
_EVENTS: Final[dict[str, Any]] = json.loads((DATA / "shown.json").read_text())
FORMATS: Final[list[dict[str, Any]]] = _EVENTS["formats"]
TESTS: Final[dict[str, dict[str, Any]]] = {
    name: {**test, **DEFINED.get(name, {})}
    for name, test in {**DEFINED, **{test["id"]: test for test in _EVENTS["tests"]}}.items()
    if name.partition("/")[0] in _OF_DEFINITIONS
}

_TRAP_FLAG: Final = "the copy of pushf is not stepped with the trap flag set: the program lives"
STRICT: Final = {
    "head/symbol-offset": "PATH:SYM is a place of ours; kernel mode refuses it",
    "head/offset-zero": "no code is there, so that it would never be hit",
    "head/file-not-elf": "no code is there, so that it would never be hit",
    "head/offset-mid-insn": "a breakpoint inside an instruction corrupts the program",
    "arg/imm-string-empty": "the text is recorded; Linux looks for it in the program's memory",
    "arg/btf-name": "variables of uprobes are known, where there is debug information",
    "arg/btf-member": "variables of uprobes are known, where there is debug information",
    "arg/badreg-xmm0": "vector registers are fetched here",
    "xol/walk-nopie": "ud2 only raises an exception: refused",
    "xol/walk-pie": "ud2 only raises an exception: refused",
    "xol/pushf-popf": _TRAP_FLAG,
    "xol/pushf": _TRAP_FLAG,
    "xol/one-x_pushf": _TRAP_FLAG,
}
"""Recorded tests that strict mode does not answer as Linux does, and why."""

OTHER_FILE: Final = {
    "head/file-relative": "a place without a '/' is a kprobe's: the kernel's two files are one",
}
"""Tests that no mode answers as `uprobe_events` does; `kprobe_events` would."""

# Bytes of the program's path and of argv[0], which lie above the stack and move it: the sum
# that the stack pointers of the oracle's runs go with.
_STRINGS: Final = {"kf_nopie": 96, "kf_pie": 92, "kf_extra": 96, "kf_insns": 96}


@pytest.fixture(scope="module")
def root() -> Path:
    try:
        return sysroot("x86_64")
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))


class Output(HostIO):
    """Keeps what the guest writes."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, fd: int, data: bytes) -> int:
        self.text += data
        return len(data)


class Run:
    """One recorded test, made again."""

    def __init__(self, name: str, mode: Mode, root: Path, folder: Path) -> None:
        self.test = TESTS[name]
        elf = self.test.get("elf", "kf_nopie")
        self.path = str(folder / elf)
        shutil.copy(DATA / elf, self.path)
        config = GuestConfig(
            self.path,
            argv0="x" * (_STRINGS[elf] - len(self.path)),
            root=str(root),
            shares=((str(folder), False), ("/etc/passwd", False)),
        )
        self.output = Output()
        self.session = Session(config, host_stdio(self.output))
        self.text = BytesIO()
        self.tracing = Tracing(self.session, TraceOptions(mode=mode), self.text)

    def here(self, text: str) -> str:
        return text.replace("{ELF}", self.path)

    def answers(self) -> list[tuple[Any, ...]]:
        """What becomes of each line: (accepted, errno or text, caret, command)."""
        return [self.answer(self.here(step["definition"])) for step in self.test["steps"]]

    def answer(self, line: str) -> tuple[Any, ...]:
        try:
            self.tracing.definitions.define(line)
        except ProbeSyntaxError as error:
            return False, error.text, error.column, error.command
        except ImageError:
            return False, "ENOEXEC", None, None
        except ProbeError as error:
            return False, re.findall(r"\b(E[A-Z]+)\b", str(error))[-1], None, None
        return True, None, None, None

    def recorded_answers(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        longer = len(self.path) - len("{ELF}")
        for step in self.test["steps"]:
            if "errno" not in step:
                found.append((True, None, None, None))
            elif "error" not in step:
                found.append((False, step["errno"], None, None))
            else:
                command = step.get("command", step["definition"])
                at, caret = command.find("{ELF}"), step["caret"]
                caret += longer if 0 <= at < caret else 0
                found.append((False, step["error"], caret, self.here(command)))
        return found

    def formats(self) -> dict[str, dict[str, Any]]:
        return {
            f"{group}/{name}": {
                "fields": [f.describe().removeprefix("field:") for f in own_fields(event.info)],
                "print_fmt": print_format(event.info),
            }
            for (group, name), event in self.tracing.events.items()
        }

    def run(self) -> None:
        self.tracing.start()
        self.session.run()
        self.tracing.finish()

    @property
    def bodies(self) -> list[str]:
        return re.findall(r"\d: (\w+: \(?.*)", self.text.getvalue().decode())

    @property
    def profile(self) -> list[list[str]]:
        return [
            [done.definition.event, str(sum(probe.hits for probe in done.probes))]
            for done in self.tracing.definitions.defined
            if self.path in done.definition.place  # as the profile was filtered
        ]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        # In one mode or the other, the rest with the slow tests.
        pytest.param(
            name, mode, id=f"{name}-{mode.value}", marks=[pytest.mark.slow] if odd else []
        )
        for at, name in enumerate(TESTS)
        for odd, mode in zip((at % 2, 1 - at % 2), Mode, strict=True)
    ],
)
def test_as_linux(name: str, mode: Mode, root: Path, tmp_path: Path) -> None:
    differs = name in OTHER_FILE or (mode is Mode.STRICT and name in STRICT)
    with pytest.raises(AssertionError) if differs else nullcontext():
        _compare(Run(name, mode, root, tmp_path))


def _compare(run: Run) -> None:
    """Everything that was recorded of a test against the same made here."""
    test = run.test
    try:
        assert run.answers() == run.recorded_answers()
        assert list(TraceListing(run.tracing).lines("kernel")) == [
            run.here(line) for line in test["listed"]
        ]
        formats = test.get("formats", {})
        assert run.formats() == {event: FORMATS[index] for event, index in formats.items()}
        if "rc" not in test:
            return
        run.run()
    finally:
        run.session.close()
    assert run.output.text.decode().strip() == test["out"].strip()
    assert run.profile == test["profile"]
    if "trace" in test and test.get("stable", True):
        assert len(run.bodies) == test["total"]
        assert run.bodies[: len(test["trace"])] == test["trace"]
