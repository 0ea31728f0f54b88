"""`:explore`: what is refused before anything runs; a lesson's flow has a search with a result."""

from typing import Any, cast

import pytest
from controlkit import sample

from engine.errors import CommandError
from engine.session import GuestConfig
from tui.exploring import Exploring

RACE = GuestConfig(sample("x86_64", "race"), history=True, seed=3)


@pytest.mark.parametrize("text", ["none", "0", "-1", "1 2", "100001"])
def test_a_number_of_seeds_is_needed(text: str) -> None:
    with pytest.raises(CommandError, match="a number of seeds, 1 to 100000"):
        Exploring(RACE, cast(Any, None), cast(Any, None)).begin(text, print)


@pytest.mark.parametrize(
    "options", [{"isolated": True}, {"env": ("A=1",)}, {"shares": (("/tmp", False),)}]
)
def test_options_of_the_guest_are_not_left_out(options: dict[str, Any]) -> None:
    config = GuestConfig(RACE.guest, **options)
    with pytest.raises(CommandError, match="has options here"):
        Exploring(config, cast(Any, None), cast(Any, None)).begin("", print)
