"""The table of what Linux's uprobes do wrong is the one that README.md shows."""

from pathlib import Path

import pytest

from engine.arch import ARCHES
from engine.arch.uprobe_faults import FAULTS, UprobeFault

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.rule)
def test_readme_has_a_row_of_it(fault: UprobeFault) -> None:
    does = fault.does.replace("opcode byte {opcode}", "the opcode byte")
    release = ".".join(map(str, fault.since))
    row = f"| `{fault.rule}` | {fault.place} | {does} | {fault.strict} | {release} |"
    assert row in README.splitlines()


def test_rules_have_names_and_architectures_of_their_own() -> None:
    assert len({fault.rule for fault in FAULTS}) == len(FAULTS)
    names = {arch.name for arch in ARCHES}
    assert all(fault.arches and names.issuperset(fault.arches) for fault in FAULTS)
