"""A script of bpftrace on a booted kernel under control, with its maps and its output to look at.

It is there from power-on: one that is loaded later has the boot run to here again.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from engine.machine.machine import BareMachine
from engine.session.booted.files import BootFiles
from engine.session.booted.script.attached_boot import AttachedBootScript, CheckedBoot
from engine.session.guest.outputs import OutputFiles
from engine.session.headless.booting import BEGAN
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.scripts import BootScriptRequest
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.script_source import script_source

_SHOWN: Final = 200
"""Lines of a script's output that are shown, the last ones."""
_MOST_LINE: Final = 4096


class BootScript:
    """A script for one boot."""

    def __init__(
        self, opened: OpenedKernel, request: BootScriptRequest, files: BootFiles | None
    ) -> None:
        """Check it.

        Args:
            opened: the kernel.
            request: the script.
            files: of the system, as far as they are known.

        Raises:
            WrongScriptError: it is wrong, or asks for what a booted kernel does not have.
        """
        text, tree = script_source(request.name, request.text, request.parameters)
        self._checked = CheckedBoot(opened, request, text, tree, files)
        self._request = request
        self._lines: deque[str] = deque(maxlen=_SHOWN)
        self._rest = b""
        self._script: AttachedBootScript | None = None
        self._has_ended = False

    def words(self, given: str) -> str:
        """The words that its kernel is told; see `CheckedBoot.words`."""
        return self._checked.words(given)

    def attach(self, machine: BareMachine) -> None:
        """Place its probes in a machine that has not run, and begin.

        Raises:
            WrongScriptError: something that it names is not there.
        """
        sink = ScriptSink(OutputFiles(), None, self._take, self._take)
        began = int(BEGAN.timestamp()) * 10**9
        self._script = AttachedBootScript(self._checked, machine, sink, self._request, began)
        self._script.run.ends_machine = False
        self._script.begin()

    def _take(self, data: bytes) -> None:
        """Keep the last lines of what it prints."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line[:_MOST_LINE].decode(errors="backslashreplace") for line in lines)
        self._rest = self._rest[-_MOST_LINE:]

    def end(self) -> None:
        """The boot has ended, or the script is to go: its own end runs, once."""
        if self._script is not None and not self._has_ended:
            self._has_ended = True
            self._script.finish()
            self._script.run.over = True

    def texts(self) -> Iterator[str]:
        """The texts that show its maps, and what it has printed, up to the newest moment."""
        if self._script is None:
            return
        if self._script.run.over:
            self.end()
        state = "has ended" if self._has_ended else "runs"
        maps = self._script.maps().decode(errors="backslashreplace").rstrip("\n")
        yield f"# bpftrace: {self._request.name} {state}\n{maps}"
        if self._lines:
            yield "\n".join(["# output:", *self._lines])
