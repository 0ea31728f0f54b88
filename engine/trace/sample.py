"""The event of samples: a tick of the guest's clock, and the call stack behind it.

Its one column is how many ticks a sample stands for, as `perf` has its `period`.
"""

import struct
from typing import Any, Final

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.trace.rows import Column, EventInfo

GROUP: Final = "sample"
NAME: Final = "blocks"
_AT: Final = ROW_HEAD * 8
_PERIOD: Final = Column("period", FieldType(ValueKind.UNSIGNED, 8), ROW_HEAD)


def sample_info(number: int) -> EventInfo:
    """The event."""
    return EventInfo(number, GROUP, NAME, (_PERIOD,), ROW_HEAD + 1, symbolic=True)


def is_sample(info: EventInfo) -> bool:
    """True if rows are samples."""
    return info.group == GROUP and info.name == NAME and info.columns == (_PERIOD,)


def period(data: Any, position: int) -> int:
    """The ticks that the sample in a row stands for."""
    found: tuple[int] = struct.unpack_from("<Q", data, position + _AT)
    return found[0]
