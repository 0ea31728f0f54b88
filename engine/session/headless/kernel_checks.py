"""Verdicts on the places of a kernel image, without a run; large ones on all processors."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.msgpack import decode, encode

from engine.errors import CommandError, KprobeTuiError
from engine.image.kernel.recognition import is_kernel_image
from engine.image.kernel.scratch import write_all
from engine.probes.kernel_places import Outcome as PlaceOutcome
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import KernelRow as KernelRow
from engine.session.kernel.verdict_rows import (
    entry_rows,
    function_starts,
    matching_starts,
    place_counts,
    place_rows,
)
from engine.session.protocol.report import Report
from engine.session.protocol.requests import CheckRequest, Rules

_ALONE: Final = 4000
"""Functions for which other processors are not worth their start."""
_CHUNK: Final = 200


class PlaceRows:
    """Rows of many functions, judged when they are asked for."""

    def __init__(
        self,
        starts: Sequence[int],
        rows_of: Callable[[Sequence[int]], Iterator[KernelRow]],
        counts_of: "Callable[[Sequence[int]], Counter[PlaceOutcome]] | None" = None,
    ) -> None:
        """Nothing is judged yet.

        Args:
            starts: addresses of the functions.
            rows_of: gives the rows of some of them.
            counts_of: counts those rows, where that is quicker than to make them.
        """
        self._starts = starts
        self._rows_of = rows_of
        self._counts_of = counts_of or (lambda part: counts_of_rows(rows_of(part)))

    def __iter__(self) -> Iterator[KernelRow]:
        """The rows, in the order of their functions."""
        return self._rows_of(self._starts)

    def worked(self, work: Callable[[Iterator[KernelRow]], bytes]) -> Iterator[bytes]:
        """The results of some work on the rows of some functions after the other, in order.

        As many processes work as there are processors; what was read of the image so far is
        shared with them by fork.

        Args:
            work: makes bytes of rows.

        Raises:
            KprobeTuiError: one of the processes died.
        """
        return self._divided(lambda part: work(self._rows_of(part)))

    def counts(self) -> "Counter[PlaceOutcome]":
        """The number of rows by technique and rule, counted as `worked` works.

        Raises:
            KprobeTuiError: one of the processes died.
        """
        found: Counter[PlaceOutcome] = Counter()
        for packed in self._divided(lambda part: encode(list(self._counts_of(part).items()))):
            found.update(dict(decode(packed, type=list[tuple[PlaceOutcome, int]])))
        return found

    def _divided(self, work: Callable[[Sequence[int]], bytes]) -> Iterator[bytes]:
        """The results of some work on some functions after the other."""
        workers = min(os.cpu_count() or 1, 8)
        parts = [self._starts[at : at + _CHUNK] for at in range(0, len(self._starts), _CHUNK)]
        if len(self._starts) < _ALONE or workers < 2:
            return map(work, parts)
        for _ in islice(self._rows_of(parts[0]), 1):
            pass  # all that they need is read before they part
        return _forked(parts, work, workers)


def counts_of_rows(rows: Iterable[KernelRow]) -> "Counter[PlaceOutcome]":
    """The number of rows by technique and rule."""
    return Counter((row.technique, row.rule) for row in rows)


class KernelChecked(Struct, frozen=True):
    """The verdicts on the places of a kernel image.

    Attributes:
        asked: on definitions, in their order.
        rest: on all other places, judged as they are asked for.
        damage: remarks about what was damaged in its files up to now, once.
        cache: remarks about what is kept of images, for debugging.
    """

    asked: list[KernelRow]
    rest: PlaceRows
    damage: Callable[[], tuple[Report, ...]]
    cache: Callable[[], tuple[Report, ...]]


def check_kernel(request: CheckRequest) -> KernelChecked:
    """Judge the places of a kernel image that a request names.

    Raises:
        ImageError: it cannot be read.
        CommandError: a choice is none.
        ProbeError: later: no function matches a pattern.
    """
    choice = request.config.kernel
    if request.rules is Rules.UPROBE:
        raise CommandError("--as uprobe: no uprobe is in a kernel; its own rules decide")
    opened = OpenedKernel.open(request.config.guest, choice)
    asked: list[KernelRow] = []
    if request.definitions:
        # It reads all that kprobe_events does.
        from engine.session.kernel.definition_answers import defined_rows
        from engine.trace.kprobe_events import DYNAMIC_EVENTS, KPROBE_EVENTS

        file = DYNAMIC_EVENTS if choice.dynamic_events else KPROBE_EVENTS
        rows = defined_rows(opened, request.definitions, sequence=choice.sequence, file=file)
        asked = list(rows)
    rest = PlaceRows((), lambda _: iter(()))
    if request.everything:
        starts = function_starts(opened)
        rest = PlaceRows(
            starts,
            lambda part: place_rows(opened, part, together=False),
            lambda part: place_counts(opened, part),
        )
    elif choice.together:
        starts = matching_starts(opened, request.functions or ("*",))
        rest = PlaceRows(starts, lambda part: place_rows(opened, part, together=True))
    elif request.functions:
        starts = matching_starts(opened, request.functions)
        rest = PlaceRows(starts, lambda part: entry_rows(opened, part))
    elif not request.definitions:
        starts = function_starts(opened)
        rest = PlaceRows(starts, lambda part: entry_rows(opened, part))

    def damage() -> tuple[Report, ...]:
        reports = []
        if missing := opened.missing():
            reports.append(
                Report(
                    (
                        f"{opened.image.elf.name}: no tables of {', '.join(missing)}: was it built"
                        " without CONFIG_KPROBES? What they would refuse is accepted here",
                    )
                )
            )
        if lines := opened.image.elf.damage.untold():
            reports.append(Report(("damaged, and left out:", *lines)))
        return tuple(reports)

    def cache() -> tuple[Report, ...]:
        return (Report(("cache of kernels:", *lines)),) if (lines := opened.remarks) else ()

    return KernelChecked(asked, rest, damage, cache)


def list_as(request: CheckRequest, form: str) -> Iterator[str]:
    """Lines in which a real machine takes the definitions of a request.

    Args:
        request: definitions and image.
        form: one of `FORMS`.

    Raises:
        ImageError: the image cannot be read.
        CommandError: a choice is none, or the guest is no kernel image.
    """
    from engine.session.kernel.exported import exported

    config = request.config
    if not is_kernel_image(config.guest):
        raise CommandError(f"{config.guest}: no kernel image; --list-as is for one")
    opened = OpenedKernel.open(config.guest, config.kernel)
    return exported(opened, request.definitions, form)


def _forked(
    parts: Sequence[Sequence[int]], work: Callable[[Sequence[int]], bytes], workers: int
) -> Iterator[bytes]:
    """The results for all parts, each made by one of several processes."""
    pipes: list[int] = []
    children: list[int] = []
    try:
        for number in range(workers):
            reader, writer = os.pipe()
            child = os.fork()
            if not child:
                for pipe in (reader, *pipes):
                    os.close(pipe)
                _serve(writer, parts[number::workers], work)
            os.close(writer)
            pipes.append(reader)
            children.append(child)
        for number, _ in enumerate(parts):
            reader = pipes[number % workers]
            yield _exactly(reader, int.from_bytes(_exactly(reader, 8), "little"))
    finally:
        for reader in pipes:
            os.close(reader)  # a child that still writes ends by SIGPIPE
        for child in children:
            os.waitpid(child, 0)


def _serve(
    writer: int, parts: Sequence[Sequence[int]], work: Callable[[Sequence[int]], bytes]
) -> None:
    """The life of a child: a result for each of its parts; never returns."""
    status = 1
    try:
        for part in parts:
            made = work(part)
            write_all(writer, len(made).to_bytes(8, "little") + made)
        status = 0
    finally:
        os._exit(status)


def _exactly(reader: int, size: int) -> bytes:
    """So many bytes of what a child writes.

    Raises:
        KprobeTuiError: it died.
    """
    pieces = []
    while size:
        piece = os.read(reader, min(size, 1 << 20))
        if not piece:
            raise KprobeTuiError("a process that judged a part of the places died")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
