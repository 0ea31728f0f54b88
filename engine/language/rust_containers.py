"""Containers and smart pointers of Rust's library as what they hold.

The words are those of the printers for gdb that come with rustc (src/etc/gdb_providers.py). A
container that was never made, or was overwritten, is a plain structure again, or ends where it
makes no sense any more.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from engine.image.datatypes import TypeKind
from engine.image.variants import is_rust
from engine.language.held import Children, Held, OtherLayoutError, part_along
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType
from engine.language.values import TypedValue

_PATH: Final = re.compile(r"(alloc|core|std)::(?:[a-z_]+::)+([A-Z]\w*)(?:<|$)")
_SLICE: Final = re.compile(r"&(mut )?(str$|\[|(?:core|std)::(?:[a-z_]+::)+(?:Path|OsStr|CStr)$)")
_FULL: Final = 0x80
"""The bit of a control byte that says that a slot of a hash table is free."""
_TABLE: Final = 1 << 20
"""Slots of a hash table that are looked at."""
_HEIGHT: Final = 32
"""Levels of a B-tree that are descended."""


class RustContainers:
    """Looks into containers of Rust."""

    def __init__(self, around: Surroundings, most: int) -> None:
        """Set up.

        Args:
            around: the place that they are from.
            most: characters that anybody wants to see.
        """
        self._reach = Reach(around)
        self._read = around.read
        self._most = most

    def knows(self, kind: CType) -> bool:
        """True for a type that is perhaps a container."""
        return self._look(kind) is not None

    def held(self, value: TypedValue) -> Held | None:
        """The things that a value holds; None for another value.

        Raises:
            GuestFaultError: memory that it leads to cannot be read.
            CommandError: it is not laid out as is known here.
        """
        look = self._look(value.type)
        return None if look is None else look(self, value)

    @staticmethod
    def _look(kind: CType) -> "_Look | None":
        text = kind.resolved.text
        if text.startswith("&"):
            match = _SLICE.match(text)
            if match is None or kind.resolved.member("length") is None:
                return None
            if match[2].endswith("CStr"):
                return RustContainers._c_str
            return RustContainers._slice if match[2] == "[" else RustContainers._str
        found = _PATH.match(text)
        if found is None or not is_rust(kind.resolved):
            return None
        return _LOOKS.get((found[1], found[2]))

    # -- parts ------------------------------------------------------------------------------

    def _part(self, value: TypedValue, *names: str) -> TypedValue:
        return part_along(self._reach, value, names)

    def _address(self, value: TypedValue, *names: str) -> int:
        """The address in a `Unique` or a `NonNull`, whose only pointers are their own."""
        return self._pointer(self._part(value, *names)).number

    def _pointer(self, value: TypedValue) -> TypedValue:
        for _ in range(_HEIGHT):
            if value.type.resolved.kind is TypeKind.POINTER:
                return value
            fat = value.type.resolved.member("data_ptr") is not None
            value = self._part(value, "data_ptr" if fat else "pointer")
        raise OtherLayoutError

    def _buffer(self, value: TypedValue) -> TypedValue:
        """The pointer to a vector's elements; before 1.80 nothing is around it."""
        buffer = self._part(value, "buf")
        inner = buffer.type.resolved.member("inner")
        buffer = buffer if inner is None else self._reach.part(buffer, inner)
        return self._pointer(self._part(buffer, "ptr"))

    def _count(self, value: TypedValue, *names: str) -> int:
        """A number, perhaps in a structure of its own that bounds it."""
        value = self._part(value, *names)
        if value.type.resolved.kind is TypeKind.RECORD:
            value = self._part(value, "__0")
        if not 0 <= value.number < 1 << 48:
            raise OtherLayoutError
        return value.number

    @staticmethod
    def _argument(kind: CType, number: int = 0) -> CType:
        arguments = kind.resolved.arguments
        if number >= len(arguments):
            raise OtherLayoutError
        return arguments[number]

    def _nth(self, kind: CType, first: int) -> Callable[[int], TypedValue]:
        size = kind.size or 0
        return lambda number: self._reach.at(kind, first + number * size)

    def _row(self, title: str, count: int, at: Callable[[int], TypedValue]) -> Held:
        return Held(
            title,
            children=lambda: (("", at(number)) for number in range(count)),
            count=count,
            at=at,
        )

    # -- each kind --------------------------------------------------------------------------

    def _text(self, start: TypedValue, length: int) -> Held:
        if length >= 1 << 48:
            raise OtherLayoutError
        # A character has four bytes at the most.
        raw = self._read(start.number, min(length, 4 * self._most)) if length else b""
        at = self._nth(start.type.resolved.target, start.number)
        return Held("", raw, length, count=length, at=at, points=start)

    def _str(self, value: TypedValue) -> Held:
        return self._text(self._part(value, "data_ptr"), self._count(value, "length"))

    def _c_str(self, value: TypedValue) -> Held:
        """A text whose last byte is 0."""
        return self._text(self._part(value, "data_ptr"), max(self._count(value, "length") - 1, 0))

    def _string(self, value: TypedValue) -> Held:
        vec = self._part(value, "vec")
        return self._text(self._buffer(vec), self._count(vec, "len"))

    def _os_string(self, value: TypedValue) -> Held:
        vec = self._part(value, "inner", "inner")
        return self._text(self._buffer(vec), self._count(vec, "len"))

    def _slice(self, value: TypedValue) -> Held:
        start, length = self._part(value, "data_ptr"), self._count(value, "length")
        at = self._nth(start.type.resolved.target, start.number)
        return self._row(f"{value.type.resolved.text}(size={length})", length, at)

    def _vec(self, value: TypedValue) -> Held:
        length = self._count(value, "len")
        at = self._nth(self._argument(value.type), self._buffer(value).number)
        return self._row(f"Vec(size={length})", length, at)

    def _deque(self, value: TypedValue) -> Held:
        if value.type.resolved.member("tail") is None:
            head, length = self._count(value, "head"), self._count(value, "len")
            room = self._count(value, "buf", "inner", "cap")
        else:  # before 1.67 the room is a power of two
            head, room = self._count(value, "tail"), self._count(value, "buf", "cap")
            length = (self._count(value, "head") - head) % (room or 1)
        at = self._nth(self._argument(value.type), self._buffer(value).number)
        return self._row(
            f"VecDeque(size={length})", length, lambda number: at((head + number) % (room or 1))
        )

    def _shared(self, value: TypedValue, name: str, whole: str, counter: str) -> Held:
        block = self._reach.pointed(self._pointer(self._part(value, "ptr")))
        strong = self._part(block, "strong", counter, "value")
        weak = self._part(block, "weak", counter, "value")
        held = self._part(block, whole)
        rest = self._reach.made(weak.type, weak.number - 1)
        children = [("value", held), ("strong", strong), ("weak", rest)]
        title = f"{name}(strong={strong.number}, weak={rest.number})"
        return Held(title, children=lambda: iter(children), named=True)

    def _rc(self, value: TypedValue) -> Held:
        return self._shared(value, "Rc", "value", "value")

    def _arc(self, value: TypedValue) -> Held:
        return self._shared(value, "Arc", "data", "v")

    def _cell(self, value: TypedValue) -> Held:
        children = [("value", self._part(value, "value", "value"))]
        return Held("Cell", children=lambda: iter(children), named=True)

    def _ref_cell(self, value: TypedValue) -> Held:
        borrow = self._part(value, "borrow", "value", "value")
        return _with_borrow("RefCell", "value", self._part(value, "value", "value"), borrow)

    def _ref(self, value: TypedValue) -> Held:
        """A borrowed value; gdb's printer takes `NonNull` for a pointer and fails."""
        pointer = self._pointer(self._part(value, "value"))
        flag = self._reach.pointed(self._pointer(self._part(value, "borrow", "borrow")))
        borrow = self._part(flag, "value", "value")
        return _with_borrow("Ref", "*value", self._reach.pointed(pointer), borrow)

    def _hashed(self, table: TypedValue, name: str, *, keyed: bool) -> Held:
        kind = self._argument(table.type)
        inner = self._part(table, "table")
        count, slots = self._count(inner, "items"), self._count(inner, "bucket_mask") + 1
        control = self._address(inner, "ctrl")
        size = kind.size or 0

        def children() -> Children:
            left = count
            for start in range(0, min(slots, _TABLE), 64):
                marks = self._read(control + start, min(64, slots - start))
                for number, mark in enumerate(marks, start):
                    if not left:
                        return
                    if mark & _FULL:
                        continue
                    left -= 1
                    pair = self._reach.at(kind, control - (number + 1) * size)
                    key = self._part(pair, "__0")
                    yield (key, self._part(pair, "__1")) if keyed else ("", key)

        return Held(
            f"{name}(size={count})", children=children, named=keyed, count=count, keyed=keyed
        )

    def _hash_map(self, value: TypedValue) -> Held:
        return self._hashed(self._part(value, "base", "table"), "HashMap", keyed=True)

    def _hash_set(self, value: TypedValue) -> Held:
        return self._hashed(self._part(value, "base", "map", "table"), "HashSet", keyed=False)

    def _tree(self, value: TypedValue, name: str, *, keyed: bool) -> Held:
        count = self._count(value, "length")

        def children() -> Children:
            if not count:
                return
            root = self._some(self._part(value, "root"))
            node = self._pointer(self._part(root, "node"))
            left = count
            for key, item in self._nodes(node, self._count(root, "height"), 0):
                yield (key, item) if keyed else ("", key)
                left -= 1
                if not left:
                    return

        return Held(
            f"{name}(size={count})", children=children, named=keyed, count=count, keyed=keyed
        )

    def _some(self, option: TypedValue) -> TypedValue:
        """Return the value inside an option that is not empty."""
        found = self._reach.variant(option)
        if found is None:
            raise OtherLayoutError
        return self._part(self._reach.part(option, found), "__0")

    def _nodes(
        self, pointer: TypedValue, height: int, depth: int
    ) -> Iterator[tuple[TypedValue, TypedValue]]:
        """Keys and values of a node and of those below it, in order."""
        if depth > _HEIGHT:
            raise OtherLayoutError
        leaf = self._reach.pointed(pointer)
        keys, values = self._part(leaf, "keys"), self._part(leaf, "vals")
        length = self._count(leaf, "len")
        room = keys.type.resolved.count or 0
        if length > room or leaf.address is None:
            raise OtherLayoutError
        # An inner node is a leaf with the pointers to its children behind it.
        edges = leaf.address + (leaf.type.size or 0)
        wide = self._reach.pointer
        edges = -(-edges // wide) * wide
        for number in range(length + 1):
            if height:
                at = self._reach.at(pointer.type, edges + number * wide)
                yield from self._nodes(at, height - 1, depth + 1)
            if number < length:
                key, item = (self._reach.element(row, number) for row in (keys, values))
                yield self._bare(key), self._bare(item)

    def _bare(self, value: TypedValue) -> TypedValue:
        """Return the value inside a `MaybeUninit`."""
        value = self._part(value, "value", "value")
        member = value.type.resolved.member("__0")
        return value if member is None else self._reach.part(value, member)

    def _btree_map(self, value: TypedValue) -> Held:
        return self._tree(value, "BTreeMap", keyed=True)

    def _btree_set(self, value: TypedValue) -> Held:
        return self._tree(self._part(value, "map"), "BTreeSet", keyed=False)

    def _non_zero(self, value: TypedValue) -> Held:
        for _ in range(2):
            if value.type.resolved.kind is not TypeKind.RECORD:
                break
            members = value.type.resolved.members
            if len(members) != 1:
                raise OtherLayoutError
            value = self._reach.part(value, members[0])
        return Held("", alone=value)


def _with_borrow(name: str, label: str, value: TypedValue, borrow: TypedValue) -> Held:
    number = borrow.number
    state = f"borrow={number}" if number >= 0 else f"borrow_mut={-number}"
    children = [(label, value), ("borrow", borrow)]
    return Held(f"{name}({state})", children=lambda: iter(children), named=True)


_Look = Callable[[RustContainers, TypedValue], Held]
_LOOKS: Final[dict[tuple[str, str], _Look]] = {
    ("alloc", "String"): RustContainers._string,
    ("std", "OsString"): RustContainers._os_string,
    ("alloc", "Vec"): RustContainers._vec,
    ("alloc", "VecDeque"): RustContainers._deque,
    ("alloc", "BTreeMap"): RustContainers._btree_map,
    ("alloc", "BTreeSet"): RustContainers._btree_set,
    ("std", "HashMap"): RustContainers._hash_map,
    ("std", "HashSet"): RustContainers._hash_set,
    ("alloc", "Rc"): RustContainers._rc,
    ("alloc", "Arc"): RustContainers._arc,
    ("core", "Cell"): RustContainers._cell,
    ("core", "Ref"): RustContainers._ref,
    ("core", "RefMut"): RustContainers._ref,
    ("core", "RefCell"): RustContainers._ref_cell,
    ("core", "NonZero"): RustContainers._non_zero,
    **{
        ("core", f"NonZero{sign}{bits}"): RustContainers._non_zero  # before 1.79
        for sign in "IU"
        for bits in ("8", "16", "32", "64", "128", "size")
    },
}
"""The library's crates and types, and how each is looked into."""
