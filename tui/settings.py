"""What a user has set, and what is remembered of each program.

Settings are TOML in the platform's configuration folder and only ever written by the user (or
`kprobe-tui config init`). What was placed, typed and arranged is remembered by build-id in the
platform's state folder.
"""

import json
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import platformdirs

from engine.errors import CommandError
from engine.session.protocol.commands import SavedProbe
from tui.keymap import ACTIONS

_APP: Final = "kprobe-tui"
_HISTORY: Final = 500
_PROBES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file of settings says.

    Attributes:
        theme: name of a theme of Textual, "" for the usual one.
        ascii: draw with ASCII only.
        keys: action id to keys, comma-separated.
    """

    theme: str = ""
    ascii: bool = False
    keys: dict[str, str] = field(default_factory=dict)


def settings_path() -> Path:
    """Where the settings are; KPROBE_TUI_CONFIG names another file."""
    given = os.environ.get("KPROBE_TUI_CONFIG")
    return Path(given) if given else Path(platformdirs.user_config_dir(_APP)) / "config.toml"


def load_settings(path: Path | None = None) -> Settings:
    """Read the settings; the usual ones where there is no file.

    Raises:
        CommandError: the file cannot be read or says something that means nothing.
    """
    path = settings_path() if path is None else path
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
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
    return Settings(theme, ascii_only, dict(keys))


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


@dataclass(slots=True)
class Memory:
    """What is remembered of one program.

    Attributes:
        probes: what was placed.
        turns: panes that were seen where several share a place.
        histories: what was typed, by the kind of prompt.
    """

    probes: tuple[SavedProbe, ...] = ()
    turns: tuple[str, str] | None = None
    histories: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, build_id: str) -> "Memory":
        """What is remembered; nothing where there is nothing, or it cannot be read."""
        try:
            data = json.loads(_memory_path(build_id).read_text(encoding="utf-8"))
            return cls._of(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    @classmethod
    def _of(cls, data: dict[str, Any]) -> "Memory":
        probes = tuple(
            SavedProbe(
                str(p["kind"]),
                str(p["line"]),
                bool(p["enabled"]),
                bool(p["stops"]),
                str(p.get("filter", "")),
                tuple(str(text) for text in p.get("triggers", ())),
            )
            for p in data["probes"][:_PROBES]
        )
        first, second = data["turns"]
        histories = {
            str(kind): [str(line) for line in lines][-_HISTORY:]
            for kind, lines in data["histories"].items()
        }
        return cls(probes, (str(first), str(second)), histories)

    def save(self, build_id: str) -> None:
        """Remember it.

        Raises:
            OSError: it cannot be written.
        """
        path = _memory_path(build_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "probes": [
                {
                    "kind": p.kind,
                    "line": p.line,
                    "enabled": p.enabled,
                    "stops": p.stops,
                    "filter": p.filter,
                    "triggers": list(p.triggers),
                }
                for p in self.probes
            ],
            "turns": list(self.turns or ("", "")),
            "histories": {kind: lines[-_HISTORY:] for kind, lines in self.histories.items()},
        }
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(data, indent=1), encoding="utf-8")
        new.replace(path)  # a crash leaves the old one whole


def _memory_path(build_id: str) -> Path:
    given = os.environ.get("KPROBE_TUI_STATE")
    folder = Path(given) if given else Path(platformdirs.user_state_dir(_APP))
    safe = "".join(c for c in build_id if c.isalnum())[:80] or "unknown"
    return folder / "programs" / f"{safe}.json"
