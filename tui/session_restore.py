"""Coming back and going: what is remembered of a program, and what is asked before it ends."""

from engine.session.protocol import commands as cmd
from engine.session.protocol.commands import SavedProbe
from engine.session.protocol.views import RunState
from tui.base import AppBase
from tui.settings import Memory
from tui.widgets.bars import MessageLine


class Leaving(AppBase):
    """Part of the app."""

    _recalled: cmd.Restore | None = None
    """What is about to be placed again."""
    _histories: dict[str, list[str]]
    """What was typed; the line itself is gone when the app unmounts."""

    def recall(self) -> set[str]:
        """Place what was placed the last time this program was looked at; the lines of it."""
        if self.fresh:
            return set()
        memory = Memory.load(self.browser.build_id)
        self._histories = self.query_one(MessageLine).histories
        if memory.probes:
            self._recalled = cmd.Restore(memory.probes)
            self.bridge.post(self._recalled)
        if memory.turns is not None and all(memory.turns):
            self.layout_choice.turns = memory.turns
        self._histories.update(memory.histories)
        return {probe.line for probe in memory.probes}

    def recalled(self) -> None:
        """It is placed: from now on the list of probes is what there is to remember."""
        self._recalled = None

    def remember(self) -> None:
        """Write down what is placed, typed and arranged now."""
        if self.fresh:
            return
        probes = tuple(
            SavedProbe(
                "b" if probe.kind == "b" else "p",
                probe.definition,
                probe.enabled,
                probe.stops,
                probe.filter,
                probe.triggers,
            )
            for probe in self.view.probes
        )
        if self._recalled is not None:  # gone before they were back
            probes = self._recalled.probes
        memory = Memory(probes, self.layout_choice.turns, self._histories)
        try:
            memory.save(self.browser.build_id)
        except OSError as error:
            self.log.warning(f"nothing is remembered: {error}")

    def action_leave(self) -> None:
        """Quit; ask first if that would lose something."""
        losses = []
        if self.view.events > self.exported:
            losses.append(f"{self.view.events} events are in no file (:export FILE)")
        if self.view.state in (RunState.RUNNING, RunState.WAITING, RunState.STOPPED):
            losses.append("the program is alive")
        if not losses:
            self.exit(0)
            return
        self.query_one(MessageLine).ask("quit", f"y or n: {', '.join(losses)}", "")

    def leave(self, answer: str) -> None:
        """The answer to whether to quit."""
        if answer.strip().lower() in ("y", "yes"):
            self.exit(0)
