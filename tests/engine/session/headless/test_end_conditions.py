"""Conditions on the end of a run: the program's variables, and facts of the run."""

import pytest
from sysroot import CHECKOUT

from engine.errors import CommandError
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session.guest.session import Session
from engine.session.headless.end_conditions import EndCondition
from engine.session.protocol.config import GuestConfig

FACTS = (3, 0, 1000, 7)


@pytest.fixture(scope="module")
def ended() -> Session:
    """The sample `structs`, run to its end."""
    sink = SinkStream(lambda data: None)
    config = GuestConfig(guest=str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
    session = Session(config, (FeedStream(b"", ended=True), sink, sink))
    session.run()
    return session


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("$_exitcode == 3 && $_clock == 1000 && $_switches == 7 && !$_exitsignal", ""),
        ("$_exitcode == 0", None),
        ("exit == 3 && clock > 999 && switches == 7 && signal == 0", ""),
        ("exit == 0 || signal", None),
        ("ada.manager == &alan && ada.manager->manager->age == 61", ""),
        ("ada.balance == -36", None),
        ("sizeof(struct person) > 8", ""),
        ("grace.manager->age == 1", "cannot access memory"),
    ],
)
def test_conditions(ended: Session, text: str, met: str | None) -> None:
    found = EndCondition(text).met(ended, FACTS)
    assert (found is None) == (met is None)
    assert (met or "") in (found or "")


@pytest.mark.parametrize("text", ["", "nosuch", "ada.nosuch", "ada.age = 3"])
def test_what_means_nothing(ended: Session, text: str) -> None:
    with pytest.raises(CommandError, match=r"^--stop-if "):
        EndCondition(text).met(ended, FACTS)
