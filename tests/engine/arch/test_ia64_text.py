"""Text and words of IA-64 instructions, against objdump."""

import gzip
import json
import random
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from bundlekit import stop_here, with_slot
from hypothesis import given
from hypothesis import strategies as st

from engine.arch.ia64.bundle import SLOT_MASK, TEMPLATES, Bundle, next_slot, unpack
from engine.arch.ia64.decode import decode_bundle, decode_slot
from engine.arch.ia64.encode import (
    assemble,
    branch,
    long_jump,
    move_long,
    nop,
    rebased,
)
from engine.arch.ia64.opcodes import forms
from engine.arch.ia64.text import bundle_insns, parts

_DATA = Path(__file__).parents[2] / "data" / "ia64" / "decode.jsonl.gz"
_OBJDUMP = "ia64-linux-gnu-objdump"
words = st.integers(0, SLOT_MASK)


def sample() -> list[tuple[int, bytes, str, list[str]]]:
    """(address, bundle, prefix of addresses, texts)."""
    with gzip.open(_DATA, "rt") as file:
        rows = [json.loads(line) for line in file]
    return [(int(a, 16), bytes.fromhex(b), "0x" if x else "", texts) for a, b, x, texts in rows]


def test_sample_is_printed_as_objdump_does() -> None:
    for address, raw, prefix, texts in sample():
        assert [insn.text for insn in bundle_insns(address, raw, prefix)] == texts, raw.hex()


def test_sample_is_assembled_to_what_prints_the_same() -> None:
    same = count = 0
    for address, raw, prefix, texts in sample():
        for insn, text in zip(decode_bundle(unpack(raw)), texts, strict=True):
            if insn.form is None:
                continue
            text = text.removesuffix(";;")
            word, extra = assemble(text, insn.unit, address)
            again = decode_slot(insn.unit, word, extra, insn.slot)
            assert " ".join(parts(again, address, prefix)).rstrip() == text
            count += 1
            same += (word, extra) == (insn.word, insn.extra)
    assert same > count * 0.9  # the others have bits that the processor ignores


def random_bundle(source: random.Random) -> bytes:
    """Mostly valid instructions, some with a bit flipped."""
    number = source.randrange(32)
    slots = []
    for unit in TEMPLATES[number] or "MII":
        word = source.getrandbits(41)
        fitting = [form for form in forms() if unit in form.units]
        if fitting and source.random() < 0.8:
            form = source.choice(fitting)
            word = word & ~form.mask | form.value
            if source.random() < 0.2:
                word ^= 1 << source.randrange(41)
        slots.append(word)
    return Bundle(number, (slots[0], slots[1], slots[2])).pack()


@pytest.mark.skipif(shutil.which(_OBJDUMP) is None, reason="binutils-ia64-linux-gnu is absent")
def test_random_bundles_are_printed_as_objdump_does(tmp_path: Path) -> None:
    source, base = random.Random(10), 0x4000_0000_0001_0000
    bundles = [random_bundle(source) for _ in range(2000)]
    file = tmp_path / "bundles"
    file.write_bytes(b"".join(bundles))
    options = ("-D", "-z", "-EL", "-b", "binary", "-m", "ia64-elf64", f"--adjust-vma={base}")
    done = subprocess.run([_OBJDUMP, *options, file], capture_output=True, text=True, check=True)
    printed = defaultdict(list)
    for line in done.stdout.splitlines():
        found = re.match(r"\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+ *\t?(?:\[[-\w]+\])?\s*(.*)", line)
        if found and found[2]:
            printed[int(found[1], 16) & ~15].append(" ".join(found[2].split()))
    for index, raw in enumerate(bundles):
        at = base + 16 * index
        assert [insn.text for insn in bundle_insns(at, raw)] == printed[at], raw.hex()


@given(st.integers(0, 31), words, words, words)
def test_bundles_pack_and_unpack(template: int, first: int, second: int, third: int) -> None:
    bundle = Bundle(template, (first, second, third))
    assert unpack(bundle.pack()) == bundle
    assert unpack(with_slot(bundle, 1, third).pack()).slots == (first, third, third)


def test_slots_follow_each_other() -> None:
    plain, long = Bundle(0, (0, 0, 0)), Bundle(4, (0, 0, 0))
    assert [next_slot(0x100 + slot, plain) for slot in range(3)] == [0x101, 0x102, 0x110]
    assert [next_slot(0x100 + slot, long) for slot in range(2)] == [0x101, 0x110]


def test_a_bundle_knows_its_stops() -> None:
    stops = [
        [Bundle(template, (0, 0, 0)).stop_after(slot) for slot in range(3)]
        for template in (0x00, 0x02, 0x0B, 0x11)
    ]
    assert stops == [
        [False, False, False],
        [False, True, False],
        [True, False, True],
        [False, False, True],
    ]


@given(st.integers(-(1 << 60), (1 << 60) - 1), st.integers(0, 63))
def test_a_long_jump_goes_there(distance: int, qp: int) -> None:
    place = 0x4000_0000_0000_0000
    target = place + 16 * distance & 0xFFFFFFFFFFFFFFFF
    insns = decode_bundle(unpack(long_jump(place, target)))
    assert insns[1].target(place) == target
    assert insns[1].slot == 1


@given(words, words, st.sampled_from("MIFBX"), st.integers(-4096, 4096))
def test_a_moved_instruction_goes_where_it_went(
    word: int, extra: int, unit: str, bundles: int
) -> None:
    insn = decode_slot(unit, word, extra if unit == "X" else 0)
    place, there = 1 << 40, (1 << 40) + 16 * bundles
    try:
        moved = decode_slot(unit, *rebased(insn, there - place))
    except ValueError:
        assert not -(1 << 24) <= (insn.target(place) or 0) - there < 1 << 24
        return
    assert moved.target(there) == insn.target(place)
    assert moved.form == insn.form
    assert moved.qp == insn.qp


def test_words_for_probes() -> None:
    assert parts(decode_slot("B", stop_here(0x81000, 5)), 0) == ("(p05) break.b", "0x81000")
    assert {parts(decode_slot(unit, nop(unit, 7)), 0)[1] for unit in "MIFB"} == {"0x7"}
    assert parts(decode_slot("B", branch(-32, 6)), 0x100) == ("(p06) br.cond.sptk.few", "0xe0")
    value = 0xFEDCBA9876543210
    assert parts(decode_slot("X", *move_long(9, value)), 0) == ("movl", f"r9={value:#x}")
    with pytest.raises(ValueError, match="does not fit"):
        branch(1 << 24)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("adds r1=8192,r2", "M"), ("br.few 0x10", "M"), ("mov r1=r200", "I"), ("nonsense", "B")],
)
def test_what_cannot_be_assembled(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        assemble(text, unit)
