"""Small real programs and the binaries of this machine."""

import shutil
from pathlib import Path

import pytest

_GUESTS = Path(__file__).parents[2] / "data" / "guests"
_BINARIES = ("/usr/bin/python3", "/bin/busybox", "/bin/bash", "libc.so.6", "libstdc++.so.6")
_LIBRARIES = (
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
)


@pytest.fixture(scope="session")
def guests() -> Path:
    """The folder of the committed guests: ARCH/NAME."""
    return _GUESTS


@pytest.fixture(scope="session")
def tiny() -> bytes:
    """The smallest guest: x86-64, no symbols, 4 program headers, 6 sections."""
    return (_GUESTS / "amd64" / "tiny").read_bytes()


@pytest.fixture(scope="session")
def unwinding() -> bytes:
    """An x86-64 guest with .symtab, .eh_frame and DWARF 5."""
    return (_GUESTS / "amd64" / "unw-O2").read_bytes()


@pytest.fixture(scope="session", params=_BINARIES)
def binary(request: pytest.FixtureRequest) -> Path:
    """A real program or library of this machine."""
    name = str(request.param)
    folders = ("",) if name.startswith("/") else _LIBRARIES
    for folder in folders:
        path = Path(folder, name)
        if path.is_file():
            return path.resolve()
    pytest.skip(f"{name} is not on this machine")


@pytest.fixture(scope="session")
def readelf() -> str:
    """The path of binutils' readelf."""
    path = shutil.which("readelf")
    if path is None:
        pytest.skip("no readelf on this machine")
    return path
