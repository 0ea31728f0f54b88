"""The first hit of a point needs nothing of its own: what it records is what any other would."""

from pathlib import Path

import pytest
from manyfunctions import many_functions
from sessionkit import loaded
from workcount import calls

from engine.session.protocol.requests import ProbeRequest, TraceOptions

COUNT = 300
ARGS = ("", "a=%di b=%si", "m=+0(%sp):u64 t=$stack0 c=\\9", "at=%ip", "s=+0(%sp):string")
"""Arguments that one recorder serves at all places, and the last two that it does not."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_functions(tmp_path_factory.mktemp("first"), COUNT)


def lines_of(number: int) -> str:
    return f"p:g/e{number} f{number} {ARGS[number % len(ARGS)]}"


def traced(program: Path, mode: str, *, own: bool) -> bytes:
    """The trace; with `own` each event has a filter, and each probe its own recorder for that."""
    with loaded(program, technique="breakpoint") as guest:
        tracing = guest.tracing()
        request = ProbeRequest(definitions=tuple(map(lines_of, range(COUNT))))
        tracing.definitions.place(request)
        for event in list(tracing.events.values()) if own else ():
            tracing.controls.set_filter(event.info, "common_pid > 0")
        guest.run(tracing)
        points = guest.session.probes().manager.points.values()
        assert all(probe.hits == 1 for point in points for probe in point.probes)
        prepared = [probe.prepare is None for point in points for probe in point.probes]
        assert sum(prepared) == (COUNT if own else 2 * COUNT // len(ARGS))
        return guest.written


def test_the_same_rows(program: Path) -> None:
    shared = traced(program, "strict", own=False)
    assert shared == traced(program, "strict", own=True)
    assert shared.count(b": (f") == COUNT


def test_a_first_hit_is_little_work(program: Path) -> None:
    def hit(count: int) -> int:
        with loaded(program, technique="breakpoint") as guest:
            tracing = guest.tracing(TraceOptions(output="/dev/null"))
            names = tuple(f"p:g/e{number} f{number} a=%di b=%si" for number in range(count))
            tracing.definitions.place(ProbeRequest(definitions=names))
            return calls(lambda: guest.run(tracing), 1_000_000)

    hit(50)  # what is prepared once is no work of these
    few, many = hit(50), hit(250)
    assert (many - few) / 200 < 110
