"""Panics of Rust are caught where they begin, with the messages that the program itself prints."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from controlkit import held
from gdbwords import said
from rustkit import rust_program

from engine.session.debugger.console import Console
from engine.session.debugger.rust_panics import PanicMessages
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig

_CAUGHT = re.compile(r"^Catchpoint 1 \(Rust panic: (.*?)\), ", re.MULTILINE)
_TOLD = re.compile(
    r"^thread '.*?' .*?panicked at (?:'(.*)', .*|.*:\n([^\n]*(?:\n [^\n]*)*))$", re.M
)
"""A message as rustc's libraries have printed it before and since 1.73."""


def printed(program: Path) -> list[str]:
    """The messages that the program prints when it runs by itself."""
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    return [match[1] or match[2] for match in _TOLD.finditer(done.stderr)]


@pytest.mark.parametrize(
    "flags", [("-g",), pytest.param(("-C", "debuginfo=0", "-O"), marks=pytest.mark.slow)]
)
def test_messages_are_those_that_the_program_prints(flags: tuple[str, ...]) -> None:
    program = rust_program("panics", *flags)
    there = printed(program)
    assert len(there) == 9
    text = said(GuestConfig(str(program)), "catch rust-panic", "run", *("continue",) * 9)
    here = _CAUGHT.findall(text)
    assert len(here) == 9
    assert here[:5] == there[:5]
    # Without debug information an old name does not tell the type of a reference.
    told = there[5] if "-g" in flags else there[5].replace("apple", "{}")
    assert here[5].replace("\\n", "\n") == told
    assert here[6] == there[6]
    # A type of the program's own and a width are not carried out.
    assert here[7].startswith("a point {}, a width ")
    assert here[8] == there[8] == "Box<dyn Any>"


@pytest.mark.slow
def test_a_panic_that_aborts() -> None:
    program = rust_program("panics", "-C", "panic=abort", "-g")
    text = said(GuestConfig(str(program)), "catch rust-panic", "run", "continue")
    assert _CAUGHT.findall(text) == ["plain words"]
    assert "SIGABRT" in text


@pytest.mark.slow
def test_the_table_the_interface_and_another_session() -> None:
    program = rust_program("panics")
    lines = ("tcatch rust-panic", "info breakpoints", "run", "continue")
    text = said(GuestConfig(str(program)), *lines)
    assert text.startswith(
        "Temporary catchpoint  1 (rust-panic)\n"
        "Num     Type           Disp Enb Address            What\n"
        "1       catchpoint     del  y                      Rust panic\n"
        "\nTemporary catchpoint 1 (Rust panic: plain words), "
    )
    assert "[Inferior 1 (process 1000) exited normally]" in text
    with held(str(program)) as guest:
        Console(guest.control, guest._tell)
        guest.do(cmd.TypedLine("catch rust-panic"), cmd.Continue())
        assert guest.view.reason == "catchpoint 1: Rust panic: plain words"
        with held(str(program)) as fresh:
            Console(fresh.control, fresh._tell)
            fresh.do(cmd.Restore((), guest.view.stops))
            fresh.do(cmd.Continue())
            assert fresh.view.reason.endswith(": Rust panic: plain words")


def test_a_message_that_leads_to_itself_has_an_end() -> None:
    """Each of 60 arguments is the message again: memory of a guest that means harm."""
    start, texts, arguments, formatter = 0x1000, 0x1100, 0x2000, 0x9000
    memory = bytearray(0x4000)

    def put(at: int, *words: int) -> None:
        memory[at : at + 8 * len(words)] = b"".join(word.to_bytes(8, "little") for word in words)

    put(start, texts, 1, arguments, 60, 0, 0)
    put(texts, texts + 16, 1)
    memory[texts + 16] = ord("x")
    put(arguments, *(start, formatter) * 60)
    put(0x3000, start, 0x3100)  # a `PanicInfo` with a place in the source
    put(0x3100, 0x3200, 4)
    memory[0x3200:0x3204] = b"a.rs"
    symbol = SimpleNamespace(
        demangled="<core::fmt::Arguments as core::fmt::Display>::fmt", is_function=True
    )
    registers = {"rdi": 0x3000, "rsi": 0, "rip": 0x10}
    session = SimpleNamespace(
        arch=SimpleNamespace(
            bits=64,
            roles=SimpleNamespace(pc="rip"),
            probes=SimpleNamespace(arguments=("rdi", "rsi")),
        ),
        cpu=SimpleNamespace(read_register=registers.__getitem__),
        seen=SimpleNamespace(
            memory=SimpleNamespace(peek=lambda at, size: bytes(memory[at : at + size])),
            modules=SimpleNamespace(
                locate=lambda at: SimpleNamespace(symbol=symbol if at == formatter else None)
            ),
        ),
    )
    found = PanicMessages(cast(Session, session), lambda pc: "rust_begin_unwind").message()
    assert found.startswith("xxx")
    assert found.count("x") == 101
    assert found.endswith("{}" * 60)
