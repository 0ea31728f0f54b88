"""Frames of the IA-64 core's register stack, and rotation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ia64kit import CODE, DATA, STACK, BareIa64, code

from engine.cpu.base import StopKind
from engine.cpu.ia64.state import slots_down, slots_up
from engine.cpu.ia64.stops import PageFault
from engine.cpu.ram import PAGE

pytestmark = pytest.mark.usefixtures("each_core")

_END = "M break.m 0x0"

# Calls itself r32 times; each frame keeps its argument in r34 and adds it up on the way back.
_DEEP = code(
    "M alloc r33=ar.pfs,9,8,0",
    "I mov r35=b0",
    "M adds r34=1,r32",
    "I cmp.eq p6,p7=0,r32",
    "M (p06) mov r8=r0",
    f"B (p06) br.cond.dpnt.few {CODE + 0xA0:#x}",
    "M adds r40=-1,r32",
    f"B br.call.sptk.few b0={CODE:#x}",
    "M add r8=r8,r34",
    "M nop.m 0x0",
    "I mov b0=r35",
    "I mov.i ar.pfs=r33",
    "B br.ret.sptk.few b0",
)


def _recurse(depth: int, bsp: int = STACK) -> BareIa64:
    cpu = BareIa64(_DEEP)
    cpu.write(CODE + PAGE, code(_END))
    cpu.write_register("bsp", bsp)
    cpu.write_register("cfm", 1)
    cpu.write_register("r32", depth)
    cpu.write_register("b0", CODE + PAGE)
    cpu.write_register("pfs", 1)
    return cpu


@pytest.mark.parametrize("depth", [1, 50, 2000])
def test_frames_come_back_from_the_backing_store(depth: int) -> None:
    cpu = _recurse(depth)
    assert cpu.run().number == 0
    assert cpu.read_register("r8") == depth * (depth + 3) // 2
    assert cpu.read_register("bsp") == STACK


def test_a_register_stack_that_is_full_is_a_fault() -> None:
    cpu = _recurse(10_000)
    stop = cpu.run()
    assert (stop.kind, stop.access) == (StopKind.FAULT, "write")
    assert stop.address == STACK + 64 * PAGE


def test_the_backing_store_can_be_brought_up_to_date() -> None:
    cpu = _recurse(20)
    while cpu.read_register("r32") != 0 or cpu.read_register("ip") != CODE + 0x20:
        assert cpu.step() is None
    bsp = cpu.read_register("bsp")
    cpu._state.flush()
    assert cpu.read_register("bspstore") == bsp
    caller = bsp - 8 * slots_down(bsp, 8)
    assert int.from_bytes(cpu.read(caller, 8), "little") == 1  # its r32
    assert cpu.run().number == 0
    assert cpu.read_register("r8") == 20 * 23 // 2


@given(st.integers(0, 1 << 20), st.integers(0, 96))
def test_slots_of_the_backing_store_go_up_and_down(word: int, count: int) -> None:
    bsp = word * 8
    if word % 64 == 63:  # a collection of NaT bits: no register is stored there
        bsp += 8
    up = bsp + 8 * slots_up(bsp, count)
    addresses: list[int] = []
    at = bsp
    while len(addresses) < count:
        if at >> 3 & 63 != 63:
            addresses.append(at)
        at += 8
    if at >> 3 & 63 == 63:
        at += 8
    assert up == (at if count else bsp)
    assert up - 8 * slots_down(up, count) == bsp


def test_a_backing_store_that_cannot_be_written_is_an_error() -> None:
    cpu = _recurse(20, bsp=DATA + 4 * PAGE)
    while cpu.read_register("r32") != 0:
        cpu.step()
    with pytest.raises(PageFault):
        cpu._state.flush()


def test_a_nat_is_kept_in_the_backing_store_across_a_deep_recursion() -> None:
    cpu = _recurse(1500)
    cpu.write_register("nat1", 1)
    assert cpu.run().number == 0
    assert cpu.read_registers(("r8", "nat1")) == (1500 * 1503 // 2, 1)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_predicates_read_and_write_through_rotation(data: st.DataObject) -> None:
    cpu = BareIa64(code("I mov r8=pr", "I mov pr=r9,0xfffffffffffffffe", "I mov r10=pr", _END))
    rename = data.draw(st.integers(0, 47))
    cpu.write_register("cfm", rename << 32)
    logical = data.draw(st.integers(0, (1 << 64) - 1)) | 1
    cpu.write_register("pr", logical)
    wanted = data.draw(st.integers(0, (1 << 64) - 1)) | 1
    cpu.write_register("r9", wanted)
    cpu.run()
    bits = [logical >> at & 1 for at in range(16, 64)]
    unrotated = sum(bits[(at - rename) % 48] << (16 + at) for at in range(48))
    assert cpu.read_registers(("r8", "r10")) == (logical & 0xFFFF | unrotated, wanted)
