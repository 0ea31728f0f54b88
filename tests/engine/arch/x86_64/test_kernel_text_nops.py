"""Instructions at another place, and nops joined."""

import pytest

from engine.arch.x86_64.decode import length
from engine.arch.x86_64.kernel_text_nops import (
    add_nop,
    optimized,
    optimized_in_pieces,
    relocated,
    relocated_call,
)


def _short(size: int) -> bytes:
    return b"".join(add_nop(min(8, size - at)) for at in range(0, size, 8))


@pytest.mark.parametrize("size", range(1, 12))
def test_up_to_eleven_bytes_are_one_instruction(size: int) -> None:
    assert length(add_nop(size)) == len(add_nop(size)) == size


@pytest.mark.parametrize(
    ("size", "head"), [(12, "eb0acc"), (127, "eb7dcc"), (128, "e97b000000cc")]
)
def test_more_bytes_are_jumped_over(size: int, head: str) -> None:
    code = add_nop(size)
    assert len(code) == size
    assert code.startswith(bytes.fromhex(head))
    assert set(code[5:]) == {0xCC}


def test_nops_behind_an_instruction_are_joined() -> None:
    code = bytes.fromhex("0f01f9") + b"\x90" * 14
    assert optimized(code).hex() == "0f01f9" + "eb0c" + "cc" * 12
    assert optimized_in_pieces(code, _short).hex() == "0f01f90f1f840000000000660f1f440000"


def test_a_90_inside_an_instruction_is_none() -> None:
    code = bytes.fromhex("b890909090")
    assert optimized(code) == optimized_in_pieces(code, _short) == code


def test_long_nops_are_joined_with_others_since_their_decoder_knows_them() -> None:
    code = bytes.fromhex("6690") + bytes.fromhex("0f1f00") + b"\x90"
    assert optimized(code) == add_nop(6)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("e800010000", "e800110000"),
        ("e900010000", "e900110000"),
        ("e909f0ffff", "eb0ccccccc"),
        ("0f8400010000", "0f8400110000"),
        ("488b0500010000", "488b0500110000"),
        ("e90001000090", "e90011000090"),
        ("eb0131c0", "eb0131c0"),
        ("740231c0", "740231c0"),
    ],
)
def test_operands_that_lead_out_are_moved(code: str, expected: str) -> None:
    made = relocated(bytes.fromhex(code), 0x1000, 0x2000, len(code) // 2)
    assert made.hex() == expected


def test_a_call_that_is_the_whole_replacement_is_moved() -> None:
    assert (
        relocated_call(bytes.fromhex("e800010000"), 0x1000, 0x2000, _short).hex() == "e800110000"
    )


def test_a_near_jump_forward_becomes_short() -> None:
    code = bytes.fromhex("e9") + (-0x1000 + 10 & 0xFFFFFFFF).to_bytes(4, "little")
    assert relocated_call(code, 0x1000, 0x2000, _short).hex() == "eb0d0f1f00"
    back = bytes.fromhex("e9") + (-0x1000 - 50 & 0xFFFFFFFF).to_bytes(4, "little")
    assert relocated_call(back, 0x1000, 0x2000, _short).hex() == "e9ceffffff"


def test_other_instructions_stay() -> None:
    for text in ("0f01f9", "4889c84889"):
        code = bytes.fromhex(text)
        assert relocated_call(code, 0x1000, 0x2000, _short) == code
