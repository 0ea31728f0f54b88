"""Containers and smart pointers as what they hold, where debug information says how.

The words are those of libstdc++'s own printers for gdb (libstdc++-v3/python/libstdcxx/v6/
printers.py); `rust_containers` has those of Rust. A container that was never made, or was
overwritten, holds anything: counts that do not fit, pointers that lead nowhere and trees without
an end make it a plain structure again, or end it where they are met.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language.further_containers import FurtherContainers
from engine.language.held import Children, Held, OtherLayoutError, counted
from engine.language.library_values import LibraryValues
from engine.language.llvm_containers import LlvmContainers
from engine.language.parts import ContainerParts
from engine.language.rust_containers import RustContainers
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type
from engine.language.value_types import CType
from engine.language.values import TypedValue

_NAME: Final = re.compile(r"(?:class |struct )?((?:std|__gnu_cxx)::[\w:]+)(?:<|$)")
_RED_LINKS: Final = 4
"""Words in front of what a node of a tree holds: colour, parent, left, right."""
_DEQUE: Final = 512
"""Bytes of a deque's pieces."""
_STEPS: Final = 256
"""Links that are followed from one node of a tree to the next."""


class Containers:
    """Looks into containers."""

    def __init__(self, around: Surroundings, most: int, *, prints: bool = True) -> None:
        """Set up.

        Args:
            around: the place that they are from.
            most: elements and characters that anybody wants to see.
            prints: values are shown: printers of the user's are asked first.
        """
        self._prints = prints
        self._parts = ContainerParts(around, most)
        self._reach = self._parts.reach
        self._read = around.read
        self._order = around.order
        self._pointer = around.pointer
        self._part, self._word = self._parts.part, self._parts.word
        self._argument = self._parts.argument
        self._run, self._nth = self._parts.run, self._parts.nth
        self._rust = RustContainers(around, most)
        self._further = FurtherContainers(self._parts, self.held)
        self._llvm = LlvmContainers(self._parts, self.held)
        self._library = LibraryValues(self._parts)

    def knows(self, kind: CType) -> bool:
        """True for a type that is perhaps a container, or that the user prints."""
        own = self._parts.around.printers
        if own is not None and self._prints and own.find(kind) is not None:
            return True
        return self._rust.knows(kind) or self._look(kind) is not None

    def held(self, value: TypedValue) -> Held | None:
        """The things that a value holds; None for no container, or one that is not understood.

        Raises:
            GuestFaultError: memory that it leads to cannot be read.
        """
        if value.missing:
            return None
        own = self._parts.around.printers if self._prints else None
        if own is not None and (function := own.find(value.type)) is not None:
            return own.held(value, function, self._parts.around)
        try:
            look = self._look(value.type)
            return self._rust.held(value) if look is None else look(value)
        except (OtherLayoutError, CommandError):
            return None

    def _look(self, kind: CType) -> Callable[[TypedValue], Held] | None:
        """Find the reader of a type's containers by the template's name."""
        match = _NAME.match(kind.resolved.text)
        if match is None:
            return None
        name = match[1]
        if name in _LOOKS:
            known = _LOOKS[name]
            return lambda value: known(self, value, name)
        return self._further.look(name) or self._library.look(name) or self._llvm.look(name)

    # -- each kind --------------------------------------------------------------------------

    def _string(self, value: TypedValue, name: str) -> Held:
        start = self._part(value, "_M_dataplus", "_M_p")
        return self._parts.text(start, self._part(value, "_M_string_length").number)

    def _view(self, value: TypedValue, name: str) -> Held:
        return self._parts.text(self._part(value, "_M_str"), self._part(value, "_M_len").number)

    def _vector(self, value: TypedValue, name: str) -> Held:
        store = self._part(value, "_M_impl")
        kind = self._argument(value.type)
        if kind.kind is TypeKind.BOOL:
            return self._bits(store)
        pointers = (self._part(store, part) for part in ("_M_start", "_M_finish"))
        start, finish = (pointer.number for pointer in pointers)
        end, size = self._part(store, "_M_end_of_storage").number, kind.size or 0
        if not size or not start <= finish <= end or (finish - start) % size:
            raise OtherLayoutError
        length, room = (finish - start) // size, (end - start) // size
        title = f"{name} of length {length}, capacity {room}"
        return Held(
            title,
            children=lambda: self._run(kind, start, length),
            count=length,
            at=self._nth(kind, start),
            points=self._part(store, "_M_start"),
        )

    def _bits(self, store: TypedValue) -> Held:
        start, finish = self._part(store, "_M_start"), self._part(store, "_M_finish")
        first, last = self._part(start, "_M_p"), self._part(finish, "_M_p").number
        word = first.type.resolved.target.size or 8
        bits = 8 * (last - first.number) + self._part(finish, "_M_offset").number
        room = 8 * (self._part(store, "_M_end_of_storage").number - first.number)
        return self._parts.bits(first.number, word, bits, room)

    def _tree(self, value: TypedValue, name: str) -> Held:
        tree = self._part(value, "_M_t")
        count = self._part(tree, "_M_impl", "_M_node_count").number
        header = self._part(tree, "_M_impl", "_M_header").address
        kind, keyed = self._argument(tree.type, 1), name.endswith("map")
        if header is None or count >= 1 << 48:
            raise OtherLayoutError

        def children() -> Children:
            nodes = islice(self._nodes(header), count)
            for number, node in enumerate(nodes):
                item = self._reach.at(kind, node + _RED_LINKS * self._pointer)
                if keyed:
                    yield self._part(item, "first"), self._part(item, "second")
                else:
                    yield f"[{number}]", item

        return Held(counted(name, count), children=children, named=True, count=count, keyed=keyed)

    def _nodes(self, header: int) -> Iterator[int]:
        """Nodes of a red-black tree in order."""
        node = self._word(header + 2 * self._pointer)  # the leftmost
        while node not in (header, 0):
            yield node
            node = self._following(node)

    def _following(self, node: int) -> int:
        """The node behind another one (std::_Rb_tree_increment); 0 where the tree is none."""
        size = self._pointer
        parent, left, right = size, 2 * size, 3 * size
        below = self._word(node + right)
        if below:
            for _ in range(_STEPS):
                node, below = below, self._word(below + left)
                if not below:
                    return node
            return 0
        above = self._word(node + parent)
        for _ in range(_STEPS):
            if node != self._word(above + right):
                return above if self._word(node + right) != above else node
            node, above = above, self._word(above + parent)
        return 0

    def _hashed(self, value: TypedValue, name: str) -> Held:
        table = self._part(value, "_M_h")
        count = self._part(table, "_M_element_count").number
        first = self._part(table, "_M_before_begin", "_M_nxt").number
        kind, keyed, size = self._argument(table.type, 1), name.endswith("map"), self._size
        if count >= 1 << 48:
            raise OtherLayoutError

        def children() -> Children:
            node = first
            for number in range(count):
                if not node:
                    return
                item = self._reach.at(kind, node + size)
                if keyed:
                    yield self._part(item, "first"), self._part(item, "second")
                else:
                    yield f"[{number}]", item
                node = self._word(node)

        return Held(counted(name, count), children=children, named=True, count=count, keyed=keyed)

    def _list(self, value: TypedValue, name: str) -> Held:
        head = self._part(value, "_M_impl", "_M_node").address
        kind, size = self._argument(value.type), self._size
        if head is None:
            raise OtherLayoutError

        def children() -> Children:
            node, number = self._word(head), 0
            while node not in (head, 0):
                yield f"[{number}]", self._reach.at(kind, node + 2 * size)
                node, number = self._word(node), number + 1

        title = f"empty {name}" if self._word(head) == head else name
        return Held(title, children=children, named=True)

    def _deque(self, value: TypedValue, name: str) -> Held:
        kind = self._argument(value.type)
        start, finish = (self._part(value, "_M_impl", part) for part in ("_M_start", "_M_finish"))
        element = kind.size or 1
        piece = max(_DEQUE // element, 1)
        node = self._part(start, "_M_node").number
        skipped = (
            self._part(start, "_M_cur").number - self._part(start, "_M_first").number
        ) // element
        last = (
            self._part(finish, "_M_cur").number - self._part(finish, "_M_first").number
        ) // element
        pieces = (self._part(finish, "_M_node").number - node) // self._size
        count = pieces * piece + last - skipped
        if not 0 <= skipped <= piece or not 0 <= last <= piece or not 0 <= count < 1 << 48:
            raise OtherLayoutError

        def item(number: int) -> TypedValue:
            number += skipped
            start = self._word(node + number // piece * self._size)
            return self._reach.at(kind, start + number % piece * element)

        return Held(
            counted(name, count),
            children=lambda: (("", item(number)) for number in range(count)),
            count=count,
            at=item,
        )

    def _owner(self, value: TypedValue, name: str) -> Held:
        pointer = self._head(self._part(value, "_M_t", "_M_t"))
        title = f"{name}<{bare_type(self._argument(value.type).text)}>"
        children = [("get()", pointer)]
        return Held(title, children=lambda: iter(children), named=True, points=pointer)

    def _head(self, pair: TypedValue) -> TypedValue:
        """The pointer in a tuple of pointer and deleter, whatever the deleter is."""
        for member in pair.type.resolved.members:
            part = self._reach.part(pair, member)
            if member.name == "_M_head_impl" and part.type.resolved.kind is TypeKind.POINTER:
                return part
            if member.is_base and part.type.resolved.kind is TypeKind.RECORD:
                with suppress(OtherLayoutError):
                    return self._head(part)
        raise OtherLayoutError

    def _pair(self, value: TypedValue, name: str) -> Held:
        parts = [(each, self._part(value, each)) for each in ("first", "second")]
        return Held("", children=lambda: iter(parts), named=True)

    def _shared(self, value: TypedValue, name: str) -> Held:
        pointer, counts = self._part(value, "_M_ptr"), self._part(value, "_M_refcount", "_M_pi")
        title = f"{name}<{bare_type(self._argument(value.type).text)}>"
        state, uses = "empty", 0
        if counts.number:
            block = self._reach.pointed(counts)
            uses = self._part(block, "_M_use_count").number
            weak = self._part(block, "_M_weak_count").number
            state = f"use count {uses}, weak count {weak - bool(uses)}"
            if not uses:
                state = f"expired, weak count {weak}"
        children = [("get()", pointer)]
        whole = f"{title} ({state})"
        return Held(whole, children=lambda: iter(children), named=True, points=pointer, uses=uses)

    def _optional(self, value: TypedValue, name: str) -> Held:
        outer = self._part(value, "_M_payload")
        engaged = bool(self._part(outer, "_M_engaged").number)
        stored = self._part(outer, "_M_payload", "_M_value") if engaged else None
        return self._further.optional(value.type, stored)

    def _tuple(self, value: TypedValue, name: str) -> Held:
        parts: list[TypedValue] = []
        here: TypedValue | None = value
        for _ in range(_STEPS):
            if here is None:
                break
            following: TypedValue | None = None
            for member in here.type.resolved.members:
                part = self._reach.part(here, member)
                text = part.type.resolved.text
                if text.startswith("std::_Tuple_impl<"):
                    following = part
                elif text.startswith("std::_Head_base<"):
                    parts.append(self._part(part, "_M_head_impl"))
            here = following
        if not parts:
            return Held(f"empty {name}", children=lambda: iter(()))
        named = [(f"[{number}]", part) for number, part in enumerate(parts, 1)]
        title = f"{name} containing"
        return Held(title, children=lambda: iter(named), named=True)

    def _array(self, value: TypedValue, name: str) -> Held:
        """A container that is used as an array of C; gdb, without a printer, shows a structure."""
        elements = self._part(value, "_M_elems")
        count = elements.type.resolved.count
        if count is None:
            raise OtherLayoutError
        return Held(
            "",
            children=lambda: (("", self._reach.element(elements, n)) for n in range(count)),
            count=count,
            at=lambda number: self._reach.element(elements, number),
            shown=False,
        )

    def _adapter(self, value: TypedValue, name: str) -> Held:
        inner = self.held(self._part(value, "c"))
        if inner is None:
            raise OtherLayoutError
        return replace(inner, title=f"{name} wrapping: {inner.title}", at=None, points=None)

    def _forward_list(self, value: TypedValue, name: str) -> Held:
        first = self._part(value, "_M_impl", "_M_head", "_M_next").number
        kind, size = self._argument(value.type), self._size

        def children() -> Children:
            node, number = first, 0
            while node:
                yield f"[{number}]", self._reach.at(kind, node + size)
                node, number = self._word(node), number + 1

        return Held(name if first else f"empty {name}", children=children, named=True)

    @property
    def _size(self) -> int:
        return self._pointer


_Look = Callable[[Containers, TypedValue, str], Held]
_LOOKS: Final[dict[str, _Look]] = {
    "std::__cxx11::basic_string": Containers._string,
    "std::vector": Containers._vector,
    **dict.fromkeys(("std::map", "std::set", "std::multimap", "std::multiset"), Containers._tree),
    **dict.fromkeys(
        (
            "std::unordered_map",
            "std::unordered_set",
            "std::unordered_multimap",
            "std::unordered_multiset",
        ),
        Containers._hashed,
    ),
    "std::__cxx11::list": Containers._list,
    "std::deque": Containers._deque,
    "std::unique_ptr": Containers._owner,
    "std::pair": Containers._pair,
    "std::basic_string_view": Containers._view,
    "std::optional": Containers._optional,
    "std::tuple": Containers._tuple,
    "std::array": Containers._array,
    "std::forward_list": Containers._forward_list,
    **dict.fromkeys(("std::stack", "std::queue", "std::priority_queue"), Containers._adapter),
    **dict.fromkeys(("std::shared_ptr", "std::weak_ptr"), Containers._shared),
}
"""Templates, and how each is looked into."""
