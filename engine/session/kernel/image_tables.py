"""The tables of an image as the rules for places ask them, and where its text is."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from engine.errors import ImageError
from engine.image.headers import SHF_EXECINSTR
from engine.image.kernel.columnfile import Column, ColumnSet
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.sitetables import SiteTables
from engine.session.kernel.live_text import LiveText

_INIT: Final = (".init.text", ".exit.text")
_MASK: Final = (1 << 64) - 1


class ImageTables:
    """The tables of an image as the rules for places ask them: sorted addresses.

    Attributes:
        text: the [start, end) of what is text once the kernel runs.
        gone: the [start, end) of text that is freed.
        ftrace: sites that are alive: those of text that is freed are dropped.
        forbidden: the ranges of kprobes/blacklist.
        labels: jump labels.
        static_calls: static calls.
        bugs: traps of BUG and WARN.
        exceptions: instructions that may fault.
        traces: the kernel has ftrace (DYNAMIC_FTRACE): any of its functions has a site.
    """

    def __init__(self, image: KernelImage, columns: ColumnSet, live: LiveText) -> None:
        """Take columns.

        Args:
            image: the image that the columns are of.
            columns: of its tables, see `table_columns`.
            live: its text.
        """
        self._live = live
        self.text, self.gone = text_of(image)
        self.ftrace: Sequence[int] = columns.numbers("ftrace")
        lows, highs = columns.numbers("forbidden"), columns.numbers("forbidden_ends")
        self.forbidden: Sequence[tuple[int, int]] = list(zip(lows, highs, strict=True))
        self.labels: Sequence[int] = columns.numbers("labels")
        self.static_calls: Sequence[int] = columns.numbers("static_calls")
        self.bugs: Sequence[int] = columns.numbers("bugs")
        self.exceptions: Sequence[int] = columns.numbers("exceptions")
        self.traces = bool(columns.numbers("traces")[0])

    def live(self, address: int, size: int) -> bytes:
        """Text as a running kernel has it."""
        return self._live.read(address, size)


def table_columns(
    sites: SiteTables, gone: Sequence[tuple[int, int]], kernel_traces: Callable[[], bool]
) -> dict[str, Column]:
    """The columns of `ImageTables`.

    Args:
        sites: the tables as they are.
        gone: text that is freed.
        kernel_traces: tells of a module's kernel whether it has ftrace.
    """
    alive = [s for s in sites.ftrace if not any(a <= s < b for a, b in gone)]
    forbidden = sites.forbidden
    return {
        "ftrace": array("Q", alive),
        "forbidden": array("Q", [low for low, _ in forbidden]),
        "forbidden_ends": array("Q", [high for _, high in forbidden]),
        "labels": _addresses(label.code for label in sites.jump_labels),
        "static_calls": _addresses(call.address for call in sites.static_calls),
        "bugs": _addresses(bug.address for bug in sites.bugs),
        "exceptions": _addresses(entry.insn for entry in sites.exceptions),
        "traces": bytes((bool(alive) or kernel_traces(),)),
    }


def _addresses(found: Iterable[int]) -> "array[int]":
    return array("Q", sorted({address & _MASK for address in found}))


def text_of(image: KernelImage) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The [start, end) of an image's text, and of text that is freed after boot or loading.

    Raises:
        ImageError: it has none.
    """
    if image.is_module:
        text: list[tuple[int, int]] = []
        gone: list[tuple[int, int]] = []
        for section in image.elf.sections:
            if section.flags & SHF_EXECINSTR and section.size:
                part = gone if section.name.startswith(_INIT) else text
                part.append((section.addr, section.addr + section.size))
        return sorted(text), sorted(gone)
    names = image.names

    def span(first: str, last: str) -> list[tuple[int, int]]:
        start, end = names.find(first), names.find(last)
        return [(start, end)] if start is not None and end is not None and start < end else []

    found = span("_stext", "_etext")
    if not found:
        raise ImageError(f"{image.elf.name}: kallsyms: no _stext and _etext, so no text")
    return found, span("_sinittext", "_einittext")
