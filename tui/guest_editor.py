"""Changes to the guest: instructions, registers, memory."""

import re
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from engine.errors import KprobeTuiError
from engine.session.protocol import commands as cmd
from tui.desk import Desk
from tui.widgets.bars import Question

if TYPE_CHECKING:  # the pane of memory says how it is written
    from tui.panes.registry import Panes

Order = Literal["little", "big"]


class WrittenAs(Enum):
    """The ways in which bytes of memory are written down."""

    BYTES = "bytes"
    WORDS = "words"
    TEXT = "string"
    NUMBER = "number"


class _Form(Struct, frozen=True):
    """Bytes of memory as they are asked for.

    Attributes:
        text: what stands there.
        hint: what can be typed.
        read: makes bytes of what was typed, or raises `KprobeTuiError`.
    """

    text: str
    hint: str
    read: Callable[[str], bytes]


def _bytes_form(data: bytes, word: int, order: Order) -> _Form:
    def read(text: str) -> bytes:
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise KprobeTuiError(f"{text}: not hex digits") from None

    return _Form(data.hex(" "), "hex digits", read)


def _words_form(data: bytes, word: int, order: Order) -> _Form:
    def read(text: str) -> bytes:
        found = [_packed(number(each), word, order) for each in text.split()]
        if not found:
            raise KprobeTuiError("which? a word is missing")
        return b"".join(found)

    words = (data[at : at + word] for at in range(0, len(data) - word + 1, word))
    text = " ".join(f"{int.from_bytes(each, order):#x}" for each in words)
    return _Form(text, f"numbers of {word} bytes", read)


def _number_form(data: bytes, word: int, order: Order) -> _Form:
    if not data:
        return _bytes_form(data, word, order)
    text = f"{int.from_bytes(data, order):#x}"
    return _Form(
        text,
        f"a number of {len(data)} bytes",
        lambda text: _packed(number(text), len(data), order),
    )


def _text_form(data: bytes, word: int, order: Order) -> _Form:
    def read(text: str) -> bytes:
        new = _unescaped(text)
        if len(new) > len(data):
            raise KprobeTuiError(f"{len(new)} bytes, and there is room for {len(data)}")
        return new if len(new) == len(data) else new + b"\0"

    shown = "".join(_ESCAPED.get(letter, letter) for letter in data.decode(errors="replace"))
    return _Form(shown, f"at most {len(data)} bytes", read)


_FORMS: Final = {
    WrittenAs.BYTES: _bytes_form,
    WrittenAs.WORDS: _words_form,
    WrittenAs.TEXT: _text_form,
    WrittenAs.NUMBER: _number_form,
}
_ESCAPED: Final = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\x1b"}
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)")
_LETTERS: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\", b'"': b'"'}


def _unescaped(text: str) -> bytes:
    """The bytes of a string as C writes it.

    Raises:
        KprobeTuiError: it has an escape that means nothing.
    """

    def byte(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code in _LETTERS:
            return _LETTERS[code]
        try:
            value = int(code[1:], 16) if code[:1] == b"x" else int(code, 8)
        except ValueError:
            raise KprobeTuiError(f"\\{code.decode(errors='replace')} means nothing") from None
        return bytes((value & 0xFF,))

    return _ESCAPE.sub(byte, text.encode(errors="surrogateescape"))


def _packed(value: int, size: int, order: Order) -> bytes:
    """A number as bytes.

    Raises:
        KprobeTuiError: there is no room for it.
    """
    bits = 8 * size
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise KprobeTuiError(f"{value:#x} does not fit into {size} bytes")
    return (value & (1 << bits) - 1).to_bytes(size, order)


class GuestEditor:
    """Asks for what is to stand in the guest, and has it written."""

    def __init__(self, desk: Desk, panes: "Panes") -> None:
        """Nothing is changed yet."""
        self._desk = desk
        self._word, self._order = panes.memory.source.word, panes.memory.source.order
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

    def set_memory(self, address: int, data: bytes, how: WrittenAs, what: str = "") -> None:
        """Ask for what is to stand in memory.

        Args:
            address: of its first byte.
            data: the bytes that are known to be there.
            how: the way it is written.
            what: its name, "" for none.
        """
        form = _FORMS[how](data, self._word, self._order)

        def answer(text: str) -> None:
            self._desk.post(cmd.WriteMemory(address, form.read(text)))

        asked = f"{what or how.value} at {address:#x}"
        self._desk.ask(Question(asked, form.hint, answer, form.text, old=True))


def number(text: str) -> int:
    """A number as it is typed, decimal or with its prefix.

    Raises:
        KprobeTuiError: it is none.
    """
    try:
        return int(text.strip(), 0)
    except ValueError:
        raise KprobeTuiError(f"{text.strip()}: not a number") from None
