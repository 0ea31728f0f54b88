"""The IA-64 core as the engine drives it."""

import random
import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ia64kit import CODE, DATA, STACK, BareIa64, bundle, code

from engine.arch.base import TrapKind
from engine.arch.ia64.bundle import Bundle
from engine.arch.ia64.decode import decode_slot
from engine.arch.ia64.opcodes import forms
from engine.cpu.base import LEAVE, Stop, StopKind
from engine.cpu.ia64.emitter import Emitter
from engine.cpu.ia64.state import slots_down, slots_up
from engine.cpu.ia64.translate import emit
from engine.cpu.ram import PAGE, READ, Region
from engine.errors import GuestFaultError

_END = "M break.m 0x0"


def test_a_system_call_stops_behind_its_break() -> None:
    for slot, text in enumerate(("M break.m 0x100000", "I break.i 0x100000")):
        cpu = BareIa64(code(text, _END))
        assert cpu.run() == Stop(StopKind.SYSCALL)
        assert cpu.read_register("ip") == CODE + (1 if slot == 0 else 16)


def test_a_break_stops_at_its_slot_with_its_immediate() -> None:
    cpu = BareIa64(bundle("MII", "nop.m 0x0", "nop.i 0x0", "break.i 0x81234"))
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.BREAKPOINT, 0x81234)
    assert cpu.read_register("ip") == CODE + 2


def test_a_false_predicate_hides_a_break() -> None:
    cpu = BareIa64(code("M (p06) break.m 0x1", _END))
    assert cpu.run().number == 0
    assert cpu.read_register("ip") == CODE + 16


def test_a_refused_access_names_its_address_and_slot() -> None:
    cpu = BareIa64(code("M st8 [r14]=r15", _END))
    cpu.write_register("r14", DATA + 4 * PAGE + 0x18)
    assert cpu.run() == Stop(StopKind.FAULT, address=DATA + 4 * PAGE + 0x18, access="write")
    assert cpu.read_register("ip") == CODE
    cpu = BareIa64(code("M nop.m 0x0", "M ld4 r8=[r14]", _END))
    cpu.write_register("r14", 0x1234560)
    assert cpu.run() == Stop(StopKind.FAULT, address=0x1234560, access="read")
    assert cpu.read_register("ip") == CODE + 16


def test_code_that_cannot_be_fetched_is_a_fault_at_its_address() -> None:
    cpu = BareIa64(code(f"B br.few {CODE + 4 * PAGE:#x}"))
    assert cpu.run() == Stop(StopKind.FAULT, address=CODE + 4 * PAGE, access="execute")
    assert cpu.read_register("ip") == CODE + 4 * PAGE


