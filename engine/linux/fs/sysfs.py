"""/sys: the handful of files that C libraries and allocators read."""

from engine.linux.fs.pseudo import PseudoDirectory, PseudoFile
from engine.linux.fs.vfs import Directory, Volume

_TOPOLOGY = {
    **dict.fromkeys((b"core_id", b"die_id", b"physical_package_id"), b"0\n"),
    **dict.fromkeys((b"thread_siblings", b"core_siblings", b"core_cpus"), b"1\n"),
    **dict.fromkeys((b"thread_siblings_list", b"core_siblings_list", b"core_cpus_list"), b"0\n"),
}

_FILES = {
    b"devices/system/cpu/online": b"0\n",
    b"devices/system/cpu/possible": b"0\n",
    b"devices/system/cpu/present": b"0\n",
    b"devices/system/cpu/kernel_max": b"0\n",
    b"devices/system/cpu/cpu0/online": b"1\n",
    **{b"devices/system/cpu/cpu0/topology/" + name: text for name, text in _TOPOLOGY.items()},
    b"devices/system/node/online": b"0\n",
    b"devices/system/node/possible": b"0\n",
    b"devices/system/node/has_cpu": b"0\n",
    b"devices/system/node/node0/cpulist": b"0\n",
    b"devices/system/node/node0/cpumap": b"1\n",
    b"kernel/mm/transparent_hugepage/enabled": b"always madvise [never]\n",
    b"kernel/mm/transparent_hugepage/hpage_pmd_size": b"2097152\n",
}


def mount_files(top: Directory, volume: Volume, files: dict[bytes, bytes]) -> None:
    """Put files with fixed contents into a tree, with the directories they need."""
    for path, text in files.items():
        *folders, name = path.split(b"/")
        directory = top
        for folder in folders:
            below = directory.mounts.get(folder)
            if not isinstance(below, Directory):
                below = PseudoDirectory(volume)
                directory.mount(folder, below)
            directory = below
        directory.mount(name, PseudoFile(volume, lambda text=text: text))  # type: ignore[misc]


def make_sys(volume: Volume) -> Directory:
    """The directory /sys."""
    top = PseudoDirectory(volume)
    mount_files(top, volume, _FILES)
    return top
