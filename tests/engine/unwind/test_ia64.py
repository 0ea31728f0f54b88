"""IA-64: descriptors against binutils, backtraces against recorded runs."""

import gzip
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ia64replay import DATA, replay

from engine.arch.ia64 import rse
from engine.arch.ia64.registers import REGISTERS
from engine.errors import ImageError
from engine.image import ElfImage
from engine.image.ia64unwind import descriptors, info_of, parse_info, unwind_entries
from engine.image.ia64unwindtext import text
from engine.unwind.ia64 import row_at
from engine.unwind.rows import (
    AtCfa,
    AtRegister,
    CfaRegister,
    CfiRow,
    InRegister,
    Undefined,
    WhenBit,
)
from engine.unwind.unwinder import EndReason

PRESERVED_PREDICATES = 0xFFFF_FFFF_FFFF_003F
"""p0 to p5 and p16 up; a call may lose the others."""


def test_descriptors_of_compilers_and_hands() -> None:
    count = 0
    with gzip.open(DATA / "unwind_desc.jsonl.gz", "rt") as lines:
        for line in lines:
            known = json.loads(line)
            info = parse_info(bytes.fromhex(known["hex"]))
            assert [text(one) for one in info.descriptors] == known["d"]
            assert (info.version, hex(info.flags)) == (1, known["flags"])
            count += 1
    assert count == 613


@pytest.mark.parametrize("name", ["a_rp", "a_rse", "deep_O2", "tail_O0", "fptr_O3"])
def test_backtraces_at_every_slot(name: str) -> None:
    points = 0
    for guest, walk, frames in replay(name):
        found = walk()
        # Before its directive is in force the start code's return address is just 0.
        assert found.end.reason in (EndReason.OUTERMOST, EndReason.ZERO)
        assert len(found.frames) == len(frames)
        for depth, (mine, known) in enumerate(zip(found.frames, frames, strict=True)):
            ip, slot, function, sp, bsp, cfm, saved = known
            registers = mine.registers
            assert (mine.pc, registers["r12"]) == (int(ip, 16) + slot, int(sp, 16))
            assert (registers["bsp"], registers["cfm"]) == (int(bsp, 16), int(cfm, 16))
            symbol = guest.module.symbol_at(mine.place)
            # A label inside of a function is the recording's name for one of its places.
            name_here = symbol.name if symbol else ""
            assert name_here == function or function == "rp_trampoline"
            if saved is None:
                continue
            assert depth
            assert not (registers["pr"] ^ int(saved["pr"], 16)) & PRESERVED_PREDICATES
            assert registers["lc"] == int(saved["lc"], 16)
            for register in ("r4", "r5", "r6", "r7", "b1", "b2", "b3", "b4", "b5"):
                assert registers[register] == int(saved.get(register, "0"), 16)
        points += 1
    assert points > 30


@pytest.mark.parametrize("name", ["a_rse", "deep_O2", "tail_O0", "fptr_O3"])
def test_backtraces_with_a_return_probe_on_every_function(name: str) -> None:
    """Wherever the return address went, the trampoline stands there instead."""
    caught = 0
    for guest, walk, frames in replay(name, hooked=True):
        found = walk()
        assert [frame.pc for frame in found.frames] == [
            int(ip, 16) + slot for ip, slot, *_ in frames
        ]
        assert [frame.registers["bsp"] for frame in found.frames] == [
            int(known[4], 16) for known in frames
        ]
        assert all(frame.trampoline for frame in found.frames[1:])
        caught += len(found.frames) - 1
        assert guest.hooked
    assert caught > 100


def test_locals_of_outer_frames_come_back() -> None:
    """What a frame held at its call is what the unwinder finds in it."""
    compared = 0
    for guest, walk, frames in replay("deep_O2"):
        if len(frames) < 3:
            continue
        for outer in walk().frames[1:]:
            bsp, sol = outer.registers["bsp"], rse.locals_size(outer.registers["cfm"])
            for number in range(sol):
                word = guest.store[rse.skip_up(bsp, number)]
                assert outer.registers[f"r{32 + number}"] == word
                compared += 1
    assert compared > 1000


# -- the backing store -----------------------------------------------------------------------


def up_slowly(bsp: int, count: int) -> int:
    for _ in range(count):
        bsp += 8
        if bsp >> 3 & 63 == 63:
            bsp += 8
    return bsp


@given(st.integers(0, 200), st.integers(0, 300))
def test_backing_store_skips_nat_collections(start: int, count: int) -> None:
    bsp = 0x6000_0000_0000_0000 + 8 * start
    if start % 64 == 63:
        bsp += 8
    assert rse.skip_up(bsp, count) == up_slowly(bsp, count)
    assert rse.skip_down(up_slowly(bsp, count), count) == bsp


