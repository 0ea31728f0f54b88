"""Variables of the source as fetch arguments of tracefs, as perf writes them.

tools/perf/util/probe-finder.c of Linux 6.1: convert_variable_location, convert_variable_fields,
convert_variable_type. perf looks at the first operation of a location only and takes a bit field's
offset from the wrong end; `Fetch.wrong` says so, and `Fetch.mended` is the right text if there is
one.
"""

from typing import Final, NamedTuple

from msgspec import Struct, field

from engine.image import dies
from engine.image.dies import Die
from engine.image.loclists import entries_of
from engine.image.reader import DamagedError, Reader
from engine.trace.perfprobe.commands import FieldStep, ProbeArgument

_POINTER, _ARRAY, _STRUCT, _UNION, _TYPEDEF, _MEMBER = 0x0F, 0x01, 0x13, 0x17, 0x16, 0x0D
_PARAMETER, _VARIABLE = 0x05, 0x34
_QUALIFIERS: Final = frozenset((0x26, 0x37, 0x35, 0x40))  # const, restrict, volatile, shared
_SIGNED: Final = frozenset((0x05, 0x06, 0x0D))  # DW_ATE_signed, signed_char, signed_fixed
_CASTS: Final = frozenset(("string", "ustring", "x", "s", "u"))
"""Casts that the variable's type has a word in."""
_OP_ADDR, _OP_FBREG, _OP_REGX, _OP_BREGX, _OP_CFA = 0x03, 0x91, 0x90, 0x92, 0x9C
_DATA_SIZES: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8}  # DW_FORM_data*: without a sign
_MAX_BITS: Final = 64
_MAX_RECORDS: Final = 256
"""Structures without names inside one another that a member is looked for in."""
MAGIC: Final = "\\deade12d"
"""The value of a variable that exists only at other places of the command (--debug's default)."""
_READABLE_MAGIC: Final = "\\0xdeade12d"


class SearchError(Exception):
    """A search that came to nothing; perf's words about it are its text.

    Attributes:
        code: name of the error that perf's functions hand on: ENOENT, EINVAL, ...
    """

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(text)
        self.code = code


class FirstOperation(NamedTuple):
    """The first operation of an expression; of a register's offset `offset` is that."""

    code: int
    number: int = 0
    offset: int = 0
    alone: bool = True


class Reference(Struct):
    """A dereference: `+OFFSET(...)`, or `+uOFFSET(...)`."""

    offset: int
    user: bool = False


class Fetch(Struct):
    """An argument of an event.

    Attributes:
        name: of the field; "" for tracefs' own.
        value: register, symbol, immediate; "" while nothing is found.
        references: the innermost first; of a symbol the first one is its offset.
        type: "" for the default.
        wrong: why the kernel would read something else than the variable; "" if it does not.
        symbol: the linker's name of a static variable, for who asks the symbols.
        bit: (width, offset from the lowest bit, bits of the container) where perf's type is wrong.
    """

    name: str = ""
    value: str = ""
    references: list[Reference] = field(default_factory=list)
    type: str = ""
    wrong: str = ""
    symbol: str = ""
    link: int | None = None
    bit: tuple[int, int, int] | None = None

    def text(self) -> str:
        """As perf writes it (synthesize_probe_trace_arg)."""
        value, references = self.value, self.references
        if value.startswith("@") and references:
            value, references = f"{value}{references[0].offset:+d}", references[1:]
        return self._written(value, references, self.type)

    def placeable(self, place: int | None) -> str:
        """As a uprobe event takes it, which has no symbols: they become offsets in the file.

        Args:
            place: the offset of a static variable from the file's own addresses; None without.
        """
        value, references, kind = self.value, self.references, self.type
        if place is not None and value.startswith("@") and references:
            value, references = f"@+{place + references[0].offset:#x}", references[1:]
            # `@+FOFFS` is what is stored there already.
        elif value == MAGIC:
            value = _READABLE_MAGIC
        if self.bit is not None:
            width, offset, size = self.bit
            kind = f"b{width}@{offset}/{size}"
        return self._written(value, references, kind)

    def _written(self, value: str, references: list[Reference], kind: str) -> str:
        for one in references:
            value = f"{f'+u{one.offset}' if one.user else f'{one.offset:+d}'}({value})"
        name = f"{self.name}=" if self.name else ""
        return f"{name}{value}:{kind}" if kind else f"{name}{value}"


def first_operation(code: bytes, order: str, width: int) -> FirstOperation:
    """The first operation of an expression that is not empty."""
    reader = Reader(code, 0, len(code), order)
    op = reader.u8()
    number = offset = 0
    if op == _OP_FBREG:
        number = reader.sleb()
    elif 0x70 <= op <= 0x8F:
        offset = reader.sleb()
    elif op == _OP_BREGX:
        number, offset = reader.uleb(), reader.sleb()
    elif op == _OP_REGX:
        number = reader.uleb()
    elif op == _OP_ADDR:
        number = reader.uint(width)
    return FirstOperation(op, number, offset, reader.place >= len(code))


