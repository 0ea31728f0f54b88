"""Boundaries in a guest's memory: many asked for together as each for itself."""

from sessionkit import SAMPLES, loaded

from engine.session.guest.guest_code import GuestCode


def boundaries(code: GuestCode, start: int, end: int) -> list[bool]:
    return [code.boundary(address) for address in range(start, end)]


def test_many_are_asked_for_as_one() -> None:
    """In code as it is in its file, and in code that was changed in memory."""
    with loaded(SAMPLES / "x86_64" / "structs") as guest:
        probing = guest.session.probes()
        code = probing.manager.code_map
        assert isinstance(code, GuestCode)
        image = guest.session.opened.image
        (text,) = (one for one in image.sections if one.name == ".text")
        start = guest.session.probes().where("main") or 0
        start, end = max(start - 300, text.addr), min(start + 700, text.addr + text.size)
        for changed in (False, True):
            if changed:
                probing.overlay.rewrite(start + 350, b"\x90" * 40)
            each = boundaries(code, start, end)
            with code.settled():
                assert boundaries(code, start, end) == each
            assert 100 < sum(each) < len(each)
