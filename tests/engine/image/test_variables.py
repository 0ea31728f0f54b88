"""Variables and types from DWARF, against gdb, and with damaged debug information."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from debugged import SOURCE, ask_gdb, debugged
from workcount import calls

from engine.errors import ImageError
from engine.image import ElfImage, Lines, SymbolTable
from engine.image.datatypes import DataType, TypeKind
from engine.image.expressions import Where
from engine.image.reader import DamagedError
from engine.image.variables import Scope, Variable, Variables

BUILDS = (
    ("-O0",),
    ("-O2",),
    ("-O2", "-gdwarf-2", "-gstrict-dwarf"),
    ("-O2", "-gdwarf-3", "-gstrict-dwarf"),
    ("-O2", "-gdwarf-4"),
    ("-O2", "-gdwarf-4", "-fdebug-types-section"),
    ("-O2", "-gdwarf-5", "-fdebug-types-section"),
    ("-O2", "-gdwarf-4", "-gsplit-dwarf"),
    ("-O2", "-gdwarf-5", "-gsplit-dwarf"),
    ("-O2", "-gz=zlib"),
)
_NAMES = {5: "di", 4: "si", 1: "dx", 7: "sp"}


def open_at(program: Path, name: str) -> tuple[Variables, int]:
    image = ElfImage.open(program)
    symbol = SymbolTable(image).find(name)
    assert symbol is not None
    return Variables(image, []), symbol.address


def scope_of(program: Path, name: str) -> Scope:
    variables, address = open_at(program, name)
    scope = variables.scope(address)
    assert scope is not None
    return scope


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_a_function_has_its_parameters_in_order(flags: tuple[str, ...]) -> None:
    scope = scope_of(debugged("x86_64", *flags), "work")
    assert scope.entry
    assert scope.function == "work"
    assert [v.name for v in scope.parameters] == ["n", "k", "msg", "c", "d", "z"]
    texts = [v.type_text for v in scope.parameters]
    assert texts == ["node_t *", "int", "const char *", "unsigned char", "double", "long"]
    assert scope.returns.text == "int"


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_structures_are_laid_out_as_gdb_says(flags: tuple[str, ...]) -> None:
    program = debugged("x86_64", *flags)
    wanted = ask_gdb(program, {"types": ["struct node", "struct inner"]})
    node = scope_of(program, "work").parameters[0].type.target
    found = [
        [m.name, m.bit_offset if m.bit_size else 8 * m.offset, m.bit_size, m.type.size]
        for m in node.members
    ]
    assert found == [[name or None, *rest] for name, *rest in wanted["struct node"]]
    inner = node.member("in")
    assert inner is not None
    assert [[m.name, 8 * m.offset, 0, m.type.size] for m in inner.type.members] == wanted[
        "struct inner"
    ]
    assert node.size == 88


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-gdwarf-4")], ids=" ".join)
def test_inlined_copies_are_where_gdb_breaks(flags: tuple[str, ...]) -> None:
    program = debugged("x86_64", *flags)
    variables, _ = open_at(program, "work")
    assert variables.inlined("twice") == sorted(ask_gdb(program, {"break": "twice"}))
    assert variables.inlined("work") == []
    assert variables.inlined("no such name") == []


@pytest.mark.parametrize("flags", ["-O0", "-O2"])
def test_a_line_of_an_inlined_function_is_one_place_a_copy(flags: str) -> None:
    program = debugged("x86_64", flags)
    image = ElfImage.open(program)
    variables, lines = Variables(image, []), Lines(image, [])
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if text.strip() in ("int w = v * 2;", "counter += w;", "local += twice(k) + c + (int)d;"):
            wanted = ask_gdb(program, {"break": f"guest.c:{number}"})
            assert lines.addresses_of("guest.c", number, variables.copy_at) == sorted(wanted)


def test_optimised_code_tells_registers() -> None:
    variables, address = open_at(debugged("x86_64", "-O2"), "work")
    rows = {
        name: where for name, _, where in variables.at(address, lambda n: _NAMES.get(n, str(n)))
    }
    assert rows["n"] == "%di"
    assert rows["k"] == "%si"
    assert rows["msg"] == "%dx"


def test_members_of_anonymous_unions_belong_to_the_structure() -> None:
    node = scope_of(debugged("x86_64", "-O2"), "work").parameters[0].type.target
    assert node.member_names()[-3:] == ("big", "u_i", "u_f")
    found = node.member("u_f")
    assert found is not None
    assert (found.offset, found.type.kind) == (80, TypeKind.FLOAT)
    assert node.member("nothing") is None
    color = node.member("color")
    assert color is not None
    assert color.type.enumerators == (("RED", 0), ("GREEN", 5))


def test_variables_of_the_file_are_found() -> None:
    variables, address = open_at(debugged("x86_64", "-O2"), "work")
    scope = variables.scope(address)
    assert scope is not None
    symbols = SymbolTable(variables.image)
    for name in ("counter", "hidden"):
        found = variables.global_variable(scope, name)
        symbol = symbols.find(name)
        assert found is not None
        assert symbol is not None
        assert found.location.where is Where.MEMORY
        assert found.location.term.is_link
        assert found.location.term.offset == symbol.address
    assert variables.global_variable(scope, "nobody") is None


def test_no_function_no_scope() -> None:
    variables, _ = open_at(debugged("x86_64", "-O2"), "work")
    assert variables.scope(1) is None
    assert variables.at(1) == []


def test_a_missing_dwo_file_is_named(tmp_path: Path) -> None:
    program = debugged("x86_64", "-O2", "-gdwarf-5", "-gsplit-dwarf")
    image = ElfImage.open(shutil.copy(program, tmp_path / "alone"))
    symbol = SymbolTable(image).find("work")
    assert symbol is not None
    assert Variables(ElfImage.open(program), []).scope(symbol.address) is not None
    moved = program.parent / "guest.dwo"
    hidden = moved.rename(program.parent / "hidden")
    try:
        with pytest.raises(ImageError, match=r"guest\.dwo"):
            Variables(image, []).scope(symbol.address)
        os.mkfifo(moved)  # opening it would wait for a writer
        with pytest.raises(ImageError, match=r"guest\.dwo"):
            Variables(image, []).scope(symbol.address)
    finally:
        hidden.rename(moved)


def _walk(kind: DataType, depth: int = 0) -> None:
    assert kind.text
    _ = kind.size, kind.kind, kind.is_signed, kind.enumerators, kind.count
    kind.member("no such member")
    if depth < 4:
        for member in kind.members:
            _walk(member.type, depth + 1)
        _walk(kind.target, depth + 1)


def _look_at(variable: Variable) -> None:
    _walk(variable.type)


def _quietly(ask: Callable[[], object]) -> None:
    with suppress(ImageError, DamagedError):
        ask()


@pytest.mark.parametrize("flags", [BUILDS[0], BUILDS[1], BUILDS[4], BUILDS[6]], ids=" ".join)
@pytest.mark.slow
def test_damage_is_an_image_error(flags: tuple[str, ...]) -> None:
    """Flipped bytes anywhere in the debug sections: an answer or an ImageError, and soon."""
    program = debugged("x86_64", *flags)
    data = program.read_bytes()
    image = ElfImage.from_bytes(data, "whole")
    sections = [s for s in image.sections if s.name.startswith(".debug_") and s.size]
    symbol = SymbolTable(image).find("work")
    assert symbol is not None
    most = calls(partial(_look_everywhere, Variables(image, []), symbol.address), 1_000_000)
    chance = random.Random(str(flags))
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 5, 30))):
            section = chance.choice(sections)
            at = section.offset + chance.randrange(section.size)
            damaged[at] = chance.choice((0, 0xFF, chance.randrange(256), damaged[at] ^ 0x80))
        variables = Variables(ElfImage.from_bytes(bytes(damaged), "damaged"), [])
        calls(partial(_look_everywhere, variables, symbol.address), 10 * most)


def _look_everywhere(variables: Variables, start: int) -> None:
    for address in (start, start + 0x20):
        try:
            scope = variables.scope(address)
            for variable in scope.visible if scope else ():
                _quietly(partial(getattr, variable, "location"))
                _quietly(partial(_look_at, variable))
            if scope is not None:
                variables.global_variable(scope, "counter")
        except ImageError:
            continue
    _quietly(partial(variables.inlined, "twice"))
