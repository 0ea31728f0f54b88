"""The file of a kernel's symbols and frames says what the image's own tables say."""

from random import Random

import pytest
from kernelimages import AMD64_612, kernel_image

from engine.arch import by_name
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.session.machine.symbolfile import symbol_file
from engine.unwind.dwarf import DwarfTables
from engine.unwind.expression import signed
from engine.unwind.orc import OrcTables
from engine.unwind.rows import AtExpression, AtRegister, Rule, Undefined

X86 = by_name("x86_64")


def _written(rule: Rule) -> Rule:
    """A rule as DWARF can say it: what is saved at a register is an expression there."""
    if isinstance(rule, AtRegister):
        assert rule.register == "rbp"
        return AtExpression(b"v" + signed(rule.offset))
    return rule


@pytest.mark.slow
def test_frames_and_symbols_are_those_of_the_image() -> None:
    """Read with the reader of DWARF, at 3,000 places; 300 symbols."""
    name = AMD64_612
    kernel = kernel_image(name)
    made = ElfImage.from_bytes(symbol_file(kernel, X86), name)
    table = OrcTables(X86, lambda address: Module(name, kernel.elf, 0))
    ours = Module(name, made, 0)
    written = DwarfTables(X86, lambda address: ours)
    rows = [each for each in table.rows(kernel.elf) if each[1] is not None]
    numbers = {each.name: each.dwarf for each in X86.registers if each.dwarf is not None}
    assert len(rows) > 300_000
    for address, row in Random(1).sample(rows, 3_000):
        assert row is not None
        read = written.row(address, exact=True)
        assert read is not None, hex(address)
        if isinstance(row.rules["rip"], Undefined):
            assert isinstance(read.rules["rip"], Undefined)
            continue
        assert (read.cfa, read.signal_frame) == (row.cfa, row.signal_frame), hex(address)
        rules = {each: _written(rule) for each, rule in row.rules.items() if each in numbers}
        kept = {each: rule for each, rule in read.rules.items() if each in rules}
        assert kept == rules, hex(address)
    for number in Random(2).sample(range(len(kernel.names)), 300):
        wanted = kernel.names.name(number)
        assert kernel.names.addresses[number] in {
            each.address for each in SymbolTable(made).find_all(wanted)
        }
