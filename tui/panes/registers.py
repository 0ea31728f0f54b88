"""The registers pane: values, what they point at, and who changed them."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.protocol.views import GuestView, RegisterView
from tui.messages import Followed, Located, Written
from tui.render import harmless
from tui.widgets.line_painter import GUTTER
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.pointers import append_hops, fitted
from tui.widgets.virtual_lines import VirtualLines

_ALWAYS: Final = ("general", "flags")
_COLUMN: Final = 36
"""Cells that a column needs: a name, a value, and the beginning of what it means."""
_GROUPS: Final[tuple[tuple[str, ...], ...]] = (
    _ALWAYS,
    (*_ALWAYS, "system"),
    (*_ALWAYS, "system", "float", "vector"),
)


class RegisterRows(LineSource):
    """One line a register; in columns where they fit side by side but not below each other.

    Those that say where the guest is come first.

    Attributes:
        registers: those that are shown.
        columns: how many there are.
        decimal: whether values are decimal.
        chosen: number of the register at the cursor.
    """

    def __init__(self, first: tuple[str, ...]) -> None:
        """Nothing is known yet; `first` names those that come first."""
        self._first = {name: number for number, name in enumerate(first)}
        self._all: tuple[RegisterView, ...] = ()
        self.registers: list[RegisterView] = []
        self._level = 0
        self.columns = 1
        self.decimal = False
        self.chosen = 0

    def fill(self, registers: tuple[RegisterView, ...]) -> bool:
        """Take other registers; True if they are others than before."""
        if registers is self._all:
            return False
        self._all = registers
        self._choose_groups()
        return True

    def show_more(self) -> None:
        """Show more groups of registers, after the last one the usual ones again."""
        self._level = (self._level + 1) % len(_GROUPS)
        self._choose_groups()

    def _choose_groups(self) -> None:
        groups = _GROUPS[self._level]
        shown = (register for register in self._all if register.group in groups)
        last = len(self._first)
        self.registers = sorted(shown, key=lambda each: self._first.get(each.name, last))

    def columns_for(self, width: int, height: int) -> int:
        """As many columns as are needed, and have room."""
        needed = -(-len(self.registers) // max(height, 1))
        return max(min(needed, (width - GUTTER) // _COLUMN), 1)

    @property
    def count(self) -> int:
        """Registers in a column."""
        return -(-len(self.registers) // self.columns)

    @property
    def last(self) -> int:
        """Number of the last register."""
        return max(len(self.registers) - 1, 0)

    @property
    def register(self) -> RegisterView | None:
        """The one at the cursor."""
        return self.registers[min(self.chosen, self.last)] if self.registers else None

    def content(self, index: int) -> object:
        """The registers of a line, and which of them has the cursor's mark."""
        count = self.count
        chosen = self.chosen // count if self.columns > 1 and self.chosen % count == index else -1
        return self.registers[index::count], self.columns, chosen, self.decimal

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """The registers of a line."""
        if self.columns == 1:
            return self._cell(self.registers[index], looks)
        text, room = Text(no_wrap=True), width // self.columns
        for column, register in enumerate(self.registers[index :: self.count]):
            cell = self._cell(register, looks)
            if index + column * self.count == self.chosen:
                cell.stylize("underline", 0, len(register.name))
            fitted(cell, room - 1, looks.ascii_only)
            cell.pad_right(room - cell.cell_len)
            text.append_text(cell)
        return text

    def plain(self, index: int, looks: Looks) -> str:
        """The registers of a line, whole."""
        cells = (self._cell(register, looks) for register in self.registers[index :: self.count])
        return "  ".join(cell.plain.rstrip() for cell in cells)

    def _cell(self, register: RegisterView, looks: Looks) -> Text:
        """Name, value, mark, what it was, what it points at."""
        changed = register.origin
        sign = {"insn": "*", "machinery": "!"}.get(changed, " ")
        look = looks({"insn": "good", "machinery": "warn"}.get(changed, "dim"))
        text = Text(no_wrap=True)
        text.append(f"{register.name:<7}", looks("name"))
        text.append(sign, look)
        value = self._value(register, register.value)
        text.append(value, look if changed else "")
        if register.meaning:
            text.append(f"  {harmless(register.meaning, looks.ascii_only)}", looks("note"))
        append_hops(text, register.hops, looks)
        if changed:
            text.append(f"  was {self._value(register, register.old)}", looks("dim"))
        return text

    def _value(self, register: RegisterView, number: int) -> str:
        """A value as it is shown."""
        if not self.decimal:
            return f"{number:#x}"
        if register.bits == 64 and number >> 63:
            number -= 1 << 64
        return str(number)


