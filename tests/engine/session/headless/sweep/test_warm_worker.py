"""A warm worker keeps the limits of cells, and outlives what happens to them."""

import contextlib
import errno
import gc
import hashlib
import io
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path
from types import FrameType

import pytest
from cguest import compiled_from
from msgspec import Struct, msgpack
from msgspec.structs import replace

from engine.errors import EngineError
from engine.image import ElfImage
from engine.session.headless.sweep import cell_runs, warm_worker
from engine.session.headless.sweep.cells import (
    CellFacts,
    CellOutcome,
    CellRequest,
    CellStatus,
    CellWork,
    KeptText,
)
from engine.session.headless.sweep.warm_worker import WarmWorker, WorkerLostError
from engine.session.headless.traces import opened_trace
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import (
    CheckRequest,
    DiffRequest,
    ExploreRequest,
    ProbeRequest,
    TraceOptions,
    TraceRequest,
)

SAMPLES = Path(__file__).parents[5] / "samples" / "bin" / "x86_64"
DIRTY = Path(__file__).parents[4] / "data" / "traced" / "dirty.c"
PROBES = ProbeRequest(entries=("main",))


class Planted(Struct):
    """Code that unpickling would execute: it makes a directory."""

    path: str

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self.path,)


Carry = Callable[..., CellOutcome]


@contextlib.contextmanager
def running(carry_out: Callable[[CellWork], CellFacts]) -> Iterator[warm_worker._CellRunner]:
    """A runner that is forked from here, and ended at the end of a block."""
    here, there = Pipe()
    gc.freeze()  # what other tests have left behind is none of its
    runner = warm_worker._CellRunner(there, carry_out)
    gc.unfreeze()
    with here, there:
        yield runner
        runner.end()


def config(name: str, *args: str) -> GuestConfig:
    return GuestConfig(str(SAMPLES / name), args)


def trace(name: str, *args: str) -> TraceRequest:
    return TraceRequest(config(name, *args), PROBES)


def work_of(folder: str, stdin: str | None = None) -> CellWork:
    return CellWork("ab", CheckRequest(config("words")), "/", stdin, None, None, True, folder)


ENDLESS = trace("loop", "4000000000")


@pytest.fixture(scope="module")
def worker() -> Iterator[WarmWorker]:
    with contextlib.closing(WarmWorker()) as found:
        yield found


