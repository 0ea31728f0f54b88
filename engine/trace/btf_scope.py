"""Names of a function's parameters in definitions of kernel probes, by the rules of BTF.

As parse_btf_arg and parse_btf_field of kernel/trace/trace_probe.c, with what they overlook: a
member is looked for among the named ones first and then in the anonymous parts, the last one
first; characters are numbers of eight bits without a sign.

After a member was read a kernel before 7.3 counts the columns of later errors from an address in
its own memory: such a caret cannot be foretold, and stands at the expression here.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.program import Base, FieldType, Source, ValueKind
from engine.errors import ImageError
from engine.fetch.bases import argument
from engine.fetch.dentry_types import DentryOffsets
from engine.fetch.era import Era
from engine.fetch.variables import (
    NOT_TEXT,
    TEXT_ARRAY,
    TEXT_POINTER,
    Fetched,
    VariableError,
)
from engine.image.kernel.btf import Btf, BtfEntry, BtfKind

_MODIFIERS: Final = frozenset(
    (BtfKind.CONST, BtfKind.VOLATILE, BtfKind.RESTRICT, BtfKind.TYPEDEF, BtfKind.TYPE_TAG)
)
_RECORDS: Final = (BtfKind.STRUCT, BtfKind.UNION)
_MAX_CHAIN: Final = 64
_MAX_ANONYMOUS: Final = 16
_SIGNED: Final = 1
_SEPARATOR: Final = re.compile(r"[.-]")
_RESULT: Final = "$retval"


class Prototype(Struct, frozen=True):
    """A function that BTF describes.

    Attributes:
        btf: where.
        parameters: (name, number of the type) of each.
        returns: number of the type.
    """

    btf: Btf
    parameters: tuple[tuple[str, int], ...]
    returns: int


def find_prototype(types: tuple[Btf, ...], name: str, hidden: int = 0) -> Prototype | None:
    """A function by name.

    Args:
        types: of the kernel, then of its modules.
        name: of the function.
        hidden: parameters at the front that nobody sees.
    """
    for btf in types:
        try:
            number = btf.find(BtfKind.FUNC, name)
            if number is None:
                continue
            proto = btf.entry(btf.entry(number).word)
            if proto.kind is not BtfKind.FUNC_PROTO:
                return None
            pairs = zip(proto.extra[::2], proto.extra[1::2], strict=True)
            found = tuple((btf.string(text), kind) for text, kind in pairs)
        except ImageError:
            return None
        return Prototype(btf, found[hidden:], proto.word)
    return None


class BtfScope:
    """The variables that a definition may name at a function's entry or return."""

    def __init__(
        self,
        arch: Arch,
        era: Era,
        prototype: Prototype | None,
        *,
        is_return: bool,
        hidden: int = 0,
    ) -> None:
        """For one function.

        Args:
            arch: of the kernel.
            era: its rules.
            prototype: of the function; None where BTF does not have it.
            is_return: the probe fires when the function returns.
            hidden: arguments in front of the parameters that are seen.
        """
        self._arch = arch
        self._era = era
        self._prototype = prototype
        self._is_return = is_return
        self._hidden = hidden
        self._asked = False

    def parameters(self) -> tuple[str, ...]:
        """Names of the function's parameters in order; none if it is not described."""
        self._asked = self._prototype is not None
        return tuple(name for name, _ in self._prototype.parameters) if self._prototype else ()

    def parameter(self, index: int) -> Fetched | None:
        """None: `$argN` is where the calling convention says."""
        return None

    def resolve(self, text: str) -> Fetched:
        """A parameter or the result, or what lies behind it: `name->field.part`."""
        name, after, arrow = self._split(text, 0)
        if after is not None and not arrow:
            raise VariableError("NOSUP_DAT_ARG", after, "'.' follows a member, not a parameter")
        prototype = self._prototype
        if self._is_return and name == _RESULT:
            base = Base(Source.RETVAL)
            if prototype is None:
                if after is not None:
                    raise VariableError("NO_BTF_ENTRY", after)
                return Fetched(base)
            if not prototype.returns and self._era.btf_fields:
                raise VariableError("NO_RETVAL")
            number = prototype.returns
        else:
            # A function without parameters is not found either, unless $argN was there before.
            if prototype is None or not (prototype.parameters or self._asked):
                raise VariableError("NO_BTF_ENTRY")
            index, number = self._parameter(prototype, name)
            base = self._base(index)
        try:
            return self._found(prototype.btf, text, base, number, after)
        except ImageError as error:
            raise VariableError("BAD_BTF_TID", 0, str(error)) from error

    def _base(self, index: int) -> Base:
        place = index + self._hidden
        if self._is_return:
            return Base(Source.ENTRY, value=place)
        return argument(self._arch, place)

    def _parameter(self, prototype: Prototype, name: str) -> tuple[int, int]:
        for index, (known, number) in enumerate(prototype.parameters):
            if known == name:
                return index, number
        shown = ", ".join(known for known, _ in prototype.parameters)
        raise VariableError("NO_BTFARG", 0, f"known here: {shown}" if shown else "")

    def _split(self, text: str, start: int) -> tuple[str, int | None, bool]:
        """A name, where the next one begins and whether an arrow is between them."""
        if not self._era.btf_fields:
            return text[start:], None, False
        return _split_name(text, start)

    def _found(self, btf: Btf, text: str, base: Base, number: int, start: int | None) -> Fetched:
        """The way to a parameter whose type has a number, or to a member from `start` on."""
        return _followed(self._split, btf, text, base, _plain(btf, number), start, self._arch.bits)