def test_running_off_the_last_page_is_a_fault_behind_it() -> None:
    nops = code("M nop.m 0x0") * (4 * PAGE // 16)
    cpu = BareIa64(nops)
    assert cpu.run() == Stop(StopKind.FAULT, address=CODE + 4 * PAGE, access="execute")


def test_steps_execute_one_slot_each() -> None:
    program = bundle("MII", "adds r8=1,r0", "adds r9=2,r0", "adds r10=3,r0") + bundle(
        "MLX;", "nop.m 0x0", "movl r11=0x123456789a"
    )
    cpu = BareIa64(program)
    seen = []
    for _ in range(5):
        assert cpu.step() is None
        seen.append((cpu.read_register("ip") - CODE, *cpu.read_registers(("r8", "r9", "r10"))))
    assert seen == [
        (1, 1, 0, 0),
        (2, 1, 2, 0),
        (16, 1, 2, 3),
        (17, 1, 2, 3),
        (32, 1, 2, 3),
    ]
    assert cpu.read_register("r11") == 0x123456789A


def test_the_second_half_of_a_long_instruction_is_illegal() -> None:
    cpu = BareIa64(bundle("MLX;", "nop.m 0x0", "movl r11=0x1"))
    cpu.write_register("ip", CODE + 2)
    assert cpu.run().trap is TrapKind.ILLEGAL
    assert cpu.read_register("ip") == CODE + 2


def test_a_program_that_writes_its_own_next_bundle_runs_what_it_wrote() -> None:
    program = code(
        "M ld8 r16=[r14],8",
        "M ld8 r17=[r14]",
        "M st8 [r15]=r16,8",
        "M st8 [r15]=r17",
        "M adds r8=1,r0",
        _END,
    )
    cpu = BareIa64(program, writable_code=True)
    cpu.write(DATA, code("M adds r8=2,r0"))
    cpu.write_register("r14", DATA)
    cpu.write_register("r15", CODE + 0x40)
    assert cpu.run().kind is StopKind.TRAP
    assert cpu.read_register("r8") == 2
    cpu.write(CODE, program)
    cpu.invalidate(CODE, len(program))
    cpu.write_register("r14", DATA)
    cpu.write_register("r15", CODE + 0x40)
    cpu.write_register("ip", CODE)
    places = []
    while cpu.step() is None:
        places.append(cpu.read_register("ip") - CODE)
    assert places == [16 * (at // 3) + at % 3 for at in range(1, 16)]


def test_text_changed_from_outside_is_seen_once_invalidated() -> None:
    cpu = BareIa64(code("M adds r8=1,r0", _END))
    cpu.run()
    cpu.write(CODE, code("M adds r8=5,r0"))
    cpu.invalidate(CODE, 16)
    cpu.write_register("ip", CODE)
    cpu.run()
    assert cpu.read_register("r8") == 5


def test_code_at_another_place_after_a_remap_is_seen() -> None:
    cpu = BareIa64(code("M adds r8=1,r0", _END))
    cpu.run()
    fresh = cpu.memory.allocate(PAGE)
    assert fresh is not None
    cpu.map([Region(CODE, CODE + PAGE, fresh, cpu.regions[0].perms), *cpu.regions[1:]])
    cpu.write(CODE, code("M adds r8=9,r0", _END))
    cpu.write_register("ip", CODE)
    cpu.run()
    assert cpu.read_register("r8") == 9


def test_a_page_made_read_only_refuses_stores_after_the_flush() -> None:
    cpu = BareIa64(code("M st8 [r14]=r0", "M st8 [r14]=r14", _END))
    cpu.write_register("r14", DATA)
    cpu.step()
    data = cpu.regions[1]
    cpu.map([cpu.regions[0], Region(data.start, data.end, data.physical, READ), cpu.regions[2]])
    assert cpu.run() == Stop(StopKind.FAULT, address=DATA, access="write")


def test_the_budget_of_pages_stops_the_guest() -> None:
    cpu = BareIa64(code("M st8 [r14]=r0", _END))
    cpu.memory.control.budget = 1  # the code's page
    cpu.write_register("r14", DATA + 8)
    assert cpu.run() == Stop(StopKind.OUT_OF_MEMORY, address=DATA + 8)


def test_reads_and_writes_of_memory_that_is_not_there_are_errors() -> None:
    cpu = BareIa64()
    with pytest.raises(GuestFaultError):
        cpu.read(0x10, 1)
    with pytest.raises(GuestFaultError):
        cpu.write(DATA + 4 * PAGE - 1, b"ab")


_LOOP = code(
    "M adds r8=1,r8",
    "I cmp.ltu p6,p7=r8,r9",
    f"B (p06) br.cond.dptk.few {CODE:#x}",
    _END,
)


def test_the_clock_counts_taken_branches_and_a_quantum_ends_at_one() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 10)
    assert cpu.run(4) == Stop(StopKind.QUANTUM)
    assert (cpu.blocks(), cpu.read_register("r8"), cpu.read_register("ip")) == (4, 5, CODE)
    assert cpu.run().kind is StopKind.TRAP
    assert (cpu.blocks(), cpu.now()) == (9, 9)
    assert list(cpu.left) == [CODE + 0x30, CODE + 0x30]


def test_steps_tick_as_runs_do() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 4)
    cpu.count_blocks(True)
    while cpu.step() is None:
        pass
    assert cpu.blocks() == 3


def test_no_time_passes_in_the_windows_of_the_machinery() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 10)
    cpu.count_blocks(True)
    cpu.exempt((CODE, PAGE))
    cpu.run()
    assert cpu.blocks() == 0


