"""System calls that are carried out inside the processor are those that stop it, call by call."""

from collections.abc import Iterator

import pytest
from controlkit import Held, sample

from engine.history.journal import Entry
from engine.linux.kernel import Kernel
from engine.probes.manager import ProbeManager
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState


class Served:
    """Counts the calls that are carried out inside the processor."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        serve = Kernel._serve

        def counted(kernel: Kernel) -> bool:
            done = serve(kernel)
            self.count += done
            return done

        monkeypatch.setattr(Kernel, "_serve", counted)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Counts from the test's beginning on."""
    return Served(monkeypatch)


@pytest.fixture
def guest() -> Iterator[Held]:
    """Processes that write to pipes and read them, a thousand times."""
    found = Held(sample("x86_64", "pipeline"), history=True)
    yield found
    found.control.close()
    found.terminal.close()


def _told(guest: Held) -> tuple[list[Entry], int, list[int]]:
    """What is in the journal after a run, its last tick, and the counts of hits."""
    travel = guest.control.sight.place.travel
    assert travel is not None
    travel.recorder.sync()
    journal = travel.recorder.journal
    entries = [journal[number] for number in range(len(journal))]
    return entries, guest.view.time, [probe.hits for probe in guest.view.probes]


@pytest.mark.parametrize("probes", [(), ("p sys_write",), ("r main",)])
def test_the_journal_is_the_same(
    guest: Held, served: Served, monkeypatch: pytest.MonkeyPatch, probes: tuple[str, ...]
) -> None:
    def run() -> tuple[list[Entry], int, list[int]]:
        guest.do(*map(cmd.Define, probes))
        view = guest.do(cmd.Continue())
        assert view.state is RunState.ENDED
        return _told(guest)

    quick = run()
    inside = served.count
    assert inside > 50
    monkeypatch.setattr(ProbeManager, "passes_call", lambda self, behind: False)
    guest.do(cmd.Restart())
    if probes:
        guest.do(cmd.Delete(tuple(probe.row.id for probe in guest.view.probes)))
    slow = run()
    assert served.count == inside
    assert quick == slow
