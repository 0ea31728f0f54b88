"""Calls recorded and ended by x86-64 code: what return probes do in a detour.

What has to hold is reduced to one number that is 0 if it does: each branch would be a block of
its own to the emulator.
"""

from typing import Final

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
    DetourPlaces,
    NotCompilableError,
)
from engine.arch.x86_64.emit import JE, LEA, LOAD, RAX, RCX, RDX, RSI, RSP, STORE, Code
from engine.arch.x86_64.fetches import Fetches

FLAGS: Final = CURSOR + 16
"""Where flags are kept, in the save area."""

ENTRY_USES: Final = (RAX, RCX, RDX, RSI)
"""Registers that `enter` changes."""

_OR, _SUB, _AND, _XOR = 0x09, 0x29, 0x21, 0x31
"""Instructions on two registers (`Code.two`)."""
_XOR_MEMORY: Final = "33"
_RECORD: Final = CallWord.SIZE * 8
_CHAINED_BIT: Final = CHAINED.bit_length() - 1


def enter(fetches: Fetches, work: CallEntry) -> tuple[int, int, int]:
    """The code for the entry of a return probe: where it begins, begins anew, and is slow.

    rax, rcx, rdx, rsi and flags change.

    Raises:
        NotCompilableError: more is captured than a record holds, or what code cannot read.
    """
    if len(work.kept) > CallWord.SIZE - CallWord.KEPT:
        raise NotCompilableError("too many values from the entry")
    code, places = fetches.code, fetches.places
    fetches.changed |= set(ENTRY_USES)
    start = code.label("enter")
    _may_enter(code, places)
    code.jump("entered", JE)
    _is_tail_call(code, places)
    code.jump("entered", JE)
    slow = code.label("refused")
    code.raw("cc")
    code.label("entered")
    fetches.call = RSI, _RECORD
    _new_record(fetches, work)
    if work.row is not None:
        _row(fetches, work)
    code.memory(LEA, RAX, RSI, _RECORD)
    code.absolute(places.calls, store=True)
    code.constant(RAX, places.left)
    code.raw("48c70000000000 48c7400800000000")  # mov qword [rax], 0; mov qword [rax+8], 0
    code.absolute(work.counter)
    fetches.add(RAX, 1)
    code.absolute(work.counter, store=True)
    return start, start, slow


def _may_enter(code: Code, places: DetourPlaces) -> None:
    """Flags say E if a call may be recorded; rsi is the newest call's record.

    The return must be caught where it leads to, and the frame lie between the lowest one allowed
    and that of the newest call.
    """
    code.memory(LOAD, RCX, RSP, 0)
    code.constant(RDX, SITES - 1 << SITE_SHIFT)
    code.two(_AND, RCX, RDX)
    code.shift(4, RDX, 3 - SITE_SHIFT)
    code.constant(RAX, places.sites)
    code.sum(RAX, RAX, RDX)
    code.memory(_XOR_MEMORY, RCX, RAX, 0)
    code.constant(RSI, places.save)
    code.two(0x89, RSP, RDX)
    code.memory("2b", RDX, RSI, LOWEST)  # sub: below 0 if the frame is lower
    code.memory(LOAD, RSI, RSI, CALLS)
    code.memory(LOAD, RAX, RSI, CallWord.FRAME * 8)
    code.memory(LEA, RAX, RAX, -1)
    code.two(_SUB, RSP, RAX)  # below 0 if the frame is not below the newest
    code.two(_OR, RAX, RDX)
    code.shift(5, RDX, 63)
    code.two(_OR, RCX, RDX)


def _is_tail_call(code: Code, places: DetourPlaces) -> None:
    """Flags say E if the newest call has made this one in its own frame; rsi is its record.

    That is so where both return to the same place, unless the call in front of that place has
    just been executed, or the kernel has just entered a handler: `engine.probes.return_sites`.
    """
    code.memory(LOAD, RCX, RSP, 0)
    code.memory(LOAD, RAX, RSI, CallWord.FRAME * 8)
    code.two(_XOR, RSP, RAX)
    code.memory(LOAD, RDX, RSI, CallWord.RETURN * 8)
    code.two(_XOR, RCX, RDX)
    code.two(_OR, RDX, RAX)
    for offset, outside in ((0, False), (8, False), (8, True)):
        code.constant(RDX, places.left)
        code.memory(LOAD, RDX, RDX, offset)
        if outside:
            code.constant(RCX, OUTSIDE)
        code.two(_XOR, RCX, RDX)
        code.memory(LEA, RDX, RDX, -1)
        code.shift(5, RDX, 63)  # 1 if they were the same
        code.two(_OR, RDX, RAX)


