"""Recorded IA-64 guests with probes in all their bundles: nothing differs, not even time."""

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sysroot import CHECKOUT

from engine.arch.ia64.bundle import SIZE
from engine.linux.fs.stdio import SinkStream
from engine.probes.kprobe import Kprobe
from engine.session import GuestConfig, Session
from engine.session.guest.probing import Probing

DATA = CHECKOUT / "tests" / "data" / "ia64"
LONG = "bench_O2"  # runs for minutes with probes in its loops
GUESTS = [path for path in sorted((DATA / "guests").glob("*.elf")) if path.stem != LONG]
FAULTS = json.loads(gzip.decompress((DATA / "faults.json.gz").read_bytes()))


@dataclass(frozen=True)
class Run:
    """How a run ends: exit, signal, place of a crash, output, registers, ticks of the clock."""

    ending: tuple[int | None, int, int]
    out: bytes
    registers: tuple[int, ...]
    ticks: int


@dataclass
class Hits:
    """How often probes were hit, and those of boosted copies among them."""

    all: int = 0
    boosted: int = 0


Choice = Callable[[list[int]], Iterable[int]]


def every(places: list[int]) -> list[int]:
    """Only the last slot of a bundle may be boosted."""
    return places


def one_of_each_bundle(places: list[int]) -> list[int]:
    """The first slot that takes a probe, here and there another: boosted wherever it can be."""
    found: dict[int, list[int]] = {}
    for place in places:
        found.setdefault(place & -SIZE, []).append(place)
    return [slots[(base >> 4) % 4 % len(slots)] for base, slots in found.items()]


def run(path: Path, choose: Choice | None, hits: Hits, *, handlers: bool = False) -> Run:
    """Run a guest with probes of some places."""
    out = bytearray()
    sink = SinkStream(lambda data: out.extend(data))
    session = Session(GuestConfig(str(path)), (SinkStream(lambda data: None), sink, sink))
    try:
        session.probing = session.probing or Probing(session)
        manager = session.probing.manager
        session.cpu.count_blocks(True)
        if choose is not None:
            assert session.modules.main is not None
            judged = session.probing.verdicts.of_all()
            links = [placed.place.link for placed in judged if placed.judgement.ok]
            places = choose([link + session.modules.main.bias for link in links])
            manager.register_all([_probe(place, handlers) for place in places])
        session.run()
        end = session.process.exit
        assert end is not None
        for point in manager.points.values():
            count = sum(probe.hits for probe in point.probes)
            hits.all += count
            hits.boosted += count * point.boosted
        values = tuple(session.cpu.read_register(item.name) for item in session.arch.registers)
        where = end.crash.pc if end.crash is not None else 0
        return Run((end.code, end.signal, where), bytes(out), values, session.cpu.blocks())
    finally:
        session.close()


def _probe(address: int, handlers: bool) -> Kprobe:
    if not handlers:
        return Kprobe(addr=address, record=lambda thread: None)
    return Kprobe(
        addr=address,
        pre_handler=lambda probe, regs: None,
        post_handler=lambda probe, regs, flags: None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", GUESTS, ids=lambda path: str(path.stem))
def test_a_guest_does_not_notice(path: Path) -> None:
    plain = run(path, None, Hits())
    stepped, boosted = Hits(), Hits()
    assert run(path, every, stepped) == plain
    assert run(path, one_of_each_bundle, boosted) == plain
    assert stepped.all > boosted.all > boosted.boosted > 10


@pytest.mark.parametrize("name", ["a_rse", "signals"])
def test_handlers_run_before_and_behind_each_slot(name: str) -> None:
    path = next(path for path in GUESTS if path.stem == name)
    plain, hits = run(path, None, Hits()), Hits()
    assert run(path, every, hits, handlers=True) == plain
    assert hits.all > 300
    assert hits.boosted == 0


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.slow
def test_faults_in_slots_are_the_programs_own(name: str, tmp_path: Path) -> None:
    """Same signal at the same slot, stepped, boosted past the fault, and with handlers."""
    program = tmp_path / name
    program.write_bytes(bytes.fromhex(FAULTS[name]["elf"]))
    program.chmod(0o755)
    plain, hits = run(program, None, Hits()), Hits()
    assert run(program, every, hits) == plain
    assert run(program, one_of_each_bundle, hits) == plain
    assert run(program, every, hits, handlers=True) == plain
    assert hits.all > 0
