"""A booted kernel in the hands of a front end, for tests: commands go in, events come out."""

from pathlib import Path
from typing import Any

from bootkit import initrd
from kernelimages import image_path

from engine.arch.plan import Mode
from engine.session.bootcontrol.control import MachineControl
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.views import GuestView
from engine.trace.rows import HEAD, Event, EventInfo, decode

INIT = """#!/bin/sh
mount -t proc proc /proc
cat /proc/version
for n in 1 2 3 4 5; do cat /proc/uptime; done
(sleep 9; exit 3) &
tasks=/proc/[0-9]*/stat
for each in $tasks; do cut -d' ' -f1-4 $each; done
echo end of tasks
poweroff -f
"""


class TypedLater:
    """Gives commands while the machine moves, as a test says."""

    def __init__(self) -> None:
        """Nothing is given."""
        self.give: list[cmd.Command] = []

    def waiting(self) -> cmd.Command | None:
        """Give the next one."""
        return self.give.pop(0) if self.give else None


class BootUser:
    """Drives a boot as the interface does.

    Attributes:
        control: carries commands out.
        source: gives commands while the machine moves.
        told: all events, in order.
        infos: events that rows are of.
    """

    def __init__(
        self,
        kernel: str,
        folder: Path,
        *,
        init: str = INIT,
        history: bool = True,
        mode: Mode = Mode.STRICT,
        append: str = "quiet",
        modules: str = "",
    ) -> None:
        """Lay a kernel out."""
        path = str(image_path(kernel))
        request = BootRequest(
            path, initrd=str(initrd(folder, init)), append=append, modules=modules
        )
        self._begin(request, mode, history=history)

    @classmethod
    def again(cls, recording: Path) -> "BootUser":
        """Drive a recorded boot."""
        user = cls.__new__(cls)
        user._begin(BootRequest(str(recording)), Mode.STRICT, history=True)
        return user

    def _begin(self, request: BootRequest, mode: Mode, *, history: bool) -> None:
        config = GuestConfig(request.kernel, called=True, history=history, boot=request)
        self.told: list[ev.SessionEvent] = []
        self.infos: dict[int, EventInfo] = {}
        self.source = TypedLater()
        self.control = MachineControl(config, self._tell, self.source, mode=mode)

    def _tell(self, event: ev.SessionEvent) -> None:
        self.told.append(event)
        if isinstance(event, ev.Declared):
            self.infos.update((info.id, info) for info in event.infos)
        elif isinstance(event, ev.Restarted):
            self.infos.clear()

    def do(self, command: cmd.Command) -> str:
        """Carry a command out; what it came to, or why it failed."""
        before = len(self.told)
        self.control.execute(command)
        for event in reversed(self.told[before:]):
            if isinstance(event, ev.Done | ev.Failed) and event.command == command:
                return event.text
        raise AssertionError(f"nothing came of {command}")

    def word(self, line: str) -> str:
        """Carry a line of words out."""
        return self.do(cmd.TypedLine(line))

    @property
    def view(self) -> GuestView:
        """The last view."""
        found: list[ev.Viewed] = self.of(ev.Viewed)
        return found[-1].view

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.told if isinstance(event, kind)]

    @property
    def output(self) -> str:
        """The text that the console has written."""
        return b"".join(event.data for event in self.of(ev.Output)).decode().replace("\r\n", "\n")

    def rows(self) -> list[Event]:
        """The rows so far."""
        found = []
        for event in self.of(ev.Rows):
            at = 0
            while at < len(event.data):
                found.append(decode(self.infos, event.data, at))
                at += 8 * HEAD.unpack_from(event.data, at)[1]
        return found

    def values(self, name: str) -> list[tuple[Any, ...]]:
        """Task and values of the rows of an event so far."""
        return [(row.thread_id, *row.values) for row in self.rows() if row.name == name]

    def close(self) -> None:
        """End the boot."""
        self.control.close()
