"""The words dump, append and restore: bytes of memory in files, and back."""

from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
START = ("break transfer", "run")


def told(*lines: str) -> str:
    text = said(STRUCTS, *START, *lines)
    return text[text.index("if (payment->amount <= 0)\n") + 26 :]


def test_what_is_dumped_can_be_restored_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "name"
    text = told(
        f"dump binary memory {file} payment->from->name payment->from->name+5",
        f"append value {file} (char)33",
        f"restore {file} binary payment->to->name",
        "p payment->to->name",
        f"restore {file} binary payment->to->name 2 4",
        f"restore {file} binary payment->to->name+1 1 99",
        "p payment->to->name",
    )
    raw = file.read_bytes()
    assert raw == b"Grace!"
    assert text.count("Restoring binary file") == 3
    assert f"Restoring binary file {file} into memory (0x" in text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("dump", '"dump" must be followed by: memory, value, binary'),
        (
            "dump ihex memory x 1 2",
            '"dump ihex" is not there: raw bytes are written (dump binary).',
        ),
        ("dump memory", "Missing filename."),
        ("dump memory FILE", "Missing start address."),
        ("dump memory FILE $sp", "Missing stop address."),
        ("dump memory FILE $sp $sp", "Invalid memory address range: start >= end."),
        ("dump memory FILE 0 0x200000000", "8589934592 bytes are too many for a file."),
        ("dump memory FILE 16 32", "Cannot access memory at address 0x10"),
        ("dump value FILE", "No value to dump."),
        ("dump value /nonexistent/x 1", "/nonexistent/x: No such file or directory."),
        ("restore", "Missing filename."),
        ("restore /nonexistent", "Failed to open /nonexistent: No such file or directory."),
    ],
)
def test_errors_leave_no_file(tmp_path: Path, line: str, why: str) -> None:
    file = tmp_path / "dumped"
    assert told(line.replace("FILE", str(file))) == f"! {why}\n"
    assert not file.exists()


def test_files_of_other_forms_are_not_restored(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"abc")
    assert (
        told(f"restore {file}") == f"! Only raw bytes are read: restore {file} binary [OFFSET].\n"
    )
    assert told(f"restore {file} binary $sp 3") == (
        f"! Start address is greater than length of binary file {file}.\n"
    )
    assert told(f"restore {file} binary $sp 2 1") == "! Start must be less than end.\n"
