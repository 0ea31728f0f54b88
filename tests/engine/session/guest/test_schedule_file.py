"""The file of a schedule."""

from pathlib import Path

from engine.linux.schedule import Choice, Why, parse
from engine.session.guest.outputs import OutputFile
from engine.session.guest.schedule_file import ScheduleFile
from engine.session.protocol.config import GuestConfig

CONFIG = GuestConfig("guest\n", ("a",), seed=7)
CHOICES = tuple(Choice(tick, 1000 + tick % 2, Why.YIELDS) for tick in range(2000))


def written(path: str) -> tuple[str, ...]:
    """Write all choices; the lines of the remark at the end."""
    target = OutputFile("--record-schedule", path)
    file = ScheduleFile(target, CONFIG, 3, "1-2")
    for choice in CHOICES:
        file.add(choice)
    remarks = file.end()
    target.close()
    return tuple(line for remark in remarks for line in remark.lines)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    assert written(str(tmp_path / "plan")) == ()
    text = (tmp_path / "plan").read_text()
    assert "# guest: guest\\n a\n" in text
    assert parse(text.splitlines(), "plan").choices == CHOICES


def test_a_full_disk_is_told_once_and_at_the_end() -> None:
    (line,) = written("/dev/full")
    assert line == (
        "--record-schedule /dev/full: No space left on device; the schedule is not whole"
    )
