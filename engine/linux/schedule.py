"""A schedule as data: who got the processor, when, and why the one before gave it up.

A line is `TICK THREAD WHY`: at that tick of the guest's clock, which counts from the start of the
run, the thread of this id gets the processor, as the one before is preempted, yields, waits, stops
or ends. There is a line wherever another thread gets it, or the same one keeps it although another
could have got it; nothing else is left to choose, so that a schedule is the whole of what seed and
kind of turns decide.
"""

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct

from engine.errors import KprobeTuiError

_TITLE: Final = "# kprobe-tui schedule"
_LINE: Final = re.compile(r"(\d{1,18})\s+(\d{1,9})\s+([a-z]+)")
_SEED: Final = re.compile(r"#\s*(random )?seed:\s*(\d{1,18})")


class ScheduleError(KprobeTuiError):
    """A schedule that cannot be read, or that does not fit the guest."""

    hint = "a schedule fits the program, arguments, input and options that it was recorded with"


class Why(Enum):
    """The reasons for which a thread gives the processor up."""

    PREEMPTED = "preempted"
    YIELDS = "yields"
    WAITS = "waits"
    STOPS = "stops"
    ENDS = "ends"


class Choice(Struct, frozen=True):
    """The choice of a thread to run.

    Attributes:
        tick: of the guest's clock.
        thread: id of the one that gets the processor.
        why: the one before gave it up.
    """

    tick: int
    thread: int
    why: Why

    def __str__(self) -> str:
        return f"{self.tick} {self.thread} {self.why.value}"


class Schedule(Struct, frozen=True):
    """The choices of a run.

    Attributes:
        choices: in order.
        name: of its file, for messages.
        lines: number of each choice's line in the file; of the line behind the last one, too.
        seed: of the random numbers of the run that it was recorded of, None if it does not say.
    """

    choices: tuple[Choice, ...]
    name: str = "schedule"
    lines: tuple[int, ...] = ()
    seed: int | None = None

    def where(self, index: int) -> str:
        """The place of a choice in the file, in words."""
        line = self.lines[index] if index < len(self.lines) else index + 1
        return f"{self.name}: line {line}"


def header(guest: str, seed: int, randomness: int, turns: str) -> str:
    """The lines in front of a schedule's choices.

    Args:
        guest: and its arguments.
        seed: of the turns.
        randomness: the seed of random numbers.
        turns: their kind.
    """
    return "\n".join(
        (
            _TITLE,
            f"# guest: {guest}",
            f"# seed: {seed}",
            *([f"# random seed: {randomness}"] if randomness != seed else []),
            f"# turns: {turns}",
            "# tick thread why",
            "",
        )
    )


def parse(lines: Iterable[str], name: str) -> Schedule:
    """Read a schedule.

    Args:
        lines: of the file.
        name: of the file.

    Raises:
        ScheduleError: it is none; the line is named.
    """
    choices: list[Choice] = []
    numbers: list[int] = []
    seed: int | None = None
    whys = {why.value: why for why in Why}
    number = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("#"):
            found = _SEED.fullmatch(text)
            seed = int(found[2]) if found is not None else seed
        elif text:
            match = _LINE.fullmatch(text)
            if match is None or match[3] not in whys:
                raise ScheduleError(
                    f"{name}: line {number}: {text!r} is not TICK THREAD WHY, "
                    f"WHY being one of {', '.join(whys)}"
                )
            choice = Choice(int(match[1]), int(match[2]), whys[match[3]])
            if choices and choice.tick < choices[-1].tick:
                raise ScheduleError(
                    f"{name}: line {number}: tick {choice.tick} is before "
                    f"that of the line in front of it, {choices[-1].tick}"
                )
            choices.append(choice)
            numbers.append(number)
    return Schedule(tuple(choices), name, (*numbers, number + 1), seed)
