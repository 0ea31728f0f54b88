"""What runs in a detour: the same rows, hits and end as at a breakpoint, byte for byte."""

import random
from collections.abc import Callable

import archkit
import pytest
from archkit import JUMPING
from jumpkit import NEVER, after, jumps_of, recorded
from sessionkit import SAMPLES, loaded

from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint
from engine.session.protocol.requests import GraphOptions, TraceOptions
from engine.session.tracing import tracing as tracing_module
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from engine.trace.staging import SMALLEST, Staging

WORDS = ("the quick brown fox jumps",)
FETCHES = (
    "a={0} b={0}:u8 c={0}:s16 d={0}:x32",
    "a=\\5 sp={1} s0=$stack0 s1=$stack2:u16 ip=$stack",
    "t=+0({0}):string u=+1({0}):ustring n={0}",
    "a=+0({0}):u8[5] b=+1({0}):x16[3] c=+0({0}):x64",
    "f=+0({0}):b3@2/8 g={0}:b7@1/32",
    "far=+0(\\16):x64 text=+0(\\16):string two=+0(+0({0})):x8",
    "many=+0({0}):x8[40]",
    "c=$comm t=+0({0}):string d=$comm n={0}",
    'i=\\"hello" t=+0({0}):string j=\\"abcdefghijkl"',
    "v=+0({1}):string[3] w=+0({1}):x64[4]",
)
NUMBERS = (
    "c=+0({0}):u8 b=+1({0}):x8 s=+2({0}):s8 w=+0({0}):s16 d=+0({0}):u32 e=+0({0}):s32 "
    "q=+0({0}):u64 r=+0({0}):s64 n={0} m={0}:u32 t=+0({0}):string f=+0({0}):b3@2/8 k=$comm"
)
TERMS = (
    "c == 10",
    "c != 111 || n & 1",
    "!(s < 0) && b >= 48",
    "s < -5 || c <= 32",
    "w >= 26740 && w <= 28000",
    "d > 1900000000",
    "e < 0 || e > 1869000000",
    "q > 7000000000000000000",
    "q < 0x8000000000000000",
    "q & 0x100000000",
    "r >= 7000000000000000000",
    "r < -1",
    "m & 0x10",
    "f == 2",
    't == "quick"',
    't != "the"',
    't ~ "f*"',
    'comm ~ "wor*"',
    'k != "words"',
    "common_pid == 1000",
)
LENT = "n={0} m={0}:u32 t=+0({0}):string o={2} u=+1({0}):string v=+0({0}):string[2] w=+8({0}):x8"
FUNCTIONS = ("n.function != print", "q.function == main")
LIGHT = ("n > 0x7fffffff && m & 0x10", "n < 0x7fffffff0000", "n == 0", "m >= 0x80000000")

Prepare = Callable[[Tracing], object]
Run = tuple[tuple[object, ...], list[ProbePoint]]


def run(arch: str, name: str, technique: str, prepare: Prepare, hits: int = 1) -> Run:
    """Everything that a run shows, and its points."""
    words = WORDS if name == "words" else ()
    rows: list[bytes] = []
    with loaded(SAMPLES / arch / name, *words, technique=technique) as guest:
        after(guest, hits)
        tracing = Tracing(guest.session, TraceOptions(), consumer=rows.append)
        prepare(tracing)
        reports = guest.run(tracing)
        points = guest.session.probes().manager.placed()
        counts = {point.address: [probe.hits for probe in point.probes] for point in points}
        time = guest.session.cpu.blocks()
        return (b"".join(rows), guest.out, reports.exit_code, time, counts), points


def alike(
    arch: str, name: str, prepare: Prepare, technique: str = "auto", hits: int = 1
) -> list[ProbePoint]:
    wanted, _ = run(arch, name, "breakpoint", prepare, NEVER)
    led, _ = run(arch, name, "breakpoint", prepare, hits)
    assert led == wanted
    got, points = run(arch, name, technique, prepare, hits)
    assert got == wanted
    return points