@pytest.fixture
def carry(worker: WarmWorker, tmp_path: Path) -> Carry:
    """Has work done, with tables in `cell`."""

    def begin(
        request: CellRequest,
        stdin: str | None = None,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> CellOutcome:
        (tmp_path / "cell").mkdir()
        worker.begin(
            CellWork(
                "ab", request, str(tmp_path), stdin, seconds, memory, True, str(tmp_path / "cell")
            )
        )
        return worker.outcome()

    return begin


def test_a_traced_run(carry: Carry, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one\ntwo\n")
    found = carry(trace("lines"), stdin="in")
    assert (found.cell, found.status) == ("ab", CellStatus.PASSED), found
    facts = found.facts
    assert (facts.exit_code, facts.events, facts.lost, facts.runs) == (0, 1, 0, 1)
    assert facts.clock > 10
    assert found.stdout.head.endswith(b"2 of 2 lines, longest 3\n")
    assert found.stdout.size == len(found.stdout.head)
    assert found.stdout.sha256 == hashlib.sha256(found.stdout.head).hexdigest()
    assert 20 << 20 < found.peak < 1 << 30
    assert found.seconds > facts.seconds > 0
    assert os.listdir(tmp_path / "cell") == ["events"]
    assert os.listdir(tmp_path / "cell/events") == ["kprobes_p_main_0.parquet"]


def test_the_tables_are_those_of_a_trace_to_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    request = replace(trace("loop", "70000"), probes=ProbeRequest(("p:a/b mix n=%di:u64",)))
    request = replace(request, options=TraceOptions("parquet", str(tmp_path / "trace")))
    with opened_trace(request, io.BytesIO()) as traced:
        assert (tmp_path / "trace.ring.new").exists()
        assert traced.run(lambda session: contextlib.nullcontext()).exit_code == 0
    monkeypatch.setattr("engine.session.tracing.output.RingFile", None)
    (tmp_path / "cell").mkdir()
    facts = cell_runs.CellRuns().carry_out(
        replace(work_of(str(tmp_path / "cell")), request=request)
    )
    table = (tmp_path / "cell/events/a_b.parquet").read_bytes()
    assert facts.events == 70000
    assert table == (tmp_path / "trace").read_bytes()


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_a_cell_finds_nothing_of_the_one_before(arch: str, tmp_path: Path) -> None:
    program = compiled_from(DIRTY, arch)
    events = ("p:t/told told what=+0($arg1):string value=$arg2:s64", "r:t/main main")
    for name in ("here", "other"):
        (tmp_path / name).mkdir()
    request = TraceRequest(GuestConfig(str(program)), ProbeRequest(events))
    seen: list[tuple[CellFacts, KeptText, list[bytes]]] = []
    with running(cell_runs.CellRuns().carry_out) as runner:
        # A diff, whose second run follows its first, and another seed in between.
        varied = replace(request, config=replace(request.config, seed=5))
        both = DiffRequest(request.config, request.probes)
        for number, each in enumerate((request, request, both, varied, request)):
            folder = tmp_path / str(number)
            folder.mkdir()
            work = replace(work_of(str(folder)), request=each, cwd=str(tmp_path / "here"))
            found = runner.outcome(work)
            assert found.status is (CellStatus.PASSED if each is both else CellStatus.FAILED)
            if each is request:
                tables = sorted((folder / "events").iterdir())
                facts = replace(found.facts, seconds=0.0)
                seen.append((facts, found.stdout, [table.read_bytes() for table in tables]))
    assert seen[0][0].events == 19
    assert b"initialised 7\nzeros 0\n" in seen[0][1].head
    assert seen == seen[:1] * 3


def test_a_further_cell_takes_little_work(tmp_path: Path) -> None:
    """Calls of functions in Python are counted: a busy machine does not change their number.

    The ceiling only falls. A worker that kept nothing of the cell before made 9,900 of them.
    """
    runs, calls = cell_runs.CellRuns(), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        work = replace(work_of(str(folder)), request=trace("crash"))
        calls, before = 0, sys.getprofile()
        sys.setprofile(count)
        try:
            facts = runs.carry_out(work)
        finally:
            sys.setprofile(before)
        assert facts.exit_code == 139
    assert 1000 < calls < 8500


def test_damage_is_told_by_each_cell(tmp_path: Path) -> None:
    image = ElfImage.open(SAMPLES / "crash")
    lines = image.section(".debug_line")
    assert lines is not None
    data = bytearray((SAMPLES / "crash").read_bytes())
    data[lines.offset + 4 : lines.offset + 6] = b"\x63\0"  # a version of DWARF that is none
    program = tmp_path / "crash"
    program.write_bytes(data)
    program.chmod(0o755)
    request = replace(trace("crash"), config=GuestConfig(str(program)))
    runs, messages = cell_runs.CellRuns(), []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        facts = runs.carry_out(replace(work_of(str(folder)), request=request))
        messages.append(facts.message)
    assert any(line.startswith("damaged, and left out") for line in messages[0])
    assert messages == messages[:1] * 3


def test_an_end_by_a_signal(carry: Carry) -> None:
    found = carry(trace("crash"))
    assert (found.status, found.facts.exit_code) == (CellStatus.FAILED, 139)
    assert found.facts.reason.startswith("killed by SIGSEGV: read at 0x8")
    assert any("crash.c:" in line for line in found.facts.message)


def test_a_check_a_comparison_and_a_search(carry: Carry, tmp_path: Path) -> None:
    found = carry(CheckRequest(config("words"), ("p:x main", "p:x main+1"), functions=("*",)))
    assert (found.status, found.facts.exit_code, found.facts.runs) == (CellStatus.FAILED, 1, 0)
    assert found.facts.refused == 1
    assert found.facts.places > 5
    (tmp_path / "cell").rename(tmp_path / "first")
    found = carry(DiffRequest(config("words", "a", "b"), PROBES))
    assert (found.status, found.facts.reason) == (CellStatus.PASSED, "no effect")
    assert (found.facts.places, found.facts.events, found.facts.runs) == (1, 1, 2)
    (tmp_path / "cell").rename(tmp_path / "second")
    found = carry(ExploreRequest(config("race"), seeds=5))
    assert (found.status, found.facts.exit_code) == (CellStatus.FAILED, 1)
    assert found.facts.runs >= 2
    assert found.facts.message[0].startswith("seed ")


def test_what_cannot_begin(carry: Carry, tmp_path: Path) -> None:
    bad = TraceRequest(config("words"), ProbeRequest(("p:x nosuch",)))
    found = carry(bad)
    assert (found.status, found.facts.exit_code) == (CellStatus.INVALID, 2)
    assert "error: " in found.facts.reason
    assert "  Command: p:x nosuch" in found.facts.message
    (tmp_path / "cell").rename(tmp_path / "first")
    found = carry(TraceRequest(GuestConfig("/etc/passwd", ()), PROBES))
    assert found.status is CellStatus.INVALID
    assert "/etc/passwd" in found.facts.reason


def test_the_limit_of_time_keeps_what_was_recorded(carry: Carry, tmp_path: Path) -> None:
    found = carry(ENDLESS, seconds=0.3)
    assert (found.status, found.facts.exit_code) == (CellStatus.TIMEOUT, 124), found
    assert found.facts.reason == "stopped by --timeout"
    assert found.facts.clock < 1 << 40
    assert os.listdir(tmp_path / "cell/events") == ["kprobes_p_main_0.parquet"]
    (tmp_path / "cell").rename(tmp_path / "first")
    blocks = TraceRequest(replace(config("loop", "4000000000"), max_blocks=10_000), PROBES)
    found = carry(blocks)
    assert (found.status, found.facts.exit_code) == (CellStatus.TIMEOUT, 124), found
    assert found.facts.reason == "stopped by --max-blocks"


def test_the_limit_of_memory(carry: Carry, tmp_path: Path) -> None:
    found = carry(ENDLESS, memory=20 << 20)
    assert (found.status, found.facts.exit_code) == (CellStatus.MEMORY, 137)
    assert "of 20 MiB of memory" in found.facts.reason
    (tmp_path / "cell").rename(tmp_path / "first")
    found = carry(CheckRequest(config("words")), memory=20 << 20)  # done before anybody looks
    assert (found.status, found.facts.exit_code) == (CellStatus.MEMORY, 137)
    assert found.facts.message == ("what was recorded is dropped",)
    assert os.listdir(tmp_path / "cell") == []


def test_a_defect_is_told_with_its_place(tmp_path: Path) -> None:
    def fail(work: CellWork) -> CellFacts:
        raise ZeroDivisionError("nobody expects it")

    with running(fail) as runner:
        found = runner.outcome(work_of(str(tmp_path)))
    assert (found.status, found.facts.exit_code) == (CellStatus.ENGINE, 125)
    assert found.facts.reason == "the engine failed: ZeroDivisionError('nobody expects it')"
    at, *lines = found.facts.message
    assert at.startswith(f"at {__file__}:")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ZeroDivisionError: nobody expects it"


def test_a_runner_that_fails_says_why(tmp_path: Path) -> None:
    class EndError(BaseException):
        pass

    def fail(work: CellWork) -> CellFacts:
        raise EndError

    with running(fail) as runner:
        found = runner.outcome(work_of(str(tmp_path)))
    assert found.status is CellStatus.CRASHED
    assert found.facts.reason == "the engine's process exited with 1"
    assert b"EndError" in found.stderr.head


def test_a_runner_that_has_grown_is_spent_the_sooner_the_less_a_cell_may_take(
    tmp_path: Path,
) -> None:
    kept = []

    def grow(work: CellWork) -> CellFacts:
        if work.stdin is not None:
            kept.append(b"x" * (48 << 20))
        return CellFacts(0, "")

    with running(grow) as runner:
        runner.outcome(work_of(str(tmp_path)))
        assert not runner.is_spent(256 << 20)
        runner.outcome(work_of(str(tmp_path), "/dev/null"))
        assert [runner.is_spent(most) for most in (None, 1 << 30, 256 << 20)] == [
            *(False, False, True)
        ]


def test_a_table_of_verdicts_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, *given: object) -> None:
        Path(path).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cell_runs, "write_table", full)
    request = CheckRequest(config("words"))
    with pytest.raises(EngineError, match="verdicts cannot be written: No space left"):
        cell_runs.CellRuns().carry_out(
            CellWork("ab", request, "/", None, None, None, True, str(tmp_path))
        )
    assert not (tmp_path / "verdicts").exists()