class BtfRecords:
    """The structures for casts, as parse_btf_casttype and parse_btf_arg look for them (7.3)."""

    def __init__(self, arch: Arch, types: tuple[Btf, ...]) -> None:
        """The types of a kernel and its modules; the first structure of a name counts."""
        self._bits, self._types = arch.bits, types

    def cast(self, text: str, close: int, at: int) -> Fetched:
        """A member behind a value that is taken for the address of a structure."""
        name, comma, _ = text[1:close].partition(",")
        btf, record = self._record(name, VariableError("NO_PTR_STRCT", 1))
        try:
            before = _option(btf, record, text[:close], len(name) + 2) if comma else 0
            found = _followed(
                _split_name, btf, text, Base(Source.IMMEDIATE), record, at, self._bits, first=False
            )
        except ImageError as error:
            raise VariableError("BAD_BTF_TID", 1, str(error)) from error
        return replace(found, derefs=(found.derefs[0] - before, *found.derefs[1:]))

    def task(self, text: str) -> Fetched:
        """A member of the running task."""
        _, at, arrow = _split_name(text, 0)
        assert at is not None, "it has a separator"
        assert arrow, "which is an arrow"
        btf, record = self._record("task_struct", VariableError("NO_BTF_ENTRY"))
        try:
            return _followed(
                _split_name, btf, text, Base(Source.CURRENT), record, at, self._bits, first=False
            )
        except ImageError as error:
            raise VariableError("BAD_BTF_TID", 0, str(error)) from error

    def _record(self, name: str, missing: VariableError) -> tuple[Btf, BtfEntry]:
        for btf in self._types:
            try:
                number = btf.find(BtfKind.STRUCT, name)
                if number is not None:
                    return btf, btf.entry(number)
            except ImageError:
                continue
        raise missing


def _option(btf: Btf, record: BtfEntry, text: str, at: int) -> int:
    """Bytes in front of the member that a cast names behind its structure."""
    place, entry = 0, record
    after: int | None = at
    arrow = False
    while after is not None and not arrow:
        at = after
        name, after, arrow = _split_name(text, at)
        offset, kind, _ = _member(btf, entry, name, at)
        place += offset
        entry = _plain(btf, kind)
    if place % 8:
        raise VariableError("TYPECAST_NOT_ALIGNED", at if after is None else after)
    if after is not None:
        raise VariableError("TYPECAST_BAD_ARROW", after - 2)
    return place // 8


def _split_name(text: str, start: int) -> tuple[str, int | None, bool]:
    """A name, where the next one begins and whether an arrow is between them."""
    found = _SEPARATOR.search(text, start)
    if found is None:
        return text[start:], None, False
    at = found.start()
    if text[at] == ".":
        return text[start:at], at + 1, False
    if text[at + 1 : at + 2] != ">":
        raise VariableError("BAD_HYPHEN", at)
    return text[start:at], at + 2, True


