"""Every form of the IA-64 table in the core."""

import random
from collections import Counter

import pytest
from ia64kit import CODE, DATA, STACK, BareIa64

from engine.arch.ia64.bundle import Bundle
from engine.arch.ia64.decode import decode_slot
from engine.arch.ia64.opcodes import forms
from engine.cpu.base import StopKind
from engine.cpu.ia64.emitter import Emitter
from engine.cpu.ia64.translate import emit


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
