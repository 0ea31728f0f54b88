"""Tables of places in text, from images made by hand."""

import struct

from tableview import TableView

from engine.arch.kernelsites import Alternative, BugSite, ExceptionEntry, JumpLabel, StaticCall
from engine.image.damage import Damage
from engine.image.kernel.sitetables import SiteTables

_BASE = 0xFFFFFFFF81000000
_TABLE = _BASE + 0x8000
_TEXT = {
    "_stext": _BASE,
    "one": _BASE + 0x100,
    "two": _BASE + 0x180,
    "three": _BASE + 0x200,
    "_etext": _BASE + 0x4000,
}


def _view(name: str, data: bytes) -> TableView:
    """An image with one table."""
    view = TableView(_BASE, bytes(0x10000))
    view.symbols.update(_TEXT)
    end = name.replace("__start_", "__stop_", 1) if "__start_" in name else f"{name}_end"
    view.symbols[name] = _TABLE
    view.symbols[end] = _TABLE + len(data)
    view.put(_TABLE, data)
    return view


def _tables(view: TableView, damage: Damage | None = None) -> SiteTables:
    return SiteTables(view, sorted(view.symbols.values()), damage or Damage())


def _from(at: int, target: int) -> int:
    return target - (_TABLE + at)


def test_jump_labels_come_sorted_with_the_marks_of_their_keys() -> None:
    key = _BASE + 0x9000
    data = struct.pack("<iiq", _from(0, _BASE + 80), _from(4, _BASE + 96), _from(8, key + 3))
    data += struct.pack("<iiq", _from(16, _BASE + 40), _from(20, _BASE + 48), _from(24, key))
    assert _tables(_view("__start___jump_table", data)).jump_labels == (
        JumpLabel(_BASE + 40, _BASE + 48, key, likely=False, init=False),
        JumpLabel(_BASE + 80, _BASE + 96, key, likely=True, init=True),
    )


def test_static_calls_tell_a_jump_from_a_call() -> None:
    data = struct.pack("<ii", _from(0, _BASE + 80), _from(4, _BASE + 0x9001))
    assert _tables(_view("__start_static_call_sites", data)).static_calls == (
        StaticCall(_BASE + 80, _BASE + 0x9000, tail=True, init=False),
    )


def test_entries_are_told_apart_by_where_they_lead() -> None:
    data = b"".join(
        struct.pack("<iiI", _from(at, _BASE + at), _from(at + 4, _BASE + 64 + at), 7)
        for at in range(0, 120, 12)
    )
    found = _tables(_view("__start___ex_table", data)).exceptions
    assert found[1] == ExceptionEntry(_BASE + 12, _BASE + 76, 7)
    short = b"".join(
        struct.pack("<ii", _from(at, _BASE + at), _from(at + 4, _BASE + 64 + at))
        for at in range(0, 240, 8)
    )
    found = _tables(_view("__start___ex_table", short)).exceptions
    assert found[29] == ExceptionEntry(_BASE + 232, _BASE + 296, 0)


def test_the_images_own_types_say_how_long_an_entry_is() -> None:
    data = struct.pack("<iiIBB", _from(0, _BASE + 8), _from(4, _BASE + 64), 0x20075, 6, 5)
    view = _view("__alt_instructions", data)
    view.layouts["alt_instr"] = {"": (0, 14)}
    assert _tables(view).alternatives == (Alternative(_BASE + 8, _BASE + 64, 0x20075, 6, 5),)


def test_bugs_have_file_and_line() -> None:
    data = struct.pack("<iiHH", _from(0, _BASE + 8), _from(4, _BASE + 0x9000), 12, 1)
    assert _tables(_view("__start___bug_table", data)).bugs == (
        BugSite(_BASE + 8, _BASE + 0x9000, 12, 1),
    )


def test_forbidden_are_functions_of_the_table_then_whole_texts() -> None:
    data = struct.pack("<QQ", _BASE + 0x180, _BASE + 0x5000)
    view = _view("__start_kprobe_blacklist", data)
    view.symbols["__noinstr_text_start"] = _BASE + 0x100
    view.symbols["__noinstr_text_end"] = _BASE + 0x200
    tables = _tables(view)
    assert tables.blacklist_ranges == (
        (_BASE + 0x180, _BASE + 0x200),
        (_BASE + 0x100, _BASE + 0x180),
        (_BASE + 0x180, _BASE + 0x200),
    )
    assert tables.forbidden == ((_BASE + 0x100, _BASE + 0x200),)


def test_a_modules_tables_are_sections() -> None:
    view = TableView(_BASE, bytes(0x10000), is_module=True)
    view.put(_TABLE, struct.pack("<QQ", _BASE + 0x20, _BASE + 0x10))
    view.sections["__mcount_loc"] = _TABLE, 16
    assert _tables(view).ftrace == (_BASE + 0x10, _BASE + 0x20)


def test_a_cut_table_keeps_its_whole_entries_and_is_told() -> None:
    data = struct.pack("<iiq", _from(0, _BASE + 80), _from(4, _BASE + 96), 0) + b"rest"
    damage = Damage()
    assert len(_tables(_view("__start___jump_table", data), damage).jump_labels) == 1
    assert damage.found() == (
        "table jump_labels at 0xffffffff81008000: 20 bytes are no multiple of 16",
    )


def test_a_table_whose_end_lies_before_it_is_empty_and_told() -> None:
    view = _view("__start_mcount_loc", bytes(16))
    view.symbols["__stop_mcount_loc"] = _TABLE - 8
    damage = Damage()
    assert _tables(view, damage).ftrace == ()
    assert "-8 bytes" in damage.found()[0]


def test_a_table_behind_the_images_end_is_told() -> None:
    view = _view("__return_sites", bytes(16))
    view.symbols["__return_sites_end"] = _BASE + 0x20000
    damage = Damage()
    assert len(_tables(view, damage).return_sites) == 0x2000
    assert "32768 of its 98304 bytes" in damage.found()[0]
