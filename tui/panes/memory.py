"""The memory pane: stack, bytes, words, strings, objects, mappings, asked for piece by piece."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, LayoutView, RunState, StackWord
from tui.guest_editor import WrittenAs
from tui.messages import Ask, Followed, Located, Say, Written
from tui.panes.memory_rows import MemoryRows, Mode
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines


class MemoryPane(ListPane[MemoryRows]):
    """The pane of memory, stack and map; bytes it does not know come out as `Ask`."""

    TITLE = "Memory"
    OF_A_MOMENT = True
    HELP = """
### Memory

| key | does |
|---|---|
| `m` | stack, bytes, words, strings, map |
| `Enter` | stack, object: go where the word points; map, strings: show the bytes |
| `g` | go to an address |
| `:examine` | an object's parts over its bytes: `:examine &obj`, `:examine *p` |
| `=` | set what is at the cursor: bytes, words, a string, a part of an object |
| `W` | who wrote them: go back to what wrote them last, again: to the write before |
| `X` | where they came from: the value, followed back to an input or a computation |
| `Y` | copy |

The stack follows the stack pointer. Beside a word stand the registers that point at it, and
where it leads, from pointer to pointer; `return` marks the return addresses of the backtrace.
An object is shown with the offset, value, type and bytes of each part and with the padding
between them, at each stop anew. `:vmmap` prints the map, or the part of a file.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mode", "Another form", show=False, id="memory.mode"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="memory.set"),
        Binding("W", "who_wrote", "Who wrote", show=False, id="memory.who_wrote"),
        Binding("X", "where_from", "Where from", show=False, id="memory.where_from"),
    ]

    class Editing(Message):
        """The user wants to set what is at an address.

        Attributes:
            address: of the first byte.
            data: the bytes that are known to be there.
            how: the way to write them.
            what: the name of what they are, "" for none.
        """

        def __init__(self, address: int, data: bytes, how: WrittenAs, what: str = "") -> None:
            super().__init__()
            self.address = address
            self.data = data
            self.how = how
            self.what = what

    def __init__(self, browser: Browser) -> None:
        """Nothing is known of the guest; `browser` knows its architecture."""
        # What is asked for while painting waits for the painting's end: what the screen sends
        # does not come past it.
        rows = MemoryRows(browser, lambda question: self.call_later(self._request, question))
        super().__init__(VirtualLines(rows, chords={}))

    def on_mount(self) -> None:
        """The title says what is shown."""
        super().on_mount()
        self.retitle(self._title)

    @property
    def _title(self) -> str:
        fields = self.source.fields.text
        return fields if self.source.mode is Mode.FIELDS else self.source.mode.value

    def show(self, view: GuestView) -> None:
        """Show a new view; a guest that moves keeps the memory it had."""
        if view.state is RunState.RUNNING:
            return
        if view.stack and (self.source.mode is not Mode.STACK or not self.display):
            self._request(cmd.ShowStack(0))
        if self.source.fill(view):
            self.lines.renew()
            waits = view.state is RunState.WAITING
            if self.source.mode is Mode.FIELDS and not waits:
                self._request(cmd.ReadLayout(self.source.fields.text, again=True))
        self.retitle(self._title)

    def locate(self, address: int) -> None:
        """Show the bytes at an address."""
        self._dump(address, Mode.BYTES)

    def _dump(self, address: int, mode: Mode) -> None:
        line = self.source.show_dump(address, mode)
        self._renew()
        self.lines.move_to(line, middle=True)

    def examine(self, text: str, layout: LayoutView) -> None:
        """Show the parts of an object; what is text alone as strings."""
        if layout.size == 1 and layout.type.removeprefix("const ").strip() == "char":
            self.source.show_strings(layout.address)
        else:
            self.source.show_fields(text, layout)
        self._renew()
        self.lines.move_to(0)

    def remember_layout(self, layout: LayoutView) -> None:
        """The parts of the object that is shown have come again."""
        if self.source.remember_layout(layout):
            self.lines.renew()

    def remember(self, page: int, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """A page that was asked for has come, or is not mapped."""
        if self.source.remember(page, pieces):
            if self.source.mode is Mode.STRINGS:
                self.lines.refresh_size()
            self.lines.changed()

    def remember_words(self, first: int, words: tuple[StackWord, ...]) -> None:
        """Words of the stack that were asked for have come: those from `first` on."""
        if self.source.remember_words(first, words):
            self.lines.changed()

    def _request(self, question: cmd.Command) -> None:
        self.post_message(Ask(question))

    def _renew(self) -> None:
        self.retitle(self._title)
        self.lines.renew()

    # -- keys ----------------------------------------------------------------------------------

    def action_mode(self) -> None:
        """From the stack to bytes, words, strings, the map, and back to the stack."""
        source = self.source
        address = source.address(self.lines.cursor)
        match source.mode:
            case Mode.STACK | Mode.FIELDS:
                self._dump(address, Mode.BYTES)
                return
            case Mode.BYTES:
                self._dump(address, Mode.WORDS)
                return
            case Mode.WORDS:
                source.show_strings(address)
            case Mode.STRINGS:
                source.show_map()
            case Mode.MAP:
                source.show_stack()
        self._renew()
        self.lines.move_to(0)

    def action_set(self) -> None:
        """Ask for what is to stand at the cursor."""
        source, index = self.source, self.lines.cursor
        how, what = WrittenAs.BYTES, ""
        match source.mode:
            case Mode.WORDS:
                how = WrittenAs.WORDS
            case Mode.STRINGS if source.size(index):
                how = WrittenAs.TEXT
            case Mode.FIELDS:
                field = source.fields.field(index)
                if field is not None and field.bits:
                    text = f"{field.name} is some bits of a number: `:set var` sets them"
                    self.post_message(Say(text, severity="warning"))
                    return
                what = "" if field is None else field.name
                how = WrittenAs.NUMBER if field is not None and field.is_number else how
        address, data = source.address(index), source.data(index)
        self.post_message(self.Editing(address, data, how, what))

    def action_who_wrote(self) -> None:
        """Go back to what has written to the word, or to the bytes, last."""
        source = self.source
        size = source.size(self.lines.cursor)
        if size:
            address = source.address(self.lines.cursor)
            self.post_message(Written(address=address, size=size))

    def action_where_from(self) -> None:
        """Follow the value of the word, or of the bytes, backwards."""
        source = self.source
        size = source.size(self.lines.cursor)
        if size:
            address = source.address(self.lines.cursor)
            self.post_message(Followed(address=address, size=size))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the place that a word points at, or into a mapping."""
        event.stop()
        source = self.source
        if source.mode is Mode.STRINGS and not source.size(event.index):
            if onward := source.address(event.index):
                source.show_strings(onward)
                self._renew()
                self.lines.move_to(0)
        elif source.mode in (Mode.MAP, Mode.STRINGS):
            self.locate(source.address(event.index))
        elif (target := self.source.target(event.index)) is not None:
            self.post_message(Located(target, focus=True))