def children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(word) for word in file.read().split()]


def test_a_process_that_dies_is_replaced(worker: WarmWorker, carry: Carry, tmp_path: Path) -> None:
    assert carry(trace("words", "a")).status is CellStatus.FAILED
    (tmp_path / "cell").rename(tmp_path / "first")
    (runner,) = children(worker.process_id)
    (tmp_path / "cell").mkdir()
    work = CellWork("ab", ENDLESS, "/", None, None, None, True, str(tmp_path / "cell"))
    worker.begin(work)
    while not os.listdir(tmp_path / "cell"):  # it has begun
        assert not worker.pipe.poll(0.01)
    os.kill(runner, signal.SIGSEGV)
    found = worker.outcome()
    assert (found.status, found.facts.exit_code) == (CellStatus.CRASHED, 125)
    assert found.facts.reason == "the engine's process was killed by SIGSEGV"
    (tmp_path / "cell").rename(tmp_path / "second")
    assert carry(trace("words", "a")).facts.exit_code == 21


@pytest.mark.slow
def test_nobody_is_left_behind(tmp_path: Path) -> None:
    worker = WarmWorker()
    work = CellWork("ab", ENDLESS, "/", None, None, None, True, str(tmp_path))
    worker.begin(work)
    while not os.listdir(tmp_path):
        assert not worker.pipe.poll(0.01)
    (runner,) = children(worker.process_id)
    os.kill(worker.process_id, signal.SIGKILL)
    with pytest.raises(WorkerLostError):
        worker.outcome()
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{runner}/exe"):  # it is nobody's child of ours
        assert time.monotonic() < end
    worker.close()
    with pytest.raises(WorkerLostError):
        worker.begin(work)


