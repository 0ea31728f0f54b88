"""The first hit of a point needs nothing of its own: what it records is what any other would."""

from pathlib import Path

import pytest
from manyfunctions import many_functions
from sessionkit import Guest, loaded
from workcount import calls

from engine.session.protocol.requests import ProbeRequest, TraceOptions

COUNT = 300
SHORT = 128
"""The functions before this one begin with a shorter instruction."""
ARGS = ("", "a=%di b=%si", "m=+0(%sp):u64 t=$stack0 c=\\9", "at=%ip", "s=+0(%sp):string")
"""Arguments that one recorder serves at all places, and the last two that it does not."""
INSIDE = (0, 8, 12, 15)
"""Of a function: what is copied, and a return, which is emulated; uprobes are in their area."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_functions(tmp_path_factory.mktemp("first"), COUNT)


def definitions(
    guest: Guest, program: Path, kind: str, at: tuple[int, ...], args: tuple[str, ...]
) -> tuple[str, ...]:
    places = guest.session.probes().verdicts.places
    found = []
    for number in range(SHORT, COUNT):
        place, inside = f"f{number}+", at[number % len(at)]
        if kind == "uprobe":
            offset = places.resolve(f"f{number}")[0].file_offset or 0
            place, inside = f"{program}:", offset + inside
        found.append(f"p:g/e{number} {place}{inside} {args[number % len(args)]}")
    return tuple(found)


def traced(program: Path, kind: str, *, own: bool) -> bytes:
    """The trace; with `own` each event has a filter, and each probe its own recorder for that."""
    with loaded(program, technique="breakpoint") as guest:
        tracing = guest.tracing()
        lines = definitions(guest, program, kind, INSIDE, ARGS)
        tracing.definitions.place(ProbeRequest(definitions=lines))
        for event in list(tracing.events.values()) if own else ():
            tracing.controls.set_filter(event.info, "common_pid > 0")
        guest.run(tracing)
        points = guest.session.probes().manager.points.values()
        probes = [probe for point in points for probe in point.probes]
        assert [probe.hits for probe in probes] == [1] * (COUNT - SHORT)
        prepared = sum(probe.prepare is None for probe in probes)
        needed = sum(number % len(ARGS) > 2 for number in range(SHORT, COUNT))
        assert prepared == (len(probes) if own else needed)
        return guest.written


@pytest.mark.parametrize("kind", ["kprobe", "uprobe"])
def test_the_same_rows(program: Path, kind: str) -> None:
    shared = traced(program, kind, own=False)
    assert shared == traced(program, kind, own=True)
    assert shared.count(b": e") == COUNT - SHORT


@pytest.mark.parametrize(("kind", "most"), [("kprobe", 110), ("uprobe", 200)])
def test_a_first_hit_is_little_work(program: Path, kind: str, most: int) -> None:
    def hit(count: int) -> int:
        with loaded(program, technique="breakpoint") as guest:
            tracing = guest.tracing(TraceOptions(output="/dev/null"))
            lines = definitions(guest, program, kind, INSIDE[:1], ARGS[1:2])
            tracing.definitions.place(ProbeRequest(definitions=lines[:count]))
            return calls(lambda: guest.run(tracing), 1_000_000)

    hit(10)  # what is prepared once is no work of these
    few, many = hit(10), hit(40)
    assert (many - few) / 30 < most
