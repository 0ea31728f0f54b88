"""Memory, stack and map panes: bytes of the guest as it is now, asked for page by page."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView
from tui.messages import Ask, Located
from tui.render import harmless, mark
from tui.widgets.list_pane import ListPane
from tui.widgets.prefix import Choices
from tui.widgets.virtual_lines import VirtualLines

_PAGE: Final = 4096
_WORD: Final = 8
_KEPT: Final = 64
"""Pages kept."""
_SPAN: Final = 1 << 20
"""Bytes on each side of the address that the list reaches."""
_MODES: Final = ("stack", "bytes", "map")


class MemoryLines(VirtualLines):
    """The stack word by word, any memory as a hex dump, or the memory map."""

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
    CHORDS: ClassVar[dict[str, Choices]] = {}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mode", "Stack/bytes/map", show=False, id="memory.mode"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="memory.set"),
    ]

    class ModeChanged(Message):
        """Something else is shown."""

        def __init__(self, mode: str) -> None:
            super().__init__()
            self.mode = mode

    class Editing(Message):
        """The user wants to set bytes."""

        def __init__(self, address: int) -> None:
            super().__init__()
            self.address = address

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._browser = browser
        self._view = GuestView()
        self.mode = "stack"
        self._base = 0
        self._pages: dict[int, bytes] = {}
        self._wanted: set[int] = set()
        self._stamp: tuple[object, ...] = ()

    def show(self, view: GuestView) -> None:
        """Another view: what was read before is stale once the guest has moved."""
        stamp = (view.registers, view.changed, view.state)
        moved = stamp != self._stamp
        self._view, self._stamp = view, stamp
        if not moved:
            return
        self._pages.clear()
        self._wanted.clear()
        if self.mode == "stack":
            self._base = self._sp() & -_WORD
        self.changed()
        self.refresh_size()
        self.refresh()

    def remember(self, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """Bytes that were asked for have come."""
        for start, data in pieces:
            for at in range(start, start + len(data), _PAGE):
                if at & -_PAGE in self._wanted:
                    self._pages[at & -_PAGE] = data[at - start : at - start + _PAGE]
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]
        self.changed()
        self.refresh()

    def locate(self, address: int) -> None:
        """Show the bytes at an address."""
        self.mode = "bytes"
        self._base = max((address & -16) - _SPAN, 0)
        self._renew()
        self.move_to((address - self._base) // 16, middle=True)

    def _renew(self) -> None:
        self.post_message(self.ModeChanged(self.mode))
        self.changed()
        self.refresh_size()
        self.refresh()

    def _sp(self) -> int:
        for register in self._view.registers:
            if register.name == self._browser.arch.roles.sp:
                return register.value
        return 0

    # -- lines ---------------------------------------------------------------------------------

    @property
    def line_count(self) -> int:
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

    def line(self, index: int, width: int) -> Text:
        """A line."""
        if self.mode == "map":
            return self._map_line(index)
        if self.mode == "stack":
            return self._stack_line(self._base + index * _WORD)
        return self._dump_line(self._base + index * 16, width)

    def _map_line(self, index: int) -> Text:
        mapping = self._view.mappings[index]
        text = Text(f"{mapping.start:012x}-{mapping.end:012x} ", no_wrap=True)
        text.append(mapping.perms, self.look("accent" if "x" in mapping.perms else "dim"))
        text.append(f" {harmless(mapping.name, self.ascii_only)}", self.look("name"))
        return text

    def _stack_line(self, address: int) -> Text:
        data = self.bytes_at(address, _WORD)
        text = Text(no_wrap=True)
        text.append(f"{address:x} ", self.look("dim"))
        if len(data) < _WORD:
            return text.append("." * 16, self.look("dim"))
        value = int.from_bytes(data, "little")
        text.append(f"{value:016x}")
        if address == self._sp():
            text.append(f" {mark('leave', self.ascii_only)} sp", self.look("warn"))
        meaning = self._meaning(value)
        if meaning:
            arrow = mark("arrow", self.ascii_only)
            text.append(f"  {arrow} {harmless(meaning, self.ascii_only)}", self.look("note"))
        return text

    def _meaning(self, value: int) -> str:
        for mapping in self._view.mappings:
            if mapping.start <= value < mapping.end:
                return self._browser.locate(value) or mapping.name
        return ""

    def _dump_line(self, address: int, width: int) -> Text:
        count = 16 if width >= 78 else 8 if width >= 45 else 4
        data = self.bytes_at(address, 16)[:16]
        text = Text(no_wrap=True)
        text.append(f"{address:012x}  ", self.look("dim"))
        text.append(data[:count].hex(" ").ljust(3 * count))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data[:count])
        text.append(f" {shown}", self.look("name"))
        if count < 16:
            text.append(f"  {data[count:].hex(' ')}", self.look("dim"))
        return text

    def bytes_at(self, address: int, size: int) -> bytes:
        """Bytes that are known; the page is asked for when they are not."""
        page = address & -_PAGE
        if page not in self._pages and page not in self._wanted and len(self._wanted) < 4096:
            self._wanted.add(page)
            self.call_later(self._request, page)
        return self._pages.get(page, b"")[address - page : address - page + size]

    def _request(self, page: int) -> None:
        """Not while painting: what the screen sends does not come past it."""
        self.post_message(Ask(cmd.ReadMemory(page, _PAGE)))

    # -- keys ----------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """The address at the cursor."""
        if self.mode == "map":
            mappings = self._view.mappings
            return mappings[self.cursor].start if mappings else 0
        return self._base + self.cursor * (_WORD if self.mode == "stack" else 16)

    def action_mode(self) -> None:
        """Stack, bytes, or the map."""
        at = self.address
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        if self.mode == "bytes":
            self.locate(at)
            return
        if self.mode == "stack":
            self._base = self._sp() & -_WORD
        self._renew()
        self.move_to(0)

    def action_choose(self) -> None:
        """Go where the word points, or into the mapping."""
        if self.mode == "map":
            self.locate(self.address)
        elif self.mode == "stack":
            data = self.bytes_at(self.address, _WORD)
            value = int.from_bytes(data, "little")
            if self._meaning(value):
                self.post_message(Located(value, focus=True))

    def action_set(self) -> None:
        """Ask for bytes."""
        self.post_message(self.Editing(self.address))


class MemoryPane(ListPane[MemoryLines]):
    """The pane of memory, stack and map."""

    TITLE = "Memory"
    NUMBER = 5

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(MemoryLines(browser), id=id)

    def on_mount(self) -> None:
        """The title says what is shown."""
        super().on_mount()
        self.retitle(self.lines.mode)

    def show(self, view: GuestView) -> None:
        """Another view."""
        self.lines.show(view)
        self.retitle(self.lines.mode)

    def locate(self, address: int) -> None:
        """Show the bytes at an address."""
        self.lines.locate(address)
        self.retitle(self.lines.mode)

    def remember(self, pieces: tuple[tuple[int, bytes], ...]) -> None:
        """Bytes that were asked for have come."""
        self.lines.remember(pieces)

    def on_memory_lines_mode_changed(self, event: MemoryLines.ModeChanged) -> None:
        """The title says what is shown."""
        event.stop()
        self.retitle(event.mode)
