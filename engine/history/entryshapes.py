"""The kinds of the values that each thing in an entry of the journal consists of.

A journal that this process has written has them; one of a file may have anything, and what is
carried out blindly would be found wrong much later, where nobody thinks of the file any more.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from engine.history.journal import EntryCause, Op

_CAUSES: Final = frozenset(EntryCause)
_PLAIN: Final[dict[int, list[type]]] = {
    kind: [int, *kinds]
    for kind, kinds in {
        Op.WRITE: (int, bytes),
        Op.POKE: (int, int, bytes),
        Op.FILL: (int, bytes),
        Op.ZERO: (int, int),
        Op.COPY: (int, int, int),
        Op.REGISTER: (str, int),
        Op.SAVE: (),
        Op.RESTORE: (int,),
        Op.EXECUTE: (int, int),
        Op.EXPECT: (int,),
        Op.BEGIN: (),
        Op.CLEAR_FLAGS: (),
        Op.SWITCH: (int,),
        Op.RETURN: (int, bool),
        Op.WAIT: (),
        Op.NOTICE: (int, str, int, int),
        Op.SPACE: (int, int),
        Op.LENT: (int, int, int),
        Op.REPLACED: (int, int, int),
        Op.ENDED: (int,),
        Op.THREAD: (int, int, int, int, int, bytes, int),
        Op.FIRST: (int,),
        Op.LEAVES: (int, bool, int, int),
        Op.SWITCHING: (int, int, str),
        Op.WOKEN: (int,),
        Op.EXECUTED: (int, int, bytes),
        Op.NAME: (int, bytes),
        Op.SIGNAL: (int,),
        Op.OUTPUT: (int, bytes),
        Op.CONTENT: (int, bytes),
    }.items()
}
"""The type of the kind itself and of what follows it."""
_Crash: TypeAlias = tuple[int, int, int, str]
_Address: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Mapping: TypeAlias = tuple[
    _Address,
    _Address,
    Annotated[int, msgspec.Meta(ge=0, le=7)],
    int,
    str,
    _Address,
    bool,
    _Address,
    _Address,
    bool,
    int,
    Annotated[int, msgspec.Meta(ge=0)],
    int,
]
"""See `engine.history.layout.MappingValue`."""
_NESTED: Final[dict[int, Any]] = {
    Op.BLOCK: tuple[int, tuple[str, ...], int, bytes],
    Op.MAPPINGS: tuple[int, int, _Address, _Address, tuple[_Mapping, ...]],
    Op.PROGRAM: tuple[
        int,
        int,
        tuple[tuple[str, int], ...],
        bytes,
        tuple[bytes, ...],
        tuple[bytes, ...],
        tuple[_Address, _Address],
        tuple[_Address, _Address],
        bytes,
    ],
    Op.EXIT: tuple[int, int, int, int, list[Any]],
    Op.END: tuple[
        int, int, int, str, bool, list[Any], tuple[tuple[str, ...], int, dict[str, int]]
    ],
}
"""The shapes of kinds whose values hold other values."""
_CRASH_AT: Final = {Op.EXIT: 4, Op.END: 5}
"""The place of the crash, which may be empty."""


def check_entry(cause: int, ops: Sequence[Any]) -> None:
    """Look at what an entry of somebody else's says.

    Raises:
        ValueError: something is not what it should be.
    """
    if cause not in _CAUSES:
        raise ValueError(f"a stop of kind {cause}")
    for op in ops:
        kind = op[0] if isinstance(op, list) and op else None
        if type(kind) is not int:
            raise ValueError("something of no kind")
        if list(map(type, op)) == _PLAIN.get(kind):
            continue
        shape = _NESTED.get(kind)
        if shape is None:
            raise ValueError(f"something of kind {kind} with values of other kinds")
        msgspec.convert(op, shape)  # its error is a ValueError
        at = _CRASH_AT.get(kind)
        if at is not None and op[at]:
            msgspec.convert(op[at], _Crash)