@given(st.integers(0, 63), st.integers(0, 96))
def test_stacked_registers_are_read_around_collections(start: int, count: int) -> None:
    bsp = 0x1000 + 8 * start
    bsp += 8 if start == 63 else 0
    words = {rse.skip_up(bsp, number): number + 1 for number in range(count)}

    def read(address: int, size: int) -> bytes:
        places = range(address, address + size, 8)
        return b"".join(words.get(place, 0xBAD).to_bytes(8, "little") for place in places)

    assert rse.stacked(bsp, count, read) == list(range(1, count + 1))


# -- single descriptors ----------------------------------------------------------------------


def row(raw: str, slot: int) -> CfiRow:
    return row_at(tuple(descriptors(bytes.fromhex(raw))), slot)


def test_a_save_is_in_force_behind_its_slot() -> None:
    # R1 prologue 6, mem_stack_f(t=1, 32 bytes), rp_when 2, rp_gr r33, body 6, epilogue t=1
    code = "06 e0 01 02 e4 02 b0 a1 26 c0 01"
    assert [row(code, slot).cfa for slot in (0, 1, 2)] == [
        CfaRegister("r12", 0),
        CfaRegister("r12", 0),
        CfaRegister("r12", 32),
    ]
    assert [row(code, slot).rules.get("b0") for slot in (2, 3)] == [None, InRegister("r33")]
    assert row(code, 10).cfa == CfaRegister("r12", 32)
    assert row(code, 11).cfa == CfaRegister("r12", 0)  # the frame has been taken down
    assert row(code, 11).rules["b0"] == InRegister("r33")


def test_the_later_of_two_saves_wins() -> None:
    # unat_when 1, unat_gr r14; unat_when 3, unat_sprel 160
    code = "06 ec 01 b2 0e ec 03 f0 05 28"
    assert [row(code, slot).rules.get("unat") for slot in (1, 2, 3, 4)] == [
        None,
        InRegister("r14"),
        InRegister("r14"),
        AtRegister("r12", 160),
    ]


def test_the_spill_area_is_laid_out_downwards() -> None:
    # prologue 8, frame 176; P5 r4 r5 f2; P1 b1; spill mask: slots 4 r, 5 f, 6 b, 7 r
    code = "08 e0 00 0b b9 30 00 01 81 b8 00 9e"
    rules = row(code, 8).rules
    assert rules["f2"] == AtCfa(0, 16)
    assert rules["b1"] == AtCfa(-8)
    assert rules["r5"] == AtCfa(-16)
    assert rules["r4"] == AtCfa(-24)
    assert "f2" not in row(code, 5).rules
    assert "f2" in row(code, 6).rules


def test_predicated_saves_depend_on_their_predicate() -> None:
    # X4: r5 is saved in r51 under p7 at slot 1; X4 restore under p7 at slot 4
    code = "08 fc 07 05 33 01 fc 07 05 00 04"
    assert row(code, 2).rules["r5"] == WhenBit("pr", 7, InRegister("r51"), None)
    assert "r5" not in row(code, 1).rules


def test_labels_bring_a_state_back() -> None:
    # prologue 3 with frame 32; body 4: label 1, epilogue at its end; body 4: copy 1
    code = "03 e0 00 02 24 81 c0 00 24 a1"
    assert row(code, 5).cfa == CfaRegister("r12", 32)
    assert row(code, 8).cfa == CfaRegister("r12", 32)
    plain = "03 e0 00 02 24 c0 00 24"
    assert row(plain, 8).cfa == CfaRegister("r12", 0)


def test_no_caller_where_the_return_address_is_r0() -> None:
    assert isinstance(row("01 e4 00 b0 80 24", 1).rules["b0"], Undefined)


@pytest.mark.parametrize("raw", ["47", "e0", "bf00", "80ff", "f01f00", "b8", "4f"])
def test_damage_is_an_image_error(raw: str) -> None:
    with pytest.raises(ImageError):
        tuple(descriptors(bytes.fromhex("05" + raw)))


@given(st.binary(max_size=40))
def test_any_bytes_are_descriptors_or_damage(data: bytes) -> None:
    try:
        found = tuple(descriptors(data))
    except ImageError:
        return
    for slot in (0, 1, 7, 40):
        names = {register.name for register in REGISTERS}
        rules = row_at(found, slot).rules
        assert all(name in names or name[0] in "rfb" for name in rules)
    assert all(text(one) for one in found)


# -- against binutils --------------------------------------------------------------------------


