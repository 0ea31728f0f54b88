"""Memory as bytes, words, strings and an object's parts: shown, changed, refused in the past."""

from controlkit import sample
from flowkit import User, flow

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.panes.memory_rows import Mode
from tui.panes.memory_strings import PAGE, StringScan


async def _stopped(user: User) -> None:
    await user.command("b transfer")
    await user.press("c")
    await user.state(RunState.STOPPED)


async def _set(user: User, text: str) -> None:
    await user.press("equals_sign")
    await user.type(text)
    await user.press("enter")


def test_an_object_has_its_parts_laid_over_its_bytes() -> None:
    async def steps(user: User) -> None:
        await user.command("examine nosuch")
        await user.says('No symbol "nosuch" in current context')
        await _stopped(user)
        await user.command("examine payment")
        await user.shows("struct payment  40 bytes at")
        await user.press("z")
        rows = user.panes.memory.lines
        shown = [" ".join(rows.plain(index).split()) for index in range(rows.line_count)]
        assert shown[1] == "+0x000 id 1001 u64 e9 03 00 00 00 00 00 00"
        assert shown[4] == "+0x018 amount 300 s32 2c 01 00 00"
        assert shown[9].startswith('+0x020 reference "rent 05" char [8]')
        rows.move_to(4)
        await _set(user, "77")
        await user.until(lambda: "amount       77  s32" in user.screen)
        await user.command("print payment->amount")
        await user.says("= 77")
        await _set(user, "0x100000000")
        await user.says("0x100000000 does not fit into 4 bytes")
        await user.press("escape")
        rows.move_to(2)
        await user.press("enter")
        assert user.panes.memory.source.mode is Mode.BYTES
        grace = user.address("grace")
        assert user.panes.memory.source.address(rows.cursor) == grace
        await user.command("examine &grace")
        await user.shows("is_member")
        assert "+0x009:0 is_member" in user.screen
        assert "2 bytes of padding" in user.screen
        rows.move_to(3)
        await user.press("equals_sign")
        await user.says("is some bits of a number")
        await user.command("break deposit")
        await user.press("c")
        await user.until(lambda: "deposit" in user.view.location)
        await user.press("f")
        await user.until(lambda: "balance     4923" in user.screen, "anew at each stop")

    flow(steps, guest=sample("x86_64", "structs"))


def test_words_and_strings_are_shown_and_changed() -> None:
    async def steps(user: User) -> None:
        await _stopped(user)
        source, rows = user.panes.memory.source, user.panes.memory.lines
        await user.command(f"examine {user.address('alan'):#x}")
        await user.press("z", "m")
        await user.shows("words")
        await user.shows("00004e7f00000017 0000000000401ca0  → grace")
        await _set(user, f"{user.address('grace'):#x} 7")
        await user.shows("0000000000401ca0 0000000000000007  → grace")
        await user.press("m")
        await user.shows('"Mill Lane"')
        assert source.mode is Mode.STRINGS
        await _set(user, "Mill Street")
        await user.says("11 bytes, and there is room for 9")
        await user.press("escape")
        await _set(user, "Hill\\x21")
        await user.shows('"Hill!"')
        await user.command("print alan.home.street")
        await user.says("Hill!")
        rows.move_to(rows.line_count - 1)
        await user.press("enter")
        await user.until(lambda: rows.line_count >= 1 and "mapped" not in rows.plain(0))
        await user.press("m")
        assert source.mode is Mode.MAP

    flow(steps, guest=sample("x86_64", "structs"))


def test_the_past_is_not_changed() -> None:
    async def steps(user: User) -> None:
        await _stopped(user)
        await user.command("examine payment")
        await user.shows("struct payment")
        await user.press("I")
        await user.until(lambda: user.view.history is not None and user.view.history.past)
        await user.command(f"examine {user.address('alan'):#x}")
        await _set(user, "00")
        await user.says("the past cannot be changed")

    config = GuestConfig(sample("x86_64", "structs"), history=True)
    flow(steps, config=config)


def test_strings_across_pages_in_any_letters_up_to_what_is_known() -> None:
    text = "Grüße".encode()
    first = b"\0" * (PAGE - 3) + text[:3]
    pages = {0: first, PAGE: text[3:] + b"\0ab\0" + b"a\n\x1b\\b"}
    scan = StringScan(lambda page: pages.get(page, b""))
    scan.begin(0)
    assert [(found.address, found.text, found.ended) for found in scan.found] == [
        (PAGE - 3, '"Grüße"', True),
        (PAGE + 8, '"a\\n\\033\\\\b"', False),
    ]
    scan.begin(PAGE)
    assert scan.found[0].address == PAGE + 8, "ü is cut, and what is left is short"
    assert scan.end == 17 * PAGE
