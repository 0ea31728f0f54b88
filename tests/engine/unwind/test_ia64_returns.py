"""Backtraces on IA-64 while return probes stand on every function: at every slot, in every way."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from guestrun import run
from ia64returns import GUESTS, RETURNS, SAMPLES, SET_JUMP, WAYS, Guest, guest

from engine.arch.ia64.returns import RETURNS as ARCH
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.probes.regs import PtRegs
from engine.session.inspect.backtrace import TRAMPOLINE_NAME, Backtraces
from engine.unwind.unwinder import EndReason, Unwinder, Walk

STEPS = 250
_ENDS = (EndReason.OUTERMOST, EndReason.ZERO, EndReason.LIMIT)


def steps(one: Guest, count: int) -> Iterator[int]:
    """Single steps of the program: where it stands before each, the machinery's places too."""
    session, manager = one.session, one.manager
    for _ in range(count):
        yield manager.regs.ip
        session.memory.sync()
        stop = session.cpu.step()
        stop = manager.handle(stop) if stop is not None else None
        if stop is not None:
            session.kernel.take(stop)
        if session.process.exit is not None:
            return


def walked(one: Guest, count: int) -> Iterator[tuple[int, Walk]]:
    """(pc, backtrace) in front of each slot, slots of the machinery included."""
    traces = Backtraces(one.session)
    unwinder = Unwinder(traces.view)
    last = None
    for pc in steps(one, count):
        if pc != last:
            yield pc, unwinder.walk(traces.registers())
        last = pc


def windows(one: Guest) -> range:
    plan = one.session.arch.plan
    return range(plan.trampoline[0], sum(plan.detour))


def chain(one: Guest, trace: Walk) -> list[tuple[int, int | None]]:
    """The program's own frames: pc, bsp."""
    assert trace.end.reason in _ENDS, trace.end
    own = windows(one)
    return [(f.pc, f.registers.get("bsp")) for f in trace.frames if f.pc not in own]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "path",
    [SAMPLES / "recursion", *(GUESTS / f"{name}.elf" for name in ("tail_O0", "a_rse", "fptr_O3"))],
    ids=lambda path: str(path.stem),
)
def test_the_whole_trace_at_every_slot(path: Path, way: str) -> None:
    """As without probes; caught frames are marked, Owens' trampoline stands between them."""
    with guest(path) as plain:
        known = [chain(plain, trace) for _, trace in walked(plain, STEPS)]
    caught = compared = 0
    with guest(path, way) as probed:
        probed.hook_all()
        at = -1
        for pc, trace in walked(probed, 3 * STEPS):
            frames = chain(probed, trace)
            marks = [frame for frame in trace.frames if frame.trampoline]
            caught += len(marks)
            if way == "owens":
                assert all(frame.pc in windows(probed) for frame in marks)
                assert all(frame.source == "trampoline" for frame in marks)
            if trace.frames[0].pc in windows(probed) or (at >= 0 and frames == known[at]):
                continue
            if way == "mainline" and pc == (probed.manager.returns.trampoline or (0, 0))[0]:
                continue  # the frame is that of the caller already
            # Slots that run in a boosted copy are not seen.
            at = known.index(frames, at + 1, at + 5)
            compared += 1
            if at + 5 > len(known):
                break
    assert compared > 80
    assert caught > compared


def test_every_slot_of_the_trampoline_with_unwind_data() -> None:
    """In front of each of its slots the trace is the trampoline and what it returns to.

    Its code leaves the caller with the very frame that the breakpoint's emulation leaves.
    """
    returns = 0
    with guest(GUESTS / "deep_O2.elf", "owens") as one:
        one.hook_all()
        cpu, traces = one.session.cpu, Backtraces(one.session)
        start, end = one.manager.returns.trampoline or (0, 0)
        left: dict[str, int] = {}
        for pc in steps(one, 2000):
            if left:
                frame = one.registers()
                assert {name for name in left if left[name] != frame[name]} <= {"r15", "r16"}
                left.clear()
            if pc != start:
                continue
            returns += 1
            kept = cpu.save()
            before = chain(one, Unwinder(traces.view).walk(traces.registers()))
            cpu.write_register("ip", start + 1)  # behind the breakpoint
            places = []
            while start <= (at := cpu.read_register("ip")) < end:
                trace = Unwinder(traces.view).walk(traces.registers())
                assert (trace.frames[0].pc, trace.frames[0].source) == (at, "trampoline")
                assert chain(one, trace) == before
                places.append(at - start)
                assert cpu.step() is None
            assert places == [16 * bundle + slot for bundle in range(5) for slot in range(3)][1:]
            left = one.registers()
            cpu.restore(kept)
    assert returns > 2


