"""Tables without names, found in an image made by hand."""

import struct

from tableview import TableView

from engine.arch.aarch64.kernel_text_tables import ImageShapes

_BASE = 0xFFFF800008010000
_TEXT = 0x10000
_NOP, _BRANCH, _BRK, _BTI = 0xD503201F, 0x14000004, 0xD4210000, 0xD503245F
_FUNCTIONS = [_BASE + 0x40 * i for i in range(200)]


def _image() -> TableView:
    view = TableView(_BASE, bytes(0x40000))
    view.symbols["_stext"] = _BASE
    view.symbols["_etext"] = _BASE + _TEXT
    for i, function in enumerate(_FUNCTIONS):
        view.put(function, struct.pack("<4I", _NOP, _NOP, _BRANCH if i % 2 else _NOP, _BRK))
    return view


def _entries(view: TableView, at: int, layout: str, rows: list[tuple[int, ...]]) -> None:
    """Writes entries whose first two numbers are distances to addresses."""
    size = struct.calcsize("<" + layout)
    for i, row in enumerate(rows):
        place = at + i * size
        values = row[0] - place, row[1] - place - 4, *row[2:]
        view.put(place, struct.pack("<" + layout, *values))


def test_each_table_is_found_where_it_is() -> None:
    view = _image()
    labels, exceptions = _BASE + 0x18008, _BASE + 0x1C004
    bugs, alternatives = _BASE + 0x20008, _BASE + 0x24004
    sites, names = _BASE + 0x28008, _BASE + 0x2C010
    _entries(view, labels, "iiq", [(f + 8, f + 32, 4096 * (-1) ** f) for f in _FUNCTIONS])
    _entries(view, exceptions, "iiHH", [(f + 12, f + 20, 2, 0x41) for f in _FUNCTIONS])
    _entries(view, bugs, "iiHH", [(f + 12, _BASE + 0x12000, 7, 1) for f in _FUNCTIONS])
    _entries(
        view,
        alternatives,
        "iiHBB",
        [(f + 16, f + 24, 0x8009 if i % 3 else 9, 4, 0 if i % 3 else 4)
         for i, f in enumerate(_FUNCTIONS)],
    )  # fmt: skip
    view.put(sites, struct.pack("<200Q", *reversed(_FUNCTIONS)))
    view.put(names, struct.pack("<20Q", *_FUNCTIONS[7:27]))
    found = ImageShapes(view).tables(sorted([*view.symbols.values(), *_FUNCTIONS]))
    assert found == {
        "jump_labels": (labels, 200 * 16),
        "exceptions": (exceptions, 200 * 12),
        "bugs": (bugs, 200 * 12),
        "alternatives": (alternatives, 200 * 12),
        "ftrace": (sites, 200 * 8),
        "blacklist": (names, 20 * 8),
    }


def test_functions_without_a_symbol_belong_to_their_table() -> None:
    view = _image()
    view.put(_BASE + 0x28000, struct.pack("<200Q", *_FUNCTIONS))
    named = [*_FUNCTIONS[:18], _BASE + 0x11000, *_FUNCTIONS[18:20]]
    view.put(_BASE + 0x2C000, struct.pack(f"<{len(named)}Q", *named))
    injected = [v for f in _FUNCTIONS[30:34] for v in (f, 1)]
    view.put(_BASE + 0x2C000 + 8 * len(named), struct.pack(f"<{len(injected)}Q", *injected))
    found = ImageShapes(view).tables(sorted([*view.symbols.values(), *_FUNCTIONS]))
    assert found["blacklist"] == (_BASE + 0x2C000, 8 * len(named))


def test_nothing_is_found_in_nothing() -> None:
    view = _image()
    assert ImageShapes(view).tables(_FUNCTIONS) == {}
    view.symbols.clear()
    assert ImageShapes(view).tables(_FUNCTIONS) == {}


def test_the_site_is_the_second_nop_behind_a_landing_pad() -> None:
    view = _image()
    places = [_BASE, _BASE + 0x40, _BASE + 0x80]
    assert ImageShapes(view).ftrace_sites(places) == [place + 4 for place in places]
    view.put(_BASE, struct.pack("<3I", _BTI, _NOP, _NOP))
    view.put(_BASE + 0x40, struct.pack("<I", 0x94000010))
    assert ImageShapes(view).ftrace_sites(places) == [_BASE + 8, _BASE + 0x40, _BASE + 0x84]


def test_sites_may_have_nops_for_a_pointer_before_the_function() -> None:
    view = _image()
    view.put(_BASE, struct.pack("<4I", _NOP, _NOP, _NOP, _NOP))
    view.put(_BASE + 0x40, struct.pack("<5I", _NOP, _NOP, _BTI, _NOP, _NOP))
    places = [_BASE, _BASE + 0x40]
    assert ImageShapes(view).ftrace_sites(places) == [_BASE + 12, _BASE + 0x40 + 16]


def test_one_odd_entry_does_not_end_a_table() -> None:
    view = _image()
    rows: list[tuple[int, ...]] = [(f + 12, _BASE + 0x12000, 7, 1) for f in _FUNCTIONS]
    rows[100] = (_FUNCTIONS[100] + 8, _BASE + 0x12000, 7, 1)
    rows[190] = rows[191] = rows[100]
    _entries(view, _BASE + 0x20008, "iiHH", rows)
    found = ImageShapes(view).tables(sorted([*view.symbols.values(), *_FUNCTIONS]))
    assert found["bugs"] == (_BASE + 0x20008, 190 * 12)
