"""The running kernel for tests that change it, which leave nothing of ours behind."""

from collections.abc import Iterator

import pytest
from livekit import left

from engine.session.live.instance import remove_abandoned
from engine.session.live.tracefs import Tracefs


@pytest.fixture
def tracefs() -> Iterator[Tracefs]:
    found = Tracefs.found()
    remove_abandoned(found)
    if left(found):
        pytest.skip("somebody else uses live")
    yield found
    remove_abandoned(found)
    assert left(found) == []
