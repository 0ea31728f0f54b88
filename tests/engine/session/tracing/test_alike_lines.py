"""Lines like the one before them have the same outcome as any other, for less work."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiled import build
from sessionkit import Guest, loaded
from workcount import calls

from engine.arch.plan import Mode
from engine.errors import ProbeError
from engine.probes.kprobe import Kprobe
from engine.session.guest.probed_space import ProbedSpace
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.alike_lines import AlikeLines

FUNCTIONS = 60
_LIBRARY = """\
#define F(n) int f##n(int a, int b) { \\
    static int seen; seen += a; \\
    for (int i = 0; i < (a & 7); i++) { b = b * 3 + (b >> 2); if (b & 64) seen ^= b; } \\
    return (b ? seen / (b | 1) : a) + n; }
"""
_CALLER = "int all(int a, int b);\nint main(void) { return all(5, 9) & 63; }\n"


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
            assert len(guest.session.probes().manager.points) == count
        return done

    few = 200
    work(few)
    more, least = work(len(lines)), work(few)
    assert (more - least) / (len(lines) - few) < 200
