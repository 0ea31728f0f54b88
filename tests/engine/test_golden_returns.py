"""Return probes as a real kernel's uprobes record them.

The oracle is `uprobe_events` of Linux 6.18; `returns.json` has its definitions and its trace. Both
ways of catching a return give the same, but for what the kernel has no room for.
"""

import json
import re
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.arch.plan import Mode
from engine.linux.fs.stdio import HostIO, host_stdio
from engine.probes.return_sites import ReturnSites
from engine.probes.trampoline import TrampolineReturns
from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing

DATA: Final = CHECKOUT / "tests" / "data" / "uprobes"
TESTS: Final[list[dict[str, Any]]] = json.loads((DATA / "returns.json").read_text())["tests"]
DEPTH_MAX: Final = 64


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


def traced(
    test: dict[str, Any], mode: Mode, root: Path, folder: Path
) -> tuple[Session, Tracing, list[str], str]:
    path = folder / test["elf"]
    shutil.copy(DATA / test["elf"], path)
    config = GuestConfig(
        str(path), tuple(test["args"]), root=str(root), shares=((str(folder), False),)
    )
    output, text = Output(), BytesIO()
    session = Session(config, host_stdio(output))
    try:
        tracing = Tracing(session, TraceOptions(mode=mode), text)
        for definition in test["definitions"]:
            tracing.definitions.define(definition.replace("{ELF}", str(path)))
        tracing.start()
        session.run()
        tracing.finish()
    finally:
        session.close()
    bodies = re.findall(r"\d: (\w+: \(0x.*)", text.getvalue().decode())
    return session, tracing, bodies, output.text.decode()


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test["id"])
def test_the_kernels_trace(test: dict[str, Any], mode: Mode, root: Path, tmp_path: Path) -> None:
    session, tracing, bodies, out = traced(test, mode, root, tmp_path)
    assert session.probing is not None
    kind = TrampolineReturns if mode is Mode.KERNEL else ReturnSites
    assert isinstance(session.probing.manager.returns, kind)
    hits = {
        event.info.name: sum(probe.hits for probe in event.probes)
        for event in tracing.events.values()
    }
    assert hits == test["profile"]
    assert out.strip() == test["out"].strip()
    lost = sum(hits.values()) - test["total"] if "deep" in test["id"] else 0
    missed = sum(p.nmissed for event in tracing.events.values() for p in event.probes)
    if mode is Mode.STRICT:  # nothing is lost: the calls too deep for the kernel come first
        assert missed == 0
        assert len(bodies) == test["total"] + lost
        bodies = bodies[lost:]
    else:
        assert missed == lost
        assert len(bodies) == test["total"]
    assert bodies[: len(test["trace"])] == test["trace"]


def test_the_depth_limit_is_met() -> None:
    depths = {test["id"]: test["total"] for test in TESTS if "deep" in test["id"]}
    assert depths["extra/deep-63"] == depths["extra/deep-64"] == DEPTH_MAX
    assert depths["extra/deep-60"] == DEPTH_MAX - 3
