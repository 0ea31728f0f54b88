"""Calls that code in the guest records and ends: all that shows is as at breakpoints.

The guest is `driven.c`, which calls, returns, jumps out of its frames and raises signals as it is
told to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import archkit
import pytest
from archkit import FIRST_JUMPING, JUMPING
from graphkit import compiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jumpkit import NEVER, after, recorded
from sessionkit import Guest, loaded
from sysroot import CHECKOUT

from engine.probes.guestcalls import GuestCalls
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.return_sites import ReturnSites
from engine.session.protocol.requests import GraphOptions, TraceOptions
from engine.session.tracing import tracing as tracing_module
from engine.session.tracing.event_set import Defined
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from engine.trace.staging import SMALLEST, Staging

SOURCE = CHECKOUT / "tests" / "data" / "returns" / "driven.c"
FUNCTIONS = ("leaf", "plain", "marked", "wide", "tailing", "handler")
RETURNS = tuple(
    f"r:r{number} {name} v=$retval:s64 a=$entry({{0}}):u64 t=$duration"
    for number, name in enumerate(FUNCTIONS)
)

Prepare = Callable[[Tracing], Graphing | None]
Play = Callable[[Guest, Tracing, Graphing | None], object]


@dataclass(frozen=True)
class Outcome:
    """All that a run shows.

    Attributes:
        played: what was seen on the way.
        rows: the trace.
        out: what the guest has written.
        time: ticks at the end.
        hits: of the probes by address: hits, misses, unwatched and pending calls.
        counts: of the tracer's calls.
        waiting: calls that are pending at the end.
    """

    played: object
    rows: bytes
    out: str
    time: int
    hits: Mapping[int, object]
    counts: tuple[int, ...]
    waiting: tuple[object, ...]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The guest for each architecture."""
    flags = ("-O2", "-fno-stack-protector")
    folder = tmp_path_factory.mktemp("driven")
    return {arch: compiled(folder, SOURCE, arch, *flags) for arch in JUMPING}


def watched(guest: Guest) -> ReturnSites:
    returns = guest.session.probes().manager.returns
    assert isinstance(returns, ReturnSites)
    return returns


def pending(guest: Guest) -> tuple[object, ...]:
    """The calls that have not returned, by where they return to and their frames."""
    returns, found = watched(guest), []
    returns.calls.sync()
    for address, frames in sorted(returns.pending_calls.places().items()):
        for key, newest in sorted(frames.items()):
            one: KretprobeInstance | None = newest
            while one is not None:
                traced = one.rp.tracker is not None
                found.append((address, key, one.rp.name, one.data if traced else one.entry))
                one = one.next
    return tuple(found)


def to_the_end(guest: Guest, tracing: Tracing, graphing: Graphing | None) -> object:
    return guest.run(tracing).exit_code


def outcome(
    program: Path,
    words: tuple[str, ...],
    technique: str,
    prepare: Prepare,
    play: Play = to_the_end,
    hits: int = 1,
) -> tuple[Outcome, int]:
    """What a run shows, and how many detours deal with calls."""
    rows: list[bytes] = []
    with loaded(program, *words, technique=technique) as guest:
        manager = guest.session.probes().manager
        after(guest, hits)
        tracing = Tracing(guest.session, TraceOptions(), consumer=rows.append)
        graphing = prepare(tracing)
        played = play(guest, tracing, graphing)
        waiting = pending(guest)
        manager.techniques.collect()
        assert not watched(guest).calls.damaged
        placed = manager.placed()
        counted = {
            point.address: [
                (one.hits, one.nmissed, getattr(one, "unwatched", 0), getattr(one, "active", 0))
                for one in point.probes
            ]
            for point in placed
        }
        calls = graphing.calls if graphing is not None else None
        counts = (calls.entries, calls.exits, calls.left, calls.late) if calls is not None else ()
        time = guest.session.cpu.blocks()
        done = Outcome(played, b"".join(rows), guest.out, time, counted, counts, waiting)
        live = [one for one in placed if recorded(one)]
        return done, len(live)


def alike(
    program: Path,
    words: tuple[str, ...],
    prepare: Prepare,
    play: Play = to_the_end,
    technique: str = "auto",
) -> int:
    wanted, _ = outcome(program, words, "breakpoint", prepare, play, NEVER)
    led, _ = outcome(program, words, "breakpoint", prepare, play)
    assert led == wanted
    got, detours = outcome(program, words, technique, prepare, play)
    assert got == wanted
    return detours


