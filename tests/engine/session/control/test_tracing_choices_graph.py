"""Function tracing switched by commands, as a front end does it."""

import pytest
from controlkit import sample

from engine.session import GuestConfig
from engine.session.control.control import Control
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.trace.graph import ENTRY, EXIT
from engine.trace.rows import EventInfo, decode


class Heard:
    """What a control has told."""

    def __init__(self) -> None:
        self.infos: dict[int, EventInfo] = {}
        self.names: list[str] = []
        self.texts: list[str] = []

    def __call__(self, event: ev.SessionEvent) -> None:
        match event:
            case ev.Declared(infos):
                self.infos.update((info.id, info) for info in infos)
            case ev.Rows(data, _):
                position = 0
                while position < len(data):
                    self.names.append(decode(self.infos, data, position).name)
                    position += 8 * int.from_bytes(data[position + 2 : position + 4], "little")
            case ev.Restarted():
                self.infos.clear()
                self.names.clear()
            case ev.Done(_, text) | ev.Failed(_, text):
                self.texts.append(text)


def test_on_off_and_again_after_a_restart(capfd: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    control = Control(GuestConfig(sample("x86_64", "recursion")), heard)
    control.loop.execute(cmd.TraceFunctions(("fibonacci", "print"), depth=3))
    assert heard.texts[-1] == "2 functions traced, 3 deep"
    control.loop.execute(cmd.Continue())
    assert heard.names.count(ENTRY) == heard.names.count(EXIT) > 10
    first = list(heard.names)
    control.loop.execute(cmd.Restart())
    control.loop.execute(cmd.Continue())
    assert heard.names == first
    control.loop.execute(cmd.Restart())
    control.loop.execute(cmd.TraceFunctions(("print",), on=False))
    assert heard.texts[-1] == "1 functions are no longer traced"
    control.loop.execute(cmd.TraceFunctions((), on=False))
    control.loop.execute(cmd.Continue())
    assert heard.names == []
    control.loop.execute(cmd.TraceFunctions(("nobody*",)))
    assert heard.texts[-1] == "-f nobody*: no function matches"
    assert "fibonacci" in capfd.readouterr().out
