"""System calls of the address space: brk, mmap and its family."""

import errno
import stat
from typing import NoReturn

from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.guest.mapping import OMITTED, WIPED, Contents
from engine.guest.memory import HEAP, Mapping, MappingError, page_up
from engine.guest.mremap import Mremap
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.calls import opened
from engine.linux.fs.data import MmapSource
from engine.linux.fs.regular import UNWRITABLE, FileNode
from engine.linux.fs.vfs import Node, OpenFile
from engine.linux.loader import STACK
from engine.linux.process import INFINITY
from engine.linux.thread import Thread

MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE, MAP_TYPE = 1, 2, 3, 0xF
MAP_FIXED, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE = 0x10, 0x20, 0x100000
MAP_NORESERVE, MAP_HUGETLB = 0x4000, 0x40000
_HUGE_PAGES = frozenset((0, 21, 30))
"""Sizes of huge pages that a mapping may ask for, as powers of two; 0: the usual one."""
_MAP_FLAGS = 0x17F_FF33
MREMAP_MAYMOVE, MREMAP_FIXED, MREMAP_DONTUNMAP = 1, 2, 4
MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_WIPEONFORK = 4, 8, 9, 18
_AT_FORK = {10: (OMITTED, 0), 11: (0, OMITTED), MADV_WIPEONFORK: (WIPED, 0), 19: (0, WIPED)}
"""MADV_DONTFORK, DOFORK, WIPEONFORK and KEEPONFORK: bits that they set and clear."""
_ADVICE = frozenset({0, 1, 2, 3, 4, 8, 9, 10, 11, *range(12, 25)})
"""All that there are but MADV_COLLAPSE (no huge pages here) and what needs privileges."""
_DROPPING = frozenset({MADV_DONTNEED, 24})
"""MADV_DONTNEED_LOCKED is the same where nothing is locked."""
_WORD = (1 << 64) - 1
_RESIDENT = 1 << 20
"""Bytes of mincore's answer that are written at once."""
_PROT_SEM, _GROWS_DOWN, _GROWS_UP = 8, 0x1000000, 0x2000000
_MCL_ALL, _MCL_ONFAULT = 7, 4
_POPULATE_READ = 22
_POPULATE = frozenset({_POPULATE_READ, 23})


class FileBacking:
    """A file's content for a mapping."""

    def __init__(self, source: MmapSource) -> None:
        self._source = source
        self.identity = source.identity
        self.writable = source.write is not None

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        node = self._source.identity
        return node.stat().size if isinstance(node, Node) else self._source.size

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file."""
        return self._source.read(offset, size)

    def write_back(self, offset: int, data: bytes) -> None:
        """Take a shared mapping's content."""
        if self._source.write is not None:
            self._source.write(offset, data)

    def host_descriptor(self) -> int | None:
        """A host descriptor that may be mapped privately."""
        return self._source.host_fd if self._source.can_map else None

    def contents(self) -> Contents | None:
        """Return the content of a file that is the guest's alone; None for others."""
        return self._source.contents()


def protection(prot: int) -> int:
    """PROT_* bits, which are the engine's own; EINVAL for others."""
    if prot & ~(READ | WRITE | EXECUTE):
        raise LinuxError(errno.EINVAL)
    return prot & 7


def beyond_limit(k: Thread, more: int, at: int = -1) -> bool:
    """Return whether so many more bytes are more than RLIMIT_AS lets a process map.

    Those that replace mappings `at` an address do not count (mmap_region).
    """
    most = k.limit("as")
    return most != INFINITY and k.space.size() + more - _replaced(k, at, more) > most


def _replaced(k: Thread, start: int, size: int) -> int:
    """Bytes that are mapped in a range (count_vma_pages_range)."""
    end = start + size
    found = k.memory.overlapping(start, end) if start >= 0 else ()
    return sum(min(m.end, end) - max(m.start, start) for m in found if not m.reserved)