def graphed(tracing: Tracing, *names: str, retval: bool = False) -> Graphing:
    graphing = Graphing(tracing, GraphOptions(retval=retval))
    graphing.add(*names)
    return graphing


def returning(tracing: Tracing, arch: str, lines: tuple[str, ...] = RETURNS) -> None:
    for line in lines:
        tracing.definitions.define(line.format(archkit.argument(arch)))


def both(
    tracing: Tracing, arch: str, lines: tuple[str, ...], names: tuple[str, ...]
) -> Graphing | None:
    """Return events on some functions, and the graph of some."""
    returning(tracing, arch, lines)
    return graphed(tracing, *names, retval=True) if names else None


def script(ops: list[int]) -> str:
    """What the guest reads."""
    return "".join(chr(97 + op // 16) + chr(97 + op % 16) for op in ops)


OPS = st.lists(
    st.one_of(
        st.integers(200, 255),  # return
        st.integers(0, 199),
        st.sampled_from([1, 2, 4, 5]),  # call
        st.integers(0, 24).map(lambda n: n * 8 + 6),  # jump to a mark
    ),
    min_size=8,
    max_size=300,
)
WAYS = (
    ((), FUNCTIONS),
    (RETURNS, ()),
    (RETURNS[:3], FUNCTIONS[3:]),
    (RETURNS[3:], FUNCTIONS[:3]),
    (RETURNS[:2], FUNCTIONS),
)


@pytest.mark.parametrize("arch", FIRST_JUMPING)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ops=OPS, way=st.sampled_from(WAYS), inside=st.booleans())
@pytest.mark.slow
def test_calls_returns_and_jumps(
    programs: dict[str, Path],
    arch: str,
    ops: list[int],
    way: tuple[tuple[str, ...], tuple[str, ...]],
    inside: bool,
) -> None:
    """`inside`: the handlers' stack is an array of main's."""
    words = (script(ops), *(["x"] if inside else []))
    prepare = partial(both, arch=arch, lines=way[0], names=way[1])
    alike(programs[arch], words, prepare, technique="jump")


def mixed(seed: int, size: int = 600) -> str:
    """A long script that stays where frames are."""
    rng = Random(seed)
    kinds = rng.choices(range(8), (2, 3, 3, 1, 2, 1, 2, 1), k=size)
    ops = [rng.randrange(25) * 8 + kind for kind in kinds]
    return script([rng.randrange(200, 256) if rng.random() < 0.25 else op for op in ops])


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_JUMPING)
def test_a_full_ring_in_the_middle_of_calls(
    programs: dict[str, Path], arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing_module, "Staging", lambda take, *_: Staging(take, SMALLEST))
    texts = " s=+0(%sp):string c=$comm far=+0(\\16):string"
    many = " ".join(f"_{number}=$retval" for number in range(20))
    lines = (*(line + texts for line in RETURNS[:3]), f"{RETURNS[3]} {many}")
    for way in ((lines, FUNCTIONS[4:]), ((), FUNCTIONS)):
        prepare = partial(both, arch=arch, lines=way[0], names=way[1])
        assert alike(programs[arch], (mixed(1),), prepare, technique="jump") > 1


@pytest.mark.parametrize("arch", JUMPING)
def test_filters_of_return_events(programs: dict[str, Path], arch: str) -> None:
    def prepare(tracing: Tracing) -> None:
        returning(tracing, arch)
        for number, text in enumerate(("v & 1", "a > 30 || t == 2", "v < 0 && a != 3")):
            tracing.set_filter("kprobes", f"r{number}", text)

    assert alike(programs[arch], (mixed(2),), prepare, technique="jump") > 1


@pytest.mark.slow
@pytest.mark.parametrize("arch", JUMPING)
def test_frames_deeper_than_there_are_records(programs: dict[str, Path], arch: str) -> None:
    """Mutual tail calls, and a jump out of all frames from the deepest one."""
    down, up = [1, 4] * 90, [255] * 100
    tails = [5, *[0x11] * 700, 0]
    words = script([*down, *tails, *up, *down, *tails, 6, *down, *up])
    for way in WAYS[:2]:
        prepare = partial(both, arch=arch, lines=way[0], names=way[1])
        assert alike(programs[arch], (words,), prepare, technique="jump") > 1


