"""A guest that copies its own text, with what is planted in it, over itself."""

import pytest
from archkit import COMPILED, JUMPING
from cguest import compiled
from sessionkit import loaded

from engine.session.protocol.requests import ProbeRequest

HITS = {"first": 12, "second": 6}


@pytest.mark.parametrize(
    ("arch", "technique"),
    [(arch, "breakpoint") for arch in COMPILED] + [(arch, "jump") for arch in JUMPING],
)
@pytest.mark.parametrize("returns", [False, True], ids=["entries", "returns"])
def test_probes_stay_where_they_are_copied(arch: str, technique: str, returns: bool) -> None:
    with loaded(compiled("selfcopy", arch)) as guest:
        plain = (guest.run().exit_code, guest.out)
    with loaded(compiled("selfcopy", arch), technique=technique) as guest:
        tracing = guest.tracing()
        names = tuple(HITS)
        tracing.definitions.place(ProbeRequest(entries=names, returns=names if returns else ()))
        reports = guest.run(tracing)

    assert (reports.exit_code, guest.out) == plain
    assert plain[0] == 0
    for name, count in HITS.items():
        assert sum(f"p_{name}_0: " in event for event in guest.events) == count
        assert sum(f"r_{name}_0: " in event for event in guest.events) == count * returns
    assert reports.remarks == ()
