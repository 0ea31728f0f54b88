"""The chapters of the handbook: Markdown files, in the order of their list.

`kprobe-tui help TOPIC` and `?` in the interface show them; README.md points to them. A new chapter
is a file NAME.md in this folder and its name in `PARTS`. The file begins with a title and one
sentence that says what the chapter is about, which is its line in the list of topics.
`engine.chapters.layout` fits the text to a width and lists what of Markdown may be used.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent
"""The folder of the files."""

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "First steps": ("install", "interface", "lessons", "keys"),
    "Probes and events": (
        *("probes", "markers", "techniques", "filters", "formats", "watching", "functions"),
        *("handlers", "syscalls", "scripts"),
        "machine",
    ),
    "Runs": ("races", "sweeps", "recordings", "history"),
    "Debuggers": ("words", "golang", "cores", "gdb", "editors", "browser", "listening", "python"),
    "Guests": ("guests", "threads", "architectures", "kernels", "booting", "uml"),
    "Figures": ("speed", "limits"),
}
"""Names of the chapters by parts of the handbook, in the order in which they are listed."""
NAMES: Final[tuple[str, ...]] = tuple(name for names in PARTS.values() for name in names)
"""Names of all chapters."""


class Chapter(NamedTuple):
    """A chapter as its file has it.

    Attributes:
        name: the topic that `kprobe-tui help` takes.
        title: the first line, without its mark.
        about: one sentence that says what the chapter is about.
        text: the whole file.
    """

    name: str
    title: str
    about: str
    text: str


def load_chapter(name: str) -> Chapter:
    """Read a chapter.

    Args:
        name: one of `NAMES`.
    """
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    title, _, about, *_ = text.split("\n", 3)
    return Chapter(name, title.removeprefix("# "), about, text)


def all_chapters() -> Iterator[Chapter]:
    """Read all chapters, in the order of `NAMES`."""
    return map(load_chapter, NAMES)