class ReadingPlace(Struct, frozen=True):
    """The place that variables are read at.

    Attributes:
        address: link address.
        frame: the first operation of the frame base there; None without one.
        entry: the function's entry, None where it has none of its own.
        high: its end, likewise.
        registers: tracefs' names by DWARF number, with '%'.
    """

    address: int
    frame: FirstOperation | None
    entry: int | None
    high: int | None
    registers: "dict[int, str]"


def locate(die: Die, spot: ReadingPlace, fetch: Fetch | None, *, later: bool = False) -> str:
    """Find a variable; "" if it can be fetched, else the name of perf's error.

    Args:
        die: of the variable.
        spot: from where.
        fetch: takes the location; None to ask only.
        later: a local variable that has its location behind the place counts, with ERANGE.
    """
    if die.has(dies.AT_EXTERNAL):
        return _static(die, fetch, None)
    if die.has(dies.AT_CONST_VALUE):
        return _constant(die, fetch)
    value = die.get(dies.AT_LOCATION)
    if value is None:
        return "EINVAL"
    code: bytes | None
    if isinstance(value, bytes):
        code = value
    else:
        code = _listed(die, value, spot)
        if code is None and later and die.tag == _VARIABLE:
            code = _first_behind(die, value, spot)
            if code is not None:
                return _read(die, code, spot, fetch) or "ERANGE"
    if not code:
        return "ENOENT"
    return _read(die, code, spot, fetch)


def _read(die: Die, code: bytes, spot: ReadingPlace, fetch: Fetch | None) -> str:
    """Read an expression as perf does: its first operation."""
    if not code:
        return "ENOENT"
    unit = die.unit
    op = first_operation(code, unit.info.order, unit.widths.address)
    if op.code == _OP_ADDR:
        if fetch is not None and not op.alone:
            fetch.wrong = "its value is computed from that"
        return _static(die, fetch, op.number)
    frame_relative, offset, alone = False, 0, op.alone
    if op.code == _OP_FBREG:
        if spot.frame is None:
            return "ENOTSUP"
        frame_relative, offset = True, op.number
        op = spot.frame
    if 0x70 <= op.code <= 0x8F:
        number, offset, indirect = op.code - 0x70, offset + op.offset, True
    elif 0x50 <= op.code <= 0x6F:
        number, indirect = op.code - 0x50, frame_relative
    elif op.code == _OP_BREGX:
        number, offset, indirect = op.number, offset + op.offset, True
    elif op.code == _OP_REGX:
        number, indirect = op.number, frame_relative
    else:
        return "ENOTSUP"
    if fetch is None:
        return ""
    register = spot.registers.get(number)
    if register is None:
        text = (
            f"Mapping for the register number {number} missing on this architecture: "
            f"'{die.name}' is there; name the variables that are wanted"
        )
        raise SearchError("ENOTSUP", text)
    fetch.value = register
    if indirect:
        fetch.references.append(Reference(offset))
    if not alone:
        fetch.wrong = "its value is computed from that, or lies in pieces"
    return ""


def _static(die: Die, fetch: Fetch | None, link: int | None) -> str:
    if fetch is not None:
        fetch.value = f"@{die.name or ''}"
        fetch.symbol = die.linkage_name or die.name or ""
        fetch.link = link if link is not None else _address(die)
        fetch.references.append(Reference(0))
    return ""


def _address(die: Die) -> int | None:
    """The link address of a global variable that is defined here."""
    for one in die.origins():
        code = one.get(dies.AT_LOCATION)
        if isinstance(code, bytes) and code[:1] == b"\x03":
            op = first_operation(code, die.unit.info.order, die.unit.widths.address)
            return op.number if op.alone else None
    return None


def _constant(die: Die, fetch: Fetch | None) -> str:
    if fetch is None:
        return ""
    value = die.number(dies.AT_CONST_VALUE)
    if value is None:
        raise SearchError("EINVAL", f"The value of '{die.name}' is a constant that is no number.")
    size = _DATA_SIZES.get(die.form(dies.AT_CONST_VALUE))
    if size and value >> (8 * size - 1):
        value -= 1 << 8 * size
    fetch.value = f"\\{value}"
    return ""


def _listed(die: Die, value: int, spot: ReadingPlace) -> bytes | None:
    """The expression of a location list at a place.

    A parameter without one at the function's entry is taken where it first has one: perf does
    so for kernels whose functions begin with a call of the tracer.
    """
    for low, high, code in entries_of(die, dies.AT_LOCATION, value):
        if low <= spot.address < high:
            return code
    if spot.entry != spot.address or die.tag != _PARAMETER:
        return None
    return _first_behind(die, value, spot)


