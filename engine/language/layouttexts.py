"""Structures with offsets and sizes of their parts, as gdb's `ptype/o` writes them.

gdb: gdb/typeprint.c (print_offset_data) and gdb/c-typeprint.c.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.image.classes import class_parts
from engine.image.datatypes import DataType, Member, TypeKind
from engine.image.dietypes import DieType
from engine.language.enumerators import enumeration_text, is_nameless_enumeration
from engine.language.type_flags import (
    OwnNames,
    TypeFlags,
    bases_text,
    class_head,
    is_bare,
    plain_head,
)
from engine.language.user_types import is_known_by_name
from engine.language.value_types import CType

HEADING: Final = "/* offset      |    size */  "
_MARGIN: Final = " " * 27
"""In front of lines without an offset: as wide as an offset and a size."""


class _LayoutField(Struct, frozen=True):
    """A part of a structure; `member` is None for one that belongs to the class."""

    name: str
    type: DataType
    access: str
    member: Member | None


class LayoutText:
    """Writes one structure, class or union, and those in it."""

    def __init__(self, flags: TypeFlags) -> None:
        """Write as the flags say."""
        self._flags = flags

    def text(self, kind: CType) -> str:
        """From the keyword to the closing brace."""
        return self._record(kind, 0, 0)

    def _record(self, kind: CType, level: int, start: int) -> str:
        """A structure that begins at a bit of the outermost one."""
        parts = class_parts(kind) if isinstance(kind, DieType) else None
        members = [one for one in kind.members if not one.is_base]
        names = OwnNames(parts, self._flags)
        empty = not members
        if parts is None or kind.is_declared_only:
            head, labels = plain_head(kind), False
            fields = [_LayoutField(one.name or "", one.type, "", one) for one in members]
        else:
            head = class_head(kind, parts, self._flags) + bases_text(parts, names)
            labels = parts.needs_labels
            empty = is_bare(kind, parts)
            theirs = iter(members)
            fields = []
            for one in parts.fields:
                member = None if one.static else next(theirs, None)
                if not one.hidden:
                    fields.append(_LayoutField(one.name, one.type, one.access, member))
        space = " " * (level + 4)
        lines = [f"{head} {{"]
        if empty:
            shown = "<incomplete type>" if kind.is_declared_only else "<no data fields>"
            lines.append(f"{_MARGIN}{space}{shown}")
        end, section = 0, ""
        for field in fields:
            if labels and field.access != section:
                section = field.access
                lines.append(f"{_MARGIN}{' ' * (level + 2)}{section}:")
            if field.member is None:
                shown = names.written(field.type, field.name)
                lines.append(f"{_MARGIN}{space}static {shown};")
                continue
            mark, gap, end = self._placed(kind, field.member, start, end)
            lines += gap
            lines.append(f"{mark}{space}{self._declared(field, level, start, names)}")
        lines += _hole(end, (kind.size or 0) * 8, "padding")
        lines += ["", f"{_MARGIN}{space}/* total size (bytes): {kind.size or 0:>4} */"]
        lines.append(f"{_MARGIN}{'  ' if not level else ' ' * level}}}")
        return "\n".join(lines)

    def _declared(self, field: _LayoutField, level: int, start: int, names: OwnNames) -> str:
        member = field.member
        bits = f" : {member.bit_size}" if member is not None and member.bit_size else ""
        if is_nameless_enumeration(field.type):
            return f"{enumeration_text(field.type.resolved)} {field.name}{bits};"
        if member is None or not _is_written_out(field.type):
            return f"{names.written(field.type, field.name)}{bits};"
        before = "".join(
            f"{word} " for word in ("const", "volatile") if field.type.text.startswith(word)
        )
        resolved = field.type.resolved
        inner = self._record(resolved, level + 4, start + _bit(member))
        return f"{before}{inner}{f' {field.name}' if field.name else ''};"

    def _placed(
        self, owner: CType, member: Member, start: int, end: int
    ) -> tuple[str, list[str], int]:
        """The offset and size of a part, the hole in front of it, and the bit behind it."""
        size, as_hex = member.type.size or 0, self._flags.hexadecimal
        width = f"0x{size:04x}" if as_hex else f"{size:>6}"
        if owner.keyword == "union":
            return f"/*                {width} */", [], end
        bit = _bit(member)
        at, rest = divmod(bit + start, 8)
        bits = member.bit_size or size * 8
        if member.bit_size or start % 8:
            bits = member.bit_size
            where = f"0x{at:04x}: 0x{rest:x}" if as_hex else f"{at:>6}:{rest:>2}  "
        else:
            where = f"0x{at:04x}     " if as_hex else f"{at:>6}     "
        mark = f"/* {where} |  {width} */"
        return mark, list(_hole(end, bit, "hole")), bit + bits


def _bit(member: Member) -> int:
    """The first bit of a part, from the start of its structure."""
    return member.bit_offset if member.bit_size else member.offset * 8


def _is_written_out(kind: DataType) -> bool:
    """True for a structure that is named as such, and not by a typedef."""
    if kind.kind is not TypeKind.RECORD:
        return False
    text = kind.text.removeprefix("const ").removeprefix("volatile ")
    return text == kind.resolved.text and not is_known_by_name(text)


def _hole(end: int, start: int, what: str) -> Iterator[str]:
    """Say what lies unused between two bits."""
    if 0 < end < start:
        count, bits = divmod(start - end, 8)
        if bits:
            yield f"/* XXX {bits:>2}-bit {what:<7}    */"
        if count:
            yield f"/* XXX {count:>2}-byte {what:<7}   */"
