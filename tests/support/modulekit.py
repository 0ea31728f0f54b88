"""Trees of kernel modules that consist of nothing but what they say of themselves."""

import lzma
import struct
from pathlib import Path

RELEASE = "6.1.0-7-amd64"


def module(**fields: str | list[str]) -> bytes:
    """An object file that has nothing but `.modinfo`."""
    rows = [
        (key, each)
        for key, value in fields.items()
        for each in ([value] if isinstance(value, str) else value)
    ]
    info = b"".join(f"{key}={value}".encode() + b"\0" for key, value in rows)
    names = b"\0.modinfo\0.shstrtab\0"
    body = info + names
    table = bytes(64)
    table += struct.pack("<2I4Q2I2Q", 1, 1, 0, 0, 64, len(info), 0, 0, 1, 0)
    table += struct.pack("<2I4Q2I2Q", 10, 3, 0, 0, 64 + len(info), len(names), 0, 0, 1, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<2HI3QI6H", 1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, 3, 2)
    return head + body + table


def tree(root: Path, *, below: str = "lib/modules") -> Path:
    """A root with modules of `RELEASE`."""
    folder = root / below / RELEASE
    files = {
        "kernel/fs/disk.ko": module(depends="low-level,mid", softdep="pre: sums built"),
        "kernel/lib/low-level.ko": module(depends=""),
        "kernel/lib/mid.ko.xz": lzma.compress(module(depends="low-level")),
        "kernel/lib/sums_generic.ko": module(depends="", alias=["sums", "crypto-sums"]),
        "kernel/lib/other.ko": module(depends=""),
        "modules.builtin.modinfo": b"built.file=x\0built.license=GPL\0",
    }
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "build").symlink_to("/usr/src/linux")
    return root
