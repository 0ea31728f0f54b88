"""The files that a kernel's programs have mapped, found in its memory."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import GuestFaultError
from engine.image.kernel.filelayout import AreaLayout, ContentLayout, FileLayout, PathLayout
from engine.session.guest.kernel_files import KernelFiles

_LAYOUT = FileLayout(
    AreaLayout(root=0, pivots=8, slots=(128, 128, 80), start=0, end=8, mm=16, file=112, page=104),
    PathLayout(
        mount=16, entry=24, inside=32, root=32, above=16, point=24, parent=24, size=36, name=40
    ),
    ContentLayout(
        mapping=192,
        inode=0,
        length=80,
        pages=16,
        slots=40,
        mask=63,
        descriptions=0x100,
        shift=6,
    ),
)
_MAPPED, _PHYSICAL = 0x10_0000, 0x4000_0000
"""The first page's description and address."""
_LAST = (1 << 64) - 1


class _Kernel:
    """Memory in which a kernel's structures are made."""

    def __init__(self) -> None:
        self.words: dict[int, int] = {0x100: _MAPPED, 0x108: _PHYSICAL}
        self.raw: dict[int, bytes] = {}
        self._next = 0x2000_0000

    def room(self, size: int = 0x1000) -> int:
        """A place where nothing is yet."""
        found, self._next = self._next, self._next + (size + 0xFFF & -0x1000)
        return found

    def peek(self, address: int, size: int) -> bytes:
        """Bytes that were put there; zeros beside them, and a fault elsewhere."""
        raw = next((at for at in self.raw if at <= address < at + len(self.raw[at])), None)
        if raw is not None:
            return self.raw[raw][address - raw :][:size].ljust(size, b"\0")
        if not (0x100 <= address < 0x110 or 0x2000_0000 <= address <= self._next - size):
            raise GuestFaultError(address, "read")
        words = [self.words.get(at, 0) for at in range(address & -8, address + size, 8)]
        data = b"".join(word.to_bytes(8, "little") for word in words)
        return data[address % 8 :][:size]

    def structure(self, **fields: int) -> int:
        """A structure with words at `atOFFSET`."""
        found = self.room()
        for name, value in fields.items():
            self.words[found + int(name.removeprefix("at"))] = value
        return found

    def entry(self, name: str, parent: int = 0) -> int:
        """A directory's entry."""
        text = self.room()
        self.raw[text] = name.encode()
        found = self.structure(at32=len(name) << 32, at40=text)
        self.words[found + 24] = parent or found
        return found

    def mount(self, root: int, above: int = 0, point: int = 0) -> int:
        """A mount; of none above it is the first."""
        found = self.structure(at32=root, at24=point)
        self.words[found + 16] = above or found
        return found

    def file(self, mount: int, entry: int, pages: int, size: int) -> int:
        """An open file of a content."""
        inode = self.structure(at80=size)
        mapping = self.structure(at0=inode, at16=pages)
        return self.structure(at16=mount + 32, at24=entry, at192=mapping)

    def page(self, number: int, data: bytes) -> int:
        """The description of a page of memory with some bytes in it."""
        self.raw[_PHYSICAL + number * 4096] = data.ljust(4096, b"\0")
        return _MAPPED + (number << 6)

    def node(self, shift: int, slots: dict[int, int]) -> int:
        """A node of a tree of pages, as its parent has it."""
        found = self.structure(at0=shift)
        for index, slot in slots.items():
            self.words[found + 40 + 8 * index] = slot
        return found + 2

    def areas(self, kind: int, pivots: list[int], slots: list[int]) -> int:
        """A node of a tree of areas, as its parent has it."""
        found = self.room()
        for index, pivot in enumerate(pivots):
            self.words[found + 8 + 8 * index] = pivot
        for index, slot in enumerate(slots):
            self.words[found + _LAYOUT.areas.slots[kind - 1] + 8 * index] = slot
        return found | kind << 3 | 6

    def files(self) -> KernelFiles:
        """What is to be tried."""
        return KernelFiles(_LAYOUT, self.peek, 0x108, 0)


def test_a_path_goes_through_mounts() -> None:
    kernel = _Kernel()
    root = kernel.entry("/")
    first = kernel.mount(root)
    tmp = kernel.entry("tmp", root)
    inner = kernel.entry("/")
    second = kernel.mount(inner, first, tmp)
    deep = kernel.entry("deep", inner)
    prog = kernel.entry("prog", deep)
    files = kernel.files()
    assert files.path(kernel.file(second, prog, 0, 0)) == "/tmp/deep/prog"
    assert files.path(kernel.file(first, tmp, 0, 0)) == "/tmp"
    # What is in no directory, such as memfd_create()'s files, has no path.
    assert files.path(kernel.file(first, kernel.entry("loose"), 0, 0)) == ""


