"""Targets of Rust's owners and guards: `*rc`, `*guard`, `*pin`, and fields behind them.

gdb follows raw pointers and boxes alone. What an owner leads to is told by its layout, nothing is
called; a type of the user's that implements Deref has no answer here.
"""

import re
from collections.abc import Callable
from typing import Final

from engine.image.datatypes import TypeKind
from engine.language.held import Children, Held, OtherLayoutError, part_along
from engine.language.reach import Reach
from engine.language.values import TypedValue

_OWNER: Final = re.compile(r"(?:alloc|core|std)::(?:[a-z_]+::)+([A-Z]\w*)<")
_WAYS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "Pin": (("pointer",), ("__pointer",)),
    "MutexGuard": (("lock", "data", "value"),),
    "RwLockWriteGuard": (("lock", "data", "value"),),
    "RwLockReadGuard": (("data", "pointer"), ("lock", "data", "value")),
    "ManuallyDrop": (("value", "__0"), ("value",)),
}
"""Members that lead to what is owned, of newer and older libraries."""
_HELD: Final = {"Rc": "value", "Arc": "value", "Ref": "*value", "RefMut": "*value"}
"""Owners that are shown with what they hold, and how that is called there."""
_POINTERS: Final = frozenset(("Pin", "RwLockReadGuard"))
"""Owners whose way ends at a pointer."""
_DEPTH: Final = 8


def behind(
    reach: Reach, held: Callable[[TypedValue], Held | None], value: TypedValue, depth: int = 0
) -> TypedValue | None:
    """The value that an owner leads to; None for what is no owner.

    Args:
        reach: parts of values.
        held: what a container holds.
        value: the owner.
        depth: owners around it.

    Raises:
        GuestFaultError: memory cannot be read.
    """
    match = _OWNER.match(value.type.resolved.text)
    if match is None or depth > _DEPTH or value.type.resolved.kind is not TypeKind.RECORD:
        return None
    name = match[1]
    label = _HELD.get(name)
    if label is not None:
        inside = held(value)
        children = None if inside is None else inside.children
        return None if children is None else dict(_named(children())).get(label)
    for way in _WAYS.get(name, ()):
        found = _along(reach, value, way)
        if found is None:
            continue
        if name not in _POINTERS:
            return found
        if found.type.resolved.kind is TypeKind.POINTER:
            return reach.pointed(found)
        return behind(reach, held, found, depth + 1) or reach.object_behind(found)
    return None


def _named(children: Children) -> list[tuple[str, TypedValue]]:
    return [(name, value) for name, value in children if isinstance(name, str)]


def _along(reach: Reach, value: TypedValue, way: tuple[str, ...]) -> TypedValue | None:
    try:
        for name in way:
            if value.type.resolved.kind is TypeKind.POINTER:
                value = reach.pointed(value)
            value = part_along(reach, value, (name,))
    except OtherLayoutError:
        return None
    return value
