"""Completion of a definition while it is typed: what fits is listed, Tab takes it."""

from flowkit import User, flow
from textual.widgets import Input, OptionList

from engine.session.browse.completion import Completion
from tui.screens.probe_dialog import ProbeDialog


def _listed(user: User) -> list[str]:
    options = user.app.screen.query_one(OptionList)
    return [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]


def test_tab_takes_what_is_listed() -> None:
    async def steps(user: User) -> None:
        await user.press("p")
        line = user.app.screen.query_one(Input)
        await user.type("p:demo/e acker")
        await user.until(lambda: "ackermann" in _listed(user))
        await user.press("tab")
        assert line.value == "p:demo/e ackermann"
        await user.type("p:demo/e ackermann m=%d")
        await user.until(lambda: _listed(user) == ["%dx", "%di"])
        await user.press("down", "tab")
        assert line.value == "p:demo/e ackermann m=%di"
        await user.type("p:demo/e ackermann m=%di:u1")
        await user.press("tab")  # faster than the list comes
        assert line.value == "p:demo/e ackermann m=%di:u16"
        await user.press("enter")
        await user.until(lambda: user.probes)
        assert user.probes[0].row.line == "p:demo/e ackermann m=%di:u16"

        await user.press("p")
        line = user.app.screen.query_one(Input)
        await user.type("p:d")
        await user.until(lambda: _listed(user) == ["demo/"])
        await user.press("tab")
        assert line.value == "p:demo/"
        await user.press("tab")  # nothing fits: nothing happens
        assert line.value == "p:demo/"

    flow(steps)


def test_in_the_middle_of_a_line() -> None:
    async def steps(user: User) -> None:
        await user.press("p")
        line = user.app.screen.query_one(Input)
        await user.type("r ackermann v=$ret w=%si")
        line.cursor_position = len("r ackermann v=$ret")
        await user.press("tab")
        assert line.value == "r ackermann v=$retval w=%si"
        assert line.cursor_position == len("r ackermann v=$retval")

    flow(steps)


def test_leaving_while_words_are_looked_up() -> None:
    async def steps(user: User) -> None:
        await user.press("p")
        screen = user.app.screen
        assert isinstance(screen, ProbeDialog)
        await screen.query_one(OptionList).remove()  # as an app that ends does
        screen._show_offers("p:d", 3, Completion(0, ("demo/",)))
        screen._show("p:d", [])

    flow(steps)
