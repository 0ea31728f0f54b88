"""Changes to the guest: instructions, registers, memory."""

from engine.errors import KprobeTuiError
from engine.session.protocol import commands as cmd
from tui.desk import Desk
from tui.panes.registry import Panes
from tui.widgets.bars import Question


class GuestEditor:
    """Asks for what is to stand in the guest, and has it written."""

    def __init__(self, desk: Desk, panes: Panes) -> None:
        """Nothing is changed yet."""
        self._desk = desk
        self._code = panes.code.code

    def assemble(self) -> None:
        """Ask for an instruction to put over the one at the cursor."""
        row = self._code.row
        if row is None:
            return
        address = row.address
        text = f"{row.mnemonic} {row.operands}".strip()

        def answer(line: str) -> None:
            self._desk.post(cmd.Assemble(address, line))

        self._desk.ask(Question(f"assemble {address:#x}", "", answer, text, old=True))

    def set_register(self, name: str, value: int) -> None:
        """Ask for a register's value."""

        def answer(text: str) -> None:
            self._desk.post(cmd.WriteRegister(name, number(text)))

        self._desk.ask(Question(f"set {name}", "", answer, f"{value:#x}", old=True))

    def set_bytes(self, address: int, data: bytes) -> None:
        """Ask for bytes of memory, of which some are known."""

        def answer(text: str) -> None:
            try:
                new = bytes.fromhex(text)
            except ValueError:
                raise KprobeTuiError(f"{text}: not hex digits") from None
            self._desk.post(cmd.WriteMemory(address, new))

        asked = f"bytes at {address:#x}"
        self._desk.ask(Question(asked, "hex digits", answer, data.hex(" "), old=True))


def number(text: str) -> int:
    """A number as it is typed, decimal or with its prefix.

    Raises:
        KprobeTuiError: it is none.
    """
    try:
        return int(text.strip(), 0)
    except ValueError:
        raise KprobeTuiError(f"{text.strip()}: not a number") from None
