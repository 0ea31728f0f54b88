"""Names that are looked up late are those that there are."""

import subprocess
import sys

import click
import pytest

from engine.cli.grouped import ChoiceOfLater
from engine.session.headless.choices import RETURNS, TECHNIQUE_NAMES
from engine.session.protocol.config import AUTO


def test_what_is_usual_comes_first_and_needs_no_lookup() -> None:
    assert TECHNIQUE_NAMES[0] == RETURNS[0] == AUTO

    def names() -> tuple[str, ...]:
        raise AssertionError("nobody asked for them")

    assert ChoiceOfLater(AUTO, names).convert(AUTO, None, None) == AUTO


def test_others_are_looked_up() -> None:
    choice = ChoiceOfLater(AUTO, lambda: TECHNIQUE_NAMES)
    assert choice.convert("jump", None, None) == "jump"
    with pytest.raises(click.BadParameter, match="djprobe"):
        choice.convert("nothing", None, None)


def test_help_has_the_names_and_what_they_mean() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui", "check", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "|".join(TECHNIQUE_NAMES) in done.stdout
    assert "safety check on simulated CPUs" in " ".join(done.stdout.split())
