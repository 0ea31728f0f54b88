"""Text to bytes, by Keystone: what a user types over an instruction.

Keystone has been seen to read "10" as sixteen, once in thousands of times: numbers are given to it
in hexadecimal.
"""

import re
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final

from engine.arch.base import Arch
from engine.arch.engines import KeystoneNames
from engine.errors import CommandError

_DECIMAL: Final = re.compile(r"(?<![\w.])(?<!\bst\()([1-9]\d+)(?![\w.])")
"""A number whose digits mean another one in hexadecimal; st(1) and the like have one digit."""

NO_KEYSTONE: Final = (
    "assembling needs the package keystone-engine: pip install 'kprobe-tui[assembler]'"
)
"""The message where Keystone is not installed: it has no wheels for some machines."""


@lru_cache(maxsize=8)
def _keystone(names: KeystoneNames) -> Any:
    try:
        import keystone  # a large library that most runs never need
    except ImportError as error:
        raise CommandError(NO_KEYSTONE) from error

    mode = reduce(or_, (getattr(keystone, name) for name in names.modes), 0)
    return keystone.Ks(getattr(keystone, names.arch), mode)


def in_hexadecimal(text: str) -> str:
    """Instructions with their decimal numbers spelled so that Keystone cannot mistake them."""
    return _DECIMAL.sub(lambda number: hex(int(number[1])), text)


def assemble(arch: Arch, address: int, text: str) -> bytes:
    """Bytes of instructions, separated by ";", that stand at an address.

    Raises:
        CommandError: they do not assemble, nobody assembles for this architecture, or Keystone is
            not installed.
    """
    names = arch.engines.keystone
    if names is None:
        raise CommandError(f"no assembler for {arch.name}")
    engine = _keystone(names)
    import keystone

    try:
        code, count = engine.asm(in_hexadecimal(text), address, as_bytes=True)
    except keystone.KsError as error:
        raise CommandError(f"{text}: {error.message}") from error
    if not code or not count:
        raise CommandError(f"{text}: no instruction")
    return bytes(code)
