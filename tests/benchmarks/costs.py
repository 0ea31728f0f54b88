"""Costs of whole commands: processor time of several versions in turn, as figures of a table."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.benchmarks import measuring

Words = tuple[str, ...]

LIMIT: Final = 120.0
"""Seconds of wall clock after which a command is given up."""
_PEAK, _WALL, _CORES = "MiB", "s, wall", "wall / CPU"
"""Units of figures that are not processor time: the most memory of a command, the time that
passes, and that time over the CPU time, which is 0.5 where two processors share the work."""


class Slope(NamedTuple):
    """Two commands, of which one does more: the difference is what that costs.

    Attributes:
        many: a command.
        few: with less to do; nothing if empty.
    """

    many: Words
    few: Words = ()


@dataclass(frozen=True)
class Cost:
    """The CPU time of whole commands that something takes.

    Attributes:
        name: of it.
        unit: of the figure.
        reach: the figure to be reached; 0 for none.
        aim: the figure that is aimed at.
        of: what is measured: words behind `kprobe-tui`.
        scale: makes a figure of its seconds.
        minus: the same without what is measured.
        over: the figure is the ratio to this.
        peer: another tool's whole commands, to which the figure is the ratio.
        expected: exit code.
    """

    name: str
    unit: str
    reach: float
    aim: float
    of: Slope
    scale: float = 1
    minus: Slope | None = None
    over: Slope | None = None
    peer: Slope | None = None
    expected: int = 0


@dataclass
class Figures:
    """Figures of one row by version, or by tool."""

    name: str
    unit: str
    reach: float
    aim: float
    found: dict[str, float] = field(default_factory=dict)

    def cells(self, versions: Sequence[str]) -> list[str]:
        """As a line of the table."""
        values = [self.found.get(version, math.nan) for version in versions]
        goals = [self.reach, self.aim]
        return [
            f"{self.name}, {self.unit}",
            *("-" if math.isnan(value) else f"{value:.3g}" for value in values),
            *(f"{goal:.3g}" if 0 < goal < math.inf else "-" for goal in goals),
            measuring.verdict(values[0], *goals) if self.reach else "",
        ]


class Spending:
    """Runs commands in turn, and keeps the least that each has taken."""

    def __init__(self, runs: int, environment: dict[str, str]) -> None:
        """Each is run so often, with these words of the environment besides."""
        self._runs = runs
        self._cpu: dict[Words, float] = {}
        self._wall: dict[Words, float] = {}
        self._peak: dict[Words, float] = {}
        self._environment = environment

    def run(self, commands: dict[Words, int]) -> None:
        """Run commands, which end with these exit codes, if they have not been run yet."""
        new = {words: code for words, code in commands.items() if words not in self._cpu}
        for _ in range(self._runs):
            for words, code in new.items():
                if math.isnan(self._cpu.get(words, 0)):
                    continue
                try:
                    spent = measuring.run_process(words, self._environment, code, LIMIT)
                except RuntimeError as error:
                    print(f"left out: {str(error)[-200:]}", file=sys.stderr)
                    self._cpu[words] = self._wall[words] = self._peak[words] = math.nan
                    continue
                self._cpu[words] = min(self._cpu.get(words, math.inf), spent.cpu)
                self._wall[words] = min(self._wall.get(words, math.inf), spent.wall)
                self._peak[words] = spent.peak / 1024

    def of(self, slope: Slope) -> float:
        """CPU seconds that more work has taken."""
        return self._cpu[slope.many] - (self._cpu[slope.few] if slope.few else 0)

    def whole(self, words: Words, unit: str) -> float:
        """What a command as a whole has taken, in one of the units that are no CPU time."""
        if unit == _PEAK:
            return self._peak[words]
        return self._wall[words] / (self._cpu[words] if unit == _CORES else 1)


def measured(cost: Cost, versions: dict[str, Words], spending: Spending) -> Figures:
    """Measure one row."""
    parts = [each for each in (cost.of, cost.minus, cost.over) if each is not None]
    commands: dict[Words, int] = {}
    for version in versions.values():
        for words in (each for part in parts for each in part if each):
            commands[version + words] = cost.expected
    commands.update({words: cost.expected for words in cost.peer or () if words})
    spending.run(commands)
    figures = Figures(cost.name, cost.unit, cost.reach, cost.aim)
    for name, version in versions.items():
        of, minus, over = (
            Slope(version + part.many, version + part.few if part.few else ()) if part else None
            for part in (cost.of, cost.minus, cost.over)
        )
        assert of is not None
        if cost.unit in (_PEAK, _WALL, _CORES):
            figures.found[name] = spending.whole(of.many, cost.unit)
            continue
        value = spending.of(of) - (spending.of(minus) if minus else 0)
        divisor = over or cost.peer
        figures.found[name] = cost.scale * value / (spending.of(divisor) if divisor else 1)
    return figures