def _first_behind(die: Die, value: int, spot: ReadingPlace) -> bytes | None:
    """The first expression of a list behind a place, in a function of one piece."""
    if spot.high is None or spot.entry is None:
        return None
    entries = list(entries_of(die, dies.AT_LOCATION, value))
    first = spot.address + 1
    later = [
        (max(low, first), number)
        for number, (low, high, _) in enumerate(entries)
        if max(low, first) < high and max(low, first) <= spot.high
    ]
    return entries[min(later)[1]][2] if later else None


# -- types -----------------------------------------------------------------------------


def plain_type(die: Die) -> Die | None:
    """The type of an entry without qualifiers (__die_get_real_type)."""
    kind = die.type
    for _ in range(dies.MAX_CHAIN):
        if kind is None or kind.tag not in _QUALIFIERS:
            return kind
        kind = kind.type
    raise DamagedError(f"entry {die.offset:#x}: its type never ends")


def real_type(die: Die) -> Die | None:
    """The same without typedefs (die_get_real_type)."""
    kind = plain_type(die)
    for _ in range(dies.MAX_CHAIN):
        if kind is None or kind.tag != _TYPEDEF:
            return kind
        kind = plain_type(kind)
    raise DamagedError(f"entry {die.offset:#x}: its type never ends")


def _type_of(die: Die, name: str) -> Die:
    kind = real_type(die)
    if kind is None:
        raise SearchError("ENOENT", f"Failed to get the type of {name}.")
    return kind


def _size(die: Die) -> int:
    """DW_AT_byte_size; -1 without (dwarf_bytesize)."""
    found = (one.number(dies.AT_BYTE_SIZE) for one in die.origins())
    return next((size for size in found if size is not None), -1)


def walk(die: Die, fetch: Fetch, argument: ProbeArgument) -> Die:
    """Go into members and elements; the entry whose type the value has.

    Raises:
        SearchError: a step leads nowhere, in perf's words.
    """
    name = argument.variable
    for step in argument.steps:
        die = _step(die, name, step, fetch, user=argument.user)
        name = step.name
    return die


def _step(die: Die, name: str, step: FieldStep, fetch: Fetch, *, user: bool) -> Die:
    references = fetch.references
    for _ in range(dies.MAX_CHAIN):
        kind = _type_of(die, name)
        if step.is_index and kind.tag in (_ARRAY, _POINTER):
            element = _type_of(kind, name)
            if kind.tag == _POINTER:
                references.append(Reference(0))
            if not references:
                raise SearchError("ENOTSUP", "Array on a register is not supported yet.")
            references[-1].offset += _size(element) * step.index
            references[-1].user = user
            return kind
        kind = _record(die, kind, name, step, references)
        member = find_member(kind, step.name)
        if member is None:
            text = f"{name}(type:{kind.name or '(null)'}) has no member {step.name}."
            raise SearchError("EINVAL", text)
        references[-1].offset += _member_offset(kind, member, step.name, fetch)
        references[-1].user = user
        if member.name:
            return member
        die = member
    raise DamagedError(f"entry {die.offset:#x}: its members never end")


def _record(die: Die, kind: Die, name: str, step: FieldStep, references: list[Reference]) -> Die:
    """The structure that a step goes into, its pointer followed."""
    if kind.tag == _POINTER:
        if not step.arrow:
            raise SearchError("EINVAL", f"Semantic error: {step.name} must be referred by '->'")
        kind = _type_of(kind, name)
        if kind.tag not in (_STRUCT, _UNION):
            raise SearchError("EINVAL", f"{name} is not a data structure nor a union.")
        references.append(Reference(0))
        return kind
    if kind.tag not in (_STRUCT, _UNION):
        raise SearchError("EINVAL", f"{name} is not a data structure nor a union.")
    if step.is_index:
        raise SearchError("EINVAL", f"Semantic error: {name} is not a pointer nor array.")
    if step.arrow and die.name:
        raise SearchError("EINVAL", f"Semantic error: {step.name} must be referred by '.'")
    if not references:
        raise SearchError("ENOTSUP", "Structure on a register is not supported yet.")
    return kind


