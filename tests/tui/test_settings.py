"""The file of settings, and what is remembered of a program."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as checked
from hypothesis import strategies as st

from engine.errors import CommandError
from engine.session.protocol.commands import SavedProbe
from tui.keymap import ACTIONS
from tui.settings import Memory, Settings, load_settings, template, write_template

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


def test_the_file_to_begin_with_changes_nothing_and_names_every_action(file: Path) -> None:
    assert load_settings() == Settings()
    assert write_template() == file
    assert load_settings() == Settings()
    switched_on = "\n".join(line.removeprefix("# ") for line in template().split("\n")[2:])
    data = tomllib.loads(switched_on)
    assert data["keys"] == {action.id: action.keys for action in ACTIONS}
    file.write_text(switched_on)
    assert load_settings().theme == "textual-light"
    with pytest.raises(CommandError, match="there already"):
        write_template()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("theme = 3", "theme is a text"),
        ('ascii = "yes"', "true or false"),
        ("[keys]\ngo_on = 1", "table of texts"),
        ('keys = "c"', "table of texts"),
        ('[keys]\nnosuch = "c"', "no such action: nosuch"),
        ("colour = 1", "no such setting: colour"),
        ("theme = ", "Invalid"),
    ],
)
def test_what_is_wrong_in_it_is_said_with_its_name(file: Path, text: str, said: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(CommandError, match=said) as caught:
        load_settings()
    assert str(file) in str(caught.value)


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
    memory = Memory(probes, turns, histories)
    memory.save("ab/../12")  # a build-id is never a path
    assert Memory.load("ab/../12") == memory
    assert Memory.load("another") == Memory()
    assert len(list((file.parent.parent / "state").rglob("*"))) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"probes": [{}], "turns": 1}', "null"])
def test_what_is_damaged_is_nothing(file: Path, text: str) -> None:
    Memory().save("ab12")
    saved = next((file.parent.parent / "state").rglob("*.json"))
    assert set(json.loads(saved.read_text())) == {"probes", "turns", "histories"}
    saved.write_text(text)
    assert Memory.load("ab12") == Memory()
