"""The end of a headless run, told as far as it can be."""

from engine.session.guest.session import Session
from engine.session.protocol.report import Report


def explain(session: Session) -> None:
    """Have a session's report say who waits for whom, should all threads stand still.

    What that takes is loaded only then.
    """

    def standstill() -> Report:
        from engine.session.inspect.standstill import standstill as described

        return described(session)

    session.standstill = standstill
