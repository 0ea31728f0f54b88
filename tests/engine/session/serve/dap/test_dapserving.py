"""An adapter as an editor starts it: a process, its two pipes, and what goes wrong with them."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from dapkit import FrontEnd, checker, definitions, framed, front_end
from guestrun import run, start
from sysroot import CHECKOUT

STRUCTS = str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")
SEEDS = 4


def test_a_process_of_its_own(tmp_path: Path) -> None:
    its_in, requests = os.pipe()
    with start("serve", "--dap", "--", STRUCTS, cwd=tmp_path, stdin=its_in) as adapter:
        os.close(its_in)
        assert adapter.stdout is not None
        editor = FrontEnd(os.dup(adapter.stdout.fileno()), requests)
        editor.launch(cwd=str(tmp_path))
        editor.ask("configurationDone")
        assert editor.event("exited")["body"]["exitCode"] == 2
        editor.event("terminated")
        editor.ask("disconnect")
        editor.end()
        assert adapter.stderr is not None
        assert adapter.stderr.read() == b""
        assert adapter.wait() == 0
    os.close(requests)
    assert editor.output().startswith("payment 1001 -> 0\n")


@pytest.mark.parametrize(
    ("words", "typed", "code", "told"),
    [
        ((), b"hello\r\n\r\n", 2, "no header of a message: b'hello'"),
        (("--colour",), b"", 2, "No such option"),
        (("--gdb", "127.0.0.1:0", STRUCTS), b"", 2, "one of them"),
    ],
)  # fmt: skip
def test_what_comes_and_ends(
    words: tuple[str, ...], typed: bytes, code: int, told: str, tmp_path: Path
) -> None:
    ended = run("serve", "--dap", *words, cwd=tmp_path, stdin=typed)
    assert ended.code == code
    assert told in ended.err
    assert ended.err.count("\n") <= 4
    assert "Traceback" not in ended.err


def fuzzed(rng: random.Random, schema: dict[str, Any], deep: int = 0) -> Any:
    """A value of a schema, or something else."""
    if rng.random() < 0.06:
        return rng.choice(
            [None, -1, 1 << 70, 1.5, "", "x" * 300, [], {}, [[]], True, "a\0b", "\ud800"]
        )
    if "$ref" in schema:
        return fuzzed(rng, definitions()[schema["$ref"].rpartition("/")[2]], deep)
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if kind == "object":
        parts = schema.get("properties", {})
        needed = schema.get("required", [])
        return {
            name: fuzzed(rng, part, deep + 1)
            for name, part in parts.items()
            if (name in needed and rng.random() < 0.95) or (deep < 4 and rng.random() < 0.4)
        }
    if kind == "array":
        return [fuzzed(rng, schema.get("items", {}), deep + 1) for _ in range(rng.randrange(3))]
    return {
        "string": rng.choice(
            ["main", "0x400780", "payment", "1", "*", "set x", "signals", "$rip", "deposit",
             str(CHECKOUT / "samples" / "structs.c"), "print 1/0", "info registers", "0x7ffff/8",
             "/a\0b", "source /a\0b", "gcore /a\0b"]
        ),
        "integer": rng.choice([0, 1, 2, 3, 7, 54, 1000, 1 << 31, -5]),
        "number": rng.random(),
        "boolean": rng.random() < 0.5,
        "null": None,
    }[kind]  # fmt: skip


@pytest.mark.parametrize("seed", range(SEEDS))
def test_garbage_is_answered(seed: int) -> None:
    """Requests of any kind, in any state, of any content: each has one answer, by the schema."""
    rng = random.Random(seed)
    requests = sorted(
        name for name, body in definitions().items()
        if name.endswith("Request") and "command" in body["properties"]
        and name not in ("Request", "DisconnectRequest")
    )  # fmt: skip
    with front_end() as editor:
        if seed:
            editor.launch(STRUCTS, record=seed == 2)
        if seed > 1:
            editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "transfer"}])
            editor.go()
        for _ in range(150):
            command = definitions()[rng.choice(requests)]
            name = command["properties"]["command"]["enum"][0]
            arguments = fuzzed(rng, command["properties"].get("arguments", {}))
            editor.send(name, arguments, valid=False)
        asked = editor.seq
        editor.raw(framed(b"{]") + framed(b"[1]") + framed(json.dumps({"seq": "x"}).encode()))
        assert editor.answer(editor.send("disconnect"))["success"]
        assert sorted(editor.answers) == list(range(1, asked + 2))


def test_the_schema_is_read_strictly() -> None:
    body = {"reason": "step", "threadId": 1, "allThreadsStopped": True}
    event = {"seq": 1, "type": "event", "event": "stopped", "body": body}
    checker("StoppedEvent")(event)
    for wrong in ({"thread": 1}, {"reason": "so"}, {"threadId": "1"}):
        with pytest.raises(ValueError, match="data"):
            checker("StoppedEvent")({**event, "body": {**body, **wrong}})
