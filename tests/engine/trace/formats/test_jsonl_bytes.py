"""A reader of JSON lines gets each string's bytes back, whatever a guest has put there."""

import json
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

SOURCE = r"""
#include <string.h>
__attribute__((noinline)) void said(const char *text) { __asm__ volatile("" : : "r"(text)); }
int main(void) {
    said("plain");
    said("a\xff" "b");
    said("a\\xffb");
    said("gr\xc3\xbc\xc3\x9f");
    said("\xed\xa0\x80");
    said("\\");
    said("{\"hex\":\"61\"}");
    said("");
    return 0;
}
"""
SAID = [
    b"plain",
    b"a\xffb",
    rb"a\xffb",
    "grüß".encode(),
    b"\xed\xa0\x80",
    b"\\",
    b'{"hex":"61"}',
    b"",
]


def original(value: object) -> bytes:
    """The bytes behind a value, as the format's description says."""
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    assert isinstance(value, str)
    return value.encode()


@pytest.mark.parametrize("technique", ["auto", "breakpoint"])
def test_bad_bytes_are_told_from_text(tmp_path: Path, technique: str) -> None:
    program = build(tmp_path, "said", SOURCE, "-O1")
    words = (
        "--technique",
        technique,
        "-e",
        "p said t=+0(%di):string",
        "--format",
        "jsonl",
        "-o",
        "said.jsonl",
    )
    done = run("trace", *words, str(program), cwd=tmp_path)
    assert done.code == 0, done.err
    raw = (tmp_path / "said.jsonl").read_text()
    values = [json.loads(line)["args"]["t"] for line in raw.splitlines()]
    assert [original(value) for value in values] == SAID
    assert values[1] == {"text": r"a\xffb", "hex": "61ff62"}
    assert values[2] == r"a\xffb"
