"""Messages of the Debug Adapter Protocol, cut up and damaged."""

import json
import os
from typing import Any

import pytest
from dapkit import framed
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.session.serve.dap.framing import (
    BadRequestError,
    DapRequest,
    EditorGoneError,
    FramingError,
    MessageReader,
    MessageWriter,
    request_of,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=5), st.data())
def test_pieces_of_any_size_make_the_same_messages(
    bodies: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(map(framed, bodies))
    reader = MessageReader()
    found: list[bytes] = []
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        found += reader.take(whole[:size])
        whole = whole[size:]
    assert found == bodies


def test_other_fields_and_other_letters() -> None:
    reader = MessageReader()
    data = (
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:  2\r\n\r\n{}"
    )
    assert list(reader.take(data)) == [b"{}"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "no header of a message: b'GET / HTTP/1.1'"),
        (b"{}\r\n", "no header of a message"),
        (b"Content-Length: x\r\n\r\n", "without Content-Length"),
        (b"Content-Length: -1\r\n\r\n", "without Content-Length"),
        (b"Content-Type: text/plain\r\n\r\n", "without Content-Length"),
        (b"Content-Length: 16777217\r\n\r\n", "a message of 16777217 bytes"),
        (b"x" * 5000, "no header of a message in 4096 bytes"),
    ],
)
def test_what_is_no_header_says_so(data: bytes, why: str) -> None:
    with pytest.raises(FramingError, match=why):
        list(MessageReader().take(data))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    try:
        for body in MessageReader().take(data):
            assert body in data
    except FramingError:
        pass


@pytest.mark.parametrize(
    ("body", "seq", "why"),
    [
        (b"", None, "no JSON"),
        (b"\xff", None, "no JSON"),
        (b"[" * 100_000, None, "no JSON"),
        (b"[]", None, "no request"),
        (b'{"seq": 1}', 1, "command"),
        (b'{"seq": -1, "command": "x"}', None, "seq"),
        (b'{"seq": 7, "command": "threads", "arguments": []}', 7, "arguments"),
        (b'{"seq": 12, "command": "\\ud800"}', 12, "no JSON"),
        (b'{"seq": "7", "command": "threads"}', None, "seq"),
        (b'{"seq": 7, "command": "x", "arguments": {"a": [{"b": "\\u0000"}]}}', 7, "x: .* a NUL"),
        (b'{"seq": 7, "command": "x", "arguments": {"a": {"\\u0000": 1}}}', 7, "x: .* a NUL"),
    ],
)
def test_what_is_no_request_says_so(body: bytes, seq: int | None, why: str) -> None:
    with pytest.raises(BadRequestError, match=why) as caught:
        request_of(body)
    assert caught.value.seq == seq


def test_any_depth_is_taken_or_refused() -> None:
    for begin, end in ((b"[", b"]"), (b'{"a":', b"}")):
        taken = []
        for depth in range(50, 1000, 10):
            arguments = b'{"a": %b1%b}' % (begin * depth, end * depth)
            try:
                request_of(b'{"seq": 1, "command": "x", "arguments": %b}' % arguments)
            except BadRequestError:
                continue
            taken.append(depth)
        assert max(taken) > 100


@settings(max_examples=30, deadline=None)
@given(JSON)
def test_any_json_that_is_no_request_is_refused(value: Any) -> None:
    with pytest.raises(BadRequestError):
        request_of(json.dumps(value).encode())


def test_requests_without_what_says_nothing() -> None:
    body = b'{"seq": 3, "command": "x", "arguments": {"a": null, "b": [{"c": null}]}}'
    assert request_of(body) == DapRequest(3, "x", {"b": [{}]})
    assert request_of(b'{"type": "response", "seq": 1}') is None
    assert request_of(b'{"seq": 0, "command": "x"}') == DapRequest(0, "x")  # nvim-dap's first


def test_who_does_not_read_is_gone() -> None:
    source, sink = os.pipe()
    os.close(source)
    with pytest.raises(EditorGoneError):
        MessageWriter(sink).event("initialized")
    os.close(sink)


def test_names_that_are_no_unicode_are_written_as_bytes() -> None:
    source, sink = os.pipe()
    MessageWriter(sink).event("output", {"output": "a\udcff{", "\udc80": ["\udc81"]})
    os.close(sink)
    with open(source, "rb") as stream:
        (body,) = MessageReader().take(stream.read())
    assert json.loads(body)["body"] == {"output": "a\\xff{", "\\x80": ["\\x81"]}
