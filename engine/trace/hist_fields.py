"""Fields of hist triggers: keys, values, variables and the expressions that they are made of.

They are read as parse_expr and what it calls in kernel/trace/trace_events_hist.c read them, with
the same limits: expressions have no parentheses but those of `-(...)`, three operators at most,
and the last operator of the lowest precedence is their root. A caret stands where the kernel's
does: under the first place of the command that has the words it complains of, which may be
another one; and where the kernel logs several errors it is that of the last.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ProbeSyntaxError, UnloggedError
from engine.fetch.numbers import unsigned
from engine.trace.fields import Field, FieldKind, find
from engine.trace.hist_errors import hist_error
from engine.trace.rows import EventInfo

if TYPE_CHECKING:
    from engine.trace.hist_scope import HistScope
    from engine.trace.histtable import HistTable

HITCOUNT: Final = "hitcount"
MOST_VARIABLES: Final = 16
"""Variables of one histogram (TRACING_MAP_VARS_MAX)."""
_SUBEXPRESSIONS: Final = 3
_STRING_SIZE: Final = 256
STACK_DEPTH: Final = 16
"""Return addresses of a stack that is a key or a variable (HIST_STACKTRACE_DEPTH)."""
_OPERATORS: Final = "+-*/"
_WORD: Final = (1 << 64) - 1
_SHIFT: Final = 20
_MODIFIERS: Final = ("hex", "sym", "symXoffset", "syscall", "stacktrace", "log2", "usecs")
NO_VALUES: Final = frozenset(
    ("graph", "percent", "buckets", "log2", "sym", "sym-offset", "syscall", "stacktrace")
)
"""Modifiers that no expression of a value may end up with; graph and percent alone may be."""
_NO_VARIABLES: Final = frozenset(("graph", "percent", "buckets", "log2"))
_STACK_NAMES: Final = ("common_stacktrace", "stacktrace", "STACKTRACE")


class HistKind(Enum):
    """The things that a field of a hist trigger can be."""

    FIELD = auto()
    HITCOUNT = auto()
    TIME = auto()
    CPU = auto()
    COMM = auto()
    STACK = auto()
    CONSTANT = auto()
    EXPRESSION = auto()
    REFERENCE = auto()
    """The value of a variable."""
    ALIAS = auto()
    """A variable that is another one."""


class HistReference(Struct, eq=False):
    """A use of a variable; all uses of one variable in a trigger are one.

    Attributes:
        variable: the one that is used.
        owner: the table that has it, None for the trigger's own.
        slot: where, in each entry.
        once: reading it takes it away: it is part of an expression.
    """

    variable: "HistField"
    owner: "HistTable | None"
    slot: int
    once: bool = False


class HistField(Struct, frozen=True):
    """A key, a value or a variable, or an operand of one.

    Attributes:
        name: as printed.
        field: where its number or string is; None for a count, a time, a CPU, a stack.
        modifier: how it is counted or printed, "" for plain.
        buckets: width of a bucket.
        kind: what it is.
        ctype: its type in the kernel's words.
        size: bytes of it.
        signed: whether it is a number with a sign.
        variable: name of the variable that it sets, "" for none.
        operator: of an expression; "neg" for a minus in front.
        operands: of an expression; what an alias or a reference has is in `reference`.
        constant: of a constant, or what an expression divides by if that is one.
        reference: the variable that it reads.
        group: in front of the reference's name, where it was given, with the event.
    """

    name: str
    field: Field | None
    modifier: str = ""
    buckets: int = 0
    kind: HistKind = HistKind.FIELD
    ctype: str = "u64"
    size: int = 8
    signed: bool = False
    variable: str = ""
    operator: str = ""
    operands: tuple["HistField", ...] = ()
    constant: int | None = None
    reference: HistReference | None = None
    group: str = ""

    @property
    def is_string(self) -> bool:
        """True if its values are strings; pointers to strings are numbers here."""
        if self.reference is not None:
            return self.reference.variable.is_string
        if self.kind is HistKind.COMM or (self.variable and self.modifier == "execname"):
            return True
        return self.field is not None and self.field.kind in (FieldKind.STRING, FieldKind.COMM)

    @property
    def is_stack(self) -> bool:
        """True if its values are call stacks."""
        if self.reference is not None:
            return self.reference.variable.is_stack
        return self.kind is HistKind.STACK

    def listing(self) -> str:
        """As a trigger's line shows it (hist_field_print)."""
        front = f"{self.variable}=" if self.variable else ""
        if self.kind is HistKind.CONSTANT:
            return f"{front}{self.constant}"
        if self.kind is HistKind.STACK:
            text = self.name if self.field is None else f"{self.name}.stacktrace"
            return front + text
        if self.kind in (HistKind.REFERENCE, HistKind.ALIAS) and not self.group:
            front += "$"
        plain = self.kind in (HistKind.REFERENCE, HistKind.EXPRESSION)
        name = {HistKind.CPU: "common_cpu", HistKind.COMM: "common_comm"}.get(self.kind, self.name)
        text = f"{name}.{self.modifier}" if self.modifier and not plain else name
        return front + (f"{text}={self.buckets}" if self.buckets else text)

    def operand_text(self) -> str:
        """As an expression's name has it (expr_field_str)."""
        if self.kind is HistKind.CONSTANT:
            return str(self.constant)
        if self.kind is HistKind.REFERENCE:
            return self.name if self.group else f"${self.name}"
        return f"{self.name}.{self.modifier}" if self.modifier else self.name

    @property
    def shape(self) -> tuple[object, ...]:
        """The parts by which triggers are the same (hist_trigger_match)."""
        field = None
        if self.field is not None:
            field = (self.field.name, self.field.ctype, self.field.size, self.field.signed)
        return (self.kind, field, self.modifier, self.size, self.signed, self.variable)


