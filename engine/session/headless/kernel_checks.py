"""Verdicts on the places of a kernel image, without a run; large ones on all processors."""

import os
from collections.abc import Callable, Iterator, Sequence
from io import RawIOBase
from itertools import islice
from typing import Final

from msgspec import Struct, msgpack

from engine.errors import CommandError, KprobeTuiError
from engine.image.kernel.recognition import is_kernel_image
from engine.session.kernel.exported import exported
from engine.session.kernel.lines import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.rows import KernelRow as KernelRow
from engine.session.kernel.rows import (
    entry_rows,
    function_starts,
    matching_starts,
    place_rows,
)
from engine.session.protocol.report import Report
from engine.session.protocol.requests import CheckRequest

_ALONE: Final = 4000
"""Functions for which other processors are not worth their start."""
_CHUNK: Final = 400
_BATCH: Final = 2000


class KernelChecked(Struct, frozen=True):
    """The verdicts on the places of a kernel image.

    Attributes:
        asked: on definitions, in their order.
        rest: on all other places, judged as they are asked for.
        damage: remarks about what was damaged in its files up to now, once.
    """

    asked: list[KernelRow]
    rest: Iterator[KernelRow]
    damage: Callable[[], tuple[Report, ...]]


def check_kernel(request: CheckRequest) -> KernelChecked:
    """Judge the places of a kernel image that a request names.

    Raises:
        ImageError: it cannot be read.
        CommandError: a choice is none.
        ProbeError: later: no function matches a pattern.
    """
    choice = request.config.kernel
    opened = OpenedKernel.open(request.config.guest, choice)
    asked = list(defined_rows(opened, request.definitions, sequence=choice.sequence))
    rest: Iterator[KernelRow] = iter(())
    if request.everything:
        starts = function_starts(opened)
        rest = _divided(starts, lambda part: place_rows(opened, part, together=False))
    elif choice.together:
        starts = matching_starts(opened, request.functions or ("*",))
        rest = _divided(starts, lambda part: place_rows(opened, part, together=True))
    elif request.functions:
        starts = matching_starts(opened, request.functions)
        rest = _divided(starts, lambda part: entry_rows(opened, part))
    elif not request.definitions:
        starts = function_starts(opened)
        rest = _divided(starts, lambda part: entry_rows(opened, part))

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

    return KernelChecked(asked, rest, damage)


def list_as(request: CheckRequest, form: str) -> Iterator[str]:
    """Lines in which a real machine takes the definitions of a request.

    Args:
        request: definitions and image.
        form: one of `FORMS`.

    Raises:
        ImageError: the image cannot be read.
        CommandError: a choice is none, or the guest is no kernel image.
    """
    config = request.config
    if not is_kernel_image(config.guest):
        raise CommandError(f"{config.guest}: no kernel image; --list-as is for one")
    opened = OpenedKernel.open(config.guest, config.kernel)
    return exported(opened, request.definitions, form)


def _divided(
    starts: Sequence[int], rows_of: Callable[[Sequence[int]], Iterator[KernelRow]]
) -> Iterator[KernelRow]:
    """Rows in the order of their functions, made by as many processes as there are processors.

    What was read of the image so far is shared with them by fork.
    """
    workers = min(os.cpu_count() or 1, 8)
    if len(starts) < _ALONE or workers < 2:
        return rows_of(starts)
    return _forked(starts, rows_of, workers)


def _forked(
    starts: Sequence[int],
    rows_of: Callable[[Sequence[int]], Iterator[KernelRow]],
    workers: int,
) -> Iterator[KernelRow]:
    list(rows_of(starts[:1]))  # all that they need is read before they part
    parts = [starts[at : at + _CHUNK] for at in range(0, len(starts), _CHUNK)]
    pipes: list[int] = []
    children: list[int] = []
    try:
        for number in range(workers):
            reader, writer = os.pipe()
            child = os.fork()
            if not child:
                os.close(reader)
                _serve(writer, parts[number::workers], rows_of)
            os.close(writer)
            pipes.append(reader)
            children.append(child)
        decoder = msgpack.Decoder(list[KernelRow])
        for number, _ in enumerate(parts):
            while message := _message(pipes[number % workers]):
                yield from decoder.decode(message)
    finally:
        for reader in pipes:
            os.close(reader)  # a child that still writes ends by SIGPIPE
        for child in children:
            os.waitpid(child, 0)


def _serve(
    writer: int,
    parts: Sequence[Sequence[int]],
    rows_of: Callable[[Sequence[int]], Iterator[KernelRow]],
) -> None:
    """The life of a child: the rows of its parts, an empty message behind each; never returns."""
    status = 1
    try:
        with open(writer, "wb", buffering=0) as pipe:
            for part in parts:
                rows = rows_of(part)
                while batch := list(islice(rows, _BATCH)):
                    _send(pipe, msgpack.encode(batch))
                _send(pipe, b"")
        status = 0
    finally:
        os._exit(status)


def _send(pipe: RawIOBase, data: bytes) -> None:
    view = memoryview(len(data).to_bytes(8, "little") + data)
    while view:
        view = view[pipe.write(view) or 0 :]


def _message(reader: int) -> bytes:
    """The next message of a child, empty behind the last row of a part.

    Raises:
        KprobeTuiError: the child died.
    """

    def exactly(size: int) -> bytes:
        pieces = []
        while size:
            piece = os.read(reader, min(size, 1 << 20))
            if not piece:
                raise KprobeTuiError("a process that judged a part of the places died")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    return exactly(int.from_bytes(exactly(8), "little"))
