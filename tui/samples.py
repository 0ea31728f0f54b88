"""The shipped sample programs, and the picker that is shown without a GUEST."""

import re
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Event, Key
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.errors import CommandError
from engine.session.protocol.config import architectures
from tui import render
from tui.contrast import ContrastFilter
from tui.key_queue import NEWLINE
from tui.lessons import LESSONS, Lesson, load_lesson
from tui.lessons.screen import lesson_line
from tui.widgets.hints import Hints


class Sample(Struct, frozen=True):
    """A program to begin with.

    Attributes:
        path: of its file.
        arch: its architecture.
        text: what it does, one line.
        lesson: two lines on what to press and what to look at; () for none.
    """

    path: Path
    arch: str
    text: str
    lesson: tuple[str, ...] = ()


def samples() -> list[Sample]:
    """All of them, in the order of their README, then by architecture."""
    folder = next((path for path in _folders() if (path / "bin").is_dir()), None)
    if folder is None:
        return []
    texts, lessons = _descriptions(folder / "README.md"), _lessons(folder / "README.md")
    order = {name: number for number, name in enumerate(texts)}
    ranks = {name: number for number, name in enumerate(architectures())}
    found: list[tuple[tuple[int, str, int, str], Sample]] = []
    for path in (folder / "bin").glob("*/*"):
        if path.is_file():
            arch = path.parent.name
            name = next((n for n in (f"{arch}/{path.name}", path.name) if n in texts), "")
            rank = ranks.get(arch, len(ranks))
            place = order.get(name, len(order)), path.name, rank, arch
            lesson = lessons.get(name, ())
            found.append((place, Sample(path, arch, texts.get(name, ""), lesson)))
    return [sample for _, sample in sorted(found, key=itemgetter(0))]


def find_sample(name: str) -> Path:
    """The file of the sample ARCH/NAME.

    Raises:
        CommandError: the samples are not installed.
    """
    for folder in _folders():
        if (path := folder / "bin" / name).is_file():
            return path
    raise CommandError(f"the sample {name} is not installed")


def _folders() -> tuple[Path, ...]:
    """Beside this package where it is installed, above it in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "samples", here.parent / "samples"


def _descriptions(readme: Path) -> dict[str, str]:
    """The rows "| `NAME ARGS` | TEXT | ..." of the samples' README; NAME may be ARCH/NAME."""
    texts: dict[str, str] = {}
    for line in _lines(readme):
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| `") and len(cells) > 1:
            texts.setdefault(cells[0].strip("`").partition(" ")[0], cells[1])
    return texts


def _lessons(readme: Path) -> dict[str, tuple[str, ...]]:
    """The rows "- `NAME`: LINE / LINE"; NAME may be ARCH/NAME."""
    found = (re.fullmatch(r"- `([^`]+)`: (.+)", line) for line in _lines(readme))
    return {row[1]: tuple(row[2].replace("`", "").split(" / ")) for row in found if row}


def _lines(readme: Path) -> list[str]:
    try:
        return readme.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


_SAMPLES_HEAD: Final = (
    "kprobe-tui GUEST opens a program of yours.\n"
    "These come with it, each with a first lesson: Enter opens one. l: more lessons"
)
_LESSONS_HEAD: Final = (
    "Lessons of five minutes: each says what to do and sees that it is done.\n"
    "Press Enter on one. l: the samples."
)


class SampleList(OptionList):
    """A list with vim's motions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open"),
        Binding("j", "cursor_down", "Down"),
        Binding("k", "cursor_up", "Up"),
    ]


class Picker(App[str]):
    """Returns the path of the chosen sample, "" for a lesson.

    Attributes:
        lesson: the lesson that was chosen; None for a sample.
    """

    CSS = """
    #head { height: 4; padding: 1 1 1 1; background: $panel; }
    #lesson { height: 4; padding: 0 1; background: $panel; border-top: solid $border; }
    OptionList {
        height: 1fr; border: none; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """
    TITLE = "kprobe-tui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "lessons", "Lessons"),
        Binding("q,escape", "quit", "Quit"),
    ]

    def __init__(self, theme: str = "", ascii_only: bool = False, in_page: bool = False) -> None:
        """Show the samples.

        Args:
            theme: of the settings, "" for the usual one.
            ascii_only: draw with ASCII only.
            in_page: a web page shows them.
        """
        super().__init__()
        self._in_page = in_page
        if not self.no_color:
            self._filters.append(ContrastFilter())
        self.ascii = ascii_only
        if theme in self.available_themes:
            self.theme = theme
        self.lesson: Lesson | None = None
        self._lessons: list[Lesson] = []
        self._early: list[Key] = []
        self._chosen_by: Key | None = None

    async def on_event(self, event: Event) -> None:
        """Keep keys that are typed before the list can take them, or behind the choice."""
        # A page begins without the focus, which it need not get: there keys go where they go.
        if not isinstance(event, Key) or event.is_forwarded or self._in_page:
            await super().on_event(event)
            return
        choices = self.focused
        if not isinstance(choices, SampleList):
            self._early.append(event)
        elif self._chosen_by is None:
            key = Key("enter", "\r") if event.key == NEWLINE else event
            if key.key == "enter" and choices.highlighted is not None:
                self._chosen_by = event
            await super().on_event(key)

    def on_descendant_focus(self) -> None:
        """The list has the keys now: those that were typed before, too."""
        early, self._early = self._early, []
        for key in early:
            self.post_message(key)

    def behind_choice(self, keys: Sequence[Key]) -> list[Key]:
        """Of all keys that came, those behind the one that has chosen."""
        places = [n for n, key in enumerate(keys) if key is self._chosen_by]
        return [*keys[places[0] + 1 :]] if places else []

    def compose(self) -> ComposeResult:
        """The list."""
        yield Static(
            _SAMPLES_HEAD,
            id="head",
            markup=False,
        )
        self._samples = samples()
        lines = (Option(self._line(sample)) for sample in self._samples)
        yield SampleList(*lines, markup=False)
        yield Static(id="lesson", markup=False)
        yield Hints()

    def on_mount(self) -> None:
        """The list has the keys."""
        self.query_one(OptionList).focus()

    def _line(self, sample: Sample) -> Content:
        return Content.assemble(
            (f" {sample.path.name:<11}", "bold"),
            (f"{sample.arch:<9}", "$text-accent"),
            sample.text,
        )

    def action_lessons(self) -> None:
        """The lessons in place of the samples, or the other way round."""
        choices = self.query_one(OptionList)
        if self._lessons:
            self._lessons = []
            lines = [self._line(sample) for sample in self._samples]
        else:
            self._lessons = [load_lesson(name) for name in LESSONS]
            lines = [lesson_line(lesson) for lesson in self._lessons]
        self.query_one("#head", Static).update(_LESSONS_HEAD if self._lessons else _SAMPLES_HEAD)
        choices.set_options([Option(line) for line in lines])
        choices.highlighted = 0

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """The lesson of the sample at the cursor, or what a lesson shows."""
        at = event.option_index
        lesson = (self._lessons[at].about,) if self._lessons else self._samples[at].lesson
        lines = (render.harmless(line, self.ascii) for line in lesson)
        self.query_one("#lesson", Static).update("\n".join(lines))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Chosen."""
        if self._lessons:
            self.lesson = self._lessons[event.option_index]
            self.exit("")
        else:
            self.exit(str(self._samples[event.option_index].path))
