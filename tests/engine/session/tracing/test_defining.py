"""Work of arming grows with the number of probes, however they are placed and served."""

import gc
import tracemalloc
from pathlib import Path

import pytest
from manyfunctions import many_functions
from sessionkit import loaded
from workcount import lines

from engine.probes import arming
from engine.session.protocol.requests import ProbeRequest
from engine.session.tracing.graphing import Graphing

FEW = 300
"""More than the hits after which a breakpoint is looked at."""
FORMS = {
    "entries": ProbeRequest(entries=("f*",)),
    "returns": ProbeRequest(returns=("f*",)),
    "definitions": ProbeRequest(definitions=("p:g/e{0} f{0}",)),
    "returns by definition": ProbeRequest(definitions=("r:g/e{0} f{0}",)),
    "one event": ProbeRequest(definitions=("p:g/e f{0}",)),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("many")
    return {count: many_functions(folder, count) for count in (FEW, 4 * FEW)}


@pytest.mark.parametrize(
    ("form", "technique"),
    [
        pytest.param("entries", "jump", marks=pytest.mark.slow),
        pytest.param("returns", "auto", marks=pytest.mark.slow),
        pytest.param("definitions", "auto", marks=pytest.mark.slow),
        pytest.param("returns by definition", "breakpoint", marks=pytest.mark.slow),
        pytest.param("one event", "breakpoint", marks=pytest.mark.slow),
    ],
)
def test_probes_on_many_functions(programs: dict[int, Path], form: str, technique: str) -> None:
    """From the definition to the end of the run; each is hit once."""

    def work(count: int) -> int:
        request = FORMS[form]
        wanted = [each.format(i) for each in request.definitions for i in range(count)]
        request = ProbeRequest(tuple(wanted), request.entries, request.returns)
        with loaded(programs[count], technique=technique) as guest:
            tracing = guest.tracing()

            def trace() -> None:
                tracing.definitions.place(request)
                guest.run(tracing)

            done = lines(trace)
            assert len(guest.events) == count
        return done

    work(FEW)  # what is prepared once is no work of these
    ratio = work(4 * FEW) / work(FEW)
    assert 3 < ratio < 4.3


@pytest.mark.slow
def test_graph_of_many_functions(programs: dict[int, Path]) -> None:
    def work(count: int) -> int:
        with loaded(programs[count]) as guest:
            tracing = guest.tracing()

            def trace() -> None:
                assert Graphing(tracing).add("f*").count == count
                guest.run(tracing)

            return lines(trace)

    work(FEW)
    ratio = work(4 * FEW) / work(FEW)
    assert 3 < ratio < 4.3


@pytest.mark.slow
def test_taking_probes_out(programs: dict[int, Path]) -> None:
    """All of them with one line."""

    def work(count: int) -> int:
        with loaded(programs[count]) as guest:
            tracing = guest.tracing()
            names = [f"p:g/e{i} f{i}" for i in range(count)]
            tracing.definitions.place(ProbeRequest(definitions=tuple(names)))

            def remove() -> None:
                tracing.definitions.define("-:g/")

            done = lines(remove)
            assert not tracing.events
        return done

    work(FEW)
    assert 3 < work(4 * FEW) / work(FEW) < 4.3


def test_definitions_leave_nothing_for_the_collector(programs: dict[int, Path]) -> None:
    """It rests while they are carried out: cycles would be there until the end."""
    with loaded(programs[FEW]) as guest:
        tracing = guest.tracing()
        place = tracing.definitions.place
        place(ProbeRequest(definitions=("p:g/first f0",)))
        gc.collect()
        gc.freeze()  # files of earlier tests may leave caches meanwhile
        try:
            place(ProbeRequest(definitions=tuple(f"p:g/e{i} f{i}" for i in range(1, 101))))
            assert gc.collect() < 100
        finally:
            gc.unfreeze()


@pytest.mark.slow
@pytest.mark.parametrize(("inside", "most"), [((8,), 2600), ((8, 12, 15), 1700)])
def test_memory_of_events(
    programs: dict[int, Path],
    monkeypatch: pytest.MonkeyPatch,
    inside: tuple[int, ...],
    most: int,
) -> None:
    """An event that nobody has hit takes little: a million of them are to fit in two gigabytes.

    What is known of a function is in it, where each event is in one of its own.
    """

    monkeypatch.setattr(arming, "_PLANS", 0)

    def taken(count: int) -> int:
        program = programs[4 * FEW]
        with loaded(program) as guest:
            tracing = guest.tracing()
            verdicts = guest.session.probes().verdicts
            # Behind `lea`, which is longer from the first of these on.
            names = (f"f{128 + number // len(inside)}" for number in range(count))
            starts = [verdicts.places.resolve(name)[0].file_offset or 0 for name in names]
            offsets = [at + inside[number % len(inside)] for number, at in enumerate(starts)]
            request = tuple(
                f"p:g/e{number} {program}:{at:#x} a=%di b=%si" for number, at in enumerate(offsets)
            )
            tracing.definitions.place(ProbeRequest(definitions=request[:10]))
            gc.collect()
            tracemalloc.start()
            try:
                tracing.definitions.place(ProbeRequest(definitions=request[10:]))
                gc.collect()
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
                assert len(tracing.events) == len(guest.session.probes().manager.points) == count

    few, many = FEW, 1000
    taken(few)  # what is kept of files, and once for all
    assert (taken(many) - taken(few)) / (many - few) < most
