"""The output of `check --list`: static probes (USDT), as -e takes them."""

from collections.abc import Iterator

from engine.cli import console
from engine.escaping import json_text
from engine.session.headless.marker_list import ListedMarker, list_markers
from engine.session.protocol.config import GuestConfig


def show_markers(config: GuestConfig, *, as_json: bool, color: str) -> None:
    """Write the static probes of a program and its libraries, one a line, and what is damaged."""
    found = list_markers(config)
    if as_json:
        console.write(json_text([_as_json(row) for row in found.rows]) + "\n")
    else:
        for row in found.rows:
            console.put_lines(list(_lines(row)))
    reports = found.damage()
    console.remarks(reports, color)
    if not found.rows and not reports and not as_json:
        console.remark("no file of the program has static probes (USDT)", color=color)


def _lines(row: ListedMarker) -> Iterator[str]:
    if row.problem:
        yield f"{row.event} {row.path}:{row.address:#x} unusable: {row.problem}"
        return
    words = (f"arg{n}={one.fetch}" for n, one in enumerate(row.arguments, 1) if one.fetch)
    yield " ".join((row.event, row.place, *words))
    for number, one in enumerate(row.arguments, 1):
        if one.problem:
            yield f"    arg{number} cannot be recorded: {one.operand}: {one.problem}"


def _as_json(row: ListedMarker) -> dict[str, object]:
    return {
        "event": row.event,
        "provider": row.provider,
        "name": row.name,
        "file": row.path,
        "address": f"{row.address:#x}",
        "offset": None if row.offset is None else f"{row.offset:#x}",
        "semaphore": f"{row.semaphore:#x}" if row.semaphore else None,
        "problem": row.problem or None,
        "arguments": [
            {"operand": one.operand, "fetch": one.fetch or None, "problem": one.problem or None}
            for one in row.arguments
        ],
    }
