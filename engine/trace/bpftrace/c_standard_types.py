"""Names of integers that C's headers and the kernel's declare everywhere."""

from typing import Final

from engine.language.made_records import MadeAlias
from engine.language.value_types import integer

_STANDARD: Final = {
    **{f"{sign}int{bits}{tail}": (bits, not sign) for sign in ("", "u") for bits in (8, 16, 32, 64)
       for tail in ("", "_t")},
    **{f"{under}{letter}{bits}": (bits, letter == "s") for under in ("", "__")
       for letter in "su" for bits in (8, 16, 32, 64)},
    **{f"__{order}{bits}": (bits, False) for order in ("le", "be") for bits in (16, 32, 64)},
    **{f"u_int{bits}_t": (bits, False) for bits in (8, 16, 32, 64)},
    "__sum16": (16, False),
    "__wsum": (32, False),
    "u_char": (8, False),
    "u_short": (16, False),
    "u_int": (32, False),
    "umode_t": (16, False),
    "dev_t": (32, False),
    "pid_t": (32, True),
    "uid_t": (32, False),
    "gid_t": (32, False),
    "gfp_t": (32, False),
    "fmode_t": (32, False),
    "loff_t": (64, True),
    "sector_t": (64, False),
    "ino_t": (0, False),
    "size_t": (0, False),
    "ssize_t": (0, True),
    "off_t": (0, True),
    "time_t": (0, True),
    "uintptr_t": (0, False),
    "intptr_t": (0, True),
    "u_long": (0, False),
}  # fmt: skip
"""Bits, 0 for those of a pointer, and whether there is a sign."""


def standard_type(name: str, pointer_size: int) -> MadeAlias | None:
    """The type that a name stands for; None if it is none of them.

    Args:
        name: as headers have it: "uint32_t", "size_t".
        pointer_size: bytes of an address.
    """
    if name not in _STANDARD:
        return None
    bits, signed = _STANDARD[name]
    made = integer(bits // 8 or pointer_size, signed=signed)
    return MadeAlias(made.kind, made.size, name, made_of=made)
