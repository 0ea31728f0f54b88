"""The guest's clock and instructions that run elsewhere than the program has them.

The emulator is entered anew at one that the engine looks at before it runs; in a slot that is no
repetition of it. One whose hit is carried out phase by phase leaves its slot or is emulated in a
step of its own.
"""

import pytest
from probekit import CODE, DATA, ProbeGuest

from engine.arch.plan import Rules
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.hit_machine import PhaseWatch
from engine.probes.kprobe import Kprobe

# call f; int3; f: and edi, 0x3f; push rax; stmxcsr [rsp]; pop rsi; fnstsw ax; ret
CODE_BYTES = bytes.fromhex("e801000000 cc 83e73f 50 0fae1c24 5e dfe0 c3")
PLACES = (6, 9, 10, 14, 15)
TICKS = 2
"""The call and the return."""


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("post", [False, True])
@pytest.mark.parametrize("place", [None, *PLACES])
def test_a_screened_instruction_ticks_as_others(
    rules: Rules, post: bool, place: int | None
) -> None:
    guest = ProbeGuest("x86_64", CODE_BYTES)
    seen: list[int] = []
    probe = Kprobe(addr=CODE + (place or 0), record=seen.append, rules=rules)
    if post:
        probe.post_handler = lambda probe, regs, flags: None
    if place is not None:
        guest.manager.register(probe)
    guest.cpu.count_blocks(True)
    sp = guest.sp
    for turn in (1, 2):
        guest.pc, guest.sp = CODE, sp
        guest.run_to_trap()
        assert guest.cpu.blocks() == turn * TICKS
        assert len(seen) == (turn if place is not None else 0)


# call f; jmp to int3; ...; int3; f: cmp; je taken; nop; call [rbx]; rep stosb; ret
PHASED = bytes.fromhex("e804000000 eb01 90 cc 39c0 7401 90 ff13 f3aa c3 c3")


@pytest.mark.parametrize(
    ("rules", "place"),
    [
        (rules, place)
        for rules in Rules
        for place in (0, 5, 9, 11, 14, 16, 18, 19)
        if (rules, place) != (Rules.KPROBE, 14)  # which the kernel refuses
    ],
)
def test_a_hit_phase_by_phase_ticks_as_others(rules: Rules, place: int) -> None:
    """A copy in a slot may jump, fall through or repeat."""
    ends: list[int] = []
    for probed in (False, True):
        guest = ProbeGuest("x86_64", PHASED)
        guest.memory.write(DATA, (CODE + 19).to_bytes(8, "little"))
        guest["rbx"], guest["rdi"], guest["rcx"] = DATA, DATA + 8, 3
        guest.cpu.count_blocks(True)
        if probed:
            guest.manager.register(Kprobe(addr=CODE + place, rules=rules))
            while guest.pc != CODE + place:
                assert guest.cpu.step() is None
            PhaseWatch(BreakpointMachine(guest.manager.hits)).run()
        guest.run_to_trap()
        ends.append(guest.cpu.blocks())
    assert ends[0] == ends[1]
