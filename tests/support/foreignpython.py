"""A Python of 64-bit ARM with the project in it, run by qemu-user: an installation elsewhere.

The interpreter and its libraries are Debian's packages, unpacked and not installed; the other
packages are the wheels that pip chooses for that machine; engine and tui are those of this run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from sysroot import CHECKOUT, SysrootUnavailable, cache_directory, locked, unpacked_packages

import engine
import tui

_PYTHON: Final = "3.11"
_MACHINE: Final = {"platform_machine": "aarch64", "python_version": _PYTHON}
_TOOLS: Final = ("hypothesis", "llvmlite", "packaging", "pytest", "pytest-xdist")
"""What conftest.py and the tests that run there import, and the extra `jit`."""


def aarch64_python() -> Path:
    """Return the interpreter of an environment that has the project and pytest.

    Raises:
        SysrootUnavailable: qemu-aarch64, the packages or the wheels cannot be had.
    """
    qemu = shutil.which("qemu-aarch64")
    if qemu is None:
        raise SysrootUnavailable("qemu-aarch64 is not installed")
    home = cache_directory() / "python-aarch64"
    with locked(home):
        tree, site = home / "tree", home / "lib" / f"python{_PYTHON}" / "site-packages"
        fresh, wheels, stamp = home / "fresh", _wanted_wheels(), home / "wheels"
        if not tree.is_dir():
            with tempfile.TemporaryDirectory(dir=home.parent) as work:
                packages = (f"python{_PYTHON}", f"libpython{_PYTHON}-stdlib", "libstdc++6")
                unpacked = unpacked_packages("arm64", packages, Path(work))
                home.mkdir(exist_ok=True)
                unpacked.rename(tree)
        if not stamp.is_file() or stamp.read_text() != "\n".join(wheels):
            for folder in (fresh, site):
                shutil.rmtree(folder, ignore_errors=True)
            _install_wheels(wheels, fresh)
            site.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(site)
            stamp.write_text("\n".join(wheels))
        for package in (engine, tui):
            _copy(Path(package.__file__ or "").parent, site)
        _copy(CHECKOUT / "samples", site / "tui")
        # As `python3 -m venv` makes one; its interpreter is a script, which names itself.
        (home / "pyvenv.cfg").write_text(f"home = {tree}/usr/bin\nversion = {_PYTHON}\n")
        python = home / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        program = f"{tree}/usr/bin/python{_PYTHON}"
        python.write_text(f'#!/bin/sh\nexec {qemu} -L {tree} -0 "$0" {program} "$@"\n')
        python.chmod(0o755)
    return python


def run_there(python: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a module of that Python in the checkout, and none of the checkout's packages."""
    kept = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [python, "-P", "-m", *words],
        cwd=CHECKOUT,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _wanted_wheels() -> list[str]:
    """What the project needs there, and pytest.

    pip judges markers by the machine that it runs on, so they are judged here.
    """
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    needed = [
        f"{one.name}{one.specifier}"
        for one in map(Requirement, project["dependencies"])
        if one.marker is None or one.marker.evaluate(dict(_MACHINE))
    ]
    return [*needed, *_TOOLS]


def _install_wheels(wheels: list[str], site: Path) -> None:
    """Fetch wheels for the machine into a new folder."""
    words = ["install", "-q", "--disable-pip-version-check", "--only-binary=:all:"]
    words += ["--platform", "manylinux2014_aarch64", "--python-version", _PYTHON]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--target", site, *wheels],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SysrootUnavailable(f"pip: {(done.stderr.splitlines() or ['failed'])[-1]}")


def _copy(folder: Path, into: Path) -> None:
    shutil.rmtree(into / folder.name, ignore_errors=True)
    shutil.copytree(folder, into / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
