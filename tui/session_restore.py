"""A program's probes, layout and typed lines, from one session to the next.

They are remembered by build-id in the platform's state folder.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from textual import log

from engine.session.protocol import commands as cmd
from engine.session.protocol.commands import SavedProbe
from tui.desk import Desk
from tui.layout import Layout
from tui.settings import state_folder

_HISTORY: Final = 500
_PROBES: Final = 10_000


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
        memory = ProgramMemory.load(self._build_id)
        if memory.probes:
            self._recalled = cmd.Restore(memory.probes)
            self._desk.post(self._recalled)
        if memory.turns is not None and all(memory.turns):
            self._choice.turns = memory.turns
        self._histories.update(memory.histories)
        return {probe.line for probe in memory.probes}

    def recalled(self) -> None:
        """It is placed: from now on the list of probes is what there is to remember."""
        self._recalled = None

    def remember(self) -> None:
        """Write down what is placed, typed and arranged now."""
        probes = tuple(
            SavedProbe(
                "b" if probe.kind == "b" else "p",
                probe.definition,
                probe.enabled,
                probe.stops,
                probe.filter,
                probe.triggers,
            )
            for probe in self._desk.view.probes
        )
        if self._recalled is not None:  # gone before they were back
            probes = self._recalled.probes
        memory = ProgramMemory(probes, self._choice.turns, self._histories)
        try:
            memory.save(self._build_id)
        except OSError as error:
            log.warning(f"nothing is remembered: {error}")


@dataclass(slots=True)
class ProgramMemory:
    """Everything that is remembered of one program.

    Attributes:
        probes: what was placed.
        turns: panes that were seen where several share a place.
        histories: what was typed, by the kind of prompt.
    """

    probes: tuple[SavedProbe, ...] = ()
    turns: tuple[str, str] | None = None
    histories: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, build_id: str) -> "ProgramMemory":
        """Read it; nothing where there is nothing, or it cannot be read."""
        try:
            data = json.loads(_memory_path(build_id).read_text(encoding="utf-8"))
            return cls._of(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    @classmethod
    def _of(cls, data: Any) -> "ProgramMemory":
        probes = tuple(
            SavedProbe(
                str(p["kind"]),
                str(p["line"]),
                bool(p["enabled"]),
                bool(p["stops"]),
                str(p.get("filter", "")),
                tuple(str(text) for text in p.get("triggers", ())),
            )
            for p in data["probes"][:_PROBES]
        )
        first, second = data["turns"]
        histories = {
            str(kind): [str(line) for line in lines][-_HISTORY:]
            for kind, lines in data["histories"].items()
        }
        return cls(probes, (str(first), str(second)), histories)

    def save(self, build_id: str) -> None:
        """Remember it.

        Raises:
            OSError: it cannot be written.
        """
        path = _memory_path(build_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {
            "probes": [
                {
                    "kind": p.kind,
                    "line": p.line,
                    "enabled": p.enabled,
                    "stops": p.stops,
                    "filter": p.filter,
                    "triggers": list(p.triggers),
                }
                for p in self.probes
            ],
            "turns": list(self.turns or ("", "")),
            "histories": {kind: lines[-_HISTORY:] for kind, lines in self.histories.items()},
        }
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(data, indent=1), encoding="utf-8")
        new.replace(path)  # a crash leaves the old one whole


def _memory_path(build_id: str) -> Path:
    safe = "".join(c for c in build_id if c.isalnum())[:80] or "unknown"
    return state_folder() / "programs" / f"{safe}.json"
