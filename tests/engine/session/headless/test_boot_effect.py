"""The differ of boots finds the first block that makes a difference, and only real ones."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from bootkit import needs_host_code
from kernelimages import AMD64_61, image_path

from engine.session.headless.boot_effect import (
    BootDiffer,
    BootDiffRequest,
    BootEffect,
    ComparedBoot,
)
from engine.session.headless.bootable import bootable
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.requests import ProbeRequest

AT = 1_234_567
"""The block behind which a boot is disturbed."""
MOST = 24_000_000


class _Short(ComparedBoot):
    """A boot that is cut off."""

    def run(self, until: int) -> None:
        """Run no further than so many blocks."""
        super().run(min(until, MOST))
        if until >= MOST:
            self.booted.machine.halt()
            super().run(until)


class _Disturbed(_Short):
    """A boot in which something changes a byte of the kernel's text."""

    def run(self, until: int) -> None:
        """Change it at the block."""
        machine = self.booted.machine
        if until > AT >= machine.cpu.record.blocks:
            super().run(AT)
            place = self.booted.kernel.symbol("linux_banner")
            assert place is not None
            machine.cpu.store(place - 0xFFFFFFFF80000000, b"l")
        super().run(until)


def compared(second: type[ComparedBoot], probes: ProbeRequest | None) -> BootEffect:
    request = BootDiffRequest(
        BootRequest(str(image_path(AMD64_61)), memory=96 << 20), probes or ProbeRequest()
    )

    def make(
        stack: ExitStack, put: Callable[[bytes], None] | None
    ) -> tuple[ComparedBoot, ComparedBoot]:
        plain, probed = _Short(bootable(request.boot), put), second(bootable(request.boot))
        if probes is not None:
            probed.probe(request, stack)
        return plain, probed

    return BootDiffer(make, lambda data: None, 1 << 22).compare()


@needs_host_code
@pytest.mark.slow
def test_a_changed_byte_is_found_with_its_block_and_its_name() -> None:
    effect = compared(_Disturbed, None)
    first, *others = effect.lines
    assert first.startswith(f"block {AT + 1}, in front of 0xffffffff8")
    assert len(others) == 1
    assert "(linux_banner+0x0) " in others[0]
    was, now = (int(text.rpartition(" ")[2], 16) for text in others[0].split("; with probes"))
    assert was.to_bytes(8, "little") == b"Linux ve"
    assert now.to_bytes(8, "little") == b"linux ve"


@needs_host_code
@pytest.mark.slow
def test_probes_that_are_hit_change_nothing() -> None:
    probes = ProbeRequest(
        entries=("mutex_lock",), returns=("kmem_cache_alloc*",), bodies=("kmem_cache_alloc",)
    )
    effect = compared(_Short, probes)
    assert effect.lines == ()
    assert effect.places > 50
    assert effect.hits > 100
