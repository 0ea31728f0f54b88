"""Containers of libc++ (LLVM 12 to 14) as what they hold, in the words for libstdc++'s.

Members are named as in libc++'s headers. Two things in a `__compressed_pair` are its bases; the
first one, which is never empty here, is found as `__value_`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.further_containers import FurtherContainers, Inner, Look
from engine.language.held import Children, Held, OtherLayoutError, counted
from engine.language.parts import ContainerParts, aligned
from engine.language.value_types import CType
from engine.language.values import TypedValue

_SPACE: Final = "std::__1::"
_STEPS: Final = 256
"""Links that are followed from one node of a tree to the next."""
_MOST: Final = 1 << 48
_BLOCK, _FEW = 4096, 16
"""Bytes of a deque's pieces, and the number of things in one where they are large."""


class LlvmContainers:
    """Looks into containers of libc++."""

    def __init__(self, parts: ContainerParts, inner: Inner) -> None:
        """Set up.

        Args:
            parts: finds parts of values.
            inner: looks into values in them.
        """
        self._parts = parts
        self._inner = inner
        self._further = FurtherContainers(parts, inner)

    def look(self, name: str) -> Look | None:
        """Find the reader of a template's values by its name; None for another one."""
        if not name.startswith(_SPACE):
            return None
        short = name.removeprefix(_SPACE)
        found = _LOOKS.get(short)
        if found is None:
            return None
        known = found
        return lambda value: known(self, value, f"std::{short}")

    # -- runs -------------------------------------------------------------------------------

    def _string(self, value: TypedValue, name: str) -> Held:
        part = self._parts.part
        whole = part(value, "__r_", "__value_")
        mark = part(whole, "__s", "__size_").number
        if mark & 1:
            length = part(whole, "__l", "__size_").number
            return self._parts.text(part(whole, "__l", "__data_"), length)
        data = part(whole, "__s", "__data_")
        letter = data.type.resolved.element
        if data.address is None:  # a result in registers, or one that was kept
            raw = data.raw[: (mark >> 1) * (letter.size or 1)]
            return Held("", raw, len(raw), count=mark >> 1, wide=ct.wide_mark(letter))
        start = self._parts.reach.made(ct.pointer_to(letter, self._parts.size), data.address)
        return self._parts.text(start, mark >> 1)

    def _view(self, value: TypedValue, name: str) -> Held:
        part = self._parts.part
        return self._parts.text(part(value, "__data"), part(value, "__size").number)

    def _vector(self, value: TypedValue, name: str) -> Held:
        part, kind = self._parts.part, self._parts.argument(value.type)
        if kind.kind is TypeKind.BOOL:
            return self._bits(value)
        first = part(value, "__begin_")
        start, finish = first.number, part(value, "__end_").number
        end, size = part(value, "__end_cap_", "__value_").number, kind.size or 0
        if not size or not start <= finish <= end or (finish - start) % size:
            raise OtherLayoutError
        found = self._further.span(name, first, (finish - start) // size)
        return replace(found, title=f"{found.title}, capacity {(end - start) // size}")

    def _bits(self, value: TypedValue) -> Held:
        part = self._parts.part
        first, count = part(value, "__begin_"), part(value, "__size_").number
        word = first.type.resolved.target.size or 8
        room = 8 * word * part(value, "__cap_alloc_", "__value_").number
        return self._parts.bits(first.number, word, count, room)

    def _deque(self, value: TypedValue, name: str) -> Held:
        part, kind = self._parts.part, self._parts.argument(value.type)
        size = kind.size or 1
        piece = _BLOCK // size if size < _BLOCK // _FEW else _FEW
        nodes = part(value, "__map_", "__begin_").number
        start, count = part(value, "__start_").number, part(value, "__size_", "__value_").number
        if count >= _MOST:
            raise OtherLayoutError

        def item(number: int) -> TypedValue:
            number += start
            block = self._parts.word(nodes + number // piece * self._parts.size)
            return self._parts.reach.at(kind, block + number % piece * size)

        return Held(
            counted(name, count),
            children=lambda: (("", item(number)) for number in range(count)),
            count=count,
            at=item,
        )

    def _array(self, value: TypedValue, name: str) -> Held:
        elements = self._parts.part(value, "__elems_")
        count = elements.type.resolved.count
        if count is None:
            raise OtherLayoutError
        item = partial(self._parts.reach.element, elements)
        return Held(
            "",
            children=lambda: iter([("_M_elems", elements)]),
            named=True,
            count=count,
            at=item,
        )

    def _span(self, value: TypedValue, name: str) -> Held:
        sized = value.type.resolved.member("__size") is not None
        length = (
            self._parts.part(value, "__size").number
            if sized
            else self._parts.given_number(value.type)
        )
        return self._further.span(name, self._parts.part(value, "__data"), length)

    # -- nodes ------------------------------------------------------------------------------

    def _list(self, value: TypedValue, name: str) -> Held:
        head = self._parts.part(value, "__end_").address
        count = self._parts.part(value, "__size_alloc_", "__value_").number
        kind, size = self._parts.argument(value.type), self._parts.size
        if head is None or count >= _MOST:
            raise OtherLayoutError

        def children() -> Children:
            node = self._parts.word(head + size)
            for number in range(count):
                if node in (head, 0):
                    return
                yield f"[{number}]", self._parts.reach.at(kind, node + 2 * size)
                node = self._parts.word(node + size)

        return Held(name if count else f"empty {name}", children=children, named=True)

    def _forward_list(self, value: TypedValue, name: str) -> Held:
        first = self._parts.part(value, "__before_begin_", "__value_", "__next_").number
        kind, size = self._parts.argument(value.type), self._parts.size

        def children() -> Children:
            node, number = first, 0
            while node:
                yield f"[{number}]", self._parts.reach.at(kind, node + size)
                node, number = self._parts.word(node), number + 1

        return Held(name if first else f"empty {name}", children=children, named=True)

    def _tree(self, value: TypedValue, name: str) -> Held:
        tree = self._parts.part(value, "__tree_")
        count = self._parts.part(tree, "__pair3_", "__value_").number
        first = self._parts.part(tree, "__begin_node_").number
        end = self._parts.part(tree, "__pair1_").address
        keyed = name.endswith("map")
        kind = self._parts.argument(tree.type)
        if end is None or count >= _MOST:
            raise OtherLayoutError
        offset = self._in_tree(kind)

        def children() -> Children:
            nodes = islice(self._nodes(first, end), count)
            for number, node in enumerate(nodes):
                item = self._parts.reach.at(kind, node + offset)
                if keyed:
                    pair = self._parts.part(item, "__cc")
                    yield self._parts.part(pair, "first"), self._parts.part(pair, "second")
                else:
                    yield f"[{number}]", item

        return Held(counted(name, count), children=children, named=True, count=count, keyed=keyed)

    def _in_tree(self, kind: CType) -> int:
        """The place of a thing in a node: behind three pointers and a colour of a byte."""
        return aligned(3 * self._parts.size + 1, kind)

    def _nodes(self, first: int, end: int) -> Iterator[int]:
        """Nodes of a tree in order (std::__1::__tree_next_iter)."""
        node = first
        while node not in (end, 0):
            yield node
            node = self._following(node)

    def _following(self, node: int) -> int:
        size, word = self._parts.size, self._parts.word
        below = word(node + size)
        if below:
            for _ in range(_STEPS):
                node, below = below, word(below)
                if not below:
                    return node
            return 0
        for _ in range(_STEPS):
            above = word(node + 2 * size)
            if not above or word(above) == node:
                return above
            node = above
        return 0

    def _hashed(self, value: TypedValue, name: str) -> Held:
        table = self._parts.part(value, "__table_")
        count = self._parts.part(table, "__p2_", "__value_").number
        first = self._parts.part(table, "__p1_", "__value_", "__next_").number
        kind, keyed, size = (
            self._parts.argument(table.type),
            name.endswith("map"),
            self._parts.size,
        )
        if count >= _MOST:
            raise OtherLayoutError

        def children() -> Children:
            node = first
            for number in range(count):
                if not node:
                    return
                item = self._parts.reach.at(kind, node + 2 * size)
                if keyed:
                    pair = self._parts.part(item, "__cc")
                    yield self._parts.part(pair, "first"), self._parts.part(pair, "second")
                else:
                    yield f"[{number}]", item
                node = self._parts.word(node)

        return Held(counted(name, count), children=children, named=True, count=count, keyed=keyed)

    # -- one thing, or a few ----------------------------------------------------------------

    def _owner(self, value: TypedValue, name: str) -> Held:
        pointer = self._parts.part(value, "__ptr_", "__value_")
        title = f"{name}<{self._parts.argument_text(value.type)}>"
        children = [("get()", pointer)]
        return Held(title, children=lambda: iter(children), named=True, points=pointer)

    def _shared(self, value: TypedValue, name: str) -> Held:
        pointer, counts = self._parts.part(value, "__ptr_"), self._parts.part(value, "__cntrl_")
        title = f"{name}<{self._parts.argument_text(value.type)}>"
        state, uses = "empty", 0
        if counts.number:
            # The library alone has the class of the counts: behind its table of methods are both.
            owners, weak = (self._count(counts.number, place) for place in (1, 2))
            uses, weak = owners + 1, weak + (owners < 0)
            state = f"use count {uses}, weak count {weak}"
            if not uses:
                state = f"expired, weak count {weak}"
        children = [("get()", pointer)]
        return Held(
            f"{title} ({state})",
            children=lambda: iter(children),
            named=True,
            points=pointer,
            uses=uses,
        )

    def _count(self, block: int, place: int) -> int:
        raw = self._parts.around.read(block + place * self._parts.size, self._parts.size)
        return int.from_bytes(raw, self._parts.reach.order, signed=True)

    def _optional(self, value: TypedValue, name: str) -> Held:
        engaged = self._parts.part(value, "__engaged_").number
        stored = self._parts.part(value, "__val_") if engaged else None
        return self._further.optional(value.type, stored)

    def _variant(self, value: TypedValue, name: str) -> Held:
        index = self._parts.part(value, "__impl", "__index").number
        if not 0 <= index < len(value.type.resolved.arguments):
            return self._further.variant(value.type, index, None)
        place = self._parts.part(value, "__impl", "__data")
        for _ in range(index):
            place = self._parts.part(place, "__tail")
        stored = self._parts.part(place, "__head", "__value")
        return self._further.variant(value.type, index, stored)

    def _any(self, value: TypedValue, name: str) -> Held:
        handler = self._parts.part(value, "__h").number
        if not handler:
            return self._further.any_holding(None)
        symbol = self._parts.around.symbol(handler)
        before, _, rest = symbol.partition("Handler<")
        kind = self._parts.named_type(rest.rpartition(">::__handle(")[0])
        if kind is None:
            raise OtherLayoutError
        if before.endswith("_Small"):
            place = self._parts.part(value, "__s", "__buf").address
        else:
            place = self._parts.part(value, "__s", "__ptr").number
        if place is None:
            raise OtherLayoutError
        return self._further.any_holding(self._parts.reach.at(kind, place))

    def _tuple(self, value: TypedValue, name: str) -> Held:
        named: list[tuple[TypedValue | str, TypedValue]] = []
        if value.type.resolved.member("__base_") is not None:
            leaves = self._parts.part(value, "__base_")
            for number, member in enumerate(leaves.type.resolved.members, 1):
                leaf = self._parts.reach.part(leaves, member)
                plain = leaf.type.resolved.member("__value_") is not None
                thing = self._parts.part(leaf, "__value_") if plain else leaf
                named.append((f"[{number}]", thing))
        if not named:
            return Held(f"empty {name}", children=lambda: iter(()))
        return Held(f"{name} containing", children=lambda: iter(named), named=True)

    def _pair(self, value: TypedValue, name: str) -> Held:
        parts = [(each, self._parts.part(value, each)) for each in ("first", "second")]
        return Held("", children=lambda: iter(parts), named=True)

    def _atomic(self, value: TypedValue, name: str) -> Held:
        stored = self._parts.part(value, "__a_", "__a_value")
        return self._further.atomic(self._parts.argument(value.type), stored)

    def _bitset(self, value: TypedValue, name: str) -> Held:
        return self._further.bitset(value.type, self._parts.part(value, "__first_"))

    def _path(self, value: TypedValue, name: str) -> Held:
        return self._further.path(self._parts.part(value, "__pn_"))

    def _adapter(self, value: TypedValue, name: str) -> Held:
        inner = self._inner(self._parts.part(value, "c"))
        if inner is None:
            raise OtherLayoutError
        return replace(inner, title=f"{name} wrapping: {inner.title}", at=None, points=None)

    # -- iterators --------------------------------------------------------------------------

    def _of_run(self, value: TypedValue, name: str) -> Held:
        return self._further.iterator(self._parts.part(value, "__i"), "std::vector", ordered=True)

    def _of_deque(self, value: TypedValue, name: str) -> Held:
        return self._further.iterator(self._parts.part(value, "__ptr_"), "std::deque")

    def _of_list(self, value: TypedValue, name: str) -> Held:
        node, size = self._parts.part(value, "__ptr_").number, self._parts.size
        links = 1 if "forward" in name else 2
        title = "std::forward_list" if links == 1 else "std::list"
        kind = self._parts.argument(value.type)
        if links == 1:  # it is given the pointer to a node
            kind = self._parts.argument(kind.resolved.target)
        return self._further.behind(node, links * size, kind, title)

    def _of_tree(self, value: TypedValue, name: str) -> Held:
        node = self._parts.part(value, "__ptr_").number
        kind = self._parts.argument(value.type)
        return self._standing(node, self._in_tree(kind), kind, "associative container")

    def _of_hash(self, value: TypedValue, name: str) -> Held:
        pointer = self._parts.part(value, "__node_")
        kind = self._parts.argument(value.type)
        if kind.kind is TypeKind.POINTER:
            kind = self._parts.argument(kind.resolved.target)
        found = self._standing(pointer.number, 2 * self._parts.size, kind, "unordered container")
        return replace(found, shown=False)

    def _of_map(self, value: TypedValue, name: str) -> Held:
        found = self._inner(self._parts.part(value, "__i_"))
        if found is None:
            raise OtherLayoutError
        return found

    def _standing(self, node: int, offset: int, kind: CType, name: str) -> Held:
        """An iterator of a map or a set; of maps the pairs are wrapped once more."""
        if node and kind.resolved.member("__cc") is not None:
            kind = self._parts.part(self._parts.reach.at(kind, node + offset), "__cc").type
        return self._further.behind(node, offset, kind, name)


_Look = Callable[[LlvmContainers, TypedValue, str], Held]
_LOOKS: Final[dict[str, _Look]] = {
    "basic_string": LlvmContainers._string,
    "basic_string_view": LlvmContainers._view,
    "vector": LlvmContainers._vector,
    "deque": LlvmContainers._deque,
    "array": LlvmContainers._array,
    "span": LlvmContainers._span,
    "list": LlvmContainers._list,
    "forward_list": LlvmContainers._forward_list,
    **dict.fromkeys(("map", "set", "multimap", "multiset"), LlvmContainers._tree),
    **dict.fromkeys(
        ("unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset"),
        LlvmContainers._hashed,
    ),
    "unique_ptr": LlvmContainers._owner,
    **dict.fromkeys(("shared_ptr", "weak_ptr"), LlvmContainers._shared),
    "optional": LlvmContainers._optional,
    "variant": LlvmContainers._variant,
    "any": LlvmContainers._any,
    "tuple": LlvmContainers._tuple,
    "pair": LlvmContainers._pair,
    "atomic": LlvmContainers._atomic,
    "bitset": LlvmContainers._bitset,
    "__fs::filesystem::path": LlvmContainers._path,
    **dict.fromkeys(("stack", "queue", "priority_queue"), LlvmContainers._adapter),
    "__wrap_iter": LlvmContainers._of_run,
    "__deque_iterator": LlvmContainers._of_deque,
    **dict.fromkeys(
        (
            "__list_iterator",
            "__list_const_iterator",
            "__forward_list_iterator",
            "__forward_list_const_iterator",
        ),
        LlvmContainers._of_list,
    ),
    **dict.fromkeys(("__tree_iterator", "__tree_const_iterator"), LlvmContainers._of_tree),
    **dict.fromkeys(("__hash_iterator", "__hash_const_iterator"), LlvmContainers._of_hash),
    **dict.fromkeys(
        (
            "__map_iterator",
            "__map_const_iterator",
            "__hash_map_iterator",
            "__hash_map_const_iterator",
        ),
        LlvmContainers._of_map,
    ),
}
"""Templates, and how each is looked into."""
