"""The data set of a sweep: a cell is finished at once, and once."""

import hashlib
import os
from pathlib import Path

import duckquery
import pytest

from engine.errors import CommandError
from engine.session.headless.sweep.cells import CellFacts, CellOutcome, CellStatus, KeptText
from engine.session.headless.sweep.results import ResultSet

KINDS = {"guest": "string", "args": "string[]", "seed": "int64"}
VALUES = {"guest": "a\udcff", "args": ("x", "y\udcfe"), "seed": None}


def outcome(cell: str, status: CellStatus = CellStatus.PASSED, clock: int = 7) -> CellOutcome:
    text = KeptText(b"hi\xff\n", 4, hashlib.sha256(b"hi\xff\n").hexdigest())
    facts = CellFacts(0, "exited with 0", clock=clock, message=("one", "two"))
    return CellOutcome(cell, status, facts, 0.5, 1 << 20, text, text)


def publish(results: ResultSet, cell: str, clock: int = 7) -> bool:
    folder = Path(results.folder(cell))
    (folder / "events").mkdir()
    (folder / "events" / "a_b.parquet").write_text(str(clock))
    return results.publish(outcome(cell, clock=clock), KINDS, VALUES)


def test_a_cell_is_finished_once(tmp_path: Path) -> None:
    results = ResultSet(str(tmp_path / "out"))
    assert publish(results, "0a")
    assert publish(results, "0b", clock=1 << 40)
    assert not publish(results, "0a", clock=9)  # by another worker, later
    assert results.finished == {"0a", "0b"}
    assert (tmp_path / "out/events/cell=0a/a_b.parquet").read_text() == "7"
    found = results.rows(["0b", "0a"], ["clock", "status", "nosuch"])
    assert found == [
        {"clock": 1 << 40, "status": "passed", "nosuch": None},
        {"clock": 7, "status": "passed", "nosuch": None},
    ]
    results.close()
    assert sorted(os.listdir(tmp_path / "out")) == [".lock", "events", "results"]
    answer = duckquery.rows(
        f"select cell, clock, guest, args, seed, message, stdout, stdout_bytes "
        f"from '{tmp_path}/out/results/*/*.parquet' order by cell"
    )
    assert answer == [
        ("0a", 7, "a\\xff", ["x", "y\\xfe"], None, "one\ntwo", "hi\\xff\n", 4),
        ("0b", 1 << 40, "a\\xff", ["x", "y\\xfe"], None, "one\ntwo", "hi\\xff\n", 4),
    ]


def test_what_was_not_finished_is_gone(tmp_path: Path) -> None:
    path = str(tmp_path)
    results = ResultSet(path)
    publish(results, "0a")
    Path(results.folder("0b"), "trace").write_text("half")
    # Killed between two renames: tables without a row.
    (tmp_path / "events" / "cell=0c").mkdir()
    (tmp_path / "events" / "cell=0c" / "old.parquet").touch()
    results.close()
    again = ResultSet(path)
    assert again.finished == {"0a"}
    assert os.listdir(again.folder("0b")) == []
    assert publish(again, "0c")
    assert os.listdir(tmp_path / "events" / "cell=0c") == ["a_b.parquet"]
    again.forget("0a")
    assert again.finished == {"0c"}
    assert os.listdir(tmp_path / "events") == ["cell=0c"]
    again.close()


def test_one_sweep_writes_at_a_time(tmp_path: Path) -> None:
    first = ResultSet(str(tmp_path))
    with pytest.raises(CommandError, match="another sweep writes it"):
        ResultSet(str(tmp_path))
    first.close()
    ResultSet(str(tmp_path)).close()


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(CommandError, match=r"has other files: thesis\.txt; -o DIR"):
        ResultSet(str(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.txt"]
    with pytest.raises(CommandError, match=r"thesis\.txt: the data set cannot be written: "):
        ResultSet(str(tmp_path / "thesis.txt"))


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    results = ResultSet(str(tmp_path))
    publish(results, "0a")
    (tmp_path / "results/cell=0a/cell.parquet").write_text("no")
    with pytest.raises(CommandError, match=r"cell=0a/cell\.parquet: no table of ours"):
        results.rows(["0a"], ["status"])
    results.close()
