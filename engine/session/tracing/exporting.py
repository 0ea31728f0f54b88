"""The definitions of a trace as text for other tools."""

from collections.abc import Iterator

from engine.session.program.verdicts import Placed
from engine.session.tracing.tracing import Tracing
from engine.trace.definition import Definition
from engine.trace.export import FORMS, ExportPlace, render

KERNEL_FORM = "kernel"
"""The lines as the kernel lists them."""

LIST_FORMS = (KERNEL_FORM, *FORMS)
"""What a list of definitions can be written as."""


def listed(tracing: Tracing, form: str) -> Iterator[str]:
    """The lines of all definitions.

    Args:
        tracing: whose definitions.
        form: one of `LIST_FORMS`.
    """
    if form == KERNEL_FORM:
        yield from tracing.listing()
        return
    arch = tracing.session.arch
    for done in tracing.defined:
        places = [_place(tracing, done.definition, done.placed, one) for one in done.placed]
        yield from render(form, [place for place in places if place is not None], arch)


def _place(
    tracing: Tracing, definition: Definition, placed: tuple[Placed, ...], one: Placed
) -> ExportPlace | None:
    place = one.place
    if place.file_offset is None:
        return None
    here = tracing.session.probes().placing.at_one(definition, placed, one)
    return ExportPlace(
        path=place.path,
        link=place.link,
        file_offset=place.file_offset,
        symbol=place.symbol or "",
        offset=place.offset,
        fixed=place.image.kind == "exec",
        definition=here,
    )
