"""Lines like the one before them have the same outcome as any other, for less work."""

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiled import build
from sessionkit import Guest, loaded
from workcount import calls

from engine.arch.plan import Mode
from engine.errors import ProbeError
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.point import ProbePoint
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.alike_lines import AlikeLines
from engine.session.tracing.event_set import Defined, TraceEvent
from engine.session.tracing.tracing import Tracing

FUNCTIONS = 60
_LIBRARY = """\
#define F(n) int f##n(int a, int b) { \\
    static int seen; seen += a; \\
    for (int i = 0; i < (a & 7); i++) { b = b * 3 + (b >> 2); if (b & 64) seen ^= b; } \\
    return (b ? seen / (b | 1) : a) + n; }
"""
_CALLER = "int all(int a, int b);\nint main(void) { return all(5, 9) & 63; }\n"
_WANDERER = """\
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
static int call(void *library, int a) {
    int (*all)(int, int) = (int (*)(int, int))dlsym(library, "all");
    return all(a, 9);
}
int main(int argc, char **argv) {
    void *library = dlopen("libalike.so", RTLD_NOW);
    int sum = call(library, 5);
    dlclose(library);
    library = dlopen("libalike.so", RTLD_NOW);
    sum += call(library, 6);
    if (fork() == 0) _exit(call(library, 7) & 31);
    int status;
    wait(&status);
    if (argc == 1) execl(argv[0], argv[0], "again", (char *)0);
    return (sum + status) & 63;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that calls all functions of a library, by way of one of them."""
    folder = tmp_path_factory.mktemp("alike")
    names = [f"f{number}" for number in range(FUNCTIONS)]
    source = _LIBRARY + "\n".join(f"F({number})" for number in range(FUNCTIONS))
    total = " + ".join(f"{one}(a, b)" for one in names)
    source += f"\nint all(int a, int b) {{ return {total}; }}"
    library = build(folder, "libalike.so", source, "-shared", "-fPIC", "-O1")
    flags = ("-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{folder}")
    build(folder, "idle", "int main(void) { return 0; }\n", *flags)
    build(folder, "never", "int main(void) { return 0; }\n")
    build(folder, "wanderer", _WANDERER, f"-Wl,-rpath,{folder}", "-ldl")
    return build(folder, "alike", _CALLER, *flags)


def offsets(program: Path) -> list[int]:
    """File offsets of all instructions of the library's functions, in order."""
    opened = OpenedProgram.open(GuestConfig(str(program.with_name("libalike.so"))))
    verdicts = Verdicts(opened.arch, opened.inspected())
    found: list[int] = []
    for number in range(FUNCTIONS):
        entry = verdicts.places.resolve(f"f{number}")[0]
        found += [one.file_offset or 0 for one in verdicts.instructions(entry)]
    return found


