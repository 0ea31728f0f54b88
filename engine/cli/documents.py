"""Outcomes of commands as JSON: one object, whose `kind` says what it is (`help formats`)."""

import json
from collections.abc import Iterable
from typing import Any

from engine.session import Reports
from engine.session.protocol.report import Report


def document(kind: str, remarks: Iterable[Report] = (), **facts: Any) -> str:
    """An object in a line.

    Args:
        kind: what it is.
        remarks: that would be text else: lists of their lines.
        facts: its other keys.
    """
    return json.dumps({"kind": kind, **facts, "remarks": lines_of(remarks)})


def lines_of(remarks: Iterable[Report]) -> list[list[str]]:
    """Remarks as plain data."""
    return [list(each.lines) for each in remarks]


def end_of(reports: Reports) -> dict[str, Any]:
    """The end of a run as plain data."""
    return {"code": reports.exit_code, "reason": reports.reason, "limit": reports.limit}
