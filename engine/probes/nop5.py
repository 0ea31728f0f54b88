"""The kind of technique that `engine.probes.nop_call` is, which is loaded once it is asked for."""

from collections.abc import Iterator
from typing import Final

from engine.probes.hit_machine import HitMachine
from engine.probes.hits import HitDispatcher
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import Check
from engine.probes.technique import Technique, TechniqueHost
from engine.probes.technique_kind import TechniqueConditions, TechniqueKind

KIND: Final = "nop5"
"""The name of the technique, also to who looks for its machine (`Replacement.kind`)."""


def _machine(hits: HitDispatcher) -> HitMachine:
    from engine.probes.nop_call_machine import nop_call_machine

    return nop_call_machine(hits)


def _build(host: TechniqueHost) -> Technique | None:
    calls = host.target.arch.nop_calls
    if calls is None or host.room is None:
        return None
    from engine.probes.nop_call import NopCallTechnique

    return NopCallTechnique(host, calls())


def _checklist(place: JumpPlace) -> tuple[Check, ...]:
    from engine.probes.nop_call_rules import checklist

    return checklist(place)


def _failing(place: JumpPlace) -> str:
    from engine.probes.nop_call_rules import failing

    return failing(place)


def _failing_in(place: JumpPlace) -> list[str]:
    from engine.probes.nop_call_rules import failing_in

    return failing_in(place)


def _fitting(place: JumpPlace) -> Iterator[int]:
    from engine.probes.nop_call_rules import fitting

    return fitting(place)


NOP5: Final = TechniqueKind(
    name="nop5",
    help="a call in place of a uprobe's five-byte no-operation, as Linux 6.18 has it",
    stands=KIND,
    usual=False,
    machine=_machine,
    build=_build,
    conditions=TechniqueConditions(
        "a call instead of the breakpoint once it is hit, as Linux 6.18 makes it",
        _checklist,
        _failing,
        _failing_in,
        _fitting,
    ),
)
