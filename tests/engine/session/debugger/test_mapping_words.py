"""The memory map by words: what the guest's own /proc/self/maps has, whole and in parts."""

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
HEAD = "          Start Addr           End Addr       Size     Offset  Perms  objfile"


def rows(*words: str) -> list[str]:
    """The lines of the last word's map."""
    text = said(STRUCTS, "break transfer", "run", *words)
    return text.rpartition(HEAD)[2].strip("\n").splitlines()


def test_vmmap_is_the_map_of_info_proc() -> None:
    every = rows("vmmap")
    assert every == rows("info proc mappings")
    assert [line.split()[4:] for line in every if "structs" in line] == [
        ["r-xp", STRUCTS.guest],
        ["rw-p", STRUCTS.guest],
    ]


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("stack", ["[stack]"]),
        ("rw", [STRUCTS.guest, "[stack]"]),
        ("$sp", ["[stack]"]),
        ("&grace", [STRUCTS.guest]),
        ("0x400000", [STRUCTS.guest]),
    ],
)
def test_a_part_by_file_permissions_or_address(part: str, names: list[str]) -> None:
    assert [line.split()[5] for line in rows(f"vmmap {part}")] == names


def test_what_is_not_there_says_so() -> None:
    assert said(STRUCTS, "vmmap") == "! The program is not being run.\n"
    assert "! Nothing is mapped at 0x8.\n" in said(STRUCTS, "starti", "vmmap 8")
    told = said(STRUCTS, "starti", "vmmap nosuch")
    assert '! Nothing mapped is called "nosuch", and: No symbol "nosuch" in current' in told
