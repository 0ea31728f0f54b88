"""Definitions of types that are only declared: in their own unit, or elsewhere in the file."""

from typing import Final

from engine.errors import ImageError
from engine.image import dies
from engine.image.dies import DebugFile, Die
from engine.image.reader import DamagedError

RECORDS: Final = {0x13: "struct", 0x02: "class", 0x17: "union", 0x38: "interface"}
"""Tags of structures and the like, and the words for them."""
ENUM: Final = 0x04
_AT_SIGNATURE: Final = 0x69


def defined(die: Die | None) -> Die | None:
    """The definition of a type that is only declared; the declaration where there is none."""
    if die is None:
        return None
    signature = die.reference(_AT_SIGNATURE)  # GCC leaves no more than that of a type
    if signature is not None:
        return signature
    if not die.has(dies.AT_DECLARATION):
        return die
    name = die.name
    if not name:
        return die
    own = _unit_definitions(die).get((die.tag, name))
    return own or _definition(die.unit.info, die.tag, name) or die


def _definition(info: DebugFile, tag: int, name: str) -> Die | None:
    """The first definition of a type in a file."""
    key = tag, name
    if key not in info.definitions:
        first: Die | None = None
        for unit in info.naming((name,)):
            if unit.kind in dies.TYPE_UNITS:
                continue
            try:
                found = _unit_definitions(info.whole(unit).root).get(key)
            except (DamagedError, ImageError):
                continue
            if found is not None:
                first = found
                break
        info.definitions[key] = first
    return info.definitions[key]


def _unit_definitions(die: Die) -> dict[tuple[int, str | None], Die]:
    unit = die.unit
    if unit.definitions is None:
        shape = unit.shape
        unit.definitions = {}
        for index, tag in enumerate(shape.tags):
            if tag in RECORDS or tag == ENUM:
                one = Die(unit, shape.offsets[index])
                if not one.has(dies.AT_DECLARATION) and one.has(dies.AT_NAME):
                    unit.definitions.setdefault((tag, one.string(dies.AT_NAME)), one)
    return unit.definitions
