"""Placing, changing and explaining probes."""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from tui.desk import Desk
from tui.navigator import Navigator
from tui.panes.registry import Panes

if TYPE_CHECKING:
    from tui.screens.probe_dialog import Placed


class ProbeEditor:
    """Asks for probes and has them placed."""

    def __init__(self, desk: Desk, browser: Browser, panes: Panes, navigator: Navigator) -> None:
        """Nothing is placed yet."""
        self._desk = desk
        self._browser = browser
        self._code = panes.code.code
        self._navigator = navigator
        self._refused: cmd.Define | None = None

    def place(self) -> None:
        """Ask for a probe: before anything is typed the cursor's place is offered."""
        row = self._code.row
        here = "" if row is None else self._browser.probed_text(row.address)
        self._open("", "Probe", cmd.Define(""), here)

    def change(self, probe: int) -> None:
        """Edit a probe's definition."""
        found = next((item for item in self._desk.view.probes if item.row.id == probe), None)
        if found is None or found.kind == "b":
            self._desk.say("a breakpoint has no definition to edit", "warning")
            return
        self._open(found.row.line, "Edit", cmd.Define(found.row.line, replaces=probe))

    def refused(self, command: cmd.Define) -> None:
        """A definition was refused: `correct` shows it again."""
        self._refused = command

    def correct(self) -> None:
        """Show the definition again that was refused last, with its caret."""
        command = self._refused
        if command is None:
            self._desk.say("no definition was refused", "warning")
            return

        from tui.screens.probe_dialog import ProbeDialog  # not for the first screen

        def again(placed: "Placed | None") -> None:
            if placed is not None:
                self._place(command, placed)

        self._desk.open(ProbeDialog(self._browser, command.line, "Probe"), again)

    def _open(self, text: str, title: str, command: cmd.Define, here: str = "") -> None:
        """Ask for a line; another one than `command` has makes it a command."""
        from tui.screens.probe_dialog import ProbeDialog  # not for the first screen

        def done(placed: "Placed | None") -> None:
            if placed is not None and placed.line != command.line:
                self._place(command, placed)

        events = (probe.event for probe in self._desk.view.probes if probe.event)
        groups = list(dict.fromkeys(event.partition("/")[0] for event in events))
        self._desk.open(ProbeDialog(self._browser, text, title, here, groups), done)

    def _place(self, command: cmd.Define, placed: "Placed") -> None:
        """Carry a definition out, or the lines of a breakpoint."""
        if not placed.breaks:
            self._desk.post(replace(command, line=placed.line))
            return
        # One line of words: nothing runs where the breakpoint is refused.
        started = self._desk.view.state is RunState.STOPPED
        run = ("continue" if started else "run",) if placed.runs else ()
        self._desk.type("\n".join((placed.line, *run)))

    def toggle_breakpoint(self) -> None:
        """Set or clear a breakpoint at the cursor."""
        self._desk.post(cmd.ToggleBreak(self._browser.place_text(self._code.cursor)))

    def explain(self) -> None:
        """Show the rules for a probe at the cursor."""
        address = self._code.cursor
        placed = self._browser.judge(address, probed=address in self._desk.view.planted)
        if placed is None:
            text = f"{address:#x} is in no file: nothing is known of the code there"
            self._desk.say(text, "warning")
            return
        from tui.screens.verdict import VerdictScreen  # not for the first screen

        def done(nearest: int | None) -> None:
            if nearest is not None:
                self._code.jump(nearest)
                self._navigator.look_at(nearest, focus=True)

        kernel = self._browser.kernel
        answer = kernel.answer(address) if kernel is not None else None
        self._desk.open(VerdictScreen(placed, answer, is_booted=self._browser.is_booted), done)

    def copy_for_gdb(self) -> None:
        """Copy the place at the cursor as gdb's break takes it."""
        address = self._code.cursor
        place = self._browser.place_text(address)
        known = re.fullmatch(r"[A-Za-z_][\w.]*(\+0x[0-9a-f]+)?", place)
        self._desk.copy(f"break *{place if known else f'{address:#x}'}")

    def copy_definition(self) -> None:
        """Copy the probe at the cursor as a line for a kernel."""
        address = self._code.cursor
        found = [probe for probe in self._desk.view.probes if address in probe.addresses]
        lines = [probe.row.line.removeprefix("!") for probe in found if probe.kind != "b"]
        if not lines:
            lines = [self._browser.default_definition(self._browser.place_text(address))]
        self._desk.copy("\n".join(lines))
