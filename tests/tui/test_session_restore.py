"""What is remembered of a program."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as checked
from hypothesis import strategies as st

from engine.session.protocol.commands import SavedProbe
from tui.session_restore import ProgramMemory

TEXT = st.text(max_size=20)
PROBES = st.builds(
    SavedProbe,
    st.sampled_from("prb"),
    TEXT,
    st.booleans(),
    st.booleans(),
    TEXT,
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
    turns=st.tuples(TEXT, TEXT),
    histories=st.dictionaries(TEXT, st.lists(TEXT, max_size=3), max_size=3),
)
@checked(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_is_remembered_comes_back(
    file: Path,
    probes: tuple[SavedProbe, ...],
    turns: tuple[str, str],
    histories: dict[str, list[str]],
) -> None:
    memory = ProgramMemory(probes, turns, histories)
    memory.save("ab/../12")  # a build-id is never a path
    assert ProgramMemory.load("ab/../12") == memory
    assert ProgramMemory.load("another") == ProgramMemory()
    assert len(list((file.parent.parent / "state").rglob("*"))) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"probes": [{}], "turns": 1}', "null"])
def test_what_is_damaged_is_nothing(file: Path, text: str) -> None:
    ProgramMemory().save("ab12")
    saved = next((file.parent.parent / "state").rglob("*.json"))
    assert set(json.loads(saved.read_text())) == {"probes", "turns", "histories"}
    saved.write_text(text)
    assert ProgramMemory.load("ab12") == ProgramMemory()
