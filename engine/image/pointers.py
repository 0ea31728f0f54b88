"""Names for values that point into a file: symbols, sections, places that calls return to."""

from engine.image.symbols import SymbolTable


def pointer_text(symbols: SymbolTable, path: str, link: int, *, returns: bool = False) -> str:
    """A link address in words: SYMBOL+OFF, FILE:SECTION+OFF, or FILE+OFF.

    The address behind a call that does not return may be in no function, or in another one: it
    is named after the function whose end it is, as unwinders look it up (DWARF 5, 6.4.4).

    Args:
        symbols: of the file.
        path: of the file.
        link: the address.
        returns: a call stands in front of it.
    """
    symbol = symbols.at(link)
    if symbol is None or (returns and symbol.address == link):
        before = symbols.at(link - 1)
        if before is not None and before.kind in ("func", "ifunc"):
            symbol = before
    if symbol is not None:
        return f"{symbol.demangled}+{link - symbol.address:#x}"
    file = path.rsplit("/", 1)[-1]
    section = next((s for s in symbols.image.sections if s.name and s.holds(link)), None)
    if section is not None:
        return f"{file}:{section.name}+{link - section.addr:#x}"
    return f"{file}+{link:#x}"
