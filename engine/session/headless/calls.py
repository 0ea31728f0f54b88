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
Refused = Callable[[str, str], object]
"""Told of a call that cannot be made, as written, and why."""


def call_functions(
    request: CallRequest,
    attach: Attach,
    told: Told,
    said: Callable[[str], object],
    refused: Refused,
) -> Reports:
    """Call functions one after the other, up to the first that does not return.

    Args:
        request: the image and the calls.
        attach: connects the run with the host.
        told: given each result as it comes.
        said: given each line that the kernel prints.
        refused: told of each call of an unknown function, or with arguments that do not fit it;
            the others are made.

    Raises:
        ImageError: the image cannot be read.
        CommandError: it is no kernel image; a call is none.
    """
    config = GuestConfig(
        guest=request.image,
        isolated=True,
        max_blocks=request.blocks_max,
        kernel=request.kernel,
        called=True,
    )
    session = Session(config)
    if session.supervisor is not None:
        session.supervisor.refused = refused
        try:
            session.supervisor.add(request.calls)
        except CommandError:
            session.close()
            raise
    return run_calls(session, attach, told, said)


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
