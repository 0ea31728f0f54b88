"""An editor by script that speaks the Debug Adapter Protocol, and holds both sides to its schema.

The schema is Microsoft's own (tests/data/dap). It is read strictly: a member that it does not name
is an error, and so is another word where it lists words.
"""

import json
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema

from engine.cli.serve import front_end_guest
from engine.session.serve.dap.dapserving import serve_dap

SCHEMA = Path(__file__).parents[1] / "data" / "dap" / "debugAdapterProtocol.json"
PATIENCE = 60
OPEN = {"LaunchRequestArguments", "AttachRequestArguments", "RestartArguments"}
"""What may have members that only the adapter knows."""

Message = dict[str, Any]


@cache
def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text())["definitions"]
    return {name: strict(found, name, body) for name, body in found.items()}


def strict(every: dict[str, Any], name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A definition in one piece, that names all its members."""
    if "allOf" in schema:
        whole: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in schema["allOf"]:
            other = part["$ref"].rpartition("/")[2] if "$ref" in part else ""
            flat = strict(every, other or name, every[other] if other else part)
            whole["properties"] |= flat.get("properties", {})
            whole["required"] = sorted({*whole["required"], *flat.get("required", [])})
        schema = whole
    if "oneOf" in schema:  # of types that have the same members
        schema = {**schema, "anyOf": schema["oneOf"]}
        del schema["oneOf"]
    schema = {key: value for key, value in schema.items() if key != "_enum"} | (
        {"enum": schema["_enum"]} if "_enum" in schema and name != "message" else {}
    )
    if "properties" in schema:
        parts = schema["properties"]
        schema["properties"] = {
            member: strict(every, member, part) if isinstance(part, dict) else part
            for member, part in parts.items()
        }
        if name not in OPEN:
            schema.setdefault("additionalProperties", False)
    if isinstance(schema.get("items"), dict):
        schema["items"] = strict(every, name, schema["items"])
    if not schema.get("required", True):
        del schema["required"]  # an empty list is none in draft 4
    return schema


@cache
def checker(name: str) -> Callable[[Message], object]:
    """What refuses a message that is not of a definition."""
    whole = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": definitions(),
        "$ref": f"#/definitions/{name}",
    }
    checked: Callable[[Message], object] = fastjsonschema.compile(whole, use_default=False)
    return checked


def check(message: Message) -> None:
    """Refuse a message that is against the schema."""
    kind = message.get("type")
    if kind == "event":
        name = str(message["event"])
    elif kind == "response" and not message.get("success"):
        name = "Error"
    else:
        name = str(message["command"])
    assert kind in ("event", "request", "response"), message
    checker(f"{name[:1].upper()}{name[1:]}{kind.capitalize()}")(message)


class RefusedError(Exception):
    """The adapter has refused a request."""


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrontEnd:
    """One session, from the side of the editor."""

    def __init__(self, source: int, sink: int) -> None:
        self.sink = sink
        self.seq = 0
        self.events: list[Message] = []
        self.answers: dict[int, Message] = {}
        self.all: list[Message] = []
        self._come: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(source,), daemon=True).start()

    def _listen(self, source: int) -> None:
        with open(source, "rb") as stream:
            while line := stream.readline():
                found = re.fullmatch(rb"Content-Length: (\d+)\r\n", line)
                assert found is not None, line
                assert stream.readline() == b"\r\n"
                self._come.put(json.loads(stream.read(int(found[1]))))
        self._come.put(None)

    def _next(self) -> None:
        message = self._come.get(timeout=PATIENCE)
        if message is None:
            raise EOFError(f"the adapter has gone; {self.all[-3:]}")
        self.all.append(message)
        assert message["seq"] == len(self.all)
        check(message)
        if message["type"] == "event":
            self.events.append(message)
        else:
            self.answers[message["request_seq"]] = message

    def raw(self, data: bytes) -> None:
        os.write(self.sink, data)

    def send(self, command: str, arguments: Any = None, *, valid: bool = True) -> int:
        """Send a request, and do not wait."""
        self.seq += 1
        message: Message = {"seq": self.seq, "type": "request", "command": command}
        if arguments is not None:
            message["arguments"] = arguments
        if valid:
            check(message)
        self.raw(framed(json.dumps(message).encode()))
        return self.seq

    def answer(self, seq: int) -> Message:
        while seq not in self.answers:
            self._next()
        return self.answers[seq]

    def ask(self, command: str, /, **arguments: Any) -> Any:
        """The body of the answer to a request."""
        needed = definitions()[f"{command[:1].upper()}{command[1:]}Request"]["required"]
        given = arguments if arguments or "arguments" in needed else None
        answer = self.answer(self.send(command, given))
        assert answer["command"] == command
        if not answer["success"]:
            raise RefusedError(answer["message"])
        return answer.get("body")

    def event(self, *names: str) -> Message:
        """The next event of a name; those in front of it are passed by."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if event["event"] in names:
                    return event
            self._next()

    def stop(self) -> Message:
        event = self.event("stopped", "terminated")
        assert event["event"] == "stopped", event
        return event["body"]  # type: ignore[no-any-return]

    def end(self) -> None:
        """Read on until the adapter has gone."""
        try:
            while True:
                self._next()
        except EOFError:
            pass

    def output(self, category: str = "stdout") -> str:
        """All that was written so far."""
        return "".join(
            message["body"]["output"]
            for message in self.all
            if message.get("event") == "output" and message["body"].get("category") == category
        )

    # -- what every editor does -------------------------------------------------------------

    def launch(self, program: object = "", **more: Any) -> None:
        """Say hello, and launch; breakpoints come next, and then `go`."""
        self.ask(
            "initialize", adapterID="kprobe-tui", clientID="script", linesStartAt1=True,
            columnsStartAt1=True, pathFormat="path", supportsInvalidatedEvent=True,
            supportsMemoryEvent=True,
        )  # fmt: skip
        if program:
            more["program"] = str(program)
        self.ask("launch", **more)
        self.event("initialized")

    def go(self) -> Message:
        """All is said; the first stop."""
        self.ask("configurationDone")
        return self.stop()

    def run(self, command: str = "continue", **more: Any) -> Message:
        """Move; the next stop."""
        thread = self.ask("threads")["threads"][0]["id"]
        self.ask(command, **{"threadId": thread, **more})
        return self.stop()

    def frames(self, thread: int) -> list[Message]:
        found = self.ask("stackTrace", threadId=thread)
        assert len(found["stackFrames"]) == found["totalFrames"]
        return found["stackFrames"]  # type: ignore[no-any-return]

    def top(self, stop: Message) -> Message:
        return self.frames(stop["threadId"])[0]

    def scope(self, frame: Message, name: str) -> dict[str, Message]:
        """The variables of a scope by name."""
        for scope in self.ask("scopes", frameId=frame["id"])["scopes"]:
            if scope["name"] == name:
                return self.inside(scope)
        raise AssertionError(name)

    def inside(self, variable: Message) -> dict[str, Message]:
        found = self.ask("variables", variablesReference=variable["variablesReference"])
        return {each["name"]: each for each in found["variables"]}

    def value(self, expression: str, **more: Any) -> str:
        return self.ask("evaluate", expression=expression, **more)["result"]  # type: ignore[no-any-return]


@contextmanager
def front_end(*options: str, guest: Sequence[str] = ()) -> Iterator[FrontEnd]:
    """A session with an adapter in a thread of this process."""
    requests, to_adapter = os.pipe()
    from_adapter, answers = os.pipe()
    trouble: list[BaseException] = []

    def adapter() -> None:
        try:
            assert serve_dap(requests, answers, front_end_guest, options, guest) == 0
        except BaseException as error:
            trouble.append(error)
        finally:
            os.close(answers)

    thread = threading.Thread(target=adapter, daemon=True)
    thread.start()
    client = FrontEnd(from_adapter, to_adapter)
    try:
        yield client
    finally:
        os.close(to_adapter)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        # `requests` stays: its listener may be about to read, whatever has the number by then.
    client.end()
    assert not trouble, trouble
