"""TOML of a file that anybody may have written: one kind of error, and memory in bounds."""

from typing import Any, Final

_DOTS_MOST: Final = 1000
"""Dots of a line. Python's reader takes memory by the square of those in a key."""


class TomlError(ValueError):
    """A text is no TOML, or none that can be read."""


def read_toml(text: str) -> dict[str, Any]:
    """The table at the top of a text.

    Raises:
        TomlError: it is no TOML.
    """
    import tomllib  # few users have settings

    if text.count(".") > _DOTS_MOST:
        for number, line in enumerate(text.splitlines(), 1):
            if line.count(".") > _DOTS_MOST:
                raise TomlError(f"line {number} has more than {_DOTS_MOST} dots")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TomlError("nested too deeply to be read") from error
    except (ValueError, OverflowError) as error:  # of numbers with thousands of digits, too
        raise TomlError(f"not TOML: {error}") from error
