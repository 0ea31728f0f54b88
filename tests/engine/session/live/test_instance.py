"""Instances and events of ours in a tracefs that is made of plain files."""

import fcntl
import os
from pathlib import Path

import pytest

from engine.session.live import instance
from engine.session.live.instance import PREFIX, own_instance, remove_abandoned
from engine.session.live.tracefs import LiveKernelError, Tracefs


@pytest.fixture
def tracefs(tmp_path: Path) -> Tracefs:
    (tmp_path / "instances").mkdir()
    (tmp_path / "uprobe_events").write_text("")
    return Tracefs(tmp_path)


def written(tracefs: Tracefs) -> list[str]:
    return (tracefs.root / "uprobe_events").read_text().splitlines()


def test_an_instance_is_there_as_long_as_it_is_used(tracefs: Tracefs) -> None:
    with own_instance(tracefs) as mine:
        assert mine.path.is_dir()
        assert mine.name.startswith(f"{PREFIX}{os.getpid()}_")
        assert mine.group(3) == f"{mine.name}_3"
        assert remove_abandoned(tracefs) == []  # it is locked
        with own_instance(tracefs) as other:
            assert other.name != mine.name
        assert mine.path.is_dir()
    assert os.listdir(tracefs.root / "instances") == []


def test_what_was_left_behind_goes_with_the_next_start(tracefs: Tracefs) -> None:
    left = f"{PREFIX}7_abcdef"
    (tracefs.root / "instances" / left).mkdir()
    (tracefs.root / "instances" / "somebodys").mkdir()
    lines = f"p:{left}_0/e /bin/sh:0x10\nr:{left}_1/f /bin/sh:0x20\np:{left}x/g /bin/sh:0x30\n"
    (tracefs.root / "uprobe_events").write_text(lines)
    with own_instance(tracefs):
        assert sorted(os.listdir(tracefs.root / "instances"))[-1] == "somebodys"
        assert not (tracefs.root / "instances" / left).exists()
    # The file of a real kernel would not show them any longer.
    assert written(tracefs)[3:] == [f"-:{left}_0/e", f"-:{left}_1/f"]


def test_what_a_living_one_has_stays(tracefs: Tracefs) -> None:
    path = tracefs.root / "instances" / f"{PREFIX}7_abcdef"
    path.mkdir()
    owner = os.open(path, os.O_RDONLY)
    fcntl.flock(owner, fcntl.LOCK_EX)
    assert remove_abandoned(tracefs) == []
    os.close(owner)
    assert remove_abandoned(tracefs) == [path.name]


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def append(path: Path, text: str) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(instance, "append", append)


def use(tracefs: Tracefs, end: LiveKernelError | None = None) -> None:
    with own_instance(tracefs) as mine:
        line = f"p:{mine.group(0)}/e /bin/sh:0x10\n"
        (tracefs.root / "uprobe_events").write_text(line)
        if end is not None:
            raise end


@pytest.mark.usefixtures("busy")
def test_events_that_somebody_uses_are_named_at_the_end(tracefs: Tracefs) -> None:
    with pytest.raises(LiveKernelError, match=r"_0/e \(Device or resource busy\)"):
        use(tracefs)


@pytest.mark.usefixtures("busy")
def test_they_hide_no_other_error(tracefs: Tracefs) -> None:
    with pytest.raises(LiveKernelError, match="the first reason"):
        use(tracefs, LiveKernelError("the first reason"))


@pytest.mark.usefixtures("busy")
def test_they_hinder_no_other_start(tracefs: Tracefs) -> None:
    left = f"{PREFIX}7_abcdef"
    (tracefs.root / "instances" / left).mkdir()
    (tracefs.root / "uprobe_events").write_text(f"p:{left}_0/e /bin/sh:0x10\n")
    assert remove_abandoned(tracefs) == []
    with own_instance(tracefs) as mine:
        assert mine.name != left


def test_a_kernel_that_makes_no_instance(tmp_path: Path) -> None:
    with pytest.raises(LiveKernelError, match="cannot be read"), own_instance(Tracefs(tmp_path)):
        pass