def test_an_action_deals_with_a_breakpoint_in_any_slot() -> None:
    for slot in range(3):
        texts = ["adds r8=1,r0", "adds r9=1,r0", "adds r10=1,r0"]
        texts[slot] = f"break.{'MII'[slot].lower()} 0x81000"
        cpu = BareIa64(bundle("MII", *texts) + code(_END))
        hits: list[int] = []
        after = CODE + slot + 1 if slot < 2 else CODE + 16

        def action(cpu: BareIa64 = cpu, hits: list[int] = hits, after: int = after) -> int:
            hits.append(cpu.read_register("ip"))
            return after

        cpu.traps.plant(CODE + slot, action, after)
        cpu.count_blocks(True)
        stop = cpu.run()
        assert (stop.number, hits, cpu.blocks()) == (0, [CODE + slot], 0)
        assert sum(cpu.read_registers(("r8", "r9", "r10"))) == 2


def test_an_action_may_leave_and_may_be_removed() -> None:
    cpu = BareIa64(code("M break.m 0x81000", _END))
    cpu.traps.plant(CODE, lambda: LEAVE, CODE + 1)
    assert cpu.run().trap is TrapKind.BREAKPOINT
    cpu.traps.plant(CODE, lambda: CODE + 1, CODE + 1)
    cpu.traps.remove(CODE)
    assert cpu.run().trap is TrapKind.BREAKPOINT


def test_an_action_may_make_a_nat_or_start_the_clock() -> None:
    cpu = BareIa64(code("M break.m 0x81000", "M adds r9=1,r8", _END))

    def poison() -> int:
        cpu.write_register("nat8", 1)
        cpu.traps.remove(CODE)
        return CODE + 1

    cpu.traps.plant(CODE, poison, CODE + 1)
    cpu.run()
    assert cpu.read_register("nat9") == 1
    cpu = BareIa64(_LOOP.replace(code("M adds r8=1,r8"), code("M break.m 0x81000")))
    cpu.write_register("r9", 5)

    def count() -> int:
        cpu.count_blocks(True)
        cpu.write_register("r8", cpu.read_register("r8") + 1)
        return CODE + 1

    cpu.traps.plant(CODE, count, CODE + 1)
    cpu.run()
    assert cpu.blocks() == 4


def test_what_an_action_raises_comes_out() -> None:
    cpu = BareIa64(code("M break.m 0x81000", _END))

    def action() -> int:
        raise RuntimeError("the action failed")

    cpu.traps.plant(CODE, action, CODE + 1)
    with pytest.raises(RuntimeError, match="the action failed"):
        cpu.run()
    assert cpu.read_register("ip") == CODE

    def missing() -> int:
        cpu.invalidate_all()
        raise KeyError("name")

    cpu.traps.plant(CODE, missing, CODE + 1)
    with pytest.raises(KeyError, match="name"):
        cpu.run()


def test_halt_from_another_thread_stops_an_endless_loop() -> None:
    cpu = BareIa64(code(f"B br.few {CODE:#x}"))
    timer = threading.Timer(0.05, cpu.halt)
    timer.start()
    begin = time.monotonic()
    assert cpu.run() == Stop(StopKind.HALTED)
    assert time.monotonic() - begin < 5
    timer.join()


def test_saved_registers_come_back() -> None:
    cpu = BareIa64(code("M alloc r34=ar.pfs,6,4,0", "M adds r35=7,r0", _END))
    state = cpu.save()
    before = cpu.read_registers(("ip", "cfm", "r35", "bsp"))
    cpu.run()
    assert cpu.read_register("r35") == 7
    cpu.restore(state)
    assert cpu.read_registers(("ip", "cfm", "r35", "bsp")) == before
    cpu.run()
    assert cpu.read_register("r35") == 7


def test_engine_code_runs_up_to_its_end_and_counts_nothing() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 3)
    cpu.count_blocks(True)
    cpu.execute(CODE, CODE + 0x30)
    assert (cpu.read_register("r8"), cpu.blocks()) == (3, 0)


def test_a_halt_during_engine_code_is_kept_for_the_guest() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 3)
    cpu.halt()
    cpu.execute(CODE, CODE + 0x30)
    assert cpu.read_register("r8") == 3
    cpu.write_register("ip", CODE)
    assert cpu.run() == Stop(StopKind.HALTED)


