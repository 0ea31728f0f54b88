"""Starting a program: what fs/binfmt_elf.c does, with address randomisation off."""

import errno
import struct
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import ImageError
from engine.guest.backing import ImageBacking
from engine.guest.memory import MappingError, Memory, page_up
from engine.guest.modules import Module, Modules
from engine.image import ElfImage, Segment
from engine.linux.vdso import map_vdso

_PF_X, _PF_W, _PF_R = 1, 2, 4
_STACK_GAP: Final = 8
GUARD_GAP: Final = 256 * PAGE
"""Bytes that stay free below the stack (stack_guard_gap)."""
_STACK_EXPANDED: Final = 32 * PAGE
"""Bytes below the arguments that a stack has from the start (setup_arg_pages)."""
STACK: Final = "[stack]"
"""Name of the mappings that the first thread's stack is in."""
_CODE_SHARE: Final = 6
"""Times a program's code that room for detours is to have: small functions take more."""
_MAX_ARGUMENTS: Final = 32 * PAGE * 32  # MAX_ARG_PAGES' successor: a quarter of 8 MiB is 2 MiB

AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_FLAGS, AT_ENTRY = 3, 4, 5, 6, 7, 8, 9
AT_UID, AT_EUID, AT_GID, AT_EGID, AT_PLATFORM, AT_HWCAP, AT_CLKTCK = 11, 12, 13, 14, 15, 16, 17
AT_SECURE, AT_RANDOM, AT_HWCAP2, AT_EXECFN, AT_MINSIGSTKSZ = 23, 25, 26, 31, 51
AT_SYSINFO_EHDR = 33


class Executable(Struct, frozen=True):
    """A program as the kernel will start it.

    Attributes:
        image: the file.
        path: its guest path.
        interpreter: the loader that its PT_INTERP names, opened, or None.
        interpreter_path: its guest path.
        name: the path as execve was given it (AT_EXECFN); `path` if empty.
        inodes: (device, inode) of the file and of the loader, as mappings show them.
    """

    image: ElfImage
    path: str
    interpreter: ElfImage | None = None
    interpreter_path: str = ""
    name: str = ""
    inodes: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))


class Start(Struct, frozen=True):
    """The start of a loaded program.

    Attributes:
        pc: first instruction.
        sp: stack pointer.
        heap: end of the program's data: where brk starts.
        auxv: the auxiliary vector as bytes.
        code: (start, end) of the program's text.
        returns: address of the kernel's code that signal handlers return to; 0 for none.
        stack: the lowest address that the stack may grow down to, and its present one.
    """

    pc: int
    sp: int
    heap: int
    auxv: bytes
    code: tuple[int, int]
    returns: int = 0
    stack: tuple[int, int] = (0, 0)


def perms_of(segment: Segment) -> int:
    """The permissions that a segment asks for."""
    flags = segment.flags
    return (
        (READ if flags & _PF_R else 0)
        | (WRITE if flags & _PF_W else 0)
        | (EXECUTE if flags & _PF_X else 0)
    )


