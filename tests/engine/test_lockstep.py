"""Single steps visit the same instructions, in the same order, as QEMU does."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from goldenruns import GUESTS
from sysroot import CHECKOUT

from engine.cpu.base import Stop, StopKind
from engine.linux.fs.stdio import SinkStream
from engine.session import GuestConfig, Session

TRACES = json.loads((CHECKOUT / "tests/data/unwind/pctrace.json").read_text("utf-8"))


@pytest.mark.parametrize("name", TRACES)
def test_same_instructions_as_qemu(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arch, program = name.split("/")
    path = GUESTS / arch / program
    if not path.exists():
        pytest.skip(f"{name} is not committed")
    streams = [SinkStream(lambda data: None) for _ in range(3)]
    session = Session(GuestConfig(os.fspath(path)), (streams[0], streams[1], streams[2]))
    kernel, cpu = session.kernel, session.cpu
    pc = session.arch.roles.pc
    monkeypatch.setattr(cpu, "run", lambda quantum: cpu.step() or Stop(StopKind.QUANTUM))
    digest, length = hashlib.sha256(), 0
    while kernel.exit is None:
        digest.update(cpu.read_register(pc).to_bytes(8, "little"))
        length += 1
        kernel.resume()
    session.close()

    expected = TRACES[name]
    assert (length, digest.hexdigest()) == (expected["qemu_len"], expected["qemu_sha256"])
