"""Lines of the guest's memory: stack, bytes, words, strings, an object's parts, mappings."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Literal

from msgspec.structs import replace
from rich.text import Text
from textual.geometry import Size

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, LayoutView, StackWord
from tui.panes.memory_fields import FieldLines
from tui.panes.memory_strings import PAGE, StringScan
from tui.render import harmless, mark
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.pointers import append_hops

_ROW: Final = 16
"""Bytes of a line of bytes or words."""
_ADDRESS: Final = 14
"""Cells of the address of a line."""
_WORDS: Final = 16
"""Words of the stack that are asked for at once."""
_KEPT: Final = 64
"""Pages kept, and pieces of so many words."""
_NAMED: Final = 3
"""Registers that are named beside the word that they point at."""
_SPAN: Final = 1 << 20
"""Bytes on each side of the address that the list reaches."""


class Mode(Enum):
    """The ways to look at memory, in the order in which a key goes through them."""

    STACK = "stack"
    BYTES = "bytes"
    WORDS = "words"
    STRINGS = "strings"
    MAP = "map"
    FIELDS = "fields"
    """The parts of an object, which a key does not come to: `:examine` names the object."""


_DUMPS: Final = (Mode.BYTES, Mode.WORDS)


class MemoryRows(LineSource):
    """Any memory in any of the modes.

    Attributes:
        mode: how memory is shown.
        order: of the guest's bytes.
        word: bytes of its words.
        fields: the object whose parts are laid over memory.
    """

    def __init__(self, browser: Browser, want: Callable[[cmd.Command], object]) -> None:
        """Nothing is known yet.

        Args:
            browser: knows the guest's architecture.
            want: called, while lines are made, with the question for what is not known.
        """
        self._roles = browser.arch.roles
        self.word = browser.arch.bits // 8
        self.order: Literal["little", "big"] = (
            "little" if browser.arch.byteorder == "little" else "big"
        )
        self._want = want
        self._view = GuestView()
        self._locate = browser.locate
        self.mode = Mode.STACK
        self.fields = FieldLines()
        self._strings = StringScan(self._page)
        self._base = 0
        self._pages: dict[int, bytes] = {}
        self._words: dict[int, StackWord] = {}
        self._wanted: set[int] = set()
        self._wanted_words: set[int] = set()
        self._in_sight = _WORDS
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
            self._strings.forget()
            self._label()
            if self.mode is Mode.STACK:
                self._base = self._sp() & -self.word
                if view.stack and view.stack[0].address == self._base:
                    for at in range(0, len(view.stack), _WORDS):
                        first = view.stack[at].address
                        self._wanted_words.add(first)
                        self.remember_words(first, view.stack[at : at + _WORDS])
        return moved

    def arrange(self, size: Size) -> bool:
        """Have views hold as many words of the stack as are in sight."""
        in_sight = max(-(-size.height // _WORDS), 1) * _WORDS
        if self._view.stack and in_sight != self._in_sight:
            self._want(cmd.ShowStack(in_sight))
        self._in_sight = in_sight
        return False

    def _label(self) -> None:
        """Name the words that registers point at, and the return addresses of the frames."""
        roles, names = self._roles, dict[int, list[str]]()
        for register in self._view.registers:
            if register.group == "general" and register.value % self.word == 0:
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
        changed = page not in self._pages or self._pages[page] != told
        self._pages.pop(page, None)
        self._pages[page] = told
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]
        if changed:
            self._strings.forget()
        return changed

    def remember_words(self, first: int, words: tuple[StackWord, ...]) -> bool:
        """Words that were asked for have come, from `first` on: True if others were known."""
        if first not in self._wanted_words:
            return False
        told = {word.address: word for word in words}
        known = {
            address: self._words.pop(address)
            for address in range(first, first + _WORDS * self.word, self.word)
            if address in self._words
        }
        self._words.update(told)
        return told != known

    def remember_layout(self, layout: LayoutView) -> bool:
        """The parts of an object have come: True if others were known."""
        changed, self.fields.layout = self.fields.layout != layout, layout
        return changed

    def show_stack(self) -> None:
        """The stack from the stack pointer on."""
        self.mode = Mode.STACK
        self._base = self._sp() & -self.word

    def show_map(self) -> None:
        """The mappings."""
        self.mode = Mode.MAP

    def show_dump(self, address: int, mode: Mode = Mode.BYTES) -> int:
        """The bytes or words around an address; the line it stands in."""
        self.mode = mode
        self._base = max((address & -_ROW) - _SPAN, 0)
        return (address - self._base) // _ROW

    def show_strings(self, address: int) -> None:
        """The strings from an address on."""
        self.mode = Mode.STRINGS
        self._strings.begin(address)

    def show_fields(self, text: str, layout: LayoutView) -> None:
        """The parts of an object, by the expression that means it."""
        self.mode = Mode.FIELDS
        self.fields.text, self.fields.layout = text, layout

    def _sp(self) -> int:
        for register in self._view.registers:
            if register.name == self._roles.sp:
                return register.value
        return 0

    # -- lines ---------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Lines within reach."""
        match self.mode:
            case Mode.MAP:
                return len(self._view.mappings)
            case Mode.STACK:
                return max((self._stack_end() - self._base) // self.word, 0)
            case Mode.STRINGS:
                return len(self._strings.found) + 1
            case Mode.FIELDS:
                return self.fields.count
        return 2 * _SPAN // _ROW

    def _stack_end(self) -> int:
        for mapping in self._view.mappings:
            if mapping.start <= self._base < mapping.end:
                return min(mapping.end, self._base + _SPAN)
        return self._base

    def content(self, index: int) -> object:
        """Of the stack a word with what is said of it; None in the other modes."""
        if self.mode is not Mode.STACK:
            return None
        address = self._base + index * self.word
        word = self._word_at(address)
        returned = word is not None and word.value in self._returns
        return address, word, self._labels.get(address), returned

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A line."""
        match self.mode:
            case Mode.MAP:
                return self._map_line(index, looks)
            case Mode.STACK:
                return self._stack_line(self._base + index * self.word, looks)
            case Mode.STRINGS:
                return self._string_line(index, looks)
            case Mode.FIELDS:
                return self.fields.line(index, width, looks)
            case Mode.WORDS:
                return self._words_line(self._base + index * _ROW, width, looks)
        return self._dump_line(self._base + index * _ROW, width, looks)

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
        size = _WORDS * self.word
        first = self._base + (address - self._base) // size * size
        if first not in self._wanted_words and len(self._wanted_words) < _KEPT:
            self._wanted_words.add(first)
            if first == self._base:  # the next views are to hold them
                self._want(cmd.ShowStack(self._in_sight))
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

    def _words_line(self, address: int, width: int, looks: Looks) -> Text:
        """A line of words, and where those lead that are addresses in a file."""
        data, digits = self._bytes_at(address, _ROW), 2 * self.word
        if _ADDRESS + (digits + 1) * len(data) // self.word > width:
            digits = 0  # there is no room for zeros in front
        text = Text(no_wrap=True)
        text.append(f"{address:012x}  ", looks("dim"))
        places: list[str] = []
        for at in range(0, len(data) - self.word + 1, self.word):
            value = int.from_bytes(data[at : at + self.word], self.order)
            text.append(f"{value:0{digits}x} ", "" if value else looks("dim"))
            if place := self._locate(value):
                places.append(place.removesuffix("+0x0"))
        if places:
            leads = f" {mark('arrow', looks.ascii_only)} {', '.join(places)}"
            text.append(harmless(leads, looks.ascii_only), looks("name"))
        return text

    def _string_line(self, index: int, looks: Looks) -> Text:
        found = self._strings.found
        if index >= len(found):
            onward = self._onward()
            more = f"Enter looks on from {onward:#x}" if onward else "nothing is mapped behind"
            return Text(more, looks("note"))
        string = found[index]
        text = Text(no_wrap=True)
        text.append(f"{string.address:012x}  ", looks("dim"))
        text.append(f"{len(string.data):>5}  ", looks("dim"))
        text.append(harmless(string.text, looks.ascii_only), looks("name"))
        if not string.ended:
            text.append("  without a NUL", looks("note"))
        return text

    def _onward(self) -> int:
        """The address from which a search for strings goes on; 0 for none."""
        end = self._strings.end
        behind = (mapping for mapping in self._view.mappings if mapping.end > end)
        return next((max(mapping.start, end) for mapping in behind), 0)

    def _bytes_at(self, address: int, size: int) -> bytes:
        """The bytes that are known; once a view the page is asked for."""
        page = address & -PAGE
        self._ask_for(page)
        known = self._pages.get(page, b"") if page in self._wanted else b""
        return known[address - page : address - page + size]

    def _page(self, page: int) -> bytes | None:
        """A page for a search; what was there is looked through until it is told again."""
        self._ask_for(page)
        return self._pages.get(page)

    def _ask_for(self, page: int) -> None:
        if page not in self._wanted and len(self._wanted) < PAGE:
            self._wanted.add(page)
            self._want(cmd.ReadMemory(page, PAGE))

    def address(self, index: int) -> int:
        """The address of a line."""
        match self.mode:
            case Mode.MAP:
                mappings = self._view.mappings
                return mappings[index].start if mappings else 0
            case Mode.STRINGS:
                found = self._strings.found
                return found[index].address if index < len(found) else self._onward()
            case Mode.FIELDS:
                return self.fields.address(index)
        return self._base + index * (self.word if self.mode is Mode.STACK else _ROW)

    def size(self, index: int) -> int:
        """Bytes that a line stands for; 0 of a line of the map."""
        match self.mode:
            case Mode.MAP:
                return 0
            case Mode.STACK:
                return self.word
            case Mode.STRINGS:
                found = self._strings.found
                return len(found[index].data) if index < len(found) else 0
            case Mode.FIELDS:
                return len(self.fields.data(index))
        return _ROW

    def data(self, index: int) -> bytes:
        """The bytes of a line as far as they are known; none of a line of the map.

        None either where something is planted: it is not the program's.
        """
        address, size = self.address(index), self.size(index)
        if any(address - _ROW < at < address + max(size, _ROW) for at in self._view.planted):
            return b""
        match self.mode:
            case Mode.STACK:
                word = self._words.get(address)
                return b"" if word is None else word.value.to_bytes(self.word, self.order)
            case Mode.STRINGS:
                return self._strings.found[index].data if size else b""
            case Mode.FIELDS:
                return self.fields.data(index)
            case Mode.MAP:
                return b""
        return self._bytes_at(address, _ROW)

    def target(self, index: int) -> int | None:
        """The place that a word of the stack, or a part of an object, points at; None for none."""
        field = self.fields.field(index) if self.mode is Mode.FIELDS else None
        if field is not None and field.type.endswith("*"):
            return int.from_bytes(self.fields.data(index), self.order) or None
        word = self._words.get(self.address(index)) if self.mode is Mode.STACK else None
        return word.value if word is not None and word.hops else None
