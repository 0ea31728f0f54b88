"""Runs whose system calls are shown in strace's words."""

from typing import BinaryIO

from engine.session.guest.session import Attach, Session
from engine.session.headless.endings import explain
from engine.session.protocol.calltraces import CallTraceRequest
from engine.session.protocol.report import Reports
from engine.session.tracing.call_files import CallFiles
from engine.session.tracing.call_tracing import CallTracing


def trace_calls(request: CallTraceRequest, stream: BinaryIO, attach: Attach) -> Reports:
    """Run a guest to its end, with its calls written.

    Args:
        request: what is shown and how.
        stream: for lines where no file is named.
        attach: connects the run with the host's signals and limits.

    Raises:
        ImageError: the guest cannot be run.
        CommandError: a set of calls is wrong, or the file cannot be written.
    """
    session = Session(request.config)
    explain(session)
    try:
        files = CallFiles(session.outputs, request.output, stream, request.follows, request.column)
        tracing = CallTracing(session, request, files)

        def begin() -> None:
            session.outputs.create()
            files.begin()
            tracing.start()

        with attach(session):
            try:
                reports = session.run(begin)
            finally:
                tracing.finish()
                files.flush()
        remarks = files.remarks()
        reports = reports.behind(*remarks)
        return reports.not_whole() if remarks else reports
    finally:
        session.close()
