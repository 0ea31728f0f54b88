"""Long work on a file is ended between two units, and can be done again."""

from pathlib import Path

import pytest

from engine.errors import CommandError
from engine.image.elf import ElfImage
from engine.image.longwork import listening, look_up
from engine.image.names import GlobalNames
from engine.image.variables import Variables


def test_work_is_ended_and_done_again(guests: Path) -> None:
    info = Variables(ElfImage.open(str(guests / "amd64" / "unw-O2")), []).info
    assert info is not None
    names = GlobalNames(info)

    def end() -> None:
        raise CommandError("Quit")

    for _ in range(2):
        with listening(end), pytest.raises(CommandError, match="Quit"):
            list(names.listed("function"))
    assert "cstart" in {entry.name for entry in names.listed("function")}


def test_a_listener_is_told_of_the_file_and_how_far_it_is(guests: Path) -> None:
    path = str(guests / "amd64" / "unw-O2")
    info = Variables(ElfImage.open(path), []).info
    assert info is not None
    heard: list[tuple[str, float]] = []
    with listening(lambda: None, lambda *reached: heard.append(reached)):
        look_up()
        units = list(info.units())
    sizes = [unit.next for unit in units]
    parts = [0.0, *(end / sizes[-1] for end in sizes[:-1])]
    assert [part for _, part in heard] == pytest.approx(parts)
    assert {Path(file).name for file, _ in heard} == {"unw-O2"}
    look_up(path, 1, 2)
    assert len(heard) == len(units)


def test_nobody_listens_outside() -> None:
    heard: list[int] = []
    with listening(lambda: heard.append(1)):
        look_up()
    look_up()
    assert heard == [1]
