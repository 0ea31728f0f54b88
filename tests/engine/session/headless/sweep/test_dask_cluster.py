"""The executor of a Dask cluster: files travel, lost workers' cells run elsewhere, each once."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import duckquery
import pytest
from distributed.comm.core import CommClosedError

from engine.cli import main
from engine.errors import CommandError
from engine.session.headless.sweep import dask_cluster
from engine.session.headless.sweep.cells import CellOutcome, CellStatus, CellWork
from engine.session.headless.sweep.dask_cluster import carried_out
from engine.session.headless.sweep.executors import executor
from engine.session.headless.sweep.scheduler_access import scheduler_access
from engine.session.headless.sweep.warm_worker import WorkerLostError
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import CheckRequest

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


def contents(folder: Path) -> list[str]:
    """The contents below the folder of a worker, whose cells' folders come and go meanwhile."""
    found = (names for at, _, names in os.walk(folder) if os.path.basename(at) == "contents")
    return [name for names in found for name in names]


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
    with subprocess.Popen(
        [sys.executable, "-m", "tui", "sweep", "--scheduler", address, "-o", "far", "s.toml"],
        stdout=subprocess.PIPE,
    ) as process:
        results = here / "far" / "results"
        while not results.exists() or len(os.listdir(results)) < 10:
            assert process.poll() is None
            time.sleep(0.02)
        copies = [contents(tmp_path / name) for name in ("one", "two")]
        workers[0].send_signal(signal.SIGKILL)
        out, _ = process.communicate()
    assert process.returncode == 1
    assert out.startswith(b"40 cells: ")
    # The guest was at each worker, once, and is not any more where the sweep could tell them.
    assert [len(each) for each in copies] == [1, 1]
    assert contents(tmp_path / "two") == []
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


class FakeClient:
    """A cluster with a worker; `versions` and `failures` are what comes from it."""

    versions: ClassVar[dict[str, object]] = {}
    failures: ClassVar[int] = 0
    loop: ClassVar[object] = None

    def __init__(self, address: str, **named: object) -> None:
        self.plugins: list[str] = []

    def wait_for_workers(self, count: int, timeout: float) -> None:
        pass

    def run(self, function: Callable[[], str], *, on_error: str) -> dict[str, object]:
        assert on_error == "return"
        return self.versions or {"tcp://w": function()}

    def register_plugin(self, plugin: dask_cluster.ContentPlugin) -> None:
        self.plugins.append(plugin.name)
        if len(self.plugins) <= self.failures:
            raise closed_error("worker died")

    def nthreads(self) -> dict[str, int]:
        raise closed_error("in nthreads")

    def close(self, timeout: float = 0) -> None:
        pass


def closed_error(why: str) -> Exception:
    found: Exception = CommClosedError(why)
    assert isinstance(found, OSError)
    return found


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(dask_cluster, "Client", FakeClient)
    return monkeypatch


@pytest.mark.parametrize("its", ["0.0.1", ModuleNotFoundError("No module named 'engine'")])
def test_workers_of_another_version_are_refused(its: object, fake: pytest.MonkeyPatch) -> None:
    fake.setattr(FakeClient, "versions", {"tcp://w": its})
    with pytest.raises(
        CommandError, match=r"its worker tcp://w cannot do our work: .*(0\.0|'eng)"
    ):
        executor(1, scheduler_access("localhost:1"))


def test_a_plugin_that_fails_is_sent_under_another_name(fake: pytest.MonkeyPatch) -> None:
    fake.setattr(FakeClient, "failures", 2)
    client: Any = dask_cluster.DaskCluster(scheduler_access("localhost:1"))._client
    plugins = client.plugins
    assert len(plugins) == len(set(plugins)) == 3


def test_a_scheduler_that_is_gone_is_one_message(fake: pytest.MonkeyPatch) -> None:
    cluster = dask_cluster.DaskCluster(scheduler_access("localhost:1"))
    fake.setattr(dask_cluster, "as_completed", lambda loop: None)
    with pytest.raises(CommandError, match="the scheduler is gone: in nthreads; the same line"):
        list(cluster.outcomes(iter(())))


class StuckWorker:
    """A worker that waits until it is killed."""

    def __init__(self) -> None:
        self.begun, self.killed, self.closed = (threading.Event() for _ in range(3))
        made.append(self)

    def begin(self, work: CellWork) -> None:
        self.begun.set()

    def outcome(self) -> CellOutcome:
        assert self.killed.wait(60)
        raise WorkerLostError

    def kill(self) -> None:
        self.killed.set()

    def close(self) -> None:
        self.closed.set()


made: list[StuckWorker] = []


def test_a_sweep_that_is_over_leaves_no_run_at_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "WarmWorker", StuckWorker)
    worker = SimpleNamespace(local_directory=str(tmp_path))
    monkeypatch.setattr(dask_cluster, "get_worker", lambda: worker)
    request = CheckRequest(GuestConfig("/none", ()))
    work = CellWork("ab", request, ".", None, None, None, True, "")
    made.clear()
    with ThreadPoolExecutor(2) as threads:
        mine, other = (threads.submit(carried_out, work, name) for name in ("mine", "other"))
        while len(made) < 2:
            time.sleep(0.001)
        assert all(each.begun.wait(60) for each in made)
        dask_cluster.ContentPlugin("mine", 0, {}).teardown(worker)
        assert mine.result(60)[0].status is CellStatus.CRASHED
        assert not other.done()
        assert carried_out(work, "mine")[0].facts.reason == "its sweep is over"
        dask_cluster.ContentPlugin("other", 0, {}).teardown(worker)
        assert other.result(60)[0].status is CellStatus.CRASHED
    assert len(made) == 2
    assert all(each.closed.is_set() for each in made)


def test_an_error_at_a_worker_is_none_of_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    worker = SimpleNamespace(local_directory=str(tmp_path / "file"))
    monkeypatch.setattr(dask_cluster, "get_worker", lambda: worker)
    request = CheckRequest(GuestConfig("/none", ()))
    outcome, _ = carried_out(CellWork("ab", request, ".", None, None, None, True, ""), "s")
    assert outcome.status is CellStatus.ENGINE
    assert "Not a directory" in outcome.facts.reason
    assert outcome.facts.message[0].startswith("at ")


@pytest.mark.slow
def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(CommandError, match=r"--scheduler tcp://127\.0\.0\.1:1: it cannot be rea"):
        executor(1, scheduler_access("tcp://127.0.0.1:1"))
    with pytest.raises(CommandError, match=r"--scheduler no//such: it cannot be reached"):
        executor(1, scheduler_access("no//such", insecure=True))
