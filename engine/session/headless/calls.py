"""Functions of a kernel image called, for the command line."""

from collections.abc import Callable

from engine.errors import CommandError
from engine.session.guest.session import Attach, Session
from engine.session.headless.endings import explain
from engine.session.kernel.call_results import CallResult as CallResult
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Reports
from engine.session.protocol.requests import CallRequest

Told = Callable[[CallResult], object]


def call_functions(
    request: CallRequest, attach: Attach, told: Told, said: Callable[[str], object]
) -> Reports:
    """Call functions one after the other, up to the first that does not return.

    Args:
        request: the image and the calls.
        attach: connects the run with the host.
        told: given each result as it comes.
        said: given each line that the kernel prints.

    Raises:
        ImageError: the image cannot be read.
        CommandError: it is no kernel image; a call is none, or does not fit its function.
    """
    config = GuestConfig(
        guest=request.image,
        args=request.calls,
        isolated=True,
        max_blocks=request.blocks_max,
        kernel=request.kernel,
        called=True,
    )
    return run_calls(Session(config), attach, told, said)


def run_calls(
    session: Session, attach: Attach, told: Told, said: Callable[[str], object]
) -> Reports:
    """Make the calls of a session, and close it; see `call_functions`."""
    try:
        supervisor, config = session.supervisor, session.config
        if supervisor is None:
            raise CommandError(f"{config.guest}: no kernel image")
        explain(session)
        session.probes()
        supervisor.returned, supervisor.print = told, said
        with attach(session):
            reports = session.run()
        end = session.end
        if end is not None and end.limit == "max-blocks" and supervisor.running is not None:
            supervisor.fail(f"it did not return within {config.max_blocks} blocks")
        return reports
    finally:
        session.close()
