"""Static probes (USDT) in definitions: `p %sdt_PROVIDER:NAME`, `sdt:PATH:PROVIDER:NAME`, ...

perf(1) and bpftrace(8) find a program's static probes by their names and give the kernel the
uprobes that these stand for; the kernel knows none. So do we: what is read here becomes lines of
`uprobe_events`, one for each place of the marker.

| written | who writes so |
|---|---|
| `p[:[GRP/]EVENT] %sdt_PROVIDER:NAME [ARG...]`, `%PROVIDER:NAME`, `%NAME` | perf probe |
| `sdt_PROVIDER:NAME`, `sdt_PROVIDER/NAME`, `%sdt_PROVIDER:NAME` without a `p` | perf record -e |
| `sdt:PATH:PROVIDER:NAME`, `usdt:PATH:PROVIDER:NAME` | bpftrace |
| `PATH:%sdt_PROVIDER:NAME` | ours: perf's `-x PATH` in the place |

PROVIDER and NAME are patterns. As dtrace does, `-` in a name stands for `__`.
"""

import fnmatch
import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import ProbeError
from engine.fetch.argument_words import FIRST_ARG, PLACE
from engine.trace.head_syntax import HEAD

GROUP: Final = "sdt_"
"""Begins the name of a marker's group; its provider follows."""

_SPLIT: Final = re.compile(r"[ \t\n\v\f\r]+")
_WORD: Final = r"[\w.*?\[\]!-]+"
_PERF: Final = re.compile(
    rf"(?:(?P<file>[^%\s]*[^%\s:]):)?%(?:(?P<group>{GROUP})?(?P<provider>{_WORD}):)?(?P<name>{_WORD})"
)
_EVENT: Final = re.compile(rf"%?{GROUP}(?P<provider>{_WORD})[:/](?P<name>{_WORD})")
_NAMED: Final = re.compile(r"(u?sdt):(.+)", re.DOTALL)
_PART: Final = re.compile(_WORD)
_ARGUMENT: Final = re.compile(r"\$arg(\d+|\*)", re.ASCII)


class MarkerName(Struct, frozen=True):
    """The markers that a place means.

    Attributes:
        text: as written.
        provider: a pattern.
        name: a pattern.
        file: the file that carries them, by name or path; "" for all of the program's.
    """

    text: str
    provider: str
    name: str
    file: str = ""

    def fits(self, provider: str, name: str) -> bool:
        """True if it means the marker of that provider and name."""
        return _fits(provider, self.provider) and _fits(name, self.name)


class MarkerLine(Struct, frozen=True):
    """A definition whose place is a marker.

    Attributes:
        marker: the place.
        head: its first word, "p" where there is none; a leading '!' stays.
        args: its words behind the place.
    """

    marker: MarkerName
    head: str
    args: tuple[str, ...]


def marker_name(place: str) -> MarkerName | None:
    """The markers that a word means as a place; None for any other word.

    Raises:
        ProbeError: it begins as one and goes on as none.
    """
    if named := _NAMED.fullmatch(place):
        return _spelled_out(place, named[1], named[2])
    found = _EVENT.fullmatch(place) or _PERF.fullmatch(place)
    if found is None:
        return None
    parts = found.groupdict()
    return MarkerName(place, parts["provider"] or "*", parts["name"], parts.get("file") or "")


def _spelled_out(text: str, kind: str, rest: str) -> MarkerName:
    """The markers of `[PATH:][PROVIDER:]NAME`; a PATH without a '/' needs both others."""
    folder, slash, tail = rest.rpartition("/")
    parts = tail.split(":")
    file = folder + slash + parts.pop(0) if slash or len(parts) > 2 else ""
    provider, name = parts if len(parts) == 2 else ("*", *parts) if len(parts) == 1 else ("", "")
    provider = provider.removeprefix("%").removeprefix(GROUP)
    name = name.removeprefix("%")
    if not _PART.fullmatch(provider) or not _PART.fullmatch(name):
        raise ProbeError(
            f"{text}: a marker is {kind}:PATH:PROVIDER:NAME or {kind}:PROVIDER:NAME (EINVAL)"
        )
    return MarkerName(text, provider, name, file)


def marker_line(line: str) -> MarkerLine | None:
    """Read a line that defines events on markers; None for any other line.

    Raises:
        ProbeError: it asks for what a marker has not.
    """
    text = line.partition("#")[0].strip()
    if "%" not in text and "sdt" not in text:
        return None  # nearly all lines
    bang = "!" if text.startswith("!") else ""
    words = tuple(filter(None, _SPLIT.split(text.removeprefix("!"))))
    if not words:
        return None
    alone = marker_name(words[HEAD]) if not re.match(r"[pr\-]\d*(:|$)", words[HEAD]) else None
    if alone is not None:
        return MarkerLine(alone, f"{bang}p", words[1:])
    if len(words) <= PLACE or words[HEAD][0] not in "pr":
        return None
    place = words[PLACE].removesuffix("%return")
    marker = marker_name(place) if place else None
    if marker is None:
        return None
    if words[HEAD].startswith("r") or place != words[PLACE]:
        raise ProbeError(
            f"{words[PLACE]}: a marker is a place in a function, from which nothing returns: "
            "define it with p (EINVAL)"
        )
    return MarkerLine(marker, bang + words[HEAD], words[FIRST_ARG:])


def named_words(
    args: tuple[str, ...], fetch: Callable[[int], tuple[str, str]], count: int
) -> tuple[str, ...]:
    """A definition's arguments with `$argN` as what the marker's argument N is fetched by.

    Args:
        args: the words behind the place.
        fetch: (number, from 1) to body and type; it raises a ProbeError if there is none.
        count: arguments of the marker.
    """
    found: list[str] = []
    for word in args:
        if word == "$arg*":
            found += [_whole(f"arg{n}", fetch(n)) for n in range(1, count + 1)]
            continue
        name, equals, body = word.partition("=")
        if not equals:
            name, body = "", word
        alone = _ARGUMENT.fullmatch(body)
        if alone is not None and alone[1] != "*":
            found.append(_whole(name or f"arg{alone[1]}", fetch(int(alone[1]))))
            continue
        body = _ARGUMENT.sub(
            lambda match: fetch(int(match[1]))[0] if match[1] != "*" else match[0], body
        )
        found.append(f"{name}={body}" if name else body)
    return tuple(found)


def _whole(name: str, fetch: tuple[str, str]) -> str:
    return f"{name}={fetch[0]}:{fetch[1]}"


def _fits(text: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(text, pattern) or fnmatch.fnmatchcase(
        text, pattern.replace("-", "__")
    )
