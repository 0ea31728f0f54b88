"""C expressions over the fields of a record, compiled to functions of the fields' values.

Numbers have C's types: what is narrower than an int becomes one, of two types the wider one wins,
and of two that are as wide the one without a sign.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.arch.program import ValueKind
from engine.trace.printfmt.tokens import PrintToken, PrintType, UnprintableError, c_type, is_type
from engine.trace.rows import Column

Values: TypeAlias = Mapping[str, Any]
"""Fields of a record by name: a number, bytes, None for a text that could not be read, or a tuple
of numbers."""
_Get: TypeAlias = Callable[[Values], Any]
_INT: Final = PrintType(32, signed=True)
_BYTE: Final = PrintType(8, signed=False)
_ULONG: Final = PrintType(64, signed=False)
_RECORD: Final = "REC"
_DEEPEST: Final = 100
"""Expressions within each other, and operators of one: what is compiled calls itself as deep."""

_ARITHMETIC: Final[dict[str, Callable[[int, int], int]]] = {
    "*": operator.mul, "+": operator.add, "-": operator.sub,
    "&": operator.and_, "^": operator.xor, "|": operator.or_,
}  # fmt: skip
_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_BINDING: Final = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_UNARY: Final = frozenset("+-!~&*")


class Sort(Enum):
    """The sort of thing that the value of an expression is."""

    NUMBER = "number"
    TEXT = "text"
    MEMORY = "memory"
    """Bytes of the record, which a pointer leads to."""


class PrintNode(Struct, frozen=True):
    """A compiled expression.

    Attributes:
        sort: of its value.
        type: of the number, or of an element of the memory.
        get: its value for the fields of a record.
    """

    sort: Sort
    type: PrintType
    get: _Get


class PrintReader:
    """Compiles the expressions of one event."""

    def __init__(self, tokens: Sequence[PrintToken], columns: Sequence[Column]) -> None:
        """Begin at the first word.

        Args:
            tokens: the words.
            columns: the event's fields.
        """
        self._tokens, self._at, self._depth, self._operators = tokens, 0, 0, 0
        self._columns = {column.name: column for column in columns}

    # -- words ----------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """True behind the last word."""
        return self._at >= len(self._tokens)

    def _peek(self, ahead: int = 0) -> PrintToken:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else PrintToken("end", "")

    def _next(self) -> PrintToken:
        found = self._peek()
        self._at += 1
        return found

    def _is(self, mark: str, ahead: int = 0) -> bool:
        found = self._peek(ahead)
        return found.kind == "mark" and found.text == mark

    def take(self, mark: str) -> bool:
        """Go past a mark if the next word is that."""
        found = self._is(mark)
        self._at += found
        return found

    def need(self, mark: str) -> None:
        """Go past a mark.

        Raises:
            UnprintableError: the next word is another.
        """
        if not self.take(mark):
            raise UnprintableError(f"{self._peek().text or 'the end'} in place of {mark}")

    def _name(self) -> str:
        found = self._next()
        if found.kind != "name":
            raise UnprintableError(f"{found.text or 'the end'} in place of a name")
        return found.text

    # -- expressions ----------------------------------------------------------------------

    def expression(self) -> PrintNode:
        """Compile the next expression, which no comma ends.

        Raises:
            UnprintableError: only the kernel could carry it out.
        """
        if not self._depth:
            self._operators = 0
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnprintableError("an expression that is too deep")
        found = self._chosen(self._joined(self._unary(), 1))
        self._depth -= 1
        return found

    def _count_operator(self) -> None:
        self._operators += 1
        if self._operators > _DEEPEST:
            raise UnprintableError("an expression with too many operators")

    def _chosen(self, asked: PrintNode) -> PrintNode:
        if not self.take("?"):
            return asked
        true = asked if self._is(":") else self.expression()
        self.need(":")
        false = self.expression()
        test, one, other = asked.get, true.get, false.get
        if true.sort is not false.sort:
            raise UnprintableError("a choice between different things")
        kind = _common(true.type, false.type) if true.sort is Sort.NUMBER else true.type
        return PrintNode(
            true.sort, kind, lambda values: one(values) if test(values) else other(values)
        )

    def _joined(self, left: PrintNode, least: int) -> PrintNode:
        while self._peek().kind == "mark":
            mark = self._peek().text
            binds = _BINDING.get(mark, 0)
            if binds < least:
                break
            self._at += 1
            self._count_operator()
            right = self._unary()
            while _BINDING.get(self._peek().text, 0) > binds and self._peek().kind == "mark":
                right = self._joined(right, binds + 1)
            left = _binary(mark, left, right)
        return left

    def _unary(self) -> PrintNode:
        mark = self._peek()
        if mark.kind == "mark" and mark.text in _UNARY:
            self._at += 1
            self._count_operator()
            return _prefixed(mark.text, self._unary())
        if self._is("(") and self._is_cast():
            self._count_operator()
            kind = self._cast()
            return _cast(kind, self._unary())
        return self._behind(self._primary())

    def _is_cast(self) -> bool:
        """True where a parenthesis holds the name of a type."""
        ahead = 1
        if not (self._peek(1).kind == "name" and is_type(self._peek(1).text)):
            return False
        while self._peek(ahead).kind == "name" or self._is("*", ahead):
            ahead += 1
        return self._is(")", ahead)

    def _cast(self) -> PrintType:
        self.need("(")
        words = list[str]()
        while not self.take(")"):
            words.append(self._next().text)
        return c_type(words)

    def _behind(self, found: PrintNode) -> PrintNode:
        while self.take("["):
            self._count_operator()
            index = _number(self.expression())
            self.need("]")
            found = _element(found, index)
        if self._is(".") or self._is("->"):
            raise UnprintableError("a member of a structure")
        return found

    def _primary(self) -> PrintNode:
        token = self._next()
        if token.kind == "number":
            return _constant(token.text)
        if token.kind == "char":
            return _fixed(ord(token.text), _INT)
        if token.kind == "text":
            return self._texts(token.text)
        if token.kind == "mark" and token.text == "(":
            if self._peek().text == _RECORD and self._is(")", 1):  # (REC)->field
                self._at += 2
                self.need("->")
                return self._field(self._name())
            found = self.expression()
            self.need(")")
            return found
        if token.kind != "name":
            raise UnprintableError(f"{token.text or 'the end'} in place of a value")
        if token.text == _RECORD:
            self.need("->")
            return self._field(self._name())
        if self.take("("):
            return self._call(token.text)
        if token.text in ("true", "false"):
            return _fixed(int(token.text == "true"), _INT)
        raise UnprintableError(f"{token.text}, which only the kernel knows")

    def _texts(self, first: str) -> PrintNode:
        while self._peek().kind == "text":
            first += self._next().text
        text = first.encode(errors="surrogateescape")
        return PrintNode(Sort.TEXT, _BYTE, lambda values: text)

    # -- fields ---------------------------------------------------------------------------

    def _field(self, name: str) -> PrintNode:
        column = self._columns.get(name)
        if column is None:
            raise UnprintableError(f"there is no field {name}")
        kind, signed = column.type, column.type.kind is ValueKind.SIGNED
        element = PrintType(8 * kind.size, signed)
        if kind.is_string:
            if not column.ctype.startswith(("char", "__data_loc char")):
                raise UnprintableError(f"the place of {name}")
            return PrintNode(Sort.TEXT, _BYTE, lambda values: values[name])
        if not kind.count:
            return PrintNode(Sort.NUMBER, element, lambda values: values[name])
        size, mask = kind.size, (1 << 8 * kind.size) - 1

        def memory(values: Values) -> bytes:
            return b"".join((each & mask).to_bytes(size, "little") for each in values[name])

        return PrintNode(Sort.MEMORY, element, memory)

    def _dynamic(self) -> str:
        """The name of a field that lies behind the others; the call's end."""
        name = self._name()
        self.need(")")
        column = self._columns.get(name)
        if column is None or not column.type.is_string:
            raise UnprintableError(f"there is no field {name} behind the others")
        return name

    # -- calls ----------------------------------------------------------------------------

    def _call(self, name: str) -> PrintNode:
        made = _CALLS.get(name)
        if made is not None:
            return made(self)
        raise UnprintableError(f"{name}(), a function of the kernel")

    def arguments(self) -> list[PrintNode]:
        """The arguments of a call up to its end."""
        found = list[PrintNode]()
        while not self.take(")"):
            if found:
                self.need(",")
            found.append(self.expression())
        return found

    def _string(self) -> PrintNode:
        name = self._dynamic()
        return PrintNode(Sort.TEXT, _BYTE, lambda values: values[name])

    def _array(self) -> PrintNode:
        name = self._dynamic()
        return PrintNode(Sort.MEMORY, _BYTE, lambda values: values[name] or b"")

    def _length(self) -> PrintNode:
        name = self._dynamic()
        text = self._columns[name].ctype.startswith("__data_loc char")
        return PrintNode(Sort.NUMBER, _INT, lambda values: len(values[name] or b"") + text)

    def _bits(self) -> PrintNode:
        """As `trace_print_bitmask_seq`: 32 bits a group, the highest first."""
        name = self._dynamic()

        def text(values: Values) -> bytes:
            data = values[name] or b""
            number, width = int.from_bytes(data, "little"), 8 * len(data)
            groups = [
                b"%0*x" % (min(8, (width - at) // 4), number >> at & 0xFFFFFFFF)
                for at in range(0, width, 32)
            ]
            return b",".join(reversed(groups))

        return PrintNode(Sort.TEXT, _BYTE, text)

    def _expected(self) -> PrintNode:
        found = self.arguments()
        if not found:
            raise UnprintableError("__builtin_expect() of nothing")
        return found[0]

    def _size(self) -> PrintNode:
        if not (self._peek().kind == "name" and is_type(self._peek().text)):
            raise UnprintableError("the size of something")
        words = list[str]()
        while not self.take(")"):
            if self.is_over:
                raise UnprintableError("the size of a type that does not end")
            words.append(self._next().text)
        kind = c_type(words)
        return _fixed(8 if kind.pointer else kind.bits // 8, _ULONG)

    def _pairs(self) -> list[tuple[int, bytes]]:
        """`{ NUMBER, TEXT }` again and again, up to the end of the call."""
        found = list[tuple[int, bytes]]()
        before = self._operators
        while self.take(","):
            self._operators = 0  # a constant calls nothing when it is printed
            self.need("{")
            number = _constant_of(_number(self.expression())) & _MASK
            self.need(",")
            text = self.expression()
            self.need("}")
            found.append((number, _constant_of(text) if text.sort is Sort.TEXT else b""))
        self._operators = before
        self.need(")")
        return found

    def _flags(self) -> PrintNode:
        """As `trace_print_flags_seq`: what has no name comes last, in hex."""
        value = _number(self.expression()).get
        self.need(",")
        between = self.expression()
        if between.sort is not Sort.TEXT:
            raise UnprintableError("flags between which there is no text")
        delimiter, names = _constant_of(between), self._pairs()

        def text(values: Values) -> bytes:
            left, parts = value(values) & _MASK, list[bytes]()
            for mask, name in names:
                if left and left & mask == mask:
                    parts.append(name)
                    left &= ~mask
            if left:
                parts.append(b"%#x" % left)
            return bytes(delimiter.join(parts))

        return PrintNode(Sort.TEXT, _BYTE, text)

    def _symbolic(self) -> PrintNode:
        value = _number(self.expression()).get
        names = dict[int, bytes]()
        for number, name in self._pairs():
            names.setdefault(number, name)

        def text(values: Values) -> bytes:
            found = value(values) & _MASK
            return names.get(found) or b"%#x" % found

        return PrintNode(Sort.TEXT, _BYTE, text)

    def _hex(self, between: str) -> PrintNode:
        given = self.arguments()
        if len(given) != 2 or given[0].sort is not Sort.MEMORY:
            raise UnprintableError("the bytes of something")
        data, size = given[0].get, _number(given[1]).get
        return PrintNode(
            Sort.TEXT,
            _BYTE,
            lambda values: between.join(
                f"{each:02x}" for each in data(values)[: max(size(values), 0)]
            ).encode(),
        )

    def _elements(self) -> PrintNode:
        given = self.arguments()
        if len(given) != 3 or given[0].sort is not Sort.MEMORY:
            raise UnprintableError("the elements of something")
        data, count, size = given[0].get, *(_number(each).get for each in given[1:])

        def text(values: Values) -> bytes:
            each = size(values)
            if each not in (1, 2, 4, 8):
                return b"{BAD SIZE:%d 0x0}" % each
            raw = data(values)[: max(count(values), 0) * each]
            found = (raw[at : at + each] for at in range(0, len(raw), each))
            numbers = (b"%#x" % int.from_bytes(one, "little") for one in found)
            return b"{" + b",".join(numbers) + b"}"

        return PrintNode(Sort.TEXT, _BYTE, text)


_MASK: Final = (1 << 64) - 1
_CALLS: Final[dict[str, Callable[[PrintReader], PrintNode]]] = {
    "__get_str": PrintReader._string,
    "__get_dynamic_array": PrintReader._array,
    "__get_dynamic_array_len": PrintReader._length,
    "__get_bitmask": PrintReader._bits,
    "__get_cpumask": PrintReader._bits,
    "__print_flags": PrintReader._flags,
    "__print_symbolic": PrintReader._symbolic,
    "__print_hex": lambda reader: reader._hex(" "),
    "__print_hex_str": lambda reader: reader._hex(""),
    "__print_array": PrintReader._elements,
    "__builtin_expect": PrintReader._expected,
    "sizeof": PrintReader._size,
}


def wrapped(value: int, kind: PrintType) -> int:
    """A number as one of a type."""
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if kind.signed and value >> kind.bits - 1 else value


def _number(node: PrintNode) -> PrintNode:
    if node.sort is not Sort.NUMBER:
        raise UnprintableError("a number is missing")
    return node


def _constant_of(node: PrintNode) -> Any:
    """The value of an expression without fields.

    Raises:
        UnprintableError: it has some.
    """
    try:
        return node.get({})
    except KeyError as error:
        raise UnprintableError(f"the field {error} in place of a constant") from error


def _fixed(value: int, kind: PrintType) -> PrintNode:
    return PrintNode(Sort.NUMBER, kind, lambda values: value)


def _constant(text: str) -> PrintNode:
    digits = text.rstrip("uUlL")
    value, suffix = int(digits, 0 if digits[:2] in ("0x", "0X") else _base(digits)), text.lower()
    behind = suffix[len(digits) :]
    long = "l" in behind
    for kind in (_INT, PrintType(32, signed=False), PrintType(64, signed=True), _ULONG):
        hexadecimal = digits[:1] == "0" or "u" in behind
        fits = value < 1 << kind.bits - kind.signed
        if (
            fits
            and (kind.bits > _INT.bits or not long)
            and (not ("u" in behind and kind.signed) and (kind.signed or hexadecimal))
        ):
            return _fixed(value, kind)
    return _fixed(value & _MASK, _ULONG)


def _base(digits: str) -> int:
    return 8 if digits[:1] == "0" and digits.isdigit() and not set(digits) & set("89") else 10


def _promoted(kind: PrintType) -> PrintType:
    return _INT if kind.bits < _INT.bits else kind


def _common(one: PrintType, other: PrintType) -> PrintType:
    one, other = _promoted(one), _promoted(other)
    if one.bits != other.bits:
        wider = max(one, other, key=lambda each: each.bits)
        return PrintType(wider.bits, wider.signed)
    return PrintType(one.bits, one.signed and other.signed)


def _prefixed(mark: str, node: PrintNode) -> PrintNode:
    get = node.get
    if mark == "&":
        if node.sort is not Sort.MEMORY:
            raise UnprintableError("the address of something")
        return node
    if mark == "*":
        return _element(node, _fixed(0, _INT))
    if mark == "!":
        return PrintNode(Sort.NUMBER, _INT, lambda values: int(not get(values)))
    kind = _promoted(_number(node).type)
    if mark == "+":
        return node
    if mark == "-":
        return PrintNode(Sort.NUMBER, kind, lambda values: wrapped(-get(values), kind))
    return PrintNode(Sort.NUMBER, kind, lambda values: wrapped(~get(values), kind))


def _cast(kind: PrintType, node: PrintNode) -> PrintNode:
    get = node.get
    if node.sort is not Sort.NUMBER:
        if kind.pointer:
            return PrintNode(node.sort, PrintType(kind.bits, kind.signed), get)
        raise UnprintableError("an address as a number")
    kind = _ULONG if kind.pointer else kind
    return PrintNode(Sort.NUMBER, kind, lambda values: wrapped(get(values), kind))


def _element(node: PrintNode, index: PrintNode) -> PrintNode:
    if node.sort is not Sort.MEMORY:
        raise UnprintableError("an element of something")
    get, at, kind = node.get, index.get, node.type
    size = kind.bits // 8

    def element(values: Values) -> int:
        place = at(values) * size
        return int.from_bytes(get(values)[place : place + size], "little", signed=kind.signed)

    return PrintNode(Sort.NUMBER, kind, element)


def _binary(mark: str, left: PrintNode, right: PrintNode) -> PrintNode:
    one, other = left.get, right.get
    if mark == "&&":
        return PrintNode(
            Sort.NUMBER, _INT, lambda values: int(bool(one(values) and other(values)))
        )
    if mark == "||":
        return PrintNode(Sort.NUMBER, _INT, lambda values: int(bool(one(values) or other(values))))
    _number(left)
    _number(right)
    if mark in ("<<", ">>"):
        return _shifted(mark, left, right)
    kind = _common(left.type, right.type)
    compare = _COMPARISONS.get(mark)
    if compare is not None:
        return PrintNode(
            Sort.NUMBER,
            _INT,
            lambda values: int(compare(wrapped(one(values), kind), wrapped(other(values), kind))),
        )
    join = _ARITHMETIC.get(mark) or (_divided if mark == "/" else _rest)
    return PrintNode(
        Sort.NUMBER,
        kind,
        lambda values: wrapped(
            join(wrapped(one(values), kind), wrapped(other(values), kind)), kind
        ),
    )


def _shifted(mark: str, left: PrintNode, right: PrintNode) -> PrintNode:
    one, other, kind = left.get, right.get, _promoted(left.type)
    if mark == "<<":
        return PrintNode(
            Sort.NUMBER, kind, lambda values: wrapped(one(values) << (other(values) & 63), kind)
        )
    return PrintNode(
        Sort.NUMBER, kind, lambda values: wrapped(one(values), kind) >> (other(values) & 63)
    )


def _divided(one: int, other: int) -> int:
    """C's quotient, cut off towards 0; 0 where there is none."""
    if not other:
        return 0
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _rest(one: int, other: int) -> int:
    return one - other * _divided(one, other) if other else 0
