"""Values reached from values: what a pointer points at, members, elements, what stands where."""

from fractions import Fraction

from engine.errors import CommandError
from engine.image.datatypes import Member, TypeKind
from engine.image.variants import variant_part
from engine.language import value_types as ct
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType, is_reference, is_utf
from engine.language.values import MOST, MemoryPlace, Order, Place, RegisterPlace, TypedValue, made


class Reach:
    """The values of one place in a program; memory is read when a value's bytes are wanted.

    Attributes:
        order: of bytes.
    """

    def __init__(self, around: Surroundings) -> None:
        """Reach what these surroundings have."""
        self._around = around
        self.order: Order = around.order

    def made(self, kind: CType, number: Fraction | float) -> TypedValue:
        """A value that stands nowhere."""
        return made(kind, number, self.order)

    @property
    def pointer(self) -> int:
        """Bytes of a pointer."""
        return self._around.pointer

    def at(self, kind: CType, address: int) -> TypedValue:
        """A value in memory."""
        around, size = self._around, kind.size or 0
        address &= (1 << 8 * around.pointer) - 1
        if size > MOST:
            what = f"value requires {size} bytes, which is more than max-value-size"

            def refuse() -> bytes:
                raise CommandError(what)

            return TypedValue(kind, refuse, MemoryPlace(address), order=self.order)
        return TypedValue(
            kind,
            lambda: around.read(address, size),
            MemoryPlace(address),
            order=self.order,
            pages=around.pages,
        )

    def _beside(self, value: TypedValue) -> "Reach":
        """Reach in the memory that a function has left, if the value is its result."""
        if not value.pages or value.pages is self._around.pages:
            return self
        return Reach(self._around.afterwards(value.pages))

    def used(self, value: TypedValue) -> TypedValue:
        """A value, or what it refers to."""
        if value.missing or not is_reference(value.type):
            return value
        return self._beside(value).at(value.type.target, value.number)

    def member(self, value: TypedValue, name: str, *, arrow: bool = False) -> TypedValue:
        """A part of a structure, or of what a pointer points at.

        Args:
            value: the structure, or the pointer.
            name: of the part.
            arrow: the user has written `->`.

        Raises:
            CommandError: there is none such.
        """
        is_pointer = value.type.resolved.kind is TypeKind.POINTER
        base = self.pointed(value) if is_pointer else value
        kind = base.type.resolved
        if kind.kind is not TypeKind.RECORD:
            what = "structure pointer" if arrow else "structure"
            raise CommandError(f"Attempt to extract a component of a value that is not a {what}.")
        found = kind.member(name)
        if found is None:
            raise CommandError(f"There is no member named {name}.")
        return self.part(base, found)

    def part(self, base: TypedValue, member: Member) -> TypedValue:
        """A member of a structure."""
        if member.bit_size:
            return self._bits(base, member)
        if member.offset_place:
            return self._virtual_base(base, member)
        if base.address is not None and not base.is_loaded:
            return self._beside(base).at(member.type, base.address + member.offset)
        place: Place = None
        if isinstance(base.place, RegisterPlace):
            place = RegisterPlace(base.place.name, base.place.offset + member.offset)
        elif base.address is not None:
            place = MemoryPlace(base.address + member.offset)
        return base.part(member.type, member.offset, place)

    def _virtual_base(self, base: TypedValue, member: Member) -> TypedValue:
        """A virtual base class: the object's table of functions tells where it is.

        Raises:
            CommandError: the object is not in memory.
        """
        if base.address is None:
            raise CommandError("The place of a virtual base class is told by objects in memory.")
        around, size = self._beside(base)._around, self.pointer
        table = int.from_bytes(around.read(base.address, size), self.order)
        raw = around.read(table - member.offset_place, size)
        place = base.address + int.from_bytes(raw, self.order, signed=True)
        return Reach(around).at(member.type, place)

    def variant(self, value: TypedValue) -> Member | None:
        """The part of a value with variants that is there; None for no such value.

        Raises:
            GuestFaultError: its discriminant cannot be read.
        """
        kind = value.type.resolved
        part = variant_part(kind)
        if part is None:
            return None
        number = 0
        if part.discriminant is not None:
            raw = self.part(value, part.discriminant).raw
            number = int.from_bytes(raw, self.order)
        found = part.of(number)
        return None if found is None else found.member

    def object_behind(self, value: TypedValue) -> TypedValue | None:
        """The value behind a reference to a trait object, in its own type; None for others.

        Raises:
            CommandError: the type is not known.
            GuestFaultError: memory cannot be read.
        """
        if [member.name for member in value.type.resolved.members] != ["pointer", "vtable"]:
            return None
        pointer, table = (self.member(value, name) for name in ("pointer", "vtable"))
        kind = self._around.type_of_vtable(table.number)
        if kind is None:
            raise CommandError("The type of the object behind the vtable is not known.")
        return self.at(kind, pointer.number)

    def _bits(self, base: TypedValue, member: Member) -> TypedValue:
        """A bitfield (little-endian machines count its bits from the lowest)."""
        kind, order = member.type, self.order
        size = kind.size or 1
        first, last = member.bit_offset // 8, -(-(member.bit_offset + member.bit_size) // 8)
        around, address = self._around, base.address

        def load() -> bytes:
            if address is not None and not base.is_loaded:
                raw = around.read(address + first, last - first)
            else:
                raw = base.raw[first:last]
            number = int.from_bytes(raw, "little") >> member.bit_offset % 8
            number &= (1 << member.bit_size) - 1
            if kind.is_signed and number >> member.bit_size - 1:
                number -= 1 << member.bit_size
            return (number & (1 << 8 * size) - 1).to_bytes(size, order)

        place = None
        if address is not None:
            place = MemoryPlace(address + first, member.bit_offset % 8, member.bit_size)
        return TypedValue(kind, load, place, base.missing, order, kept=base.kept)

    def pointed(self, pointer: TypedValue) -> TypedValue:
        """The value a pointer points at, or an array's first element.

        Raises:
            CommandError: it is no pointer, or one to nothing known.
        """
        kind = pointer.type
        if kind.kind is TypeKind.ARRAY:
            return self.element(pointer, 0)
        if kind.kind is TypeKind.FUNCTION:
            return pointer
        if kind.resolved.kind is TypeKind.POINTER and kind.resolved.owner is not None:
            raise CommandError("Attempt to dereference pointer to member without an object")
        if kind.kind in ct.INTEGERS and kind.kind is not TypeKind.BOOL and not is_utf(kind):
            return self.at(ct.LONG, pointer.number)
        if kind.kind is not TypeKind.POINTER:
            raise CommandError("Attempt to take contents of a non-pointer value.")
        target = kind.target
        if target.kind is TypeKind.VOID:
            raise CommandError("Attempt to take contents of a non-pointer value.")
        return self._beside(pointer).at(target, pointer.number)

    def element(self, base: TypedValue, index: int) -> TypedValue:
        """An element of an array, or of what a pointer points into.

        Raises:
            CommandError: it is of nothing in memory and has no such element.
        """
        if base.type.kind is TypeKind.POINTER:
            return self.pointed(self.moved(base, index))
        element = base.type.element
        size, at = element.size or 0, index * (element.size or 0)
        place = None if base.address is None else MemoryPlace(base.address + at)
        if place is not None and not base.is_loaded:
            return self._beside(base).at(element, place.address)
        if not 0 <= at <= len(base.raw) - size:
            if place is None:
                raise CommandError("no such vector element")
            return self.at(element, place.address)
        return base.part(element, at, place)

    def moved(self, pointer: TypedValue, by: int) -> TypedValue:
        """A pointer so many elements further.

        Raises:
            CommandError: nobody knows how large they are.
        """
        target = pointer.type.target
        size = target.size if target.kind is not TypeKind.VOID else 1
        if target.kind is TypeKind.FUNCTION:
            size = 1
        if size is None:
            raise CommandError(
                "Cannot perform pointer math on incomplete types, "
                "try casting to a known type, or void *."
            )
        found = self.made(pointer.type, pointer.number + by * size)
        found.pages = pointer.pages
        return found

    def address_of(self, value: TypedValue) -> TypedValue:
        """A pointer to a value.

        Raises:
            CommandError: it is not in memory.
        """
        place = value.place
        if isinstance(place, RegisterPlace):
            raise CommandError("Attempt to take address of value not located in memory.")
        if not isinstance(place, MemoryPlace):
            raise CommandError("Attempt to take address of value not located in memory.")
        if place.bits:
            raise CommandError("Attempt to take address of a bitfield")
        return self.made(ct.pointer_to(value.type, self._around.pointer), place.address)

    def scalar(self, value: TypedValue) -> TypedValue:
        """A value as arithmetic takes it: an array is a pointer to its first element."""
        if value.type.kind is TypeKind.ARRAY and value.address is not None:
            kind = ct.pointer_to(value.type.element, self._around.pointer)
            return self.made(kind, value.address)
        if value.type.kind is TypeKind.FUNCTION and value.address is not None:
            return self.made(ct.pointer_to(value.type, self._around.pointer), value.address)
        return value

    def repeated(self, first: TypedValue, count: int) -> TypedValue:
        """The array that begins with a value.

        Raises:
            CommandError: the value is not in memory, or `count` not positive.
        """
        if first.address is None:
            raise CommandError("Only values in memory can be extended with '@'.")
        if count <= 0:
            raise CommandError(f"Invalid number {count} of repetitions.")
        return self.at(ct.array_of(first.type, count), first.address)