def fetching(arch: str, fetches: tuple[str, ...]) -> Prepare:
    def prepare(tracing: Tracing) -> None:
        for number, fetch in enumerate(fetches):
            tracing.definitions.define(
                f"p:e{number} print "
                + fetch.format(archkit.argument(arch), "%sp", archkit.argument(arch, 1))
            )

    return prepare


def filtering(arch: str, texts: tuple[str, ...], fetch: str = NUMBERS) -> Prepare:
    def prepare(tracing: Tracing) -> None:
        fetching(arch, (fetch,) * len(texts))(tracing)
        for number, text in enumerate(texts):
            tracing.set_filter("kprobes", f"e{number}", text)

    return prepare


@pytest.mark.parametrize("arch", JUMPING)
def test_many_probes_record_in_one_detour(arch: str) -> None:
    """Newest first; each after whatever the ones before it have changed in the registers."""
    for fetches in (FETCHES, FETCHES[::-1]):
        (point,) = alike(arch, "words", fetching(arch, fetches))
        assert recorded(point), point.why
        assert len(point.probes) == len(FETCHES)


@pytest.mark.parametrize("arch", JUMPING)
def test_filters_in_the_guest(arch: str) -> None:
    rng = random.Random(arch)
    mixed = tuple(
        f"({rng.choice(TERMS)}) {rng.choice(('&&', '||'))} !({rng.choice(TERMS)})"
        for _ in range(12)
    )
    for texts in (TERMS + FUNCTIONS, mixed):
        (point,) = alike(arch, "words", filtering(arch, texts))
        assert recorded(point), point.why


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("text", LIGHT)
def test_a_filter_of_registers_alone(arch: str, text: str) -> None:
    (point,) = alike(arch, "words", filtering(arch, (text,), LENT))
    assert recorded(point), point.why


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("text", ['t ~ "*x"', 't ~ "?he"'])
def test_what_no_code_can_record_stays_a_boosted_breakpoint(arch: str, text: str) -> None:
    (point,) = alike(arch, "words", filtering(arch, (text,)))
    assert point.technique == "breakpoint"
    assert point.why is not None
    assert (point.why.rule, "searches" in point.why.detail) == ("recorder", True)


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("probes", [1, 3])
def test_a_full_ring_in_the_middle_of_a_hit(
    arch: str, probes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row that did not fit is begun anew, those of the probes before it are not."""
    monkeypatch.setattr(tracing_module, "Staging", lambda take, *_: Staging(take, SMALLEST))
    first, second, stack = archkit.argument(arch), archkit.argument(arch, 1), "%sp"
    text = f"+0({stack}):string"
    many = " ".join(f"_{number}={first}" for number in range(12))
    lines = (
        f"p:b fibonacci n={first} c=$comm v={text} w={second} t={text} far=+0(\\16):string {many}",
        f"p:a fibonacci {many} {many.replace('_', 'y')} {many.replace('_', 'z')}",
        f"p:c fibonacci a={first} b=+0({stack}):x64[9]",
    )

    def prepare(tracing: Tracing) -> None:
        for line in lines[:probes]:
            tracing.definitions.define(line)

    (point,) = alike(arch, "recursion", prepare)
    assert recorded(point), point.why
    assert point.probes[-1].hits * 20 * 8 > SMALLEST


@pytest.mark.parametrize("arch", JUMPING)
def test_a_program_that_renames_itself(arch: str) -> None:
    """The name in a row is the one at the time of the hit."""

    def prepare(tracing: Tracing) -> None:
        session = tracing.session
        names = iter([b"one", b"a name too long for it", b"", b"x"])
        session.hooks.syscall_exit = lambda *_: session.thread.set_comm(next(names, b"last"))
        tracing.definitions.define("p print c=$comm")
        tracing.set_filter("kprobes", "p_print_0", 'c != "x"')

    (point,) = alike(arch, "words", prepare)
    assert recorded(point), point.why


def handled(tracing: Tracing) -> None:
    """A handler, a trigger, a return probe with its handler: some on the same place."""
    manager = tracing.session.probes().manager
    seen: list[int] = []
    tracing.definitions.define("p:a print")
    tracing.definitions.define("p:b print")
    tracing.definitions.define("r:c print")
    tracing.add_trigger("kprobes", "b", "traceoff:1 if common_pid == 0")
    point = manager.placed()[0]
    manager.register(
        Kprobe(addr=point.address, pre_handler=lambda probe, regs: seen.append(regs.sp))
    )
    manager.register(
        Kretprobe(addr=point.address, handler=lambda call, regs: seen.append(call.slot))
    )


@pytest.mark.parametrize("arch", JUMPING)
def test_the_engine_serves_at_a_trap_in_the_detour(arch: str) -> None:
    points = alike(arch, "words", handled, "jump")
    point = next(point for point in points if len(point.probes) == 5)
    assert point.replacement is not None, point.why
    assert point.replacement.trap is not None


def test_a_place_where_nothing_records_can_be_asked() -> None:
    """As a panel does that says why: here a stop stands alone."""
    with loaded(SAMPLES / "x86_64" / "words", *WORDS) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p print")
        manager = guest.session.probes().manager
        (point,) = manager.placed()
        point.probes[0].stops = True
        place = jumps_of(guest).place(point)
        assert place is not None
        assert (place.wants, place.unfit(place)) == ("nothing records there", "")


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("technique", ["auto", "jump"])
@pytest.mark.parametrize("returns", [1, 2])
def test_uprobes_need_no_step_in_a_detour(arch: str, technique: str, returns: int) -> None:
    """Their copies are never boosted: where code cannot serve them a trap in a detour does."""
    path = SAMPLES / arch / "recursion"

    def prepare(tracing: Tracing) -> None:
        (place,) = tracing.session.probes().verdicts.places.resolve("fibonacci")
        offset = place.image.file_offset(place.link)
        for number in range(returns):
            tracing.definitions.define(f"r:back{number} {path}:{offset:#x} v=$retval")
        tracing.definitions.define(f"p:there {path}:{offset:#x} n={archkit.argument(arch)}")

    points = alike(arch, "recursion", prepare, technique)
    point = next(point for point in points if len(point.probes) == 1 + returns)
    assert point.replacement is not None, point.why
    assert recorded(point) is (returns == 1)
    assert (point.replacement.trap is None) is (returns == 1)
    assert point.how in ("xol", "emulated")


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("tracer", ["function", "function_graph"])
def test_traced_functions(arch: str, tracer: str) -> None:
    def prepare(tracing: Tracing) -> None:
        Graphing(tracing, GraphOptions(tracer=tracer, args=True)).add("*")

    points = alike(arch, "recursion", prepare, "jump")
    code = [point for point in points if recorded(point)]
    assert len(code) > 5
    assert sum(point.replacement is not None for point in points) > 5


@pytest.mark.parametrize("arch", JUMPING)
def test_a_handler_that_takes_its_probe_out(arch: str) -> None:
    """While the trap in the detour is served, the detour goes; what is left records in code."""
    path = SAMPLES / arch / "words"

    def prepare(tracing: Tracing) -> None:
        places = tracing.session.probes().verdicts.places
        manager = tracing.session.probes().manager
        (place,) = places.resolve("print")
        left = iter(range(5))
        once = Uprobe(str(path), 0, handler=lambda probe, regs: next(left, None) is None)
        tracing.definitions.define("p:there print")
        point = manager.placed()[0]
        once.addr = point.address
        manager.register(once)
        tracing.definitions.define(f"p:here {path}:{place.image.file_offset(place.link):#x}")

    points = alike(arch, "words", prepare, "jump")
    assert [len(point.probes) for point in points] == [2]
    assert recorded(points[0]), points[0].why
