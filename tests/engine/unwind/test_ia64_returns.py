"""Backtraces on IA-64 while return probes stand on every function: at every slot, in every way."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ia64returns import GUESTS, SAMPLES, WAYS, Guest, guest

from engine.arch.ia64.returns import RETURNS as ARCH
from engine.session.inspect.backtrace import Backtraces
from engine.unwind.unwinder import EndReason, Unwinder, Walk

STEPS = 250
_ENDS = (EndReason.OUTERMOST, EndReason.ZERO)


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
            if way == "mainline" and pc == (probed.manager.trampoline() or (0, 0))[0]:
                continue  # the frame is that of the caller already
            # Slots that run in a boosted copy are not seen.
            at = known.index(frames, at + 1, at + 5)
            compared += 1
            if at + 5 > len(known):
                break
    assert compared > 80
    assert caught > compared


def test_every_slot_of_the_trampoline_with_unwind_data() -> None:
    """In front of each of its slots the trace is the trampoline and what it returns to."""
    seen = set()
    with guest(GUESTS / "deep_O2.elf", "owens") as one:
        one.hook_all()
        start, end = one.manager.trampoline() or (0, 0)
        before: list[tuple[int, int | None]] = []
        inside = False
        for pc, trace in walked(one, 2000):
            frames = chain(one, trace)
            if start <= pc < end:
                assert trace.frames[0].pc == pc
                assert trace.frames[0].source == "trampoline"
                assert not inside or frames == before
                inside, before = True, frames
                seen.add(pc - start)
            elif inside:
                assert frames == before  # it has returned where it said that it would
                inside = False
    # Five bundles; slot 0 of the first is the breakpoint, the last ends in br.ret.
    assert seen == {16 * bundle + slot for bundle in range(5) for slot in range(3)}


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
