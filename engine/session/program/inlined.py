"""Functions that exist only as copies inlined into others: where each copy begins."""

from collections.abc import Sequence

from engine.errors import ImageError
from engine.session.program.libraries import ProgramFile


def inlined_sites(name: str, files: Sequence[ProgramFile]) -> tuple[ProgramFile, list[int]] | None:
    """The first file that has inlined copies of a function, and their link addresses.

    Args:
        name: of the function, in the source or as the linker would call it.
        files: where to look, in this order. One whose debug information is damaged or missing
            in part knows of no copies: that there is no symbol remains the answer.
    """
    for file in files:
        try:
            found = file.variables.inlined(name)
        except ImageError:
            continue
        if found:
            return file, found
    return None
