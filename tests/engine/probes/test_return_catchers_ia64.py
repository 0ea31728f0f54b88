"""Return probes of IA-64, in all three ways: programs do not notice, calls are told apart."""

import re
from pathlib import Path

import pytest
from guestrun import run
from ia64returns import GUESTS, RETURNS, SAMPLES, SET_JUMP, WAYS, Guest, guest

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.linux.ending import Exit
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, default_maxactive
from engine.probes.regs import PtRegs

each = pytest.mark.parametrize("way", WAYS)

PROGRAMS = (
    *sorted(SAMPLES.iterdir()),
    *(
        GUESTS / f"{name}.elf"
        for name in ("a_br", "a_rot", "a_rp", "a_rse", "a_spec", "deep_O2", "fptr_O3", "fptr_pie")
    ),
    *(GUESTS / f"{name}.elf" for name in ("tail_O0", "signals")),
    RETURNS,
)


def state(one: Guest) -> dict[str, int]:
    """The registers but for what the trampolines leave in them."""
    landing = one.manager.returns.trampoline or (0, 0)
    return {name: value for name, value in one.registers().items() if value != landing[0]}


def mappings(one: Guest) -> dict[tuple[int, int], bytes]:
    """All memory of the program's own."""
    plan = one.session.arch.plan
    windows = range(plan.trampoline[0], sum(plan.detour))
    return {
        (m.start, m.end): one.session.memory.read(m.start, m.end - m.start)
        for m in one.session.memory.mappings
        if m.start not in windows and not m.reserved
    }


@each
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.stem))
@pytest.mark.slow
def test_a_return_probe_on_every_function_changes_nothing(path: Path, way: str) -> None:
    with guest(path) as plain, guest(path, way) as probed:
        ends = plain.run()
        probed.hook_all(*(() if way == "watched" else (SET_JUMP,)))
        assert probed.run() == ends
        assert probed.out == plain.out
        assert probed.session.cpu.blocks() == plain.session.cpu.blocks()
        assert len(probed.rows) >= 4 or path.stem == "signals"
        missed = [name for name, probe in probed.probes.items() if probe.nmissed]
        # It is entered by a switch of stacks, with what an earlier call has left in b0.
        begun = ["other"] if path == RETURNS and way != "watched" else []
        assert missed == begun
        if way != "owens":  # there the stacks lie elsewhere
            known = plain.registers()
            assert all(known[name] == value for name, value in state(probed).items())
        if way == "watched":
            assert probed.registers() == plain.registers()
            found, expected = mappings(probed), mappings(plain)
            for where, data in expected.items():
                assert probed.probing.overlay.restore(where[0], found[where]) == data


