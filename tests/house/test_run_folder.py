"""The folder of a run: what workers share, and what is left of a run that was killed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import runfolder
from runfolder import RunFolder, run_folder

KILLED = (
    "import os, runfolder; print(runfolder.RunFolder().path, flush=True); os.kill(os.getpid(), 9)"
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not among the folders of this run; the variable is put back."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(runfolder, "_YOUNG", -1.0)
    monkeypatch.setenv("KPROBE_TUI_RUN_FOLDER", "")


def test_it_goes_with_its_run(tmp_path: Path) -> None:
    folder = RunFolder()
    assert run_folder("guests") == run_folder("guests") == folder.path / "guests"
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    paths = [str(Path(runfolder.__file__).parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    left = Path(done.stdout.strip())
    assert left.parent == tmp_path
    assert left.is_dir()
    first = RunFolder()
    second = RunFolder()
    assert {*tmp_path.iterdir()} == {first.path, second.path}
    second.remove()
    first.remove()


def test_what_tests_build_is_in_the_folder_of_the_run() -> None:
    """A folder of one's own in /tmp stays there for ever: hypothesis's is removed by its test."""
    own = {"runfolder.py", "test_differential.py"}
    makers = {
        path.name
        for path in Path(__file__).parents[1].rglob("*.py")
        if path != Path(__file__) and "mkdtemp(" in path.read_text()
    }
    assert makers == own
