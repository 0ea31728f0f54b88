"""The machinery of a jump probe: the parts of its detour, where the guest is, what is freed."""

from controlkit import sample
from flowkit import User, flow

from engine.session import GuestConfig
from engine.session.protocol.views import RunState

SMALL = (80, 24)


def lines(user: User) -> list[str]:
    """What the pane holds."""
    shown = user.panes.machinery.lines
    return [shown.plain(number) for number in range(shown.line_count)]


async def stop_at_the_probe(user: User) -> None:
    await user.press("p")
    await user.type("fibonacci")
    await user.press("enter")
    await user.until(lambda: user.probes, "a probe")
    await user.press("8", "b", "c")
    await user.state(RunState.STOPPED)
    await user.press("4")


def carried_out(user: User) -> int:
    return len(user.view.hit.done) if user.view.hit is not None else 0


async def phase(user: User) -> None:
    before = carried_out(user)
    await user.press("full_stop")
    await user.until(lambda: carried_out(user) != before, "a phase")


def test_a_jump_is_stepped_and_its_zombie_is_shown() -> None:
    async def steps(user: User) -> None:
        await stop_at_the_probe(user)
        for _ in range(5):
            await phase(user)
        shown = lines(user)
        hit = user.view.hit
        assert hit is not None
        assert hit.next == "displaced"
        assert f"[{hit.done[-1].name}]" in shown[0], "the phase that was carried out"
        assert "5/" in shown[0] + shown[1]
        site = next(row for row in shown if row.startswith("site"))
        assert site.endswith("cc 54 89 f8 55  for  41 54 89 f8 55  jmp 0x200000")
        (here,) = (
            row.strip() for row in shown if row.strip()[0] == "\N{BLACK RIGHT-POINTING POINTER}"
        )
        assert "push r12  of 400720" in here
        assert any(row.startswith("detours 1 in use") for row in shown)
        await user.press("8", "x")
        await user.until(lambda: not user.probes, "the probe is gone")
        assert any("0 in use, 1 waiting to be freed" in row for row in lines(user))
        assert any("the guest is still in it" in row for row in lines(user))
        await user.press("c")
        await user.state(RunState.ENDED)
        assert any("0 in use, 0 waiting to be freed" in row for row in lines(user))

    config = GuestConfig(sample("x86_64", "recursion"), technique="jump")
    flow(steps, config=config, size=SMALL)


def test_djprobe_counts_the_cpus_that_have_passed() -> None:
    async def steps(user: User) -> None:
        await stop_at_the_probe(user)
        for hit in range(1, 5):
            for _ in range(3):
                await phase(user)
            text = " ".join(" ".join(lines(user)).split())
            assert f"{hit} of 4 have passed" in text
            assert user.probes[0].technique == ("jump" if hit == 4 else "breakpoint")
            before = user.view
            await user.press("c")
            await user.until(lambda: user.view.time > before.time, "the next hit")  # noqa: B023
            await user.state(RunState.STOPPED)
        await phase(user)
        assert user.view.hit is not None
        assert user.view.hit.next == "jump"

    config = GuestConfig(sample("aarch64", "recursion"), technique="djprobe")
    flow(steps, config=config)


def test_another_theme_has_other_colours() -> None:
    async def steps(user: User) -> None:
        await stop_at_the_probe(user)
        await phase(user)
        shown = user.panes.machinery.lines

        def colours() -> set[str]:
            row = shown.render_lines(shown.size.region)[0]
            styles = [part.style for part in row if part.style is not None]
            return {str(style.color) for style in styles if style.color is not None}

        dark = colours()
        user.app.theme = "textual-light"
        await user.pilot.pause()
        assert not dark & colours()

    flow(steps)