def brk(k: Thread, address: int) -> int:
    """Move the end of the heap; the old end if that cannot be."""
    start, end = k.space.heap
    if address < start:
        return end
    old, new = page_up(end), page_up(address)
    if new > old:
        over = beyond_limit(k, new - old)
        if new - start > k.limit("data") or over or not k.memory.is_free(old, new + PAGE):
            return end
        try:
            k.memory.map(old, new - old, READ | WRITE, name=HEAP)
        except MappingError:
            return end
    elif new < old:
        k.memory.unmap(new, old - new)
    k.space.heap = (start, address)
    return address


def mmap(k: Thread, address: int, size: int, prot: int, flags: int, fd: int, offset: int) -> int:
    """Map memory or a file."""
    memory, plan = k.memory, k.arch.plan
    perms = prot & 7  # other bits are ignored here
    kind = flags & MAP_TYPE
    if offset % PAGE:
        raise LinuxError(errno.EINVAL)
    file = None if flags & MAP_ANONYMOUS else opened(k, s32(fd))
    if flags & MAP_HUGETLB and (file is not None or flags >> 26 & 0x3F not in _HUGE_PAGES):
        raise LinuxError(errno.EINVAL)
    if not size:
        raise LinuxError(errno.EINVAL)
    length = page_up(size)
    none_reserved = flags & MAP_HUGETLB and not flags & MAP_NORESERVE  # no huge page is there
    if not 0 < length <= plan.task_size or none_reserved:
        raise LinuxError(errno.ENOMEM)
    where = _place(k, address, length, flags)
    shared = kind != MAP_PRIVATE
    backing: FileBacking | None = None
    name, inode = "", (0, 0)
    if file is not None:
        _check_end(file, offset + length)
        if kind == MAP_SHARED_VALIDATE and flags & ~_MAP_FLAGS:
            raise LinuxError(errno.EOPNOTSUPP)
        if not 1 <= kind <= MAP_SHARED_VALIDATE:
            raise LinuxError(errno.EINVAL)
        shown, offset = file.shown_at(offset, length)
        backing, name, inode = _file_backing(k, file, shown, perms, shared)
    elif kind not in (MAP_SHARED, MAP_PRIVATE):
        raise LinuxError(errno.EINVAL)
    if beyond_limit(k, length, where):
        raise LinuxError(errno.ENOMEM)
    if not shared and perms & WRITE:
        most = k.limit("data")
        # 0 does not mean mappings: may_expand_vm; the stack does not count.
        if most not in (0, INFINITY) and (
            memory.table.data + length - _replaced(k, where, length) > most
        ):
            raise LinuxError(errno.ENOMEM)
        # More than there can ever be is refused (vm.overcommit_memory = 0), unless not reserved.
        if length > memory.ram.size and not flags & MAP_NORESERVE:
            raise LinuxError(errno.ENOMEM)
    memory.map(
        where, length, perms, name=name, backing=backing, offset=offset, shared=shared, inode=inode
    )
    return where


def _place(k: Thread, address: int, length: int, flags: int) -> int:
    """Return the address where a mapping goes (__get_unmapped_area).

    A fixed address among the last 4095 of all is taken for an errno on its way, as by Linux.

    Raises:
        LinuxError: there is no room, or not there; EEXIST where MAP_FIXED_NOREPLACE meets another
            mapping.
    """
    memory, plan = k.memory, k.arch.plan
    if not flags & (MAP_FIXED | MAP_FIXED_NOREPLACE):
        hint = address & -PAGE
        fits = hint >= plan.mmap_min and hint + length <= plan.task_size
        found = hint if fits and memory.is_free(hint, hint + length) else memory.free_range(length)
        if found is None:
            raise LinuxError(errno.ENOMEM)
        return found
    if address > _WORD + 1 - PAGE:
        raise LinuxError(_WORD + 1 - address)
    if address + length > plan.task_size:
        raise LinuxError(errno.ENOMEM)
    if address % PAGE:
        raise LinuxError(errno.EINVAL)
    if address < plan.mmap_min:
        raise LinuxError(errno.EPERM)
    if flags & MAP_FIXED_NOREPLACE and not memory.is_free(address, address + length):
        raise LinuxError(errno.EEXIST)
    return address


