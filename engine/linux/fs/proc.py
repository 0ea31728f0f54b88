"""/proc: the guest's own processes and some facts about its machine."""

import stat
from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs import procfiles as text
from engine.linux.fs.attributes import Stat
from engine.linux.fs.links import MagicLink
from engine.linux.fs.procsource import ProcProcess, ProcSource
from engine.linux.fs.pseudo import Content, PseudoDirectory, PseudoFile, StaticLink, Store
from engine.linux.fs.vfs import Directory, Listing, Node, OpenFile, Volume

ESRCH = 3


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
    ) -> None:
        super().__init__(volume, mode)
        assert self.meta is not None, "made with attributes"
        who = volume.identity
        if mode == 0o500:
            self.meta.uid, self.meta.gid = who.uid, who.gid
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
            b"meminfo": lambda: text.MEMINFO,
            b"stat": lambda: text.machine_stat(volume.clock, source.cpus),
            b"uptime": lambda: text.uptime(volume.clock),
            b"loadavg": lambda: b"0.00 0.00 0.00 1/1 1\n",
            b"version": lambda: text.version(source.release),
            b"filesystems": lambda: text.FILESYSTEMS,
            b"cmdline": lambda: b"\n",
        }
        for name, content in files.items():
            top.mount(name, PseudoFile(volume, content))
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
            files[path] = lambda fixed=fixed: fixed  # type: ignore[misc]
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
        return None if process is None else self._directory(process.pid, number, tasks=True)

    def _alive(self, pid: int) -> ProcProcess:
        process = self.source.process(pid)
        if process is None:
            raise LinuxError(ESRCH)
        return process

    def _directory(self, pid: int, tid: int, *, tasks: bool) -> Directory:
        """A process's directory, or that of one of its threads."""
        known = self._made.get((pid, tid if not tasks else -tid))
        if known is not None:
            return known
        directory = ProcessDirectory(self.volume)
        self._made[pid, tid if not tasks else -tid] = directory

        def file(
            name: bytes,
            content: Callable[[ProcProcess], bytes],
            store: Store | None = None,
            mode: int = 0,
        ) -> None:
            node = PseudoFile(self.volume, lambda: content(self._alive(pid)), store, mode)
            directory.mount(name, node)

        file(b"maps", text.maps)
        file(b"smaps", text.smaps)
        file(b"status", lambda p: text.status(p, tid, self.volume.identity))
        file(b"stat", lambda p: text.stat_line(p, tid))
        file(b"statm", text.statm)
        file(b"cmdline", lambda p: p.cmdline())
        file(b"environ", lambda p: p.environ(), mode=0o400)
        file(b"auxv", lambda p: p.auxv(), mode=0o400)
        file(b"limits", text.limits)
        file(b"cgroup", lambda _: b"0::/\n")
        file(b"mounts", lambda _: text.MOUNTS)
        file(b"mountinfo", lambda _: text.MOUNTINFO)
        file(b"oom_score", lambda _: b"0\n")
        file(b"wchan", lambda _: b"0")
        file(
            b"comm",
            lambda p: p.comm + b"\n",
            lambda data: self._alive(pid).set_comm(data.rstrip(b"\n")[:15]),
        )
        network = PseudoDirectory(self.volume)
        for name, node in self._network.mounts.items():
            network.mount(name, node)
        directory.mount(b"net", network)
        self._adjustment(directory)
        self._links(directory, pid)
        if tasks:
            directory.mount(b"task", self._tasks(pid))
        return directory

    def _adjustment(self, directory: Directory) -> None:
        value = [b"0"]

        def store(data: bytes) -> None:
            try:
                number = int(data)
            except ValueError:
                raise LinuxError(22) from None
            if not -1000 <= number <= 1000:
                raise LinuxError(22)
            value[0] = b"%d" % number

        node = PseudoFile(self.volume, lambda: value[0] + b"\n", store)
        directory.mount(b"oom_score_adj", node)

    def _links(self, directory: Directory, pid: int) -> None:
        def place(path: Callable[[ProcProcess], bytes]) -> MagicLink:
            return MagicLink(
                self.volume,
                lambda: path(self._alive(pid)),
                lambda: self._resolve(path(self._alive(pid))),
            )

        def here() -> bytes:
            found = self._alive(pid).directory
            return found.path_of() + (b" (deleted)" if found.removed else b"")

        directory.mount(b"exe", place(lambda p: p.exe))
        directory.mount(b"cwd", MagicLink(self.volume, here, lambda: self._alive(pid).directory))
        directory.mount(b"root", place(lambda _: b"/"))

        def names() -> list[bytes]:
            return [b"%d" % fd for fd in self._alive(pid).files]

        def opened(name: bytes) -> OpenFile | None:
            process = self.source.process(pid)
            if process is None or not name.isdigit() or len(name) > 9:
                return None
            return process.files.peek(int(name))

        def link(name: bytes) -> Node | None:
            file = opened(name)
            if file is None:
                return None
            ino = (pid << 32) + (int(name) << 1)
            return MagicLink(self.volume, file.describe, lambda: file, ino)

        def info(name: bytes) -> Node | None:
            file = opened(name)
            if file is None:
                return None
            return PseudoFile(
                self.volume, lambda: b"pos:\t%d\nflags:\t0%o\nmnt_id:\t1\nino:\t%d\n" % (
                    file.offset, file.flags, file.stat().ino
                ) + file.details()
            )  # fmt: skip

        directory.mount(b"fd", DynamicDirectory(self.volume, names, link, 0o500))
        directory.mount(b"fdinfo", DynamicDirectory(self.volume, names, info))

    def _tasks(self, pid: int) -> Directory:
        def names() -> list[bytes]:
            return [b"%d" % tid for tid in self._alive(pid).threads()]

        def task(name: bytes) -> Node | None:
            if name not in names():
                return None
            return self._directory(pid, int(name), tasks=False)

        return DynamicDirectory(self.volume, names, task)


class ProcessDirectory(PseudoDirectory):
    """/proc/PID; owned by the guest's user."""

    def stat(self) -> Stat:
        """Its attributes."""
        who = self.volume.identity
        return super().stat()._replace(uid=who.uid, gid=who.gid, mode=stat.S_IFDIR | 0o555)


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
