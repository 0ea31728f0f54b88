"""Names of flags and values: `names.txt`, read once."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

_SIGNALS: Final = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2"),
    *("PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG"),
    *("XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"),
)
_REALTIME: Final = 32
_LAST: Final = 64
_LOW: Final = (1 << 32) - 1


class NameSet(Struct, frozen=True):
    """Names for the numbers of one kind.

    Attributes:
        unknown: stands as a comment behind a number without a name; "" for none.
        names: (name, number) in the order in which flags are shown.
        by_number: the first name of each number.
    """

    unknown: str
    names: tuple[tuple[str, int], ...]
    by_number: Mapping[int, str]

    def value(self, number: int, digits: str = "#x") -> str:
        """The name of a number; the number with a comment for one without.

        Args:
            number: as it is.
            digits: the format of a number without a name.
        """
        name = self.by_number.get(number)
        if name is not None:
            return name
        text = format(number, digits) if number else "0"
        return f"{text} /* {self.unknown} */" if self.unknown else text

    def flags(self, number: int) -> str:
        """The names of all flags of a number, joined by |."""
        if not number:
            return self.by_number.get(0, "0")
        found, rest = [], number
        for name, flag in self.names:
            if flag and rest & flag == flag:
                found.append(name)
                rest &= ~flag
        if not found:
            return f"{number:#x} /* {self.unknown} */"
        if rest:
            found.append(f"{rest:#x}")
        return "|".join(found)


@cache
def name_set(name: str) -> NameSet:
    """The set of a name; KeyError if there is none."""
    return _made(_lines()[name])


def _made(words: list[str]) -> NameSet:
    pairs = []
    for word in words[1:]:
        name, _, number = word.partition("=")
        value = int(number, 0)
        pairs.append((name, value & _LOW if value >> 63 else value))
    numbers: dict[int, str] = {}
    for name, value in pairs:
        numbers.setdefault(value, name)
    return NameSet("" if words[0] == "-" else words[0], tuple(pairs), numbers)


@cache
def _lines() -> dict[str, list[str]]:
    found = {}
    for line in table_lines("names.txt"):
        name, *words = line.split()
        found[name] = words
    return found


def table_lines(file: str) -> list[str]:
    """The lines of a table of this package, without its comments."""
    from importlib.resources import files  # loads what can look into archives

    text = (files("engine.trace.strace") / file).read_text(encoding="ascii")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def signal_name(number: int) -> str:
    """SIGSEGV, SIGRT_1; the number itself where there is no such signal."""
    if 0 < number < _REALTIME:
        return f"SIG{_SIGNALS[number - 1]}"
    if number == _REALTIME:
        return "SIGRTMIN"
    return f"SIGRT_{number - _REALTIME}" if _REALTIME < number <= _LAST else str(number)


def signal_mask(data: bytes) -> str:
    """The signals of a mask in brackets; where most are set, those that are not behind a ~."""
    size = -(-len(data) // 4) * 32
    mask = int.from_bytes(data, "little")
    inverted = mask.bit_count() >= size * 2 // 3
    if inverted:
        mask = ~mask & (1 << size) - 1
    numbers = (number for number in range(1, size + 1) if mask >> number - 1 & 1)
    names = [signal_name(number)[3:] for number in numbers]
    return f"{'~' * inverted}[{' '.join(names)}]"
