"""The machine on which a kernel is said to have booted."""

from collections.abc import Mapping

from msgspec import Struct


class CpuModel(Struct, frozen=True):
    """A CPU as /proc/cpuinfo has it, and how the kernel was started on it.

    Attributes:
        fields: of the first processor: name to text.
        count: processors.
        command_line: words of the kernel's command line.
    """

    fields: Mapping[str, str]
    count: int
    command_line: tuple[str, ...]

    def words(self, name: str) -> frozenset[str]:
        """The words of a field; none where it is not there."""
        return frozenset(self.fields.get(name, "").split())

    def number(self, name: str) -> int:
        """A field as a number; 0 where it is none."""
        try:
            return int(self.fields.get(name, "0"), 0)
        except ValueError:
            return 0

    def option(self, name: str) -> str | None:
        """The last value of an option of the command line; "" for one without a value."""
        value = None
        for word in self.command_line:
            key, _, text = word.partition("=")
            if key.replace("-", "_") == name.replace("-", "_"):
                value = text
        return value
