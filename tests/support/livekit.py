"""What a running kernel has recorded, kept in tests/data/live.

Linux 6.18 on x86-64 ran samples/bin/x86_64/structs with the definitions of `definitions.txt`; the
files are the first CPU's pages as trace_pipe_raw gave them, each up to its last used byte and
behind its length; the events' format files; the kernel's own text; and what it told perf.
`overwritten.bin` is the first page that was left of a buffer too small for fib(14). The files of
`kprobes` are Debian's Linux 6.1's, of lines that `KernelProbes` has made of its image.
"""

import itertools
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sessionkit import SAMPLES, loaded
from sysroot import CHECKOUT

from engine.session.live.instance import KINDS, PREFIX
from engine.session.live.kernel_probes import KernelProbes
from engine.session.live.tracefs import Tracefs
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from engine.trace.kernel_rows import KernelEvent
from engine.trace.ring_pages import PageLayout

DATA: Final = CHECKOUT / "tests" / "data" / "live"
PROGRAM: Final = SAMPLES / "x86_64" / "structs"
LAYOUT: Final = PageLayout.of((DATA / "header_page.txt").read_text())
LINES: Final = tuple((DATA / "definitions.txt").read_text().splitlines())
FORMATS: Final = (DATA / "formats.txt").read_text()
_NAME: Final = re.compile(r"^name: (\w+)$", re.MULTILINE)


def left(tracefs: Tracefs) -> list[str]:
    """All that is of ours in the running kernel."""
    lines = [line for kind in KINDS for line in tracefs.listed(kind) if PREFIX in line]
    names = os.listdir(tracefs.root / "instances")
    return lines + [name for name in names if name.startswith(PREFIX)]


def formats(text: str) -> dict[str, KernelEvent]:
    """The events of some format files, one behind the other, by name."""
    starts = [found.start() for found in _NAME.finditer(text)] + [len(text)]
    parts = [text[start:end] for start, end in itertools.pairwise(starts)]
    return {part.split()[1]: KernelEvent.of(part) for part in parts}


def pages(data: bytes) -> Iterator[bytes]:
    """The pages of a file of them."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


@contextmanager
def defined(
    *lines: str, program: Path = PROGRAM, options: TraceOptions | None = None
) -> Iterator[Tracing]:
    """A trace with definitions, of a program that never runs."""
    with loaded(program) as guest:
        tracing = guest.tracing(options)
        try:
            for line in lines:
                tracing.definitions.define(line)
            yield tracing
        finally:
            tracing.discard()


@contextmanager
def placed(*lines: str, program: Path = PROGRAM) -> Iterator[KernelProbes]:
    """The same as probes for the running kernel."""
    with defined(*lines, program=program) as tracing:
        yield KernelProbes(tracing)
