"""What quitting asks about."""

from typing import cast

from eventkit import FACT, INFOS, NAMES, facts

from engine.session.protocol.views import GuestView, RunState
from tui.desk import Desk
from tui.quitting import Quitting
from tui.store import EventStore
from tui.widgets.bars import Question


class AskedDesk:
    """Notes what is asked."""

    view = GuestView(state=RunState.ENDED)

    def __init__(self) -> None:
        self.asked = ""

    def ask(self, question: Question) -> None:
        """Note it."""
        self.asked = question.hint

    def leave(self) -> None:
        """Nothing is asked."""
        self.asked = ""


def test_a_program_that_is_alive() -> None:
    """One that has ended is not, even if one stands in its past."""
    desk = AskedDesk()
    quitting = Quitting(cast(Desk, desk), EventStore(NAMES))
    for state, exit_code, alive in (
        (RunState.STOPPED, None, True),
        (RunState.RUNNING, None, True),
        (RunState.STOPPED, 0, False),
        (RunState.RUNNING, 0, False),
        (RunState.ENDED, 0, False),
    ):
        desk.view = GuestView(state=state, exit_code=exit_code)
        quitting.ask()
        assert ("alive" in desk.asked) is alive, (state, exit_code)


def test_events_that_are_in_no_file() -> None:
    store, desk = EventStore(NAMES), AskedDesk()
    quitting = Quitting(cast(Desk, desk), store)
    store.declare(INFOS)

    def asked() -> str:
        quitting.ask()
        return desk.asked

    assert not asked()
    store.append(facts(20))
    assert "20 events are in no file" in asked()
    quitting.exported(store.version, store.end)
    assert not asked()
    store.append(facts(1))
    assert "21 events are" in asked()
    quitting.exported(store.version, store.end)
    store.clear()
    assert not asked()
    store.declare(INFOS)
    store.append(facts(9))  # fewer, but others
    assert "9 events are" in asked()
    quitting.exported(store.version, store.end)
    store.begin_refill()
    store.append(facts(5))
    store.end_refill()
    assert "5 events are" in asked()
    store.erase({FACT})
    assert not asked()
