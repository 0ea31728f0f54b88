"""Damage in the parts of real images that are read: an error or other answers, nothing else."""

import random
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import pytest
from kernelimages import AMD64_61, AMD64_612, ARM64_61, kernel_image

from engine.errors import KprobeTuiError
from engine.image.elf import ElfImage
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.orc import OrcTable
from engine.session.kernel.definition_answers import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.patched_rows import patched_rows
from engine.session.kernel.verdict_rows import entry_rows, function_starts, place_rows
from engine.session.protocol.kernels import KernelChoice

LINES = (
    *("p:a/b vfs_read", "p:a/c vfs_read+5 n=+8(%si):u64", "r:a/d vfs_write $retval"),
    *("p vfs_read file count", "p vfs_read n=file->f_inode->i_ino", "t sched_switch"),
    *("p:sched/sched_switch vfs_read", "p vfs_read a=%pd", "p vfs_read $arg*"),
)
PARTS = (
    *((f"__start_{name}", f"__stop_{name}") for name in (
        "__jump_table", "static_call_sites", "__bug_table", "kprobe_blacklist", "mcount_loc",
        "ftrace_events",
    )),
    ("__alt_instructions", "__alt_instructions_end"),
    ("__start_lsm_info", "__end_lsm_info"),
    ("__parainstructions", "__parainstructions_end"),
)  # fmt: skip
OWN = (".kallsyms", ".symtab", ".strtab", ".shstrtab")
"""Sections that were made of what the image has: no damage of its comes there."""


@lru_cache(maxsize=1)
def parts(name: str) -> list[tuple[int, int]]:
    """Position and bytes of what is damaged: sections, and tables that have names."""
    image = kernel_image(name)
    found = [
        (section.offset, section.size)
        for section in image.elf.sections
        if section.size and section.type != 8 and not section.name.startswith(OWN)
    ]
    for first, last in PARTS:
        low, high = image.names.find(first), image.names.find(last)
        at = image.elf.file_offset(low) if low is not None else None
        if at is not None and low is not None and high is not None and low < high:
            found.append((at, high - low))
    return found


def damaged(name: str, chance: random.Random) -> bytes:
    data = bytearray(kernel_image(name).elf.buffer[:])
    at, size = chance.choice(parts(name))
    how = chance.choice(("few", "many", "ones", "zeros", "noise"))
    if how in ("few", "many"):
        for _ in range(3 if how == "few" else 3000):
            data[at + chance.randrange(size)] = chance.randrange(256)
        return bytes(data)
    start = chance.randrange(size)
    count = min(chance.choice((4, 64, 4096, 1 << 20)), size - start)
    fill = {"ones": b"\xff" * count, "zeros": bytes(count), "noise": chance.randbytes(count)}
    data[at + start : at + start + count] = fill[how]
    return bytes(data)


def questions(image: KernelImage, opened: OpenedKernel) -> list[Callable[[], object]]:
    names = image.names
    starts = [names.find(each) or 0 for each in ("vfs_read", "do_exit", "vfs_write")]
    return [
        lambda: list(defined_rows(opened, LINES, sequence=False)),
        opened.missing,
        lambda: [image.elf.once(OrcTable).at(starts[0] + at) for at in range(50)],
        lambda: list(place_rows(opened, starts, together=True)),
        lambda: list(patched_rows(opened, starts[0], starts[0] + 300)),
        lambda: [btf_of(image.elf), image.layout("task_struct")],
        lambda: list(entry_rows(opened, function_starts(opened)[::997])),
        lambda: opened.live_image,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612, ARM64_61])
def test_no_damage_is_a_traceback(name: str, seed: int) -> None:
    data = damaged(name, random.Random(f"{name} {seed}"))
    with suppress(KprobeTuiError):
        image = KernelImage(ElfImage(data, "damaged", "damaged"))
        opened = OpenedKernel(image, KernelChoice())
        for question in questions(image, opened):
            with suppress(KprobeTuiError):
                question()
