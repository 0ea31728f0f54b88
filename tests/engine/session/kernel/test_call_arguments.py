"""Arguments of calls are as C passes them, or refused."""

from types import SimpleNamespace
from typing import Any

import pytest
from btfkit import BtfMaker

from engine.arch import by_name
from engine.errors import CommandError
from engine.image.kernel.btf import Btf
from engine.image.kernel.btftypes import BtfTypes
from engine.session.kernel.call_arguments import ArgumentMaker, ImageTypes, PlacedArguments
from engine.session.kernel.call_syntax import read_call


def types() -> BtfTypes:
    """Types of an image, and functions that take them."""
    made = BtfMaker()
    number, long = made.integer("int", 4, 1), made.integer("long int", 8, 1)
    made.integer("unsigned int", 4)
    wide = made.integer("__int128", 16, 1)
    pair = made.record("pair", 16, ("first", long, 0), ("second", long, 64))
    to_pair = made.pointer(pair)
    array = made.add(8, "longs", made.array(long, number, 2))  # typedef
    made.record("big", 48, ("head", long, 0), ("all", wide, 128), ("tail", to_pair, 256))
    for name, kind in (("number", long), ("pointer", to_pair), ("by_value", pair), ("wide", wide)):
        made.function(f"takes_{name}", made.prototype(long, ("it", kind)))
    made.function("takes_array", made.prototype(long, ("it", made.pointer(array))))
    return BtfTypes(Btf(made.data(), "vmlinux"))


class Called:
    """Places the arguments of calls in memory that is bytes."""

    def __init__(self) -> None:
        self.data = bytearray(0x1000)
        self._end = 0x100
        self._types = types()
        arch = by_name("x86_64")
        assert arch.kernel_calls is not None
        memory: Any = SimpleNamespace(needed=self._needed, poke=self._poke)
        names = ImageTypes(
            self._types.named, lambda name: None, lambda name: None, lambda address: False
        )
        self._maker = ArgumentMaker(memory, arch.kernel_calls(), names)

    def _needed(self, size: int, *, user: bool = False) -> int:
        self._end += 0x100
        return self._end

    def _poke(self, address: int, data: bytes) -> None:
        self.data[address : address + len(data)] = data

    def place(self, text: str) -> PlacedArguments:
        written = read_call(text)
        return self._maker.place(written, self._types.function(written.function))

    def at(self, text: str, size: int) -> bytes:
        """The memory at the address that is passed."""
        (address,) = self.place(text).registers
        return bytes(self.data[address : address + size])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("takes_number((struct pair){1, 2})", "struct pair is no long; & in front gives its"),
        ("takes_pointer((struct pair){1, 2})", r"struct pair is no struct pair \*; & in front"),
        ("takes_by_value((struct big){1})", "struct big is no struct pair$"),
        ("takes_by_value((long){1})", r"a structure is needed, as \(struct pair\)\{...\}"),
        ("takes_pointer(&(struct pair){(struct pair){1}})", "struct pair is no long; & in"),
        ("takes_pointer(&(struct big){.tail = (struct pair){1}})", r"is no struct pair \*; &"),
        ("takes_wide(1)", "__int128: a number of more than 8 bytes is not passed"),
        ("takes_number((__int128){1})", "__int128 is no long"),
    ],
)
def test_what_c_does_not_convert_is_refused(call: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        Called().place(call)


def test_numbers_structures_and_arrays_by_value() -> None:
    called = Called()
    for call, registers in (
        ("takes_number((int){-1})", ((1 << 64) - 1,)),
        ("takes_number((unsigned int){-1})", ((1 << 32) - 1,)),
        ("takes_by_value((struct pair){1, .second = (int){-2}})", (1, (1 << 64) - 2)),
        ("not_known((struct pair){3, 4}, (int){5})", (3, 4, 5)),
    ):
        assert called.place(call).registers == registers
    assert called.at("takes_array((longs){1, 2})", 16) == bytes([1, *bytes(7), 2, *bytes(7)])
    inner = called.at("takes_pointer(&(struct big){.tail = &(struct pair){9}})", 48)[32:]
    address = int.from_bytes(inner[:8], "little")
    assert called.data[address] == 9


def test_a_number_of_16_bytes_keeps_its_place() -> None:
    called = Called()
    for text, value in (("5", 5), ("-5", (1 << 128) - 5), ("~0xffffffffffffffff", 0)):
        raw = called.at(f"f(&(struct big){{1, {text}, .tail = 7}})", 48)
        parts = raw[:8], raw[16:32], raw[32:40]
        assert [int.from_bytes(part, "little") for part in parts] == [1, value, 7]
