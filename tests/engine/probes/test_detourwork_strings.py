"""Strings copied by code in the guest: byte for byte what a breakpoint records.

The guest counts down, and a probe's string begins as many bytes behind a fixed address as the
count says: hits walk over all the bytes of a page, behind whose end nothing is mapped.
"""

from pathlib import Path

import archkit
import pytest
from archkit import JUMPING
from jumpkit import NEVER, after, recorded
from sessionkit import loaded

from engine.arch import by_name
from engine.session.headless import bench
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing import tracing as tracing_module
from engine.session.tracing.tracing import Tracing
from engine.trace.staging import SMALLEST, Staging

END = 0x402000
RUN = 97  # odd: the NULs of 16 runs stand at all places modulo 16
LEFT = 0x300
"""Where the walk ends; code is below."""
ALONE = "s=+{0}({1}):string"
LENT = "n={1} s=+{0}({1}):string {2}"
ELSEWHERE = "{2} s=+{0}({1}):string n={1}"
TWO = "s=+{0}({1}):string n={1} t=+{0}({1}):string c=$comm u=+{0}({1}):string {2}"

Outcome = tuple[bytes, object, int]


def page(behind: int) -> bytes:
    """What is walked over; `behind` bytes follow the last NUL."""
    text = bytes(0x41 + 37 * at % 191 for at in range(RUN - 1)) + b"\0"
    size = 0x1000 - LEFT
    found = (text * 16 + b"\0\1\0\0\x80\0\xff" + b"y" * size)[: size - behind - 1]
    return found + b"\0" + b"z" * behind


def run(
    arch: str,
    folder: Path,
    technique: str,
    fetch: str,
    memory: bytes,
    calls: int,
    hits: int = 1,
) -> Outcome:
    path = folder / "walk"
    path.write_bytes(bench.program(by_name(arch), calls))
    path.chmod(0o755)
    rows: list[bytes] = []
    with loaded(path, technique=technique) as guest:
        session = guest.session
        after(guest, hits)
        session.memory.poke(END - len(memory), memory)
        tracing = Tracing(session, TraceOptions(), consumer=rows.append)
        base = END - calls - 1
        others = f"x={archkit.argument(arch, 2)} y={archkit.argument(arch, 1)}"
        tracing.definitions.define("p work " + fetch.format(base, archkit.argument(arch), others))
        guest.run(tracing)
        (point,) = session.probes().manager.placed()
        assert point.technique == technique, point.why
        assert technique != "jump" or recorded(point)
        return b"".join(rows), point.probes[0].hits, session.cpu.blocks()


def alike(arch: str, folder: Path, fetch: str, memory: bytes, calls: int) -> bytes:
    wanted = run(arch, folder, "breakpoint", fetch, memory, calls, NEVER)
    assert wanted[1] == calls
    assert run(arch, folder, "breakpoint", fetch, memory, calls) == wanted
    assert run(arch, folder, "jump", fetch, memory, calls) == wanted
    return wanted[0]


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("fetch", [ALONE, LENT, ELSEWHERE, TWO])
@pytest.mark.slow
def test_all_lengths_at_all_alignments(
    arch: str, fetch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a ring so small that rows are begun anew in the middle of a string."""
    monkeypatch.setattr(tracing_module, "Staging", lambda take, *_: Staging(take, SMALLEST))
    calls = 0x1000 - LEFT - 1
    rows = alike(arch, tmp_path, fetch, page(0), calls)
    assert len(rows) > SMALLEST


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("fetch", [ELSEWHERE, TWO])
@pytest.mark.parametrize("behind", [0, 1, 7, 8, 15, 16, 24, 31, 32, 33, 47, 48, 63, 64])
@pytest.mark.slow
def test_the_end_of_a_mapping_behind_the_nul(
    arch: str, fetch: str, behind: int, tmp_path: Path
) -> None:
    """Reading ahead faults there, or the string has no NUL at all."""
    alike(arch, tmp_path, fetch, page(behind), 160)


@pytest.mark.parametrize("arch", JUMPING)
def test_zeros_behind_the_last_row(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end the rows of a program that was killed, and later rows rely on them."""
    rests: list[bytes] = []

    class Watched(Staging):
        def drain(self) -> None:
            rests.append(self.buffer[self.position : self.limit])
            super().drain()

    monkeypatch.setattr(tracing_module, "Staging", Watched)
    for calls in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        rests.clear()
        rows, *_ = run(arch, tmp_path, "jump", LENT, page(0), calls)
        assert rows
        assert rests
        assert not any(map(any, rests))
