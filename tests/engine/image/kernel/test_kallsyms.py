"""The names of real kernels are those that the kernels themselves print."""

import lzma

import pytest
from kernelimages import AMD64_61, AMD64_612, ARM64_61, DATA, GOLDEN, UML_61, kernel_image

from engine.errors import ImageError
from engine.image.kernel.kallsyms import read_kallsyms


@pytest.mark.parametrize("name", [AMD64_61, AMD64_612, ARM64_61, UML_61])
def test_names_are_the_kernels_own(name: str) -> None:
    names = kernel_image(name).names
    path = DATA / GOLDEN[name] / "kallsyms.txt.xz"
    told = lzma.decompress(path.read_bytes()).decode().splitlines()
    own = [line for line in told if "\t" not in line]
    assert list(names.lines()) == own


def test_what_has_no_names_is_told() -> None:
    with pytest.raises(ImageError, match=r"x: kallsyms: no token table"):
        read_kallsyms(bytes(100_000), "x")