def _check_end(file: OpenFile, end: int) -> None:
    """EOVERFLOW for an end that no offset of a file reaches (file_mmap_ok); few have 64 bits."""
    if end > _WORD >> 1:
        short = stat.S_IFMT(file.stat().mode) in (stat.S_IFREG, stat.S_IFBLK, stat.S_IFSOCK)
        if end > (_WORD >> 1 if short else _WORD) + 1 - PAGE:
            raise LinuxError(errno.EOVERFLOW)


def _file_backing(
    k: Thread, file: OpenFile, shown: OpenFile, perms: int, shared: bool
) -> tuple[FileBacking | None, str, tuple[int, int]]:
    access = file.flags & fl.O_ACCMODE
    if access == fl.O_WRONLY or (shared and perms & WRITE and access != fl.O_RDWR):
        raise LinuxError(errno.EACCES)
    name = file.describe().decode(errors="surrogateescape")
    if name in ("/dev/zero", "zero"):
        return None, "/dev/zero", (0, 0)
    source, node = shown.mmap_source(), shown.node
    if shared and perms & WRITE and isinstance(node, FileNode) and node.seals & UNWRITABLE:
        raise LinuxError(errno.EPERM)
    return FileBacking(source), name, k.fs.mapped_inode(file.node, file.stat())


def munmap(k: Thread, address: int, size: int) -> int:
    """Unmap."""
    if address % PAGE or not size or address + size > k.arch.plan.task_size:
        raise LinuxError(errno.EINVAL)
    k.memory.unmap(address, size, around=True)
    return 0


def mprotect(k: Thread, address: int, size: int, prot: int) -> int:
    """Change permissions (do_mprotect_pkey in mm/mprotect.c)."""
    grows = prot & (_GROWS_DOWN | _GROWS_UP)
    if address % PAGE or grows == _GROWS_DOWN | _GROWS_UP:
        raise LinuxError(errno.EINVAL)
    if not size:
        return 0
    if page_up(size) & _WORD == 0 or address + page_up(size) > _WORD:
        raise LinuxError(errno.ENOMEM)
    perms = protection(prot & ~(_PROT_SEM | grows))
    if grows:
        address, size = _growing(k, address, page_up(size), grows)
    if address + size > k.arch.plan.task_size:
        raise LinuxError(errno.ENOMEM)
    for mapping in k.memory.overlapping(address, address + size):
        if mapping.shared and mapping.backing is not None and perms & WRITE:
            _check_shared_write(mapping)
    k.memory.protect(address, size, perms)
    return 0


def _growing(k: Thread, address: int, size: int, grows: int) -> tuple[int, int]:
    """Return (start, size) of a range from the start of a mapping that grows, or to its end.

    Raises:
        LinuxError: ENOMEM where nothing is mapped, EINVAL for a mapping that does not grow so.
    """
    end = address + size
    found = next((m for m in k.memory.overlapping(address, end) if not m.reserved), None)
    if found is None or (found.name == STACK and end <= k.space.stack_low()):
        raise LinuxError(errno.ENOMEM)
    if grows == _GROWS_DOWN:
        if found.name != STACK:
            raise LinuxError(errno.EINVAL)
        while (left := k.memory.find(found.start - 1)) is not None and left.continues(found):
            found = left
        return found.start, end - found.start
    if found.start > address:
        raise LinuxError(errno.ENOMEM)
    store, most = k.arch.plan.register_stack
    if not store <= address < store + most:
        raise LinuxError(errno.EINVAL)
    while (right := k.memory.find(found.end)) is not None and found.continues(right):
        found = right
    return address, found.end - address


def pkey_alloc(k: Thread, flags: int, rights: int) -> NoReturn:
    """The processor has no protection keys."""
    raise LinuxError(errno.EINVAL if flags or rights & ~3 else errno.ENOSPC)


