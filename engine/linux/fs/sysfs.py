"""/sys: the handful of files that C libraries and allocators read."""

from engine.linux.fs.pseudo import PseudoDirectory, PseudoFile
from engine.linux.fs.vfs import Directory, Volume

_FILES = {
    b"devices/system/cpu/online": b"0\n",
    b"devices/system/cpu/possible": b"0\n",
    b"devices/system/cpu/present": b"0\n",
    b"devices/system/cpu/kernel_max": b"0\n",
    b"devices/system/cpu/cpu0/online": b"1\n",
    b"devices/system/node/online": b"0\n",
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
