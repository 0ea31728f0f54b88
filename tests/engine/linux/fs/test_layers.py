"""Which file of which layer is behind a file of an overlay mount."""

import os
from pathlib import Path

import pytest

from engine.linux.fs.attributes import InodeNumber, LowerRef
from engine.linux.fs.host import DirectoryPool, HostAnswers, HostDir
from engine.linux.fs.layers import OverlayLayers, layers_of


class Mounted(HostAnswers):
    """A host that tells of overlay mounts."""

    def __init__(self, lines: str) -> None:
        self.lines = lines

    def overlays(self) -> bytes:
        return self.lines.encode()


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        ("rw,lowerdir=/a:/b,upperdir=/u,workdir=/w", ["/u", "/a", "/b"]),
        (r"ro,lowerdir=/a\134:b:/c\040d", ["/a:b", "/c d"]),
        ("rw,lowerdir+=/a,lowerdir+=/b,upperdir=/u,xino=off", ["/u", "/a", "/b"]),
        ("rw,lowerdir=/a::/data", ["/a", "/data"]),
    ],
)
def test_layers_are_named_as_the_kernel_escapes_them(options: str, layers: list[str]) -> None:
    assert layers_of(options.encode()) == tuple(layer.encode() for layer in layers)


def test_the_topmost_layer_that_has_the_file_is_behind_it(tmp_path: Path) -> None:
    for name in ("merged/d", "upper/d", "low/d", "lowest/d", "bound"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("upper/d/one", "low/d/one", "low/d/two", "lowest/d/two", "merged/d/one"):
        (tmp_path / name).touch()
    (tmp_path / "low/d/folder").mkdir()
    mount = (
        f"36 35 0:99 {{}} {tmp_path}/{{}} rw - overlay o rw,"
        f"lowerdir={tmp_path}/low:{tmp_path}/lowest,upperdir={tmp_path}/upper\n"
    )
    host = Mounted(mount.format("/", "merged") + mount.format("/d", "bound"))
    layers, pool = OverlayLayers(host), DirectoryPool()
    own = InodeNumber(99, 7)

    def behind(folder: str, name: bytes) -> InodeNumber:
        return layers.behind(own, LowerRef(HostDir(pool, os.fsencode(tmp_path / folder)), name))

    def number(name: str) -> InodeNumber:
        return InodeNumber.of((tmp_path / name).stat())

    assert behind("merged/d", b"one") == number("upper/d/one")
    assert behind("merged/d", b"two") == number("low/d/two")
    assert behind("bound", b"two") == number("low/d/two")
    assert behind("merged/d", b"folder") == behind("merged/d", b"none") == own
    assert behind("low/d", b"two") == layers.behind(own, None) == own
    assert OverlayLayers(Mounted("")).behind(own, LowerRef(HostDir(pool, b"/"), b"x")) == own
    pool.close()
