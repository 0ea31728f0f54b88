"""The layout of the files that programs have mapped, read from the code of their kernel.

What a program has at an address is an area of its mm (struct vm_area_struct), found in a tree by
addresses (lib/maple_tree.c). An area names a file, that a mount and an entry of a directory, and
these by way of their parents the path (fs/d_path.c). The content of a file is in pages, found in
another tree by number (lib/xarray.c).

The functions that ask for all that tell where it is: show_map_vma() prints an area, prepend_path()
and prepend_name() a path, generic_file_llseek() asks for a file's size, xas_load() walks the tree
of pages, mas_start() and ma_slots() are of that of areas, __get_free_pages() goes from a page's
description to its address.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.machine import Insn
from engine.image.kernel.codefields import (
    ADDRESS,
    NUMBER,
    CodeOf,
    holders,
    loaded,
    loads,
    offset_added,
)

_PAGE_SHIFT: Final = 12
_COMPARED: Final = re.compile(r"(\w+), qword ptr \[(\w+) \+ (\w+)\]")
_SLOT: Final = re.compile(r"\w+, qword ptr \[(\w+) \+ (\w+)\*8 \+ (\w+)\]")
_SUBTRACTED: Final = re.compile(r"(\w+), qword ptr \[(\w+)\]")
_TAG: Final = 2
"""Of a pointer to a node in a tree of pages (xa_is_node)."""


class AreaLayout(Struct, frozen=True):
    """The areas of an mm.

    Attributes:
        root: offset in an mm of the root of the tree of its areas.
        pivots: in a node of that tree, of the last addresses of what its slots are for.
        slots: of the slots, by the kind of node: 1 for leaves, 2 and 3 for those above.
        start: offset in an area of its first address.
        end: of the one behind it.
        mm: of the address of its mm.
        file: of that of its file; 0 stands there for none.
        page: of the number of the page of the file that it begins with.
    """

    root: int
    pivots: int
    slots: tuple[int, int, int]
    start: int
    end: int
    mm: int
    file: int
    page: int


class PathLayout(Struct, frozen=True):
    """The way from a file to its path.

    Attributes:
        mount: offset in a file of the address of its place in a mount.
        entry: of that of its entry in a directory.
        inside: offset in a mount of the place that files name.
        root: of the address of the entry that it begins with.
        above: of that of the mount that it is in; itself for the first one.
        point: of that of the entry that it hides there.
        parent: offset in an entry of the address of its parent; itself for the first one.
        size: of the size of its name, 32 bits.
        name: of the address of the name.
    """

    mount: int
    entry: int
    inside: int
    root: int
    above: int
    point: int
    parent: int
    size: int
    name: int


class ContentLayout(Struct, frozen=True):
    """The way from a file to its content.

    Attributes:
        mapping: offset in a file of the address of what has its pages.
        inode: in that, of the address of the inode.
        length: in an inode, of the bytes of the file.
        pages: in what has the pages, of the root of the tree.
        slots: in a node of that tree, of its slots; the shift of its index comes first.
        mask: of an index in it.
        descriptions: link address of a word, the address of the first page's description.
        shift: of the size of a description.
    """

    mapping: int
    inode: int
    length: int
    pages: int
    slots: int
    mask: int
    descriptions: int
    shift: int


class FileLayout(Struct, frozen=True):
    """The layout of all that leads to the files that programs have mapped."""

    areas: AreaLayout
    paths: PathLayout
    content: ContentLayout


def file_layout(code: CodeOf) -> FileLayout | None:
    """The layout; None where the code is otherwise than is known."""
    areas, paths, content = _areas(code), _paths(code), _content(code)
    if areas is None or paths is None or content is None:
        return None
    return FileLayout(areas, paths, content)


def _areas(code: CodeOf) -> AreaLayout | None:
    shown = code("show_map_vma")
    calls = [at for at, insn in enumerate(shown) if insn.mnemonic == "call"]
    begin = shown[: calls[0]] if calls else ()
    read = list(loaded(begin, holders(begin, "rsi")))
    shifted = {
        number[1]
        for insn in begin
        if insn.mnemonic == "shl" and (number := NUMBER.fullmatch(insn.operands))
        if int(number[2], 0) == _PAGE_SHIFT
    }
    start = [offset for target, offset in read if target == "rsi"]
    end = [offset for target, offset in read if target == "rdx"]
    page = [offset for target, offset in read if target in shifted]
    mm = [at for to, at in loaded(code("populate_vma_page_range"), ("rdi",)) if to == "rdi"]
    tree = offset_added(code("find_vma"), "rdi") or 0
    root = next(loads(code("mas_start"), "rax"), None)
    pivots = offset_added(code("ma_pivots"), "rdi")
    slots = _addresses(code("ma_slots"), "rdi")
    if not (start and end and page and mm) or root is None or pivots is None or len(slots) != 3:
        return None
    # The first is of nodes without pivots (maple_dense).
    kinds = slots[1], slots[1], slots[2]
    return AreaLayout(tree + root, pivots, kinds, start[-1], end[-1], mm[-1], read[0][1], page[0])


def _addresses(code: Sequence[Insn], register: str) -> list[int]:
    """The numbers that are added to a register, in turn."""
    found = (ADDRESS.fullmatch(insn.operands) for insn in code if insn.mnemonic == "lea")
    return [int(one[4], 0) for one in found if one and one[2] == register]


def _paths(code: CodeOf) -> PathLayout | None:
    walk, named = code("prepend_path"), code("prepend_name")
    place = offset_added(code("file_path"), "rdi")
    given = list(loaded(walk, holders(walk, "rdi")))
    mount = _container(walk)
    name = next(loads(named, "rsi"), None)
    size = next(loads(named, "rsi", "d"), None)
    if place is None or mount is None or name is None or size is None:
        return None
    pointer, register, inside = mount
    where = dict(reversed(given))
    entries = [target for target in where if target != pointer]
    if pointer not in where or len(entries) != 1:
        return None
    entry = entries[0]
    above = list(loads(walk, register))[:2]
    parent = next(loads(walk, entry), None)
    text = offset_added(walk, entry)
    compared = [
        found
        for insn in walk
        if insn.mnemonic == "cmp" and (found := _COMPARED.fullmatch(insn.operands))
    ]
    root = [int(found[3], 0) for found in compared if (found[1], found[2]) == (entry, register)]
    if len(above) != 2 or parent is None or text is None or not root:
        return None
    return PathLayout(
        mount=place + where[pointer],
        entry=place + where[entry],
        inside=inside,
        root=root[0],
        above=above[0],
        point=above[1],
        parent=parent,
        size=text + size,
        name=text + name,
    )


def _container(walk: Sequence[Insn]) -> tuple[str, str, int] | None:
    """The register that points into a mount, the one to it, and how far those are apart."""
    for insn in walk:
        found = ADDRESS.fullmatch(insn.operands)
        if insn.mnemonic == "lea" and found and found[3] == "-" and found[2] != "rbp":
            return found[2], found[1], int(found[4], 0)
    return None


def _content(code: CodeOf) -> ContentLayout | None:
    sought = code("generic_file_llseek")
    mapping = next(loaded(sought, ("rdi",)), None)
    if mapping is None:
        return None
    read = list(loaded(sought, (mapping[0],)))
    length = [offset for target, offset in read if target == "r8"]
    tree = offset_added(code("page_cache_next_miss"), "rdi")
    head = next(loads(code("xas_start"), "rax"), None)
    node = _node(code("xas_load"))
    pages = _descriptions(code("__get_free_pages"))
    if not length or tree is None or head is None or node is None or pages is None:
        return None
    return ContentLayout(mapping[1], read[0][1], length[0], tree + head, *node, *pages)


def _node(walk: Sequence[Insn]) -> tuple[int, int] | None:
    """Offset of the slots in a node of pages, and the mask of its index."""
    mask = added = None
    for insn in walk:
        number, slot = NUMBER.fullmatch(insn.operands), _SLOT.fullmatch(insn.operands)
        if insn.mnemonic == "and" and number:
            mask = int(number[2], 0)
        elif insn.mnemonic == "add" and number and mask is not None:
            added = int(number[2], 0)
        elif insn.mnemonic == "mov" and slot and mask is not None:
            return _TAG + int(slot[3], 0) + 8 * (added or 0), mask
    return None


def _descriptions(made: Sequence[Insn]) -> tuple[int, int] | None:
    """The word that points to the first page's description, and the shift of their size."""
    known: dict[str, int] = {}
    word = None
    for insn in made:
        number, taken = NUMBER.fullmatch(insn.operands), _SUBTRACTED.fullmatch(insn.operands)
        if insn.mnemonic in ("movabs", "mov") and number:
            known[number[1]] = int(number[2], 0)
        elif insn.mnemonic == "sub" and taken:
            word = known.get(taken[2])
        elif insn.mnemonic == "sar" and number and word is not None:
            return word, int(number[2], 0)
    return None
