"""The host code of the callbacks against its Python twin."""

import ctypes

import capstone
import pytest
from barecpu import BareCpu
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cpu import native, native_code
from engine.cpu.pagetable import PageTable, Region
from engine.cpu.ram import OUT_OF_MEMORY, PAGE, Ram

BUILT = native.build()
needs_host_code = pytest.mark.skipif(
    BUILT is None, reason="no host code on this machine (not x86-64, or no executable memory)"
)

PAGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(0, 7)), max_size=12)


def regions_from(pages: list[tuple[int, int, int]]) -> list[Region]:
    found: list[Region] = []
    at = 0
    for gap, length, perms in pages:
        start = at + gap * PAGE
        end = start + length * PAGE
        found.append(Region(start, end, start, perms))
        at = end
    return found


def ask(
    portable: bool,
    regions: list[Region],
    probes: list[tuple[int, int]],
    budget: int,
    hole: int = 0,
) -> list[tuple[int, ...]]:
    ram = Ram(size=1 << 28, budget=budget * PAGE)
    ram.control.hole = hole
    table = PageTable(ram)
    table.load(regions)
    answers: list[tuple[int, ...]] = []
    for address, access in probes:
        entry = native.TlbEntry()
        if portable:
            done = native.fill(ram, table, address, access, entry)
        else:
            assert BUILT is not None
            function = ctypes.CFUNCTYPE(
                ctypes.c_bool,
                ctypes.c_void_p,
                ctypes.c_uint64,
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_void_p,
            )(BUILT.fill)
            at, control = ctypes.addressof(entry), ctypes.addressof(ram.control)
            done = function(None, address, access, at, control)
        control_now = ram.control
        answers.append(
            (
                int(done),
                entry.paddr,
                entry.perms,
                control_now.fault_address,
                control_now.fault_access,
                control_now.budget,
                control_now.fills,
            )
        )
    ram.close()
    return answers


@needs_host_code
@settings(max_examples=60, deadline=None)
@given(
    PAGES,
    st.lists(
        st.tuples(st.integers(0, 400 * PAGE), st.sampled_from([16, 17, 18])),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 20),
    st.sampled_from([0, 0x1000]),
)
def test_fill_equals_its_twin(
    pages: list[tuple[int, int, int]], probes: list[tuple[int, int]], budget: int, hole: int
) -> None:
    regions = regions_from(pages)
    assert ask(False, regions, probes, budget, hole) == ask(True, regions, probes, budget, hole)


def test_budget_is_per_page_and_reported() -> None:
    regions = [Region(0, 4 * PAGE, 0, 3)]
    answers = ask(True, regions, [(0, 17), (8, 16), (PAGE, 17), (2 * PAGE, 17)], 2)
    assert [answer[0] for answer in answers] == [1, 1, 1, 0]
    assert answers[-1][4] == OUT_OF_MEMORY


@needs_host_code
def test_bytes_are_the_instructions_beside_them() -> None:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    for code in (native_code.FILL, native_code.BLOCK, native_code.PAUSE, native_code.EDGE):
        decoded = list(engine.disasm_lite(code, 0))
        assert sum(size for _, size, _, _ in decoded) == len(code)
        starts = {at for at, _, _, _ in decoded}
        jumps = [
            int(text, 16) for _, _, name, text in decoded if name[0] == "j" and "[" not in text
        ]
        assert jumps
        assert set(jumps) <= starts


def test_portable_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    assert native.build() is None


@needs_host_code
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 9), st.booleans()), max_size=60),
    st.integers(0, 30),
    st.booleans(),
)
def test_the_clock_ticks_as_its_twin(
    blocks: list[tuple[int, int, bool]], granted: int, noted: bool
) -> None:
    assert BUILT is not None
    stops: list[int] = []
    stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda uc: stops.append(1))
    windows = {"high": 40, "high_size": 12, "low": 70, "low_size": 5}
    branches = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)()
    clock, twin = (
        native.BlockClock(
            remaining=granted,
            stop=ctypes.cast(stop, ctypes.c_void_p).value or 0,
            last_branches=ctypes.addressof(pair),
            keeps_branches=noted,
            **windows,
        )
        for pair in branches
    )
    block = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
    )(BUILT.block)
    for at, size, halted in blocks:
        clock.halted = twin.halted = halted
        block(1, at, size, ctypes.addressof(clock))
        native.tick(twin, at, size)
        assert branches[0][:] == branches[1][:]
        assert bytes(clock)[:80] + bytes(clock)[88:] == bytes(twin)[:80] + bytes(twin)[88:]
    assert len(stops) == clock.stops


def test_the_machinery_repeats_only_where_nothing_has_ticked_since() -> None:
    clock = native.BlockClock(remaining=9, high=0x7000, high_size=0x1000)
    spent = []
    for at in (0x7000, 0x7000, 0x7000, 0x1000, 0x7000, 0x1004, 0x7000, 0x1000, 0x7000):
        before = clock.remaining
        assert not native.tick(clock, at, 4)
        spent.append(before - clock.remaining)
    # The sixth goes straight on, and what is in between is executed once more without a tick.
    assert spent == [0, 1, 1, 1, 0, 0, 1, 1, 0]


def test_a_function_is_called_with_what_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    room = ctypes.create_string_buffer(8)
    fill = ctypes.cast(ctypes.memset, ctypes.c_void_p).value or 0
    words = (ctypes.addressof(room), ord("x"), 3)
    call = native.bound(fill, *words)
    if call is None:
        pytest.skip("no host code here")
    call()
    assert room.raw == b"xxx" + bytes(5)
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    assert native.bound(fill, *words) is None


def test_flags_are_read_as_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for portable in ("", "1"):
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
        cpu = BareCpu("x86_64")
        for flags in (0x202, 0x246, 0xA97):
            cpu.write_register("eflags", flags)
            assert cpu.traps.reader(("eflags",))() == (cpu.read_register("eflags"),)
            assert cpu.traps.reader(("rip",))() == (cpu.pc,)
