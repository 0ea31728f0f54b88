"""The user's settings: TOML in the platform's configuration folder.

Only ever written by the user, or by `kprobe-tui config init`.
"""

import os
from pathlib import Path
from typing import Final

import platformdirs
from msgspec import Struct, field

from engine.errors import CommandError
from engine.tomltext import TomlError, read_toml
from tui.keymap import ACTIONS

_APP: Final = "kprobe-tui"


class Settings(Struct, frozen=True):
    """The settings, as the file has them.

    Attributes:
        theme: name of a theme of Textual, "" for the usual one.
        ascii: draw with ASCII only.
        keys: action id to keys, comma-separated.
    """

    theme: str = ""
    ascii: bool = False
    keys: dict[str, str] = field(default_factory=dict)


def settings_path() -> Path:
    """The file of settings; KPROBE_TUI_CONFIG names another file."""
    given = os.environ.get("KPROBE_TUI_CONFIG")
    return Path(given) if given else Path(platformdirs.user_config_dir(_APP)) / "config.toml"


def state_folder() -> Path:
    """The folder of what is remembered; KPROBE_TUI_STATE names another one."""
    given = os.environ.get("KPROBE_TUI_STATE")
    return Path(given) if given else Path(platformdirs.user_state_dir(_APP))


def load_settings(path: Path | None = None) -> Settings:
    """Read the settings; the usual ones where there is no file.

    Raises:
        CommandError: the file cannot be read or says something that means nothing.
    """
    path = settings_path() if path is None else path
    try:
        data = read_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, TomlError) as error:
        raise CommandError(f"{path}: {error}") from error
    unknown = set(data) - {"theme", "ascii", "keys"}
    if unknown:
        raise CommandError(f"{path}: no such setting: {', '.join(sorted(unknown))}")
    keys = data.get("keys", {})
    theme, ascii_only = data.get("theme", ""), data.get("ascii", False)
    good = isinstance(theme, str) and isinstance(ascii_only, bool) and isinstance(keys, dict)
    if not good or not all(isinstance(value, str) for value in keys.values()):
        raise CommandError(f"{path}: theme is a text, ascii true or false, keys a table of texts")
    known = {action.id for action in ACTIONS}
    if wrong := set(keys) - known:
        raise CommandError(f"{path}: no such action: {', '.join(sorted(wrong))}")
    _check_once(path, keys)
    return Settings(theme, ascii_only, dict(keys))


def _check_once(path: Path, keys: dict[str, str]) -> None:
    """Refuse a key that is given to an action while another one has it.

    Raises:
        CommandError: there is one.
    """
    given: dict[str, str] = {}
    of_action = {action.id: keys.get(action.id, action.keys) for action in ACTIONS}
    for action in sorted(of_action, key=lambda one: one in keys):  # the usual ones first
        for key in (one.strip() for one in of_action[action].split(",")):
            other = given.setdefault(key, action)
            if other != action and action in keys and key:
                raise CommandError(
                    f"{path}: the key {key} is given to {action} and to {other}; give {other}"
                    " another one"
                )


def template() -> str:
    """A file of settings with everything in it, as it is without one."""
    lines = [
        "# Settings of kprobe-tui. What is not set stays as it is.",
        "",
        '# theme = "textual-light"',
        "# ascii = false",
        "",
        "[keys]",
    ]
    lines += [f'# {action.id} = "{action.keys}"  # {action.help}' for action in ACTIONS]
    return "\n".join(lines) + "\n"


def write_template() -> Path:
    """Write that file where there is none; its path.

    Raises:
        CommandError: there is one, or it cannot be written.
    """
    file = settings_path()
    if file.exists():
        raise CommandError(f"{file}: it is there already")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template(), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    return file