def uprobes(program: Path, step: int = 1) -> list[str]:
    library = program.with_name("libalike.so")
    return [
        f"p:alike/e{number} {library}:{offset:#x} a=%di b=%si"
        for number, offset in enumerate(offsets(program)[::step])
    ]


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carry out each line, and arm each probe, as if it were the only one."""
    accepted = ProbedSpace._accepted

    def closely(space: ProbedSpace, items: object, plain: object = None) -> object:
        return accepted(space, items)  # type: ignore[arg-type]

    monkeypatch.setattr(AlikeLines, "take", lambda self, line: False)
    monkeypatch.setattr(ProbedSpace, "_accepted", closely)


def facts(guest: Guest, probe: Kprobe) -> tuple[object, ...]:
    point = guest.session.probes().manager.points[probe.addr or 0]
    plan = point.plan
    planted = guest.session.probes().overlay.planted()[point.address]
    shown = plan.verdict, plan.raw, plan.reason, plan.address
    return probe.addr, probe.hits, point.copy, shown, planted, point.technique


def run(
    program: Path, lines: list[str], mode: Mode = Mode.STRICT, technique: str = "auto"
) -> tuple[Any, ...]:
    """All that can be seen of a trace with some definitions."""
    shares = ((str(program.parent), False),)
    with loaded(program, shares=shares, technique=technique) as guest:
        tracing = guest.tracing(TraceOptions(profile=True, mode=mode))
        refused = ""
        try:
            tracing.definitions.place(ProbeRequest(definitions=tuple(lines)))
        except ProbeError as error:
            refused = str(error)
        names = list(tracing.events)
        listed = [one.definition.listing() for one in tracing.definitions.defined]
        before = [one.places for one in tracing.definitions.defined]
        reports = guest.run(tracing)
        probes = [probe for one in tracing.definitions.defined for probe in one.probes]
        told = [report.lines for report in reports.remarks]
        seen = [facts(guest, probe) if probe.addr else None for probe in probes]
        asked = [one.name for one in guest.session.probes().manager.asked()]
        infos = list(tracing.infos.values())
        places = [[(at.name, at.link, at.text, at.function) for at in one] for one in before]
        return (
            guest.written,
            names,
            listed,
            refused,
            told,
            seen,
            asked,
            infos,
            reports.exit_code,
            places,
        )


def run_dormant(
    program: Path,
    lines: list[str],
    technique: str = "auto",
    use: Callable[[Tracing], object] = lambda tracing: None,
) -> tuple[Any, ...]:
    """All that can be seen of a trace whose events nobody has asked for before it has run."""
    shares = ((str(program.parent), False),)
    with loaded(program, shares=shares, technique=technique) as guest:
        tracing = guest.tracing(TraceOptions(profile=True))
        tracing.definitions.place(ProbeRequest(definitions=tuple(lines)))
        used = use(tracing)
        reports = guest.run(tracing)
        probes = [probe for one in tracing.definitions.defined for probe in one.probes]
        return (
            guest.written,
            used,
            [one.lines for one in reports.remarks],
            reports.exit_code,
            guest.session.probes().tally(),
            [(one.name, one.hits, one.nmissed, one.flags) for one in probes],
            [
                facts(guest, one)
                for one in probes
                if (one.addr or 0) in guest.session.probes().overlay
            ],
            sorted(one.name for one in guest.session.probes().manager.asked()),
            [one.definition.listing() for one in tracing.definitions.defined],
            list(tracing.infos.values()),
            list(tracing.table.values()),
        )


def hex_moved(line: str, by: int) -> str:
    head, _, rest = line.partition(":0x")
    number, _, args = rest.partition(" ")
    return f"{head}:{int(number, 16) + by:#x} {args}"


def odd(program: Path) -> list[str]:
    """Lines of which some are like those before them, and some are not in one way each."""
    library = program.with_name("libalike.so")
    lines = uprobes(program, 2)
    at = offsets(program)
    lines[10] = lines[10].replace("p:alike/", "r:alike/").replace(" a=%di b=%si", " r=$retval")
    lines[20] = lines[20].replace("b=%si", "b=%si c=%dx")
    lines[30] = lines[30].replace("/e30 ", "/e29 ")  # a second place of an event
    lines[40] = f"  {lines[40]} # a remark"
    lines[50] = f"!{lines[50]}"
    lines[60] = lines[60].replace("p:alike/e60 ", "p ")
    lines[70] = lines[70].replace(":0x", ":0x00")
    lines[80] = f"p:alike/e80 {library}:f7 a=%di b=%si"
    lines[90] = "-:alike/e89"
    lines[91] = lines[91].replace("/e91 ", "/sdt_e91 ")
    lines[92] = f"p:alike/e92 {library}:{at[5]:#x} a=%di b=%si"  # a probe is there, or beside it
    lines[93] = lines[92].replace("e92", "e93")
    lines[94] = f"{lines[94]}\n"
    return lines


def test_the_same_events_and_rows(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = uprobes(program)
    assert len(lines) > 1000
    quick = run(program, lines)
    written, names, _, refused, _, seen, *_ = quick
    assert (refused, len(names), len(seen)) == ("", len(lines), len(lines))
    assert all(seen)
    assert len(written.splitlines()) > len(lines)
    one_by_one(monkeypatch)
    assert quick == run(program, lines)


@pytest.mark.slow
@pytest.mark.parametrize("technique", ["jump", "breakpoint"])
def test_whatever_stands_there(
    program: Path, technique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = uprobes(program, 3)
    quick = run(program, lines, technique=technique)
    one_by_one(monkeypatch)
    assert quick == run(program, lines, technique=technique)


@pytest.mark.parametrize(
    "technique",
    ["auto", *(pytest.param(one, marks=pytest.mark.slow) for one in ("breakpoint", "jump"))],
)
def test_dormant_events(program: Path, technique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wake at their hits, and the trace is the same."""
    lines = uprobes(program, 2)
    quick = run_dormant(program, lines, technique)
    assert len(quick[0].splitlines()) > len(lines) / 2
    one_by_one(monkeypatch)
    assert quick == run_dormant(program, lines, technique)


