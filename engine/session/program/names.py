"""Names that somebody may have meant."""

import difflib
from collections.abc import Iterable
from typing import Final

from engine.session.program.libraries import ProgramFile

_NEAR_MAX: Final = 50_000


def near_names(name: str, files: Iterable[ProgramFile]) -> list[str]:
    """Up to three functions of files with names like this one.

    Files are left out from the first on with which there would be too many names.
    """
    names: set[str] = set()
    for file in files:
        if len(names) + len(file.symbols) > _NEAR_MAX:
            break
        names.update(symbol.name for symbol in file.symbols.functions())
        names.update(symbol.demangled.partition("(")[0] for symbol in file.symbols.functions())
    bare = name.split("::")[-1]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.75)
    parts = sorted(n for n in names if len(bare) > 2 and bare in n and n not in close)
    return (close + sorted(parts, key=len))[:3]
