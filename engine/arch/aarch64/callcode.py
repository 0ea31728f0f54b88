"""Calls recorded and ended by AArch64 code: what return probes do in a detour.

What has to hold is reduced to one number that is 0 if it does: each branch would be a block of
its own to the emulator. Flags are left alone.
"""

from typing import Final

from engine.arch.aarch64.emit import (
    ADD,
    BASE,
    CBZ,
    EOR,
    LSL,
    LSR,
    ORN,
    ORR,
    SP,
    SUB,
    VALUE,
    Code,
)
from engine.arch.aarch64.fetches import ROW, Fetches
from engine.arch.recording import (
    CALLS,
    CHAINED,
    CURSOR,
    LOWEST,
    OUTSIDE,
    SITE_SHIFT,
    SITES,
    CallEntry,
    CallReturn,
    CallWord,
    NotCompilableError,
)

TRAP: Final = 0xD42000C0
"""`brk` as breakpoints of kprobes have it."""
OTHER: Final = 14
"""A register that `check_return` uses beside `ROW`, x16 and x17."""

_LINK, _THIRD = 30, 13
ENTRY_USES: Final = (OTHER, _THIRD)
"""Registers that `enter` uses beside `ROW`, x16 and x17."""

_RECORD: Final = CallWord.SIZE * 8
_CHAINED_BIT: Final = CHAINED.bit_length() - 1
_MINUS_ONE: Final = 0xD1000400
"""`sub` of 1 with its registers left out."""
_SITE_BITS: Final = SITES.bit_length() - 1


def enter(fetches: Fetches, work: CallEntry) -> tuple[int, int, int]:
    """The code for the entry of a return probe: where it begins, begins anew, and is slow.

    `ROW` and `ENTRY_USES` change.

    Raises:
        NotCompilableError: more is captured than a record holds, or what code cannot read.
    """
    if len(work.kept) > CallWord.SIZE - CallWord.KEPT:
        raise NotCompilableError("too many values from the entry")
    code, places = fetches.code, fetches.places
    fetches.changed |= {ROW, *ENTRY_USES}
    start = code.label("enter")
    _may_enter(fetches)
    code.branch(CBZ | VALUE, "entered")
    _is_tail_call(fetches)
    code.branch(CBZ | VALUE, "entered")
    slow = code.label("refused")
    code.add(TRAP)
    code.label("entered")
    fetches.call = OTHER, _RECORD
    _new_record(fetches, work)
    if work.row is not None:
        _row(fetches, work)
    code.move(VALUE, OTHER)
    code.plus(VALUE, _RECORD)
    fetches.save_area()
    code.store(VALUE, BASE, CALLS)
    code.constant(BASE, places.left)
    code.store_pair(SP, SP, BASE, 0)  # as the zero register
    code.constant(BASE, work.counter)
    code.load(VALUE, BASE, 0)
    code.plus(VALUE, 1)
    code.store(VALUE, BASE, 0)
    return start, start, slow


def _may_enter(fetches: Fetches) -> None:
    """x17 is 0 if a call may be recorded; x14 is the newest call's record.

    The return must be caught where it leads to, and the frame lie between the lowest one allowed
    and that of the newest call.
    """
    code, places = fetches.code, fetches.places
    code.constant(BASE, places.sites)
    bits = SITE_SHIFT << 16 | _SITE_BITS + SITE_SHIFT - 1 << 10
    code.add(0xD3400000 | bits | _LINK << 5 | VALUE)  # ubfx
    code.add(0xF8607800 | VALUE << 16 | BASE << 5 | VALUE)  # ldr x17, [x16, x17, lsl #3]
    code.three(EOR, VALUE, VALUE, _LINK)
    fetches.save_area()
    code.load(_THIRD, BASE, LOWEST)
    code.move(ROW, SP)
    code.three(SUB, _THIRD, ROW, _THIRD)  # below 0 if the frame is lower
    code.load(OTHER, BASE, CALLS)
    code.load(BASE, OTHER, CallWord.FRAME * 8)
    code.three(SUB, BASE, ROW, BASE)  # below 0 if the frame is below the newest
    code.three(ORN, _THIRD, _THIRD, BASE)
    code.three(ORR, VALUE, VALUE, _THIRD, LSR | 63 << 10)


def _is_tail_call(fetches: Fetches) -> None:
    """x17 is 0 if the newest call has made this one in its own frame; x14 is its record.

    That is so where both return to the same place, unless the call in front of that place has
    just been executed, or the kernel has just entered a handler: `engine.probes.return_sites`.
    """
    code, places = fetches.code, fetches.places
    code.load(VALUE, OTHER, CallWord.FRAME * 8)
    code.three(EOR, VALUE, VALUE, ROW)
    code.load(BASE, OTHER, CallWord.RETURN * 8)
    code.three(EOR, BASE, BASE, _LINK)
    code.three(ORR, VALUE, VALUE, BASE)
    for offset, outside in ((0, False), (8, False), (8, True)):
        code.constant(BASE, places.left)
        code.load(_THIRD, BASE, offset)
        if outside:
            code.constant(BASE, OUTSIDE)
        code.three(EOR, _THIRD, _THIRD, BASE if outside else _LINK)
        code.add(_MINUS_ONE | _THIRD << 5 | _THIRD)
        code.three(ORR, VALUE, VALUE, _THIRD, LSR | 63 << 10)  # 1 if they were the same


