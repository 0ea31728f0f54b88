"""The ring of rows full again and again: nothing is lost, and nobody asks where exactly."""

import archkit
import pytest

from engine.arch import by_name
from engine.cpu.unicorn_faults import FaultLocator
from engine.session.headless import bench
from engine.session.headless.bench import Case
from engine.trace.rows import count_rows
from engine.trace.staging import CAPACITY, Staging

CALLS = 90_000
JUMPS = [name for name in archkit.COMPILED if by_name(name).jumps is not None]


@pytest.mark.parametrize("portable", ["0", "1"])
@pytest.mark.parametrize("arch", JUMPS)
def test_a_full_ring_is_known_by_its_page(
    arch: str, portable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
    located, rows = list[int](), list[int]()
    drain = Staging.drain

    def counted(self: Staging) -> None:
        rows.append(count_rows(self.buffer[self.start : self.position]))
        drain(self)

    monkeypatch.setattr(Staging, "drain", counted)
    monkeypatch.setattr(FaultLocator, "locate", lambda self, page, run: located.append(page))
    calls = CALLS if portable == "0" else CALLS // 2
    _, point = bench._run(by_name(arch), calls, Case("jump", 0, entry="jump"))
    assert point is not None
    assert point.detour_bytes
    assert sum(rows) == calls
    assert sum(map(bool, rows)) == -(-calls * 24 // CAPACITY)
    assert not located
