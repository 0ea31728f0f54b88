"""Definitions that an image's kernel would take, in the words of a real machine's tools."""

from collections.abc import Iterator, Sequence

from engine.session.kernel.definition_answers import ImageKernel
from engine.session.kernel.opened import OpenedKernel
from engine.trace.kernel_export import render_kernel
from engine.trace.kprobe_events import DYNAMIC_EVENTS, KprobeEvents
from engine.trace.probed_kernel import ProbedKernel


def exported(opened: OpenedKernel, lines: Sequence[str], form: str) -> Iterator[str]:
    """The lines for definitions that build on each other, with comments for those refused.

    Args:
        opened: the image.
        lines: of `kprobe_events` or `dynamic_events`.
        form: one of `FORMS` of `engine.trace.export`.
    """
    yield from exported_from(ImageKernel(opened), lines, form)


def exported_from(kernel: ProbedKernel, lines: Sequence[str], form: str) -> Iterator[str]:
    """The same for a kernel that is asked."""
    events = KprobeEvents(kernel)
    for line in lines:
        outcome = events.take(line, DYNAMIC_EVENTS)
        if outcome.error is not None:
            said = outcome.text or str(outcome.error)
            yield f"# {line.strip()}: refused: {said}"
        elif outcome.definition is not None:
            yield from render_kernel(form, events.defined[-1].probe, kernel.arch)
