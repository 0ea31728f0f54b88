"""Notes of static probes, sound and damaged."""

import struct
from pathlib import Path

import pytest
from guestrun import run
from markerkit import BASE, CODE, DATA, Note, file_with, image_with

from engine.image import ElfImage
from engine.image.sdt import StaticProbe, static_probes

SOUND = Note()
OTHER = Note(provider=b"ark", name=b"gone", arguments=b"", address=CODE + 4)


def test_a_note_is_read_whole() -> None:
    image = image_with(Note(semaphore=DATA + 6), OTHER)

    assert static_probes(image) == (
        StaticProbe("zoo", "fed", CODE + 1, DATA + 6, "-4@%edi"),
        StaticProbe("ark", "gone", CODE + 4, 0, ""),
    )
    assert image.damage.found() == ()


def test_addresses_move_with_the_base_section() -> None:
    """Prelink moves sections without the notes; the semaphore moves, too, none does not."""
    moved = Note(address=CODE + 1 - 0x5000, base=BASE - 0x5000, semaphore=DATA - 0x5000)
    without = Note(address=CODE + 1 - 0x5000, base=BASE - 0x5000)

    first, second = static_probes(image_with(moved, without))

    assert (first.address, first.semaphore) == (CODE + 1, DATA)
    assert (second.address, second.semaphore) == (CODE + 1, 0)


def test_without_a_base_section_nothing_moves() -> None:
    raw = file_with(Note(base=0x1234).raw, base=False)
    (probe,) = static_probes(ElfImage.from_bytes(raw, "zoo"))

    assert probe.address == CODE + 1


def test_notes_of_others_are_passed_by() -> None:
    image = image_with(Note(kind=1), Note(owner=b"GNU\0"), SOUND)

    assert [probe.name for probe in static_probes(image)] == ["fed"]
    assert image.damage.found() == ()


DAMAGED = {
    "no provider": (Note(provider=b""), "it has no provider"),
    "no name": (Note(name=b""), "it has no name"),
    "endless text": (Note(ending=b""), "its three texts do not end"),
    "one text": (Note(name=b"", arguments=b"", ending=b"", provider=b"zoo"), "texts do not end"),
    "long name": (Note(name=b"x" * 300), "its name has more than 256 characters"),
    "long provider": (Note(provider=b"x" * 70_000), "its provider has more than 256 characters"),
    "escape": (Note(name=b"\x1b[31mred"), "its name is no text"),
    "newline": (Note(provider=b"zoo\nzoo"), "its provider is no text"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_note_is_told_and_left_out(case: str) -> None:
    note, why = DAMAGED[case]
    image = image_with(note, OTHER)

    assert [probe.name for probe in static_probes(image)] == ["gone"]
    (told,) = image.damage.found()
    assert told.startswith("zoo: .note.stapsdt: the note at 0x0")
    assert why in told


def test_a_note_without_room_for_addresses_is_told() -> None:
    head = struct.pack("<III", 8, 20, 3) + b"stapsdt\0" + bytes(20)
    image = ElfImage.from_bytes(file_with(head + OTHER.raw), "zoo")

    assert [probe.name for probe in static_probes(image)] == ["gone"]
    assert "20 bytes are too few for three addresses" in image.damage.found()[0]


@pytest.mark.parametrize("field", ["owner_size", "size"])
@pytest.mark.parametrize("claim", [0x1000, 0x7FFFFFFF, 0xFFFFFFFC, 0xFFFFFFFF])
def test_a_huge_claim_ends_the_notes(field: str, claim: int) -> None:
    bad = Note(size=claim) if field == "size" else Note(owner_size=claim)
    image = ElfImage.from_bytes(file_with(OTHER.raw + bad.raw), "zoo")

    assert [probe.name for probe in static_probes(image)] == ["gone"]
    (told,) = image.damage.found()
    assert f"the note at {len(OTHER.raw):#x} says that it has" in told


@pytest.mark.parametrize("kept", range(1, len(SOUND.raw), 5))
def test_a_cut_note_is_told(kept: int) -> None:
    image = ElfImage.from_bytes(file_with(OTHER.raw + SOUND.raw[:kept]), "zoo")

    assert [probe.name for probe in static_probes(image)] == ["gone"]
    (told,) = image.damage.found()
    assert f"the note at {len(OTHER.raw):#x}" in told


def test_padding_at_the_end_is_no_damage() -> None:
    image = ElfImage.from_bytes(file_with(SOUND.raw + bytes(8)), "zoo")

    assert len(static_probes(image)) == 1
    assert image.damage.found() == ()


@pytest.mark.parametrize("size", [1 << 20, 1 << 62, (1 << 64) - 1])
def test_a_section_beyond_the_file_is_read_as_far_as_it_goes(size: int) -> None:
    image = ElfImage.from_bytes(file_with(SOUND.raw, size=size), "zoo")

    assert static_probes(image)[0].name == "fed"
    assert "reaches beyond the end of the file" in image.damage.found()[0]


def test_more_notes_than_any_program_has_are_not_all_read() -> None:
    image = ElfImage.from_bytes(file_with(OTHER.raw * 70_000), "zoo")

    assert len(static_probes(image)) == 1 << 16
    assert "more than 65536 notes" in image.damage.found()[0]


def test_arguments_cannot_write_on_a_terminal() -> None:
    (probe,) = static_probes(image_with(Note(arguments=b"-4@\x1b[2J%edi")))

    assert probe.arguments == "-4@\\x1b[2J%edi"


@pytest.mark.parametrize("seed", range(12))
def test_random_notes_never_crash_the_list(tmp_path: Path, seed: int) -> None:
    import random

    draw = random.Random(seed)
    raw = bytearray(b"".join(Note(name=b"n%d" % n).raw for n in range(8)))
    for _ in range(draw.randrange(1, 30)):
        raw[draw.randrange(len(raw))] = draw.randrange(256)
    if draw.random() < 0.5:
        at = draw.randrange(0, len(raw) - 4, 4)
        struct.pack_into("<I", raw, at, draw.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF)))
    program = tmp_path / "zoo"
    program.write_bytes(file_with(bytes(raw)))

    done = run("check", "--list", "zoo", cwd=tmp_path)

    assert done.code == 0
    assert "Traceback" not in done.err
    assert all(line.startswith(("sdt_", "    arg")) for line in done.out.splitlines())
