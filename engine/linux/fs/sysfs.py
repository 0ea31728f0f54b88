"""/sys: the handful of files that C libraries and allocators read."""

from functools import partial

from engine.linux import cpus
from engine.linux.fs.procsource import ProcSource
from engine.linux.fs.pseudo import PseudoDirectory, PseudoFile
from engine.linux.fs.vfs import Directory, Volume

_FILES = {
    b"devices/system/node/online": b"0\n",
    b"devices/system/node/possible": b"0\n",
    b"devices/system/node/has_cpu": b"0\n",
    b"kernel/mm/transparent_hugepage/enabled": b"always madvise [never]\n",
    b"kernel/mm/transparent_hugepage/hpage_pmd_size": b"2097152\n",
}
_EMPTY = (b"block", b"class/block", b"class/net", b"dev/block", b"dev/char")
"""There are no devices."""
_CGROUP_FILES = {
    b"cgroup.controllers": b"\n",
    b"cgroup.max.depth": b"max\n",
    b"cgroup.max.descendants": b"max\n",
    b"cgroup.stat": b"nr_descendants 0\nnr_dying_descendants 0\n",
    b"cgroup.subtree_control": b"\n",
}
_OWN = (b"thread_siblings", b"core_cpus")
_ALL = (b"core_siblings", b"package_cpus")


def _cpu_files(count: int) -> dict[bytes, bytes]:
    """Files about processors: cores of one package, without siblings."""
    everybody = cpus.all_of(count)

    def told(mask: int) -> tuple[bytes, bytes]:
        text, ranges = cpus.mask_text(mask, count), cpus.list_text(mask)
        return f"{text}\n".encode(), f"{ranges}\n".encode()

    mask, ranges = told(everybody)
    found = {
        **dict.fromkeys((b"online", b"possible", b"present"), ranges),
        b"kernel_max": b"%d\n" % (count - 1),
    }
    for number in range(count):
        own, own_range = told(1 << number)
        folder = b"cpu%d/" % number
        found[folder + b"online"] = b"1\n"
        found[folder + b"topology/core_id"] = b"%d\n" % number
        found[folder + b"topology/die_id"] = b"0\n"
        found[folder + b"topology/physical_package_id"] = b"0\n"
        for names, text, listed in ((_OWN, own, own_range), (_ALL, mask, ranges)):
            for name in names:
                found[folder + b"topology/" + name] = text
                found[folder + b"topology/" + name + b"_list"] = listed
    files = {b"devices/system/cpu/" + name: text for name, text in found.items()}
    return {
        **files,
        b"devices/system/node/node0/cpulist": ranges,
        b"devices/system/node/node0/cpumap": mask,
    }


def mount_directory(top: Directory, volume: Volume, path: bytes) -> Directory:
    """A directory of a tree, made with those above it if it is not there yet."""
    directory = top
    for folder in path.split(b"/") if path else ():
        below = directory.mounts.get(folder)
        if not isinstance(below, Directory):
            below = PseudoDirectory(volume)
            directory.mount(folder, below)
        directory = below
    return directory


def mount_files(top: Directory, volume: Volume, files: dict[bytes, bytes]) -> None:
    """Put files with fixed contents into a tree, with the directories they need."""
    for path, text in files.items():
        folder, _, name = path.rpartition(b"/")
        directory = mount_directory(top, volume, folder)
        directory.mount(name, PseudoFile(volume, partial(bytes, text)))


def make_cgroup(volume: Volume, proc: ProcSource) -> Directory:
    """The directory /sys/fs/cgroup: one control group without controllers, with all processes.

    Args:
        volume: its device.
        proc: the processes.
    """
    top = PseudoDirectory(volume)
    mount_files(top, volume, _CGROUP_FILES)
    for name in (b"cgroup.procs", b"cgroup.threads"):
        top.mount(name, PseudoFile(volume, lambda: b"".join(b"%d\n" % pid for pid in proc.pids())))
    return top


def make_sys(volume: Volume, count: int = 1, cgroup: Directory | None = None) -> Directory:
    """The directory /sys of a machine with so many processors.

    Args:
        volume: its device.
        count: the processors.
        cgroup: what is mounted at fs/cgroup; None for nothing.
    """
    top = PseudoDirectory(volume)
    mount_files(top, volume, {**_FILES, **_cpu_files(count)})
    for path in _EMPTY:
        mount_directory(top, volume, path)
    if cgroup is not None:
        mount_directory(top, volume, b"fs").mount(b"cgroup", cgroup)
    return top
