"""The script of bpftrace of a front end, attached afresh in each run."""

from typing import TYPE_CHECKING

from engine.errors import CommandError, KprobeTuiError
from engine.session.guest.session import Session
from engine.session.protocol.scripts import ScriptRequest
from engine.session.tracing.tracing import Tracing

if TYPE_CHECKING:
    from engine.session.control.shown_script import ShownScript


class ScriptSwitch:
    """The script of a front end, run after run.

    Attributes:
        request: the script; None for none.
    """

    def __init__(self) -> None:
        """There is none."""
        self.request: ScriptRequest | None = None
        self._session: Session | None = None
        self._main: Tracing | None = None
        self._shown: ShownScript | None = None

    def again(self) -> "ScriptSwitch":
        """One for another run, which is to have the same script."""
        twin = ScriptSwitch()
        twin.request = self.request
        return twin

    def follow(self, other: "ScriptSwitch") -> None:
        """Have the script that another one has.

        Raises:
            KprobeTuiError: it cannot be attached.
        """
        if self.request != other.request:
            self.unload()
            if other.request is not None:
                self.load(other.request)

    def begin(self, tracing: Tracing, session: Session) -> str:
        """Attach the script to a run that begins; what is wrong with it now, "" for nothing."""
        self._session, self._main, self._shown = session, tracing, None
        if self.request is not None:
            try:
                self.load(self.request)
            except KprobeTuiError as error:
                return str(error)
        return ""

    def load(self, request: ScriptRequest) -> str:
        """Attach a script in place of the last one; in words what was done.

        Raises:
            KprobeTuiError: it is wrong; the last one stays.
        """
        from engine.session.control.shown_script import ShownScript  # few runs have a script

        assert self._session is not None, "a run has begun"
        assert self._main is not None, "likewise"
        if self._session.core is not None:
            raise CommandError("a core file does not run: no script can be attached")
        shown = ShownScript(self._session, self._main, request)
        self.unload()
        self._shown, self.request = shown, request
        return f"{request.name} is attached"

    def unload(self) -> str:
        """Take the script out; in words what was done."""
        shown, request = self._shown, self.request
        self._shown = self.request = None
        if shown is None or request is None:
            return "no script is attached"
        shown.end()
        return f"{request.name} is out"

    def over(self) -> None:
        """The guest has ended: so does the script."""
        if self._shown is not None:
            self._shown.end()

    def texts(self, tick: int | None) -> tuple[str, ...]:
        """The texts that show the script; none without one."""
        return () if self._shown is None else tuple(self._shown.texts(tick))