def load(
    program: Executable,
    arch: Arch,
    memory: Memory,
    modules: Modules,
    *,
    argv: Sequence[bytes],
    env: Sequence[bytes],
    random: bytes,
    identity: tuple[int, int],
    stack_size: int,
    ahead: int,
) -> Start:
    """Map a program with its interpreter, stack and vDSO.

    `ahead` is what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, in nanoseconds.

    Raises:
        ImageError: it cannot be mapped where it says, or arguments are too long.
    """
    plan = arch.plan
    image = program.image
    base = 0
    if image.kind == "dyn":
        base = plan.pie_base & -_alignment(image)
        base -= image.low & -PAGE
    reserve_windows(arch, memory)
    main = _map_image(image, base, memory, program.path, program.inodes[0])
    modules.add(main)
    entry, interpreter_base = base + image.entry, 0
    if program.interpreter is not None:
        loader = program.interpreter
        interpreter_base = _place_interpreter(loader, memory)
        path = program.interpreter_path
        inode = program.inodes[1]
        modules.add(_map_image(loader, interpreter_base, memory, path, inode))
        entry = interpreter_base + loader.entry
    stack_perms = READ | WRITE | (EXECUTE if image.stack_executable else 0)
    bottom = plan.stack_top - min(page_up(stack_size), _stack_room(memory))
    memory.map(bottom, plan.stack_top - bottom, stack_perms, name=STACK)
    if plan.register_stack[1]:
        memory.map(*plan.register_stack, READ | WRITE)
    reserve_beside(image, base, arch, memory)
    vdso = map_vdso(arch, memory, modules, ahead)
    heap = page_up(base + image.high)
    text = [s for s in image.load_segments if s.flags & _PF_X] or list(image.load_segments)
    code = (base + text[0].vaddr, base + text[0].vaddr + text[0].filesz)
    auxiliary = [
        *([(AT_SYSINFO_EHDR, vdso.base)] if vdso is not None else []),
        (AT_HWCAP, arch.linux.hwcap[0]),
        (AT_PAGESZ, PAGE),
        (AT_CLKTCK, 100),
        (AT_PHDR, base + _header_address(image)),
        (AT_PHENT, image.phentsize),
        (AT_PHNUM, image.phnum),
        (AT_BASE, interpreter_base),
        (AT_FLAGS, 0),
        (AT_ENTRY, base + image.entry),
        (AT_UID, identity[0]),
        (AT_EUID, identity[0]),
        (AT_GID, identity[1]),
        (AT_EGID, identity[1]),
        (AT_SECURE, 0),
        (AT_HWCAP2, arch.linux.hwcap[1]),
        (AT_MINSIGSTKSZ, arch.linux.signals.minimum_stack),
    ]
    sp, auxv, strings = _build_stack(
        arch, memory, program.name or program.path, argv, env, random, auxiliary
    )
    low = max(bottom, (strings & -PAGE) - _STACK_EXPANDED)
    returns = vdso.returns if vdso is not None else 0
    return Start(entry, sp, heap, auxv, code, returns, (bottom, low))


def _stack_room(memory: Memory) -> int:
    """The largest stack that there is room for, whatever the limit allows."""
    top = memory.plan.stack_top
    below = max(mapping.end for mapping in memory.mappings if mapping.end <= top)
    return top - below - GUARD_GAP


def _alignment(image: ElfImage) -> int:
    """The largest sensible alignment of the loadable segments."""
    best = PAGE
    for segment in image.load_segments:
        align = segment.align
        if align & (align - 1) == 0 and best < align <= 1 << 30:
            best = align
    return best


def _header_address(image: ElfImage) -> int:
    """Link address of the program headers (AT_PHDR)."""
    for segment in image.load_segments:
        if segment.offset <= image.phoff < segment.offset + segment.filesz:
            return image.phoff - segment.offset + segment.vaddr
    return 0


def _map_image(
    image: ElfImage, base: int, memory: Memory, path: str, inode: tuple[int, int]
) -> Module:
    plan = memory.plan
    image.validate_for_task(plan.task_size, base)
    backing = ImageBacking(image)
    for index, segment in enumerate(image.load_segments):
        start = base + segment.vaddr
        first = start & -PAGE
        skip = start - first
        file_end = start + segment.filesz
        end = page_up(start + segment.memsz)
        if first < plan.mmap_min and segment.memsz:
            raise ImageError(
                f"{path}: loadable segment {index} wants address {first:#x}, below the lowest "
                f"that Linux lets a program map ({plan.mmap_min:#x})"
            )
        perms = perms_of(segment)
        try:
            if segment.filesz:
                size = page_up(file_end) - first
                offset = segment.offset - skip
                memory.map(
                    *(first, size, perms),
                    name=path,
                    backing=backing,
                    offset=offset,
                    inode=inode,
                )
            mapped = page_up(file_end) if segment.filesz else first
            if end > mapped:
                memory.map(mapped, end - mapped, perms)
            if segment.filesz and segment.memsz > segment.filesz and perms & WRITE:
                tail = min(page_up(file_end), start + segment.memsz) - file_end
                zero_to = page_up(file_end) - file_end
                if memory.accessible(file_end, max(tail, zero_to), False):
                    memory.poke(file_end, bytes(zero_to))
        except MappingError as error:
            reason = (
                "a guest can map 64 GiB and touch what --memory allows"
                if error.code == errno.ENOMEM
                else "it overlaps the engine's own windows"
            )
            raise ImageError(
                f"{path}: loadable segment {index} ({segment.memsz:#x} bytes at {start:#x}) "
                f"cannot be mapped: {reason}"
            ) from error
    return Module(path, image, base)