class Editor:
    """Runs a guest in stretches; between them probes come, go, and change."""

    def __init__(self, arch: str, seed: int) -> None:
        self._arch = arch
        self._rng = Random(seed)

    def play(self, guest: Guest, tracing: Tracing, graphing: Graphing | None) -> object:
        assert graphing is not None
        self._rng.seed(1)
        session, manager = guest.session, guest.session.probes().manager
        kernel = session.kernel
        seen: list[object] = []
        self._events: dict[str, Defined | None] = {}
        tracing.start()
        session.cpu.count_blocks(True)
        while kernel.exit is None:
            goal = session.cpu.blocks() + self._rng.randrange(1, 900)
            kernel.max_blocks = goal
            while kernel.exit is None:
                kernel.resume()
            if kernel.exit.limit == "max-blocks":
                session.machine.exit = None
            while kernel.exit is None and manager.busy():
                kernel.step()
            seen.append((session.cpu.blocks(), pending(guest)))
            if kernel.exit is None:
                self._edit(tracing, graphing)
        tracing.finish()
        return seen

    def _edit(self, tracing: Tracing, graphing: Graphing) -> None:
        rng, events = self._rng, self._events
        kind, name = rng.randrange(8), rng.choice(FUNCTIONS)
        if kind < 2 and len(events) < 8:
            number = len(events) + rng.randrange(1 << 30)
            form = rng.choice(
                ("r:e{0} {1} v=$retval:s64", "r:e{0} {1} v=$entry({2})", "p:e{0} {1}")
            )
            line = form.format(number, name, archkit.argument(self._arch))
            events[f"e{number}"] = tracing.definitions.define(line)
        elif kind == 2 and events:
            gone = events.pop(rng.choice(sorted(events)))
            assert gone is not None
            tracing.definitions.remove(gone)
        elif kind == 3:
            graphing.add(name)
        elif kind == 4:
            graphing.remove(name)
        else:
            manager = tracing.session.probes().manager
            probes = [
                one for at in manager.placed() for one in at.probes if one.enabled == (kind < 7)
            ]
            if probes:
                probe = rng.choice(sorted(probes, key=lambda one: (one.addr or 0, one.name)))
                (manager.disable if kind < 7 else manager.enable)(probe)


@pytest.mark.slow
@pytest.mark.parametrize("arch", FIRST_JUMPING)
def test_probes_come_and_go_between_calls(programs: dict[str, Path], arch: str) -> None:
    for seed in range(6):
        play = Editor(arch, seed).play
        prepare = partial(both, arch=arch, lines=(), names=FUNCTIONS[:3])
        alike(programs[arch], (mixed(seed + 10),), prepare, play)


SAME_WORD = """
#define N __attribute__((noinline, noclone, used))
volatile long sink;
N long leaf(long n) { return sink += n; }
N __attribute__((aligned(1 << 15))) long one(long n) { leaf(n); return leaf(n) + 1; }
N __attribute__((aligned(1 << 15))) long two(long n) { leaf(n); return leaf(n) + 1; }
int main(void)
{
    for (int i = 0; i < 300; i++) one(i);
    for (int i = 0; i < 300; i++) two(i);
    for (int i = 0; i < 300; i++) one(i);
    return 0;
}
"""


@pytest.mark.parametrize("arch", JUMPING)
def test_places_with_one_word_in_the_table(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns; a stretch of calls from one of them does not take the engine."""
    program = compiled(tmp_path, SAME_WORD, arch, "-O1")
    traps = []
    record = GuestCalls.record

    def counted(calls: GuestCalls, *args: Any) -> int | None:
        traps.append(args)
        return record(calls, *args)

    monkeypatch.setattr(GuestCalls, "record", counted)
    assert alike(program, (), partial(both, arch=arch, lines=(), names=("leaf",))) == 1
    assert len(traps) < 30


@pytest.mark.parametrize("arch", JUMPING)
def test_the_order_of_probes_on_one_function(programs: dict[str, Path], arch: str) -> None:
    """It is the same at the first call from a place, which takes the engine, as at later ones."""

    def prepare(tracing: Tracing) -> Graphing:
        tracing.definitions.define("p:d leaf")
        return graphed(tracing, "leaf", "plain", "marked")

    assert alike(programs[arch], (mixed(3),), prepare, technique="jump") > 0
