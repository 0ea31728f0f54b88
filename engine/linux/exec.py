"""execve: another program in the place of this one (fs/exec.c, fs/binfmt_script.c)."""

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.arch import for_elf
from engine.errors import ImageError
from engine.guest.hooks import SpaceHooks
from engine.guest.memory import MappingError
from engine.image import ElfImage
from engine.linux import futex, loader, reaping, shm
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import MAY_EXEC
from engine.linux.fs.calls import base_of
from engine.linux.fs.links import MagicLink, SymlinkNode
from engine.linux.fs.pseudo import PseudoDirectory
from engine.linux.fs.vfs import OpenFile, path_shown
from engine.linux.signals import SIGCHLD, SIGKILL, SS_DISABLE, SignalHand
from engine.linux.space import AddressSpace, ExecutedFile
from engine.linux.thread import Thread

_AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW = -100, 0x1000, 0x100
_MOST: Final = 1 << 21
"""Bytes of arguments and environment."""
_SCRIPTS: Final = 5
"""Scripts whose interpreters are scripts."""
_LINE: Final = 256
_IMAGE_MAX: Final = 1 << 30
_DELETED: Final = b" (deleted)"


class ExecRequest(Struct, frozen=True):
    """A program to begin.

    Attributes:
        file: the opened file.
        path: the path as it was given, or one that leads to the file.
        real: the file's own path.
        name: the last part of it.
        program: the file.
        argv: the arguments.
        env: the environment.
    """

    file: OpenFile
    path: bytes
    real: bytes
    name: bytes
    program: ExecutedFile
    argv: tuple[bytes, ...]
    env: tuple[bytes, ...]


def execve(k: Thread, path: int, argv: int, env: int) -> int:
    """Begin the program of a path."""
    return _execve(k, _AT_FDCWD, k.memory.read_cstring(path), argv, env, 0)


def execveat(k: Thread, directory: int, path: int, argv: int, env: int, flags: int) -> int:
    """The same, from a directory or of an open file."""
    if flags & ~(_AT_EMPTY_PATH | _AT_SYMLINK_NOFOLLOW):
        raise LinuxError(errno.EINVAL)
    return _execve(k, s32(directory), k.memory.read_cstring(path), argv, env, flags)


def _execve(k: Thread, directory: int, path: bytes, argv: int, env: int, flags: int) -> int:
    request = _request(k, directory, path, flags, _words(k, argv), _words(k, env))
    name = os.path.basename(path) or request.name
    for _ in range(_SCRIPTS + 1):
        head = request.file.mmap_source().read(0, _LINE)
        if not head.startswith(b"#!"):
            break
        request = _interpreted(k, request, head)
    else:
        raise LinuxError(errno.ELOOP)
    space, start = _loaded(k, request)
    before = k.tid
    _begin(k, space, start, name)
    for listener in k.machine.moments.executed:
        listener(k, before, path or request.path)
    if k.tracee is not None:
        k.tracee.executed(before)
    return 0


def _words(k: Thread, address: int) -> tuple[bytes, ...]:
    """The strings of an array that ends with a null pointer; a null array is empty."""
    found: list[bytes] = []
    total = 0
    while address:
        pointer = int.from_bytes(k.memory.read(address, 8), "little")
        if not pointer:
            break
        word = k.memory.read_cstring(pointer, _MOST)
        total += len(word) + 9
        if total > _MOST:
            raise LinuxError(errno.E2BIG)
        found.append(word)
        address += 8
    return tuple(found)


def _request(
    k: Thread,
    directory: int,
    path: bytes,
    flags: int,
    argv: tuple[bytes, ...],
    env: tuple[bytes, ...],
) -> ExecRequest:
    if not path and flags & _AT_EMPTY_PATH:
        file = k.files.get(directory)
        node = file.node
        if node is None:
            raise LinuxError(errno.EACCES)
        shown: Callable[[], bytes]
        if file.place is None:  # one in memory: its title does not change
            shown = partial(bytes, file.title)
            real = file.title
            name = real.removesuffix(_DELETED)
        else:
            shown = partial(path_shown, *file.place, node)
            real = name = file.place[0].path_of(file.place[1])
        path = b"/dev/fd/%d" % directory
    else:
        follow = not flags & _AT_SYMLINK_NOFOLLOW
        place = k.fs.walk(base_of(k, directory, path), path, follow=follow)
        node = place.existing()
        proc = isinstance(place.parent, PseudoDirectory)
        link = place.parent.lookup(place.name) if proc else None
        if isinstance(link, MagicLink):  # of a file that no name leads to any more
            real = link.target()
            shown, name = partial(bytes, real), real.removesuffix(_DELETED)
        else:
            shown = partial(path_shown, place.parent, place.name, node)
            real = name = place.parent.path_of(place.name)
        if directory != _AT_FDCWD and not path.startswith(b"/"):
            path = b"/dev/fd/%d/%s" % (directory, path)
    if isinstance(node, SymlinkNode):
        raise LinuxError(errno.ELOOP)
    if not stat.S_ISREG(node.stat().mode) or not node.may(MAY_EXEC):
        raise LinuxError(errno.EACCES)
    program, name = ExecutedFile(node, shown), os.path.basename(name)
    return ExecRequest(node.open(0), path, real, name, program, argv or (b"",), env)