def _place_interpreter(image: ElfImage, memory: Memory) -> int:
    """Load bias of the interpreter: an ET_EXEC one stands where it was linked."""
    if image.kind == "exec":
        return 0
    low = image.low & -PAGE
    align = _alignment(image)
    size = page_up(image.high) - low
    where = memory.free_range(size + align - PAGE)
    if where is None:
        raise ImageError("no room for the interpreter in the guest's address space")
    return ((where + align - PAGE) & -align) - low


def reserve_windows(arch: Arch, memory: Memory) -> None:
    """The engine's own windows, and in the first the signal-return code that no vDSO has."""
    plan, vdso = arch.plan, arch.linux.vdso
    start, size = plan.trampoline
    memory.map(start, PAGE, READ | EXECUTE, name="[kprobe-tui:trampoline]", reserved=True)
    if vdso is None or not vdso.returns:
        memory.poke(start, arch.linux.signals.return_code)
    memory.map(start + PAGE, size - PAGE, 0, name="[kprobe-tui:trampoline]", reserved=True)
    memory.map(*plan.xol, 0, name="[kprobe-tui:xol]", reserved=True)
    memory.map(*plan.detour, 0, name="[kprobe-tui:detour]", reserved=True)


def reserve_beside(image: ElfImage, base: int, arch: Arch, memory: Memory) -> None:
    """A window for detours below the program, within branch reach of its text.

    Much code that is linked to low addresses has its window above, where the heap may grow up to.
    """
    size = arch.plan.image_detour_size
    end = base + image.low & -PAGE
    start = max(end - size, 1 << 20)
    code = sum(segment.filesz for segment in image.load_segments if segment.flags & _PF_X)
    high = arch.plan.image_detour_high
    if base + image.high < high and code * _CODE_SHARE > end - start < size:
        start, end = high, high + size
    for mapping in memory.mappings:
        if mapping.start < end and mapping.end > start:
            start = mapping.end
    if start < end:
        memory.map(start, end - start, 0, name="[kprobe-tui:detour]", reserved=True)


def _build_stack(
    arch: Arch,
    memory: Memory,
    path: str,
    argv: Sequence[bytes],
    env: Sequence[bytes],
    random: bytes,
    auxiliary: list[tuple[int, int]],
) -> tuple[int, bytes, int]:
    """Write strings, then the auxiliary vector, environment, arguments and their count.

    Returns:
        The stack pointer, the auxiliary vector, and the address of the lowest argument.
    """
    if sum(len(word) + 9 for word in (*argv, *env)) > _MAX_ARGUMENTS:
        raise ImageError("arguments and environment are too long (2 MiB is Linux's limit)")
    at = arch.plan.stack_top - _STACK_GAP

    def push(data: bytes) -> int:
        nonlocal at
        at -= len(data)
        memory.write(at, data)
        return at

    execfn = push(path.encode(errors="surrogateescape") + b"\0")
    env_at = [push(word + b"\0") for word in reversed(env)][::-1]
    argv_at = [push(word + b"\0") for word in reversed(argv)][::-1]
    strings = at
    platform = push(arch.linux.platform + b"\0") if arch.linux.platform else 0
    at &= -16
    random_at = push(random[:16])
    vector = [
        *auxiliary,
        (AT_RANDOM, random_at),
        (AT_EXECFN, execfn),
        *([(AT_PLATFORM, platform)] if platform else []),
        (0, 0),
    ]
    auxv = b"".join(struct.pack("<QQ", key, value) for key, value in vector)
    table = (
        struct.pack(
            f"<{len(argv_at) + 2 + len(env_at) + 1}Q", len(argv_at), *argv_at, 0, *env_at, 0
        )
        + auxv
    )
    at = (at - len(table)) & -arch.stack_alignment
    memory.write(at, table)
    return at - arch.linux.start_scratch, auxv, strings
