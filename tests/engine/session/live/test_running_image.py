"""Images of the kernel that runs here, told from others by their build-ids."""

import struct
from pathlib import Path

import pytest
from kernelimages import AMD64_61, kernel_image

from engine.errors import CommandError
from engine.session.kernel.opened import OpenedKernel
from engine.session.live.running_image import check_running
from engine.session.protocol.kernels import KernelChoice


def note(build_id: bytes) -> bytes:
    """What /sys/kernel/notes begins with, and a note behind it."""
    head = struct.pack("<III4s", 4, len(build_id), 3, b"GNU\0")
    return head + build_id + struct.pack("<III8sI", 6, 4, 0x101, b"Linux\0\0\0", 0)


def test_an_image_of_another_kernel(tmp_path: Path) -> None:
    opened = OpenedKernel(kernel_image(AMD64_61), KernelChoice())
    own = opened.image.elf.build_id
    assert own is not None
    notes = tmp_path / "notes"
    notes.write_bytes(note(bytes.fromhex(own)))
    check_running(opened, notes)
    notes.write_bytes(note(bytes(20)))
    with pytest.raises(CommandError, match=f"not the kernel that runs: its build-id is {own}"):
        check_running(opened, notes)


@pytest.mark.parametrize("data", [b"", note(b"x")[:9], None])
def test_a_kernel_that_does_not_say(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "notes").write_bytes(data)
    check_running(OpenedKernel(kernel_image(AMD64_61), KernelChoice()), tmp_path / "notes")
