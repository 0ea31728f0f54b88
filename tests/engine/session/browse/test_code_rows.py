"""Rows of code as it stands in the guest's memory."""

from collections.abc import Mapping
from itertools import islice

import pytest

from engine.arch import by_name
from engine.session.browse.code_rows import Code, CodeRow, MappingSource, Reading
from engine.session.browse.memory_pages import PAGE, MemoryPages
from engine.session.protocol.views import MappingView

BASE = 0x10000
PLAIN = bytes.fromhex("554889e5" + "85f6" + "7410" + "e800000000" + "c3")
"""push rbp; mov rbp, rsp; test esi, esi; je; call; ret."""
STARTS = (0, 1, 4, 6, 8, 13)


class Written:
    """A stretch of a file."""

    in_step = True

    def __init__(self, data: bytes, anchors: tuple[int, ...] = ()) -> None:
        self.data = data
        self.areas = [(BASE, BASE + len(data))]
        self.anchors = list(anchors)
        self.was: Mapping[int, str] = {}

    def read(self, start: int, size: int) -> bytes:
        return self.data[start - BASE :][:size]

    def before(self, start: int, end: int) -> Mapping[int, str]:
        return self.was

    def label(self, address: int) -> str:
        return "start" if address == BASE else ""

    def line(self, address: int) -> tuple[str, int] | None:
        return "file.c", 1 + (address - BASE) // 6

    def note(self, target: int) -> str:
        return ""


def reading(
    memory: bytes | None = None,
    *,
    arch: str = "x86_64",
    marks: tuple[int, ...] = (),
    planted: Mapping[int, bytes] | None = None,
    executed: bool = False,
) -> Reading:
    pages = MemoryPages()
    if memory is not None:
        pages.remember(BASE, PAGE, ((BASE, memory.ljust(PAGE, b"\0")),))
    found = Reading(by_name(arch), pages, tuple(BASE + mark for mark in marks))
    found.planted = {BASE + at: data for at, data in (planted or {}).items()}
    found.executed = executed
    return found


def rows(code: Code) -> list[CodeRow]:
    found = list(code.forward(BASE))
    for row in found:
        assert code.row_at(row.address) == row
    back = list(code.backward(found[-1].address))
    assert [row.address for row in back] == [row.address for row in reversed(found[:-1])]
    return found


def texts(code: Code) -> list[str]:
    return [f"{row.address - BASE}: {row.mnemonic} {row.operands}".rstrip() for row in rows(code)]


def test_memory_that_is_not_known_is_the_file() -> None:
    known, unknown = Code(Written(PLAIN), reading(PLAIN)), Code(Written(PLAIN), reading())
    assert rows(known) == rows(unknown)
    assert [row.address - BASE for row in rows(known)] == list(STARTS)
    assert not any(row.was for row in rows(known))


def test_patched_code_is_shown_with_what_was_there() -> None:
    code = Code(Written(PLAIN), reading(PLAIN.replace(b"\x85\xf6", b"\x90\x90")))
    found = {row.address - BASE: row for row in rows(code)}
    assert [found[at].mnemonic for at in (4, 5, 6)] == ["nop", "nop", "je"]
    assert found[4].was == "85 f6  test esi, esi"
    assert found[5].was.startswith("f6")
    assert [at for at, row in found.items() if row.was] == [4, 5]
    assert found[0].label == "start"


def test_an_instruction_begins_at_pc_wherever_it_is() -> None:
    code = Code(Written(PLAIN), reading(PLAIN, marks=(9,)))
    found = {row.address - BASE: row for row in rows(code)}
    assert (found[8].mnemonic, found[8].size) == (".byte", 1)
    assert found[9].mnemonic == "add"
    assert found[13].mnemonic == "ret"
    assert sum(row.size for row in found.values()) == len(PLAIN)


def test_code_changes_under_a_reader() -> None:
    now = reading(PLAIN)
    code = Code(Written(PLAIN), now)
    assert "4: test esi, esi" in texts(code)
    patched = PLAIN.replace(b"\x85\xf6", b"\x31\xf6").ljust(PAGE, b"\0")
    now.pages.remember(BASE, PAGE, ((BASE, patched),))
    assert "4: xor esi, esi" in texts(code)
    now.pages.forget()
    assert "4: test esi, esi" in texts(code)


