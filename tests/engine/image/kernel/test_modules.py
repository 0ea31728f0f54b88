"""Modules are laid out and relocated as the kernel's loader does."""

import lzma
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from kernelimages import AMD64_61, MODULES, kernel_image, module_path, open_module

from engine.errors import ImageError
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.modules import STUBS
from engine.image.kernel.opening import find_module
from engine.image.kernel.recognition import is_kernel_image

SOURCE = """
extern int exported(int);
extern int nobody(int);
static int table[4] = {1, 2, 3, 4};
int *pointer = &table[2];
int doubled(int n) { return exported(n) + nobody(n) + *pointer; }
const char text[] __attribute__((section(".modinfo"))) =
    "name=tried\\0vermagic=6.1.0-56-amd64 SMP\\0";
char this_module[64] __attribute__((section(".gnu.linkonce.this_module")));
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module made by the compiler, without a kernel's build."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    folder = tmp_path_factory.mktemp("module")
    (folder / "m.c").write_text(SOURCE)
    options = ["-c", "-O1", "-fno-pic", "-mcmodel=kernel", "-mno-red-zone"]
    subprocess.run(["gcc", *options, "m.c", "-o", "tried.ko"], cwd=folder, check=True)
    return folder / "tried.ko"


def test_a_module_without_its_kernel_has_stubs_for_its_imports(made: Path) -> None:
    assert is_kernel_image(made)
    packed = find_module(made)
    assert packed is not None
    assert packed.release == "6.1.0-56-amd64"
    image = open_module(made, None)
    assert image is not None
    assert image.module == "tried"
    assert image.release.version == (6, 1, 0)
    assert image.unresolved == ("exported", "nobody")
    stubs = image.elf.section(STUBS)
    assert stubs is not None
    assert image.symbol("nobody") == stubs.addr + 16
    assert image.read(stubs.addr, 3).hex() == "31c0c3"
    pointer, table = image.symbol("pointer"), image.symbol("table")
    assert pointer is not None
    assert table is not None
    assert int.from_bytes(image.read(pointer, 8), "little") == table + 8
    assert int.from_bytes(image.read(table, 4), "little") == 1


def test_what_is_cut_short_is_told(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    for size in range(64, len(whole), 97):
        (tmp_path / "cut.ko").write_bytes(whole[:size])
        with suppress(ImageError):
            assert open_module(tmp_path / "cut.ko", None) is None


def test_every_byte_may_be_wrong(made: Path, tmp_path: Path) -> None:
    whole = made.read_bytes()
    for at in range(0, len(whole), 13):
        (tmp_path / "bad.ko").write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        try:
            image = open_module(tmp_path / "bad.ko", None)
        except ImageError:
            continue
        assert image is None or image.is_module


@pytest.mark.parametrize("title", MODULES)
def test_modules_of_a_distribution_load(title: str) -> None:
    path = module_path(title)
    kernel = kernel_image(AMD64_61)
    image = open_module(path, kernel)
    assert isinstance(image, KernelImage)
    assert not any(kernel.names.count(name) for name in image.unresolved)
    others = {"8021q": "garp", "ext4": "jbd2"}  # modules that it needs first
    if title in others:
        assert any(name.startswith(others[title]) for name in image.unresolved)
    else:
        assert image.unresolved == ()
    assert image.release.release == kernel.release.release
    names = image.names
    inner = lzma.decompress(path.read_bytes())
    assert f"vermagic={kernel.release.release}".encode() in inner
    for address, name in zip(names.addresses, names.names, strict=True):
        assert image.holds(address), name


def test_a_module_for_another_kernel_is_told(made: Path) -> None:
    wrong = made.with_name("wrong.ko")
    wrong.write_bytes(made.read_bytes().replace(b"6.1.0-56", b"6.1.0-55"))
    with pytest.raises(ImageError, match=r"for Linux 6\.1\.0-55-amd64"):
        open_module(wrong, kernel_image(AMD64_61))