FRAME = ("cfm", "bsp", "pfs", "lc", "ec", "pr", "r13")
Taken = tuple[str, str, dict[str, int], list[tuple[int, int | None]]]


def taken(path: Path, way: str) -> list[Taken]:
    """Stacks at entries and returns, in handlers and where events are recorded."""
    found: list[Taken] = []
    with guest(path, way) as one:
        traces = Backtraces(one.session)
        unwinder = Unwinder(traces.view)

        def take(moment: str, name: str, ip: int) -> None:
            registers = traces.registers()
            registers["ip"] = ip
            # A tail call begins with what its caller's entry was given.
            frame = {} if moment == "entry" else {name: registers[name] for name in FRAME}
            if moment != "entry" and way == "owens":
                assert registers["b0"] == ip
            trace = unwinder.walk(registers, limit=12)
            found.append((moment, name, frame, chain(one, trace)))

        for name, where in one.functions().items():
            if name not in (SET_JUMP, "_start", "other"):  # nobody calls the last two
                hook(one, name, where, take)
        one.run()
    return found


def hook(one: Guest, name: str, where: int, take: Callable[[str, str, int], None]) -> None:
    def entry(instance: KretprobeInstance, regs: PtRegs) -> int:
        take("entry", name, regs.ip)
        return 0

    def back(instance: KretprobeInstance, regs: PtRegs) -> None:
        take("return", name, regs.ip)

    def record(thread: int, ret_addr: int, entry: tuple[int, ...] = ()) -> None:
        take("event", name, ret_addr)

    probe = Kretprobe(addr=where, name=name, entry_handler=entry, handler=back)
    probe.record_return = record
    one.manager.register(probe)


@pytest.mark.parametrize("name", ["returns", "fptr_O3", "tail_O0", "deep_O2", "a_rp"])
@pytest.mark.slow
def test_stacks_in_handlers_and_events_are_the_same_in_all_ways(name: str) -> None:
    """So are the caller's frame marker, its register stack, and ar.pfs."""
    path = GUESTS / f"{name}.elf"
    ways = {way: taken(path, way) for way in WAYS}
    watched = ways["watched"]
    assert len(watched) > 25
    assert max(len(frames) for _, _, _, frames in watched) > 2
    assert ways["mainline"] == watched
    assert ways["owens"] == watched


@pytest.mark.parametrize("way", WAYS)
def test_a_hooked_caller_without_a_frame(way: str) -> None:
    """Its callee's frame is in the same place: each of the two returns where it returns."""
    whole = ["twice", "frameless", "main", "_start"]
    for place in range(2):
        found = {}
        with guest(RETURNS, way) as one:
            one.hook_all(SET_JUMP)
            entry, traces = one.functions()["twice"], Backtraces(one.session)
            calls = 0
            for pc in steps(one, 60_000):
                calls += pc == entry
                if calls == 2 and (pc == entry) is (place == 0):
                    break
            for name in ("full", "naive", "owens"):
                trace = traces.take(unwinder=name)
                found[name] = [(frame.function, frame.trampoline) for frame in trace.frames]
        hooked = whole[1 - place :]  # a call that is about to begin is not hooked yet
        seen = [name for name, _ in found["owens"] if name != TRAMPOLINE_NAME]
        assert seen == whole
        caught = [
            (name, before == TRAMPOLINE_NAME)
            for (before, _), (name, _) in pairwise([("", False), *found["owens"]])
            if name != TRAMPOLINE_NAME
        ]
        assert caught == [(name, name in hooked[1:]) for name in whole]
        if way == "owens":
            assert found["full"] == found["owens"]
            assert [name for name, _ in found["naive"]] == [name for name, _ in found["owens"]]
        else:
            assert found["full"] == caught
            end = len(whole) - len(hooked) + 1
            assert [name for name, _ in found["naive"]] == [*whole[:end], TRAMPOLINE_NAME]


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=[pytest.mark.slow] if number else [])
        for number, way in enumerate(WAYS)
    ],
)
def test_frames_of_recorded_stacks_have_names(way: str, tmp_path: Path) -> None:
    words = ("-r", "p[ab]", "--stack", "--returns", way, str(GUESTS / "deep_O2.elf"))
    done = run("trace", *words, cwd=tmp_path)
    frames = re.findall(r"^ => (.*) <[0-9a-f]+>$", done.err, re.M)
    assert len(frames) > 50
    assert all(re.fullmatch(r"\w+\+0x[0-9a-f]+/0x[0-9a-f]+", frame) for frame in frames)
    named = [frame for frame in frames if frame.startswith(TRAMPOLINE_NAME)]
    assert set(named) == ({f"{TRAMPOLINE_NAME}+0x0/0x50"} if way == "owens" else set())


