"""Values of libstdc++ that hold one thing, or lead to one: variants, paths, iterators, atomics.

The words are those of libstdc++'s printers for gdb (libstdc++-v3/python/libstdcxx/v6/
printers.py). What does not depend on the library, `llvm_containers` uses too.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.held import Children, Held, OtherLayoutError
from engine.language.parts import ContainerParts
from engine.language.quoting import quoted
from engine.language.value_types import CType
from engine.language.values import TypedValue, made

Look = Callable[[TypedValue], Held]
"""Reader of one value's contents."""
Inner = Callable[[TypedValue], Held | None]
"""The things in a value that is perhaps a container."""

_RED_LINKS: Final = 4
"""Words in front of what a node of a tree holds."""
_DYNAMIC: Final = (1 << 64) - 1
"""The extent of a span that knows its length only when it runs."""
_MANAGER: Final = re.compile(r"std::any::_Manager_(internal|external)<(.*)>::_S_manage\(")


class FurtherContainers:
    """Looks into such values."""

    def __init__(self, parts: ContainerParts, inner: Inner) -> None:
        """Set up.

        Args:
            parts: finds parts of values.
            inner: looks into values in them.
        """
        self._parts = parts
        self._inner = inner

    def look(self, name: str) -> Look | None:
        """Find the reader of a template's values by its name; None for another one."""
        found = _LOOKS.get(name)
        return None if found is None else partial(found, self)

    # -- one thing --------------------------------------------------------------------------

    def optional(self, kind: CType, stored: TypedValue | None) -> Held:
        """An optional of a type, and the value in it if there is one."""
        title = f"std::optional<{self._parts.argument_text(kind)}>"
        return self._one(title, stored, " containing ", "[contained value]")

    def variant(self, kind: CType, index: int, stored: TypedValue | None) -> Held:
        """A variant of a type, the number of what is in it, and that."""
        count = len(kind.resolved.arguments)
        given = ", ".join(self._parts.argument_text(kind, number) for number in range(count))
        title = f"std::variant<{given}>"
        if stored is None:
            return self._one(title, None, "", "")
        return self._one(f"{title} [index {index}]", stored, " containing ", "")

    def any_holding(self, stored: TypedValue | None) -> Held:
        """An any, and the value in it if there is one."""
        if stored is None:
            return self._one("std::any", None, "", "")
        inner = self._inner(stored)
        text = self._parts.shown_type(stored.type)
        title = (
            "std::any" if inner is not None and inner.children else f"std::any containing {text}"
        )
        return self._one(title, stored, " containing ", "[contained value]")

    def _one(self, title: str, stored: TypedValue | None, between: str, name: str) -> Held:
        """One thing; of a container in it the things are shown."""
        if stored is None:
            whole = f"{title} [no contained value]"
            return Held(whole, children=lambda: iter(()), count=0, optional=True)
        thing = stored
        inner = self._inner(stored)
        if inner is not None and inner.children is not None and inner.title:
            return Held(
                f"{title}{between}{inner.title}",
                children=inner.children,
                # A variant's printer says that it is an array, if what it holds says nothing.
                named=inner.named and (bool(name) or inner.keyed),
                count=1,
                at=lambda number: thing,
                optional=True,
            )
        children = [(name, stored)]
        return Held(
            title,
            children=lambda: iter(children),
            named=bool(name),
            count=1,
            at=lambda number: thing,
            optional=True,
        )

    def _variant(self, value: TypedValue) -> Held:
        index = self._parts.part(value, "_M_index").number
        count = len(value.type.resolved.arguments)
        # One byte counts the alternatives of most, and says 255 for none.
        if not 0 <= index < count:
            return self.variant(value.type, index, None)
        place = self._parts.part(value, "_M_u", "_M_first", "_M_storage")
        kind = self._parts.argument(value.type, index)
        return self.variant(value.type, index, self._cut(place, kind))

    def _any(self, value: TypedValue) -> Held:
        manager = self._parts.part(value, "_M_manager").number
        if not manager:
            return self.any_holding(None)
        match = _MANAGER.match(self._parts.around.symbol(manager))
        kind = self._parts.named_type(match[2]) if match is not None else None
        if match is None or kind is None:
            raise OtherLayoutError
        if match[1] == "internal":
            place = self._parts.part(value, "_M_storage", "_M_buffer")
            return self.any_holding(self._cut(place, kind))
        pointer = self._parts.part(value, "_M_storage", "_M_ptr")
        return self.any_holding(self._parts.reach.at(kind, pointer.number))

    def _cut(self, place: TypedValue, kind: CType) -> TypedValue:
        """A value of a type that begins where another one does."""
        if place.address is not None:
            return self._parts.reach.at(kind, place.address)
        raw = place.raw[: kind.size or 0]
        return TypedValue(kind, lambda: raw, order=self._parts.reach.order)

    def _atomic(self, value: TypedValue) -> Held:
        kind = self._parts.argument(value.type)
        names = {
            TypeKind.FLOAT: ("_M_fp",),
            TypeKind.POINTER: ("_M_b", "_M_p"),
            TypeKind.BOOL: ("_M_base", "_M_i"),
        }
        return self.atomic(kind, self._parts.part(value, *names.get(kind.kind, ("_M_i",))))

    @staticmethod
    def atomic(kind: CType, stored: TypedValue) -> Held:
        """An atomic of a type, and the value in it."""
        return Held(f"std::atomic<{kind.text}> = ", wrapped=stored)

    # -- several things ---------------------------------------------------------------------

    def _bitset(self, value: TypedValue) -> Held:
        words = self._parts.part(value, "_M_w")
        return self.bitset(value.type, words)

    def bitset(self, kind: CType, words: TypedValue) -> Held:
        """A set of bits by its words: those that are set, with their numbers."""
        count = self._parts.given_number(kind)
        raw, order = words.raw, self._parts.reach.order
        size = words.type.resolved.element.size if words.type.kind is TypeKind.ARRAY else None
        size = size or len(raw)
        whole = 0
        for at in range(0, len(raw), size):
            whole |= int.from_bytes(raw[at : at + size], order) << 8 * at
        one = made(ct.INT, 1, order)

        def children() -> Children:
            for number in range(count):
                if whole >> number & 1:
                    yield f"[{number}]", one

        return Held(
            "std::bitset",
            children=children,
            named=True,
            count=count,
            at=lambda number: self._parts.truth(holds=bool(whole >> number & 1)),
        )

    def _span(self, value: TypedValue) -> Held:
        length = self._parts.given_number(value.type)
        if length == _DYNAMIC:
            length = self._parts.part(value, "_M_extent", "_M_extent_value").number
        return self.span("std::span", self._parts.part(value, "_M_ptr"), length)

    def _initializers(self, value: TypedValue) -> Held:
        ours = value.type.resolved.member("_M_array") is not None
        names = ("_M_array", "_M_len") if ours else ("__begin_", "__size_")  # libc++'s
        start, length = (self._parts.part(value, name) for name in names)
        return self.initializers(start, length.number)

    def initializers(self, start: TypedValue, length: int) -> Held:
        """A list of initial values by its first one."""
        return self.span("std::initializer_list", start, length)

    def span(self, name: str, start: TypedValue, length: int) -> Held:
        """Things that follow each other, by the pointer to the first one."""
        kind = start.type.resolved.target
        return Held(
            f"{name} of length {length}",
            children=lambda: self._parts.run(kind, start.number, length),
            count=length,
            at=self._parts.nth(kind, start.number),
            points=start,
        )

    def _path(self, value: TypedValue) -> Held:
        return self.path(self._parts.part(value, "_M_pathname"))

    def path(self, whole: TypedValue) -> Held:
        """A path of files by its text, and the names in it."""
        text = self._inner(whole)
        if text is None or text.text is None:
            raise OtherLayoutError
        names = path_names(text.text.decode("latin-1"))
        title = f"filesystem::path {quoted(text.text)}"
        if len(names) == 1 and names[0] == "/":
            title, names = f"{title} [root-directory]", []
        elif len(names) == 1:
            names = []
        found: list[tuple[TypedValue | str, TypedValue]] = []
        for number, name in enumerate(names):
            raw = name.encode("latin-1") + b"\0"
            kind = ct.array_of(ct.CHAR, len(raw))
            one = TypedValue(kind, partial(bytes, raw), order=self._parts.reach.order)
            found.append(("[root-directory]" if name == "/" else f"[{number}]", one))
        return Held(title, children=lambda: iter(found), named=True)

    # -- iterators --------------------------------------------------------------------------

    def iterator(self, pointer: TypedValue, name: str, *, ordered: bool = False) -> Held:
        """An iterator by the pointer to the thing that it stands at.

        Args:
            pointer: that pointer.
            name: of the container that it belongs to.
            ordered: others stand beside that thing, so that it has numbers.
        """
        if not pointer.number:
            return Held(f"non-dereferenceable iterator for {name}", children=lambda: iter(()))
        thing = self._parts.reach.pointed(pointer)
        at = (lambda number: self._parts.reach.element(pointer, number)) if ordered else None
        return Held("", alone=thing, points=pointer, at=at)

    def behind(self, node: int, offset: int, kind: CType, name: str) -> Held:
        """An iterator by the address of a node and the place of the thing in it."""
        if not node:
            return Held(f"non-dereferenceable iterator for {name}", children=lambda: iter(()))
        pointer = ct.pointer_to(kind, self._parts.size)
        return self.iterator(self._parts.reach.made(pointer, node + offset), name)

    def _of_vector(self, value: TypedValue) -> Held:
        return self.iterator(self._parts.part(value, "_M_current"), "std::vector", ordered=True)

    def _of_deque(self, value: TypedValue) -> Held:
        return self.iterator(self._parts.part(value, "_M_cur"), "std::deque")

    def _of_node(self, value: TypedValue, links: int, name: str) -> Held:
        node = self._parts.part(value, "_M_node").number
        return self.behind(node, links * self._parts.size, self._parts.argument(value.type), name)

    def _of_tree(self, value: TypedValue) -> Held:
        return self._of_node(value, _RED_LINKS, "associative container")

    def _of_list(self, value: TypedValue) -> Held:
        return self._of_node(value, 2, "std::list")

    def _of_short_list(self, value: TypedValue) -> Held:
        return self._of_node(value, 1, "std::forward_list")

    def _of_hash(self, value: TypedValue) -> Held:
        node = self._parts.part(value, "_M_cur").number
        kind = self._parts.argument(value.type)
        found = self.behind(node, self._parts.size, kind, "unordered container")
        # gdb has no printer for these: only the operators know what they stand at.
        return Held("", alone=found.alone, points=found.points, shown=False)


