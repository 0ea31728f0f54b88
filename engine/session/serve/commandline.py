"""Lines of this program's own command line, for front ends that pass lines on.

They are gdb's words, and definitions of probes as the kernel takes them, whose events are kept.
"""

from collections.abc import Iterator
from typing import Final

from engine.errors import KprobeTuiError
from engine.session.control.control import Control
from engine.session.debugger.command_table import Word, split_word
from engine.session.debugger.interpreter import Interpreter
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.ring import Ring
from engine.trace.rows import EventInfo

_DEFINITIONS: Final = ("p:", "p ", "r:", "r ", "-:", "P", "R")
_KEPT, _SHOWN = 100_000, 20


class RecordedEvents:
    """The events of a guest under control, as they are told; the last ones are kept."""

    def __init__(self) -> None:
        """None yet."""
        self._infos: dict[int, EventInfo] = {}
        self._rows = Ring(_KEPT, overwrite=True)

    def told(self, event: ev.SessionEvent) -> int:
        """Take note of an event of the guest's; how many recorded ones it has brought."""
        if isinstance(event, ev.Declared):
            self._infos.update((info.id, info) for info in event.infos)
        elif isinstance(event, ev.Rows):
            self._rows.append(event.data)
            return event.count
        elif isinstance(event, ev.Restarted | ev.Branched):
            self._infos.clear()
            self._rows.clear()
        return 0

    def last(self, control: Control, count: int) -> Iterator[str]:
        """The last ones as lines of ftrace's."""
        session, rows = control.session, self._rows
        names = Names(
            lambda address: str(session.seen.modules.locate(address)),
            session.machine.comms.get,
            process=lambda thread: session.machine.pids.get(thread, thread),
        )
        form = FtraceFormat(self._infos, names)
        for at in range(max(len(rows) - count, 0), len(rows)):
            yield form.rows(rows.row(at)).decode(errors="replace").rstrip("\n")


class PassedLines:
    """Carries lines out."""

    def __init__(
        self, control: Control, interpreter: Interpreter, events: RecordedEvents, help_: str
    ) -> None:
        """Carry them out on a guest; `help_` is what `help` says at the end."""
        self._control, self._interpreter = control, interpreter
        self._events = events
        self._help = help_

    def definition(self, text: str) -> bool:
        """True for a line that defines a probe, which is placed then, or takes one out.

        Raises:
            KprobeTuiError: it cannot be placed.
        """
        if not _may_define(text):
            return False
        try:
            self._control.loop.carry_out(cmd.Define(text))
        except KprobeTuiError:
            if text[:2] != "p ":
                raise
            return False  # print
        return True

    def is_own(self, text: str) -> bool:
        """True for a line that is none of gdb's words, or may be none."""
        words = text.split()
        return words in ([], ["help"]) or _asks_for_events(words) or _may_define(text)

    def is_name(self, text: str) -> bool:
        """True for the whole name of a word of gdb's, or a usual short one."""
        return any(text in names for names, _ in self._interpreter.words.listed())

    def moves(self, text: str) -> bool:
        """True for a line that may let the guest move.

        Raises:
            CommandError: it begins with no word.
        """
        word = self._interpreter.words.find(split_word(text)[0])
        return not isinstance(word, Word) or word.moves

    def told(self, text: str) -> list[str] | None:
        """The answer to a line that is none of gdb's words; None for others.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        words = text.split()
        if words in ([], ["help"]):
            return [
                "A line of gdb's words as this program has them, or a definition: p:EVENT PLACE",
                "ARGS, r:EVENT PLACE ARGS, -:EVENT; events [N] shows those recorded last.",
                self._help,
            ]
        if _asks_for_events(words):
            count = int(words[1]) if len(words) == 2 else _SHOWN
            return list(self._events.last(self._control, count))
        if self.definition(text):
            return [f"{text.split()[0]}: done"]
        return None


def _asks_for_events(words: list[str]) -> bool:
    """True for `events` and `events N`."""
    return words[:1] == ["events"] and (
        len(words) == 1 or (len(words) == 2 and words[1].isdecimal())
    )


def _may_define(text: str) -> bool:
    """True for what looks like a definition; "p x" may be one or `print`."""
    return text.startswith(_DEFINITIONS) and not text.startswith(("p /", "p *", "p &"))
