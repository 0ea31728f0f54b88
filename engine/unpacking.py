"""Limits of what files unpack to, so that a small hostile file cannot fill the memory.

What is opened was often written by somebody else. Programs, journals and kernels pack to a fourth
or a tenth of their size; what packs a hundred times better is made of repetitions, and only a
small file is believed to be that. Who trusts a file sets $KPROBE_TUI_UNPACK_MAX.
"""

import os
from typing import Final

from engine.errors import CommandError

ENVIRONMENT: Final = "KPROBE_TUI_UNPACK_MAX"
RATIO: Final = 32
"""Bytes that each packed byte may stand for, beside what any file may unpack to."""
_UNITS: Final = {"K": 10, "M": 20, "G": 30}


def unpack_limit(stored: int, spare: int, most: int | None = None, *, ratio: int = RATIO) -> int:
    """Bytes that something packed may unpack to.

    Args:
        stored: bytes of it.
        spare: bytes that it may unpack to however small it is.
        most: bytes that it may unpack to however large it is; None for any number.
        ratio: bytes that each byte of it may stand for beside that.

    Raises:
        CommandError: $KPROBE_TUI_UNPACK_MAX is no number of bytes.
    """
    limit = spare + ratio * stored
    return max(limit if most is None else min(limit, most), _allowed())


def beyond_limit(size: int | None, limit: int) -> str:
    """The words for something that unpacks to more than it may, with the way out.

    Args:
        size: bytes that it unpacks to, None where that is not known.
        limit: bytes that it may unpack to.
    """
    what = f"{limit >> 20} MB" if size is None else f"{limit >> 20} MB, to {-(-size >> 20)} MB"
    wanted = "1G" if size is None else f"{-(-size >> 20)}M"
    return (
        f"it unpacks to more than {what}, which a file of its size hardly does; if you trust it, "
        f"{ENVIRONMENT}={wanted} allows that"
    )


def _allowed() -> int:
    """Bytes that the user allows."""
    text = os.environ.get(ENVIRONMENT, "")
    if not text:
        return 0
    digits, unit = text.rstrip("KMGkmg"), text[-1].upper()
    if not (digits.isascii() and digits.isdigit() and len(text) - len(digits) <= 1):
        raise CommandError(f"{ENVIRONMENT}: {text!r} is no number of bytes; as 800M or 2G")
    return int(digits) << _UNITS.get(unit, 0)
