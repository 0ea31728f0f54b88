"""Messages of the Debug Adapter Protocol: JSON behind a header that says how long it is."""

import os
import re
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from engine.errors import CommandError

_MOST: Final = 16 << 20
"""Bytes of a message."""
_HEADER_MOST: Final = 4096
_LENGTH: Final = re.compile(rb"content-length *: *(\d{1,10})\Z", re.IGNORECASE)
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ *:[^\0]*\Z")
_SEQ: Final = re.compile(rb'"seq" *: *(\d{1,15})\b')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class FramingError(CommandError):
    """Bytes that are no message: nobody knows where the next one begins."""


class EditorGoneError(OSError):
    """The front end no longer reads what is written to it."""


class BadRequestError(CommandError):
    """A message that is no request.

    Attributes:
        seq: its number, None where that is not to be found.
        command: its name, "" likewise.
    """

    def __init__(self, text: str, seq: int | None = None, command: str = "") -> None:
        super().__init__(text)
        self.seq, self.command = seq, command


class DapRequest(Struct, frozen=True):
    """A request as it has come.

    Attributes:
        seq: its number; there are clients that count from 0.
        command: its name.
        arguments: what it is about.
    """

    seq: Annotated[int, Meta(ge=0, lt=1 << 53)]
    command: str
    arguments: dict[str, Any] = {}


class MessageReader:
    """Cuts bytes into messages."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._waiting = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole with these bytes.

        Raises:
            FramingError: the header of one says nothing of its length.
        """
        self._waiting += data
        while True:
            end = self._waiting.find(b"\r\n\r\n", 0, _HEADER_MOST + 4)
            if end < 0:
                if len(self._waiting) > _HEADER_MOST:
                    raise FramingError("no header of a message in 4096 bytes")
                self._check(self._waiting.rpartition(b"\r\n")[0])
                return
            size = self._check(self._waiting[:end])
            if size is None:
                raise FramingError("a header without Content-Length")
            if size > _MOST:
                raise FramingError(f"a message of {size} bytes; at most {_MOST} are taken")
            start = end + 4
            if len(self._waiting) < start + size:
                return
            body = bytes(self._waiting[start : start + size])
            del self._waiting[: start + size]
            yield body

    @staticmethod
    def _check(header: bytes | bytearray) -> int | None:
        """The length that the fields of a header give, None for none."""
        size: int | None = None
        for line in bytes(header).split(b"\r\n") if header else ():
            found = _LENGTH.match(line)
            if found is not None:
                size = int(found[1])
            elif not _FIELD.match(line):
                raise FramingError(f"no header of a message: {line[:40]!r}")
        return size


def request_of(body: bytes) -> DapRequest | None:
    """The request that a message is; None for an answer to one of ours.

    Raises:
        BadRequestError: it is none.
    """
    try:
        found = without_nulls(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        seq = _SEQ.search(body)
        raise BadRequestError(f"no JSON: {error}", int(seq[1]) if seq else None) from None
    parts = found if isinstance(found, dict) else {}
    if parts.get("type") in ("response", "event"):
        return None
    try:
        request = msgspec.convert(found, DapRequest)
    except msgspec.ValidationError as error:
        seq, command = parts.get("seq"), parts.get("command")
        raise BadRequestError(
            f"no request: {error}",
            seq if isinstance(seq, int) and 0 <= seq < 1 << 53 else None,
            command if isinstance(command, str) else "",
        ) from None
    if _has_nul(request.arguments):
        text = f"{request.command[:60]}: a text with a NUL in it"
        raise BadRequestError(text, request.seq, request.command)
    return request


def without_nulls(value: Any) -> Any:
    """JSON without the members that say nothing."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def _has_nul(arguments: dict[str, Any]) -> bool:
    """True where a text is in them that no name or line of the host's can be."""
    waiting: list[Any] = [arguments]
    while waiting:  # by no recursion: they may be as deep as the decoder goes
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and "\0" in value:
            return True
    return False


class MessageWriter:
    """Writes messages; any thread may."""

    def __init__(self, descriptor: int) -> None:
        """Write to a descriptor of the host's."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._seq = 0

    def answer(self, request: DapRequest, body: object = None) -> None:
        """The answer to a request that was carried out.

        Raises:
            EditorGoneError: nobody reads it.
        """
        self._response(request.seq, request.command, success=True, body=body)

    def refuse(self, seq: int, command: str, text: str, why: str = "") -> None:
        """The answer to one that was not.

        Args:
            seq: its number.
            command: its name, "" where it has none.
            text: why, for people.
            why: the word that front ends know: "notStopped", "cancelled".

        Raises:
            EditorGoneError: nobody reads it.
        """
        body = {"error": {"id": 1, "format": _braced(text), "showUser": not why}}
        self._response(seq, command, success=False, message=why or text, body=body)

    def _response(self, seq: int, command: str, *, success: bool, **more: object) -> None:
        given = {name: value for name, value in more.items() if value is not None}
        self._send("response", request_seq=seq, success=success, command=command, **given)

    def event(self, name: str, body: object = None) -> None:
        """Something that has happened.

        Raises:
            EditorGoneError: nobody reads it.
        """
        if body is None:
            self._send("event", event=name)
        else:
            self._send("event", event=name, body=body)

    def _send(self, kind: str, **parts: object) -> None:
        with self._lock:
            self._seq += 1
            data = _encoded({"seq": self._seq, "type": kind, **parts})
            whole = memoryview(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            try:
                while whole:
                    whole = whole[os.write(self._descriptor, whole) :]
            except OSError as error:
                raise EditorGoneError(*error.args) from None


def _braced(text: str) -> str:
    """A text in which braces stand for themselves: there is no way to write one."""
    return text.replace("{", "(").replace("}", ")")


def _encoded(message: dict[str, object]) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:  # a name of a guest's that is no UTF-8
        return msgspec.json.encode(_printable(msgspec.to_builtins(message)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02x}", value)
    if isinstance(value, dict):
        return {_printable(name): _printable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_printable(part) for part in value]
    return value
