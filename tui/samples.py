"""The shipped sample programs, and the picker that is shown without a GUEST."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option


@dataclass(frozen=True, slots=True)
class Sample:
    """A program to begin with.

    Attributes:
        path: of its file.
        arch: its architecture.
        text: what it does, one line.
    """

    path: Path
    arch: str
    text: str


def samples() -> list[Sample]:
    """All of them, by name, then by architecture."""
    folder = next((path for path in _folders() if (path / "bin").is_dir()), None)
    if folder is None:
        return []
    texts = _descriptions(folder / "README.md")
    found = [
        Sample(path, path.parent.name, texts.get(path.name, ""))
        for path in (folder / "bin").glob("*/*")
        if path.is_file()
    ]
    return sorted(
        found, key=lambda sample: (sample.path.name, sample.arch != "x86_64", sample.arch)
    )


def _folders() -> tuple[Path, ...]:
    """Beside this package where it is installed, above it in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "samples", here.parent / "samples"


def _descriptions(readme: Path) -> dict[str, str]:
    """The lines "| `NAME` | TEXT |" or "- `NAME`: TEXT" of the samples' README."""
    texts: dict[str, str] = {}
    try:
        lines = readme.read_text(encoding="utf-8").splitlines()
    except OSError:
        return texts
    for line in lines:
        name, _, rest = line.strip("|-* ").partition("`")[2].partition("`")
        text = rest.strip(" |:").rstrip("|").strip()
        if name and text and name.removesuffix(".c").isidentifier():
            texts.setdefault(name.removesuffix(".c"), text)
    return texts


class Picker(App[str]):
    """Returns the path of the chosen sample."""

    CSS = """
    #head { height: 3; padding: 1 1 0 1; }
    OptionList { height: 1fr; border: none; }
    """
    TITLE = "kprobe-tui"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "Quit"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The list."""
        yield Static("kprobe-tui GUEST opens your own program. A sample to begin with:", id="head")
        self._samples = samples()
        yield OptionList(*(Option(self._line(sample)) for sample in self._samples))
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """The list has the keys."""
        self.query_one(OptionList).focus()

    def _line(self, sample: Sample) -> Text:
        text = Text(f"{sample.path.name:<12}", "bold")
        text.append(f"{sample.arch:<10}", "cyan")
        text.append(sample.text, "not bold")
        return text

    def action_move(self, step: int) -> None:
        """As vim."""
        options = self.query_one(OptionList)
        if step > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Chosen."""
        self.exit(str(self._samples[event.option_index].path))
