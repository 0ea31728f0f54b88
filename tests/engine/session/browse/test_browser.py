"""Looking around in a program: code rows anywhere, names, verdicts, without a guest."""

import random
import re
import subprocess
from itertools import islice, pairwise
from pathlib import Path

import pytest
from archkit import COMPILED, FIRST_COMPILED
from compiled import tool
from msgspec.structs import replace
from sessionkit import SAMPLES
from sysroot import SysrootUnavailable, sysroot

from engine.errors import ProbeError
from engine.session import GuestConfig
from engine.session.browse.browser import Browser
from engine.session.program.listing import Listing
from engine.session.protocol.views import GuestView, MappingView, ModuleView

GUESTS = [(arch, name) for arch in COMPILED for name in ("lines", "sort", "structs")]
GUESTS.append(("ia64", "recursion"))


def browser(path: str, root: str | None = None, bias: int = 0) -> Browser:
    """One whose program is in memory, moved by a bias."""
    found = Browser(GuestConfig(path, root=root))
    image = found.verdicts.places._program.main.image
    main = found.verdicts.places._program.main.path
    module = ModuleView(main, image.low + bias, image.high + bias, bias, main=True)
    found.update(GuestView(modules=(module,)))
    return found


def sample(arch: str, name: str = "lines", bias: int = 0) -> Browser:
    return browser(str(SAMPLES / arch / name), bias=bias)


def rows_from(found: Browser, start: int) -> list[tuple[int, str]]:
    return [
        (row.address, f"{row.mnemonic} {row.operands}".strip()) for row in found.forward(start)
    ]


def first(found: Browser) -> int:
    span = found.span(found.address_of("main"))
    assert span is not None
    return span[0]


@pytest.mark.parametrize(("arch", "name"), GUESTS)
def test_rows_are_those_of_the_listing(arch: str, name: str) -> None:
    found = sample(arch, name)
    file = found.verdicts.places._program.main
    listing = Listing(found.arch, file)
    wanted = [
        (line.insn.address, line.insn.text)
        for area in listing.sections()
        for line in listing.lines(area)
    ]
    assert rows_from(found, first(found)) == wanted


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_program_can_be_entered_anywhere_and_left_backwards(arch: str) -> None:
    found = sample(arch)
    rows = list(found.forward(first(found)))
    for one, other in pairwise(rows):
        assert one.address < other.address
    back = list(found.backward(rows[-1].address))
    assert [row.address for row in back] == [row.address for row in reversed(rows[:-1])]
    for row in random.Random(5).sample(rows, 100):
        for address in (row.address, row.end - 1):
            entered = found.row_at(address)
            assert entered is not None
            assert entered.address == row.address


