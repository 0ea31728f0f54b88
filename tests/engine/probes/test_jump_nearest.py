"""The nearest place of a function where a jump would do."""

import pytest
from archkit import JUMPING
from sessionkit import SAMPLES, loaded


@pytest.mark.parametrize("arch", JUMPING)
def test_the_nearest_place_for_a_jump(arch: str) -> None:
    """What is named can have one, and nothing nearer in the function can."""
    with loaded(SAMPLES / arch / "jumps") as guest:
        verdicts = guest.session.probes().verdicts
        placed = list(verdicts.of_all())
    good: dict[tuple[int, int] | None, list[int]] = {}
    for one in placed:
        if one.technique == "jump":
            good.setdefault(one.place.function, []).append(one.place.link)
    named = 0
    for one in placed:
        if one.technique == "jump" or not one.judgement.ok:
            assert one.nearest_jump is None
            continue
        here = one.place.link
        wanted = min((abs(link - here) for link in good.get(one.place.function, [])), default=None)
        found = one.nearest_jump
        assert wanted == (None if found is None else abs(found - here))
        named += found is not None
    assert named or arch == "aarch64"
