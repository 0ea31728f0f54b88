"""Functions that exist only as copies inlined into others: where each copy begins."""

from collections.abc import Sequence

from engine.session.libraries import ProgramFile


def inlined_sites(name: str, files: Sequence[ProgramFile]) -> tuple[ProgramFile, list[int]] | None:
    """The first file that has inlined copies of a function, and their link addresses.

    Args:
        name: of the function, in the source or as the linker would call it.
        files: where to look, in this order.

    Raises:
        ImageError: a file's debug information is damaged, or a part of it is missing.
    """
    for file in files:
        found = file.variables.inlined(name)
        if found:
            return file, found
    return None
