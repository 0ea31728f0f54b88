"""The first word of a definition: kind, number of instances, group and name of the event."""

import re
import sys
from typing import Final

from engine.fetch.compile import is_identifier
from engine.fetch.numbers import unsigned
from engine.trace.errors import Command

HEAD: Final = 0
"""Index of the head among the words of a definition."""

MAX_EVENT: Final = 63
"""Characters of an event's name, and of its group's."""

_MAX_ACTIVE = 4096
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DIGITS = frozenset("0123456789")


def read_maxactive(head: str, colon: int, command: Command) -> int:
    """The number of instances of a head, 0 where none is given; `colon` is -1 for none.

    Raises:
        ProbeSyntaxError: with the kernel's error.
    """
    digits = head[1:] if colon < 0 else head[1:colon]
    if digits[:1] not in _DIGITS:
        return 0
    if not head.startswith("r"):
        raise command.error("BAD_MAXACT_TYPE", HEAD, 1)
    maxactive = unsigned(digits, 32) if len(digits) <= MAX_EVENT else None
    if not maxactive:
        raise command.error("BAD_MAXACT", HEAD, 1)
    if maxactive > _MAX_ACTIVE:
        raise command.error("MAXACT_TOO_BIG", HEAD, 1)
    return maxactive


def read_names(head: str, colon: int, default: str, command: Command) -> tuple[str, str]:
    """Group and event of the head; the event is "" where it is left to us.

    Raises:
        ProbeSyntaxError: with the kernel's error.
    """
    if colon < 0:
        return default, ""
    at = colon + 1
    text = head[at:]
    separator = "/" if "/" in text else "."
    group, found, event = text.partition(separator)
    if not found:
        group, event = default, text
    else:
        if not group:
            raise command.error("NO_GROUP_NAME", HEAD, at)
        if len(group) > MAX_EVENT:
            raise command.error("GROUP_TOO_LONG", HEAD, at)
        if _GROUP.fullmatch(group) is None:
            raise command.error("BAD_GROUP_NAME", HEAD, at)
        group = sys.intern(group)  # many events share it
        at += len(group) + 1
        if not event:
            return group, ""
    if not event:
        raise command.error("NO_EVENT_NAME", HEAD, at)
    if len(event) > MAX_EVENT:
        raise command.error("EVENT_TOO_LONG", HEAD, at)
    if not is_identifier(event):
        raise command.error("BAD_EVENT_NAME", HEAD, at)
    return group, event
