"""What Linux's uprobes take for other instructions: kernel mode does what a running kernel did."""

import json
from pathlib import Path
from typing import Final, cast

import pytest

from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, StepCpu, Verdict
from engine.arch.uprobe_faults import FAULTS, REFUSES
from engine.arch.x86_64.analyze import analyze

DATA: Final = json.loads(
    (Path(__file__).parents[3] / "data/uprobes/damage-6.18.json").read_text(encoding="utf-8")
)
ADDRESS: Final = 0x401000
PUSH: Final = b"\x50"
SIGTRAP, SIGSEGV = 5, 11
STEPPED: Final = {Fixup.STEP_FLAG: SIGTRAP, Fixup.STRANDED: SIGSEGV}


class Registers:
    """Flags and stack pointer; a stack that takes everything."""

    def __init__(self, flags: int) -> None:
        self.values: dict[str, int] = {"eflags": flags, "rsp": DATA["sp"], "rax": 0}

    def read_register(self, name: str) -> int:
        return self.values[name]

    def write_register(self, name: str, value: int) -> None:
        self.values[name] = value

    def store(self, address: int, data: bytes) -> None:
        assert len(data) == 8
        assert address == self.values["rsp"] - 8


def planned(code: str, mode: Mode) -> InsnPlan:
    raw = bytes.fromhex(code).ljust(16, PUSH)
    return analyze(raw, ADDRESS, Rules.UPROBE, mode, b"")


def outcome(plan: InsnPlan, size: int, flags: int) -> list[int]:
    """Status and stack pointer behind the pushes that a process goes on at.

    Args:
        plan: of the instruction.
        size: of it, without the pushes that are its immediate.
        flags: in front of it.
    """
    for fixup, status in STEPPED.items():
        if fixup in plan.fixups:
            return [status, 0]
    registers = Registers(flags)
    assert plan.operation is not None
    left = ADDRESS + size + DATA["pushes"] - plan.operation.run(cast(StepCpu, registers))
    if not 0 <= left <= DATA["pushes"]:
        return [SIGSEGV, 0]
    return [0, registers.values["rsp"] - 8 * left]


@pytest.mark.parametrize("code", DATA["forms"])
def test_kernel_mode_does_the_damage_of_a_running_kernel(code: str) -> None:
    plan = planned(code, Mode.KERNEL)
    assert plan.wrong
    for flags, wanted in DATA["forms"][code].items():
        assert outcome(plan, len(code) // 2, int(flags, 16)) == wanted


@pytest.mark.parametrize("code", DATA["forms"])
def test_strict_mode_refuses_what_it_does_not_do_right(code: str) -> None:
    rule, strict = planned(code, Mode.KERNEL).rule, planned(code, Mode.STRICT)
    fault = next(fault for fault in FAULTS if fault.rule == rule)
    refused = strict.verdict is Verdict.REJECTED
    assert refused == (fault.strict == REFUSES)
    assert not strict.wrong
    if refused and strict.rule != "x86.undefined":
        assert strict.rule == rule
        assert strict.reason.startswith(f"{rule}: ")
