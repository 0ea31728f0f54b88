"""Values that point into a file, named."""

from itertools import pairwise

from sysroot import CHECKOUT

from engine.image import ElfImage, SymbolTable
from engine.image.pointers import pointer_text

SAMPLES = CHECKOUT / "samples" / "bin" / "x86_64"


def table(name: str) -> SymbolTable:
    return SymbolTable(ElfImage.open(str(SAMPLES / name)))


def test_symbols_and_sections() -> None:
    symbols = table("words")
    main = symbols.find("main")
    assert main is not None
    assert pointer_text(symbols, "/x/words", main.address + 3) == "main+0x3"
    section = next(s for s in symbols.image.sections if s.name.startswith(".rodata"))
    at = next(
        at for at in range(section.addr, section.addr + section.size) if symbols.at(at) is None
    )
    wanted = f"words:{section.name}+{at - section.addr:#x}"
    assert pointer_text(symbols, "/x/words", at) == wanted
    assert pointer_text(symbols, "/x/words", 0x10) == "words+0x10", "in front of all sections"


def test_the_place_behind_a_call_that_does_not_return() -> None:
    symbols = table("structs")
    start = symbols.find("rt_start")
    assert start is not None
    end = start.address + start.size
    assert pointer_text(symbols, "structs", end) == f"rt_start+{start.size:#x}"
    functions = [s for s in symbols.functions() if s.size]
    one, other = next(
        (one, other)
        for one, other in pairwise(functions)
        if one.address + one.size == other.address
    )
    text = pointer_text(symbols, "structs", other.address)
    assert text == f"{other.demangled}+0x0"
    text = pointer_text(symbols, "structs", other.address, returns=True)
    assert text == f"{one.demangled}+{one.size:#x}"
