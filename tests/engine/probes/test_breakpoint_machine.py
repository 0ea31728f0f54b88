"""A hit one phase at a time: what each phase shows and leaves."""

import pytest
from probekit import CODE, DATA, SP, ProbeGuest

from engine.cpu.base import StopKind
from engine.errors import EngineError
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.current_hit import Status
from engine.probes.hit_machine import Phase, PhaseRecord, PhaseWatch
from engine.probes.kprobe import Kprobe, Uprobe

ALL = [Phase.ARMED, Phase.TRAP, Phase.PRE, Phase.SLOT, Phase.FIXUP, Phase.POST, Phase.RESUME]


def uprobe(guest: ProbeGuest, address: int) -> Uprobe:
    probe = Uprobe("/bin/true", 0)
    probe.addr = address
    guest.manager.register(probe)
    return probe


def whole(guest: ProbeGuest) -> list[PhaseRecord]:
    """A hit from its first phase to its last."""
    return PhaseWatch(BreakpointMachine(guest.manager.hits)).run()


def test_scratch_register_stands_in_and_comes_back() -> None:
    code = bytes.fromhex("488b05") + (DATA - CODE - 7).to_bytes(4, "little") + b"\xcc"
    guest = ProbeGuest("x86_64", code)  # mov rax, [rip+x]
    guest.memory.write(DATA, (77).to_bytes(8, "little"))
    guest["rsi"] = 0x1234
    uprobe(guest, CODE)
    records = {record.phase: record for record in whole(guest)}
    assert list(records) == ALL
    assert records[Phase.TRAP].after == CODE + 1
    step = records[Phase.SLOT]
    assert step.registers == {"rax": (0, 77), "rsi": (0x1234, CODE + 7)}
    assert "rsi stands in for rip" in step.text
    assert guest.manager.area.contains(step.after)
    fix = records[Phase.FIXUP]
    assert fix.registers == {"rsi": (CODE + 7, 0x1234)}
    assert fix.after == CODE + 7
    assert not guest.manager.area.busy


def test_return_address_of_a_copied_call_is_put_right() -> None:
    guest = ProbeGuest("x86_64", b"\xff\x13\xcc")  # call [rbx]
    guest.memory.write(DATA, (CODE + 0x40).to_bytes(8, "little"))
    guest["rbx"] = DATA
    uprobe(guest, CODE)
    records = {record.phase: record for record in whole(guest)}
    slot = guest.manager.area.page + guest.manager.area.slot_size
    ((place, wrong, right),) = records[Phase.FIXUP].memory
    assert place == SP - 8
    assert int.from_bytes(wrong, "little") == slot + 2
    assert int.from_bytes(right, "little") == CODE + 2
    assert guest.pc == CODE + 0x40


def test_fault_in_the_slot_ends_the_hit_at_the_original() -> None:
    guest = ProbeGuest("x86_64", b"\x48\x8b\x03\xcc")  # mov rax, [rbx]
    probe = Kprobe(addr=CODE)
    guest.manager.register(probe)
    machine = BreakpointMachine(guest.manager.hits)
    last = PhaseWatch(machine).run()[-1]
    assert last.phase is Phase.SLOT
    assert last.stop is machine.stop is not None
    assert machine.stop.kind is StopKind.FAULT
    assert machine.stop.address == 0
    assert guest.pc == CODE
    assert guest.manager.hits.current.status is Status.IDLE
    with pytest.raises(EngineError, match="is over"):
        PhaseWatch(machine).advance()


def test_fault_of_an_emulation() -> None:
    guest = ProbeGuest("x86_64", b"\x53\xcc")  # push rbx
    guest.sp = 0x10
    uprobe(guest, CODE)
    machine = BreakpointMachine(guest.manager.hits)
    assert PhaseWatch(machine).run()[-1].phase is Phase.EMULATED
    assert machine.stop is not None
    assert (machine.stop.address, machine.stop.access) == (8, "write")
    assert (guest.pc, guest.sp) == (CODE, 0x10)


def test_handlers_run_in_their_phases_and_may_move_pc() -> None:
    guest = ProbeGuest("aarch64", bytes.fromhex("000020d4000020d4"))
    seen: list[str] = []
    guest.load(bytes.fromhex("e00301aa"))  # mov x0, x1
    probe = Kprobe(
        addr=CODE,
        pre_handler=lambda probe, regs: seen.append("pre"),
        post_handler=lambda probe, regs, flags: seen.append(f"post {regs.ip:#x}"),
    )
    guest.manager.register(probe)
    guest["x1"] = 5
    machine = BreakpointMachine(guest.manager.hits)
    while machine.next is not Phase.POST:
        PhaseWatch(machine).advance()
    assert seen == ["pre"]
    PhaseWatch(machine).run()
    assert seen == ["pre", f"post {CODE + 4:#x}"]
    assert guest["x0"] == 5
    guest.pc = CODE

    def skip(probe: Kprobe, regs: object) -> int:
        guest.pc = CODE + 8
        return 1

    probe.pre_handler = skip
    assert [record.phase for record in whole(guest)] == [
        *ALL[:3],
        Phase.RESUME,
    ]
    assert guest.pc == CODE + 8
    assert seen == ["pre", f"post {CODE + 4:#x}"]


def test_takes_up_a_trap_that_was_taken_and_refuses_other_places() -> None:
    guest = ProbeGuest("x86_64", b"\x90\x48\x89\xd8\xcc")
    with pytest.raises(EngineError, match="no armed probe"):
        BreakpointMachine(guest.manager.hits)
    guest.manager.register(Kprobe(addr=CODE + 1))
    guest.pc = CODE + 2
    records = PhaseWatch(BreakpointMachine(guest.manager.hits, trapped=True)).run()
    assert [record.phase for record in records] == ALL[2:]
    assert guest.pc == CODE + 4


def test_hit_inside_a_hit_is_missed_and_stepped() -> None:
    guest = ProbeGuest("x86_64", b"\x90\x48\x89\xd8\xcc")
    inner = Kprobe(addr=CODE + 1, pre_handler=lambda probe, regs: pytest.fail("served"))

    def enter(probe: Kprobe, regs: object) -> None:
        guest.pc = CODE + 1
        whole(guest)
        guest.pc = CODE

    outer = Kprobe(addr=CODE, pre_handler=enter)
    guest.manager.register_all([inner, outer])
    guest["rbx"] = 9
    guest.pc = CODE
    whole(guest)
    assert (guest["rax"], inner.hits, inner.nmissed, outer.hits) == (9, 1, 1, 1)
    assert (guest.pc, guest.manager.hits.current.status) == (CODE + 1, Status.IDLE)


def test_repeated_string_instruction_is_one_step() -> None:
    guest = ProbeGuest("x86_64", b"\xf3\xaa\xcc")  # rep stosb
    uprobe(guest, CODE)
    guest["rdi"], guest["rcx"], guest["rax"] = DATA, 5, 0x41
    step = next(r for r in whole(guest) if r.phase is Phase.SLOT)
    assert step.registers == {"rdi": (DATA, DATA + 5), "rcx": (5, 0)}
    assert guest.memory.read(DATA, 6) == b"AAAAA\0"