def _new_record(fetches: Fetches, work: CallEntry) -> None:
    """The record behind the one that rsi points to."""
    code, places = fetches.code, fetches.places
    at = {word: _RECORD + word * 8 for word in range(CallWord.SIZE)}
    code.memory(STORE, RSP, RSI, at[CallWord.FRAME])
    code.memory(LOAD, RAX, RSP, 0)
    code.memory(STORE, RAX, RSI, at[CallWord.RETURN])
    code.memory(LOAD, RAX, RSI, CallWord.FRAME * 8)
    code.two(_XOR, RSP, RAX)
    code.memory(LEA, RAX, RAX, -1)
    code.shift(5, RAX, 63)  # 1 if it is the same frame
    code.shift(4, RAX, _CHAINED_BIT)
    code.constant(RDX, work.number << 32 | work.kind)
    code.two(_OR, RDX, RAX)
    code.memory(STORE, RAX, RSI, at[CallWord.KIND])
    code.memory(LOAD, RAX, RSI, CallWord.DEPTH * 8)
    fetches.add(RAX, int(work.deeper))
    code.memory(STORE, RAX, RSI, at[CallWord.DEPTH])
    code.constant(RAX, work.function)
    code.memory(STORE, RAX, RSI, at[CallWord.FUNCTION])
    code.constant(RDX, places.time)
    code.memory(LOAD, RAX, RDX, 8)
    code.raw("48f7d0")  # not rax
    code.memory(LOAD, RDX, RDX, 0)
    code.sum(RAX, RAX, RDX, 1)
    code.memory(STORE, RAX, RSI, at[CallWord.TIME])
    for index, arg in enumerate(work.kept):
        if arg is None:
            code.memory(LOAD, RAX, RSI, at[CallWord.TIME])
        else:
            fetches.value(arg, work)
        code.memory(STORE, RAX, RSI, at[CallWord.KEPT] + 8 * index)


def _row(fetches: Fetches, work: CallEntry) -> None:
    code, places, one = fetches.code, fetches.places, work.row
    assert one is not None
    fetches.start_of_row(RCX)
    for field in one.layout.fields:
        fetches.value(field.arg, one)
        code.memory(STORE, RAX, RCX, field.word * 8)
    code.memory(LOAD, RAX, RSI, _RECORD + CallWord.TIME * 8)
    code.memory(STORE, RAX, RCX, 8)
    code.constant(RAX, one.address)
    code.memory(STORE, RAX, RCX, 16)
    code.absolute(places.thread)
    fetches.add(RAX, one.event | one.layout.words << 16)
    code.memory(STORE, RAX, RCX, 0)
    fetches.add(RCX, one.layout.words * 8)
    fetches.move_cursor()


def check_return(code: Code, places: DetourPlaces, work: CallReturn) -> None:
    """Flags say E if the newest call is the one that has returned; rax, rcx, rdx change."""
    code.absolute(places.left)
    code.two(0x89, RAX, RDX)
    code.constant(RCX, work.known)
    for register, offset in ((RAX, 0), (RDX, 8)):
        code.memory(_XOR_MEMORY, register, RCX, offset)
        code.memory(LEA, register, register, -1)  # below 0 if it is that one
    code.two(_OR, RDX, RAX)
    code.shift(5, RAX, 63)
    code.memory(LEA, RAX, RAX, -1)
    code.constant(RCX, places.calls)
    code.memory(LOAD, RCX, RCX, 0)
    code.memory(LOAD, RDX, RCX, CallWord.FRAME * 8)
    code.memory(LEA, RDX, RDX, 8)
    code.two(_XOR, RSP, RDX)
    code.two(_OR, RDX, RAX)
    code.constant(RDX, work.site)
    code.memory(_XOR_MEMORY, RDX, RCX, CallWord.RETURN * 8)
    code.two(_OR, RDX, RAX)
    code.load(RDX, RCX, CallWord.KIND * 8, 4)
    code.constant(RCX, work.kind)
    code.two(_XOR, RCX, RDX)
    code.shift(4, RDX, 32)  # CHAINED becomes a bit that no address has
    code.two(_OR, RDX, RAX)


def is_chained(code: Code) -> None:
    """Behind `check_return`: flags say E if only `CHAINED` was in the way."""
    code.constant(RDX, 1 << 63)
    code.two(_XOR, RDX, RAX)


def forget_call(code: Code, places: DetourPlaces) -> None:
    """The newest call's record goes."""
    code.absolute(places.calls)
    code.memory(LEA, RAX, RAX, -_RECORD)
    code.absolute(places.calls, store=True)