@pytest.mark.parametrize("executed", [False, True])
def test_a_breakpoint_as_written_and_as_executed(executed: bool) -> None:
    code = Code(Written(PLAIN), reading(PLAIN, planted={4: b"\xcc"}, executed=executed))
    found = {row.address - BASE: row for row in rows(code)}
    assert list(found) == list(STARTS)
    if executed:
        assert (found[4].mnemonic, found[4].raw.hex(), found[4].size) == ("int3", "ccf6", 2)
        assert found[4].was == "85 f6  test esi, esi"
    else:
        assert found[4].mnemonic == "test"


def test_a_jump_stands_over_several_instructions() -> None:
    jump = bytes.fromhex("e900100000")
    code = Code(Written(PLAIN), reading(PLAIN, planted={1: jump}, executed=True))
    found = {row.address - BASE: row for row in rows(code)}
    assert list(found) == [0, 1, 6, 8, 13]
    assert (found[1].mnemonic, found[1].size) == ("jmp", 5)
    assert found[1].raw == jump


def test_probes_in_slots_of_one_bundle() -> None:
    nops = bytes.fromhex("00000000010000000002000000000400")
    planted = bytearray(nops)
    planted[0] |= 0x20  # another immediate in slot 0
    other = bytearray(nops)
    other[8] |= 0x80  # and in slot 1
    now = reading(nops, arch="ia64", planted={0: bytes(planted), 1: bytes(other)}, executed=True)
    written = rows(Code(Written(nops), reading(nops, arch="ia64")))
    found = rows(Code(Written(nops), now))
    assert [row.address for row in found] == [row.address for row in written]
    assert [one.was != "" for one in found] == [True, True, False]
    assert [one.mnemonic for one in found] != [one.mnemonic for one in written]


def mapped(memory: bytes | None, marks: tuple[int, ...] = ()) -> tuple[Code, Reading]:
    now = reading(memory, marks=marks)
    mapping = MappingView(BASE, BASE + 4 * PAGE, "rwxp", "")
    return Code(MappingSource(mapping, now.pages, lambda address: ""), now), now


def test_code_in_memory_only_is_asked_for() -> None:
    code, now = mapped(None)
    asked: list[tuple[int, int]] = []
    now.pages.want = lambda start, size: asked.append((start, size))
    assert code.row_at(BASE + 4) is None
    assert list(code.forward(BASE + 4)) == []
    assert list(code.backward(BASE + 4)) == []
    assert asked == [(BASE, PAGE)]
    now.pages.remember(BASE, PAGE, ((BASE, PLAIN.ljust(PAGE, b"\xcc")),))
    assert [row.mnemonic for row in islice(code.forward(BASE + 4), 3)] == ["test", "je", "call"]
    assert [row.mnemonic for row in code.backward(BASE + 4)] == ["mov", "push"]
    assert not any(row.was for row in code.forward(BASE))


def test_an_instruction_across_pages() -> None:
    code, now = mapped(None)
    data = bytearray(b"\x90" * 2 * PAGE)
    data[PAGE - 2 : PAGE + 3] = bytes.fromhex("b801020304")
    now.pages.remember(BASE, 2 * PAGE, ((BASE, bytes(data)),))
    row = code.row_at(BASE + PAGE)
    assert row is not None
    assert (row.address - BASE, row.operands) == (PAGE - 2, "eax, 0x4030201")
    following = code.row_at(row.end)
    assert following is not None
    assert (following.address, following.mnemonic) == (row.end, "nop")
    assert [one.address for one in islice(code.forward(BASE + PAGE - 3), 3)] == [
        BASE + PAGE - 3,
        BASE + PAGE - 2,
        BASE + PAGE + 3,
    ]
    assert [one.address for one in islice(code.backward(BASE + PAGE + 4), 3)] == [
        BASE + PAGE + 3,
        BASE + PAGE - 2,
        BASE + PAGE - 3,
    ]


def test_a_search_asks_for_nothing() -> None:
    now = reading()
    asked: list[int] = []
    now.pages.want = lambda start, size: asked.append(start)
    code = Code(Written(PLAIN), now)
    assert len(list(code.forward(BASE, asks=False))) == len(STARTS)
    assert len(list(code.backward(BASE + 13, asks=False))) == len(STARTS) - 1
    assert asked == []
    assert len(list(code.forward(BASE))) == len(STARTS)
    assert asked == [BASE]