def _followed(
    split: Callable[[str, int], tuple[str, int | None, bool]],
    btf: Btf,
    text: str,
    base: Base,
    entry: BtfEntry,
    start: int | None,
    bits: int,
    *,
    first: bool = True,
) -> Fetched:
    """The way from a value to a member.

    Args:
        split: takes a name off a text.
        btf: the types.
        text: the members' names.
        base: the value.
        entry: its type.
        start: where the first name begins in the text; None: it is the value that is fetched.
        bits: of an address.
        first: the value has a pointer's type; else the entry is the structure at the address.
    """
    derefs: list[int] = []
    bit, width = 0, 0
    at = start
    while at is not None:
        if first or derefs:
            if entry.kind is not BtfKind.PTR:
                raise VariableError("NO_PTR_STRCT", at)
            entry = _plain(btf, entry.word)
        place = 0
        arrow = False
        while at is not None and not arrow:
            name, after, arrow = split(text, at)
            offset, kind, width = _member(btf, entry, name, at)
            place += offset
            entry = _plain(btf, kind)
            at = after
        derefs.append(place // 8)
        bit = place % 8
    kind_ = _field_type(entry, bits)
    if (width % 8 or bit) and kind_.kind is ValueKind.UNSIGNED:
        kind_ = replace(kind_, kind=ValueKind.BITFIELD, width=width, offset=bit)
    return Fetched(base, tuple(derefs), kind_, _text(btf, entry))


def dentry_offsets(types: tuple[Btf, ...]) -> DentryOffsets | None:
    """Members that `%pd` and `%pD` look at, by the kernel's own types; None without them."""
    found = []
    for record, path in (("dentry", ("d_name", "name")), ("file", ("f_path", "dentry"))):
        try:
            number = types[0].find(BtfKind.STRUCT, record) if types else None
            if number is None:
                return None
            total = 0
            for name in path:
                bit, number, _ = _member(types[0], _plain(types[0], number), name, 0)
                total += bit // 8
        except (ImageError, VariableError):
            return None
        found.append(total)
    return DentryOffsets(*found)


def _plain(btf: Btf, number: int) -> BtfEntry:
    """A type without typedefs and qualifiers."""
    entry = btf.entry(number)
    for _ in range(_MAX_CHAIN):
        if entry.kind not in _MODIFIERS:
            return entry
        entry = btf.entry(entry.word)
    raise ImageError(f"{btf.name}: .BTF: type {number} is made of itself")


def _member(btf: Btf, record: BtfEntry, name: str, at: int) -> tuple[int, int, int]:
    """A member's first bit, the number of its type and its bits (0 for no bitfield)."""
    waiting: list[tuple[int, int]] = []
    entry, start = record, 0
    for _ in range(1 << 16):
        if entry.kind not in _RECORDS:
            raise VariableError("BAD_BTF_TID", at, "it is no structure that BTF describes")
        extra = entry.extra
        for row in range(0, len(extra), 3):
            text, kind, place = extra[row : row + 3]
            if not text:
                if len(waiting) < _MAX_ANONYMOUS:
                    waiting.append((_plain(btf, kind).id, start + place))
            elif btf.string(text) == name:
                if record.flag:
                    return start + (place & 0xFFFFFF), kind, place >> 24
                return start + place, kind, 0
        if not waiting:
            raise VariableError("NO_BTF_FIELD", at)
        number, start = waiting.pop()
        entry = btf.entry(number)
    raise ImageError(f"{btf.name}: .BTF: type {record.id} is made of itself")


def _field_type(entry: BtfEntry, bits: int) -> FieldType:
    """The type that an argument gets of its own; that of all others is an address in hex."""
    word = FieldType(ValueKind.HEX, bits // 8)
    match entry.kind:
        case BtfKind.ENUM:
            return FieldType(ValueKind.SIGNED, 4)
        case BtfKind.ENUM64:
            return FieldType(ValueKind.SIGNED, 8)
        case BtfKind.INT:
            encoding, size = entry.extra[0] >> 24 & 15, entry.extra[0] & 0xFF
            if size not in (8, 16, 32, 64):
                return word
            sign = ValueKind.SIGNED if encoding & _SIGNED else ValueKind.UNSIGNED
            return FieldType(sign, size // 8)
    return word


def _text(btf: Btf, entry: BtfEntry) -> str:
    """Kind of text that a type is; the kernel takes whatever leads to a character."""
    if entry.kind is BtfKind.ARRAY:
        return TEXT_ARRAY if _is_char(_plain(btf, entry.extra[0])) else NOT_TEXT
    try:
        return TEXT_POINTER if _is_char(_plain(btf, entry.word)) else NOT_TEXT
    except ImageError:  # it is a size, and no type has that number
        return NOT_TEXT


def _is_char(entry: BtfEntry) -> bool:
    if entry.kind is not BtfKind.INT:
        return False
    return not entry.extra[0] >> 24 & _SIGNED and entry.extra[0] & 0xFF == 8
