"""The dialog that places a probe: a name, or a whole definition in the kernel's words."""

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from engine.session.browse import Browser, Completion, SymbolMatch
from tui.render import harmless, is_ascii, mark
from tui.screens.dialog import Dialog

_MATCHES = 200
_CONDITION: Final = "if"
_WAIT = 0.05
"""Seconds after a key before names are looked up."""


class Placed(Struct, frozen=True):
    """A probe or a breakpoint to be placed.

    Attributes:
        line: of `kprobe_events`; for a breakpoint the line of gdb's word.
        breaks: a breakpoint is meant, behind the function's prologue.
        runs: and the program is to run, to its first hit.
    """

    line: str
    breaks: bool = False
    runs: bool = False


class ProbeDialog(Dialog[Placed | None]):
    """Asks for a probe or a breakpoint; None for none."""

    DEFAULT_CSS = """
    ProbeDialog { align: center middle; }
    ProbeDialog > Vertical {
        width: 92%;
        max-width: 110;
        height: 80%;
        max-height: 26;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    ProbeDialog Input { border: none; height: 1; padding: 0; background: $boost; }
    ProbeDialog Input:focus { border: none; }
    ProbeDialog #caret { height: auto; color: $text-error; }
    ProbeDialog #caret.-good { color: $text-success; }
    ProbeDialog #caret.-warn { color: $text-warning; }
    ProbeDialog OptionList { height: 1fr; border: none; padding: 0; background: $surface; }
    ProbeDialog #hint { height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back"),
        Binding("down", "choose(1)", "Next", show=False, priority=True),
        Binding("up", "choose(-1)", "Previous", show=False, priority=True),
        Binding("tab", "take", "Edit", priority=True),
        Binding("ctrl+r", "toggle_return", "Return probe", priority=True),
        Binding("ctrl+b", "break", "Breakpoint", priority=True),
        Binding("ctrl+g", "break(True)", "Run to it", priority=True),
    ]

    def __init__(
        self,
        browser: Browser,
        text: str = "",
        title: str = "Probe",
        here: str = "",
        groups: Sequence[str] = (),
    ) -> None:
        """Ask for a definition.

        Args:
            browser: knows names and verdicts.
            text: to begin with.
            title: of the dialog.
            here: a PLACE that is offered before anything is typed.
            groups: of the events there are.
        """
        super().__init__()
        self._here = [SymbolMatch(here, f"{here}  at the cursor", 0, "", 0)] if here else []
        self._browser = browser
        self._text = text
        self._title = title
        self._matches: list[SymbolMatch] = []
        self._timer: Timer | None = None
        self._completion = Completion(0)
        self._offered = ("", 0)
        self._groups = groups

    def compose(self) -> ComposeResult:
        """A line, what is wrong with it, names that fit."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            box.border_title = Content(harmless(self._title))
            yield Input(
                self._text,
                placeholder="a function, FUNCTION if CONDITION, or p:GROUP/EVENT PLACE ARGS",
                compact=True,
                select_on_focus=False,
            )
            yield Static(id="caret", markup=False)
            yield OptionList(markup=False)
            yield Static(
                "Enter probe  ^b break  ^g run to  Tab edit  ^r return  Esc back",
                id="hint",
                markup=False,
            )

    def on_mount(self) -> None:
        """The line has the keys."""
        line = self.query_one(Input)
        line.cursor_position = len(self._text)
        line.focus()
        self.query_one(OptionList).can_focus = False
        self._look()

    # -- typing -------------------------------------------------------------------------------

    @property
    def _is_definition(self) -> bool:
        """True if a definition is typed rather than a name."""
        text = self.query_one(Input).value.lstrip()
        if text.startswith(("-", "!")) or text[1:2] == ":":
            return True
        head, space, rest = text.partition(" ")
        word = rest.lstrip().partition(" ")[0]
        return bool(space) and (head in ("p", "r") or not _CONDITION.startswith(word))

    @property
    def _typed_name(self) -> str:
        """The name that is typed, without a condition behind it."""
        return self.query_one(Input).value.strip().partition(" ")[0]

    @property
    def _condition(self) -> str:
        """The condition behind the name, "" for none."""
        word, _, text = (
            self.query_one(Input).value.strip().partition(" ")[2].lstrip().partition(" ")
        )
        return text.strip() if word == _CONDITION else ""

    def on_input_changed(self) -> None:
        """Look again, soon."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_WAIT, self._look)

    def _look(self) -> None:
        if self._is_definition:
            self._check(self.query_one(Input).value.strip())
        else:
            self._complete(self._typed_name)

    def _check(self, text: str) -> None:
        """The caret under the mistake, or what it would do."""
        verdict = self._browser.check(text)
        where = ""
        if verdict.column is not None:
            column = verdict.column - int(self.query_one(Input).scroll_offset.x)
            where = " " * column + "^\n" if column >= 0 else ""
        shown = self.query_one("#caret", Static)
        shown.update(where + harmless(verdict.text, is_ascii(self.app)))
        shown.set_class(verdict.ok and not verdict.warns, "-good")
        shown.set_class(verdict.warns, "-warn")
        line = self.query_one(Input)
        self._offer(line.value, line.cursor_position)

    @work(exclusive=True, thread=True, group="complete")
    def _offer(self, text: str, at: int) -> None:
        """Offer words that fit at the cursor; in a thread, as the first look reads all symbols."""
        completion = self._browser.complete_definition(text, at, self._groups)
        self.app.call_from_thread(self._show_offers, text, at, completion)

    @property
    def _was_left(self) -> bool:
        """True if the screen, or the whole app, was left while a thread looked up words.

        An app that ends takes its widgets down one by one, with the screen still on its stack.
        """
        there = bool(self.query(Input)) and bool(self.query(OptionList))
        return self.app.screen is not self or not there

    def _show_offers(self, text: str, at: int, completion: Completion) -> None:
        if self._was_left:
            return
        line = self.query_one(Input)
        if (text, at) != (line.value, line.cursor_position):
            return
        self._matches = []
        self._completion, self._offered = completion, (line.value, at)
        options = self.query_one(OptionList)
        options.clear_options()
        plain = is_ascii(self.app)
        options.add_options([Option(harmless(word, plain)) for word in completion.words])
        if completion.words:
            options.highlighted = 0

    def _take_offer(self) -> None:
        """The word that is highlighted takes the place of what is typed of it."""
        line = self.query_one(Input)
        end = line.cursor_position
        at = self.query_one(OptionList).highlighted or 0
        if self._offered != (line.value, end):  # typed faster than words are looked up
            self._completion = self._browser.complete_definition(line.value, end, self._groups)
            at = 0
        words = self._completion.words
        if at >= len(words):
            return
        head = line.value[: self._completion.start] + words[at]
        line.value = head + line.value[end:]
        line.cursor_position = len(head)

    @work(exclusive=True, thread=True, group="complete")
    def _complete(self, text: str) -> None:
        """Names that fit; in a thread, as the first look reads all symbols."""
        matches = self._browser.complete(text, _MATCHES) if text else self._here
        self.app.call_from_thread(self._show, text, matches)

    def _show(self, text: str, matches: list[SymbolMatch]) -> None:
        if self._was_left:
            return
        if text != self._typed_name:
            return
        self._matches = matches
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._option(match)) for match in matches])
        if matches:
            options.highlighted = 0
        note = self.query_one("#caret", Static)
        verdict = None
        if not matches and text:  # it may be a place of another kind
            verdict = self._browser.check(self._browser.default_definition(text))
        note.set_class(verdict is not None and verdict.ok, "-good")
        note.remove_class("-warn")
        said = verdict.text if verdict is not None and verdict.ok else "no function of that name"
        if verdict is None:
            said = f"Enter stops there if {self._condition}" if self._condition else ""
            note.set_class(bool(said), "-good")
        note.update(harmless(said, is_ascii(self.app)))

    def _option(self, match: SymbolMatch) -> str:
        plain = is_ascii(self.app)
        size = f"{match.size} bytes" if match.size else ""
        file = match.path.rsplit("/", 1)[-1]
        name = harmless(match.name, plain)
        shown = harmless(match.shown, plain)
        if match in self._here:
            return shown
        also = f"  {mark('arrow', plain)} {shown}" if shown not in name else ""
        return f"{name}{also}   {size}  {file}"

    # -- keys ---------------------------------------------------------------------------------

    def action_choose(self, step: int) -> None:
        """Go through the names."""
        options = self.query_one(OptionList)
        if options.option_count:
            at = options.highlighted or 0
            options.highlighted = (at + step) % options.option_count

    def _chosen(self) -> SymbolMatch | None:
        at = self.query_one(OptionList).highlighted
        return self._matches[at] if at is not None and at < len(self._matches) else None

    def action_take(self) -> None:
        """Turn the name into a definition to be edited; complete the word of a definition."""
        line = self.query_one(Input)
        if self._is_definition:
            self._take_offer()
            return
        self._catch_up()
        if self._condition:
            line.cursor_position = len(line.value)  # what stops is no definition
        elif self._place_text():
            line.value = self._browser.default_definition(self._place_text())
            line.cursor_position = len(line.value)

    def action_toggle_return(self) -> None:
        """A probe on the return instead of the entry, or the other way round."""
        if not self._is_definition:
            self.action_take()
        line = self.query_one(Input)
        head, _, rest = line.value.partition(" ")
        place, _, arguments = rest.partition(" ")
        if head[:1] not in ("p", "r"):
            return
        other = ("r" if head[0] == "p" else "p") + head[1:]
        entry = self._browser.default_definition(place).partition(" ")[2]
        returned = self._browser.default_result(place)
        if head[0] == "p" and rest == entry:
            rest = f"{place} {returned}".rstrip()  # arguments are gone when a function returns
        elif head[0] == "r" and arguments == returned:
            rest = entry
        line.value = f"{other} {rest}"

    def action_break(self, runs: bool = False) -> None:
        """Stop at a function, under the condition that is typed behind its name.

        Args:
            runs: and run to it.
        """
        if self._is_definition:
            self.query_one("#caret", Static).update("a definition makes a probe: Enter places it")
            return
        self._catch_up()
        match, place = self._chosen(), self._place_text()
        if match is not None and match not in self._here:
            place = match.name.rpartition(":")[2]  # gdb's place has no library in front
        elif match is not None:
            place = place if "+" not in place else f"*({place.replace('+', ' + ', 1)})"
        if place:
            condition = f" {_CONDITION} {self._condition}" if self._condition else ""
            self.dismiss(Placed(f"break {place}{condition}", breaks=True, runs=runs))

    def _place_text(self) -> str:
        match = self._chosen()
        return match.name if match is not None else self._typed_name

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click on a name, or on what completes a definition."""
        event.stop()
        if self._is_definition:
            self.query_one(OptionList).highlighted = event.option_index
            self._take_offer()
        else:
            self._place()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Place it, if it can be."""
        event.stop()
        if self._is_definition:
            self._place()
            return
        if self._condition:
            self.action_break()
            return
        self._catch_up()
        if self._place_text():
            self._place()

    def _catch_up(self) -> None:
        """Names are looked up a moment after the last key: the next key must not outrun that."""
        text = self._typed_name
        matches = self._browser.complete(text, _MATCHES) if text else self._here
        if self._matches != matches:
            self._show(text, matches)

    def _place(self) -> None:
        if self._condition and not self._is_definition:
            self.action_break()
            return
        text = self.query_one(Input).value.strip()
        if not self._is_definition:
            text = self._browser.default_definition(self._place_text())
        verdict = self._browser.check(text)
        if verdict.ok and (self._is_definition or not verdict.warns):
            self.dismiss(Placed(text))
            return  # else it is shown first: Enter places it all the same
        line = self.query_one(Input)
        line.value = text
        line.cursor_position = len(text)
        self._check(text)