@each
def test_calls_that_share_a_stack_pointer_are_told_apart(way: str) -> None:
    """sum() keeps everything on the register stack."""
    with guest(RETURNS, way) as one:
        rows = []

        def record(thread: int, ret_addr: int, entry: tuple[int, ...] = ()) -> None:
            rows.append((one.manager.regs.retval, *entry))

        probe = Kretprobe(addr=one.functions()["sum"])
        probe.capture = lambda: (one.manager.regs["r32"],)
        probe.record_return = record
        one.manager.register(probe)
        one.run()
        first = [(n * (n + 1) // 2, n) for n in range(201)]
        assert rows[:201] == first
        # On stacks of its own a second function calls it, too.
        assert rows[201:] == [(0, 0), (1, 1), (0, 0), (1, 1), (3, 2), *first[:4]]
        assert (probe.nmissed, probe.active, probe.unwatched) == (0, 0, 0)
        assert probe.hits == len(rows)


@each
@pytest.mark.parametrize("maxactive", [1, 7, 201])
def test_calls_without_a_free_instance_are_missed(way: str, maxactive: int) -> None:
    with guest(RETURNS, way) as one:
        one.hook(["sum"], maxactive=maxactive)
        one.run()
        probe = one.probes["sum"]
        deep = [201, 2, 3, 4]
        seen = sum(min(maxactive, calls) for calls in deep)
        assert (probe.hits, probe.nmissed, probe.active) == (sum(deep), sum(deep) - seen, 0)
        assert len(one.rows) == seen


def test_the_kernels_number_of_instances() -> None:
    with guest(RETURNS, mode=Mode.KERNEL) as one:
        one.hook(["sum"])
        one.run()
        assert one.probes["sum"].nmissed == 201 - default_maxactive()


@each
def test_a_tail_call_returns_with_its_caller(way: str) -> None:
    with guest(RETURNS, way) as one:
        one.hook(["tail", "twice", "frameless"])
        one.run()
        tail = one.rows[:2]
        assert [(name, value) for name, _, value in tail] == [("twice", 42), ("tail", 42)]
        assert tail[0][1] == tail[1][1]
        # Its callee's frame begins where frameless() has its own.
        assert [(n, v) for n, _, v in one.rows[2:4]] == [("twice", 10), ("frameless", 11)]
        assert one.rows[2][1] != one.rows[3][1]


@each
def test_calls_left_by_a_jump_do_not_return(way: str) -> None:
    with guest(RETURNS, way) as one:
        one.hook(["jumper", "dive", "jump"], maxactive=8)
        one.run()
        dives, jumps = one.probes["dive"], one.probes["jump"]
        assert [name for name, _, _ in one.rows] == ["jumper"]
        assert one.rows[0][2] == 4
        assert (dives.hits, dives.nmissed) == (12, 0)  # four calls, three times
        assert jumps.hits > 3
        assert dives.active <= 4


@each
@pytest.mark.parametrize("first", ["probe", "return"])
@pytest.mark.parametrize("handlers", [False, True])
def test_a_return_to_what_a_predicate_forbids(way: str, first: str, handlers: bool) -> None:
    """Its break traps whatever p2 is; a probe there is hit while p2 is true, as Linux has it."""
    with guest(RETURNS, way) as one:
        site = one.probing.where("predicated_return")
        assert site is not None
        seen: list[int] = []

        def pre(probe: Kprobe, regs: PtRegs) -> int:
            seen.append(regs["p2"])
            return 0

        probe = Kprobe(addr=site, pre_handler=pre if handlers else None)
        if not handlers:
            probe.record = lambda thread: seen.append(one.manager.regs["p2"])
        if first == "probe":
            one.manager.register(probe)
        one.hook(["twice", "predicated"])
        if first == "return":  # on a place that is watched already
            calls = 0

            def place(entry: Kprobe, regs: PtRegs) -> int:
                nonlocal calls
                calls += 1
                if calls == 4:  # the second from there
                    assert (site in one.manager.points) is (way == "watched")
                    one.manager.register(probe)
                return 0

            late = Kprobe(addr=one.functions()["twice"], pre_handler=place)
            one.manager.register(late)
        one.run()
        assert seen == [1, 1]
        assert [v for name, _, v in one.rows if name == "predicated"] == [232]
        assert [v for name, _, v in one.rows if name == "twice"] == [42, 10, 8, 8, 8, 8]


@each
def test_handlers_have_the_call_in_hand(way: str) -> None:
    with guest(RETURNS, way) as one:
        told = []

        def entry(instance: KretprobeInstance, regs: PtRegs) -> int:
            instance.data[:8] = regs.argument(0).to_bytes(8, "little")
            told.append(("entry", regs.sp, regs.argument(0)))
            return int(regs.argument(0) == 4)  # not wanted

        def back(instance: KretprobeInstance, regs: PtRegs) -> None:
            value = int.from_bytes(instance.data[:8], "little")
            assert regs.ip == instance.ret_addr
            told.append(("return", regs.sp, value))
            regs.retval = regs.retval + 1000

        where = one.functions()["twice"]
        one.manager.register(Kretprobe(addr=where, entry_handler=entry, handler=back, data_size=8))
        one.run()
        assert [(kind, value) for kind, _, value in told] == [
            *(("entry", 21), ("return", 21), ("entry", 5), ("return", 5)),
            *[("entry", 4)] * 4,
        ]
        assert told[0][1] == told[1][1]  # as the caller has it
        words = [int.from_bytes(one.out[at : at + 8], "little") for at in range(0, 40, 8)]
        assert words[3:] == [1042, 1011]


@each
def test_arguments_on_the_stack_are_found(way: str) -> None:
    with guest(RETURNS, way) as one:
        one.hook(["ten"])
        one.run()
        assert one.rows[0][2] == 80 * 4 + 90 + 8 * 16


@pytest.mark.parametrize("way", ["mainline", "owens"])
def test_a_return_address_that_is_kept_is_the_end(way: str) -> None:
    """setjmp under a trampoline: as uprobes have it; watched returns do not mind."""
    with guest(RETURNS, way) as one:
        one.hook([SET_JUMP])
        assert one.run().signal == 4
    with guest(RETURNS, "watched") as one:
        one.hook([SET_JUMP])
        assert one.run() == Exit(code=7)
        assert len(one.rows) > 3


def test_owens_trampoline_is_for_architectures_that_have_it() -> None:
    with pytest.raises(CommandError, match="x86_64 has no trampoline with unwind data"):
        guest(SAMPLES.parent / "x86_64" / "loop", "owens").__enter__()


@each
def test_probes_that_are_gone_leave_their_calls_alone(way: str) -> None:
    """Unregistered while 100 calls are pending."""
    with guest(RETURNS, way) as one:
        calls = 0

        def count(instance: KretprobeInstance, regs: PtRegs) -> int:
            nonlocal calls
            calls += 1
            if calls == 100:
                one.manager.unregister(probe)
            return 0

        probe = Kretprobe(addr=one.functions()["sum"], entry_handler=count)
        one.manager.register(probe)
        end = one.run()
        assert end == Exit(code=7)
        assert calls == 100
        assert one.out[:8] == (20100).to_bytes(8, "little")


def graph(way: str, folder: Path) -> list[str]:
    """Lines of the function graph without times, below the entry point, which nobody calls."""
    sample = str(SAMPLES / "pipeline")
    done = run(
        "graph", "--returns", way, "--retval", "--args", "--under", "main", sample, cwd=folder
    )
    assert done.code == 0
    shown = [line for line in done.err.splitlines() if not line.startswith("kprobe-tui:")]
    lines = [re.sub(r"^ *\d+\) +\d* *\|", "", line) for line in shown]
    assert any("dot(); /* ret=0xc4860 */" in line for line in lines)
    return lines


def test_the_graph_is_the_same_however_returns_are_caught(tmp_path: Path) -> None:
    lines = graph("auto", tmp_path)
    assert len(lines) > 30
    for way in WAYS:
        assert graph(way, tmp_path) == lines
