"""The terminal as the environment describes it: its letters, its background, its abilities."""

from collections.abc import Mapping
from typing import Final

_PLAIN: Final = ("C", "POSIX")
_LIGHT: Final = ("7", "15")
_INITIAL: Final = "/proc/self/environ"


def initial_environment() -> dict[str, str]:
    """The environment that the process was given; Python sets LC_CTYPE in its own (PEP 538)."""
    try:
        with open(_INITIAL, "rb") as file:
            pairs = file.read().split(b"\0")
    except OSError:
        return {}
    found = (pair.decode(errors="replace").partition("=") for pair in pairs if pair)
    return {name: value for name, _, value in found}


def has_only_ascii(environment: Mapping[str, str]) -> bool:
    """True if the locale has no letters beyond ASCII, or an encoding other than UTF-8.

    Where no locale is named, as in a bare container, terminals draw UTF-8 all the same.
    """
    names = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "")
    if not locale:
        return False
    _, dot, charset = locale.partition("@")[0].partition(".")
    if locale in _PLAIN:
        return True
    return bool(dot) and charset.lower().replace("-", "") != "utf8"


def has_light_background(environment: Mapping[str, str]) -> bool:
    """True if COLORFGBG, which rxvt, Konsole and others set, names a light background."""
    parts = environment.get("COLORFGBG", "").split(";")
    return len(parts) > 1 and parts[-1] in _LIGHT


def moves_cursor(environment: Mapping[str, str]) -> bool:
    """True if the terminal can be drawn on: its type is none that only prints lines."""
    return environment.get("TERM", "") not in ("dumb", "unknown")