def pkey_free(k: Thread, key: int) -> NoReturn:
    """None was ever given."""
    raise LinuxError(errno.EINVAL)


def pkey_mprotect(k: Thread, address: int, size: int, prot: int, key: int) -> int:
    """Change permissions without a key."""
    if s32(key) != -1:
        raise LinuxError(errno.EINVAL)
    return mprotect(k, address, size, prot)


def _check_shared_write(mapping: Mapping) -> None:
    backing = mapping.backing
    if isinstance(backing, FileBacking) and not backing.writable:
        raise LinuxError(errno.EACCES)


def mremap(k: Thread, old: int, old_size: int, new_size: int, flags: int, target: int) -> int:
    """Grow, shrink or move a mapping."""
    memory, plan = k.memory, k.arch.plan
    old_size, new_size = page_up(old_size) & _WORD, page_up(new_size) & _WORD
    if old % PAGE or flags & ~7 or not new_size or new_size > plan.task_size:
        raise LinuxError(errno.EINVAL)
    moves, fixed = flags & MREMAP_MAYMOVE, flags & MREMAP_FIXED
    stays = flags & MREMAP_DONTUNMAP
    if ((fixed or stays) and not moves) or (stays and old_size != new_size):
        raise LinuxError(errno.EINVAL)
    if fixed:
        overlap = target < old + old_size and old < target + new_size
        if target % PAGE or overlap or target + new_size > plan.task_size:
            raise LinuxError(errno.EINVAL)
        if target < plan.mmap_min:
            raise LinuxError(errno.EPERM)
    remapping = Mremap(memory)
    mapping = remapping.whole(old, old + old_size)
    if mapping is None or old + old_size > mapping.end:
        if not fixed and mapping is not None and new_size <= old_size:
            memory.unmap(old + new_size, old_size - new_size)
            return old
        raise LinuxError(errno.EFAULT)
    if mapping.reserved:
        raise LinuxError(errno.EPERM)
    if not old_size and not (mapping.shared and moves):
        raise LinuxError(errno.EINVAL)
    if new_size > old_size and beyond_limit(k, new_size - old_size):
        raise LinuxError(errno.ENOMEM)
    if not fixed and not stays and old_size:
        if new_size <= old_size:
            if new_size < old_size:
                memory.unmap(old + new_size, old_size - new_size)
            return old
        grown = old + new_size
        at_end = old + old_size == mapping.end and grown <= plan.task_size
        if at_end and memory.is_free(mapping.end, grown):
            remapping.extend(mapping, grown)
            return old
        if not moves:
            raise LinuxError(errno.ENOMEM)
    where = target if fixed else memory.free_range(new_size)
    if where is None:
        raise LinuxError(errno.ENOMEM)
    if old_size:
        piece = mapping.part(old, old + old_size)
        remapping.move(piece, where, new_size, keep_old=bool(stays))
    else:
        remapping.double(mapping.part(old, mapping.end), where, new_size)
    return where


def madvise(k: Thread, address: int, size: int, advice: int) -> int:
    """Advice; only what changes contents has an effect (mm/madvise.c).

    Linux goes from mapping to mapping and stops at the first that the advice is not for; a hole
    is told when all is done.
    """
    advice = s32(advice)
    if address % PAGE or advice not in _ADVICE or (size and not page_up(size) & _WORD):
        raise LinuxError(errno.EINVAL)
    size = page_up(size)
    if address + size > _WORD:
        raise LinuxError(errno.EINVAL)
    for mapping in k.memory.overlapping(address, address + size):
        code = _refused_advice(mapping, advice)
        if code:
            raise LinuxError(code)
        low, high = max(address, mapping.start), min(address + size, mapping.end)
        if advice in _DROPPING:
            k.memory.discard(low, high - low)
        elif advice == MADV_REMOVE:
            k.memory.punch(low, high - low)
        elif advice in _AT_FORK:
            k.memory.set_at_fork(low, high - low, *_AT_FORK[advice])
    _check_mapped(k, address, size)
    return 0


