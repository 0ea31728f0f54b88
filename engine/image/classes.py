"""Classes of C++ as their declarations were: who may see a part, methods, typedefs, bases."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.image import dies
from engine.image.datatypes import DataType, TypeKind, shorter_arguments
from engine.image.definitions import RECORDS
from engine.image.dies import MAX_CHAIN, Die
from engine.image.dietypes import DieType

_MEMBER, _INHERITANCE, _VARIABLE, _SUBPROGRAM, _TYPEDEF = 0x0D, 0x1C, 0x34, 0x2E, 0x16
_PARAMETER, _UNSPECIFIED, _TEMPLATE_TYPE = 0x05, 0x18, 0x2F
_POINTER, _CONST, _VOLATILE = 0x0F, 0x26, 0x35
_CLASS: Final = 0x02
_AT_ACCESSIBILITY, _AT_ARTIFICIAL, _AT_VIRTUALITY = 0x32, 0x34, 0x4C
_AT_VTABLE_ELEM, _AT_OBJECT_POINTER, _AT_BIT_SIZE = 0x4D, 0x64, 0x0D
_ACCESS: Final = {1: "public", 2: "protected", 3: "private"}
_CPP: Final = frozenset((0x04, 0x1A, 0x21, 0x2B, 0x3A))


class ClassField(Struct, frozen=True):
    """A variable of a class, or one that belongs to each of its objects.

    Attributes:
        name: of it; "" for an anonymous structure or union.
        type: its type.
        access: "public", "protected" or "private".
        static: it belongs to the class.
        hidden: the compiler has made it.
        bits: of a bitfield, 0 for none.
    """

    name: str
    type: DataType
    access: str
    static: bool
    hidden: bool
    bits: int


class Method(Struct, frozen=True):
    """A function of a class.

    Attributes:
        name: of it.
        result: what it returns; None for constructors, destructors and conversions.
        parameters: without the object and what the compiler has added.
        more: others may follow them.
        access: "public", "protected" or "private".
        before: "virtual ", "static " or "".
        behind: " const", " volatile" or "".
    """

    name: str
    result: DataType | None
    parameters: tuple[DataType, ...]
    more: bool
    access: str
    before: str
    behind: str


class ClassParts(Struct, frozen=True):
    """All that a class is made of.

    Attributes:
        bases: classes that it is derived from, with how.
        fields: its data in order.
        methods: those of one name together.
        typedefs: (name, type, access).
        arguments: (name, type) that its template was given.
        own_names: texts of the types that it declares, and their names within it.
        is_class: it was declared as `class`.
    """

    bases: tuple[str, ...]
    fields: tuple[ClassField, ...]
    methods: tuple[Method, ...]
    typedefs: tuple[tuple[str, DataType, str], ...]
    arguments: tuple[tuple[str, DataType], ...]
    own_names: dict[object, str]
    is_class: bool

    @property
    def needs_labels(self) -> bool:
        """True if not all is as the keyword says (gdb/c-typeprint.c, need_access_label_p)."""
        usual = ("private",) if self.is_class else ("public",)
        access = [field.access for field in self.fields]
        access += [method.access for method in self.methods]
        access += [one[2] for one in self.typedefs]
        return any(one not in usual for one in access)


def class_parts(kind: DieType) -> ClassParts | None:
    """The parts of a class, structure or union of C++; None for another type."""
    die = kind.entry
    if die is None or die.tag not in RECORDS:
        return None
    if die.unit.root.number(dies.AT_LANGUAGE) not in _CPP:
        return None
    usual = "private" if die.tag == _CLASS else "public"
    bases: list[str] = []
    fields: list[ClassField] = []
    methods: dict[str, list[Method]] = {}
    typedefs: list[tuple[str, DataType, str]] = []
    arguments: list[tuple[str, DataType]] = []
    own_names: dict[object, str] = {}
    for part in _children(die):
        access = _ACCESS.get(part.number(_AT_ACCESSIBILITY) or 0, usual)
        if part.tag == _INHERITANCE:
            virtual = "virtual " if part.number(_AT_VIRTUALITY) else ""
            bases.append(f"{access} {virtual}{DieType(part.type).text}")
        elif part.tag in (_MEMBER, _VARIABLE):
            fields.append(_field(part, access))
        elif part.tag == _SUBPROGRAM and part.name:
            several = methods.setdefault(part.name, [])  # what is hidden keeps its place
            if not part.has(_AT_ARTIFICIAL):
                several.append(_method(part, die, access))
        elif part.tag == _TYPEDEF and part.name:
            typedefs.append((part.name, DieType(part.type), access))
            own_names[DieType(part).text] = part.name
        elif part.tag == _TEMPLATE_TYPE and part.name:
            arguments.append((part.name, DieType(part.type)))
    return ClassParts(
        tuple(bases),
        tuple(fields),
        tuple(one for several in methods.values() for one in several),
        tuple(typedefs),
        tuple(arguments),
        own_names,
        die.tag == _CLASS,
    )


def _children(die: Die) -> Iterator[Die]:
    shape = die.unit.shape
    for index in shape.children(die.unit.index(die.offset)):
        yield Die(die.unit, shape.offsets[index])


def _field(part: Die, access: str) -> ClassField:
    hidden = part.has(_AT_ARTIFICIAL)
    static = part.has(dies.AT_EXTERNAL) or part.has(dies.AT_DECLARATION)
    return ClassField(
        part.name or "",
        DieType(part.type),
        "private" if hidden else access,
        static,
        hidden or (part.name or "").startswith("_vptr"),
        part.number(_AT_BIT_SIZE) or 0,
    )


def _method(part: Die, owner: Die, access: str) -> Method:
    name = shorter_arguments(part.name or "")
    given = [one for one in _children(part) if one.tag == _PARAMETER]
    static = not part.has(_AT_OBJECT_POINTER)
    own = shorter_arguments(owner.name or "")
    nameless = name in (own, own.partition("<")[0]) or name.startswith("~") or _is_conversion(name)
    before = "virtual " if part.has(_AT_VTABLE_ELEM) else "static " if static else ""
    return Method(
        name,
        None if nameless else DieType(part.type),
        tuple(DieType(one.type) for one in given if not one.has(_AT_ARTIFICIAL)),
        any(one.tag == _UNSPECIFIED for one in _children(part)),
        access,
        before,
        "" if static or not given else _qualifiers(given[0].type),
    )


def _is_conversion(name: str) -> bool:
    """True for `operator int`: what follows is a type."""
    rest = name.removeprefix("operator ")
    first = rest.split("[")[0]
    return (
        rest != name and first not in ("new", "delete") and (rest[0].isalpha() or rest[0] == "_")
    )


def _qualifiers(this: Die | None) -> str:
    """The qualifiers of the object that a method is called for."""
    found = ""
    while this is not None and this.tag == _CONST:
        this = this.type
    this = this.type if this is not None else None
    while this is not None and this.tag in (_CONST, _VOLATILE):
        found += " const" if this.tag == _CONST else " volatile"
        this = this.type
    return found


def written_as(
    kind: DataType, name: str, known: dict[object, str], spelled: Callable[[str], str]
) -> str:
    """A declaration of a thing of a type, its class's own names for types in it.

    Args:
        kind: the type.
        name: of the thing, "" for the type alone.
        known: such names, by the key of the type that they stand for (parameters of templates)
            or by its text (typedefs, which no other name of the same type is).
        spelled: writes another type with such names in it.
    """
    if kind.key in known:
        return f"{known[kind.key]} {name}".strip()
    bottom = kind
    for _ in range(MAX_CHAIN):
        if not bottom.text.endswith(("&", "*")):
            break
        bottom = bottom.target
    if bottom.kind is TypeKind.ARRAY:
        bottom = bottom.target
    text = kind.declared(name) if name else kind.text
    base = bottom.text.removeprefix("const ").removeprefix("volatile ")
    local = known.get(base) or known.get(bottom.key) or spelled(base)
    return text.replace(base, local, 1) if base else text