@pytest.mark.parametrize(
    "said",
    [
        None,
        *(b"", b"\xc1", b"\x90", msgpack.encode({"status": "passed"})),
        msgpack.encode({"status": "passed", "facts": {"exit_code": "x", "reason": ""}, "peak": 0}),
    ],
)
def test_what_a_runner_says_is_data(said: bytes | None, tmp_path: Path) -> None:
    """The guest is in its process: nothing that comes from there is unpickled."""
    planted = tmp_path / "planted"
    with running(lambda work: CellFacts(0, "")) as runner:
        here, there = Pipe()
        with here, there:
            there.send_bytes(pickle.dumps(Planted(str(planted))) if said is None else said)
            runner._poll.unregister(runner._pipe)
            runner._pipe.close()
            runner._pipe = here
            runner._poll.register(here, select.POLLIN)
            work = CellWork("ab", ENDLESS, "/", None, None, None, True, str(tmp_path))
            assert runner._heard(work, time.monotonic()).status is CellStatus.CRASHED
    assert not planted.exists()


def test_what_a_runner_says_need_not_be_text(tmp_path: Path) -> None:
    facts = CellFacts(2, "file \udcff", message=("\udc80\n", "ok"))
    with running(lambda work: facts) as runner:
        work = CellWork("ab", ENDLESS, "/", None, None, None, True, str(tmp_path))
        found = runner.outcome(work).facts
    assert (found.reason, found.message) == ("file \\xff", ("\\x80\n", "ok"))
