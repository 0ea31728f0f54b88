"""Hits in bundles phase by phase: what is drawn, and backtraces from inside the slot."""

import pytest
from controlkit import Held, held, sample

import engine.session.protocol.commands as cmd
from engine.arch.drawing import DrawnHit
from engine.arch.ia64.analyze import analyze
from engine.arch.ia64.bundle import Bundle
from engine.arch.ia64.drawing import draw
from engine.arch.ia64.encode import assemble, nop
from engine.arch.plan import Mode, Rules
from engine.session.protocol.views import HitView

GUEST = sample("ia64", "recursion")
CALL = "fibonacci+0x32"  # br.call.sptk.many b0=fibonacci
BRANCH = "fibonacci+0x12"  # (p6) br.cond.spnt to the leaf


def hit(guest: Held) -> HitView:
    found = guest.view.hit
    assert found is not None
    return found


def stopped_at(guest: Held, place: str, *, times: int = 1) -> None:
    """In the first phase of a hit."""
    guest.do(cmd.ToggleBreak(place), *(cmd.Continue() for _ in range(times)), cmd.StepPhase())


def chain(guest: Held) -> list[str]:
    return [frame.function for frame in guest.view.frames]


@pytest.mark.parametrize("times", [1, 3])
def test_backtraces_stay_whole_from_inside_the_slot(times: int) -> None:
    """A copied call goes astray until it is put right: neither pc nor b0 is the program's."""
    with held(GUEST) as guest:
        stopped_at(guest, CALL, times=times)
        before = chain(guest)
        assert before == ["fibonacci"] * times + ["main", "_start"]
        seen = []
        while guest.view.hit is not None and guest.view.hit.next:
            seen.append((guest.view.hit.next, chain(guest)))
            guest.do(cmd.StepPhase())
        assert [name for name, _ in seen][:3] == ["trap", "pre-handlers", "out of line"]
        for name, frames in seen:
            called = name in ("fix-up", "post-handlers", "resume")
            assert frames == ["fibonacci"] * called + before, name
        assert guest.view.pc == guest.address("fibonacci")


def test_what_is_drawn() -> None:
    with held(GUEST) as guest:
        stopped_at(guest, BRANCH)
        site, copy = hit(guest).units
        assert (site.what, copy.what) == ("site", "copy")
        assert site.form == copy.form == "template 11, MIB;"
        assert site.address == guest.address("fibonacci") + 0x10
        assert [part.name for part in site.parts] == ["0 M ", "1 I ", "2 B "]
        assert [part.role for part in site.parts] == ["", "", "break"]
        assert site.parts[2].text == "(p06) break.b 0x81000"
        assert site.parts[2].instead.startswith("(p06) br.cond.spnt.few 0x40000000000005")
        assert [part.role for part in copy.parts] == ["idle", "idle", "step"]


def test_a_boosted_hit_is_drawn_with_what_it_runs_on_in() -> None:
    with held(GUEST) as guest:
        stopped_at(guest, "fibonacci")
        site, copy, boost = hit(guest).units
        assert [part.role for part in copy.parts] == ["step", "run", "run"]
        assert boost.form == "template 05, MLX;"
        assert boost.parts[1].text == f"brl.many {site.address + 16:#x}"
        assert {part.role for part in boost.parts} == {"jump"}
        guest.do(cmd.ToggleBreak("fibonacci+0x2"))  # the copy would run past it
        site, copy, boost = hit(guest).units
        assert [part.role for part in site.parts] == ["break", "", "other"]
        assert [part.role for part in copy.parts] == ["step", "idle", "idle"]
        assert {part.role for part in boost.parts} == {"idle"}


def test_long_instructions_are_drawn_as_one() -> None:
    word, extra = assemble("movl r9=0x123456789abcdef0", "X")
    raw = Bundle(4, (nop("M"), extra, word)).pack()
    plan = analyze(raw, 0x4001, Rules.KPROBE, Mode.STRICT, b"")
    assert plan.bits is not None
    value, mask = (int.from_bytes(part, "little") for part in plan.bits)
    standing = (int.from_bytes(raw, "little") & ~mask | value).to_bytes(16, "little")
    site, copy = draw(plan, DrawnHit(standing, 0x8000, raw, boosted=False))
    assert (site.form, site.address, copy.address) == ("template 04, MLX", 0x4000, 0x8000)
    assert [part.name for part in site.parts] == ["0 M ", "1 LX"]
    assert [part.role for part in (*site.parts, *copy.parts)] == ["", "break", "idle", "step"]
    assert site.parts[1].text.startswith("break.x ")
    assert site.parts[1].instead == copy.parts[1].text == "movl r9=0x123456789abcdef0"
