"""Findings of placement rules."""

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]


class Finding(Struct, frozen=True):
    """Something about a place that a user should know.

    Attributes:
        rule: id of the rule.
        severity: "error", "warning" or "info".
        message: in words, with the instruction that would suffer.
        nearest: address of the nearest good place, None if there is none or no need.
        errno: name of the error with which the kernel refuses the place for this reason; ""
            where it accepts it.
    """

    rule: str
    severity: Severity
    message: str
    nearest: int | None = None
    errno: str = ""
