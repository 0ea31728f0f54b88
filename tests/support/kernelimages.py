"""Real kernel images for tests: Debian's, from the folder of a user or from Debian's packages.

`$KPROBE_TUI_KERNEL_IMAGES` names a folder that has them under the names below, modules in a
folder `modules`. Without it the packages are fetched, never installed, into the tests' cache.
Debian's archive keeps only the latest kernels: where one is gone its tests are skipped.
"""

import lzma
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest
from sysroot import KEYS, SysrootUnavailable, cache_directory, locked, package_file

from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import find_module, laid_out_module, open_kernel

AMD64_61 = "vmlinuz-6.1.0-56-amd64"
AMD64_612 = "vmlinuz-6.12.117+deb13-amd64"
ARM64_61 = "vmlinuz-6.1.0-56-arm64"
UML_61 = "linux.uml"
GOLDEN = {AMD64_61: "amd64-6.1", AMD64_612: "amd64-6.12", ARM64_61: "arm64-6.1", UML_61: "uml-6.1"}
"""Folders of `tests/data/kernel` with what the kernels themselves said."""

SLOW_612 = pytest.param(AMD64_612, marks=pytest.mark.slow)
SLOW_ARM64 = pytest.param(ARM64_61, marks=pytest.mark.slow)
"""Parameters: the fast tests fetch and open the first image alone, and user-mode Linux."""

DATA = Path(__file__).parents[1] / "data" / "kernel"

_SECURITY = f"deb [signed-by={KEYS}] http://deb.debian.org/debian-security"
_PACKAGES = {
    AMD64_61: ("linux-image-6.1.0-56-amd64-unsigned", "amd64", ""),
    AMD64_612: (
        "linux-image-6.12.117+deb13-amd64-unsigned",
        "amd64",
        f"{_SECURITY} trixie-security main",
    ),
    ARM64_61: ("linux-image-6.1.0-56-arm64-unsigned", "arm64", ""),
    UML_61: ("user-mode-linux", "amd64", ""),
}
"""Package, architecture and source of each image."""
_FILES = {AMD64_61: "boot/*", AMD64_612: "boot/*", ARM64_61: "boot/*", UML_61: "usr/bin/linux.uml"}
_MODULES = (
    *("8021q", "cordic", "crc-itu-t", "crc16", "crc64", "crc7", "crc8", "ext4", "fat", "libarc4"),
    *("lru_cache", "lz4_compress", "raid6_pq", "reed_solomon", "ts_kmp"),
)
_missing: dict[str, str] = {}


def fetched(name: str) -> Path:
    """An image from its package; the modules of the first one come with it.

    Raises:
        SysrootUnavailable: it cannot be had.
    """
    folder = cache_directory() / "kernel-images"
    folder.mkdir(exist_ok=True)
    path = folder / name
    if name in _missing:
        raise SysrootUnavailable(_missing[name])
    with locked(path):
        if path.is_file():
            return path
        package, debian, source = _PACKAGES[name]
        try:
            with tempfile.TemporaryDirectory(dir=folder) as work:
                archive = package_file(package, debian, Path(work), source)
                _unpack(archive, name, folder, Path(work))
        except SysrootUnavailable as error:
            _missing[name] = str(error)
            raise
    return path


def fetched_modules(name: str, modules: Sequence[str]) -> list[Path]:
    """Modules of an image's kernel, as they are loaded, from its package.

    Raises:
        SysrootUnavailable: they cannot be had.
    """
    folder = cache_directory() / "kernel-images" / f"modules-of-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    found = [folder / f"{module}.ko" for module in modules]
    with locked(folder):
        if not all(path.is_file() for path in found):
            package, debian, source = _PACKAGES[name]
            with tempfile.TemporaryDirectory(dir=folder) as work:
                archive = package_file(package, debian, Path(work), source)
                tree = _extracted(archive, [f"./*/{path.name}*" for path in found], Path(work))
                for path in found:
                    stored = next(tree.rglob(f"{path.name}*"))
                    data = stored.read_bytes()
                    path.write_bytes(lzma.decompress(data) if stored.suffix == ".xz" else data)
    return found


def _extracted(archive: Path, wanted: Sequence[str], work: Path) -> Path:
    """The folder of a package's files that match a pattern."""
    tree = work / "tree"
    tree.mkdir()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as tar:
        subprocess.run(
            ["tar", "-x", "--wildcards", *wanted], cwd=tree, stdin=tar.stdout, check=True
        )
    return tree


def _unpack(archive: Path, name: str, folder: Path, work: Path) -> None:
    wanted = [f"./{_FILES[name]}"]
    if name == AMD64_61:
        wanted += [f"./*/{module}.ko*" for module in _MODULES]
    tree = _extracted(archive, wanted, work)
    if name == AMD64_61:
        modules = folder / "modules"
        modules.mkdir(exist_ok=True)
        for module in sorted(tree.rglob("*.ko")):
            packed = lzma.compress(module.read_bytes(), preset=1)
            (modules / f"{module.name}.xz").write_bytes(packed)
    found = next(path for path in tree.rglob(name))
    found.rename(folder / name)


def image_path(name: str) -> Path:
    """The path of an image; the test is skipped where it is not at hand."""
    folder = os.environ.get("KPROBE_TUI_KERNEL_IMAGES")
    if folder:
        path = Path(folder, name)
        if not path.is_file():
            pytest.skip(f"no kernel image: no {name} in KPROBE_TUI_KERNEL_IMAGES")
        return path
    try:
        return fetched(name)
    except SysrootUnavailable as error:
        pytest.skip(f"no kernel image: {name}: {error}")


@lru_cache(maxsize=2)
def _opened(path: Path) -> KernelImage:
    return open_kernel(path)


def kernel_image(name: str) -> KernelImage:
    """An image opened; the test is skipped where it is not at hand."""
    return _opened(image_path(name))


def open_module(path: Path, kernel: KernelImage | None) -> KernelImage | None:
    """A module, laid out as its kernel would load it; None where a file is none.

    Args:
        path: of the file.
        kernel: exports what the module imports; None leaves stubs.

    Raises:
        ImageError: it is damaged, or for another kernel.
    """
    module = find_module(path)
    return None if module is None else laid_out_module(module, kernel)


def module_path(name: str) -> Path:
    """The path of one of the modules of the first image, compressed with xz."""
    kernel = image_path(AMD64_61)
    path = kernel.parent / "modules" / f"{name}.ko.xz"
    if not path.is_file():
        pytest.skip(f"no kernel image: no module {name} beside {kernel}")
    return path


MODULES = tuple(re.sub(r"\.ko.*", "", name) for name in _MODULES)
"""Names of the modules."""