class RegisterTable(VirtualLines[RegisterRows]):
    """The registers in as many columns as there is room for, and a cursor in them."""

    def __init__(self, first: tuple[str, ...]) -> None:
        """`first` names the registers that come first."""
        super().__init__(RegisterRows(first))
        self._column = 0

    def on_resize(self) -> None:
        """Make more or fewer columns for another size."""
        if self.fit():
            self.renew()

    def fit(self) -> bool:
        """As many columns as this size has room for; True if there were others before."""
        source = self.source
        columns = source.columns_for(self.view_width, self.size.height)
        if columns == source.columns:
            return False
        chosen = min(source.chosen, source.last)
        source.columns = columns
        self.select(chosen)
        return True

    def select(self, number: int) -> None:
        """Put the cursor on a register by its number."""
        self._column, line = divmod(number, max(self.source.count, 1))
        self.move_to(line)
        self._choose()
        self.changed()

    def find(self, name: str) -> None:
        """Put the cursor on a register by its name, if it is there."""
        for number, register in enumerate(self.source.registers):
            if register.name == name:
                self.select(number)

    def refresh_size(self) -> None:
        """Choose the register at the cursor again: it may be another one."""
        super().refresh_size()
        self._choose()

    def cursor_moved(self, old: int) -> None:
        """The name at the cursor is underlined."""
        self._choose()
        if self.source.columns > 1:
            self.changed()
        super().cursor_moved(old)

    def _choose(self) -> None:
        source = self.source
        source.chosen = self._column * source.count + self.cursor

    def action_sideways(self, steps: int) -> None:
        """To another column; where there is one alone, scroll."""
        source = self.source
        if source.columns == 1:
            super().action_sideways(steps)
            return
        column = max(min(self._column + steps, source.columns - 1), 0)
        self.select(min(column * source.count + self.cursor, source.last))


class RegistersPane(ListPane[RegisterRows]):
    """The pane of the registers."""

    TITLE = "Registers"
    OF_A_MOMENT = True
    HELP = """
### Registers

| key | does |
|---|---|
| `Enter` | show the address that the register holds |
| `=` | set the register |
| `W` | who wrote it: go back to what wrote it last, again: to the write before |
| `X` | where it came from: the value, followed back to an input or a computation |
| `h` `l` | to the other column, where there are two |
| `v` | more registers: system, then float and vector |
| `D` | decimal or hexadecimal |
| `Y` | copy |

`*` was changed by the guest's own instruction, `!` by the machinery of a probe. Behind a pointer
stands where it leads, from pointer to pointer, to a string, an instruction or a number.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "more", "More", show=False, id="registers.more"),
        Binding("D", "radix", "Dec/hex", show=False, id="registers.radix"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="registers.set"),
        Binding("W", "who_wrote", "Who wrote", show=False, id="registers.who_wrote"),
        Binding("X", "where_from", "Where from", show=False, id="registers.where_from"),
    ]

    class Editing(Message):
        """The user wants to set a register."""

        def __init__(self, name: str, value: int) -> None:
            super().__init__()
            self.name = name
            self.value = value

    def __init__(self, first: tuple[str, ...]) -> None:
        """`first` names the registers that come first."""
        self._table = RegisterTable(first)
        super().__init__(self._table)
        self._cursor_at = ""

    def show(self, view: GuestView) -> None:
        """Show a new view; the cursor stays at its register, though there are none meanwhile."""
        before = self.source.register
        if before is not None:
            self._cursor_at = before.name
        if self.source.fill(view.registers):
            self._renew()
            if before is None:
                self._table.find(self._cursor_at)

    def _renew(self) -> None:
        self._table.fit()
        self._table.renew()

    # -- keys ----------------------------------------------------------------------------------

    def action_more(self) -> None:
        """Show more groups of registers, then the usual ones again."""
        self.source.show_more()
        self._renew()

    def action_radix(self) -> None:
        """Decimal or hexadecimal."""
        self.source.decimal = not self.source.decimal
        self.lines.changed()

    def action_set(self) -> None:
        """Ask for a value."""
        if (register := self.source.register) is not None:
            self.post_message(self.Editing(register.name, register.value))

    def action_who_wrote(self) -> None:
        """Go back to what has written to the register last."""
        if (register := self.source.register) is not None:
            self.post_message(Written(register.name))

    def action_where_from(self) -> None:
        """Follow the register's value backwards."""
        if (register := self.source.register) is not None:
            self.post_message(Followed(register.name, size=(register.bits + 7) // 8))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Show the address that the register holds."""
        event.stop()
        if (register := self.source.register) is not None:
            self.post_message(Located(register.value, focus=True))
