"""The table of what Linux's uprobes do wrong is the one that the handbook shows."""

import pytest

from engine.arch import ARCHES, by_name
from engine.arch.plan import Mode, Rules
from engine.arch.uprobe_faults import FAULTS, INT3, NOP_CALL, PUSHF, UprobeFault
from engine.chapters import load_chapter
from engine.probes.placement_rules import RULES

CHAPTER = load_chapter("techniques").text


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_the_chapter_has_a_row_of_it(fault: UprobeFault) -> None:
    does = fault.does.replace("opcode byte {opcode}", "the opcode byte")
    release = ".".join(map(str, fault.since))
    row = f"| `{fault.rule}` | {fault.place} | {does} | {fault.strict} | {release} |"
    assert row in CHAPTER.splitlines()


def test_rules_have_names_and_architectures_of_their_own() -> None:
    assert len({fault.rule for fault in FAULTS}) == len(FAULTS)
    names = {arch.name for arch in ARCHES}
    assert all(fault.arches and names.issuperset(fault.arches) for fault in FAULTS)


def test_those_who_do_not_load_it_say_the_same() -> None:
    """Verdicts and rules of most programs have no need of the table."""
    pushf = by_name("x86_64").probes.analyze(b"\x9c", 0x1000, Rules.UPROBE, Mode.KERNEL, b"")
    assert (pushf.rule, pushf.wrong) == (PUSHF.rule, PUSHF.text())
    assert {NOP_CALL.rule, INT3.rule} < {rule.id for rule in RULES}
