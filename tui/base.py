"""What the parts of the app share: the guest's view, the way to the engine, panes, messages."""

from typing import Any

from engine.session import GuestConfig
from engine.session.browse import Browser
from engine.session.protocol.views import GuestView
from tui.bridge import Bridge
from tui.key_queue import KeyQueue
from tui.keymap import Action, spelled
from tui.layout import Layout
from tui.settings import Settings
from tui.widgets.bars import MessageLine


class AppBase(KeyQueue):
    """The app without its actions.

    Attributes:
        config: how the guest is run.
        settings: what the user has set.
        view: the last view of the guest.
        ascii: draw with ASCII only.
        browser: the program's files.
        bridge: the way to the engine.
        layout_choice: what the user has chosen to see.
        fresh: whether nothing is remembered of this program.
        exported: events that were there when they were last written to a file.
        traced: patterns of the functions that are traced.
    """

    config: GuestConfig
    settings: Settings
    view: GuestView
    ascii: bool
    browser: Browser
    bridge: Bridge
    layout_choice: Layout
    fresh: bool
    exported: int = 0
    traced: tuple[str, ...] = ()

    def pane(self, name: str) -> Any:
        """A pane by its id; what it can do depends on which it is."""
        return self.query_one(f"#{name}")

    def show_pane(self, name: str) -> None:
        """Give a pane the focus, wherever it is."""
        raise NotImplementedError

    def key_text(self, action: Action) -> str:
        """The keys of an action as the user has set them."""
        return spelled(self.settings.keys.get(action.id) or action.keys)

    def say(self, text: str, severity: str = "information") -> None:
        """Show something short: "information", "warning" or "error"."""
        self.query_one(MessageLine).say(text, severity)

    def go_to(self, text: str) -> None:
        """Go to a place.

        Raises:
            KprobeTuiError: there is none.
        """
        raise NotImplementedError

    def leave(self, answer: str) -> None:
        """The answer to whether to quit."""
        raise NotImplementedError

    def trace_answer(self, text: str) -> None:
        """The answer to which functions are to be traced."""
        raise NotImplementedError

    def complete_line(self, what: str, text: str) -> list[str]:
        """What a line that is being typed may become; `what` as for `MessageLine.ask`."""
        raise NotImplementedError

    def stop_playing(self) -> None:
        """No more slow motion."""
        raise NotImplementedError
