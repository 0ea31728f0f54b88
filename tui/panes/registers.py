"""The registers pane: values, what they point at, and who changed them."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.views import GuestView, RegisterView
from tui.messages import Located
from tui.render import harmless, mark
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines

_ALWAYS: Final = ("general", "flags")
_GROUPS: Final[tuple[tuple[str, ...], ...]] = (
    _ALWAYS,
    (*_ALWAYS, "system"),
    (*_ALWAYS, "system", "float", "vector"),
)


class RegisterLines(VirtualLines):
    """One line a register."""

    HELP = """
### Registers

| key | does |
|---|---|
| `Enter` | show the address that the register holds |
| `=` | set the register |
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

    def show(self, view: GuestView) -> None:
        """Another view."""
        if view.registers is not self._all:
            self._all = view.registers
            self._filter()

    def _filter(self) -> None:
        groups = _GROUPS[self._level]
        self._rows = [register for register in self._all if register.group in groups]
        self.changed()
        self.refresh_size()
        self.refresh()

    @property
    def line_count(self) -> int:
        """Registers shown."""
        return len(self._rows)

    def line(self, index: int, width: int) -> Text:
        """Name, value, mark, what it was, what it points at."""
        register = self._rows[index]
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

    def action_set(self) -> None:
        """Ask for a value."""
        if self._rows:
            register = self._rows[self.cursor]
            self.post_message(self.Editing(register.name, register.value))

    def action_choose(self) -> None:
        """Show the address that the register holds."""
        if self._rows:
            self.post_message(Located(self._rows[self.cursor].value, focus=True))


class RegistersPane(ListPane[RegisterLines]):
    """The pane of the registers."""

    TITLE = "Registers"
    NUMBER = 2

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(RegisterLines(), id=id)

    def show(self, view: GuestView) -> None:
        """Another view."""
        self.lines.show(view)