class Blocks:
    """Random information blocks with every descriptor."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self) -> bytes:
        below = self.random.choice((8, 128, 1 << 14, 1 << 20))
        return self.encoded(self.random.randrange(below))

    @staticmethod
    def encoded(value: int) -> bytes:
        found = bytearray()
        while value > 127:
            found.append(value & 127 | 128)
            value >>= 7
        return bytes((*found, value))

    def extended(self) -> bytes:
        rnd = self.random
        bank = rnd.randrange(4)
        number = rnd.choice(((4, 7), (2, 31), (1, 5), (0, 10))[bank])
        register, high = bank << 5 | number, rnd.randrange(2) << 7
        target = rnd.choice((0, rnd.randrange(32), rnd.randrange(128) | 128, rnd.randrange(8)))
        qp = rnd.randrange(1, 64)
        return rnd.choice(
            (
                lambda: bytes((0xF9, high | register)) + self.number() + self.number(),
                lambda: bytes((0xFA, high | register, target)) + self.number(),
                lambda: bytes((0xFB, high | qp, register)) + self.number() + self.number(),
                lambda: bytes((0xFC, qp, high | register, target)) + self.number(),
            )
        )()

    def body(self) -> bytes:
        rnd = self.random
        return rnd.choice(
            (
                lambda: bytes((0x80 | rnd.randrange(64),)),
                lambda: bytes((0xC0 | rnd.randrange(32),)) + self.number(),
                lambda: b"\xe0" + self.number() + self.number(),
                lambda: rnd.choice((b"\xf0", b"\xf8")) + self.number(),
            )
        )()

    def prologue(self, length: int) -> bytes:
        rnd = self.random

        def p3() -> bytes:
            which = rnd.randrange(12)
            number = rnd.randrange(8 if which == 6 else 128)
            return bytes((0xB0 | which >> 1, (which & 1) << 7 | number))

        def p7() -> bytes:
            which = rnd.randrange(16)
            return bytes((0xE0 | which,)) + self.number() + (b"" if which else self.number())

        return rnd.choice(
            (
                lambda: bytes((0x80 | rnd.randrange(32),)),
                lambda: bytes((0xA0 | rnd.randrange(16), rnd.randrange(256))),
                p3,
                lambda: b"\xb8" + rnd.randbytes((2 * length + 7) // 8),
                lambda: b"\xb9" + rnd.randbytes(3),
                lambda: bytes((0xC0 | rnd.randrange(32),)),
                p7,
                lambda: bytes((0xF0, rnd.randrange(1, 20))) + self.number(),
                lambda: bytes((0xF1, rnd.randrange(16), rnd.randrange(128))),
                lambda: bytes((0xFF, rnd.randrange(6), rnd.randrange(256))),
            )
        )()

    def region(self) -> tuple[bytes, bool, int]:
        rnd = self.random
        body, length = rnd.random() < 0.4, rnd.randrange(300)
        if length < 32:
            return bytes((body << 5 | length,)), body, length
        if not body and rnd.random() < 0.5:
            head = bytes((0x40 | rnd.randrange(8), rnd.randrange(256)))
            return head + self.encoded(length), body, length
        return bytes((0x60 | body,)) + self.encoded(length), body, length

    def block(self) -> bytes:
        made, body, length = self.region()
        for _ in range(self.random.randrange(18)):
            if self.random.random() < 0.2:
                more, body, length = self.region()
            elif self.random.random() < 0.2:
                more = self.extended()
            else:
                more = self.body() if body else self.prologue(length)
            made += more
        return made + bytes(-len(made) % 8)


def test_descriptors_as_readelf_reads_them(tmp_path: Path) -> None:
    tools = [shutil.which(f"ia64-linux-gnu-{tool}") for tool in ("as", "ld", "readelf")]
    if not all(tools):
        pytest.skip("binutils-ia64-linux-gnu is not installed")
    assembler, linker, readelf = (str(tool) for tool in tools)
    random_blocks = Blocks(20050814)
    code, info = [".text", ".global _start#", "_start:"], ['.section .IA_64.unwind_info,"a"']
    table = ['.section .IA_64.unwind,"ao","unwind"']
    for number in range(400):
        block = random_blocks.block()
        code += [f"f{number}:", "{ .mii; nop 0; nop 0; nop 0; }", f"e{number}:"]
        info += [f"i{number}: data8 {1 << 48 | len(block) // 8:#x}"]
        info += ["data1 " + ", ".join(map(str, block))]
        table += [f"data8.ua @segrel({name}{number}#)" for name in "fei"]
    source, item, program = (tmp_path / name for name in ("u.s", "u.o", "u"))
    source.write_text("\n".join([*code, *info, *table, ""]))
    subprocess.run([assembler, source, "-o", item], check=True, capture_output=True)
    subprocess.run([linker, item, "-o", program], check=True, capture_output=True)
    listing = subprocess.run(
        [readelf, "-u", program], check=True, capture_output=True, text=True
    ).stdout
    known: list[list[str]] = []
    for line in listing.splitlines():
        if line.startswith("<"):
            known.append([])
        elif re.match(r"\s+[RPBX]\d+:", line):
            known[-1].append(line.strip())
    image = ElfImage.open(program)
    found = [[text(one) for one in info_of(image, e).descriptors] for e in unwind_entries(image)]
    assert len(found) == 400
    assert found == known
