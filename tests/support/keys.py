"""Keys for an interface whose engine keeps the processor busy.

Textual's pilot takes an app for idle when the process uses no processor time, which never comes
while a guest runs. Here a key is done when the messages it leads to are.
"""

import asyncio
import unicodedata
from collections.abc import Iterable
from time import monotonic
from typing import Any

import pytest
import textual.pilot
from textual.app import App
from textual.events import Key
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key

from engine.bootworker import BootWorker
from engine.worker import Inbox, Worker
from tui.key_queue import KeyQueue

_PATIENCE = 240.0


async def _hand_over(*_: float) -> None:
    """Let the other tasks of the loop have a turn."""
    await asyncio.sleep(0.01)


setattr(textual.pilot, "wait_for_idle", _hand_over)  # noqa: B010 - not exported


def _event(key: str) -> Key:
    if len(key) == 1 and not key.isalnum():
        key = _character_to_key(key)
    name = _get_unicode_name_from_key(REPLACED_KEYS.get(key, key))
    try:
        character: str | None = unicodedata.lookup(name)
    except KeyError:
        character = key if len(key) == 1 else None
    return Key(key, character)


async def press(app: App[Any], keys: Iterable[str]) -> None:
    """Press keys as fast as they can be pressed, and wait until all are dealt with."""
    end = monotonic() + _PATIENCE
    queue: KeyQueue | None = getattr(app, "key_queue", None)
    for key in keys:
        app.post_message(_event(key))
        if queue is None:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0)
    while queue is not None and (queue.typing or app._message_queue.qsize()):
        assert monotonic() < end, (
            f"a key is not dealt with: {queue.typing}, {app._message_queue.qsize()} messages, "
            f"focus on {app.focused}"
        )
        await asyncio.sleep(0.001)


class Rest:
    """Knows whether an engine has anything to do or to say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watch the engine that is made next."""
        self._waits = False
        self._wait = Inbox.wait
        monkeypatch.setattr(Inbox, "wait", lambda inbox: self._resting(inbox))

    def _resting(self, inbox: Inbox) -> Any:
        self._waits = True
        command = self._wait(inbox)
        self._waits = False
        return command

    @staticmethod
    def told(worker: Worker | BootWorker) -> bool:
        """Whether every command has been heard and every event taken."""
        box = worker.outbox
        return not worker._inbox and not box._events and box._view is None

    def at_rest(self, worker: Worker | BootWorker) -> bool:
        """Whether every command is carried out as well."""
        return self._waits and self.told(worker)
