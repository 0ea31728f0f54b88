"""What commands tell as JSON: one object, whose `kind` says what it is (`help formats`)."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from engine.cli.grouped import Decorated, Group, option
from engine.session import Reports
from engine.session.protocol.report import Report


def json_option(help: str = "Print JSON.") -> Callable[[Decorated], Decorated]:
    """The option that asks for it, as the parameter `as_json`."""
    return option("--json", "as_json", is_flag=True, help=help, group=Group.OUTPUT)


END_HELP: Final = "Tell the end and all remarks as a line of JSON, the last one on stderr."


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