def test_names_of_registers() -> None:
    cpu = BareIa64()
    cpu.write_register("cfm", 10 | 4 << 7)
    values = {"out0": 5, "r37": 6, "f32": 1 << 81 | 0x1003E << 64 | 9, "pr": 0x41, "b3": 7}
    for name, value in values.items():
        cpu.write_register(name, value)
    assert cpu.read_registers(("r36", "out1", "p6", "p7", "cfm", "f1")) == (
        *(5, 6, 1, 0),
        *(10 | 4 << 7, 0xFFFF << 64 | 1 << 63),
    )
    assert cpu.read_register("f32") == values["f32"]
    cpu.write_register("r0", 1)
    assert cpu.read_register("r0") == 0
    with pytest.raises(KeyError):
        cpu.read_register("rax")


def test_a_nat_set_from_outside_is_consumed() -> None:
    cpu = BareIa64(code("M adds r9=1,r8", "M st8 [r14]=r9", _END))
    cpu.write_register("r14", DATA)
    cpu.write_register("nat8", 1)
    stop = cpu.run()
    assert (stop.trap, stop.number, cpu.read_register("ip")) == (TrapKind.ILLEGAL, 26, CODE + 16)
    assert cpu.read_registers(("nat9", "nat10")) == (1, 0)


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
    cpu.flush_register_stack()
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
    with pytest.raises(GuestFaultError):
        cpu.flush_register_stack()


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


def test_unaligned_accesses_are_carried_out_where_asked_for() -> None:
    program = code("M ld8 r8=[r14]", "M st4 [r15]=r8", _END)
    cpu = BareIa64(program, emulate_unaligned=True)
    cpu.write(DATA + PAGE - 3, bytes(range(1, 9)))
    cpu.write_register("r14", DATA + PAGE - 3)
    cpu.write_register("r15", DATA + 5)
    assert cpu.run().number == 0
    assert cpu.read_register("r8") == int.from_bytes(bytes(range(1, 9)), "little")
    assert cpu.read(DATA + 5, 4) == bytes(range(1, 5))
    assert BareIa64(program).run().kind is StopKind.FAULT


def test_every_form_can_be_translated() -> None:
    """No form makes source that Python refuses; what it does is the traces' affair."""
    for form in forms():
        for word in (form.value, form.value | (1 << 41) - 1 & ~form.mask):
            for nats in (False, True):
                emitter = Emitter(nats, True)
                insn = decode_slot(form.units[0], word, 0, 2 if "B" in form.units else 0)
                emit(emitter, insn)
                lines = "\n".join(
                    ["def block():", "    while True:", "        pass", *emitter.lines]
                )
                compile(lines, form.mnemonic, "exec")


@pytest.mark.parametrize("nats", [False, True])
def test_every_form_executes_or_stops_with_a_reason(nats: bool) -> None:
    source = random.Random(7)
    cpu = BareIa64(writable_code=True)
    template = {"M": 8, "I": 0, "F": 12, "B": 0x16, "X": 4}
    slot = {"M": 0, "I": 1, "F": 1, "B": 2, "X": 1}
    outcomes: Counter[StopKind | None] = Counter()
    for form in forms():
        for _ in range(3):
            unit = form.units[0]
            word = source.getrandbits(41) & ~form.mask & ~63 | form.value
            words = [1 << 27, 1 << 27, 1 << 27]
            words[2 if unit == "X" else slot[unit]] = word
            cpu.write(CODE, Bundle(template[unit], (words[0], words[1], words[2])).pack())
            cpu.invalidate(CODE, 16)
            cpu.write_register("bsp", STACK + 0x800)
            cpu.write_register("cfm", 96 | 40 << 7)
            for number in range(1, 128):
                cpu.write_register(f"r{number}", DATA + 16 * source.randrange(900))
                cpu.write_register(f"f{number}", source.getrandbits(82))
                if nats:
                    cpu.write_register(f"nat{number}", source.random() < 0.1)
            cpu.write_register("ip", CODE + slot[unit])
            stop = cpu.step()
            outcomes[stop.kind if stop else None] += 1
    assert outcomes[None] > 700
    assert outcomes[StopKind.TRAP] > 50
    assert set(outcomes) <= {None, StopKind.TRAP, StopKind.FAULT, StopKind.SYSCALL}