@pytest.mark.slow
def test_dormant_events_among_odd_ones(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that two lines have, an order that is not that of the addresses, and others."""
    lines = odd(program)
    lines[200:] = reversed(lines[200:])
    quick = run_dormant(program, lines)
    one_by_one(monkeypatch)
    assert quick == run_dormant(program, lines)


def test_dormant_events_of_a_library_that_comes_and_goes(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken out and mapped again, copied by fork, and mapped by another program."""
    lines = uprobes(program, 2)
    wanderer = program.with_name("wanderer")
    quick = run_dormant(wanderer, lines)
    assert len(quick[0].splitlines()) > 4 * len(lines) / 2
    one_by_one(monkeypatch)
    assert quick == run_dormant(wanderer, lines)


def test_dormant_events_of_a_library_that_never_comes(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = uprobes(program, 9)
    lines.insert(5, f"p:alike/other {program.with_name('libalike.so')}:f3 a=%dx")
    quick = run_dormant(program.with_name("never"), lines)
    assert f"{lines[1].split()[1]}" in str(quick[2])
    one_by_one(monkeypatch)
    assert quick == run_dormant(program.with_name("never"), lines)


def _filtered(tracing: Tracing) -> object:
    tracing.controls.set_filter(tracing.info("alike", "e30"), "a == 77")
    return tracing.controls.of(tracing.info("alike", "e30")).filter_text


def _taken_out(tracing: Tracing) -> object:
    definitions = tracing.definitions
    definitions.define("-:alike/e40")
    path = next(iter(definitions.defined)).places[0].path
    definitions.define(f"p:alike/e40 {path}:f9")
    with pytest.raises(ProbeError):
        definitions.define(f"p:alike/e41 {path}:f9")
    return [one.name for one in definitions.defined]


def _asked(tracing: Tracing) -> object:
    events = tracing.events
    known = ("alike", "e7") in events, ("alike", "nobody") in events, len(events)
    names = list(events)
    described = tracing.table[3], tracing.infos["alike", "e3"], list(tracing.table)
    return known, names, described, [one.name for one in events["alike", "e8"].probes]


@pytest.mark.parametrize("use", [_filtered, _taken_out, _asked])
def test_dormant_events_that_are_used(
    program: Path, use: Callable[[Tracing], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter, a line that takes one out and looks at single ones find them."""
    lines = uprobes(program, 4)
    quick = run_dormant(program, lines, use=use)
    one_by_one(monkeypatch)
    assert quick == run_dormant(program, lines, use=use)


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
def test_odd_ones_among_them(program: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = odd(program)
    quick = run(program, lines, mode)
    one_by_one(monkeypatch)
    assert quick == run(program, lines, mode)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(":0x", ":0x7fffff"),  # behind the file
        lambda line: line.replace("/e100 ", "/" + "e" * 64 + " "),
        lambda line: line.replace("b=%si", "b=%nowhere"),
        lambda line: line.replace("libalike", "libnowhere"),
        lambda line: f"p:alike/e100 {line.split()[1].rpartition(':')[0]}:0x10 a=%di b=%si",
        lambda line: line.replace(":0x", ":0x") + "x",
        lambda line: hex_moved(line, 1),  # in the middle of an instruction
    ],
)
def test_a_bad_one_among_them(
    program: Path, change: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before stays, and the error is the same."""
    lines = uprobes(program)[:200]
    lines[100] = change(lines[100])
    quick = run(program, lines)
    assert quick[3]
    assert len(quick[5]) == 100
    one_by_one(monkeypatch)
    assert quick == run(program, lines)


def test_work_for_each_line(program: Path) -> None:
    """Calls of functions to define an event, and to arm it when its file is mapped."""
    lines = uprobes(program)

    def work(count: int) -> int:
        shares = ((str(program.parent), False),)
        with loaded(program.with_name("idle"), shares=shares, technique="breakpoint") as guest:
            tracing = guest.tracing()

            def all_of_it() -> None:
                tracing.definitions.place(ProbeRequest(definitions=tuple(lines[:count])))
                guest.run(tracing)

            gc.collect()
            done = calls(all_of_it, 3_000_000)
            assert len(guest.session.probes().overlay.planted()) == count
        return done

    few = 200
    work(few)
    more, least = work(len(lines)), work(few)
    assert (more - least) / (len(lines) - few) < 200


_OBJECTS = (Uprobe, ProbePoint, Wanted, TraceEvent, Defined)


def test_an_event_that_is_not_hit_has_no_objects(program: Path) -> None:
    """A million of them are to fit in 0.8 GB, with the guest and its hits."""
    lines = uprobes(program)
    shares = ((str(program.parent), False),)

    def taken(count: int) -> tuple[int, int, int]:
        with loaded(program.with_name("idle"), shares=shares, technique="breakpoint") as guest:
            tracing = guest.tracing()
            gc.collect()
            tracemalloc.start()
            try:
                tracing.definitions.place(ProbeRequest(definitions=tuple(lines[-count:])))
                gc.collect()
                waiting = tracemalloc.get_traced_memory()[0]
                guest.run(tracing)
                gc.collect()
                armed = tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
            assert len(tracing.events) == count
            assert len(guest.session.probes().overlay.planted()) == count
            objects = sum(isinstance(one, _OBJECTS) for one in gc.get_objects())
        return waiting, armed, objects

    few = 300
    taken(few)  # what is kept of files, and once for all
    more, least = taken(len(lines)), taken(few)
    waiting, armed, objects = (
        (one - other) / (len(lines) - few) for one, other in zip(more, least, strict=True)
    )
    assert waiting < 220
    assert armed < 430
    assert objects < 0.1
