"""Modules built for a kernel that tests boot, by Debian's headers of that kernel.

The packages are unpacked into the tests' cache, never installed: the headers of the kernel, those
that its flavours share, and the programs that build with them. Where the archive has gone on to
another kernel there are no headers for ours, and tests are skipped.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from compiled import tool
from sysroot import SysrootUnavailable, cache_directory, locked, package_file

_PLACE = "/usr/src"
"""Where the packages expect to be."""


def _packages(release: str) -> tuple[str, ...]:
    version, _, flavour = release.rpartition("-")
    series = ".".join(version.split(".")[:2])
    return (
        f"linux-headers-{version}-{flavour}",
        f"linux-headers-{version}-common",
        (f"linux-kbuild-{series}"),
    )


def headers(image: str) -> Path:
    """The folder that modules for an image's kernel are built in; skips where there is none.

    Args:
        image: name of the image, one of `kernelimages`.
    """
    release = image.removeprefix("vmlinuz-")
    tree = cache_directory() / f"kernel-headers-{release}"
    place = tree / "usr/src" / f"linux-headers-{release}"
    with locked(tree):
        if not tree.is_dir():
            fresh = tree.with_name(tree.name + ".new")
            shutil.rmtree(fresh, ignore_errors=True)
            try:
                for number, package in enumerate(_packages(release)):
                    work = fresh / f"work-{number}"
                    work.mkdir(parents=True)
                    archive = package_file(package, "amd64", work)
                    subprocess.run(["dpkg-deb", "-x", archive, fresh], check=True)
                    shutil.rmtree(work)
            except SysrootUnavailable as error:
                pytest.skip(f"no kernel image: no headers of {release}: {error}")
            makefile = fresh / place.relative_to(tree) / "Makefile"
            makefile.write_text(makefile.read_text().replace(_PLACE, f"{tree}{_PLACE}"))
            fresh.rename(tree)
    return place


def built_modules(image: str, sources: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """Modules by name, built from C for an image's kernel; skips where they cannot be.

    Args:
        image: name of the image.
        sources: the text of each module's only file, by its name.
        folder: an empty one for them.
    """
    build = headers(image)
    compiler = tool("gcc-12") if shutil.which("gcc-12") else tool("gcc")
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(text)
    (folder / "Makefile").write_text(f"obj-m := {' '.join(f'{name}.o' for name in sources)}\n")
    command: list[str | Path] = [
        tool("make"),
        "-s",
        "-C",
        build,
        f"M={folder}",
        f"CC={compiler}",
        "modules",
    ]
    done = subprocess.run(
        command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name: folder / f"{name}.ko" for name in sources}


def kernel_sources(image: str, names: tuple[str, ...], folder: Path) -> Path:
    """Files of the sources that Debian has built an image from; skips where they are not at hand.

    Args:
        image: name of the image.
        names: paths of files or folders in the tree.
        folder: an empty one for them.

    Returns:
        The top of the tree.
    """
    series = ".".join(image.removeprefix("vmlinuz-").split(".")[:2])
    packed = cache_directory() / f"linux-source-{series}.tar.xz"
    with locked(packed):
        if not packed.is_file():
            work = folder / "work"
            work.mkdir()
            try:
                archive = package_file(f"linux-source-{series}", "amd64", work)
            except SysrootUnavailable as error:
                pytest.skip(f"no kernel sources: {error}")
            subprocess.run(["dpkg-deb", "-x", archive, work], check=True)
            shutil.move(work / "usr/src" / packed.name, packed)
            shutil.rmtree(work)
    top = f"linux-source-{series}"
    wanted = [f"{top}/{name}" for name in names]
    subprocess.run(["tar", "-xf", packed, *wanted], cwd=folder, check=True)
    return folder / top
