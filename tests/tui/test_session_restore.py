"""What is remembered of a program."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as checked
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.session.protocol.commands import SavedStop
from engine.session.protocol.probes import EventTexts, ProbeRow
from tui.session_restore import ProgramMemory, load_bars, save_bars

TEXT = st.text(max_size=20)
RULES = st.builds(EventTexts, TEXT, st.lists(TEXT, max_size=3).map(tuple))
PROBES = st.builds(
    ProbeRow, st.just(0), st.just("p"), TEXT, st.booleans(), st.booleans(), RULES
) | st.builds(ProbeRow, st.just(0), st.just("b"), TEXT, st.booleans(), st.just(True), RULES)
STOPS = st.builds(
    SavedStop,
    st.lists(st.integers(0, 9), max_size=3).map(tuple),
    TEXT,
    st.booleans(),
    st.booleans(),
    TEXT,
    st.integers(0, 1 << 40),
    st.lists(TEXT, max_size=3).map(tuple),
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KPROBE_TUI_STATE", str(tmp_path / "state"))
    path = tmp_path / "folder" / "config.toml"
    monkeypatch.setenv("KPROBE_TUI_CONFIG", str(path))
    return path


@given(
    probes=st.lists(PROBES, max_size=5).map(tuple),
    stops=st.lists(STOPS, max_size=5).map(tuple),
    turns=st.lists(TEXT, max_size=3).map(tuple),
    histories=st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3),
)
@checked(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_is_remembered_comes_back(
    file: Path,
    probes: tuple[ProbeRow, ...],
    stops: tuple[SavedStop, ...],
    turns: tuple[str, ...],
    histories: dict[str, list[str]],
) -> None:
    probes = tuple(replace(row, id=number) for number, row in enumerate(probes, 1))
    memory = ProgramMemory(probes, stops, turns, histories)
    memory.save("ab/../12")  # a build-id is never a path
    troubles: list[str] = []
    assert ProgramMemory.load("ab/../12", troubles) == memory
    assert ProgramMemory.load("another", troubles) == ProgramMemory()
    assert not troubles
    assert len(list((file.parent.parent / "state").rglob("*"))) == 2


def test_the_form_of_a_remembered_probe_stays(file: Path) -> None:
    row = ProbeRow(7, "p", "p:demo/a main", False, True, EventTexts("x > 1", ("stacktrace",)))
    ProgramMemory(probes=(row,)).save("ab12")
    saved = next((file.parent.parent / "state").rglob("*.json"))
    assert json.loads(saved.read_text())["probes"] == [
        {
            "kind": "p",
            "line": "p:demo/a main",
            "enabled": False,
            "stops": True,
            "filter": "x > 1",
            "triggers": ["stacktrace"],
        }
    ]
    # Files of earlier versions have no rules.
    old = {"kind": "b", "line": "main", "enabled": True, "stops": False}
    memory = {"probes": [old], "stops": [], "turns": [], "histories": {}}
    saved.write_text(json.dumps(memory))
    assert ProgramMemory.load("ab12", []).probes == (ProbeRow(1, "b", "main", stops=True),)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"probes": [{}], "turns": 1}', "null"])
def test_what_is_damaged_is_nothing(file: Path, text: str) -> None:
    ProgramMemory().save("ab12")
    saved = next((file.parent.parent / "state").rglob("*.json"))
    assert set(json.loads(saved.read_text())) == {
        "probes",
        "stops",
        "turns",
        "histories",
    }
    saved.write_text(text)
    troubles: list[str] = []
    assert ProgramMemory.load("ab12", troubles) == ProgramMemory()
    assert troubles == [f"{saved}: it is damaged; nothing is placed again"]


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"columns": "wide"}', '{"columns": 1e999}', "[" * 100_000]
)
def test_damaged_bars_are_where_they_were_at_first(file: Path, text: str) -> None:
    troubles: list[str] = []
    assert load_bars(troubles) == {}
    assert not troubles
    save_bars({"columns": 70})
    assert load_bars(troubles) == {"columns": 70}
    saved = file.parent.parent / "state" / "layout.json"
    saved.write_text(text)
    assert load_bars(troubles) == {}
    assert troubles == [f"{saved}: it is damaged; panes are as at first"]
