"""Functions as ftrace's filters name them: by patterns, and by their numbers.

An event of functions before Linux 6.14 passes what stands in place of the function on as such a
filter, and so takes patterns. Source: filter_parse_regex in kernel/trace/trace_events_filter.c,
match_records and ftrace_match in kernel/trace/ftrace.c.
"""

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Final

_GLOB: Final = re.compile(r"[?\[\\]")
_UNSIGNED: Final = re.compile(r"0x[0-9a-f]+|[1-9]\d*|0[0-7]*", re.IGNORECASE | re.ASCII)


def filter_matches(text: str, names: Sequence[str]) -> bool:
    """True if a filter names any of the functions that ftrace knows.

    Args:
        text: the filter; `!` in front takes functions out of none, which succeeds, too.
        names: of these functions.
    """
    text = text.removeprefix("!")
    if text[:1].isascii() and text[:1].isdigit():
        return _UNSIGNED.fullmatch(text) is not None and 0 < _number(text) <= len(names)
    star = text.find("*", 1)
    inner = text[1:-1] if text.startswith("*") else text[:-1]
    if _GLOB.search(text) or (star >= 0 and star != len(text) - 1) or "*" in inner:
        matches = re.compile(translate(_kernels(text))).match
        return any(matches(name) for name in names)
    plain = text.strip("*")
    if text.startswith("*") and text.endswith("*"):
        return any(plain in name for name in names)
    if text.startswith("*"):
        return any(name.endswith(plain) for name in names)
    if text.endswith("*"):
        return any(name.startswith(plain) for name in names)
    return text in names


def _number(text: str) -> int:
    """A number as kstrtoul reads it: 0x and a leading 0 choose the base."""
    if text[:2].lower() == "0x":
        return int(text, 16)
    return int(text, 8 if text.startswith("0") else 10)


def _kernels(glob: str) -> str:
    """The pattern in Python's words: a backslash in front takes a character's meaning."""
    return re.sub(r"\\(.)", lambda match: f"[{match[1]}]", glob)