@pytest.mark.slow
def test_a_stripped_library_is_entered_anywhere() -> None:
    """Code without names: blocks of a few kilobytes, in step with each other."""
    try:
        root = sysroot("amd64")
    except SysrootUnavailable as error:
        pytest.skip(str(error))
    found = browser("/usr/bin/python3.11", str(root))
    span = found.span(found.address_of("PyEval_EvalCode"))
    assert span is not None
    rows = list(islice(found.forward(span[0]), 30_000))
    middle = rows[len(rows) // 2]
    back = list(islice(found.backward(middle.address), 5000))
    start = len(rows) // 2
    assert [row.address for row in back] == [
        row.address for row in reversed(rows[start - 5000 : start])
    ]


def test_operands_name_guest_addresses() -> None:
    plain, moved = sample("x86_64", "recursion"), sample("x86_64", "recursion", bias=0x1000000)
    rows = list(islice(plain.forward(plain.address_of("main")), 40))
    others = list(islice(moved.forward(moved.address_of("main")), 40))
    branches = [
        (one, two) for one, two in zip(rows, others, strict=True) if one.target is not None
    ]
    assert len(branches) > 5
    for one, two in branches:
        assert two.address == one.address + 0x1000000
        assert two.target == one.target + 0x1000000  # type: ignore[operator]
        assert f"{two.target:#x}" in two.operands
        assert one.note == two.note


def test_source_lines_begin_where_the_line_changes() -> None:
    found = sample("x86_64")
    lines = found.verdicts.places._program.main.lines
    before = None
    changes = 0
    for row in islice(found.forward(found.address_of("main")), 60):
        changes += row.line is not None
        here = lines.line_at(row.address)
        assert row.line == (here if here != before or row.label else None)
        before = here
    assert changes > 10


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_names_are_found_by_their_parts_shortest_first(arch: str) -> None:
    found = sample(arch)
    names = [match.name for match in found.complete("line")]
    assert names[0] == "line" or "line" in names[0]
    assert all("line" in name.lower() for name in names)
    assert found.complete("read_line")[0].name == "read_line"
    assert found.complete("READ_LINE") == []
    assert len(found.complete("", 5)) == 5


def test_symbols_that_are_spelled_alike_are_offered_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = f"static int twin(void) {{ return 1; }}\nint {name}(void) {{ return twin(); }}\n"
        (tmp_path / f"{name}.c").write_text(text)
    (tmp_path / "main.c").write_text("int a(void), b(void); int main(void) { return a() + b(); }")
    words = [tool("gcc"), "-O0", "-o", "twins", "a.c", "b.c", "main.c"]
    subprocess.run(words, cwd=tmp_path, check=True)
    found = browser(str(tmp_path / "twins"))
    assert [match.name for match in found.complete("twin")] == ["twin"]


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_place_is_written_so_that_it_means_itself(arch: str) -> None:
    found = sample(arch)
    for row in random.Random(9).sample(list(found.forward(first(found))), 150):
        text = found.place_text(row.address)
        assert found.address_of(text) == row.address


def test_verdicts_carry_the_column_of_the_mistake() -> None:
    found = sample("x86_64")
    good = found.check("p:a/b main x=%di:u32")
    assert good.ok
    assert good.places == ("main+0x0",)
    bad = found.check("p:a/b main x=%zz")
    assert not bad.ok
    assert bad.column == len("p:a/b main x=")
    nowhere = found.check("p nosuch")
    assert not nowhere.ok
    assert "nosuch" in nowhere.text
    middle = found.check("p main+1")
    assert not middle.ok
    assert found.check("").ok
    assert found.check("-:a/b").ok


def test_the_default_definition_records_arguments_of_an_entry_only() -> None:
    found = sample("x86_64", "recursion")
    assert found.default_definition("fibonacci").startswith("p fibonacci ")
    assert found.check(found.default_definition("fibonacci")).ok
    assert found.default_definition("fibonacci+4") == "p fibonacci+4"
    assert found.default_definition("nosuch") == "p nosuch"


def test_an_assembler_does_not_say_what_the_arguments_are() -> None:
    found = sample("ia64", "recursion")
    definition = found.default_definition("factorial")
    assert definition.startswith("p factorial arg1=$arg1 arg2=$arg2 ")
    assert found.check(definition).ok


def test_memory_outside_of_files_is_asked_for_and_decoded() -> None:
    found = sample("x86_64")
    asked: list[tuple[int, int]] = []
    found.pages.want = lambda address, size: asked.append((address, size))
    base, place = 0x7000_0000_0000, 0x7000_0000_0010
    assert found.row_at(place) is None
    assert not asked, "nothing is mapped there"
    view = replace(GuestView(), mappings=(MappingView(base, base + 8192, "r-xp", "[jit]"),))
    found.update(view)
    assert found.is_code(place)
    assert found.address_of(f"{place:#x}") == place
    assert found.row_at(place) is None
    assert asked == [(base, 4096)]
    page = bytes.fromhex("9090" * 8 + "55" + "4889e5" + "c3").ljust(4096, b"\xcc")
    found.pages.remember(base, 4096, ((base, page),))
    row = found.row_at(place)
    assert row is not None
    assert (row.mnemonic, row.operands) == ("push", "rbp")
    assert [r.mnemonic for r in islice(found.backward(place), 3)] == ["nop"] * 3
    found.update(replace(view, changed=1))
    assert found.row_at(place) == row
    assert asked == [(base, 4096)] * 2, "what was read before is stale"
    found.update(replace(view, mappings=()))
    assert found.row_at(place) is None
    with pytest.raises(ProbeError, match="nothing is mapped at 0x7000"):
        found.address_of(f"{place:#x}")


def test_verdicts_speak_of_guest_addresses() -> None:
    bias = 0x1000000
    plain, moved = sample("x86_64", "recursion"), sample("x86_64", "recursion", bias=bias)
    for name in ("main", "ackermann", "factorial"):
        start = plain.address_of(name)
        assert moved.address_of(name) == start + bias
        for row in islice(plain.forward(start), 30):
            for inside in range(min(row.size, 2)):
                one = plain.judge(row.address + inside)
                other = moved.judge(row.address + inside + bias)
                assert one is not None
                assert other is not None
                assert other.judgement.ok is one.judgement.ok
                assert [check.ok for check in other.jump] == [check.ok for check in one.jump]
                if "'" not in one.judgement.reason:  # instructions of the file are quoted
                    assert moved_text(one.judgement.reason, bias) == other.judgement.reason
                assert one.place.link == other.place.link
                nearest = one.nearest_jump
                assert other.nearest_jump == (None if nearest is None else nearest + bias)
    call = next(row for row in moved.forward(moved.address_of("main")) if row.mnemonic == "call")
    placed = moved.judge(call.address)
    assert placed is not None
    assert f"{call.end:#x}" in placed.judgement.reason


def moved_text(text: str, bias: int) -> str:
    """Text with the addresses of code in it moved."""
    return re.sub("0x40[0-9a-f]{4}", lambda match: f"{int(match[0], 16) + bias:#x}", text)


def test_an_instruction_begins_where_the_user_goes() -> None:
    found = sample("x86_64")
    start = next(row for row in found.forward(found.address_of("main")) if row.size > 3)
    assert found.row_at(start.address + 1) == start
    found.go_to(start.address + 1)
    row = found.row_at(start.address + 1)
    assert row is not None
    assert row.address == start.address + 1


def test_places_that_are_not_there_say_so() -> None:
    found = sample("x86_64")
    with pytest.raises(ProbeError, match="nosuch"):
        found.address_of("nosuch")
    assert found.judge(0x10) is None
    assert found.locate(0x10) == ""
    assert found.symbol_text(0x10, ()) == "0x10"
    main = found.address_of("main")
    assert found.locate(main) == "main+0x0"
    (module,) = [found.module_at(main)]
    assert module is not None
    assert found.symbol_text(main + 4, [module]).startswith("main+0x4/0x")
    assert found.judge(main, probed=True) is not None


def test_verdicts_are_on_the_code_in_memory() -> None:
    found = sample("x86_64", "recursion", bias=0x1000000)
    start = found.address_of("fibonacci")  # push r12: two bytes
    page = start & -4096
    written = found.verdicts.places._program.main.image.read_vaddr(page - 0x1000000, 4096)
    found.pages.remember(page, 4096, ((page, written),))
    inside = found.judge(start + 1)
    assert inside is not None
    assert not inside.judgement.ok
    at = start - page
    patched = written[:at] + b"\x90\x90" + written[at + 2 :]
    found.pages.remember(page, 4096, ((page, patched),))
    inside = found.judge(start + 1)
    assert inside is not None
    assert inside.judgement.ok
    patched = written[:at] + b"\x0f\x05" + written[at + 2 :]  # syscall
    found.pages.remember(page, 4096, ((page, patched),))
    first, second = found.judge(start), found.judge(start + 1)
    assert first is not None
    assert second is not None
    assert "'syscall' (0f 05)" in second.judgement.reason
    assert f"{start:#x}" in second.judgement.reason