def _new_record(fetches: Fetches, work: CallEntry) -> None:
    """The record behind the one that x14 points to."""
    code, places = fetches.code, fetches.places
    at = {word: _RECORD + word * 8 for word in range(CallWord.SIZE)}
    code.move(VALUE, SP)
    code.store(VALUE, OTHER, at[CallWord.FRAME])
    code.store(_LINK, OTHER, at[CallWord.RETURN])
    code.load(BASE, OTHER, CallWord.FRAME * 8)
    code.three(EOR, VALUE, VALUE, BASE)
    code.add(_MINUS_ONE | VALUE << 5 | VALUE)
    code.three(ORR, VALUE, SP, VALUE, LSR | 63 << 10)  # 1 if it is the same frame
    code.constant(BASE, work.number << 32 | work.kind)
    code.three(ORR, VALUE, BASE, VALUE, LSL | _CHAINED_BIT << 10)
    code.store(VALUE, OTHER, at[CallWord.KIND])
    code.load(VALUE, OTHER, CallWord.DEPTH * 8)
    code.plus(VALUE, int(work.deeper))
    code.store(VALUE, OTHER, at[CallWord.DEPTH])
    code.constant(VALUE, work.function)
    code.store(VALUE, OTHER, at[CallWord.FUNCTION])
    code.constant(BASE, places.time)
    code.load(VALUE, BASE, 0)
    code.load(BASE, BASE, 8)
    code.three(SUB, VALUE, VALUE, BASE)
    code.store(VALUE, OTHER, at[CallWord.TIME])
    for index, arg in enumerate(work.kept):
        if arg is None:
            code.load(VALUE, OTHER, at[CallWord.TIME])
        else:
            fetches.value(arg, work)
        code.store(VALUE, OTHER, at[CallWord.KEPT] + 8 * index)


def _row(fetches: Fetches, work: CallEntry) -> None:
    code, places, one = fetches.code, fetches.places, work.row
    assert one is not None
    fetches.start_of_row()
    for field in one.layout.fields:
        fetches.value(field.arg, one)
        code.store(VALUE, ROW, field.word * 8)
    code.load(VALUE, OTHER, _RECORD + CallWord.TIME * 8)
    code.constant(BASE, one.address)
    code.store_pair(VALUE, BASE, ROW, 8)
    code.constant(BASE, places.thread)
    code.load(VALUE, BASE, 0)
    code.constant(BASE, one.event | one.layout.words << 16)
    code.three(ORR, VALUE, VALUE, BASE)
    code.store(VALUE, ROW, 0)
    code.constant(VALUE, one.layout.words * 8 - places.ring)
    code.three(ADD, VALUE, ROW, VALUE)
    fetches.save_area()
    code.store(VALUE, BASE, CURSOR)


def check_return(fetches: Fetches, work: CallReturn) -> None:
    """x17 is 0 if the newest call is the one that has returned."""
    code, places = fetches.code, fetches.places
    code.constant(BASE, places.left)
    code.load(OTHER, BASE, 0)
    code.constant(BASE, work.known)
    code.load(VALUE, BASE, 0)
    code.load(BASE, BASE, 8)
    for register in (VALUE, BASE):
        code.three(EOR, register, register, OTHER)
        code.add(_MINUS_ONE | register << 5 | register)  # below 0 if it is that one
    code.three(ORR, VALUE, VALUE, BASE)
    code.three(ORR, VALUE, SP, VALUE, LSR | 63 << 10)
    code.add(_MINUS_ONE | VALUE << 5 | VALUE)
    fetches.save_area()
    code.load(ROW, BASE, CALLS)
    code.load(OTHER, ROW, CallWord.FRAME * 8)
    code.move(BASE, SP)
    code.three(EOR, OTHER, OTHER, BASE)
    code.three(ORR, VALUE, VALUE, OTHER)
    code.load(OTHER, ROW, CallWord.RETURN * 8)
    code.constant(BASE, work.site)
    code.three(EOR, OTHER, OTHER, BASE)
    code.three(ORR, VALUE, VALUE, OTHER)
    code.load(OTHER, ROW, CallWord.KIND * 8, 4)
    code.constant(BASE, work.kind)
    code.three(EOR, OTHER, OTHER, BASE)
    code.three(ORR, VALUE, VALUE, OTHER, LSL | 32 << 10)  # CHAINED: a bit that no address has


def is_chained(code: Code) -> None:
    """Behind `check_return`: x17 is 0 if only `CHAINED` was in the way."""
    code.constant(BASE, 1 << 63)
    code.three(EOR, VALUE, VALUE, BASE)


def forget_call(fetches: Fetches) -> None:
    """The newest call's record goes."""
    code = fetches.code
    fetches.save_area()
    code.load(VALUE, BASE, CALLS)
    code.add(0xD1000000 | _RECORD << 10 | VALUE << 5 | VALUE)  # sub x17, x17, #
    code.store(VALUE, BASE, CALLS)
