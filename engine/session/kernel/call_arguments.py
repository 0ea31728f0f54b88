"""Arguments of a call as its function takes them: registers, and objects in memory by type."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.kernelcalls import KernelCalls
from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.kernel.btftypes import BtfFunction, BtfType
from engine.session.kernel.call_syntax import (
    BUFFER_MAX,
    Argument,
    Braces,
    Buffer,
    Initial,
    Named,
    Number,
    Object,
    Text,
    WrittenCall,
)
from engine.session.kernel.kernel_memory import KernelMemory

_WORD: Final = 8
_IN_REGISTERS: Final = 16
"""Bytes of the largest structure that registers pass (both conventions)."""
_WIDTHS: Final = {
    **dict.fromkeys(("u8", "s8", "__u8", "__s8", "char", "uint8_t", "int8_t", "bool"), 1),
    **dict.fromkeys(("u16", "s16", "__u16", "__s16", "short", "uint16_t", "int16_t"), 2),
    **dict.fromkeys(("u32", "s32", "__u32", "__s32", "int", "uint32_t", "int32_t"), 4),
    **dict.fromkeys(("u64", "s64", "__u64", "__s64", "long", "uint64_t", "int64_t", "size_t"), 8),
}
"""Numbers by name, for images without types."""
_KEYWORDS: Final = ("struct", "union", "enum")
_BYTES: Final = (TypeKind.CHAR, TypeKind.UNSIGNED_CHAR)
_NUMBERS: Final = (
    *(TypeKind.SIGNED, TypeKind.UNSIGNED, TypeKind.CHAR, TypeKind.UNSIGNED_CHAR),
    *(TypeKind.BOOL, TypeKind.ENUM),
)


class NamedBuffer(Struct, frozen=True):
    """A buffer that a user has named: where it is, and of what type if that is known."""

    address: int
    size: int
    type: BtfType | None = None


class PlacedArguments(Struct, frozen=True):
    """The arguments of a call, ready for its function.

    Attributes:
        registers: values of the registers of the convention, in order.
        stack: bytes of those on the stack.
        result: where a structure is to be returned that no registers hold; None else.
        known: the prototype that was followed; None where there is none, as for assembly.
    """

    registers: tuple[int, ...]
    stack: bytes
    result: int | None
    known: BtfFunction | None


class ImageTypes(Struct, frozen=True):
    """Names of an image as arguments need them.

    Attributes:
        named: (name, keyword or "") to a type, None where there is none.
        enumerator: a name of an enumeration to its value.
        symbol: a symbol to its address.
        is_code: whether there is code at an address.
    """

    named: Callable[[str, str], BtfType | None]
    enumerator: Callable[[str], int | None]
    symbol: Callable[[str], int | None]
    is_code: Callable[[int], bool]


class ArgumentMaker:
    """Makes arguments in the memory of one image.

    Attributes:
        buffers: those that were named so far.
    """

    def __init__(self, memory: KernelMemory, rules: KernelCalls, types: ImageTypes) -> None:
        """No buffer is named yet."""
        self.buffers: dict[str, NamedBuffer] = {}
        self._memory = memory
        self._rules = rules
        self._types = types

    def place(self, written: WrittenCall, known: BtfFunction | None) -> PlacedArguments:
        """Put the arguments of a call where its function expects them.

        Args:
            written: the call.
            known: the function's prototype; None where the image has none.

        Raises:
            CommandError: they are not of its types; the text begins with the call.
        """
        try:
            return self._place(written.arguments, known, written.function)
        except CommandError as error:
            raise CommandError(f"{written.text}: {error}") from error

    def _place(
        self, arguments: Sequence[Argument], known: BtfFunction | None, function: str
    ) -> PlacedArguments:
        if known is not None and not known.parameters and arguments:
            known = None  # assembly, whose prototype is empty
        kinds: list[BtfType | None] = [None] * len(arguments)
        if known is not None:
            count = len(known.parameters)
            if len(arguments) < count or (len(arguments) > count and not known.variadic):
                wanted = ", ".join(f"{p.type.text} {p.name}".strip() for p in known.parameters)
                raise CommandError(
                    f"{len(arguments)} arguments; {function} takes {count}: ({wanted or 'void'})"
                )
            kinds[:count] = [parameter.type for parameter in known.parameters]
        registers: list[int] = []
        stack = bytearray()
        most = len(self._rules.arguments)
        result = self._result(known)
        if result is not None and self._rules.large_result == self._rules.arguments[0]:
            registers.append(result)
        for argument, kind in zip(arguments, kinds, strict=True):
            raw = self._raw(argument, kind)
            if len(raw) > _IN_REGISTERS and self._rules.large_by_address:
                raw = self._stored(raw).to_bytes(_WORD, "little")
            words = [
                int.from_bytes(raw[at : at + _WORD], "little") for at in range(0, len(raw), _WORD)
            ]
            if len(raw) <= _IN_REGISTERS and len(registers) + len(words) <= most:
                registers += words
                continue
            stack += raw.ljust(_WORD * len(words), b"\0")
            if self._rules.large_by_address:
                most = 0  # AAPCS64, C.13: what follows goes there, too
        return PlacedArguments(tuple(registers), bytes(stack), result, known)

    def _result(self, known: BtfFunction | None) -> int | None:
        """The address for a result that registers do not hold."""
        if known is None or known.returns.kind is not TypeKind.RECORD:
            return None
        size = known.returns.size or 0
        return self._memory.needed(size) if size > _IN_REGISTERS else None

    def _stored(self, data: bytes, *, user: bool = False) -> int:
        address = self._memory.needed(len(data), user=user)
        self._memory.poke(address, data)
        return address

    # -- values -------------------------------------------------------------------------

    def _raw(self, argument: Argument, kind: BtfType | None) -> bytes:
        """The bytes of an argument: those of a word, or of a structure."""
        wanted = kind if kind is not None and kind.kind is TypeKind.RECORD else None
        if isinstance(argument, Object) and not argument.by_address:
            named = self._named_type(argument)
            if named.kind is TypeKind.RECORD and (kind is None or wanted is not None):
                if wanted is not None and wanted.size != named.size:
                    raise CommandError(f"{named.text} is no {wanted.text}")
                return self._made(argument, named)
        if wanted is not None:
            raise CommandError(f"a structure is needed, as ({wanted.resolved.text}){{...}}")
        if kind is not None and kind.kind in _NUMBERS and (kind.size or 0) > _WORD:
            raise CommandError(f"{kind.text}: a number of more than {_WORD} bytes is not passed")
        return self._word(argument, kind).to_bytes(_WORD, "little")

    def _word(self, argument: Argument, kind: BtfType | None) -> int:
        """An argument that fits a register."""
        match argument:
            case Number(value):
                return _fitting(value, kind) & (1 << 64) - 1
            case Text(data, user):
                return self._stored(data, user=user)
            case Named(name):
                return self._named(name)
            case Buffer():
                return self._buffer(argument, kind)
            case Object(by_address=True):
                return self._object(argument)
            case Object():
                return self._value(argument, kind)

    def _value(self, argument: Object, kind: BtfType | None) -> int:
        """A compound literal that is itself meant, and not its address: of an array it is that."""
        named = self._named_type(argument)
        if named.kind is TypeKind.ARRAY:
            return self._object(argument)
        if named.kind not in (*_NUMBERS, TypeKind.POINTER) or (named.size or 0) > _WORD:
            wanted = "number" if kind is None else kind.text
            raise CommandError(f"{named.text} is no {wanted}; & in front gives its address")
        data = self._made(argument, named)
        return int.from_bytes(data, "little", signed=named.is_signed) & (1 << 64) - 1

    def _made(self, argument: Object, named: BtfType) -> bytes:
        """The bytes of a compound literal of a type."""
        data = bytearray(named.size or 0)
        self._fill(data, 0, named, argument.values)
        return bytes(data)

    def _named(self, name: str) -> int:
        if name in self.buffers:
            return self.buffers[name].address
        value = self._types.symbol(name)
        if value is None:
            value = self._types.enumerator(name)
        if value is None:
            raise CommandError(f"{name}: neither a buffer nor a symbol")
        return value & (1 << 64) - 1

    def _buffer(self, argument: Buffer, kind: BtfType | None) -> int:
        """The address of a buffer, made where there is none of its name yet."""
        name, size = argument.name, argument.size
        known = self.buffers.get(name)
        if known is not None:
            if size is not None and size > known.size:
                raise CommandError(f"{name} has {known.size} bytes")
            return known.address
        target = kind.resolved.target if kind is not None else None
        pointed = kind is not None and kind.kind is TypeKind.POINTER
        if size is None:
            symbol = self._types.symbol(name)
            code = symbol is not None and self._types.is_code(symbol)
            function = target is None or target.kind in (TypeKind.FUNCTION, TypeKind.VOID)
            if symbol is not None and (function or not code):
                return symbol
            if not pointed or target is None or not target.size or target.kind in _BYTES:
                raise CommandError(f"&{name}: how large is it? &{name}[SIZE] says so")
            size = target.size
            record: BtfType | None = target
        else:
            whole = pointed and target is not None and target.kind is TypeKind.RECORD
            record = target if whole and target is not None and target.size == size else None
        address = self._memory.needed(size, user=argument.user)
        self.buffers[name] = NamedBuffer(address, size, record)
        return address

    # -- objects ------------------------------------------------------------------------

    def _object(self, argument: Object) -> int:
        """The address of an object in memory."""
        if not argument.is_array:
            made = self._made(argument, self._named_type(argument))
            return self._stored(made, user=argument.user)
        name = argument.type[-1]
        width = _WIDTHS.get(name) if len(argument.type) == 1 else None
        kind = self._type(argument)
        if kind is None and width is None:
            raise CommandError(f"there is no type {' '.join(argument.type)}")
        size = (kind.size if kind is not None else width) or 0
        data = bytearray()
        at = 0
        for initial in argument.values.values:
            path = initial.path
            if path:
                if not isinstance(path[0], int):
                    raise CommandError(f".{path[0]}: an array has no members")
                at, path = path[0], path[1:]
            if not 0 <= at * size < BUFFER_MAX:
                raise CommandError(f"[{at}]: an array of {BUFFER_MAX} bytes at most")
            data.extend(bytes(max((at + 1) * size - len(data), 0)))
            if kind is not None:
                self._put(data, at * size, kind, Initial(path, initial.value))
            elif isinstance(initial.value, Number):
                number = initial.value.value & (1 << 8 * size) - 1
                data[at * size : (at + 1) * size] = number.to_bytes(size, "little")
            else:
                raise CommandError(f"numbers are needed in ({' '.join(argument.type)}[])")
            at += 1
        return self._stored(bytes(data), user=argument.user)

    def _named_type(self, argument: Object) -> BtfType:
        found = self._type(argument)
        if found is None or not found.size:
            raise CommandError(f"there is no type {' '.join(argument.type)}")
        return found

    def _type(self, argument: Object) -> BtfType | None:
        words = [word for word in argument.type if word != "*"]
        if len(words) != len(argument.type):
            return self._types.named("unsigned long", "")  # a pointer is a word
        keyword = words[0] if words[0] in _KEYWORDS else ""
        return self._types.named(" ".join(words[bool(keyword) :]), keyword)

    def _fill(self, data: bytearray, at: int, kind: BtfType, braces: Braces) -> None:
        """Put values in braces into an object at an offset of some bytes."""
        kind = kind.resolved
        following = 0
        for initial in braces.values:
            path = initial.path
            if kind.kind is TypeKind.RECORD:
                members = kind.members
                if not path:
                    if following >= len(members):
                        raise CommandError(f"{kind.text} has {len(members)} members")
                    member = members[following]
                    following += 1
                    if member.bit_size:
                        self._bits(data, at * 8 + member.bit_offset, member.bit_size, initial)
                    else:
                        self._put(data, at + member.offset, _btf(member.type), initial)
                    continue
                following = 1 + next(
                    (n for n, one in enumerate(members) if one.name == path[0]), len(members) - 1
                )
            elif kind.kind is TypeKind.ARRAY:
                if not path:
                    path = (following,)
                following = path[0] + 1 if isinstance(path[0], int) else following
            elif path or len(braces.values) > 1:
                raise CommandError(f"{kind.text} has no parts")
            self._put(data, at, kind, Initial(path, initial.value))

    def _put(self, data: bytearray, at: int, kind: BtfType, initial: Initial) -> None:
        """Put one value into a part of an object."""
        kind, path, value = kind.resolved, initial.path, initial.value
        if path:
            step, rest = path[0], Initial(path[1:], value)
            if isinstance(step, int):
                count = kind.count if kind.kind is TypeKind.ARRAY else None
                element = _btf(kind.element)
                size = element.size or 0
                if kind.kind is not TypeKind.ARRAY or not 0 <= step < (count or 0) or not size:
                    raise CommandError(f"[{step}]: {kind.text} has no such element")
                return self._put(data, at + step * size, element, rest)
            member = kind.member(step) if kind.kind is TypeKind.RECORD else None
            if member is None:
                raise CommandError(f".{step}: {kind.text} has no such member")
            if member.bit_size:
                return self._bits(data, at * 8 + member.bit_offset, member.bit_size, rest)
            return self._put(data, at + member.offset, _btf(member.type), rest)
        if isinstance(value, Braces):
            return self._fill(data, at, kind, value)
        size = kind.size or 0
        if kind.kind is TypeKind.ARRAY:
            if not isinstance(value, Text) or _btf(kind.element).size != 1:
                raise CommandError(f"{kind.text}: values in braces are needed")
            letters = value.data if len(value.data) <= size else value.data[:-1]
            if len(letters) > size:
                raise CommandError(f"{kind.text}: {len(letters)} characters are too many")
            data[at : at + len(letters)] = letters
            return None
        if kind.kind is TypeKind.RECORD:
            raw = self._raw(value, kind)
        elif kind.kind in (*_NUMBERS, TypeKind.POINTER):
            raw = self._word(value, kind).to_bytes(_WORD, "little")
            below = isinstance(value, Number) and value.value < 0
            raw = raw.ljust(size, b"\xff" if below else b"\0")[:size]
        else:
            raise CommandError(f"{kind.text}: cannot be given a value")
        data[at : at + size] = raw
        return None

    def _bits(self, data: bytearray, bit: int, bits: int, initial: Initial) -> None:
        """Put a number into a bitfield."""
        if initial.path or not isinstance(initial.value, Number):
            raise CommandError("a number is needed for a bitfield")
        low, high = bit // 8, (bit + bits + 7) // 8
        mask = (1 << bits) - 1 << bit - 8 * low
        word = int.from_bytes(data[low:high], "little") & ~mask
        word |= initial.value.value << bit - 8 * low & mask
        data[low:high] = word.to_bytes(high - low, "little")


def _btf(kind: object) -> BtfType:
    assert isinstance(kind, BtfType), "parts of BTF's types are BTF's"
    return kind


def _fitting(value: int, kind: BtfType | None) -> int:
    """A number that its parameter can hold, whatever its sign.

    Raises:
        CommandError: it cannot.
    """
    if kind is None or kind.kind not in _NUMBERS or kind.kind is TypeKind.BOOL:
        return value
    bits = 8 * (kind.size or _WORD)
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise CommandError(f"{value} does not fit {kind.text}")
    return value
