"""The memory pane: stack, bytes and mappings of the guest, asked for piece by piece."""

from collections.abc import Callable
from typing import ClassVar, Final, Literal

from msgspec.structs import replace
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, RunState, StackWord
from tui.messages import Ask, Followed, Located, Written
from tui.render import harmless, mark
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.pointers import append_hops
from tui.widgets.virtual_lines import VirtualLines

_PAGE: Final = 4096
_WORDS: Final = 32
"""Words of the stack that are asked for at once."""
_KEPT: Final = 64
"""Pages kept."""
_NAMED: Final = 3
"""Registers that are named beside the word that they point at."""
_SPAN: Final = 1 << 20
"""Bytes on each side of the address that the list reaches."""


class MemoryRows(LineSource):
    """The stack word by word, any memory as a hex dump, or the memory map.

    Attributes:
        mode: "stack", "bytes" or "map".
    """

    def __init__(self, browser: Browser, want: Callable[[cmd.Command], object]) -> None:
        """Nothing is known yet.

        Args:
            browser: knows the guest's architecture.
            want: called, while lines are made, with the question for what is not known.
        """
        self._roles = browser.arch.roles
        self._word = browser.arch.bits // 8
        self._order: Literal["little", "big"] = (
            "little" if browser.arch.byteorder == "little" else "big"
        )
        self._want = want
        self._view = GuestView()
        self.mode = "stack"
        self._base = 0
        self._pages: dict[int, bytes] = {}
        self._words: dict[int, StackWord] = {}
        self._wanted: set[int] = set()
        self._wanted_words: set[int] = set()
        self._labels: dict[int, str] = {}
        self._returns: frozenset[int] = frozenset()
        self._stamp: tuple[object, ...] = ()

    def fill(self, view: GuestView) -> bool:
        """Take another view; True if what was read before is asked for again.

        The guest has moved, or a frame of another program is looked at.
        """
        stamp = (view.state, view.program_in_sight, view.registers, view.frames, view.changed)
        before, moved = self._stamp[:2], stamp != self._stamp
        self._view, self._stamp = view, stamp
        if moved:
            if before != stamp[:2] or len(self._words) > _WORDS * _KEPT:
                # Else what was there is seen until the answer comes, mostly the same.
                self._pages.clear()
                self._words.clear()
            self._wanted.clear()
            self._wanted_words.clear()
            self._label()
            if self.mode == "stack":
                self._base = self._sp() & -self._word
        return moved

    def _label(self) -> None:
        """Name the words that registers point at, and the return addresses of the frames."""
        roles, names = self._roles, dict[int, list[str]]()
        for register in self._view.registers:
            if register.group == "general" and register.value % self._word == 0:
                name = "sp" if register.name == roles.sp else register.name
                names.setdefault(register.value, []).append(name)
        self._labels = {
            value: " ".join(sorted(found, key=lambda name: name != "sp")[:_NAMED])
            for value, found in names.items()
        }
        self._returns = frozenset(frame.pc for frame in self._view.frames[1:])

    def remember(self, page: int, pieces: tuple[tuple[int, bytes], ...]) -> bool:
        """A page that was asked for has come, or is not mapped: True if it was another."""
        if page not in self._wanted:
            return False
        told = next((data for start, data in pieces if start == page), b"")
        changed = self._pages.pop(page, b"") != told
        self._pages[page] = told
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]
        return changed

    def remember_words(self, first: int, words: tuple[StackWord, ...]) -> bool:
        """Words that were asked for have come, from `first` on: True if others were known."""
        if first not in self._wanted_words:
            return False
        told = {word.address: word for word in words}
        known = {
            address: self._words.pop(address)
            for address in range(first, first + _WORDS * self._word, self._word)
            if address in self._words
        }
        self._words.update(told)
        return told != known

    def show_stack(self) -> None:
        """The stack from the stack pointer on."""
        self.mode = "stack"
        self._base = self._sp() & -self._word

    def show_map(self) -> None:
        """The mappings."""
        self.mode = "map"

    def show_bytes(self, address: int) -> int:
        """The bytes around an address; the line it stands in."""
        self.mode = "bytes"
        self._base = max((address & -16) - _SPAN, 0)
        return (address - self._base) // 16

    def _sp(self) -> int:
        for register in self._view.registers:
            if register.name == self._roles.sp:
                return register.value
        return 0

    # -- lines ---------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Lines within reach."""
        if self.mode == "map":
            return len(self._view.mappings)
        if self.mode == "stack":
            end = self._stack_end()
            return max((end - self._base) // self._word, 0)
        return 2 * _SPAN // 16

    def _stack_end(self) -> int:
        for mapping in self._view.mappings:
            if mapping.start <= self._base < mapping.end:
                return min(mapping.end, self._base + _SPAN)
        return self._base

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A line."""
        if self.mode == "map":
            return self._map_line(index, looks)
        if self.mode == "stack":
            return self._stack_line(self._base + index * self._word, looks)
        return self._dump_line(self._base + index * 16, width, looks)

    def _map_line(self, index: int, looks: Looks) -> Text:
        mapping = self._view.mappings[index]
        text = Text(f"{mapping.start:012x}-{mapping.end:012x} ", no_wrap=True)
        text.append(mapping.perms, looks("accent" if "x" in mapping.perms else "dim"))
        text.append(f" {harmless(mapping.name, looks.ascii_only)}", looks("name"))
        return text

    def _stack_line(self, address: int, looks: Looks) -> Text:
        text = Text(no_wrap=True)
        text.append(f"{address:x} ", looks("dim"))
        word = self._word_at(address)
        if word is None:
            return text.append("...", looks("dim"))
        text.append(f"{word.value:#x}")
        if address in self._labels:
            leave = mark("leave", looks.ascii_only)
            text.append(f" {leave} {self._labels[address]}", looks("warn"))
        hops = word.hops
        if hops and word.value in self._returns:
            hops = (replace(hops[0], text="return"),)
        append_hops(text, hops, looks)
        return text

    def _word_at(self, address: int) -> StackWord | None:
        """A word that is known; once a view it is asked for, with those behind it."""
        size = _WORDS * self._word
        first = self._base + (address - self._base) // size * size
        if first not in self._wanted_words and len(self._wanted_words) < _KEPT:
            self._wanted_words.add(first)
            self._want(cmd.ReadWords(first, _WORDS))
        return self._words.get(address) if first in self._wanted_words else None

    def _dump_line(self, address: int, width: int, looks: Looks) -> Text:
        count = 16 if width >= 78 else 8 if width >= 45 else 4
        data = self._bytes_at(address, 16)[:16]
        text = Text(no_wrap=True)
        text.append(f"{address:012x}  ", looks("dim"))
        text.append(data[:count].hex(" ").ljust(3 * count))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data[:count])
        text.append(f" {shown}", looks("name"))
        if count < 16:
            text.append(f"  {data[count:].hex(' ')}", looks("dim"))
        return text

    def _bytes_at(self, address: int, size: int) -> bytes:
        """The bytes that are known; once a view the page is asked for."""
        page = address & -_PAGE
        if page not in self._wanted and len(self._wanted) < 4096:
            self._wanted.add(page)
            self._want(cmd.ReadMemory(page, _PAGE))
        known = self._pages.get(page, b"") if page in self._wanted else b""
        return known[address - page : address - page + size]

    def address(self, index: int) -> int:
        """The address of a line."""
        if self.mode == "map":
            mappings = self._view.mappings
            return mappings[index].start if mappings else 0
        return self._base + index * self.size

    @property
    def size(self) -> int:
        """Bytes of a line of the stack or of bytes."""
        return self._word if self.mode == "stack" else 16

    def data(self, index: int) -> bytes:
        """The bytes of a line as far as they are known; none of a line of the map.

        None either where something is planted: it is not the program's.
        """
        address = self.address(index)
        if any(address - 16 < at < address + 16 for at in self._view.planted):
            return b""
        if self.mode == "stack":
            word = self._words.get(address)
            return b"" if word is None else word.value.to_bytes(self._word, self._order)
        return b"" if self.mode == "map" else self._bytes_at(address, 16)

    def target(self, index: int) -> int | None:
        """The place that a word of the stack points at; None for none, or another mode."""
        word = self._words.get(self.address(index)) if self.mode == "stack" else None
        return word.value if word is not None and word.hops else None


class MemoryPane(ListPane[MemoryRows]):
    """The pane of memory, stack and map; bytes it does not know come out as `Ask`."""

    TITLE = "Memory"
    OF_A_MOMENT = True
    HELP = """
### Memory

| key | does |
|---|---|
| `m` | stack, bytes, map |
| `Enter` | stack: go where the word points; map: show the mapping's bytes |
| `g` | go to an address |
| `=` | set bytes at the cursor |
| `W` | who wrote them: go back to what wrote them last, again: to the write before |
| `X` | where they came from: the value, followed back to an input or a computation |
| `Y` | copy |

The stack follows the stack pointer. Beside a word stand the registers that point at it, and
where it leads, from pointer to pointer; `return` marks the return addresses of the backtrace.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mode", "Stack/bytes/map", show=False, id="memory.mode"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="memory.set"),
        Binding("W", "who_wrote", "Who wrote", show=False, id="memory.who_wrote"),
        Binding("X", "where_from", "Where from", show=False, id="memory.where_from"),
    ]

    class Editing(Message):
        """The user wants to set bytes, of which some are known."""

        def __init__(self, address: int, data: bytes) -> None:
            super().__init__()
            self.address = address
            self.data = data

    def __init__(self, browser: Browser) -> None:
        """Nothing is known of the guest; `browser` knows its architecture."""
        # What is asked for while painting waits for the painting's end: what the screen sends
        # does not come past it.
        rows = MemoryRows(browser, lambda question: self.call_later(self._request, question))
        super().__init__(VirtualLines(rows, chords={}))

    def on_mount(self) -> None:
        """The title says what is shown."""
        super().on_mount()
        self.retitle(self.source.mode)

    def show(self, view: GuestView) -> None:
        """Show a new view; a guest that moves keeps the memory it had."""
        if view.state is RunState.RUNNING:
            return
        if self.source.fill(view):
            self.lines.renew()
        self.retitle(self.source.mode)

    def locate(self, address: int) -> None:
        """Show the bytes at an address."""
        line = self.source.show_bytes(address)
        self._renew()
        self.lines.move_to(line, middle=True)

    def remember(self, page: int, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """A page that was asked for has come, or is not mapped."""
        if self.source.remember(page, pieces):
            self.lines.changed()

    def remember_words(self, first: int, words: tuple[StackWord, ...]) -> None:
        """Words of the stack that were asked for have come: those from `first` on."""
        if self.source.remember_words(first, words):
            self.lines.changed()

    def _request(self, question: cmd.Command) -> None:
        self.post_message(Ask(question))

    def _renew(self) -> None:
        self.retitle(self.source.mode)
        self.lines.renew()

    # -- keys ----------------------------------------------------------------------------------

    def action_mode(self) -> None:
        """From the stack to bytes, to the map, to the stack."""
        mode = self.source.mode
        if mode == "stack":
            self.locate(self.source.address(self.lines.cursor))
            return
        if mode == "bytes":
            self.source.show_map()
        else:
            self.source.show_stack()
        self._renew()
        self.lines.move_to(0)

    def action_set(self) -> None:
        """Ask for bytes."""
        index = self.lines.cursor
        self.post_message(self.Editing(self.source.address(index), self.source.data(index)))

    def action_who_wrote(self) -> None:
        """Go back to what has written to the word, or to the bytes, last."""
        source = self.source
        if source.mode != "map":
            address = source.address(self.lines.cursor)
            self.post_message(Written(address=address, size=source.size))

    def action_where_from(self) -> None:
        """Follow the value of the word, or of the bytes, backwards."""
        source = self.source
        if source.mode != "map":
            address = source.address(self.lines.cursor)
            self.post_message(Followed(address=address, size=source.size))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the place that a word points at, or into a mapping."""
        event.stop()
        if self.source.mode == "map":
            self.locate(self.source.address(event.index))
        elif (target := self.source.target(event.index)) is not None:
            self.post_message(Located(target, focus=True))
