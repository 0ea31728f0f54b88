"""Classes of C++ that functions pass and return by their address (Itanium C++ ABI, 3.1).

An object is "non-trivial for the purposes of calls" if a copy or move constructor or the
destructor is not trivial, or if all copy and move constructors are deleted. Clang says so in an
attribute of the class (DWARF 5, 5.7.4). GCC does not: there the functions that the class declares
tell it.
"""

from collections.abc import Iterator
from typing import Final

from engine.image.definitions import RECORDS, defined
from engine.image.dies import MAX_CHAIN, Die

_CALLING_CONVENTION, _PASS_BY_REFERENCE = 0x36, 4
_ARTIFICIAL, _VIRTUALITY, _DELETED, _DEFAULTED = 0x34, 0x4C, 0x8A, 0x8B
_IN_CLASS: Final = 1
"""DW_DEFAULTED_in_class: what is defaulted elsewhere is the user's own."""
_SUBPROGRAM, _PARAMETER, _MEMBER, _INHERITANCE = 0x2E, 0x05, 0x0D, 0x1C
_ARRAY, _REFERENCE, _RVALUE = 0x01, 0x10, 0x42
_EXTERNAL: Final = 0x3F
_NAMED: Final = frozenset((0x16, 0x26, 0x35, 0x37, 0x47))
"""Typedefs and qualifiers."""
_MAX_CLASSES: Final = 1024


def is_nontrivial(die: Die | None) -> bool:
    """True for a class whose objects are passed and returned by address, by a type's entry."""
    return _is_nontrivial(die, set())


def _is_nontrivial(die: Die | None, seen: set[object]) -> bool:
    die = _bare(die)
    if die is None or die.tag not in RECORDS or die.key in seen or len(seen) > _MAX_CLASSES:
        return False
    seen.add(die.key)  # those of a damaged file may contain each other
    said = die.number(_CALLING_CONVENTION)
    if said is not None:
        return said == _PASS_BY_REFERENCE
    parts = list(_children(die))
    if any(_is_own(part, die) for part in parts):
        return True
    copying = [part for part in parts if _is_copying(part, die)]
    if copying and all(part.has(_DELETED) for part in copying):
        return True
    return any(
        _is_nontrivial(_element(part.type), seen)
        for part in parts
        if part.tag == _INHERITANCE or (part.tag == _MEMBER and not part.has(_EXTERNAL))
    )


def _is_own(part: Die, record: Die) -> bool:
    """True for a part of a class that alone makes copies of its objects non-trivial."""
    if part.tag == _INHERITANCE:
        return bool(part.number(_VIRTUALITY))
    if part.tag != _SUBPROGRAM:
        return False
    if part.number(_VIRTUALITY):
        return True
    trivial = part.number(_DEFAULTED) == _IN_CLASS or part.has(_ARTIFICIAL) or part.has(_DELETED)
    return not trivial and ((part.name or "").startswith("~") or _is_copying(part, record))


def _is_copying(part: Die, record: Die) -> bool:
    """True for a constructor that takes a reference to an object of its own class."""
    name = (record.name or "").partition("<")[0]
    if part.tag != _SUBPROGRAM or not name or (part.name or "").partition("<")[0] != name:
        return False
    given = [one.type for one in _children(part) if one.tag == _PARAMETER]
    if len(given) != 2 or given[1] is None or given[1].tag not in (_REFERENCE, _RVALUE):
        return False
    target = _bare(given[1].type)
    return target is not None and target.key == record.key


def _element(die: Die | None) -> Die | None:
    """A member's type; of arrays that of their elements."""
    for _ in range(MAX_CHAIN):
        die = _bare(die)
        if die is None or die.tag != _ARRAY:
            return die
        die = die.type
    return None


def _bare(die: Die | None) -> Die | None:
    """The entry behind typedefs and qualifiers, a definition rather than a declaration."""
    for _ in range(MAX_CHAIN):
        if die is None or die.tag not in _NAMED:
            return defined(die)
        die = die.type
    return None


def _children(die: Die) -> Iterator[Die]:
    shape = die.unit.shape
    for index in shape.children(die.unit.index(die.offset)):
        yield Die(die.unit, shape.offsets[index])
