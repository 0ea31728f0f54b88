"""Text to bytes, by Keystone: what a user types over an instruction."""

from functools import lru_cache
from typing import Any

from engine.arch.base import Arch
from engine.errors import CommandError


@lru_cache(maxsize=8)
def _keystone(name: str) -> Any:
    import keystone  # a large library that most runs never need

    modes = {
        "X86": (keystone.KS_ARCH_X86, keystone.KS_MODE_64),
        "ARM64": (keystone.KS_ARCH_ARM64, keystone.KS_MODE_LITTLE_ENDIAN),
    }
    if name not in modes:
        raise CommandError(f"no assembler for {name}")
    return keystone.Ks(*modes[name])


def assemble(arch: Arch, address: int, text: str) -> bytes:
    """Bytes of instructions, separated by ";", that stand at an address.

    Raises:
        CommandError: they do not assemble, or nobody assembles for this architecture.
    """
    if arch.engines.keystone is None:
        raise CommandError(f"no assembler for {arch.name}")
    engine = _keystone(arch.engines.keystone)
    import keystone

    try:
        code, count = engine.asm(text, address, as_bytes=True)
    except keystone.KsError as error:
        raise CommandError(f"{text}: {error.message}") from error
    if not code or not count:
        raise CommandError(f"{text}: no instruction")
    return bytes(code)
