"""The files of a program in place of its memory."""

import pytest
from cguest import CHECKOUT

from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.session.inspect.stored_program import StoredProgram

BIAS = 0x1000_0000


@pytest.fixture
def image() -> ElfImage:
    return ElfImage.open(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")


def test_sections_are_read_where_the_program_stands(image: ElfImage) -> None:
    stored = StoredProgram([Module("/structs", image, BIAS)])
    text = next(one for one in image.sections if one.name == ".text")
    data = image.section_data(text)
    assert stored.memory.read(text.addr + BIAS, text.size) == data
    assert stored.code_at(text.addr + text.size + BIAS - 2, 2) == data[-2:]
    module = stored.modules.at(text.addr + BIAS)
    assert module is not None
    assert module.bias == BIAS


def test_what_no_file_holds_is_zeros_or_not_there(image: ElfImage) -> None:
    memory = StoredProgram([Module("/structs", image, 0)]).memory
    bare = next(one for one in image.sections if one.name == ".bss")
    assert memory.read(bare.addr, bare.size) == bytes(bare.size)
    with pytest.raises(GuestFaultError) as found:
        memory.read(0x10, 4)
    assert found.value.address == 0x10
