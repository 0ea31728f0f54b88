"""The terms of a filter, `FIELD OP VALUE`: texts to predicate ops (parse_pred of the kernel)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from engine.arch.program import Compare, Match, Operand, PredicateOp
from engine.errors import ProbeSyntaxError
from engine.fetch.numbers import signed, unsigned
from engine.trace.fields import Field, FieldKind, find
from engine.trace.rows import EventInfo

TEXTS: Final[dict[str, str]] = {
    "INVALID_OP": "Invalid operator",
    "TOO_MANY_OPEN": "Too many '('",
    "TOO_MANY_CLOSE": "Too few '('",
    "MISSING_QUOTE": "Missing matching quote",
    "MISSING_BRACE_OPEN": "Missing '{'",
    "MISSING_BRACE_CLOSE": "Missing '}'",
    "OPERAND_TOO_LONG": "Operand too long",
    "EXPECT_STRING": "Expecting string field",
    "EXPECT_DIGIT": "Expecting numeric field",
    "ILLEGAL_FIELD_OP": "Illegal operation for field type",
    "FIELD_NOT_FOUND": "Field not found",
    "ILLEGAL_INTVAL": "Illegal integer value",
    "TOO_MANY_PREDS": "Too many terms in predicate expression",
    "INVALID_CPULIST": "Invalid cpulist",
    "INVALID_VALUE": "Invalid value (did you forget quotes)?",
    "NO_FUNCTION": "Function not found",
    "ERRNO": "Error",
    "NO_FILTER": "No filter found",
}
SUBSYSTEM: Final = "event filter parse error"

_OPERATORS: Final = ("~", "!=", "==", "<=", "<", ">=", ">", "&")
_STRING_MAX: Final = 256
_NUMBER_MAX: Final = 24
_CPUS_MAX: Final = 8192
SPACES: Final = " \t\n\v\f\r\xa0"


class FilterMachine(Struct, frozen=True):
    """The machine that filters are parsed for.

    Attributes:
        cpus: how many there are.
        functions: a symbol's name or an address to (start, end) of the function; None for
            none, as everywhere in user space of a kernel.
        kernel_pointers: read strings behind pointers only where `.ustring` asks for it.
        unknown_fields: terms with a field that the event does not have are false, not errors.
        more_fields: further fields by name, looked at first.
    """

    cpus: int = 1
    functions: Callable[[str | int], tuple[int, int] | None] = lambda name: None
    kernel_pointers: bool = False
    unknown_fields: bool = False
    more_fields: Mapping[str, Field] = field(default_factory=dict)


class FilterSyntaxError(ProbeSyntaxError):
    """A filter that the kernel refuses.

    Attributes:
        errno: name of the error its write returns.
        readback: what the filter's file shows then.
    """

    def __init__(self, code: str, command: str, column: int, errno: str) -> None:
        super().__init__(code, TEXTS[code], command, column, SUBSYSTEM)
        self.errno = errno
        if code == "ERRNO":
            self.readback = f"{command}\nError: (0)"
        else:
            at = min(column, len(command))
            self.readback = f"{command}\n{' ' * at}^\nparse_error: {TEXTS[code]}"


Parsed: TypeAlias = tuple[PredicateOp, int]
Fail: TypeAlias = Callable[[str, int], "FilterSyntaxError"]


class TermParser:
    """Understands the terms of one filter."""

    def __init__(self, text: str, shown: str, info: EventInfo, machine: FilterMachine) -> None:
        """Set up.

        Args:
            text: the filter, one character for each byte, a NUL behind it.
            shown: the filter as errors show it.
            info: the event.
            machine: what it is for.
        """
        self._text = text
        self._shown = shown
        self._info = info
        self._machine = machine

    def term(self, start: int) -> Parsed:
        """The op of the term at a place, and how long it is; carets stand one column behind."""
        text, base = self._text, start + 1
        at = start
        while text[at].isalnum() or text[at] == "_":
            at += 1
        if at == start:
            raise FilterSyntaxError("ERRNO", self._shown, 0, "EPERM")
        name = text[start:at]

        def fail(code: str, where: int) -> FilterSyntaxError:
            return FilterSyntaxError(code, self._shown, base + where - start, "EINVAL")

        found = self._machine.more_fields.get(name) or find(self._info, name)
        unknown = found is None and self._machine.unknown_fields
        if found is None and not unknown:
            raise fail("FIELD_NOT_FOUND", at)
        if found is not None and found.is_float:
            error = fail("ILLEGAL_FIELD_OP", at)
            error.explain(f"{name} is a number with a point: filters compare whole numbers only")
            raise error
        user = text.startswith(".ustring", at)
        at += len(".ustring") if user else 0
        function = text.startswith(".function", at)
        at += len(".function") if function else 0
        at = _skip_spaces(text, at)
        sign = next((sign for sign in _OPERATORS if text.startswith(sign, at)), None)
        if sign is None:
            raise fail("INVALID_OP", at)
        at = _skip_spaces(text, at + len(sign))
        what = found or _unknown_field(name, text[at])
        if function:
            op, at = self._function(what, sign, at, fail)
        elif text.startswith("CPUS", at):
            op, at = self._cpus(what, sign, at, fail)
        elif text[at] in "'\"":
            op, at = self._string(what, sign, at, fail, user)
        elif text[at].isdigit() or text[at] == "-":
            op, at = self._number(what, sign, at, fail)
        else:
            raise fail("INVALID_VALUE", at)
        if unknown:
            op = _fixed(False)
        return op, at - start

    def _function(self, field: Field, sign: str, at: int, fail: Fail) -> Parsed:
        text = self._text
        if field.size != 8:
            raise fail("ILLEGAL_FIELD_OP", at)
        if sign not in ("==", "!="):
            raise fail("INVALID_OP", at)
        start = at
        name: str | int
        if text[at].isdigit():
            while text[at].isalnum():
                at += 1
            if at - start >= _NUMBER_MAX:
                raise fail("OPERAND_TOO_LONG", at)
            number = unsigned(text[start:at], 64)
            if number is None:
                raise fail("INVALID_VALUE", at)
            name = number
        else:
            while text[at] not in SPACES + "\0":
                at += 1
            name = text[start:at]
        found = self._machine.functions(name)
        if found is None:
            raise fail("NO_FUNCTION", at)
        op = self._of_field(field, Compare.EQ, found[0])
        return replace(op, operand=Operand.RANGE, end=found[1], negate=sign == "!="), at

    def _cpus(self, field: Field, sign: str, at: int, fail: Fail) -> Parsed:
        text = self._text
        if field.kind not in (FieldKind.CPU, FieldKind.NUMBER):
            raise fail("ILLEGAL_FIELD_OP", at)
        if sign not in ("==", "!=", "&"):
            raise fail("ILLEGAL_FIELD_OP", at)
        at += len("CPUS") + 1
        if text[at - 1] != "{":
            raise fail("MISSING_BRACE_OPEN", at)
        start = at
        while text[at] not in "}\0":
            at += 1
        if text[at] != "}":
            raise fail("MISSING_BRACE_CLOSE", at)
        cpus = cpu_list(text[start:at], self._machine.cpus) if at > start else None
        if cpus is None:
            raise fail("INVALID_CPULIST", at)
        at += 1
        single = cpus.bit_count() == 1
        value = cpus.bit_length() - 1 if single else cpus
        if single and sign == "&":
            sign = "=="
        if field.kind is FieldKind.CPU:
            if single:
                return _fixed(_cpu_matches(sign, value)), at
            return _fixed(sign == "!=" or (sign == "&" and bool(cpus & 1))), at
        op = self._of_field(replace(field, signed=False), Compare(sign), value)
        if not single and op.operand is Operand.NUMBER:
            op = replace(op, operand=Operand.CPU_SET, end=self._machine.cpus)
        return op, at

    def _string(
        self,
        field: Field,
        sign: str,
        at: int,
        fail: Fail,
        user: bool,
    ) -> Parsed:
        text = self._text
        if sign not in ("~", "==", "!="):
            raise fail("ILLEGAL_FIELD_OP", at)
        if not field.kind.is_string:
            raise fail("EXPECT_DIGIT", at)
        end = text.find(text[at], at + 1)
        if end < 0:
            raise fail("MISSING_QUOTE", len(text) - 1)
        if end - at - 1 >= _STRING_MAX:
            raise fail("OPERAND_TOO_LONG", end)
        pattern = text[at + 1 : end].encode("latin-1")
        match, negate = Match.FULL, sign == "!="
        if sign == "~":
            match, pattern, negate = _glob(pattern)
        op = PredicateOp(
            Operand.STRING, offset=field.row, match=match, pattern=pattern, negate=negate
        )
        if field.kind is FieldKind.COMM:
            op = replace(op, operand=Operand.COMM, offset=0)
        elif field.kind is FieldKind.POINTER:
            if self._machine.kernel_pointers and not user:
                return _fixed(False), end + 1
            op = replace(op, operand=Operand.POINTER, size=8)
        return op, end + 1

    def _number(self, field: Field, sign: str, at: int, fail: Fail) -> Parsed:
        text, start = self._text, at
        if field.kind.is_string:
            raise fail("EXPECT_STRING", at)
        if sign == "~":
            raise fail("ILLEGAL_FIELD_OP", at)
        at += text[at] == "-"
        while text[at].isalnum():
            at += 1
        if at - start >= _NUMBER_MAX:
            raise fail("OPERAND_TOO_LONG", at)
        value = (signed if field.signed else unsigned)(text[start:at], 64)
        if value is None:
            raise fail("ILLEGAL_INTVAL", start)
        if field.kind is FieldKind.CPU:
            return _fixed(_cpu_matches(sign, value)), at
        op = self._of_field(field, Compare(sign), value)
        return replace(op, operand=Operand.PROCESS) if field.kind is FieldKind.PROCESS else op, at

    @staticmethod
    def _of_field(field: Field, compare: Compare, value: int) -> PredicateOp:
        if field.size not in (1, 2, 4, 8):
            return _fixed(False)  # no comparison for such a size: an array, most likely
        column = field.column
        count = max(column.type.count, 1) if column is not None else 1
        op = PredicateOp(
            Operand.NUMBER, compare, field.row, field.size // count, count, field.signed, value
        )
        if field.row < 0:  # flags and preemption count, which are 0
            value &= (1 << 8 * field.size) - 1
            known = {Compare.EQ: not value, Compare.NE: bool(value), Compare.AND: False,
                     Compare.LT: value > 0, Compare.LE: True, Compare.GT: False,
                     Compare.GE: not value}  # fmt: skip
            return _fixed(known[compare])
        return op


def _unknown_field(name: str, value: str) -> Field:
    """A field that would go with the value that begins so."""
    kind = FieldKind.STRING if value in "'\"" else FieldKind.NUMBER
    return Field(name, "", 0, 8, value == "-", kind, row=0)


def _skip_spaces(text: str, at: int) -> int:
    while text[at] in SPACES:
        at += 1
    return at


def _fixed(outcome: bool) -> PredicateOp:
    return PredicateOp(Operand.FIXED, value=int(outcome))


def _cpu_matches(sign: str, value: int) -> bool:
    """A comparison of the CPU, which is 0, with a number."""
    value = (value + (1 << 31)) % (1 << 32) - (1 << 31)
    known = {"==": not value, "!=": bool(value), "<": value > 0, "<=": value >= 0,
             ">": value < 0, ">=": value <= 0}  # fmt: skip
    return known.get(sign, False)


def _glob(pattern: bytes) -> tuple[Match, bytes, bool]:
    """`filter_parse_regex`: how to match, what with, and whether a `!` stood in front."""
    negate = pattern.startswith(b"!")
    pattern = pattern.removeprefix(b"!")
    if pattern[:1].isdigit():
        return Match.FULL, pattern, negate  # an index for function filters, here a plain string
    match = Match.FULL
    for index, char in enumerate(pattern):
        if char == 0x2A:
            if not index:
                match = Match.END
            elif index == len(pattern) - 1:
                match = Match.MIDDLE if match is Match.END else Match.FRONT
                pattern = pattern[:-1]
                break
            else:
                return Match.GLOB, pattern, negate
        elif char in b"[?\\":
            return Match.GLOB, pattern, negate
    return match, pattern.removeprefix(b"*"), negate


def cpu_list(text: str, cpus: int) -> int | None:
    """A set of CPUs as bits, from `0-3,5,8-15:2/4`, `all`, `N` for the last; None for none.

    The kernel's bitmap_parselist; CPUs that the machine does not have are accepted here.
    """
    found = 0
    for piece in text.replace("\n", ",").split(","):
        piece = piece.strip(SPACES)
        if not piece:
            continue
        if piece.lower() == "all":
            found |= (1 << cpus) - 1
            continue
        area, colon, group = piece.partition(":")
        low, dash, high = area.partition("-")
        first = cpus - 1 if low == "N" else unsigned(low, 32)
        last = first if not dash else cpus - 1 if high == "N" else unsigned(high, 32)
        if first is None or last is None or first > last or last >= _CPUS_MAX:
            return None
        used, size = 1, 1
        if colon:
            parts: Sequence[int | None] = [unsigned(part, 32) for part in group.split("/")]
            if not dash or len(parts) != 2 or not parts[0] or not parts[1]:
                return None
            used, size = parts[0], parts[1]
            if used > size:
                return None
        for start in range(first, last + 1, size):
            for cpu in range(start, min(start + used, last + 1)):
                found |= 1 << cpu
    return found
