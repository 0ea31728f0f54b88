"""Options of a sweep's cells: those of their subcommands, which parse them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click
from msgspec import Struct

from engine.cli.sweep_cells import MODES
from engine.cli.sweep_file import SweepFile, spelled

_OWN: Final = frozenset(
    (
        *("o", "output", "format", "instance", "list", "describe", "list-as", "record-schedule"),
        *("debug", "color", "json", "summary", "help", "timeout", "buffer", "overwrite", "live"),
        "bpftrace",
    )
)
"""Options that are the sweep's care."""
_PATHS: Final = ("handlers", "printers", "schedule", "root", "shares")
_CPUS: Final = ("golden", "host")
_INSTEAD: Final = {
    "timeout": "limits.seconds says how long a cell may take",
    "o": "output, at the top, says where the data set is",
    "output": "output, at the top, says where the data set is",
    "format": "events are kept as Parquet; tables = false keeps none",
    "buffer": "events are written as they come",
    "bpftrace": "a script prints text, and a sweep keeps tables; histograms are triggers",
}


class ModeOption(Struct, frozen=True):
    """An option with a value.

    Attributes:
        words: of the command line, for each mode that has the option.
        label: the value as text.
    """

    words: dict[str, tuple[str, ...]]
    label: str


class SweepOptions:
    """Makes words of a command line of what a file says."""

    def __init__(self, file: SweepFile) -> None:
        """For the options in a file."""
        self._file = file

    def _option(self, mode: str, name: str) -> click.Option | None:
        """An option of a subcommand."""
        spelled = name.replace("_", "-")
        for parameter in MODES[mode][0].params:
            plain = {each.lstrip("-") for each in parameter.opts}
            if isinstance(parameter, click.Option) and spelled in plain:
                return parameter
        return None

    def choice(self, key: str, name: str, value: object, modes: Sequence[str]) -> ModeOption:
        """An option with a value, for those modes that have it.

        Args:
            key: of the file, for errors.
            name: of the option, without dashes.
            value: as the file has it.
            modes: subcommands.

        Raises:
            SweepFileError: no mode has it, or the value is none.
        """
        if name.replace("_", "-") in _OWN:
            raise self._file.error(key, _INSTEAD.get(name, "this is the sweep's own care"))
        words: dict[str, tuple[str, ...]] = {}
        label = ""
        for mode in modes:
            option = self._option(mode, name)
            if option is None:
                continue
            values = value if isinstance(value, list) and option.multiple else [value]
            label = ", ".join(map(spelled, values))
            words[mode] = tuple(self._words(key, option, values))
            self._parsed(key, mode, words[mode])
        if not words:
            known = sorted(
                {
                    opts.lstrip("-")
                    for mode in modes
                    for parameter in MODES[mode][0].params
                    for opts in parameter.opts[:1]
                    if opts.startswith("-")
                }
                - _OWN
            )
            raise self._file.error(
                key, f"no such option of {' or '.join(modes)}; there is {', '.join(known)}"
            )
        return ModeOption(words, label)

    def _words(self, key: str, option: click.Option, values: list[Any]) -> Iterator[str]:
        name = max(option.opts, key=len)
        for value in values:
            if option.is_flag:
                if not isinstance(value, bool):
                    raise self._file.error(key, "true or false is wanted")
                if value:
                    yield name
                continue
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self._file.error(key, f"{value!r} is neither text nor a number")
            text = self._from_here(option, str(value))
            yield from (f"{name}={text}",) if name.startswith("--") else (name, text)

    def _from_here(self, option: click.Option, text: str) -> str:
        """A value with its path from the current directory, if it has one."""
        if option.name == "definitions":
            return f"@{self._file.beside(text[1:])}" if text[:1] == "@" else text
        named = option.name == "cpu" and text not in _CPUS
        if named or option.name in _PATHS or isinstance(option.type, click.Path):
            return self._file.beside(text)
        return text

    def _parsed(self, key: str, mode: str, words: Sequence[str]) -> None:
        """Have a subcommand look at options by themselves."""
        try:
            MODES[mode][0].make_context(mode, [*words, "--", "guest"])
        except click.ClickException as error:
            raise self._file.error(key, error.format_message()) from error

    def common(self, modes: list[str]) -> dict[str, list[str]]:
        """Words of the options that all cells of a mode have."""
        found: dict[str, list[str]] = {mode: [] for mode in modes}
        for name, value in self._file.table("options").items():
            if isinstance(value, dict):
                if name not in MODES:
                    raise self._file.error(f"options.{name}", f"none of {', '.join(MODES)}")
                for mine, its in value.items():
                    key = f"options.{name}.{mine}"
                    choice = self.choice(key, mine, its, (name,))
                    if name in found:
                        found[name] += choice.words[name]
                continue
            choice = self.choice(f"options.{name}", name, value, modes)
            for mode, words in choice.words.items():
                found[mode] += words
        return found