def test_the_programs_frames_count_against_a_limit() -> None:
    with guest(RETURNS, "owens") as one:
        one.hook_all(SET_JUMP)
        entry, traces = one.functions()["sum"], Backtraces(one.session)
        calls = 0
        for pc in steps(one, 20_000):
            calls += pc == entry
            if calls == 20:
                break
        trace = traces.take(limit=10)
        names = [frame.function for frame in trace.frames]
        assert (names.count("sum"), trace.reason) == (10, EndReason.LIMIT)
        assert names.count(TRAMPOLINE_NAME) > 7


@pytest.mark.slow
def test_what_other_unwinders_print() -> None:
    ends = {}
    for way in ("mainline", "owens"):
        with guest(SAMPLES / "recursion", way) as one:
            one.hook_all()
            entries = one.functions()["fibonacci"]
            traces = Backtraces(one.session)
            calls = 0
            for pc in steps(one, 20000):
                calls += pc == entries
                if calls == 6:
                    break
            for name in ("full", "naive", "kernel-2005", "kernel", "owens"):
                trace = traces.take(unwinder=name)
                functions = [frame.function for frame in trace.frames]
                ends[way, name] = functions, trace.reason
    whole = ends["mainline", "full"][0]
    assert whole[-2:] == ["main", "_start"]
    assert ends["mainline", "full"][1] in _ENDS
    assert ends["mainline", "kernel"] == ends["mainline", "full"]
    for name in ("naive", "kernel-2005"):
        assert ends["mainline", name] == (
            [*whole[:2], "kretprobe_trampoline"],  # the call that is about to begin is not hooked
            EndReason.UNREADABLE,
        )
    between = ends["mainline", "owens"]
    assert [name for name in between[0] if name != "kretprobe_trampoline"] == whole
    assert between[0].count("kretprobe_trampoline") == len(whole) - 2
    for name in ("full", "naive", "kernel-2005", "kernel", "owens"):
        assert ends["owens", name] == between  # nobody needs to be told of this trampoline


def test_the_trampoline_is_what_gas_makes_of_its_source(tmp_path: Path) -> None:
    tools = [shutil.which(f"ia64-linux-gnu-{tool}") for tool in ("as", "objcopy")]
    if not all(tools):
        pytest.skip("binutils-ia64-linux-gnu is not installed")
    (tmp_path / "t.s").write_text(SOURCE)
    assembler, objcopy = map(str, tools)
    subprocess.run([assembler, "t.s", "-o", "t.o"], cwd=tmp_path, check=True)
    for section in ("text", "IA_64.unwind_info"):
        subprocess.run(
            [objcopy, "-O", "binary", "-j", f".{section}", "t.o", section],
            cwd=tmp_path,
            check=True,
        )
    assert ARCH.carried is not None
    trampoline = ARCH.carried.trampoline
    assert trampoline.code == (tmp_path / "text").read_bytes()
    assert trampoline.unwind == (tmp_path / "IA_64.unwind_info").read_bytes()


SOURCE = """
	.explicit
	.proc trampoline
trampoline:
	.prologue
	.fframe 256
	.savepsp ar.pfs, 0
	.savepsp rp, -8
	{ .mii; nop.m 0; nop.i 0; nop.i 0;; }
	.body
	{ .mii; break.m 0x81000; nop.i 0; nop.i 0;; }
	{ .mmi; adds r15=264,r12; adds r16=256,r12; nop.i 0;; }
	{ .mmi; ld8 r15=[r15]; ld8 r16=[r16]; nop.i 0;; }
	{ .mii; nop.m 0; mov b0=r15; mov.i ar.pfs=r16;; }
	.restore sp
	{ .mib; adds r12=256,r12; nop.i 0; br.ret.sptk.many b0;; }
	.endp trampoline
"""
