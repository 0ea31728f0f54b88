"""A dialog that is told to go twice goes once."""

import asyncio

from textual.app import App

from tui.screens.dialog import Dialog


def test_a_dialog_goes_once() -> None:
    """The second click of a double click takes neither the screen below nor the program."""

    async def go() -> None:
        app = App[None]()
        returned: list[int | None] = []
        async with app.run_test() as pilot:
            below, above = Dialog[int](), Dialog[int]()
            await app.push_screen(below)
            await app.push_screen(above, returned.append)
            above.dismiss(7)
            await above.dismiss(8)
            await pilot.pause()
            assert app.screen is below
            await below.dismiss()
            await below.dismiss()
            await pilot.pause()
            assert len(app.screen_stack) == 1
        assert returned == [7]

    asyncio.run(go())