def find_member(kind: Die, name: str, vain: set[tuple[int, str, int]] | None = None) -> Die | None:
    """A member of a structure, or the unnamed one that has it (die_find_member).

    Args:
        kind: the structure.
        name: of the member.
        vain: keys of structures that do not have it; damaged ones hold themselves.
    """
    vain = set() if vain is None else vain
    if kind.key in vain:
        return None
    vain.add(kind.key)
    if len(vain) > _MAX_RECORDS:
        raise DamagedError(f"entry {kind.offset:#x}: its members never end")
    shape, unit = kind.unit.shape, kind.unit
    for child in shape.children(unit.index(kind.offset)):
        if shape.tags[child] != _MEMBER:
            continue
        member = Die(unit, shape.offsets[child])
        if member.name == name:
            return member
        inner = member.type if not member.name else None
        if inner is not None and find_member(inner, name, vain) is not None:
            return member
    return None


def _member_offset(kind: Die, member: Die, name: str, fetch: Fetch) -> int:
    if kind.tag == _UNION:
        return 0
    where = member.get(dies.AT_DATA_MEMBER_LOCATION)
    if isinstance(where, int):
        return where
    if isinstance(where, bytes) and where[:1] == b"\x23":  # DW_OP_plus_uconst
        return Reader(where, 1, len(where), member.unit.info.order).uleb()
    start = member.number(dies.AT_DATA_BIT_OFFSET)
    size = _size(declared) if (declared := real_type(member)) is not None else 0
    if start is None or size not in (1, 2, 4, 8):
        raise SearchError("ENOENT", f"Failed to get the offset of {name}.")
    # perf 6.1 knows no bit fields of DWARF 4 and 5; here they are what the kernel reads rightly.
    byte = start // (8 * size) * size
    width = member.number(dies.AT_BIT_SIZE) or 0
    if start - 8 * byte + width > 8 * size:  # packed: it begins in one word and ends in another
        byte = start // 8
    fetch.wrong = f"Failed to get the offset of {name}."
    shift = start - 8 * byte
    if shift + width > 8 * size:
        raise SearchError("ENOENT", f"Failed to get the offset of {name}.")
    if member.unit.info.order == ">":
        shift = 8 * size - shift - width
    fetch.bit = (width, shift, 8 * size)
    return byte


def give_type(die: Die, fetch: Fetch, argument: ProbeArgument) -> str:
    """Write the type of a value; a remark of perf's, "" for none.

    Args:
        die: the entry whose type the value has.
        fetch: takes the type.
        argument: with its cast.

    Raises:
        SearchError: the cast is none for that type.
    """
    cast = argument.type
    if cast and cast not in _CASTS:
        fetch.type, fetch.bit = cast, None
        return ""
    width = die.number(dies.AT_BIT_SIZE) or 0
    if width > 0:
        _give_bits(die, fetch, width)
        return ""
    kind = real_type(die)
    if kind is None:
        raise SearchError("ENOENT", f"Failed to get a type information of {die.name}.")
    if cast in ("string", "ustring"):
        _give_string(die, kind, fetch, argument)
        return ""
    size = _size(kind)
    if size <= 0:
        return ""
    remark, bits = "", 8 * size
    if bits > _MAX_BITS:
        remark = f"{kind.name or '(null)'} exceeds max-bitwidth. Cut down to {_MAX_BITS} bits."
        bits = _MAX_BITS
    encodings = (one.number(dies.AT_ENCODING) for one in kind.origins())
    encoding = next((one for one in encodings if one is not None), 0)
    letter = cast or ("s" if encoding in _SIGNED else "x")
    fetch.type = f"{letter}{bits}"
    return remark


def _give_bits(die: Die, fetch: Fetch, width: int) -> None:
    if fetch.bit is not None:
        fetch.type = f"b{width}@{fetch.bit[1]}/{fetch.bit[2]}"
        return
    offset, size = die.number(dies.AT_BIT_OFFSET), _size(die)
    if offset is None or size < 0:
        raise SearchError("ENOENT", f"Failed to get the bits of {die.name}.")
    bits = 8 * size
    fetch.type = f"b{width}@{offset}/{bits}"
    if die.unit.info.order == "<":
        # DWARF 3, 5.6.6 counts from the highest bit, the kernel from the lowest.
        right = bits - offset - width
        fetch.bit = (width, right, bits)
        if right != offset:
            fetch.wrong = f"its bits begin at {right}, not at {offset}"


def _give_string(die: Die, kind: Die, fetch: Fetch, argument: ProbeArgument) -> None:
    if kind.tag not in (_POINTER, _ARRAY):
        raise SearchError(
            "EINVAL",
            f"Failed to cast into string: {die.name}({kind.name or '(null)'}) "
            "is not a pointer nor array.",
        )
    inner = real_type(kind)
    if inner is None:
        raise SearchError("ENOENT", "Failed to get a type information.")
    if kind.tag == _POINTER:
        fetch.references.append(Reference(0, argument.user))
    if inner.name not in ("char", "unsigned char"):
        why = f"Failed to cast into string: {die.name} is not (unsigned) char *."
        raise SearchError("EINVAL", why)
    fetch.type = argument.type
