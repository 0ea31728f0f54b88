"""Fetch arguments end to end on both architectures, against a handler that reads the same."""

import re
import struct
from collections.abc import Callable

import archkit
import pytest
from archkit import FIRST_COMPILED
from sessionkit import SAMPLES, loaded

from engine.image import ElfImage, SymbolTable
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs

WORD = struct.Struct("<Q")


def data_symbol(arch: str) -> tuple[str, int]:
    """A symbol of the sample that is code: its bytes are known from the file."""
    symbols = SymbolTable(ElfImage.open(str(SAMPLES / arch / "recursion")))
    return "print_hex", symbols.find_all("print_hex")[0].address


def text_at(arch: str, text: bytes) -> int:
    image = ElfImage.open(str(SAMPLES / arch / "recursion"))
    found = (SAMPLES / arch / "recursion").read_bytes().index(text + b"\0")
    address = image.vaddr_of(found)
    assert address is not None
    return address


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_what_is_recorded_is_what_a_handler_sees(arch: str) -> None:
    first = archkit.argument(arch).removeprefix("%")
    name, address = data_symbol(arch)
    text = text_at(arch, b"factorial(20) = ")
    with loaded(SAMPLES / arch / "recursion") as guest:
        memory = guest.session.memory

        def word(at: int) -> int:
            found: int = WORD.unpack(memory.read(at, 8))[0]
            return found

        wanted: list[tuple[str, Callable[[PtRegs], str]]] = [
            (f"a=%{first}:u32", lambda regs: str(regs.argument(0) & 0xFFFFFFFF)),
            (f"b=%{first}:b4@1/8", lambda regs: str(regs.argument(0) >> 1 & 15)),
            ("c=$comm", lambda regs: '"recursion"'),
            ("d=$stack", lambda regs: hex(regs.sp)),
            ("e=$stack3", lambda regs: hex(word(regs.sp + 24))),
            ("f=\\-3:s8", lambda regs: "-3"),
            ('g=\\"text"', lambda regs: '"text"'),
            ("h=+8($stack):u8[3]", lambda regs: braces(memory.read(regs.sp + 8, 3))),
            (f"i=@{name}:x32", lambda regs: hex(word(address) & 0xFFFFFFFF)),
            (f"j=@{name}+4:u8[4]", lambda regs: braces(memory.read(address + 4, 4))),
            (f"k=@{address:#x}", lambda regs: hex(word(address))),
            (f"l=+4(@{name})", lambda regs: "0x0"),  # where its code points there is nothing
            ("m=$arg1:s64", lambda regs: str(signed(regs.argument(0)))),
            (f"n=@{text:#x}:string", lambda regs: '"factorial(20) = "'),
            (f"p=@{text:#x}:char[2]", lambda regs: "{'f','a'}"),
            ("o=\\0x10:string", lambda regs: "(fault)"),
        ]
        expected: list[str] = []

        def before(probe: Kprobe, regs: PtRegs) -> None:
            expected.append(" ".join(f"{w.partition('=')[0]}={ask(regs)}" for w, ask in wanted))

        tracing = guest.tracing()
        tracing.definitions.define("p:t/all ackermann " + " ".join(w for w, _ in wanted))
        place = guest.session.probes().verdicts.places.resolve("ackermann")[0]
        guest.session.probes().manager.register(Kprobe(addr=place.link, pre_handler=before))
        guest.run(tracing)

        found = [re.sub(r"^all: \(.*?\) ", "", row) for row in guest.events]
        assert len(found) == 20
        assert found == expected


def braces(data: bytes) -> str:
    return "{" + ",".join(map(str, data)) + "}"


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
