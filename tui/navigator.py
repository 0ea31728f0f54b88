"""Ways to a place in code, memory or the event log."""

import re

from engine.session.browse import Browser
from tui.body import Body
from tui.desk import Desk
from tui.widgets.bars import Question


class Navigator:
    """Goes to places, and shows in all panes the one that is looked at in one."""

    def __init__(self, desk: Desk, browser: Browser, body: Body) -> None:
        """Nothing is looked at yet."""
        self._desk = desk
        self._browser = browser
        self._body = body
        self._panes = body.panes

    def ask(self, text: str = "") -> None:
        """Ask for a place to go to, of which some may be typed already."""
        hint = "ADDRESS, SYMBOL, FILE:LINE or #EVENT"
        self._desk.ask(Question("go to", hint, self.go_to, text, self._complete))

    def _complete(self, text: str) -> list[str]:
        return [match.name for match in self._browser.complete(text, 20)] if text else []

    def go_to(self, text: str) -> None:
        """Go to a place.

        Raises:
            KprobeTuiError: there is none.
        """
        text = text.strip()
        if re.fullmatch(r"#\s*\d{1,20}", text):
            self._body.show_pane("events")
            self._panes.events.goto(int(text[1:]))
            return
        address = self._browser.address_of(text)
        if not self._browser.is_code(address):
            self.examine(address)
            return
        self._body.show_pane("code")
        self._panes.code.code.jump(address)
        self._located(address)

    def examine(self, address: int) -> None:
        """Show the bytes at an address."""
        self._body.show_pane("memory")
        self._panes.memory.locate(address)

    def show_code(self, address: int) -> None:
        """Show code, whoever has the focus."""
        self._panes.code.code.jump(address)
        self._located(address)

    def look_at(self, address: int, *, focus: bool = False) -> None:
        """The user looks at an address in some pane: the others show it.

        Args:
            address: in the guest.
            focus: go there.
        """
        if self._body.focused is not self._panes.code:
            if self._browser.is_code(address):
                self._panes.code.code.jump(address)
                if focus:
                    self._body.show_pane("code")
            elif focus:
                self.examine(address)
        self._located(address)

    def _located(self, address: int) -> None:
        self._panes.code.entitle()
        self._panes.machinery.locate(address)
