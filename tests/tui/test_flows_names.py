"""Names of a program that would reach for the terminal, or mean something as markup."""

from pathlib import Path

import pytest
from controlkit import sample
from flowkit import User, flow, place

from engine.session.protocol.views import RunState

PATCHES = (
    (b"fibonacci", b"f\x1b]0;own\x07"),
    (b"factorial", b"[RED]fa\x9b["),
    (b"ackermann", b"[$a]\xe2\x80\xaebc"),
    (b"print_u64", b"p_[/red]x"),
    (b"recursion.c", b"re[b]sion\n."),
)


def hostile(folder: Path) -> str:
    data = Path(sample("x86_64", "recursion")).read_bytes()
    for old, new in PATCHES:
        assert len(old) == len(new)
        data = data.replace(old, new)
    file = folder / "[red]gu\x1b[mest"
    file.write_bytes(data)
    file.chmod(0o755)
    return str(file)


def check(user: User) -> None:
    assert all(line.isprintable() for line in user.screen.split("\n"))


@pytest.mark.slow
def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/f f\x1b]0;own\x07 s=+0(%di):string")
        await place(user, "p:demo/a [$a]\u202ebc")
        await place(user, "p:demo/p print text=+0(%di):string")
        await user.command("graph *")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.shows("[RED]fa\\x9b[")
        for number in "1234567890":
            await user.press(number)
            check(user)
            await user.press("z")
            check(user)
            await user.press("z")
        await user.press("6", "Y")
        assert user.clipboard.isprintable()
        await user.press("1", "y")
        await user.until(lambda: "Why" in user.screen)
        check(user)
        await user.press("escape")
        for word in ("own", "[$a]", "fa", "probe", "p_["):
            await user.press("ctrl+p")
            await user.type(word)
            await user.until(lambda: len(user.app.screen_stack) > 1)
            check(user)
            await user.press("escape")
        await user.command("b [$a]\u202ebc+1")
        await user.until(lambda: "[$a]" in user.said)
        check(user)

    flow(steps, guest=hostile(tmp_path))