def _refused_advice(mapping: Mapping, advice: int) -> int:
    """The errno with which a mapping refuses an advice, 0 if it takes it."""
    backing = mapping.backing
    anonymous = backing is None and not mapping.shared
    if advice in (MADV_FREE, MADV_WIPEONFORK):
        return 0 if anonymous else errno.EINVAL
    if advice == MADV_REMOVE:
        if anonymous:
            return errno.EINVAL
        writable = not isinstance(backing, FileBacking) or backing.writable
        return 0 if mapping.shared and writable else errno.EACCES
    if advice in _POPULATE:
        needed = READ if advice == _POPULATE_READ else WRITE
        # On x86 and elsewhere what may be written may be read.
        return 0 if mapping.perms & (needed | WRITE) else errno.EINVAL
    return 0


def _check_mapped(k: Thread, address: int, size: int) -> None:
    """ENOMEM if there is a hole in a range."""
    at = address
    for mapping in k.memory.overlapping(address, address + size):
        if mapping.start > at:
            break
        at = mapping.end
    if at < address + size:
        raise LinuxError(errno.ENOMEM)


def mincore(k: Thread, address: int, size: int, vector: int) -> int:
    """All mapped pages count as resident."""
    if address % PAGE:
        raise LinuxError(errno.EINVAL)
    if address + size > k.arch.plan.task_size:
        raise LinuxError(errno.ENOMEM)
    if vector >> 63:  # beyond all memory (access_ok)
        raise LinuxError(errno.EFAULT)
    _check_mapped(k, address, page_up(size))
    count = page_up(size) // PAGE
    for at in range(0, count, _RESIDENT):
        k.memory.write(vector + at, b"\1" * min(_RESIDENT, count - at))
    return 0


def msync(k: Thread, address: int, size: int, flags: int) -> int:
    """Write shared file mappings back."""
    if address % PAGE or flags & ~7 or flags & 5 == 5:
        raise LinuxError(errno.EINVAL)
    if not page_up(size) & _WORD:
        return 0
    for mapping in k.memory.overlapping(address, address + page_up(size)):
        if mapping.shared and mapping.backing is not None:
            k.memory.shared.flush(mapping.backing.identity)
    _check_mapped(k, address, page_up(size))
    return 0


def mlock(k: Thread, address: int, size: int, flags: int = 0) -> int:
    """Check the range; lock and unlock nothing: no page of the guest is ever paged out."""
    size = page_up(size + address % PAGE) & _WORD
    address &= -PAGE
    if address + size > _WORD:
        raise LinuxError(errno.EINVAL)
    if size:
        _check_mapped(k, address, size)
    return 0


def mlockall(k: Thread, flags: int) -> int:
    """Check the flags and lock nothing: no page of the guest is ever paged out."""
    flags = s32(flags)
    if not flags or flags & ~_MCL_ALL or flags == _MCL_ONFAULT:
        raise LinuxError(errno.EINVAL)
    return 0


def munlockall(k: Thread) -> int:
    """Unlock nothing: no page of the guest was ever locked, see `mlock`."""
    return 0


def remap_file_pages(k: Thread, *arguments: int) -> int:
    """Superseded: programs fall back to mmap."""
    raise LinuxError(errno.EINVAL)


SYSCALLS: SyscallTable = {
    "brk": brk,
    "mmap": mmap,
    "munmap": munmap,
    "mprotect": mprotect,
    "pkey_mprotect": pkey_mprotect,
    "pkey_alloc": pkey_alloc,
    "pkey_free": pkey_free,
    "mremap": mremap,
    "madvise": madvise,
    "mincore": mincore,
    "msync": msync,
    "mlock": mlock,
    "mlock2": mlock,
    "munlock": mlock,
    "mlockall": mlockall,
    "munlockall": munlockall,
    "remap_file_pages": remap_file_pages,
}
