"""The parts of an object, laid over its bytes."""

from typing import Final

from rich.text import Text

from engine.session.protocol.views import FieldView, LayoutView
from tui.render import harmless
from tui.widgets.looks import Looks

_NAME: Final = 24
"""Cells of a name, with what it is within, at the most."""
_BYTES: Final = 8
"""Bytes of a part that are shown."""
_TYPED: Final = 60
"""Cells from which on types are shown."""
_INDENT: Final = 2


class FieldLines:
    """Writes an object: a line that names it, then one for each part.

    Attributes:
        text: the expression that means the object, as it was typed.
        layout: the object, None while it is not known.
    """

    def __init__(self) -> None:
        """Nothing is laid over memory yet."""
        self.text = ""
        self.layout: LayoutView | None = None

    @property
    def count(self) -> int:
        """Number of lines."""
        layout = self.layout
        return 0 if layout is None else 1 + len(layout.fields) + layout.more

    def field(self, index: int) -> FieldView | None:
        """The part of a line; None for the line that names the object, and for the last one."""
        fields = () if self.layout is None else self.layout.fields
        return fields[index - 1] if 0 < index <= len(fields) else None

    def address(self, index: int) -> int:
        """The address of a line's part."""
        field, base = self.field(index), 0 if self.layout is None else self.layout.address
        return base if field is None else base + field.offset

    def data(self, index: int) -> bytes:
        """The bytes of a line's part, those of the object for the line that names it."""
        field, layout = self.field(index), self.layout
        if layout is None:
            return b""
        return layout.data if field is None else self._bytes(layout, field)

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A line."""
        layout, field = self.layout, self.field(index)
        if layout is None:
            return Text()
        if field is None:
            if index:
                return Text("... more parts", looks("note"), no_wrap=True)
            text = Text(harmless(layout.type, looks.ascii_only), looks("name"), no_wrap=True)
            text.append(f"  {layout.size} bytes at {layout.address:#x}", looks("dim"))
            return text
        return self._part(layout, field, width, looks)

    def _part(self, layout: LayoutView, field: FieldView, width: int, looks: Looks) -> Text:
        plain = looks.ascii_only
        offset = f"{field.offset:+#06x}" + (f":{field.bits[0]}" if field.bits else "")
        text = Text(f"{offset:<9}", looks("dim"), no_wrap=True)
        indent = " " * (_INDENT * field.level)
        shown = _short(self._bytes(layout, field))
        if not field.name:
            text.append(f"{indent}{field.size} bytes of padding", looks("note"))
        else:
            name = indent + harmless(field.name, plain)
            text.append(f"{name:<{self._names(layout)}}  ", looks("accent"))
            text.append(harmless(field.value, plain))
            if width >= _TYPED or not field.value:
                kind = harmless(field.type, plain)
                bits = f" : {field.bits[1]}" if field.bits else ""
                text.append(f"  {kind}{bits}", looks("dim"))
        room = width - text.cell_len - 2
        if len(shown) <= room and (field.value or not field.name):
            text.append(shown.rjust(room + 2), looks("dim"))
        return text

    @staticmethod
    def _names(layout: LayoutView) -> int:
        widths = (_INDENT * field.level + len(field.name) for field in layout.fields)
        return min(max(widths, default=0), _NAME)

    @staticmethod
    def _bytes(layout: LayoutView, field: FieldView) -> bytes:
        return layout.data[field.offset : field.offset + field.size]


def _short(data: bytes) -> str:
    """Bytes in hex, the first of them if they are many."""
    more = "..." if len(data) > _BYTES else ""
    return data[:_BYTES].hex(" ") + more
