"""The objects that keys, the command line and the palette act on."""

from typing import Protocol

from msgspec import Struct

from engine.session.browse import Browser
from tui.body import Body
from tui.desk import Desk
from tui.event_export import EventExport
from tui.function_trace import FunctionTrace
from tui.guest_editor import GuestEditor
from tui.history import HistoryWalk
from tui.motions import Motions, SlowMotion
from tui.navigator import Navigator
from tui.panes.registry import Panes
from tui.probe_editor import ProbeEditor
from tui.quitting import Quitting


class Controls(Struct, frozen=True):
    """All of them.

    Attributes:
        desk: the interface itself.
        browser: the program's files.
        body: which pane is seen and has the focus.
        panes: all panes.
        navigator: goes to places.
        slow_motion: plays phases.
        motions: moves the guest.
        probes: places probes.
        guest: changes instructions, registers, memory.
        functions: traces functions.
        history: goes to moments of the recorded run.
        quitting: ends the interface.
        export: writes the events to a file.
    """

    desk: Desk
    browser: Browser
    body: Body
    panes: Panes
    navigator: Navigator
    slow_motion: SlowMotion
    motions: Motions
    probes: ProbeEditor
    guest: GuestEditor
    functions: FunctionTrace
    history: HistoryWalk
    quitting: Quitting
    export: EventExport

    @classmethod
    def of(cls, desk: Desk, browser: Browser, body: Body) -> "Controls":
        """Wire them."""
        panes = body.panes
        navigator = Navigator(desk, browser, body)
        slow_motion = SlowMotion(desk, panes)
        motions = Motions(desk, panes, navigator, slow_motion)
        quitting = Quitting(desk, panes.events.store)
        return cls(
            desk,
            browser,
            body,
            panes,
            navigator,
            slow_motion,
            motions,
            ProbeEditor(desk, browser, panes, navigator),
            GuestEditor(desk, panes),
            FunctionTrace(desk, browser, body),
            HistoryWalk(desk, body, panes, motions),
            quitting,
            EventExport(desk, panes, quitting),
        )


class Controlled(Protocol):
    """Whoever has controls: the app, as its palette sees it."""

    controls: Controls
