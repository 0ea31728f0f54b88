"""The executor of a Dask cluster: files travel, lost workers' cells run elsewhere, each once."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckquery
import pytest

from engine.cli import main
from engine.errors import CommandError
from engine.session.headless.sweep.executors import executor

pytest.importorskip("distributed")
SAMPLES = Path(__file__).parents[5] / "samples" / "bin"

FILE = """
[limits]
seconds = 300
[matrix]
guest = "race"
seed = "0-39"
[matrix.definitions]
counted = ["p:race/add add_one", "r:race/end main lost=$retval:s32"]
[options]
turns = "100-3000"
"""


def swept(*words: str) -> int:
    """Carry out a sweep in this process; its exit code."""

    def interface(*given: Any, **named: Any) -> int:
        raise AssertionError(given, named)

    with contextlib.redirect_stdout(io.StringIO()):
        return main(["sweep", *words], interface)


def started(folder: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
    """A process of Dask's, with its log in a file; it begins where no guest is."""
    home = folder / name
    home.mkdir()
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"], cwd=home, stderr=log
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """The address of a scheduler, and two workers of one thread."""
    scheduler = started(
        tmp_path, "scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show"
    )
    processes = [scheduler]
    try:
        log, found = tmp_path / "scheduler.log", None
        while found is None:
            assert scheduler.poll() is None, log.read_text()
            found = re.search(r"Scheduler at: +(tcp://\S+)", log.read_text())
            time.sleep(0.05)
        for name in ("one", "two"):
            words = "worker", found[1], "--nthreads", "1", "--no-nanny", "--local-directory", "."
            processes.append(started(tmp_path, name, *words))
        yield found[1], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_worker_is_killed_and_every_cell_is_there_once(
    cluster: tuple[str, list["subprocess.Popen[bytes]"]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, workers = cluster
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(SAMPLES / "x86_64" / "race", here)
    (here / "s.toml").write_text(FILE)
    monkeypatch.chdir(here)
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "sweep", "--scheduler", address, "-o", "far", "s.toml"],
        stdout=subprocess.PIPE,
    )
    results = here / "far" / "results"
    while not results.exists() or len(os.listdir(results)) < 10:
        assert process.poll() is None
        time.sleep(0.02)
    copies = [list(tmp_path.glob(f"{name}/**/contents/*")) for name in ("one", "two")]
    workers[0].send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert out.startswith(b"40 cells: ")
    # The guest was at each worker, once, and is not any more where the sweep could tell them.
    assert [len(each) for each in copies] == [1, 1]
    assert list(tmp_path.glob("two/**/contents/*")) == []
    assert swept("-o", "near", "s.toml") == 1
    columns = "cell, status, exit_code, clock, events, lost, stdout, repeat"
    far, near = (
        duckquery.rows(f"select {columns} from '{here}/{name}/results/*/*.parquet' order by cell")
        for name in ("far", "near")
    )
    assert far == near
    assert len(far) == len({row[0] for row in far}) == 40
    far, near = (
        duckquery.rows(f"select * from '{here}/{name}/events/*/race_add.parquet' order by all")
        for name in ("far", "near")
    )
    assert far == near
    assert len(far) == 40 * 200


@pytest.mark.slow
def test_a_file_that_does_not_travel_has_to_be_there(
    cluster: tuple[str, list["subprocess.Popen[bytes]"]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    guest = SAMPLES / "x86_64" / "words"
    (here / "s.toml").write_text(f"[matrix]\nguest = '{guest}'\n[options]\nf = 'main'\n")
    assert swept("--scheduler", cluster[0], "s.toml") == 1
    ((reason, events),) = duckquery.rows(
        "select reason, events from 's.sweep/results/*/*.parquet'"
    )
    assert (reason, events) == ("exited with 21", 1)  # the same machine has it


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(CommandError, match=r"--scheduler tcp://127\.0\.0\.1:1: it cannot be rea"):
        executor(1, "tcp://127.0.0.1:1")
    with pytest.raises(CommandError, match=r"--scheduler no//such: it cannot be reached"):
        executor(1, "no//such")