def path_names(text: str) -> Sequence[str]:
    """The names in a path, as std::filesystem::path iterates over them."""
    names = [name for name in text.split("/") if name]
    if names and text.endswith("/"):
        names.append("")
    return ["/", *names] if text.startswith("/") else names


_Look = Callable[[FurtherContainers, TypedValue], Held]
_LOOKS: Final[dict[str, _Look]] = {
    "std::variant": FurtherContainers._variant,
    "std::any": FurtherContainers._any,
    "std::atomic": FurtherContainers._atomic,
    "std::bitset": FurtherContainers._bitset,
    "std::span": FurtherContainers._span,
    "std::initializer_list": FurtherContainers._initializers,
    "std::filesystem::path": FurtherContainers._path,
    "std::filesystem::__cxx11::path": FurtherContainers._path,
    "__gnu_cxx::__normal_iterator": FurtherContainers._of_vector,
    "std::_Deque_iterator": FurtherContainers._of_deque,
    **dict.fromkeys(
        ("std::_Rb_tree_iterator", "std::_Rb_tree_const_iterator"), FurtherContainers._of_tree
    ),
    **dict.fromkeys(
        ("std::_List_iterator", "std::_List_const_iterator"), FurtherContainers._of_list
    ),
    **dict.fromkeys(
        ("std::_Fwd_list_iterator", "std::_Fwd_list_const_iterator"),
        FurtherContainers._of_short_list,
    ),
    **dict.fromkeys(
        ("std::__detail::_Node_iterator", "std::__detail::_Node_const_iterator"),
        FurtherContainers._of_hash,
    ),
}
"""Templates, and how each is looked into."""
