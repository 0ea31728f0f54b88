"""What is asked of a kernel before a recording, in plain files."""

import os
from pathlib import Path

import pytest

from engine.session.live.instance import KernelInstance
from engine.session.live.recording import leave_out_ourselves
from engine.session.live.tracefs import Tracefs


@pytest.mark.parametrize("known", [True, False], ids=["5.7", "5.6"])
def test_everybody_is_recorded_but_the_one_who_records(known: bool, tmp_path: Path) -> None:
    instance = KernelInstance(Tracefs(tmp_path), "mine")
    instance.path.mkdir(parents=True)
    file = instance.path / "set_event_notrace_pid"
    if known:
        file.touch()
    leave_out_ourselves(instance)
    assert file.exists() is known
    if known:
        assert sorted(file.read_text().split()) == sorted(os.listdir("/proc/self/task"))
