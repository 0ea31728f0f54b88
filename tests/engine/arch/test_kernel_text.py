"""Whole kernel images: their tables and live text are what the kernels themselves had."""

import pytest
from kernelgolden import golden_blacklist, golden_patches
from kernelimages import AMD64_61, AMD64_612, ARM64_61, SLOW_612, SLOW_ARM64, kernel_image
from msgspec.structs import replace

from engine.arch import by_name
from engine.image.damage import Damage
from engine.image.kernel.cpumodel import cpu_named
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.sitetables import SiteTables

ARCHITECTURES = {AMD64_61: "x86_64", AMD64_612: "x86_64", ARM64_61: "aarch64"}


def _tables(image: KernelImage, name: str) -> SiteTables:
    shapes = by_name(ARCHITECTURES[name]).kernel_shapes
    damage = Damage()
    tables = SiteTables(image, image.names.addresses, damage, shapes)
    assert damage.found() == ()
    return tables


@pytest.mark.parametrize("name", [AMD64_61, SLOW_612, SLOW_ARM64])
def test_the_blacklist_is_the_kernels_own(name: str) -> None:
    image = kernel_image(name)
    named = []
    for start, end in _tables(image, name).blacklist_ranges:
        place = image.names.at(start)
        named.append((start, end, place.name if place is not None else ""))
    assert named == golden_blacklist(name)


_BOOT = ("memory", "kernel at", "hyp tag")
"""Fields of the machine's memory, and of the random number that was drawn at that boot."""


@pytest.mark.parametrize(
    ("name", "share"),
    [
        (AMD64_61, 0.9999),
        pytest.param(AMD64_612, 0.9998, marks=pytest.mark.slow),
        pytest.param(ARM64_61, 0.9998, marks=pytest.mark.slow),
    ],
)
def test_the_live_text_is_the_kernels_own(name: str, share: float) -> None:
    """The rest depends on memory or on which code ran first."""
    image = kernel_image(name)
    boot = by_name(ARCHITECTURES[name]).kernel_text
    assert boot is not None
    cpu = cpu_named("golden", ARCHITECTURES[name])
    patches = boot(image, _tables(image, name), cpu).patches()
    golden = golden_patches(name)
    places = {address + i for address, after in golden.items() for i in range(len(after))}
    assert [patch for patch in patches if patch.address not in places] == []
    equal = sum(golden.get(patch.address) == patch.after for patch in patches)
    assert equal >= share * len(golden)
    if name == ARM64_61:
        fields = {key: value for key, value in cpu.fields.items() if key not in _BOOT}
        without = boot(image, _tables(image, name), replace(cpu, fields=fields)).patches()
        assert {each.address for each in without} <= places
        assert sum(golden.get(each.address) == each.after for each in without) >= 45_540
    for patch in patches:
        assert patch.before == image.read(patch.address, len(patch.before))
