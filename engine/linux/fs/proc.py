"""/proc: the guest's own processes and some facts about its machine."""

import stat
from collections.abc import Callable
from functools import partial
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs import procfiles as text
from engine.linux.fs.attributes import InodeNumber, Stat
from engine.linux.fs.links import MagicLink
from engine.linux.fs.namespaces import NAMES, Namespace
from engine.linux.fs.procsource import ProcProcess, ProcSource
from engine.linux.fs.pseudo import (
    Content,
    ForeignFile,
    PseudoDirectory,
    PseudoFile,
    StaticLink,
    Store,
)
from engine.linux.fs.vfs import Directory, Listing, Node, OpenFile, Volume

ESRCH, EACCES = 3, 13

_INIT: Final = 1


class NameLink(StaticLink):
    """/proc/self and /proc/thread-self: symlinks that differ with the caller."""

    __slots__ = ("_make",)

    def __init__(self, volume: Volume, make: Callable[[], bytes]) -> None:
        super().__init__(volume, b"")
        self._make = make

    def target(self) -> bytes:
        """The path it points to."""
        return self._make()


class DynamicDirectory(PseudoDirectory):
    """A directory of /proc whose entries come and go by themselves."""

    def __init__(
        self,
        volume: Volume,
        names: Callable[[], list[bytes]],
        make: Callable[[bytes], Node | None],
        mode: int = 0o555,
        owner: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(volume, mode)
        assert self.meta is not None, "made with attributes"
        self.meta.uid, self.meta.gid = owner
        self._names = names
        self._make = make

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        node = self.mounts.get(name)
        if node is None:
            node = self._make(name)
            if node is not None:
                self.attach(name, node)
        return node

    def listing(self) -> Listing:
        """All entries but . and .., sorted by name."""
        found = {name: node.ino for name, node in self.mounts.items()}
        entries = [(name, ino, self.mounts[name].kind) for name, ino in found.items()]
        for name in self._names():
            node = self._make(name)
            if node is not None and name not in found:
                entries.append((name, node.ino, node.kind))
        return sorted(entries)


class ProcTree:
    """Makes the directories of processes, each once."""

    def __init__(
        self,
        volume: Volume,
        source: ProcSource,
        resolve: Callable[[bytes], Node],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.volume = volume
        self.source = source
        self._resolve = resolve
        self._made: dict[tuple[int, int], Directory] = {}
        # Entries of one directory that is in all of those of processes.
        self._network = PseudoDirectory(volume)
        self._random = random_bytes
        self._spaces = {kind: Namespace(volume, kind) for kind in set(NAMES.values())}

    def root(self) -> Directory:
        """The directory /proc."""
        source, volume = self.source, self.volume
        top = DynamicDirectory(
            volume, lambda: [b"%d" % pid for pid in source.pids()], self._process_entry
        )
        top.mount(b"self", NameLink(volume, lambda: b"%d" % source.current_pid()))
        top.mount(
            b"thread-self",
            NameLink(volume, lambda: b"%d/task/%d" % (source.current_pid(), source.current_tid())),
        )
        top.mount(b"mounts", StaticLink(volume, b"self/mounts"))
        top.mount(b"net", StaticLink(volume, b"self/net"))
        for name, content in source.network().items():
            self._network.mount(name, PseudoFile(volume, content))
        files: dict[bytes, Content] = {
            b"cpuinfo": source.cpuinfo,
            b"meminfo": lambda: text.meminfo(*source.memory()),
            b"vmstat": lambda: text.vmstat(*source.memory()),
            b"diskstats": lambda: b"",
            b"partitions": lambda: b"major minor  #blocks  name\n\n",
            b"swaps": lambda: text.SWAPS,
            b"modules": lambda: b"",
            b"interrupts": lambda: text.interrupts(source.cpus),
            b"stat": lambda: text.machine_stat(volume.clock, source.cpus, source.busy_time()),
            b"uptime": lambda: text.uptime(volume.clock, source.busy_time()),
            b"loadavg": lambda: b"0.00 0.00 0.00 1/1 1\n",
            b"version": lambda: text.version(source.release),
            b"filesystems": lambda: text.FILESYSTEMS,
            b"cmdline": lambda: b"\n",
        }
        for name, content in files.items():
            top.mount(name, PseudoFile(volume, content))
        top.mount(b"slabinfo", ForeignFile(volume, 0o400))
        self._sys(top)
        return top

    def _sys(self, top: Directory) -> None:
        source = self.source
        files: dict[bytes, Content] = {
            b"sys/kernel/osrelease": lambda: source.release + b"\n",
            b"sys/kernel/hostname": lambda: source.hostname + b"\n",
            b"sys/kernel/random/uuid": lambda: text.uuid(self._random(16)),
        }
        boot = text.uuid(bytes(range(16)))
        files[b"sys/kernel/random/boot_id"] = lambda: boot
        for path, fixed in text.SYSCTLS.items():
            files[path] = partial(bytes, fixed)
        for path, content in files.items():
            directory = top
            *folders, name = path.split(b"/")
            for folder in folders:
                below = directory.mounts.get(folder)
                if not isinstance(below, Directory):
                    below = PseudoDirectory(self.volume)
                    directory.mount(folder, below)
                directory = below
            directory.mount(name, PseudoFile(self.volume, content))

    def _process_entry(self, name: bytes) -> Node | None:
        if not name.isdigit() or (name.startswith(b"0") and name != b"0") or len(name) > 9:
            return None
        number = int(name)
        process = self.source.process(number)
        return None if process is None else self._directory(process, number, tasks=True)

    def _alive(self, pid: int) -> ProcProcess:
        process = self.source.process(pid)
        if process is None:
            raise LinuxError(ESRCH)
        return process

    def _directory(self, process: ProcProcess, tid: int, *, tasks: bool) -> Directory:
        """A process's directory, or that of one of its threads."""
        pid = process.pid
        known = self._made.get((pid, tid if not tasks else -tid))
        if known is not None:
            return known
        who = self.volume.identity
        # Process 1 has capabilities, and no guest has any, root or not: none may look into it.
        foreign = pid == _INIT or who.uid not in (0, process.identity[0])

        def there() -> ProcProcess | None:
            return self.source.process(tid) if tasks else self.source.thread(pid, tid)

        def alive() -> ProcProcess:
            found = there()
            if found is None:
                raise LinuxError(ESRCH)
            return found

        directory = ProcessDirectory(self.volume, process.identity, lambda: there() is not None)
        directory.pid = pid if tasks else None

        self._made[pid, tid if not tasks else -tid] = directory

        def file(
            name: bytes,
            content: Callable[[ProcProcess], bytes],
            store: Store | None = None,
            mode: int = 0,
        ) -> None:
            node = PseudoFile(self.volume, lambda: content(alive()), store, mode)
            directory.mount(name, node)

        def private(name: bytes, content: Callable[[ProcProcess], bytes], mode: int) -> None:
            if foreign:
                directory.mount(name, ForeignFile(self.volume, mode))
            else:
                file(name, content, mode=mode)

        private(b"maps", text.maps, 0o444)
        private(b"smaps", text.smaps, 0o444)
        private(b"environ", lambda p: p.environ(), 0o400)
        private(b"auxv", lambda p: p.auxv(), 0o400)
        private(b"syscall", lambda p: p.call(), 0o400)
        if foreign:
            directory.mount(b"mem", ForeignFile(self.volume, 0o600))
        else:
            from engine.linux.fs.procmem import MemoryFile  # only where /proc is looked at

            directory.mount(b"mem", MemoryFile(self.volume, lambda: alive().address_space()))
        file(b"status", lambda p: text.status(p, tid))
        file(b"stat", lambda p: text.stat_line(p, tid))
        file(b"statm", text.statm)
        file(b"cmdline", lambda p: p.cmdline())
        file(b"limits", text.limits)
        file(b"cgroup", lambda _: b"0::/\n")
        file(b"mounts", lambda _: text.MOUNTS)
        file(b"mountinfo", lambda _: text.mountinfo(self._resolve(b"/").dev))
        for name in (b"uid_map", b"gid_map", b"projid_map"):
            file(name, lambda _: text.ID_MAP)
        file(b"setgroups", lambda _: b"allow\n")
        file(b"oom_score", lambda _: b"0\n")
        file(b"wchan", lambda _: b"0")
        file(
            b"comm",
            lambda p: p.comm + b"\n",
            None if foreign else lambda data: alive().set_comm(data.rstrip(b"\n")[:15]),
        )
        network = PseudoDirectory(self.volume)
        for name, node in self._network.mounts.items():
            network.mount(name, node)
        directory.mount(b"net", network)
        self._adjustment(directory, changeable=not foreign)
        self._links(directory, process, alive, foreign=foreign)
        self._namespaces(directory, process.identity, alive, foreign=foreign)
        if tasks:
            directory.mount(b"task", self._tasks(pid))
        return directory

    def _namespaces(
        self,
        directory: Directory,
        owner: tuple[int, int],
        alive: Callable[[], ProcProcess],
        *,
        foreign: bool,
    ) -> None:
        folder = PseudoDirectory(self.volume, 0o511, owner)

        def link(space: Namespace) -> MagicLink:
            def jump() -> Node:
                alive()
                if foreign:
                    raise LinuxError(EACCES)
                return space

            def target() -> bytes:
                jump()
                return space.title

            return MagicLink(self.volume, target, jump, owner=owner)

        for name, kind in NAMES.items():
            folder.mount(name, link(self._spaces[kind]))
        directory.mount(b"ns", folder)

    def _adjustment(self, directory: Directory, *, changeable: bool) -> None:
        value = [b"0"]

        def store(data: bytes) -> None:
            try:
                number = int(data)
            except ValueError:
                raise LinuxError(22) from None
            if not -1000 <= number <= 1000:
                raise LinuxError(22)
            value[0] = b"%d" % number

        node = PseudoFile(self.volume, lambda: value[0] + b"\n", store if changeable else None)
        directory.mount(b"oom_score_adj", node)

    def _links(
        self,
        directory: Directory,
        owned: ProcProcess,
        alive: Callable[[], ProcProcess],
        *,
        foreign: bool,
    ) -> None:
        pid = owned.pid

        def reached() -> ProcProcess:
            found = alive()
            if foreign:
                raise LinuxError(EACCES)
            return found

        def here() -> bytes:
            found = reached().directory
            return found.path_of() + (b" (deleted)" if found.removed else b"")

        def program() -> Node:
            found = reached()
            return found.program or self._resolve(found.exe)

        def path() -> bytes:
            return reached().exe

        directory.mount(b"exe", MagicLink(self.volume, path, program, owner=owned.identity))

        def jump() -> Node:
            return reached().directory

        directory.mount(b"cwd", MagicLink(self.volume, here, jump, owner=owned.identity))

        def root() -> bytes:
            reached()
            return b"/"

        top = MagicLink(self.volume, root, lambda: self._resolve(root()), owner=owned.identity)
        directory.mount(b"root", top)

        def names() -> list[bytes]:
            return [b"%d" % fd for fd in alive().files]

        def opened(name: bytes) -> OpenFile | None:
            if not name.isdigit() or len(name) > 9:
                return None
            try:
                process = alive()
            except LinuxError:
                return None
            return process.files.peek(int(name))

        def link(name: bytes) -> Node | None:
            file = opened(name)
            if file is None:
                return None
            number = InodeNumber(self.volume.dev, (pid << 32) + (int(name) << 1))
            return MagicLink(self.volume, file.describe, lambda: file, number)

        def info(name: bytes) -> Node | None:
            file = opened(name)
            if file is None:
                return None
            return PseudoFile(
                self.volume, lambda: b"pos:\t%d\nflags:\t0%o\nmnt_id:\t1\nino:\t%d\n" % (
                    file.offset, file.flags, file.stat().ino
                ) + file.details()
            )  # fmt: skip

        for name, make in ((b"fd", link), (b"fdinfo", info)):
            mode = 0o500 if foreign or make is link else 0o555
            table = DynamicDirectory(self.volume, names, make, mode, owned.identity)
            directory.mount(name, table)

    def _tasks(self, pid: int) -> Directory:
        def names() -> list[bytes]:
            return [b"%d" % tid for tid in self._alive(pid).threads()]

        def task(name: bytes) -> Node | None:
            if name not in names():
                return None
            return self._directory(self._alive(pid), int(name), tasks=False)

        return DynamicDirectory(self.volume, names, task)


class ProcessDirectory(PseudoDirectory):
    """/proc/PID; it belongs to the process's user, and is empty once that has gone.

    Attributes:
        pid: of the process; None for the directory of a thread of it.
    """

    def __init__(self, volume: Volume, owner: tuple[int, int], alive: Callable[[], bool]) -> None:
        super().__init__(volume)
        self.pid: int | None = None
        self._owner, self._alive = owner, alive

    def lookup(self, name: bytes) -> Node | None:
        """The entry of that name, None if there is none."""
        return super().lookup(name) if self._alive() else None

    def stat(self) -> Stat:
        """The directory's attributes."""
        uid, gid = self._owner
        return super().stat()._replace(uid=uid, gid=gid, mode=stat.S_IFDIR | 0o555)


def make_proc(
    volume: Volume,
    source: ProcSource,
    resolve: Callable[[bytes], Node],
    random_bytes: Callable[[int], bytes],
    locks: Content,
) -> Directory:
    """The directory /proc.

    Args:
        volume: its device.
        source: what it shows.
        resolve: the node at an absolute path.
        random_bytes: for /proc/sys/kernel/random.
        locks: text of /proc/locks.
    """
    top = ProcTree(volume, source, resolve, random_bytes).root()
    top.mount(b"locks", PseudoFile(volume, locks))
    return top
