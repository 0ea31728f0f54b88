"""Reports of function graphs in place of the calls: `graph --report`, `--callers`, `--callees`."""

import io
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from engine.session.guest.past import replayed
from engine.session.guest.session import Attach, Session
from engine.session.headless.traces import opened_graph
from engine.session.protocol.config import GuestConfig, recording_config
from engine.session.protocol.requests import GraphRequest, TraceOptions
from engine.session.tracing.tracing import FormatMaker
from engine.trace.formats.report import Baseline, ReportFormat, ReportWords
from engine.trace.functiontimes import parsed_report, read_report


def report_maker(words: tuple[str, ...], baseline: Baseline | None = None) -> FormatMaker:
    """The format of the report that words stand for; see `GraphRequest.report`.

    Args:
        words: of the request.
        baseline: what it is compared with.
    """
    asked = ReportWords.of(words)
    if asked.callers or asked.callees:
        from engine.trace.formats.callgraph import CallGraphFormat  # few reports are one

        return CallGraphFormat
    return partial(ReportFormat, baseline=baseline)


def baseline_of(request: GraphRequest, path: str, attach: Attach) -> Baseline:
    """The report that another one is compared with, from a file.

    Args:
        request: of the other one; a recording is lived through with the same functions traced.
        path: of a report in JSON, or of a recording.
        attach: attaches a guest to the host while it runs.

    Raises:
        CommandError: the file is neither.
        KprobeTuiError: the recorded run cannot be lived through.
    """
    unit = ReportWords.of(request.report).unit
    config = recording_config(replace(request.config, guest=path, args=()))
    if config.recording is None:
        return Baseline(path, read_report(path, unit))
    stream = io.BytesIO()
    kept = request.options
    quiet = replace(
        request,
        config=config,
        report=("json", f"unit={unit}"),
        options=TraceOptions(mode=kept.mode, tasks=kept.tasks, calls=kept.calls),
        summary=False,
    )
    with opened_graph(quiet, stream, recorded_session, report_maker(quiet.report)) as traced:
        traced.run(attach)
    return Baseline(path, parsed_report(stream.getvalue(), path, unit))


def recorded_session(
    config: GuestConfig, output: Callable[[int, bytes], None] | None = None
) -> Session:
    """The guest of a recording.

    Args:
        config: of it.
        output: gets what it writes: a descriptor and bytes; None: that goes nowhere.
    """
    from engine.session.program.recorded import recorded_guest  # few guests are recorded

    session = replayed(recorded_guest(config))
    if output is not None:
        session.kernel.output = output
    return session
