"""Values as gdb prints them (gdb/valprint.c, gdb/c-valprint.c, gdb/printcmd.c)."""

import re
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.image.datatypes import Member, TypeKind
from engine.image.methods import virtual_methods
from engine.image.symtab import demangle
from engine.language import value_types as ct
from engine.language.class_members import ClassMembers
from engine.language.containers import Containers
from engine.language.enumerators import of_type
from engine.language.format_letters import formatted
from engine.language.held import Held
from engine.language.languages import C, Forms
from engine.language.made_records import constant
from engine.language.memory_texts import MemoryTexts, marked_error
from engine.language.operators import whole_of
from engine.language.print_options import DEFAULT, PrintOptions
from engine.language.quoting import character, quoted, quoted_wide, wide_character
from engine.language.reach import Reach
from engine.language.real_texts import brain_float, real
from engine.language.register_types import BRAIN
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type
from engine.language.value_types import CType, is_reference
from engine.language.values import MemoryPlace, TypedValue

_DECIMAL: Final = 10
_LETTERS: Final = {8: "o", 16: "x"}
"""Letters of formats for the bases of whole numbers that are none of their own."""
_PLAIN_TEXT: Final = re.compile(r"((const|volatile) )*char \*( ?(const|volatile|restrict))*")
"""Types whose values gdb shows without their names (gdb/c-valprint.c, c_value_print)."""


