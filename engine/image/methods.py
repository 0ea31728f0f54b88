"""Functions, bases and static data of classes of C++, as expressions look for them by name.

What `ptype` prints of a class is the business of `classes`.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from engine.image import dies
from engine.image.datatypes import DataType
from engine.image.definitions import ENUM, RECORDS
from engine.image.dies import Die
from engine.image.dietypes import DieType
from engine.image.reader import Reader

_SUBPROGRAM, _PARAMETER, _CONST = 0x2E, 0x05, 0x26
_MEMBER, _VARIABLE, _TYPEDEF, _TEMPLATE_TYPE = 0x0D, 0x34, 0x16, 0x2F
_ARTIFICIAL, _VIRTUALITY, _VTABLE_ELEM = 0x34, 0x4C, 0x4D
_DELETED: Final = 0x8A
_EXPLICIT: Final = 0x63
_CALLS: Final = ("operator()<", "operator[]<")
"""Operators that templates may make: the brackets behind them are the template's."""
_ALLOCATIONS: Final = ("operator new", "operator delete", 'operator ""')
_CONSTU: Final = 0x10


class ClassMethod(Struct, frozen=True):
    """A function of a class.

    Attributes:
        name: of it, with what its template was given.
        type: of the function, its object included.
        linkage: the linker's name; "" where the compiler has not told it.
        is_static: it has no object.
        slot: its number in the table of virtual functions; None for one that is not virtual.
        is_const: it may be called for objects that are not to be changed.
        is_explicit: a conversion that only casts and conditions use.
    """

    name: str
    type: DataType
    linkage: str
    is_static: bool
    slot: int | None
    is_const: bool
    is_explicit: bool = False


class StaticData(Struct, frozen=True):
    """Static data of a class.

    Attributes:
        type: of it.
        linkage: the linker's name; "" where the compiler has not told it.
        value: its bytes where it is a constant; None else.
    """

    type: DataType
    linkage: str
    value: bytes | None


def methods_of(kind: object, name: str) -> Iterator[ClassMethod]:
    """Functions of a name that a class itself declares, bases left out; templates' all forms.

    Raises:
        DamagedError: the entries are damaged.
    """
    for part in _children(kind):
        own = part.name if part.tag == _SUBPROGRAM else None
        if own is None or part.has(_DELETED):
            continue
        is_sign = own.startswith("operator") and not own.startswith(_CALLS)
        plain = own if is_sign else own.partition("<")[0]
        if name in (own, plain):
            yield _method(part, own)


def functions_of(kind: object) -> Iterator[Die]:
    """Entries of all functions that a class itself declares.

    Raises:
        DamagedError: the entries are damaged.
    """
    return (part for part in _children(kind) if part.tag == _SUBPROGRAM and part.name)


def virtual_methods(kind: object) -> Iterator[ClassMethod]:
    """Virtual functions that a class itself declares.

    Raises:
        DamagedError: the entries are damaged.
    """
    for part in _children(kind):
        if part.tag == _SUBPROGRAM and part.name and part.has(_VIRTUALITY):
            yield _method(part, part.name)


def conversions_of(kind: object) -> Iterator[ClassMethod]:
    """Functions of a class itself that make other types' values of its objects: `operator bool`.

    Raises:
        DamagedError: the entries are damaged.
    """
    for part in _children(kind):
        own = part.name if part.tag == _SUBPROGRAM else None
        if own is None or part.has(_DELETED) or part.type is None:
            continue
        if own.startswith("operator ") and not own.startswith(_ALLOCATIONS):
            yield _method(part, own)


def declaring_class(kind: object) -> DataType | None:
    """The class that declares a function; None for no function of a class.

    Raises:
        DamagedError: the entries are damaged.
    """
    die = kind.entry if isinstance(kind, DieType) else None
    if die is None or die.tag != _SUBPROGRAM:
        return None
    declared = die.origins()[-1]
    shape = declared.unit.shape
    parent = shape.parents[declared.unit.index(declared.offset)]
    if parent < 0 or shape.tags[parent] not in RECORDS:
        return None
    return DieType(Die(declared.unit, shape.offsets[parent]))


def _method(part: Die, name: str) -> ClassMethod:
    shape = part.unit.shape
    given = [
        Die(part.unit, shape.offsets[index])
        for index in shape.children(part.unit.index(part.offset))
        if shape.tags[index] == _PARAMETER
    ]
    this = given[0] if given and given[0].has(_ARTIFICIAL) else None
    return ClassMethod(
        name,
        DieType(part),
        part.linkage_name or "",
        this is None,
        _slot(part) if part.has(_VIRTUALITY) else None,
        this is not None and _is_const(this.type),
        part.has(_EXPLICIT),
    )


def _slot(part: Die) -> int | None:
    value = part.get(_VTABLE_ELEM)
    if isinstance(value, int):
        return value
    if not isinstance(value, bytes) or not value:
        return None
    reader = Reader(value, 0, len(value), part.unit.info.order)
    return reader.uleb() if reader.u8() == _CONSTU else None


def _is_const(this: Die | None) -> bool:
    """True for the type of an object's pointer that nothing is changed through."""
    while this is not None and this.tag == _CONST:
        this = this.type
    target = this.type if this is not None else None
    return target is not None and target.tag == _CONST


def static_data(kind: object, name: str) -> StaticData | None:
    """Static data of a class itself, by name; None for none.

    Raises:
        DamagedError: the entries are damaged.
    """
    for part in _children(kind):
        declared = part.has(dies.AT_EXTERNAL) or part.has(dies.AT_DECLARATION)
        if part.tag in (_MEMBER, _VARIABLE) and declared and part.name == name:
            return StaticData(DieType(part.type), part.linkage_name or "", constant(part))
    return None


def constant(die: Die) -> bytes | None:
    """The value that an entry says its variable always has; None for none."""
    value = die.get(dies.AT_CONST_VALUE)
    size = DieType(die.type).size or 0
    if isinstance(value, bytes):
        return value[:size]
    if not isinstance(value, int) or not size:
        return None
    order: Literal["little", "big"] = "little" if die.unit.info.order == "<" else "big"
    return (value & (1 << 8 * size) - 1).to_bytes(size, order)


def inner_type(kind: object, name: str) -> DataType | None:
    """A type that a class itself declares in it, by name; None for none.

    Raises:
        DamagedError: the entries are damaged.
    """
    for part in _children(kind):
        if part.name != name:
            continue
        if part.tag == _TEMPLATE_TYPE:
            return DieType(part.type)
        if part.tag in (_TYPEDEF, ENUM, *RECORDS):
            return DieType(part)
    return None


def _children(kind: object) -> Iterator[Die]:
    die = kind.entry if isinstance(kind, DieType) else None
    if die is None:
        return
    shape = die.unit.shape
    for index in shape.children(die.unit.index(die.offset)):
        yield Die(die.unit, shape.offsets[index])
