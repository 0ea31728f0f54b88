"""The memory pane: stack, bytes and mappings of the guest, asked for page by page."""

from collections.abc import Callable
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, RunState
from tui.messages import Ask, Located
from tui.render import harmless, mark
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_PAGE: Final = 4096
_WORD: Final = 8
_KEPT: Final = 64
"""Pages kept."""
_SPAN: Final = 1 << 20
"""Bytes on each side of the address that the list reaches."""


class MemoryRows(LineSource):
    """The stack word by word, any memory as a hex dump, or the memory map.

    Attributes:
        mode: "stack", "bytes" or "map".
    """

    def __init__(self, browser: Browser, want: Callable[[int], object]) -> None:
        """Nothing is known yet.

        Args:
            browser: knows what words may point at.
            want: called, while lines are made, with the address of a page that is not known.
        """
        self._browser = browser
        self._want = want
        self._view = GuestView()
        self.mode = "stack"
        self._base = 0
        self._pages: dict[int, bytes] = {}
        self._wanted: set[int] = set()
        self._stamp: tuple[object, ...] = ()

    def fill(self, view: GuestView) -> bool:
        """Take another view; True if the guest has moved, and what was read before is stale."""
        stamp = (view.registers, view.changed, view.state)
        moved = stamp != self._stamp
        self._view, self._stamp = view, stamp
        if moved:
            self._pages.clear()
            self._wanted.clear()
            if self.mode == "stack":
                self._base = self._sp() & -_WORD
        return moved

    def remember(self, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """Bytes that were asked for have come."""
        for start, data in pieces:
            for at in range(start, start + len(data), _PAGE):
                if at & -_PAGE in self._wanted:
                    self._pages[at & -_PAGE] = data[at - start : at - start + _PAGE]
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]

    def show_stack(self) -> None:
        """The stack from the stack pointer on."""
        self.mode = "stack"
        self._base = self._sp() & -_WORD

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
            if register.name == self._browser.arch.roles.sp:
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
            return max((end - self._base) // _WORD, 0)
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
            return self._stack_line(self._base + index * _WORD, looks)
        return self._dump_line(self._base + index * 16, width, looks)

    def _map_line(self, index: int, looks: Looks) -> Text:
        mapping = self._view.mappings[index]
        text = Text(f"{mapping.start:012x}-{mapping.end:012x} ", no_wrap=True)
        text.append(mapping.perms, looks("accent" if "x" in mapping.perms else "dim"))
        text.append(f" {harmless(mapping.name, looks.ascii_only)}", looks("name"))
        return text

    def _stack_line(self, address: int, looks: Looks) -> Text:
        data = self._bytes_at(address, _WORD)
        text = Text(no_wrap=True)
        text.append(f"{address:x} ", looks("dim"))
        if len(data) < _WORD:
            return text.append("." * 16, looks("dim"))
        value = int.from_bytes(data, "little")
        text.append(f"{value:016x}")
        if address == self._sp():
            text.append(f" {mark('leave', looks.ascii_only)} sp", looks("warn"))
        meaning = self._meaning(value)
        if meaning:
            arrow = mark("arrow", looks.ascii_only)
            text.append(f"  {arrow} {harmless(meaning, looks.ascii_only)}", looks("note"))
        return text

    def _meaning(self, value: int) -> str:
        for mapping in self._view.mappings:
            if mapping.start <= value < mapping.end:
                return self._browser.locate(value) or mapping.name
        return ""

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
        """The bytes that are known; the page is asked for when they are not."""
        page = address & -_PAGE
        if page not in self._pages and page not in self._wanted and len(self._wanted) < 4096:
            self._wanted.add(page)
            self._want(page)
        return self._pages.get(page, b"")[address - page : address - page + size]

    def address(self, index: int) -> int:
        """The address of a line."""
        if self.mode == "map":
            mappings = self._view.mappings
            return mappings[index].start if mappings else 0
        return self._base + index * (_WORD if self.mode == "stack" else 16)

    def target(self, index: int) -> int | None:
        """The place that a word of the stack points at; None for none, or another mode."""
        if self.mode != "stack":
            return None
        value = int.from_bytes(self._bytes_at(self.address(index), _WORD), "little")
        return value if self._meaning(value) else None


class MemoryPane(ListPane[MemoryRows]):
    """The pane of memory, stack and map; bytes it does not know come out as `Ask`."""

    TITLE = "Memory"
    HELP = """
### Memory

| key | does |
|---|---|
| `m` | stack, bytes, map |
| `Enter` | stack: go where the word points; map: show the mapping's bytes |
| `g` | go to an address |
| `=` | set bytes at the cursor |
| `Y` | copy |

The stack follows the stack pointer; words that point into code or a mapping say so.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mode", "Stack/bytes/map", show=False, id="memory.mode"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="memory.set"),
    ]

    class Editing(Message):
        """The user wants to set bytes."""

        def __init__(self, address: int) -> None:
            super().__init__()
            self.address = address

    def __init__(self, browser: Browser) -> None:
        # What is asked for while painting waits for the painting's end: what the screen sends
        # does not come past it.
        rows = MemoryRows(browser, lambda page: self.call_later(self._request, page))
        super().__init__(VirtualLines(rows, chords={}))

    def on_mount(self) -> None:
        """The title says what is shown."""
        super().on_mount()
        self.retitle(self.source.mode)

    def show(self, view: GuestView) -> None:
        """Another view; a guest that moves keeps the memory it had."""
        if view.state in (RunState.RUNNING, RunState.WAITING):
            return
        if self.source.fill(view):
            self.lines.renew()
        self.retitle(self.source.mode)

    def locate(self, address: int) -> None:
        """Show the bytes at an address."""
        line = self.source.show_bytes(address)
        self._renew()
        self.lines.move_to(line, middle=True)

    def remember(self, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """Bytes that were asked for have come."""
        self.source.remember(pieces)
        self.lines.changed()

    def _request(self, page: int) -> None:
        self.post_message(Ask(cmd.ReadMemory(page, _PAGE)))

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
        self.post_message(self.Editing(self.source.address(self.lines.cursor)))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the place that a word points at, or into a mapping."""
        event.stop()
        if self.source.mode == "map":
            self.locate(self.source.address(event.index))
        elif (target := self.source.target(event.index)) is not None:
            self.post_message(Located(target, focus=True))
