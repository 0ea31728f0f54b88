"""Processor time of a guest's run in this process, plain or traced, loading not included."""

import time
from collections.abc import Callable

from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing


def cpu_of_run(
    config: GuestConfig,
    prepare: Callable[[Tracing], object] | None = None,
    output: str = "/dev/null",
) -> float:
    """CPU seconds of one run whose output is dropped.

    Args:
        config: the guest.
        prepare: gives the trace what it is to record; None for a run without, in which the clock
            goes as well.
        output: file of the trace.
    """
    sink = SinkStream(lambda data: None)
    session = Session(config, (FeedStream(b"", ended=True), sink, sink))
    tracing = None
    if prepare is not None:
        tracing = Tracing(session, TraceOptions(output=output))
        prepare(tracing)
        tracing.start()
    else:
        session.cpu.count_blocks(True)
    began = time.process_time()
    session.run()
    if tracing is not None:
        tracing.finish()
    spent = time.process_time() - began
    session.close()
    return spent
