"""Numbers of signals in gdb's remote protocol (include/gdb/signals.def)."""

from typing import Final

GDB_SIGNALS: Final = {
    **{number: number for number in (1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 14, 15)},
    7: 10,
    31: 12,
    23: 16,
    19: 17,
    20: 18,
    18: 19,
    17: 20,
    21: 21,
    22: 22,
    29: 23,
    24: 24,
    25: 25,
    26: 26,
    27: 27,
    28: 28,
    10: 30,
    12: 31,
    30: 32,
    32: 77,
    64: 78,
    **{number: number + 12 for number in range(33, 64)},
}
"""Linux's numbers of signals to gdb's."""
LINUX_SIGNALS: Final = {theirs: ours for ours, theirs in GDB_SIGNALS.items()}
"""gdb's numbers of signals to Linux's."""