class Printer(Struct, frozen=True):
    """Prints values.

    Attributes:
        around: the place that they are from.
        symbol: an address as "main+4", "" where no symbol is.
        options: how much is printed, and in what form.
        label: an address as the linker calls it, which is what memory and `print/a` show; None
            where `symbol` does for them as well.
        shown_bases: addresses of virtual base classes that the value in hand has shown.
    """

    around: Surroundings
    symbol: Callable[[int], str]
    options: PrintOptions = DEFAULT
    label: Callable[[int], str] | None = None
    shown_bases: set[int] = field(default_factory=set)

    @property
    def reach(self) -> Reach:
        """The values that can be reached there."""
        return Reach(self.around)

    @property
    def texts(self) -> MemoryTexts:
        """The texts in memory there."""
        return MemoryTexts(self.around, self.options)

    @property
    def forms(self) -> Forms:
        """The forms of the language there."""
        return self.around.language.forms(self)

    def text(self, value: TypedValue, letter: str = "") -> str:
        """A value as `print` shows it.

        Args:
            value: the value that is printed.
            letter: one of FORMATS, "" for the type's own.

        Raises:
            CommandError: it cannot be printed so.
            GuestFaultError: it cannot be read.
        """
        if value.missing:
            return self._lost(value, lines=True)
        if self.options.raw and letter in ("", "s"):
            letter = "r"
        if value.pages and value.pages is not self.around.pages:
            there = replace(self, around=self.around.afterwards(value.pages))
            return there.text(value, letter)
        if self.around.language is not C and (own := self.forms.whole(value, letter)) is not None:
            return own
        if self.options.object and letter != "r":
            real = self._as_it_is(value)
            if real is not None:
                value = real
                if value.type.resolved.kind is TypeKind.RECORD:
                    title = escaped(bare_type(value.type.text))
                    return f"({title}) {self.part(value, letter, 0)}"
        kind = value.type.resolved
        if is_reference(value.type):
            inner = self.referred(value)
            # gdb's printers see through references to variables, and through no others.
            seen = letter != "r" and not value.type.resolved.text.endswith("&&")
            shown = self._container(inner, letter, 0) if seen else None
            if shown is not None:
                return shown
            at = f"@{value.number:#x}: " if self.options.address else ""
            return f"({escaped(value.type.text)}) {at}{self.part(inner, letter, 0)}"
        if not letter or letter == "s" or letter == "r":
            if value.label:
                return value.label
            is_plain = kind.kind is TypeKind.POINTER and kind.owner is None
            if is_plain and not self._is_text(value.type):
                shown = self.around.language.type_text(value.type)
                return f"({escaped(shown)}) {self._pointer(value)}"
        return self.part(value, letter, 0)

    def brief(self, value: TypedValue) -> str:
        """A value in a list of variables or arguments.

        Raises:
            CommandError: it cannot be printed.
            GuestFaultError: it cannot be read.
        """
        if value.missing:
            return self._lost(value, lines=False)
        shown = self.forms.brief(value)
        return self.text(value) if shown is None else shown

    def _lost(self, value: TypedValue, *, lines: bool) -> str:
        """The text in place of a value, or what there is of the value all the same."""
        shown = self.forms.partial(value, lines=lines) if value.pieces else None
        return value.missing if shown is None else shown

    def _as_it_is(self, value: TypedValue) -> TypedValue | None:
        """An object, or a pointer or reference to one, in the object's own class."""
        kind, members = value.type.resolved, ClassMembers(self.around, self.reach)
        if kind.kind is not TypeKind.POINTER:
            return members.whole(value)
        if kind.owner is not None or kind.target.resolved.kind is not TypeKind.RECORD:
            return None
        if not value.number:
            return None
        try:
            whole = members.whole(self.reach.at(kind.target, value.number))
        except GuestFaultError:
            return None
        if whole is None or whole.address is None:
            return None
        refers, size = is_reference(value.type), self.around.pointer
        fixed = kind.target.text.startswith("const ")
        own = constant(whole.type) if fixed else whole.type
        target = (ct.reference_to if refers else ct.pointer_to)(own, size)
        if value.type.text.endswith("* const"):
            target = replace(target, name="* const")
        return self.reach.made(target, whole.address)

    def referred(self, reference: TypedValue) -> TypedValue:
        """The value a reference refers to."""
        return self.reach.at(reference.type.target, reference.number)

    def _is_text(self, pointer: CType) -> bool:
        """True for a pointer that is shown as a text alone; C's are those to plain `char`."""
        if self.around.language is not C:
            return pointer.resolved.target.kind in ct.CHARS
        if ct.wide_mark(pointer.resolved.target):
            return True
        return _PLAIN_TEXT.fullmatch(pointer.text) is not None

    def part(self, value: TypedValue, letter: str, depth: int) -> str:
        """A value, perhaps inside another one."""
        if value.missing:
            return value.missing
        kind = value.type.resolved
        if letter in ("", "s", "r") and self.around.language is not C:
            shown = self.forms.scalar(value)
            if shown is not None:
                return shown
        match kind.kind:
            case TypeKind.RECORD:
                return self._record(value, letter, depth)
            case TypeKind.ARRAY:
                return self._array(value, letter, depth)
            case TypeKind.FUNCTION if letter in ("", "s", "r"):
                self.around.read(value.address or 0, 1)  # code that is not there has no value
                text = re.sub(r"^\?(?= \()", "void", value.type.text)  # an assembler says no more
                return f"{{{escaped(text)}}} {self._of_symbol(value.address or 0)}"
            case TypeKind.VOID:
                return "void"
            case TypeKind.FUNCTION:
                raise CommandError("Value can't be converted to integer.")
        if letter and letter not in "sr":
            return self.formatted(value, letter)
        return self._scalar(value, kind)

    # -- scalars ----------------------------------------------------------------------------

    def _scalar(self, value: TypedValue, kind: CType) -> str:
        match kind.kind:
            case TypeKind.POINTER:
                if kind.owner is not None:
                    return self._member_pointer(value, kind.owner)
                if is_reference(value.type):
                    inner = self.referred(value)
                    if (shown := self._container(inner, "", 1)) is not None:
                        return shown
                    at = f"@{value.number:#x}: " if self.options.address else ""
                    return f"{at}{self.part(self.referred(value), '', 1)}"
                return self._pointer(value)
            case _ if mark := ct.wide_mark(value.type):
                size, number = kind.size or 1, value.number
                code = number & (1 << 8 * size) - 1
                return f"{number} {wide_character(code, size, self.around.order, mark)}"
            case TypeKind.BOOL:
                return {0: "false", 1: "true"}.get(value.number, str(value.number))
            case TypeKind.CHAR | TypeKind.UNSIGNED_CHAR if kind.size == 1:
                if self.options.radix != _DECIMAL:
                    return self._whole(value)
                return f"{value.number} {character(value.number)}"
            case TypeKind.ENUM:
                return escaped(of_type(value.number, kind))
            case TypeKind.FLOAT if kind.text == BRAIN:
                return brain_float(value.raw, self.around.order)
            case TypeKind.FLOAT:
                return real(value.raw, self.around.order, is_quad=kind.is_quad)
            case TypeKind.COMPLEX:
                half = (kind.size or 0) // 2
                parts = value.raw[:half], value.raw[half:]
                order, quad = self.around.order, kind.is_quad
                return "{} + {}i".format(*(real(raw, order, is_quad=quad) for raw in parts))
            case TypeKind.OTHER:
                return "{" + " ".join(f"{byte:#04x}" for byte in value.raw) + "}"
        return self._whole(value)

    def _whole(self, value: TypedValue) -> str:
        """A whole number to the base that is set."""
        letter = _LETTERS.get(self.options.radix)
        return self.formatted(value, letter) if letter else str(value.number)

    def _member_pointer(self, value: TypedValue, owner: CType) -> str:
        """A pointer to a member: the member by name, or a function (Itanium C++ ABI, 2.3)."""
        raw, order = value.raw, self.around.order
        if len(raw) <= self.around.pointer:
            offset = int.from_bytes(raw, order, signed=True)
            if offset == -1:
                return "NULL"
            found = next((one for one in owner.members if one.offset == offset and one.name), None)
            if found is None or found.bit_size:
                return str(offset)
            return escaped(f"&{bare_type(owner.text)}::{found.name}")
        half = len(raw) // 2
        code, adjusted = (int.from_bytes(part, order) for part in (raw[:half], raw[half:]))
        if adjusted & 1:  # the mark of a virtual function where code may have odd addresses
            return self._virtual(code, owner)
        if code & 1:
            return self._virtual(code - 1, owner)
        return f"({escaped(value.type.text)}) {self._of_symbol(code)}" if code else "NULL"

    def _virtual(self, offset: int, owner: CType) -> str:
        """A virtual function by its place in the table of a class."""
        for method in virtual_methods(owner.resolved):
            if method.slot == offset // self.around.pointer and method.linkage:
                return f"&virtual {escaped(demangle(method.linkage))}"
        return f"&virtual table offset {offset}"

    def _pointer(self, value: TypedValue) -> str:
        target, number = value.type.resolved.target, value.number
        if target.kind in ct.CHARS and target.size == 1:
            shown = self.address(number) if number else f"{number:#x}"
            return f"{shown}{self.texts.pointed(number)}".lstrip()
        if mark := ct.wide_mark(target):
            text = self.texts.wide(number, target.size or 1, mark) if number else ""
            return f"{self.address(number)} {text}".strip()
        if target.resolved.kind is TypeKind.FUNCTION:
            return self._of_symbol(number)
        return self.address(number)

    def address(self, number: int) -> str:
        """An address and its symbol: "0x401136 <main+4>"."""
        if not self.options.symbol:
            return f"{number:#x}" if self.options.address else ""
        return self._of_symbol(number)

    def linked_address(self, number: int) -> str:
        """An address in memory that is shown: "0x401136 <_ZN3geo4areaEv+4>"."""
        if not self.options.symbol:
            return f"{number:#x}" if self.options.address else ""
        return self._with_name(number, self.label or self.symbol)

    def _of_symbol(self, number: int) -> str:
        return self._with_name(number, self.symbol)

    def _with_name(self, number: int, named: Callable[[int], str]) -> str:
        name = escaped(named(number)) if number else ""
        if name and not self.options.address:
            return f"<{name}>"
        if not self.options.address and number:
            return ""
        return f"{number:#x} <{name}>" if name else f"{number:#x}"

    def formatted(self, value: TypedValue, letter: str) -> str:
        """A scalar by a format letter.

        Raises:
            CommandError: it has no such form.
        """
        kind, raw = value.type.resolved, value.raw
        if letter in "ac" and kind.owner is not None and len(raw) > self.around.pointer:
            raise CommandError("Value can't be converted to integer.")
        if kind.kind is TypeKind.FLOAT and letter in "ac":  # the others show its bytes
            kind = ct.LONG
            raw = self.reach.made(kind, whole_of(value.exact)).raw
        return formatted(raw, letter, self.around.order, kind=kind, address=self.linked_address)

    # -- what has parts ---------------------------------------------------------------------

    def _container(self, value: TypedValue, letter: str, depth: int) -> str | None:
        """A container of C++ by the things in it; None for no container."""
        options = self.options
        containers = Containers(self.around, options.elements)
        if not containers.knows(value.type):
            return None
        _ = value.raw  # if that cannot be read, there is nothing to be shown
        try:
            held = containers.held(value)
        except GuestFaultError as error:
            return marked_error(error)
        if held is None or not held.shown:
            return None
        try:
            if held.alone is not None:
                return self.part(held.alone, letter, depth)
            if held.wrapped is not None:
                return f"{escaped(held.title)}{{ {self.part(held.wrapped, letter, depth)} }}"
        except GuestFaultError as error:
            if not depth:
                raise
            return marked_error(error)
        if held.text is not None:
            return self._held_text(held)
        parts: list[str] = []
        assert held.children is not None, "what is no string has children"
        children = held.children()
        more = ""
        try:
            for number, (key, part) in enumerate(children):
                if number >= options.elements:
                    more = "..."
                    break
                text = self.part(part, letter, depth + 1)
                if isinstance(key, TypedValue):
                    parts.append(f"[{self.part(key, letter, depth + 1)}] = {text}")
                else:
                    at = f"{key} = " if held.named else self._index(number)
                    parts.append(f"{at}{text}")
        except GuestFaultError as error:
            parts.append(marked_error(error))
        own_lines = options.pretty if held.named else options.array
        shown = self._braces(parts, depth, own_lines=own_lines and bool(parts), more=more)
        title = escaped(held.title)
        return f"{title} = {shown}" if title and parts else title or shown

    def summary(self, value: TypedValue) -> str:
        """A structure or array in a line that holds others: "..." or what its container says.

        Raises:
            GuestFaultError: it cannot be read.
        """
        if value.missing:
            return value.missing
        brief = self.forms.brief(value)
        if brief is not None:
            return brief
        if is_reference(value.type):
            if value.type.resolved.text.endswith("&&"):
                return "..."
            value = self.referred(value)
        containers = Containers(self.around, self.options.elements)
        held = containers.held(value) if containers.knows(value.type) else None
        if held is None or not held.shown:
            return "..."
        if held.alone is not None:
            return self.text(held.alone)
        if held.wrapped is not None:
            return f"{escaped(held.title)}{{ {self.text(held.wrapped)} }}"
        if held.text is not None:
            return self._held_text(held)
        assert held.children is not None, "what is no string has children"
        if next(iter(held.children()), None) is None:
            return escaped(held.title)
        return f"{escaped(held.title)} = {{...}}" if held.title else "{...}"

    def _held_text(self, held: Held) -> str:
        """The text of a container by its first bytes and the number of all."""
        raw, repeats = held.text or b"", self.options.repeats
        own = self.forms.quoted(raw, held.length)
        if own is not None:
            return own
        if held.wide:
            size = held.length // held.count if held.count else 1
            shown = quoted_wide(raw, size, self.around.order, held.wide, repeats)
        else:
            shown = quoted(raw, repeats)
        return shown + ("..." if held.length > len(raw) else "")

    @staticmethod
    def _braces(parts: list[str], depth: int, *, own_lines: bool, more: str = "") -> str:
        """Parts between braces, each on a line of its own or all on one."""
        if not own_lines:
            return "{" + ", ".join(parts) + more + "}"
        inner = "\n" + "  " * (depth + 1)
        return "{" + inner + f",{inner}".join(parts) + more + "\n" + "  " * depth + "}"

    def _is_cut(self, depth: int) -> bool:
        return depth >= self.options.depth

    def _record(
        self, value: TypedValue, letter: str, depth: int, *, nameless: bool = False
    ) -> str:
        if self._is_cut(depth) and not nameless:
            is_plain = letter == "r" or self.around.language is not C
            brief = "..." if is_plain else self.summary(value)
            return "{...}" if brief == "..." else brief
        if letter != "r":
            shown = self._container(value, letter, depth)
            if shown is not None:
                return shown
        own = self.forms.record(value, letter, depth)
        if own is not None:
            return own
        kind, options = value.type.resolved, self.options
        if kind.is_declared_only:
            return "<incomplete type>"
        if not depth:
            self.shown_bases.clear()
        if kind.keyword == "union" and depth and not options.union:
            return "{...}"
        bases: list[str] = []
        parts: list[str] = []
        statics = list(kind.statics) if options.statics else []
        for number, member in enumerate(kind.members):
            while statics and statics[0][0] <= number:
                parts.append(self._static(kind, statics.pop(0)[1], letter, depth))
            if member.offset_place and not self._is_first(value, member):
                continue
            part = self.reach.part(value, member)
            inner = member.type.resolved
            if member.name:
                name = escaped(member.name)  # of lines, only those between members are meant
                parts.append(f"{name} = {self._field(part, member, letter, depth + 1)}")
            elif member.is_base:
                # gdb writes a base class that is only declared here as one without data.
                declared = inner.is_declared_only and not self._is_cut(depth + 1)
                shown = "{<No data fields>}" if declared else self.part(part, letter, depth + 1)
                bases.append(f"<{escaped(member.type.text)}> = {shown}")
            elif inner.kind is TypeKind.RECORD:
                parts.append(self._record(part, letter, depth + 1, nameless=True))
        parts += [self._static(kind, name, letter, depth) for _, name in statics]
        empty = not kind.statics and all(member.is_base for member in kind.members)
        if not options.pretty:
            return self._braces(
                [*bases, *parts, *(["<No data fields>"] if empty else [])], depth, own_lines=False
            )
        return self._pretty_record(kind, bases, parts, depth)

    def _field(self, part: TypedValue, member: Member, letter: str, depth: int) -> str:
        """A named member of a structure."""
        if (member.name or "").startswith("_vptr") and letter == "x":
            letter = ""
        if not is_reference(member.type) or self.around.language is not C or letter == "r":
            return self.part(part, letter, depth)
        shown = self._container(self.referred(part), letter, depth)
        if shown is not None:
            return shown
        return f"@{part.number:#x}" if self.options.address else ""

    def _is_first(self, value: TypedValue, member: Member) -> bool:
        """True for a virtual base class that was not yet shown in this value."""
        address = self.reach.part(value, member).address or 0
        shown = address in self.shown_bases
        self.shown_bases.add(address)
        return not shown

    def _pretty_record(self, kind: CType, bases: list[str], parts: list[str], depth: int) -> str:
        """A structure on lines of its own; the members behind base classes have a heading."""
        inner = "\n" + "  " * (depth + 1)
        text = "".join(f"{inner}{base}, " for base in bases)
        if not parts:
            return "{" + text + "<No data fields>}"
        if bases:
            text += f"{inner}members of {escaped(bare_type(kind.text))}:"
        text += ",".join(f"{inner}{part}" for part in parts)
        return "{" + text + "\n" + "  " * depth + "}"

    def _static(self, kind: CType, name: str, letter: str, depth: int) -> str:
        """A class's static variable."""
        found = self.around.variable(name)
        if found is None:
            members = ClassMembers(self.around, self.reach)
            found = members.static(kind, name.rpartition("::")[2])
        text = "<optimized out>" if found is None else self.part(found, letter, depth + 1)
        return f"static {escaped(name.rpartition('::')[2])} = {text}"

    def _text_array(self, data: bytes) -> str:
        """An array of characters as a text.

        Equal characters in a row count as one step, so that a run is never cut in two
        (gdb/valprint.c, generic_printstr).
        """
        options, more = self.options, ""
        if options.null_stop:
            data = data.partition(b"\0")[0]
        elif data.endswith(b"\0"):
            data = data[:-1]
        end = 0
        for _, run in groupby(data):
            if end >= options.elements:
                more = "..."
                break
            end += sum(1 for _ in run)
        return quoted(data[:end], options.repeats) + more

    def _wide_array(self, data: bytes, size: int, mark: str) -> str:
        """An array of wider characters as a text."""
        options, more = self.options, ""
        codes = [data[at : at + size] for at in range(0, len(data) - size + 1, size)]
        zero = bytes(size)
        if options.null_stop and zero in codes:
            codes = codes[: codes.index(zero)]
        elif codes and codes[-1] == zero:
            codes.pop()
        end = 0
        for _, run in groupby(codes):
            if end >= options.elements:
                more = "..."
                break
            end += sum(1 for _ in run)
        text = b"".join(codes[:end])
        return quoted_wide(text, size, self.around.order, mark, options.repeats) + more

    def _array(self, value: TypedValue, letter: str, depth: int) -> str:
        kind, options = value.type.resolved, self.options
        element, count = kind.element, kind.count or 0
        if element.kind in ct.CHARS and element.size == 1 and letter in ("", "s", "r"):
            return self._text_array(value.raw)
        if letter in ("", "s", "r") and (mark := ct.wide_mark(element)):
            return self._wide_array(value.raw, element.size or 1, mark)
        if self._is_cut(depth):
            return "{...}"
        size = element.size or 0
        if not count or not size:
            return "".join(self.forms.brackets) if not count else "{...}"
        raw = value.raw
        shown = 0
        parts: list[str] = []
        pieces = [raw[at : at + size] for at in range(0, min(count * size, len(raw)), size)]
        place = value.address
        at, more = 0, ""
        for piece, run in groupby(pieces):
            length = sum(1 for _ in run)
            if shown >= options.elements:
                more = "..."
                break
            there = None if place is None else MemoryPlace(place + at * size)
            one = TypedValue(element, partial(bytes, piece), there, order=self.around.order)
            text = self.part(one, letter, depth + 1)
            if length > options.repeats:
                parts.append(f"{self._index(at)}{text} <repeats {length} times>")
                shown += options.repeats
            else:
                fit = min(length, options.elements - shown)
                parts += [f"{self._index(at + n)}{text}" for n in range(fit)]
                shown += fit
                if fit < length:
                    more = "..."
                    break
            at += length
        text = self._braces(parts, depth, own_lines=options.array, more=more)
        opening, closing = self.forms.brackets
        return f"{opening}{text[1:-1]}{closing}"

    def _index(self, number: int) -> str:
        return f"[{number}] = " if self.options.indexes else ""