def test_names_that_lead_in_a_circle_end() -> None:
    kernel = _Kernel()
    root = kernel.entry("/")
    one = kernel.entry("one", root)
    two = kernel.entry("two", one)
    kernel.words[one + 24] = two
    assert kernel.files().path(kernel.file(kernel.mount(root), two, 0, 0)) == ""


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.data())
def test_an_area_is_found_in_its_tree(gaps: list[int], data: st.DataObject) -> None:
    kernel = _Kernel()
    mm, at, ranges = kernel.structure(), 0x1000, []
    for number, pages in enumerate(gaps):  # every other one is of a file, between them are holes
        if number % 2 == 0:
            ranges.append((at, at + pages * 4096))
        at += pages * 4096
    made: list[tuple[int, int]] = []  # last address of each slot of the leaves, and what it has
    file, end = kernel.file(0, 0, 0, 5), 0
    for start, stop in ranges:
        if start > end:
            made.append((start - 1, 0))
        area = kernel.structure(at0=start, at8=stop, at16=mm, at104=start >> 12, at112=file)
        made.append((stop - 1, area))
        end = stop
    made.append((_LAST, 0))
    leaves = []
    while made:
        some, made = made[:16], made[16:]
        pivots = [last for last, _ in some][:15]
        leaves.append((some[-1][0], kernel.areas(1, pivots, [slot for _, slot in some])))
    top = leaves[0][1]
    if len(leaves) > 1:
        pivots = [last for last, _ in leaves]
        top = kernel.areas(3, pivots[:9], [node for _, node in leaves])
    kernel.words[mm] = top
    files = kernel.files()
    for start, stop in ranges:
        address = data.draw(st.integers(start, stop - 1))
        found = files.area(mm, address)
        assert found is not None
        assert (found.start, found.end, found.offset, found.size) == (start, stop, start, 5)
    for before, after in itertools.pairwise(ranges):
        assert files.area(mm, before[1]) is None
        assert files.area(mm, after[0] - 1) is None
    assert files.area(mm, 0) is None
    assert files.area(mm + 4096, ranges[0][0]) is None  # an mm that is no more


@settings(max_examples=30)
@given(st.sets(st.integers(0, 5000), min_size=1, max_size=30), st.integers(0, 4096))
def test_content_is_put_together_of_pages(numbers: set[int], cut: int) -> None:
    kernel = _Kernel()
    last = max(numbers)
    size = max(last * 4096 + cut, 1)
    texts = {number: f"page {number} ".encode() * 300 for number in numbers}
    level = {number: kernel.page(number + 7, texts[number]) for number in numbers}
    shift = 0
    while shift == 0 or len(level) > 1 or next(iter(level)):
        above: dict[int, dict[int, int]] = {}
        for index, entry in level.items():
            above.setdefault(index >> 6, {})[index & 63] = entry
        level = {index: kernel.node(shift, slots) for index, slots in above.items()}
        shift += 6
    files = kernel.files()
    mm = kernel.structure()
    file = kernel.file(0, 0, level[0], size)
    area = kernel.structure(at0=0x1000, at8=0x2000, at16=mm, at112=file)
    kernel.words[mm] = kernel.areas(1, [0xFFF, 0x1FFF, _LAST], [0, area])
    found = files.area(mm, 0x1000)
    assert found is not None
    content = bytearray(size)
    for number in numbers:
        piece = texts[number].ljust(4096, b"\0")[: max(size - number * 4096, 0)]
        content[number * 4096 : number * 4096 + len(piece)] = piece
    assert files.content(found, 1 << 30) == bytes(content)
    assert files.content(found, size - 1) == b""


def test_a_page_of_several_has_one_entry() -> None:
    """Slots behind the first of a folio name the first (xa_is_sibling)."""
    kernel = _Kernel()
    pages = [kernel.page(8 + number, bytes([65 + number]) * 4096) for number in range(4)]
    slots = {0: pages[0]} | dict.fromkeys((1, 2, 3), 2)
    mm = kernel.structure()
    file = kernel.file(0, 0, kernel.node(0, slots), 4 * 4096)
    area = kernel.structure(at0=0x1000, at8=0x2000, at16=mm, at112=file)
    kernel.words[mm] = kernel.areas(1, [0xFFF, 0x1FFF, _LAST], [0, area])
    files = kernel.files()
    found = files.area(mm, 0x1000)
    assert found is not None
    assert files.content(found, 1 << 20) == b"".join(bytes([c]) * 4096 for c in b"ABCD")


def test_a_tree_of_pages_that_is_none_ends() -> None:
    kernel = _Kernel()
    node = kernel.node(0, {})
    for slot in range(64):
        kernel.words[node - 2 + 40 + 8 * slot] = node
    kernel.words[node - 2] = 63
    mm = kernel.structure()
    file = kernel.file(0, 0, node, 1 << 22)
    area = kernel.structure(at0=0x1000, at8=0x2000, at16=mm, at112=file)
    kernel.words[mm] = kernel.areas(1, [0xFFF, 0x1FFF, _LAST], [0, area])
    files = kernel.files()
    found = files.area(mm, 0x1000)
    assert found is not None
    assert not any(files.content(found, 1 << 22))