def _interpreted(k: Thread, request: ExecRequest, head: bytes) -> ExecRequest:
    """The interpreter that a script names, with the script as its argument."""
    line, end, _ = head[2:].partition(b"\n")
    words = line.strip(b" \t").split(maxsplit=1) if end or b" " in line.strip() else []
    if not words and len(head) < _LINE:
        words = line.strip(b" \t\0").split(maxsplit=1)
    if not words:
        raise LinuxError(errno.ENOEXEC)
    argument = (words[1].strip(b" \t"),) if len(words) > 1 else ()
    argv = (words[0], *argument, request.path, *request.argv[1:])
    return _request(k, _AT_FDCWD, words[0], 0, argv, request.env)


def open_image(k: Thread, request: ExecRequest) -> ElfImage:
    """The ELF file of a request; ENOEXEC if it is none that can be run."""
    source = request.file.mmap_source()
    if source.size > _IMAGE_MAX:
        raise LinuxError(errno.ENOMEM)
    name = os.fsdecode(request.real)
    root = os.fsdecode(k.fs.view.root or b"")
    try:
        image = k.machine.images.open(source, name, root)
    except ImageError as error:
        raise LinuxError(errno.ENOEXEC) from error
    arch = for_elf(image.machine, image.bits, image.byteorder)
    if arch is None or arch.name != k.arch.name:
        k.unsupported(f"{name}: a program for {image.machine_name}")
        raise LinuxError(errno.ENOEXEC)
    return image


def _loaded(k: Thread, request: ExecRequest) -> tuple[AddressSpace, loader.Start]:
    """The program in an address space of its own."""
    image = open_image(k, request)
    interpreter, name, files = None, image.interpreter or "", [request.file]
    if image.interpreter is not None:
        wanted = os.fsencode(name)
        asked = _request(k, _AT_FDCWD, wanted, 0, (), ())
        interpreter = open_image(k, asked)
        files.append(asked.file)
    inodes = tuple(k.fs.mapped_inode(file.node, file.stat()) for file in files)
    memory = k.memory.fresh()
    modules = k.space.modules.fresh(memory)
    space = AddressSpace(memory, modules, SpaceHooks())
    space.argv, space.env, space.exe = request.argv, request.env, request.real
    space.program = request.program
    try:
        start = loader.load(
            loader.Executable(
                *(image, os.fsdecode(request.real), interpreter, name),
                os.fsdecode(request.path),
                (inodes[0], inodes[-1]),
            ),
            k.arch,
            memory,
            modules,
            argv=request.argv,
            env=request.env,
            random=k.random_bytes(16),
            identity=(k.uid, k.gid),
            stack_size=k.limit("stack"),
            ahead=k.clock.ahead,
        )
    except (ImageError, MappingError) as error:
        memory.close()
        k.unsupported(f"{os.fsdecode(request.real)}: {error}")
        raise LinuxError(errno.ENOMEM) from error
    space.start, space.heap = start, (start.heap, start.heap)
    space.stack = start.stack
    return space, start


def _begin(k: Thread, space: AddressSpace, start: loader.Start, name: bytes) -> None:
    """The new program is in the place of the old one (begin_new_exec)."""
    process, machine, cpu = k.process, k.machine, k.cpu
    process.peak_memory()
    futex.threads_end(process.threads.values())
    for thread in list(process.threads.values()):
        if thread is not k:
            machine.left(thread, SIGKILL)
            thread.files.leave()
    if k.tid != process.pid:
        machine.becomes_first(k)
    before = process.space
    before.users -= 1
    if not before.users:
        shm.memory_left(process)
    reaping.give_back(process)
    process.enter(space)
    space.memory.activate()
    if machine.recorder is not None:
        machine.recorder.replaced(process, before, space)
    machine.spaces.replaced(before, space)
    if not before.users:
        reaping.space_left(machine, before)
    process.executed, process.exit_signal = True, SIGCHLD
    k.own_files()
    process.files, process.place = k.files, k.place
    process.files.close_on_exec()
    hand = SignalHand(process.hand.handled())
    hand.pending = process.hand.pending
    process.hand = k.signals.hand = hand
    k.signals.altstack, k.signals.saved = (0, SS_DISABLE, 0), None
    k.robust_list = k.clear_child_tid = 0
    for timer in process.timers.posix:
        process.drop_timer_signal(timer)
    process.timers.drop_posix()
    process.knobs["dumpable"], process.knobs["keepcaps"] = 1, 0
    cpu.restore(machine.blank)
    cpu.write_register(k.arch.roles.pc, start.pc)
    cpu.write_register(k.arch.roles.sp, start.sp)
    for register, value in k.arch.linux.start:
        cpu.write_register(register, value)
    cpu.go_on(None)
    cpu.expect(start.pc)
    k.set_comm(name)
    if k.debug is not None:
        k.debug.clear()


SYSCALLS: SyscallTable = {"execve": execve, "execveat": execveat}
