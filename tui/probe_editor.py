"""Actions that place, change and explain probes, and edit the guest."""

import re
from dataclasses import replace
from typing import Final

from textual.screen import ModalScreen

from engine.errors import KprobeTuiError
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from tui.command_line import complete, execute
from tui.messages import Copied, Located
from tui.panes.codeview import CodeView
from tui.panes.memory import MemoryLines
from tui.panes.registers import RegisterLines
from tui.screens.probe_dialog import ProbeDialog
from tui.screens.verdict import VerdictScreen
from tui.session_restore import Leaving
from tui.widgets.bars import MessageLine
from tui.widgets.virtual_lines import VirtualLines

_SAID: Final = (
    cmd.Define,
    cmd.ToggleBreak,
    cmd.Delete,
    cmd.Enable,
    cmd.StopOnHit,
    cmd.Unwind,
    cmd.SetFilter,
    cmd.ChangeTrigger,
    cmd.TraceFunctions,
    cmd.TraceSyscalls,
    cmd.Undo,
    cmd.Redo,
    cmd.WriteMemory,
    cmd.WriteRegister,
    cmd.Assemble,
    cmd.Signal,
)


class PlacingActions(Leaving):
    """Part of the app: probes, breakpoints, edits."""

    def action_probe(self) -> None:
        """Ask for a probe: before anything is typed the cursor's place is offered."""
        row = self.pane("code").code.row
        here = "" if row is None else self.browser.place_text(row.address)
        screen = ProbeDialog(self.browser, here=here, groups=self._groups())
        self.push_screen(screen, self._define)

    def _groups(self) -> list[str]:
        """Groups of the events there are."""
        events = (probe.event for probe in self.view.probes if probe.event)
        return list(dict.fromkeys(event.partition("/")[0] for event in events))

    def _define(self, line: str | None) -> None:
        if line:
            self.bridge.post(cmd.Define(line))

    def edit_probe(self, probe: int) -> None:
        """Edit a probe's definition."""
        found = next((item for item in self.view.probes if item.id == probe), None)
        if found is None or found.kind == "b":
            self.say("a breakpoint has no definition to edit", "warning")
            return

        def done(line: str | None) -> None:
            if line and line != found.definition:
                self.bridge.post(cmd.Define(line, replaces=probe))

        self.push_screen(
            ProbeDialog(self.browser, found.definition, "Edit", groups=self._groups()), done
        )

    def action_copy(self) -> None:
        """Copy what the focused pane has at its cursor."""
        for widget in (self.focused, self.pane("code").code):
            if isinstance(widget, CodeView | VirtualLines):
                widget.action_copy_rows()
                return

    def action_stay(self) -> None:
        """A key that means something to terminals only."""
        self.say("q quits")

    def action_breakpoint(self) -> None:
        """Set or clear a breakpoint at the cursor."""
        self.bridge.post(cmd.ToggleBreak(self.browser.place_text(self.pane("code").code.cursor)))

    def action_why(self) -> None:
        """The rules for a probe at the cursor."""
        address = self.pane("code").code.cursor
        placed = self.browser.judge(address, probed=address in self.view.planted)
        if placed is None:
            self.say(f"{address:#x} is in no file: nothing is known of the code there", "warning")
            return
        bias = address - placed.place.link

        def done(link: int | None) -> None:
            if link is not None:
                self.post_message(Located(link + bias, focus=True))
                self.pane("code").code.jump(link + bias)

        self.push_screen(VerdictScreen(placed), done)

    def action_undo(self) -> None:
        """Take the last change back."""
        self.bridge.post(cmd.Undo())

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self.bridge.post(cmd.Redo())

    def action_copy_definition(self) -> None:
        """Copy the probe at the cursor as a line for a kernel."""
        address = self.pane("code").code.cursor
        found = [probe for probe in self.view.probes if address in probe.addresses]
        lines = [probe.definition.removeprefix("!") for probe in found if probe.kind != "b"]
        if not lines:
            lines = [self.browser.default_definition(self.browser.place_text(address))]
        self.post_message(Copied("\n".join(lines)))

    # -- prompts ----------------------------------------------------------------------------

    def action_go_to(self, text: str = "") -> None:
        """Ask for a place to go to, of which some may be typed already."""
        self.query_one(MessageLine).ask("go to", "ADDRESS, SYMBOL, FILE:LINE or #EVENT", text)

    def action_command(self) -> None:
        """The command line."""
        self.query_one(MessageLine).ask(":", "p:GROUP/EVENT PLACE ARGS, or a gdb command", "")

    def action_assemble(self) -> None:
        """Ask for an instruction to put over the one at the cursor."""
        row = self.pane("code").code.row
        if row is not None:
            text = f"{row.mnemonic} {row.operands}".strip()
            self.query_one(MessageLine).ask(f"assemble {row.address:#x}", "", text)

    def on_register_lines_editing(self, message: RegisterLines.Editing) -> None:
        """A register is to be set."""
        message.stop()
        self.query_one(MessageLine).ask(f"set {message.name}", "", f"{message.value:#x}")

    def on_memory_lines_editing(self, message: MemoryLines.Editing) -> None:
        """Memory is to be set."""
        message.stop()
        self.query_one(MessageLine).ask(f"bytes at {message.address:#x}", "hex digits", "")

    def go_to(self, text: str) -> None:
        """Go to a place.

        Raises:
            KprobeTuiError: there is none.
        """
        text = text.strip()
        if re.fullmatch(r"#\s*\d+", text):
            self.show_pane("events")
            self.pane("events").goto(int(text[1:]))
            return
        address = self.browser.address_of(text)
        if self.browser.row_at(address) is None:
            self.show_pane("memory")
            self.pane("memory").locate(address)
            return
        self.show_pane("code")
        self.pane("code").code.jump(address)
        self.pane("code").entitle()
        self.pane("machinery").locate(address)

    def answer(self, what: str, text: str) -> None:
        """Something was typed into the line of messages.

        Raises:
            KprobeTuiError: it means nothing, or cannot be done.
        """
        head, _, rest = what.partition(" ")
        if what == ":":
            execute(self, text)
        elif what == "quit":
            self.leave(text)
        elif what == "trace":
            self.trace_answer(text)
        elif what == "go to":
            self.go_to(text)
        elif head == "assemble":
            self.bridge.post(cmd.Assemble(int(rest, 16), text))
        elif head == "set":
            self.bridge.post(cmd.WriteRegister(rest, _number(text)))
        elif head == "bytes":
            try:
                data = bytes.fromhex(text)
            except ValueError:
                raise KprobeTuiError(f"{text}: not hex digits") from None
            self.bridge.post(cmd.WriteMemory(int(what.rpartition(" ")[2], 16), data))

    def complete_line(self, what: str, text: str) -> list[str]:
        """What a line that is being typed may become."""
        if what == ":":
            return complete(self, text)
        if what == "go to" and text:
            return [match.name for match in self.browser.complete(text, 20)]
        return []

    # -- answers ----------------------------------------------------------------------------

    def done(self, command: cmd.Command, text: str) -> None:
        """A command was carried out: say what it did, unless the view shows it anyway."""
        if isinstance(command, _SAID):
            self.say(text)
            if isinstance(command, cmd.ChangeTrigger) and command.text.startswith("hist:"):
                self.show_pane("histogram")
        elif isinstance(command, cmd.Restore):
            self.recalled()

    def failed(self, event: ev.Failed) -> None:
        """A command was not carried out: a definition is shown again with its caret."""
        command = event.command
        if isinstance(command, cmd.StepPhase):
            self.stop_playing()
        if isinstance(command, cmd.TraceFunctions):
            self.traced = ()
        if (
            isinstance(command, cmd.Define)
            and event.column is not None
            and not isinstance(self.screen, ModalScreen)  # of many lines the first is shown
        ):

            def again(line: str | None) -> None:
                if line:
                    self.bridge.post(replace(command, line=line))

            self.push_screen(ProbeDialog(self.browser, command.line, "Probe"), again)
        hint = f" ({event.hint})" if event.hint else ""
        self.say(f"{event.text}{hint}", "error")


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise KprobeTuiError(f"{text}: not a number") from None
