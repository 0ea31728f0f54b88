"""A program's probes, layout and typed lines, from one session to the next.

They are remembered by build-id in the platform's state folder.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace
from textual import log

from engine.session.protocol import commands as cmd
from engine.session.protocol.commands import SavedStop
from engine.session.protocol.probes import EventTexts, ProbeRow
from engine.session.protocol.views import GuestView
from tui.desk import Desk
from tui.layout import Layout
from tui.settings import state_folder

_HISTORY: Final = 500
_PROBES: Final = 10_000
_UNREADABLE: Final = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Errors of reading a file that is not as it was written."""


class SessionRestore:
    """Restores what there was the last time, and remembers what there is now."""

    def __init__(
        self, desk: Desk, build_id: str, choice: Layout, histories: dict[str, list[str]]
    ) -> None:
        """Nothing is restored yet.

        Args:
            desk: has probes placed.
            build_id: of the program.
            choice: of what is seen.
            histories: what was typed, by the kind of question; filled by `recall`.
        """
        self._desk = desk
        self._build_id = build_id
        self._choice = choice
        self._histories = histories
        self._recalled: cmd.Restore | None = None  # what is about to be placed again

    def recall(self) -> set[str]:
        """Place what was placed the last time this program was looked at; the lines of it."""
        troubles: list[str] = []
        memory = ProgramMemory.load(self._build_id, troubles)
        if memory.probes or memory.stops:
            self._recalled = cmd.Restore(memory.probes, memory.stops)
            self._desk.post(self._recalled)
        self._choice.restore(memory.turns, load_bars(troubles))
        if troubles:
            self._desk.say("\n".join(troubles), "warning")
        self._histories.update(memory.histories)
        return {probe.line for probe in memory.probes}

    def recalled(self) -> None:
        """Note that all is placed: from now on the list of probes is what is remembered."""
        self._recalled = None

    def remember(self) -> None:
        """Write down what is placed, typed and arranged now."""
        probes, stops = _placed(self._desk.view)
        if self._recalled is not None:  # gone before they were back
            probes, stops = self._recalled.probes, self._recalled.stops
        memory = ProgramMemory(probes, stops, tuple(self._choice.recent), self._histories)
        try:
            memory.save(self._build_id)
            save_bars(self._choice.shares)
        except OSError as error:
            log.warning(f"nothing is remembered: {error}")


def _placed(view: GuestView) -> tuple[tuple[ProbeRow, ...], tuple[SavedStop, ...]]:
    """The probes that there are, and what words ask of stops, by the probe's place among these."""
    # Those that a word places again have rows of their own.
    others = {row for stop in view.stops if stop.word or stop.passing for row in stop.rows}
    probes = [probe for probe in view.probes if probe.row.id not in others]
    places = {probe.row.id: place for place, probe in enumerate(probes, 1)}
    stops = tuple(
        replace(stop, rows=tuple(places[row] for row in stop.rows if row in places))
        for stop in view.stops
        if not stop.passing
    )
    rows = tuple(replace(probe.row, id=places[probe.row.id]) for probe in probes)
    return rows, stops


class ProgramMemory(Struct):
    """Everything that is remembered of one program.

    Attributes:
        probes: what was placed.
        stops: what words have asked of stops.
        turns: panes, the one that had the focus last in front.
        histories: what was typed, by the kind of prompt.
    """

    probes: tuple[ProbeRow, ...] = ()
    stops: tuple[SavedStop, ...] = ()
    turns: tuple[str, ...] = ()
    histories: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, build_id: str, troubles: list[str]) -> "ProgramMemory":
        """Read it; nothing where there is nothing.

        Args:
            build_id: of the program.
            troubles: gets a line where there is something that cannot be read.
        """
        path = _memory_path(build_id)
        try:
            return cls._of(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except _UNREADABLE as error:
            troubles.append(f"{path}: {_why(error)}; nothing is placed again")
            return cls()

    @classmethod
    def _of(cls, data: Any) -> "ProgramMemory":
        probes = tuple(_row(at, p) for at, p in enumerate(data["probes"][:_PROBES], 1))
        stops = tuple(
            SavedStop(
                tuple(int(row) for row in s["rows"]),
                str(s["word"]),
                bool(s["temporary"]),
                bool(s["on"]),
                str(s["condition"]),
                int(s["ignore"]),
                tuple(str(line) for line in s["commands"]),
            )
            for s in data["stops"][:_PROBES]
        )
        turns = tuple(str(pane) for pane in data["turns"])
        histories = {
            str(kind): [str(line) for line in lines][-_HISTORY:]
            for kind, lines in data["histories"].items()
        }
        return cls(probes, stops, turns, histories)

    def save(self, build_id: str) -> None:
        """Remember it.

        Raises:
            OSError: it cannot be written.
        """
        data = {
            "probes": [_fields(row) for row in self.probes],
            "stops": [asdict(stop) for stop in self.stops],
            "turns": list(self.turns),
            "histories": {kind: lines[-_HISTORY:] for kind, lines in self.histories.items()},
        }
        _write(_memory_path(build_id), data)


def _fields(row: ProbeRow) -> dict[str, Any]:
    """A row of the list of probes as the file has it: rules beside the rest, no number."""
    fields = asdict(row)
    del fields["id"], fields["rules"]
    return {**fields, **asdict(row.rules)}


def _row(number: int, data: Mapping[str, Any]) -> ProbeRow:
    """The row of the list of probes that the file has at a place, counted from 1."""
    kind = str(data["kind"])
    triggers = tuple(str(text) for text in data.get("triggers", ()))
    return ProbeRow(
        number,
        kind,
        str(data["line"]),
        bool(data["enabled"]),
        bool(data["stops"]) or kind == "b",
        EventTexts(str(data.get("filter", "")), triggers),
    )


def load_bars(troubles: list[str]) -> dict[str, int]:
    """The places of the bars between panes, which are the same for all programs.

    Args:
        troubles: gets a line where they cannot be read.
    """
    path = _bars_path()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): int(share) for name, share in data.items()}
    except FileNotFoundError:
        return {}
    except _UNREADABLE as error:
        troubles.append(f"{path}: {_why(error)}; panes are as at first")
        return {}


def _why(error: Exception) -> str:
    """Why a file of this interface's own cannot be read."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is damaged"


def save_bars(shares: Mapping[str, int]) -> None:
    """Remember them.

    Raises:
        OSError: they cannot be written.
    """
    if shares or _bars_path().exists():
        _write(_bars_path(), dict(shares))


def _write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps(data, indent=1), encoding="utf-8")
    new.replace(path)  # a crash leaves the old one whole


def _bars_path() -> Path:
    return state_folder() / "layout.json"


def _memory_path(build_id: str) -> Path:
    safe = "".join(c for c in build_id if c.isalnum())[:80] or "unknown"
    return state_folder() / "programs" / f"{safe}.json"
