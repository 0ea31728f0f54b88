"""Words that values of options are made of: single ones, lists with commas, strace's sets."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from engine.session.headless import option_words

Fitting = Callable[[str], Iterable[str]]


def _one_of(names: Callable[[], Iterable[str]]) -> Fitting:
    return lambda typed: [name for name in names() if name.startswith(typed)]


def _list_of(names: Callable[[], Iterable[str]]) -> Fitting:
    def fitting(typed: str) -> list[str]:
        head, comma, last = typed.rpartition(",")
        return [f"{head}{comma}{name}" for name in names() if name.startswith(last)]

    return fitting


def _set_of(key: str) -> Fitting:
    """Complete the value of strace's --KEY=SET."""

    def fitting(typed: str) -> list[str]:
        found = option_words.call_expressions(f"{key}={typed}")
        return [word.partition("=")[2] for word in found]

    return fitting


VALUES: Final[Mapping[tuple[str, str], Fitting]] = {
    ("graph", "sort"): _list_of(option_words.report_keys),
    ("graph", "fields"): _list_of(option_words.report_fields),
    ("graph", "policy"): _list_of(option_words.report_policies),
    ("graph", "text_options"): _one_of(partial(option_words.text_options, of_graph=True)),
    ("strace", "sort"): _one_of(option_words.table_orders),
    ("strace", "table_columns"): _list_of(option_words.table_columns),
    ("strace", "expressions"): option_words.call_expressions,
    **{("strace", f"spelled_{key}"): _set_of(key) for key in option_words.CALL_KEYS},
}
"""Finders of words, by the names of the command and of its parameter."""
EVERYWHERE: Final[Mapping[str, Fitting]] = {
    "text_options": _one_of(partial(option_words.text_options, of_graph=False)),
}
"""The same by the parameter's name alone."""
