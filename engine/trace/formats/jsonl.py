"""JSON lines: one object for each event, with types kept."""

import json
from collections.abc import Collection
from typing import Any, ClassVar

from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.values import arguments, frames, text
from engine.trace.rows import HEAD, EventSource, EventTable, decode


class JsonLinesFormat:
    """An object a line; nothing before and nothing behind.

    Keys: `event` (GROUP/NAME), `time`, `pid` of the process, `tid` and `comm` of the thread, `cpu`
    (there is one), `address` and `symbol` of the probe, `returned_to` of a return event, `args`.
    A call stack is a line of its own with `stack`, behind its event; missing events are a line
    with `lost`. Addresses are hex strings.
    """

    name: ClassVar[str] = "jsonl"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._programs: ByProgram[str] = ByProgram()
        self._symbols = self._programs.symbols(0)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """A line for each row."""
        out: list[str] = []
        position, end = 0, len(data)
        encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
        while position < end:
            out.append(encode(self._object(data, position)))
            position += HEAD.unpack_from(data, position)[1] * 8
        text = "".join(line + "\n" for line in out)
        return text.replace("\x7f", r"\u007f").encode("ascii")  # DEL, the only control left

    def lost(self, count: int) -> bytes:
        """A line that says how many."""
        return b'{"lost":%d}\n' % count

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """The next event asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)

    def state(self) -> object:
        """Each line stands for itself."""
        return None

    def restore(self, state: object) -> None:
        """Nothing to go on from."""

    def _symbol(self, address: int) -> str:
        found = self._symbols.get(address)
        if found is None:
            found = self._symbols[address] = self._names.symbol(address)
        return found

    def _object(self, data: bytes, position: int) -> dict[str, Any]:
        event = decode(self._events, data, position)
        info = self._events[event.id]
        comm = self._names.comm(event.thread_id)
        out: dict[str, Any] = {
            "event": f"{event.group}/{event.name}",
            "time": event.time,
            "pid": self._names.process(event.thread_id),
            "tid": event.thread_id,
            "cpu": 0,
            "comm": None if comm is None else text(comm),
            "address": f"{event.address:#x}",
        }
        if info.source is EventSource.STACK:
            found = frames(info, data, position)
            out["stack"] = [{"pc": f"{pc:#x}", "symbol": self._symbol(pc)} for pc in found]
            return out
        out["symbol"] = self._symbol(event.address)
        if event.returned_to is not None:
            out["returned_to"] = f"{event.returned_to:#x}"
        out["args"] = arguments(event, info, self._names)
        return out
