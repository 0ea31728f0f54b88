"""The guest's clock and instructions that the engine looks at before they run.

The emulator is entered anew at such an instruction; in a slot that is no repetition of it.
"""

import pytest
from probekit import CODE, ProbeGuest

from engine.arch.plan import Rules
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
