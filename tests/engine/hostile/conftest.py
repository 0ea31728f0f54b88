"""Runs a mode of a hostile guest on each architecture."""

from collections.abc import Callable
from pathlib import Path

import pytest
from archkit import HOSTILE
from guestrun import Outcome, guest, run

Attack = Callable[..., Outcome]


@pytest.fixture(
    params=[
        pytest.param(arch, marks=[pytest.mark.slow] if number else [])
        for number, arch in enumerate(HOSTILE)
    ]
)
def arch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The guest's current directory; its parent stays hidden."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def attack(arch: str, home: Path) -> Attack:
    """Call with a program, the words of its mode, and options of `run`."""

    def go(program: str, *words: object, options: tuple[str, ...] = ()) -> Outcome:
        limits = () if "--timeout" in options else ("--timeout", "300")
        return run("run", *limits, *options, guest(arch, program), *map(str, words), cwd=home)

    return go
