"""The bytes that the value of an expression depends on: those to watch to see it change."""

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language.evaluation import evaluate, evaluator_of, tree_of
from engine.language.syntax import Expression
from engine.language.values import TypedValue
from engine.session.inspect.frame_registers import Uses
from engine.session.inspect.frame_scope import FrameScope


class Dependence(Struct, frozen=True):
    """An expression's value and what it was read from.

    Attributes:
        value: it, with its bytes read; None where they cannot be.
        uses: the memory and the registers.
        constant: it depends on nothing at all.
    """

    value: TypedValue | None
    uses: Uses
    constant: bool


def dependence(text: str, scope: FrameScope) -> Dependence:
    """The value of an expression and what has to change for another one.

    An expression that follows pointers depends on each of them. What cannot be read depends on
    what was read before.

    Raises:
        CommandError: it means nothing there.
    """
    node = tree_of(text, scope)
    scope.uses = uses = Uses()
    value: TypedValue | None = None
    try:
        value = evaluator_of(scope).value(node).loaded()
    except GuestFaultError:
        value = None
    finally:
        scope.uses = None
    constant = not uses.memory and not uses.registers and not _varies(node)
    return Dependence(value, uses, constant)


def _varies(node: Expression) -> bool:
    """True if a part is one of the user's own variables or values."""
    return node.kind == "dollar" or any(_varies(part) for part in node.parts)


def location(text: str, scope: FrameScope) -> TypedValue:
    """The thing in memory that an expression means now, wherever the expression leads later.

    Raises:
        CommandError: it means nothing there, or nothing in memory.
        GuestFaultError: memory cannot be read.
    """
    value = evaluate(text, scope)
    if value.address is None or value.missing:
        raise CommandError("Attempt to take address of value not located in memory.")
    return value


def stretch(text: str, scope: FrameScope) -> tuple[int, int, TypedValue | None]:
    """The bytes that a text names: an expression's, a symbol's, or "ADDR,LEN".

    Returns:
        Address and size, and the value there; None for bytes without a type.

    Raises:
        CommandError: it names none.
        GuestFaultError: memory cannot be read.
    """
    evaluator = evaluator_of(scope)
    node = tree_of(text, scope)
    if node.kind == "comma":
        where, length = (evaluator.operand(part) for part in node.parts)
        if where.type.kind is TypeKind.ARRAY and where.address is not None:
            address = where.address
        else:
            address = where.number
        if length.number <= 0:
            raise CommandError(f"a length of {length.number} bytes")
        return address, length.number, None
    value = evaluator.operand(node)
    if value.address is None or value.missing or value.type.kind is TypeKind.FUNCTION:
        raise CommandError(
            "it is nothing in memory; *(TYPE *)ADDR is, and ADDR,LEN for bytes without a type"
        )
    if value.type.size:
        return value.address, value.type.size, value
    size = scope.symbol_size(text.strip())
    if not size:
        raise CommandError("its size is not known; ADDR,LEN says it")
    return value.address, size, None
