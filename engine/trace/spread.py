"""A quantity's sum, mean, extremes and deviation, from one value after the other."""

from math import sqrt

from msgspec import Struct


class Spread(Struct):
    """The values of one quantity, such as the times of a function's calls.

    Attributes:
        count: how many values there are.
        sum: of all of them.
        squares: the sum of their squares.
        least: the smallest one, 0 where there is none.
        most: the greatest one, likewise.
    """

    count: int = 0
    sum: int = 0
    squares: int = 0
    least: int = 0
    most: int = 0

    def add(self, value: int) -> None:
        """Count one more value."""
        if not self.count or value < self.least:
            self.least = value
        if value > self.most:
            self.most = value
        self.count += 1
        self.sum += value
        self.squares += value * value

    @property
    def mean(self) -> float:
        """The average, 0 where there is no value."""
        return self.sum / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The relative standard deviation in percent of the mean (uftrace-report(1), `stdv`)."""
        if not self.sum:
            return 0.0
        # In whole numbers: the difference of two near floats would be noise.
        variance = self.count * self.squares - self.sum * self.sum
        return 100 * sqrt(max(variance, 0)) / self.sum
