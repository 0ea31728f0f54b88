"""The registers pane: values, what they point at, and who changed them."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.protocol.views import GuestView, RegisterView
from tui.messages import Located
from tui.render import harmless, mark
from tui.widgets.list_pane import ListPane
from tui.widgets.painted_lines import GUTTER
from tui.widgets.virtual_lines import VirtualLines

_ALWAYS: Final = ("general", "flags")
_COLUMN: Final = 36
"""Cells that a column needs: a name, a value, and the beginning of what it means."""
_GROUPS: Final[tuple[tuple[str, ...], ...]] = (
    _ALWAYS,
    (*_ALWAYS, "system"),
    (*_ALWAYS, "system", "float", "vector"),
)


class RegisterLines(VirtualLines):
    """One line a register; in columns where they do not fit below each other but side by side."""

    HELP = """
### Registers

| key | does |
|---|---|
| `Enter` | show the address that the register holds |
| `=` | set the register |
| `h` `l` | to the other column, where there are two |
| `v` | more registers: system, then float and vector |
| `D` | decimal or hexadecimal |
| `Y` | copy |

`*` was changed by the guest's own instruction, `!` by the machinery of a probe.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "more", "More", show=False, id="registers.more"),
        Binding("D", "radix", "Dec/hex", show=False, id="registers.radix"),
        Binding("equals_sign", "set", "Set", show=False, key_display="=", id="registers.set"),
    ]

    class Editing(Message):
        """The user wants to set a register."""

        def __init__(self, name: str, value: int) -> None:
            super().__init__()
            self.name = name
            self.value = value

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._all: tuple[RegisterView, ...] = ()
        self._rows: list[RegisterView] = []
        self._level = 0
        self._decimal = False
        self._columns = 1
        self._column = 0

    def show(self, view: GuestView) -> None:
        """Another view."""
        if view.registers is not self._all:
            self._all = view.registers
            self._filter()

    def _filter(self) -> None:
        groups = _GROUPS[self._level]
        self._rows = [register for register in self._all if register.group in groups]
        self._arrange()
        self.changed()
        self.refresh_size()
        self.refresh()

    def _arrange(self) -> None:
        """As many columns as are needed, and have room."""
        needed = -(-len(self._rows) // max(self.size.height, 1))
        columns = max(min(needed, (self.view_width - GUTTER) // _COLUMN), 1)
        if columns != self._columns:
            here = self._index
            self._columns = columns
            self.select(here)

    def on_resize(self) -> None:
        """Another width: more columns or fewer."""
        before = self._columns
        self._arrange()
        if before != self._columns:
            self.changed()
            self.refresh_size()

    @property
    def line_count(self) -> int:
        """Registers in a column."""
        return -(-len(self._rows) // self._columns)

    @property
    def _index(self) -> int:
        """Which register the cursor is on."""
        return min(self._column * self.line_count + self.cursor, max(len(self._rows) - 1, 0))

    @property
    def register(self) -> RegisterView | None:
        """The one at the cursor."""
        return self._rows[self._index] if self._rows else None

    def select(self, index: int) -> None:
        """Put the cursor on a register by its number."""
        self._column, line = divmod(index, max(self.line_count, 1))
        self.move_to(line)
        self.changed()

    def line(self, index: int, width: int) -> Text:
        """The registers of a line."""
        if self._columns == 1:
            return self._cell(self._rows[index])
        text, room = Text(no_wrap=True), width // self._columns
        for column, register in enumerate(self._rows[index :: self.line_count]):
            cell = self._cell(register)
            if index == self.cursor and column == self._column:
                cell.stylize("underline", 0, len(register.name))
            cell.truncate(room - 1)
            cell.pad_right(room - len(cell))
            text.append_text(cell)
        return text

    def plain(self, index: int) -> str:
        """The registers of a line, whole."""
        cells = (self._cell(register) for register in self._rows[index :: self.line_count])
        return "  ".join(cell.plain.rstrip() for cell in cells)

    def cursor_moved(self, old: int) -> None:
        """The name at the cursor is underlined."""
        if self._columns > 1:
            self.changed()
        super().cursor_moved(old)

    def _cell(self, register: RegisterView) -> Text:
        """Name, value, mark, what it was, what it points at."""
        changed = register.origin
        sign = {"insn": "*", "machinery": "!"}.get(changed, " ")
        look = self.look({"insn": "good", "machinery": "warn"}.get(changed, "dim"))
        text = Text(no_wrap=True)
        text.append(f"{register.name:<7}", self.look("name"))
        text.append(sign, look)
        value = self.value(register, register.value)
        text.append(value, look if changed else "")
        if register.meaning:
            arrow = "" if register.group == "flags" else mark("arrow", self.ascii_only) + " "
            text.append(
                f"  {arrow}{harmless(register.meaning, self.ascii_only)}", self.look("note")
            )
        if changed:
            text.append(f"  was {self.value(register, register.old)}", self.look("dim"))
        return text

    def value(self, register: RegisterView, number: int) -> str:
        """A value as it is shown."""
        if not self._decimal:
            return f"{number:#x}"
        if register.bits == 64 and number >> 63:
            number -= 1 << 64
        return str(number)

    def action_more(self) -> None:
        """Show more groups of registers, then the usual ones again."""
        self._level = (self._level + 1) % len(_GROUPS)
        self._filter()

    def action_radix(self) -> None:
        """Decimal or hexadecimal."""
        self._decimal = not self._decimal
        self.changed()
        self.refresh()

    def action_sideways(self, steps: int) -> None:
        """To another column; where there is one alone, scroll."""
        if self._columns == 1:
            super().action_sideways(steps)
            return
        column = max(min(self._column + steps, self._columns - 1), 0)
        self.select(min(column * self.line_count + self.cursor, len(self._rows) - 1))

    def action_set(self) -> None:
        """Ask for a value."""
        if (register := self.register) is not None:
            self.post_message(self.Editing(register.name, register.value))

    def action_choose(self) -> None:
        """Show the address that the register holds."""
        if (register := self.register) is not None:
            self.post_message(Located(register.value, focus=True))


class RegistersPane(ListPane[RegisterLines]):
    """The pane of the registers."""

    TITLE = "Registers"
    NUMBER = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(RegisterLines(), id=id)

    def show(self, view: GuestView) -> None:
        """Another view."""
        self.lines.show(view)