def divided(value: int, divisor: int) -> int:
    """A quotient by a constant as the kernel makes it (hist_field_get_div_fn).

    Numbers below 2**20 are multiplied with a reciprocal, and may come out one too high.
    """
    if divisor & (divisor - 1) and divisor <= 1 << _SHIFT and value < 1 << _SHIFT:
        factor = (1 << _SHIFT) // divisor
        return (value * factor + (1 << _SHIFT) - 1 & _WORD) >> _SHIFT
    return value // divisor


def computed(operator: str, one: int, other: int) -> int:
    """The value of an expression of two numbers."""
    match operator:
        case "+":
            return one + other & _WORD
        case "-":
            return one - other & _WORD
        case "*":
            return one * other & _WORD
        case _:
            return one // other if other else _WORD


class HistExpressions:
    """Reads the fields of one hist trigger.

    Attributes:
        references: the variables that it reads, each once.
        aliases: fields that `$NAME` of this trigger stands for: those of its plain variables.
        timed: it uses timestamps.
    """

    def __init__(self, info: EventInfo, command: str, scope: "HistScope") -> None:
        """Nothing has been read.

        Args:
            info: the event.
            command: the trigger with its condition, for errors.
            scope: finds the variables of other triggers.
        """
        self.info = info
        self.command = command
        self.subsystem = f"hist:{info.group}:{info.name}"
        self.scope = scope
        self.references: list[HistReference] = []
        self.aliases: dict[str, str] = {}
        self.matched: Sequence[tuple[str, str]] = ()
        """Events that `onmatch` handlers name: their variables come first."""
        self.timed = False

    def fail(self, code: str, part: str = "", why: str = "") -> ProbeSyntaxError:
        """The kernel's error about a part of the command."""
        return hist_error(self.command, self.subsystem, code, part, why)

    # -- expressions ----------------------------------------------------------------------

    def value(self, text: str, variable: str = "") -> HistField:
        """A value, or the expression of a variable (__create_val_field)."""
        found = self.expression(text, variable, "variable" if variable else "value")
        if found.kind is HistKind.STACK and not variable:
            raise self.fail("BAD_FIELD_MODIFIER", left_word(text))
        bad = _NO_VARIABLES if variable else NO_VALUES - {"graph", "percent"}
        if found.modifier in bad and found.kind is not HistKind.EXPRESSION:
            raise self.fail("BAD_FIELD_MODIFIER", left_word(text))
        if not variable and found.is_string:
            why = "the kernel would sum addresses of strings: count strings as keys"
            raise self.fail("SYNTAX", text, why)
        return found

    def key(self, text: str) -> HistField:
        """A key (create_key_field)."""
        if text == "stacktrace":
            return self._stack(None, "")
        found = self.expression(text, "", "key")
        if _refers(found):
            raise self.fail("INVALID_REF_KEY", left_word(text))
        return found

    def expression(self, text: str, variable: str = "", use: str = "operand") -> HistField:
        """An expression.

        Args:
            text: the expression.
            variable: it sets, "" for none.
            use: "key", "value", "variable" or "operand".
        """
        return self._expression(text, variable, use, [0])

    def _expression(self, text: str, variable: str, use: str, depth: list[int]) -> HistField:
        if depth[0] > _SUBEXPRESSIONS:
            raise self.fail("TOO_MANY_SUBEXPR", text)
        operator, at = root_operator(text)
        if not operator:
            return self.atom(text, variable, use)
        depth[0] += 1
        if operator == "neg":
            return self._negated(text, variable, depth)
        left, right = text[:at], text[at + 1 :]
        if not left or not right:
            raise UnloggedError(f"{text!r}: an operand is missing")
        one = self._expression(left, "", "operand", depth)
        if one.is_string:
            raise self.fail("INVALID_STR_OPERAND", left_word(left))
        other = self._expression(right, "", "operand", depth)
        if other.is_string:
            raise self.fail("INVALID_STR_OPERAND", left_word(right))
        first, second = _variable_of(one), _variable_of(other)
        if (first.modifier == "usecs") != (second.modifier == "usecs"):
            raise self.fail("TIMESTAMP_MISMATCH")
        for each in (one, other):
            if each.reference is not None:
                each.reference.once = True
        divisor = None
        if operator == "/" and second.kind is HistKind.CONSTANT:
            divisor = second.constant
            if not divisor:
                raise self.fail("DIVISION_BY_ZERO", left_word(right))
        if first.kind is HistKind.CONSTANT and second.kind is HistKind.CONSTANT:
            assert first.constant is not None
            assert second.constant is not None
            if divisor:
                constant = divided(first.constant, divisor)
            else:
                constant = computed(operator, first.constant, second.constant)
            return HistField(
                str(constant), None, kind=HistKind.CONSTANT, variable=variable, constant=constant
            )
        return HistField(
            f"{one.operand_text()}{operator}{other.operand_text()}",
            None,
            "usecs" if one.modifier == "usecs" else "",
            kind=HistKind.EXPRESSION,
            ctype=one.ctype,
            size=one.size,
            signed=one.signed,
            variable=variable,
            operator=operator,
            operands=(one, other),
            constant=divisor,
        )

    def _negated(self, text: str, variable: str, depth: list[int]) -> HistField:
        if depth[0] > _SUBEXPRESSIONS:
            raise self.fail("TOO_MANY_SUBEXPR", text)
        rest = text[1:]
        if "(" not in rest:
            raise UnloggedError(f"{text!r}: write -(EXPRESSION)")
        inner, paren, behind = rest[1:].rpartition(")")
        if not paren:
            raise UnloggedError(f"{text!r}: the parenthesis is not closed")
        if behind:
            raise self.fail("UNARY_MINUS_SUBEXPR", rest[1:])
        one = self._expression(inner, "", "operand", depth)
        if one.is_string:
            raise self.fail("INVALID_STR_OPERAND", left_word(inner))
        return HistField(
            f"-({one.name if one.operands else one.operand_text()})",
            None,
            "usecs" if one.modifier == "usecs" else "",
            kind=HistKind.EXPRESSION,
            ctype=one.ctype,
            size=one.size,
            signed=one.signed,
            variable=variable,
            operator="neg",
            operands=(one,),
        )

    def atom(self, text: str, variable: str = "", use: str = "operand") -> HistField:
        """A number, a reference to a variable or a field (parse_atom)."""
        if text[:1].isdigit():
            constant = unsigned(text, 64)
            if constant is None:
                raise self.fail("EXPECT_NUMBER", text)
            return HistField(
                str(constant), None, kind=HistKind.CONSTANT, variable=variable, constant=constant
            )
        group = event = ""
        name = text
        if text.count(".") > 1:
            group, event, name = text.split(".", 2)
        refused: ProbeSyntaxError | None = None
        if len(name) > 1 and name.startswith("$"):
            mine = not group or (group, event) == (self.info.group, self.info.name)
            known = self.aliases.get(name[1:]) if mine else None
            if known is not None:
                name = known
            else:
                try:
                    found = self.reference(name[1:], group, event)
                except ProbeSyntaxError as error:
                    refused = error
                else:
                    return self._aliased(found, variable) if variable else found
        try:
            return self._field(name, variable, use)
        except ProbeSyntaxError as error:
            if refused is not None:
                error.explain(f"{refused.text}: {text}")
            raise

    @staticmethod
    def _aliased(found: HistField, variable: str) -> HistField:
        return replace(found, kind=HistKind.ALIAS, variable=variable)

    def reference(self, name: str, group: str = "", event: str = "") -> HistField:
        """A use of a variable of a trigger that is there (parse_var_ref)."""
        owner, slot = self.scope.variable(self, name, group, event)
        return self.refer(owner, owner.variables[slot], slot, group, event)

    def refer(
        self,
        owner: "HistTable | None",
        variable: HistField,
        slot: int,
        group: str = "",
        event: str = "",
    ) -> HistField:
        """The use of a variable that was found (create_var_ref)."""
        for known in self.references:
            if known.owner is owner and known.slot == slot:
                reference = known
                break
        else:
            if len(self.references) >= MOST_VARIABLES:
                raise UnloggedError("a trigger reads 16 variables at the most", "ENOMEM")
            reference = HistReference(variable, owner, slot)
            self.references.append(reference)
        name = variable.variable
        usecs = variable.modifier == "usecs"
        return HistField(
            f"{group}.{event}.${name}" if group else name,
            None,
            "usecs" if usecs else "",
            kind=HistKind.REFERENCE,
            ctype=variable.ctype,
            size=variable.size,
            signed=variable.signed,
            reference=reference,
            group=f"{group}.{event}" if group else "",
        )

    # -- fields ---------------------------------------------------------------------------

    def _field(self, text: str, variable: str, use: str) -> HistField:
        name, dot, modifier = text.partition(".")
        buckets = 0
        if dot:
            modifier, buckets = self._modifier(name, modifier, use)
        kind, field = self._what(name)
        if dot:
            self._check_modified(text, kind, field, modifier)
        if kind is HistKind.STACK or modifier == "stacktrace":
            if kind is not HistKind.STACK and (field is None or field.kind is not FieldKind.STACK):
                raise self.fail(
                    "BAD_FIELD_MODIFIER",
                    left_word(text) if use in ("value", "key") else modifier,
                    f"{name} is no call stack",
                )
            return self._stack(field if kind is HistKind.FIELD else None, variable)
        if field is not None and field.kind is FieldKind.STACK:
            return self._stack(field, variable)
        ctype, size, signed = "u64", 8, False
        match kind:
            case HistKind.CPU:
                ctype, size = "unsigned int", 4
            case HistKind.COMM:
                ctype, size = "char[]", _STRING_SIZE
            case HistKind.TIME:
                self.timed = True
            case HistKind.FIELD:
                assert field is not None
                ctype, size, signed = self._type(field)
        if variable and modifier == "execname":
            ctype, size, signed = "char[]", _STRING_SIZE, False
        return HistField(name, field, modifier, buckets, kind, ctype, size, signed, variable)

    def _check_modified(
        self, text: str, kind: HistKind, field: Field | None, modifier: str
    ) -> None:
        """Refuse the modifiers of numbers for what is none.

        Raises:
            HistError: a kernel would show the first bytes, or a length, as a number.
        """
        if modifier == "stacktrace":
            return
        what = ""
        if kind is HistKind.COMM or (field is not None and field.kind is FieldKind.STRING):
            what = "a string"
        elif kind is HistKind.STACK or (field is not None and field.kind is FieldKind.STACK):
            what = "a call stack"
        if what:
            name, _, rest = text.partition(".")
            raise self.fail("BAD_FIELD_MODIFIER", rest, f"{name} is {what}, and no number")

    def _what(self, name: str) -> tuple[HistKind, Field | None]:
        match name:
            case "common_timestamp":
                return HistKind.TIME, None
            case "common_stacktrace":
                return HistKind.STACK, None
            case "common_cpu":
                return HistKind.CPU, None
            case "common_comm":
                return HistKind.COMM, None
            case "hitcount":
                return HistKind.HITCOUNT, None
        field = find(self.info, name)
        if field is None:
            raise self.fail("FIELD_NOT_FOUND", name)
        if not field.size:
            known = {
                FieldKind.CPU: HistKind.CPU,
                FieldKind.STACK: HistKind.STACK,
                FieldKind.COMM: HistKind.COMM,
            }.get(field.kind)
            if known is None:
                raise self.fail("FIELD_NOT_FOUND", name)
            return known, None
        return HistKind.FIELD, field

    def _type(self, field: Field) -> tuple[str, int, bool]:
        if field.kind is FieldKind.STRING:
            fixed = not field.ctype.startswith("__data_loc")
            return field.ctype, field.size if fixed else _STRING_SIZE, field.signed
        counted = field.column is not None and field.column.type.count
        if counted or field.size not in (1, 2, 4, 8):
            raise self.fail("SYNTAX", field.name, "arrays cannot be counted")
        if field.is_float:
            raise self.fail("SYNTAX", field.name, "numbers with a point cannot be counted")
        return field.ctype, field.size, field.signed

    @staticmethod
    def _stack(field: Field | None, variable: str) -> HistField:
        return HistField(
            "common_stacktrace" if field is None else field.name,
            field,
            kind=HistKind.STACK,
            ctype="unsigned long[]",
            size=8 * STACK_DEPTH,
            variable=variable,
        )

    def _modifier(self, name: str, modifier: str, use: str) -> tuple[str, int]:
        if modifier.startswith("bucket"):
            rest = modifier.removeprefix("bucket").removeprefix("s")
            if not rest.startswith("="):
                raise self.fail("BAD_FIELD_MODIFIER", rest)
            width = unsigned(rest[1:], 64)
            if not width:
                raise self.fail("BAD_FIELD_MODIFIER", rest[1:])
            return "buckets", width
        for shown in ("percent", "graph"):
            if modifier.startswith(shown) and use not in ("key", "variable"):
                return shown, 0
        if modifier in _MODIFIERS or (modifier == "execname" and name == "common_pid"):
            return modifier.replace("X", "-"), 0
        raise self.fail("BAD_FIELD_MODIFIER", modifier)


def root_operator(text: str) -> tuple[str, int]:
    """The operator that is carried out last and where it is; ("", -1) for none."""
    minus = text.rfind("-")
    if minus == 0:
        return "neg", 0
    plus = text.rfind("+")
    if plus >= 0 or minus >= 0:
        return ("+", plus) if plus > minus else ("-", minus)
    divide, times = text.rfind("/"), text.rfind("*")
    if times > divide:
        return "*", times
    return ("/", divide) if divide >= 0 else ("", -1)


def left_word(text: str) -> str:
    """The part of an expression that the kernel's parser leaves whole, and looks for in errors."""
    start = 2 if text.startswith("-(") else 0
    cut = min((text.find(c, start) for c in _OPERATORS if c in text[start:]), default=len(text))
    if start and cut == len(text):
        cut = text.rfind(")") if ")" in text else cut
    word = text[:cut]
    return word.partition(".")[0] if word.count(".") > 1 else word


def _refers(field: HistField) -> bool:
    return field.reference is not None or any(map(_refers, field.operands))


def _variable_of(field: HistField) -> HistField:
    """The variable that an operand reads, or the operand."""
    return field if field.reference is None else field.reference.variable
