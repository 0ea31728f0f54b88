"""Instructions that are found by their first bytes are those that the decoder reads."""

import random

import pytest

from engine.arch.x86_64 import kernel_shapes
from engine.arch.x86_64.decode import LONGEST, PREFIX_BYTES, decode
from engine.arch.x86_64.kernel_shapes import InsnShapes
from engine.arch.x86_64.verdicts import BOOSTABLE_0F

FRONTS = (*PREFIX_BYTES.values(), *range(0x40, 0x50), 0x0F, 0xC4, 0xC5, 0x62, 0x8F)


def shapes() -> InsnShapes:
    return InsnShapes(traps=True, groups=True, boosted_0f=BOOSTABLE_0F)


def random_code(rng: random.Random) -> bytes:
    """Bytes that begin with up to three prefixes, escapes or longer encodings."""
    front = bytes(rng.choice(FRONTS) for _ in range(rng.randrange(4)))
    return front + rng.randbytes(LONGEST)


def test_first_bytes_decide_as_the_whole_instruction_does() -> None:
    """An answer stays the same whatever instructions were asked about before."""
    rng = random.Random(45)
    known = shapes()
    for _ in range(12_000):
        code = random_code(rng)
        insn = decode(code[:LONGEST])
        _, found, _ = known.decoded(code, 0, 1)
        if insn is None:
            assert found == [None], code.hex(" ")
            continue
        assert found == [known._shape(insn, code[: insn.size])], code.hex(" ")


def test_what_is_cut_off_has_no_shape() -> None:
    code = bytes.fromhex("90 e8 00 00 00 00 90")
    known = shapes()
    whole = known.decoded(code, 0x1000, len(code))
    assert whole[0] == [0x1000, 0x1001, 0x1006]
    assert [shape.size for shape in whole[1] if shape is not None] == [1, 5, 1]
    for size in range(2, 6):
        starts, found, _ = known.decoded(code[:size], 0x1000, size)
        assert starts == [0x1000, 0x1001]
        assert found[1] is None
    # Text may end before its symbol does.
    starts, found, _ = known.decoded(code, 0x1000, len(code) + 8)
    assert starts[-1] == 0x1007
    assert found[-1] is None


@pytest.mark.parametrize("fill", [1, 2, 5000])
def test_gaps_are_int3s_one_by_one(fill: int) -> None:
    code = b"\x90" + b"\xcc" * fill + b"\xc3"
    starts, found, jumps = shapes().decoded(code, 0x1000, len(code))
    assert starts == list(range(0x1000, 0x1000 + len(code)))
    assert [shape.rule for shape in found if shape is not None] == [
        "",
        *["kernel.int3"] * fill,
        "",
    ]
    assert jumps == []


def test_the_same_instructions_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls and jumps differ in displacements only: one of each kind is looked at."""
    asked: list[bytes] = []

    def counted(raw: bytes) -> object:
        asked.append(raw)
        return decode(raw)

    known = shapes()
    monkeypatch.setattr(kernel_shapes, "decode", counted)
    rng = random.Random(1)
    code = b"".join(
        front + rng.randbytes(4)
        for _ in range(500)
        for front in (b"\xe8", b"\x0f\x84", b"\x48\x8b\x85")
    )
    starts, _, jumps = known.decoded(code, 0, len(code))
    assert len(starts) == 1500
    assert len(jumps) == 500
    assert len(asked) <= 256 + 2  # of call and mov one each, of the jump one for each third byte
