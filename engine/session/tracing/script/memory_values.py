"""Values in memory as expressions, which read them while the guest stands at a hit.

The expressions call `string_in(address, size)`, `number_at(address, size, signed)` and
`bytes_at(address, size)`, which whoever evaluates them has to have.
"""

from engine.errors import ProbeError
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import (
    Array,
    Boolean,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    Structure,
    TextType,
    Type,
)


def memory_value(address: str, kind: Type) -> str:
    """An expression that reads a value of a type in memory.

    Raises:
        ProbeError: there are no such values.
    """
    if isinstance(kind, TextType):
        return f"string_in({address}, {kind.size})"
    if isinstance(kind, Enumeration):
        kind = kind.integer
    if isinstance(kind, Integer):
        return f"number_at({address}, {kind.bits // 8}, {kind.signed})"
    if isinstance(kind, Pointer):
        return f"number_at({address})"
    if isinstance(kind, Boolean):
        return f"(number_at({address}, 1) != 0)"
    if isinstance(kind, (BufferType, Structure)):
        return f"bytes_at({address}, {kind.size})"
    if isinstance(kind, Array):
        width = type_size(kind.element)
        each = memory_value(f"({address} + each)", kind.element)
        return f"tuple([{each} for each in range(0, {kind.count * width}, {width or 1})])"
    raise ProbeError(f"{kind} is not read here")
