"""Words that values of options may be made of, for a shell that completes them."""

from typing import Final

from engine.session.tracing import call_choice
from engine.trace.formats import ftracemore, function, graph
from engine.trace.functiontimes import FIELDS, POLICIES, sort_keys
from engine.trace.strace import completing
from engine.trace.strace.counts import COLUMNS, SORTS

CALL_KEYS: Final = call_choice.NAMES
"""Keys of strace's -e."""


def report_fields() -> list[str]:
    """The fields of a report of functions."""
    return [*FIELDS, "all"]


def report_keys() -> list[str]:
    """The sort keys of reports of functions and of threads."""
    return [*sort_keys(), "tid", "name"]


def report_policies() -> list[str]:
    """The ways in which two reports are compared."""
    return list(POLICIES)


def table_orders() -> list[str]:
    """The orders of strace's table."""
    return list(SORTS)


def table_columns() -> list[str]:
    """The columns of strace's table."""
    return list(COLUMNS)


def text_options(*, of_graph: bool) -> list[str]:
    """Trace options of tracefs for the text of a tracer, and the same with `no`."""
    known = (*graph.OPTIONS, *function.OPTIONS) if of_graph else ftracemore.OPTIONS
    return [f"{no}{name}" for no in ("", "no") for name in sorted(known)]


def call_expressions(typed: str) -> list[str]:
    """Expressions of strace's -e that begin so."""
    head, sign, rest = typed.partition("=")
    if not sign:
        keys = [f"{key}=" for key in call_choice.NAMES if typed and key.startswith(typed)]
        return [*keys, *completing.set_words(typed)]
    match call_choice.key_of(head):
        case "signal":
            found = completing.signal_words(rest)
        case "status":
            found = completing.list_words(rest, call_choice.STATUSES)
        case "quiet":
            found = completing.list_words(rest, call_choice.QUIET)
        case "inject" | "fault" as key:
            found = completing.injection_words(rest, fault=key == "fault")
        case "" | "read" | "write":
            found = []
        case _:
            found = completing.set_words(rest)
    return [f"{head}={word}" for word in found]
