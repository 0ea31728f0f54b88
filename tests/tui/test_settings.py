"""The file of settings."""

import tomllib
from pathlib import Path

import pytest

from engine.errors import CommandError
from tui.keymap import ACTIONS
from tui.settings import Settings, load_settings, template, write_template


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
        ('[keys]\nrestart = "c"', "the key c is given to restart and to "),
        ('[keys]\nrestart = "f9"\nplay = "f10, f9"', "f9 is given to"),
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
