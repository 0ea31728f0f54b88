"""The IA-64 core as the engine drives it: stops, steps, memory and its changes, registers."""

import pytest
from ia64kit import CODE, DATA, BareIa64, bundle, code

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind
from engine.cpu.pagetable import Region
from engine.cpu.ram import PAGE, READ
from engine.errors import GuestFaultError

pytestmark = pytest.mark.usefixtures("each_core")

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


@pytest.mark.parametrize("nat", [0, 1])
def test_a_load_adds_what_its_target_held_before(nat: int) -> None:
    cpu = BareIa64(code("M ld8 r8=[r14],r8", _END))
    cpu.write(DATA, (5).to_bytes(8, "little"))
    cpu.write_register("r14", DATA)
    cpu.write_register("r8", 24)
    cpu.write_register("nat8", nat)
    cpu.run()
    names = ("r8", "r14", "nat8", "nat14")
    assert cpu.read_registers(names) == (5, DATA + 24, 0, nat)
