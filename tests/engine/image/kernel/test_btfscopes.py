"""BTF in DWARF's place: the same program described by either says the same."""

import pytest
from btfkit import BtfMaker
from debugged import FUNCTIONS, debugged
from orckit import BASE, orc_image, orc_types

from engine.image.datatypes import DataType, TypeKind
from engine.image.elf import ElfImage
from engine.image.expressions import Where
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btfscopes import BtfScopes
from engine.image.names import GlobalNames
from engine.image.symbols import SymbolTable
from engine.image.variables import Variables

_BOTH = ("-O2", "-gbtf")


def _address(image: ElfImage, name: str) -> int:
    symbol = image.once(SymbolTable).find(name)
    assert symbol is not None
    return symbol.address


def _same(one: DataType, other: DataType, depth: int = 0) -> int:
    """Compare two types and what they are made of; the number of those compared."""
    assert (one.kind, one.size, one.text) == (other.kind, other.size, other.text)
    assert (one.is_signed, one.count, one.keyword) == (other.is_signed, other.count, other.keyword)
    assert tuple(one.enumerators) == tuple(other.enumerators)
    assert one.declared("x") == other.declared("x")
    assert one.parameters[1] == other.parameters[1] or one.kind is not TypeKind.FUNCTION
    found = 1
    if depth > 5:
        return found
    parts, others = one.members, other.members
    assert len(parts) == len(others)
    for part, its in zip(parts, others, strict=True):
        assert (part.name, part.offset) == (its.name, its.offset) or part.bit_size
        assert (part.bit_offset, part.bit_size) == (its.bit_offset, its.bit_size)
        found += _same(part.type, its.type, depth + 1)
    if one.kind is TypeKind.ARRAY:
        found += _same(one.element, other.element, depth + 1)
    if one.kind is TypeKind.POINTER:
        found += _same(one.target, other.target, depth + 1)
    return found


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_parameters_at_the_entry(arch: str, function: str) -> None:
    image = ElfImage.open(debugged(arch, *_BOTH))
    variables = Variables(image, [])
    told = variables.scope(_address(image, function))
    assert told is not None
    assert told.unit is not None, "DWARF comes first"
    assert variables.carried is not None
    found = variables.carried.scope(_address(image, function))
    assert found is not None
    assert (found.function, found.entry, found.unit) == (function, True, None)
    assert _same(told.returns, found.returns)
    assert [v.name for v in told.parameters] == [v.name for v in found.parameters]
    for one, other in zip(told.parameters, found.parameters, strict=True):
        assert other.is_parameter
        traits = other.is_inlined, other.is_declaration, other.is_fixed, other.depth
        assert not any(traits)
        assert (one.type_text, one.linker_name) == (other.type_text, other.linker_name)
        assert _same(one.type, other.type)
        if one.location.where is Where.REGISTER and one.location.register < 17:
            assert other.location == one.location


def test_places_inside_of_a_function_are_not_told() -> None:
    image = ElfImage.open(debugged("x86_64", *_BOTH))
    scopes = BtfScopes.of(image)
    assert scopes is not None
    scope = scopes.scope(_address(image, "work") + 5)
    assert scope is not None
    assert not scope.entry
    assert {v.location.where for v in scope.parameters} == {Where.NOWHERE}
    assert "entry only" in scope.parameters[0].location.why
    padded = scopes.scope(_address(image, "work") + 4, 4)
    assert padded is not None
    assert padded.entry


def test_code_that_is_not_described_has_no_scope() -> None:
    image = ElfImage.open(debugged("x86_64", *_BOTH))
    assert Variables(image, []).scope(_address(image, "_start")) is None


def test_names_at_the_top() -> None:
    image = ElfImage.open(debugged("x86_64", *_BOTH))
    info, scopes = Variables(image, []).info, BtfScopes.of(image)
    assert info is not None
    assert scopes is not None
    told, found = GlobalNames(info), scopes.names
    compared = 0
    for name, word in (
        ("node", "struct"),
        ("inner", "struct"),
        ("node_t", ""),
        ("int", ""),
        ("unsigned char", ""),
        ("nothing", "struct"),
        ("node", ""),
    ):
        one, other = told.type(name, word), found.type(name, word)
        assert (one is None) == (other is None), name
        if one is not None and other is not None:
            compared += _same(one, other)
    assert compared > 60
    for function in FUNCTIONS:
        one_, other_ = told.function(function), found.function(function)
        assert one_ is not None
        assert other_ is not None
        assert _same(one_[0], other_[0])
        assert other_[1] == _address(image, function)
    value, its = told.enumerator("GREEN"), found.enumerator("GREEN")
    assert value is not None
    assert its is not None
    assert value[1] == its[1] == 5
    assert found.enumerator("BLUE") is None
    names = {entry.name for entry in found.listed("function")}
    assert {*FUNCTIONS, "main"} <= names
    both = [{entry.name for entry in one.listed("enumerator")} for one in (told, found)]
    assert "GREEN" in both[0] & both[1]
    types = {entry.name: entry for entry in found.listed("type")}
    assert types["node_t"].alias is not None
    assert types["node_t"].alias.text == "struct node"


def test_damaged_btf_is_noted_and_left() -> None:
    image = orc_image([], btf=b"\xff" * 30)
    variables = Variables(image, [])
    assert variables.scope(BASE) is None
    assert not variables.are_known
    assert any(".BTF" in text for text in image.damage.found())


def test_a_file_of_another_machine_has_types_but_no_places() -> None:
    image = orc_image([], btf=orc_types(split=True))
    scopes = BtfScopes.of(image)
    assert scopes is not None
    found = scopes.names.type("orc_entry", "struct")
    assert found is not None
    assert found.size == 6


def test_a_module_made_apart_brings_what_it_needs_of_its_kernel() -> None:
    kernel = BtfMaker()
    number = kernel.integer("int", 4, 1)
    kernel.record("file", 232)
    module = BtfMaker(base=kernel)
    pointer = module.pointer(2)
    module.function("look", module.prototype(number, ("file", pointer)))
    image = orc_image([], btf=module.data(), base_types=kernel.data())
    types = btf_of(image)
    assert types is not None
    look = types.function("look")
    assert look is not None
    assert look.type.declared("look") == "int look(struct file *)"
    assert look.parameters[0].type.target.size == 232
